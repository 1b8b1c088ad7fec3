"""Create and load studies. What a study was created with is kept in its storage as a `Spec`."""

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from shortlist.core.families import Family, make_family
from shortlist.core.problem import Problem, whole
from shortlist.core.sampling import ASKS_ALLOWED, DEFAULT_SAMPLING, PLANS, SAMPLING_RULES, default_stopping
from shortlist.core.sampling.base import SamplingRule
from shortlist.core.stopping import STOPPING_RULES
from shortlist.core.stopping.base import StoppingRule
from shortlist.errors import BadFamily, BadProblem, BadStorage, StudyDiffers, StudyExists
from shortlist.study.caveats import FROM_STUDY
from shortlist.study.claims import CasesClaim, JudgesClaim, check_claim, check_judges_claim, check_min_judges
from shortlist.study.events import Reopened
from shortlist.study.questions import check_items, check_pairs
from shortlist.study.storage import MemoryStorage, Storage
from shortlist.study.study import Study


def create_study(
    items: Sequence[str],
    k: int,
    delta: float = 0.05,
    *,
    storage: str | Storage | None = None,
    name: str | None = None,
    load_if_exists: bool = False,
    sampling: str | SamplingRule = DEFAULT_SAMPLING,
    stopping: str | StoppingRule | None = None,
    family: str | Family = "bradley-terry",
    sigma: float = 1.0,
    bound: float = 10.0,
    tolerance: float = 0.0,
    max_votes: int | None = None,
    allowed: Iterable[tuple[str, str]] | None = None,
    cases_claim: CasesClaim = "these",
    judges_claim: JudgesClaim = "each",
    ballot_size: int = 10,
    min_judges: int = 1,
    seed: int = 0,
) -> Study:
    """Create a study that finds the best k items with an error of at most delta.

    sampling: the sampling rule, which chooses the next pair: a name, or a rule such as OracleTracking(alpha=0.3).
    stopping: the stopping rule: a name, or a rule such as Glr(lam=1.0). Default: cuts, which needs the fewest votes;
        edges for the public, with a tolerance, with min_judges above 1, for measured differences and for the sampling
        rule bridge; glr for the sampling rules of the paper. A study keeps the rule that it was created with.
    family: bradley-terry (wins, ties, grades in [0, 1]) or gaussian (measured differences with noise sigma).
    bound: the largest utility considered possible, in log-odds (gaussian: in units of the outcome).
    tolerance: accept members that lose to an outsider by at most this, in win probability (gaussian: in outcome units).
    max_votes: after this many votes, end with the best answer so far.
    allowed: the pairs of items that may be asked (bridge, sharpen and learn-then-prove only). Default: all pairs.
    cases_claim: what a proof is about if the items are compared on cases: "these" cases, or cases "like these". For the
        second, each case serves one question of the study, which ends when all cases are used.
    judges_claim: what a proof is about if judges differ: "each" judge who answered, or the "public" that the judges
        come from. For the second, each judge is asked once, with a ballot of up to `ballot_size` pairs, and what is not
        answered counts as lost by both items. It needs many more judges. See `Study.ballot`.
    min_judges: every step of a proof must rest on at least this many judges, so that no single judge decides. Judges
        are told apart by the names in `ask(judge=...)`; votes without a name are one judge. More than 1 needs the
        stopping rule edges, wins, ties or grades as votes, and no tolerance.
    seed: decides which item is shown first and what the sampling rule draws. Same seed and answers, same questions.

    storage: sqlite:///FILE or postgresql://USER@HOST/DATABASE. Default: in memory.
    name: the name of the study in its storage.
    load_if_exists: resume the study of that name, if it was created with the same items and options. If `Study.change`
        has changed its vote budget, delta or number of judges since, those in force count.

    An exact tie between the k-th and the next item never resolves: set `tolerance` or `max_votes` to bound the cost.
    """
    names = check_items(items)
    asks = _by_name(sampling, SAMPLING_RULES, "sampling rule", "learn")
    if allowed is not None and asks.name not in ASKS_ALLOWED:
        raise BadProblem(
            f"sampling rule {asks.name} asks all pairs; with allowed= choose one of {', '.join(ASKS_ALLOWED)}"
        )
    votes, pairs = make_family(family, sigma), None if allowed is None else check_pairs(names, allowed)
    problem = Problem(len(names), k, delta, votes, bound, tolerance, max_votes, pairs, min_judges)
    by_default = default_stopping(asks, problem, judges_claim)
    stops = _by_name(by_default if stopping is None else stopping, STOPPING_RULES, "stopping rule", "check")
    check_min_judges(min_judges, stops)
    stops.start(problem)  # raises BadProblem for what it cannot prove, before anything is stored
    number, is_plain = whole("seed", seed, 0), asks.name in PLANS and stops.name == "edges"
    judged = check_judges_claim(judges_claim, is_plain and stops.any_order(problem))
    claims = check_claim(cases_claim), judged, whole("ballot_size", ballot_size, 1)
    if storage is None:
        memory = MemoryStorage()
        memory.create(check_name(name or "study"), _spec_if_known(names, problem, asks, stops, number, *claims))
        return Study(names, problem, asks, stops, number, name or "study", memory, *claims)
    if name is None:
        raise BadProblem("a stored study needs a name; pass name=")
    spec, place = make_spec(names, problem, asks, stops, number, *claims), open_storage(storage)
    try:
        place.create(check_name(name), spec.dump())
    except StudyExists:
        if not load_if_exists:
            raise
        return _resumed(load_study(name, place), spec)
    return load_study(name, place)


