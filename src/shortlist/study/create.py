"""How people start: `create_study` for their own loop; `judges.runner` has the loop in one call."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from shortlist import loop
from shortlist.certificates import CERTIFICATES
from shortlist.checks import whole
from shortlist.errors import BadProblem, StudyDiffers, StudyExists
from shortlist.families import Family, make_family
from shortlist.problem import Problem
from shortlist.rules import RULES, default_rule
from shortlist.rules.rule import Rule
from shortlist.study.questions import check_items, check_pairs
from shortlist.study.spec import load_spec, make_spec
from shortlist.study.storage import Storage
from shortlist.study.study import Study


def create_study(
    items: Sequence[str],
    k: int,
    delta: float = 0.05,
    *,
    storage: str | Storage | None = None,
    name: str | None = None,
    load_if_exists: bool = False,
    method: str | Rule = "bridge",
    rule: str | loop.Certificate | None = None,
    family: str | Family = "bradley-terry",
    sigma: float = 1.0,
    bound: float = 10.0,
    tolerance: float = 0.0,
    max_votes: int | None = None,
    allowed: Iterable[tuple[str, str]] | None = None,
    seed: int = 0,
) -> Study:
    """A study that looks for the best k items with error at most delta.

    method: how to ask, a name or a rule such as OracleTracking(alpha=0.3).
    rule: when to stop, a name or a certificate such as Glr(lam=1.0); left out, edges, and glr for the paper's methods.
    family: bradley-terry (wins, ties, grades in [0, 1]) or gaussian (measured differences with noise sigma).
    bound: the largest utility thought possible, in log-odds (gaussian: in units of the outcome).
    tolerance: how much better an outsider may be, in win probability (gaussian: in units of the outcome).
    max_votes: end with the best answer so far after that many votes.
    allowed: the pairs of items that may be asked, if not all (bridge only).
    seed: of sides and of what the rule draws; the same seed and answers give the same questions.

    storage: where to keep it, sqlite:///FILE or postgresql://USER@HOST/DATABASE; left out, in memory.
    name: what to find it by in its storage.
    load_if_exists: go on with the study of that name, if it was created with the same items and options.

    Without a tolerance or max_votes, a tie between the k-th and the next item is asked about for ever.
    """
    names = check_items(items)
    asking = _by_name(method, RULES, "method", "learn")
    if allowed is not None and asking.name != "bridge":
        raise BadProblem(f"method {asking.name} asks all pairs; with allowed= choose method='bridge'")
    speaks, pairs = make_family(family, sigma), None if allowed is None else check_pairs(names, allowed)
    problem = Problem(len(names), k, delta, speaks, bound, tolerance, max_votes, pairs)
    stopping = _by_name(default_rule(asking) if rule is None else rule, CERTIFICATES, "rule", "check")
    number = whole("seed", seed, 0)
    if storage is None:
        return Study(names, problem, asking, stopping, number, check_name(name or "study"))
    if name is None:
        raise BadProblem("a stored study needs a name; give name=")
    spec, place = make_spec(names, problem, asking, stopping, number), open_storage(storage)
    try:
        place.create(check_name(name), spec.dump())
    except StudyExists:
        differences = spec.differences(load_spec(place.spec(name)))
        if not load_if_exists:
            raise
        if differences:
            raise StudyDiffers(name, differences) from None
    return load_study(name, place)


def load_study(name: str, storage: str | Storage) -> Study:
    """The study of that name, where it stands; raises UnknownStudy."""
    place = open_storage(storage, create=False)
    spec = load_spec(place.spec(name))
    return Study(spec.items, spec.problem(), spec.asking(), spec.stopping(), spec.seed, name, place)


def open_storage(storage: str | Storage, create: bool = True) -> Storage:
    """A storage by its URL, or as it is; an empty one is made unless create=False."""
    if not isinstance(storage, str):
        return storage
    from shortlist.study.sql import open_database  # brings a database library along

    return open_database(storage, create)


def check_name(name: str) -> str:
    """A name for a study: what a person can type and a URL can hold."""
    if not isinstance(name, str) or not re.fullmatch(r"[\w][\w .-]{0,99}", name):
        raise BadProblem(f"{name!r} is no name for a study; use up to 100 letters, digits, spaces, dots, - and _")
    return name


def _by_name(choice: Any, known: dict[str, Any], what: str, sign: str) -> Any:
    if hasattr(choice, sign):
        return choice
    if not isinstance(choice, str) or choice not in known:
        raise BadProblem(f"unknown {what} {choice!r}; choose one of {', '.join(known)}")
    return known[choice]()
