"""How people start: `create_study` for their own loop; `judges.runner` has the loop in one call."""

from collections.abc import Iterable, Sequence
from typing import Any

from shortlist import loop
from shortlist.certificates import CERTIFICATES
from shortlist.checks import whole
from shortlist.errors import BadProblem
from shortlist.families import Family, make_family
from shortlist.problem import Problem
from shortlist.rules import RULES, default_rule
from shortlist.rules.rule import Rule
from shortlist.study.study import Study, check_items, check_pairs


def create_study(
    items: Sequence[str],
    k: int,
    delta: float = 0.05,
    *,
    storage: None = None,
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

    Without a tolerance or max_votes, a tie between the k-th and the next item is asked about for ever.
    """
    if storage is not None:
        raise BadProblem("studies live in memory only; leave storage=None")
    names = check_items(items)
    asking = _by_name(method, RULES, "method", "learn")
    if allowed is not None and asking.name != "bridge":
        raise BadProblem(f"method {asking.name} asks all pairs; with allowed= choose method='bridge'")
    speaks, pairs = make_family(family, sigma), None if allowed is None else check_pairs(names, allowed)
    problem = Problem(len(names), k, delta, speaks, bound, tolerance, max_votes, pairs)
    stopping = _by_name(default_rule(asking) if rule is None else rule, CERTIFICATES, "rule", "check")
    return Study(names, problem, asking, stopping, whole("seed", seed, 0))


def _by_name(choice: Any, known: dict[str, Any], what: str, sign: str) -> Any:
    if hasattr(choice, sign):
        return choice
    if not isinstance(choice, str) or choice not in known:
        raise BadProblem(f"unknown {what} {choice!r}; choose one of {', '.join(known)}")
    return known[choice]()