def _resumed(study: Study, given: "Spec") -> Study:
    """The study, if this is what it was created with, or what is in force now. Raises StudyDiffers."""
    created, now = load_spec(study.storage.spec(study.name)), study.problem
    in_force = {name: getattr(now, name) for name in ("max_votes", "delta", "min_judges")}
    differences = given.differences(replace(created, **in_force))
    for name in in_force:
        if getattr(given, name) == getattr(created, name):
            differences.pop(name, None)
    if not differences:
        return study
    error = StudyDiffers(study.name, differences)
    if not error.can_change:
        raise error
    changes = ", ".join(f"{name}={getattr(given, name)}" for name in differences)
    way_out = f"to change it, call load_study(...).change({changes}), or choose another name"
    raise StudyDiffers(study.name, differences, way_out)


def load_study(name: str, storage: str | Storage) -> Study:
    """Load the study of that name, with all its votes. Raises UnknownStudy."""
    place = open_storage(storage, create=False)
    spec = _stored_spec(name, place)
    rules = spec.sampling_rule(), spec.stopping_rule()
    return Study(
        spec.items, spec.problem(), *rules, spec.seed, name, place, spec.cases_claim, spec.judges_claim,
        spec.ballot_size,
    )  # fmt: skip


def check_take_over(older: Study, items: Sequence[str], judges_claim: str, cases_claim: str) -> None:
    """Raise BadProblem if a new study of these items cannot take over the votes of an older one. It would count them
    anew, so what was taken back there, by whatever outcome, could not stay a loss."""
    older.settle()
    claims = judges_claim, cases_claim, older.judges_claim, older.cases_claim
    if claims != ("each", "these") * 2:
        raise BadProblem(
            "votes can be taken over only if both studies are about each judge and these cases: the votes do not say "
            "that each judge had one ballot, or each case one question"
        )
    if undone := older.counts["undone"]:
        raise BadProblem(
            f"{undone:,} votes of study {older.name!r} were undone after they counted. What they counted against an "
            "item stays in that study and cannot be taken over, so nothing is"
        )
    if lost := _taken_back_and_lost(older):
        raise BadProblem(
            f"{lost:,} answers of study {older.name!r} were taken back and not given again. They count as lost there, "
            "which cannot be taken over, so nothing is"
        )
    if len(set(items) & set(older.items)) < 2:
        raise BadProblem(f"this study has fewer than two items of {older.name!r}, so there are no votes to take over")


def _taken_back_and_lost(older: Study) -> int:
    """How many questions were lost after their judge had answered them."""
    reopened = {entry.event.question for entry in older.entries if isinstance(entry.event, Reopened)}
    return sum(row.status in ("lost", "late") and row.question in reopened for row in older.rows)


def take_over_votes(older: Study, study: Study) -> None:
    """Import all votes of an older study that are about two items of this one, in the order in which they came. Judges
    who were voided there are voided here too."""
    rows = sorted((row for row in older.rows if row.status in ("counted", "voided")), key=lambda row: row.answered)
    kept = [row for row in rows if {row.first, row.second} <= set(study.items)]
    if kept:
        first, second, outcome, judge, unit = (
            [getattr(row, part) for row in kept] for part in ("first", "second", "outcome", "judge", "unit")
        )
        ids = [row.id for row in kept]
        study.import_votes(first, second, outcome, judge, f"{FROM_STUDY}{older.name!r}", unit, ids)
    for name in sorted(older.voided):
        study.void(name)


def open_storage(storage: str | Storage, create: bool = True) -> Storage:
    """The storage at this URL; a storage passes through. A missing one is created unless create=False."""
    if not isinstance(storage, str):
        return storage
    from shortlist.study.sql import open_database  # imports a database library

    return open_database(storage, create)


def check_name(name: str) -> str:
    """Raise BadProblem if this is not a valid name for a study. A valid name can be typed and fits into a URL."""
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w .-]{0,99}", _without_marks(name)) or len(name) > 100:
        raise BadProblem(f"{name!r} cannot name a study; use up to 100 letters, digits, spaces, dots, - and _")
    return name


def _without_marks(name: str) -> str:
    """The name without the signs above, below and beside letters that some scripts need, such as Hindi's vowels."""
    return "".join(sign for sign in name if not unicodedata.category(sign).startswith("M"))


def _by_name(choice: Any, known: dict[str, Any], what: str, sign: str) -> Any:
    if hasattr(choice, sign):
        return choice
    if not isinstance(choice, str) or choice not in known:
        raise BadProblem(f"unknown {what} {choice!r}; choose one of {', '.join(known)}")
    return known[choice]()


Named = dict[str, Any]  # a sampling or stopping rule: its name and its options


@dataclass(frozen=True)
class Spec:
    items: tuple[str, ...]
    k: int
    delta: float
    family: str
    sigma: float
    bound: float
    tolerance: float
    max_votes: int | None
    allowed: tuple[int, ...] | None
    sampling: Named
    stopping: Named
    seed: int
    cases_claim: CasesClaim
    judges_claim: JudgesClaim
    ballot_size: int
    min_judges: int = 1

    def problem(self) -> Problem:
        family = make_family(self.family, self.sigma)
        sizes = len(self.items), self.k, self.delta
        return Problem(*sizes, family, self.bound, self.tolerance, self.max_votes, self.allowed, self.min_judges)

    def sampling_rule(self) -> SamplingRule:
        made: SamplingRule = SAMPLING_RULES[self.sampling["name"]](**self.sampling["options"])
        return made

    def stopping_rule(self) -> StoppingRule:
        made: StoppingRule = STOPPING_RULES[self.stopping["name"]](**self.stopping["options"])
        return made

    def dump(self) -> str:
        return json.dumps(asdict(self))

    def differences(self, other: "Spec") -> dict[str, str]:
        """How this spec differs from the stored one, in words by name."""
        return {
            part.name: f"{part.name} is {_short(theirs)} there and {_short(ours)} here"
            for part in fields(self)
            if (theirs := getattr(other, part.name)) != (ours := getattr(self, part.name))
        }


def make_spec(
    items: Sequence[str], problem: Problem, sampling: SamplingRule, stopping: StoppingRule, seed: int,
    cases_claim: CasesClaim, judges_claim: JudgesClaim, ballot_size: int,
) -> Spec:  # fmt: skip
    return Spec(
        tuple(items), problem.k, problem.delta, problem.family.name, getattr(problem.family, "sigma", 1.0),
        problem.bound, problem.tolerance, problem.max_votes, problem.allowed,
        _named(sampling, SAMPLING_RULES, "sampling rule"),
        _named(stopping, STOPPING_RULES, "stopping rule"), seed, cases_claim, judges_claim, ballot_size,
        problem.min_judges,
    )  # fmt: skip


def _spec_if_known(*parts: Any) -> str:
    """The spec as it would be stored; empty with rules of one's own, which cannot be."""
    try:
        return make_spec(*parts).dump()
    except BadProblem:
        return ""


def load_spec(text: str) -> Spec:
    parts = json.loads(text)
    for name in ("items", "allowed"):
        parts[name] = None if parts[name] is None else tuple(parts[name])
    return Spec(**parts)


def _stored_spec(name: str, place: Storage) -> Spec:
    text = place.spec(name)
    try:
        spec = load_spec(text)
        spec.problem(), spec.sampling_rule(), spec.stopping_rule()
    except (ValueError, LookupError, TypeError, AttributeError, BadProblem, BadFamily):
        raise BadStorage(f"the settings of study {name!r} are damaged in the storage; restore a backup") from None
    return spec


def _named(thing: Any, known: dict[str, Any], what: str) -> Named:
    kind = known.get(thing.name)
    if kind is None or type(thing) is not kind:
        raise BadProblem(f"your own {what} cannot be stored; keep the study in memory, or choose a built-in one")
    plain = kind()
    changed = {part.name: getattr(thing, part.name) for part in fields(thing)}
    return {"name": thing.name, "options": {key: v for key, v in changed.items() if v != getattr(plain, key)}}


def _short(value: Any) -> str:
    text = str(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."
