"""Claims about cases and about judges: how questions draw their cases, who had a ballot, which words a guarantee then
needs, and which pairs the known answers decide by themselves.

With replacement, the draws are about the mean over these cases. If every case serves one question of the study, a case
is as good as a new one, so the draws are about cases like these. Recorded votes are cases of their pair, used once. The
same with judges: asked again and again they speak for themselves, asked once, with one ballot, for their public.

A run stores every answer on a case and uses it again, so its answers are a table of cells (a cell is what a judge
answers to a pair, on a case, in an order of showing), and a claim about these cases is about the means of the table.
Where the known cells decide which of two items has the larger mean, whatever the other cells are, this is a fact
(core/pairs.py): no vote is needed, and nothing can be wrong about it. Exact ties go to the item that is listed first. A
cell to which the judge gave no clear answer twice counts as a tie, once all other cells of the pair are known.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, Literal, NamedTuple, get_args

from shortlist.core.draws import draw_case
from shortlist.core.pairs import n_pairs, pair_items, pair_number
from shortlist.core.problem import Problem, real
from shortlist.core.sampling.ballot import Places
from shortlist.core.stopping.base import StoppingRule
from shortlist.errors import BadProblem, CasesUsedUp
from shortlist.study.events import CONFLICT, DROPPED, EXPIRED, LEFT, VOIDED, Asked, Drawing, JudgeSetup, Setups

CasesClaim = Literal["these", "like these"]
JudgesClaim = Literal["each", "public"]
SENTENCES: dict[CasesClaim | JudgesClaim, str] = {
    "each": "The result is about each judge who answered: the same top must be right for every one of them, and it "
    "says nothing about other judges.",
    "public": "The result is about the public that the judges come from, on average, and says nothing about single "
    "judges or about other people; each judge is asked once, with one ballot.",
    "these": "The result is about these cases, on average, and says nothing about other cases.",
    "like these": "The result is about cases like these, on average, and says nothing about single cases or about "
    "other kinds of cases; each case is used for one question.",
}

ONE_JUDGE = "The result is about this judge's answers, and says nothing about other judges."
PANEL = "The result is about the mean of the panel's {} judges, and says nothing about each of them or about others."
PANEL_WORDS = {
    "random": "by the mean answer of a panel of {} judges (each question was answered by one of them, drawn at random)",
    "mean": "by the mean answer of a panel of {} judges (each question was answered by all of them)",
}
Panels = Mapping[str, JudgeSetup]  # those judges that are panels, by name
REFUSALS = 2  # skips after which a cell counts as a tie
NO_REFUSALS = (EXPIRED, VOIDED, LEFT, DROPPED, CONFLICT)  # reasons of skips that are not the judge's
LOW_FIRST, HIGH_FIRST, BOTH_LOW, BOTH_HIGH = "0123"  # which orders an answer is about, and whose side it is seen from
Key = tuple[str | None, int]  # judge and pair
Facts = frozenset[tuple[int, int]]  # items that are ahead of others


def check_claim(claim: str) -> CasesClaim:
    """Raise BadProblem unless this is a claim about cases."""
    if claim not in get_args(CasesClaim):
        raise BadProblem(f"cases_claim is {claim!r}; choose one of {', '.join(map(repr, get_args(CasesClaim)))}")
    return "like these" if claim == "like these" else "these"


def check_judges_claim(claim: str, any_order: bool) -> JudgesClaim:
    """Raise BadProblem unless this is a claim about judges that the study can make. `any_order`: its stopping rule is
    edges, and votes count as they arrive."""
    if claim not in get_args(JudgesClaim):
        raise BadProblem(f"judges_claim is {claim!r}; choose one of {', '.join(map(repr, get_args(JudgesClaim)))}")
    if claim == "public" and not any_order:
        raise BadProblem(
            "judges_claim 'public' needs the sampling rule learn-then-prove or bridge, the stopping rule edges, and "
            "wins, ties or grades as votes; leave sampling, stopping and family out, or choose judges_claim 'each'"
        )
    return "public" if claim == "public" else "each"


def check_min_judges(number: int, stopping: StoppingRule) -> None:
    """Raise BadProblem if proofs by this stopping rule cannot rest on so many judges."""
    if number > 1 and stopping.name != "edges":
        raise BadProblem(
            f"min_judges is {number}; the stopping rule {stopping.name} does not tell judges apart. Choose the "
            "stopping rule edges, or min_judges 1"
        )


_OWN_PROOF = "each {} has a proof of its own, and the errors of all that you look at add up"
_OTHER_CLAIM = "the questions so far were asked for the other claim"
_OTHER_VOTES = "the votes so far were counted with it"
FIXED = {
    "items": "another item is another study (an item can be withdrawn: withdraw_item)",
    "k": _OWN_PROOF.format("k"),
    "tolerance": _OWN_PROOF.format("tolerance"),
    "stopping": _OWN_PROOF.format("stopping rule"),
    "cases_claim": _OTHER_CLAIM,
    "judges_claim": _OTHER_CLAIM,
    "ballot_size": _OTHER_CLAIM,
    "family": _OTHER_VOTES,
    "sigma": _OTHER_VOTES,
    "bound": _OTHER_VOTES,
}  # settings that a proof rests on, and why they stay as they are


def check_change(problem: Problem, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Those of these settings that differ from the problem's. Raises BadProblem for what must not change."""
    for name in changes:
        if name not in ("max_votes", "delta", "min_judges"):
            why = FIXED.get(name, "only max_votes, delta and min_judges can be changed")
            raise BadProblem(
                f"{name} cannot be changed after a study was created: {why}. Create a new study; its error and that of "
                f"this one add up, at {problem.stated_delta:g} each"
            )
    found = {name: value for name, value in changes.items() if value != getattr(problem, name)}
    if real("delta", changes.get("delta", problem.delta)) > problem.delta:
        raise BadProblem(
            f"delta is {problem.delta:g} and can only be made smaller: a larger error must be accepted before the "
            "votes are seen, not after. Create a new study"
        )
    replace(problem, **found)  # which checks them
    return found


class OpenBallot(NamedTuple):
    """A ballot with questions that are pending or not settled."""

    size: int = 0
    answered: tuple[int, ...] = ()  # places
    struck: tuple[int, ...] = ()  # places that the judge must not see
    left: int = 0

    def closing(self, place: int, is_answered: bool, is_struck: bool) -> "OpenBallot":
        answered = (*self.answered, place) if is_answered else self.answered
        return OpenBallot(self.size, answered, (*self.struck, place) if is_struck else self.struck, self.left - 1)

    @property
    def listed(self) -> tuple[int, ...]:
        """The places that the judge could answer."""
        return tuple(place for place in range(self.size) if place not in self.struck)


class Ballots(NamedTuple):
    """The ballots of a study about the public. Each judge has one."""

    open: dict[str, OpenBallot] = {}  # noqa: RUF012 - never changed in place
    closed: frozenset[str] = frozenset()  # judges
    places: Places = Places()

    def had(self, judge: str) -> bool:
        """Whether this judge has, or had, a ballot."""
        return judge in self.open or judge in self.closed

    def listing(self, judge: str) -> "Ballots":
        """With one more question on the judge's ballot."""
        before = self.open.get(judge, OpenBallot())
        longer = before._replace(size=before.size + 1, left=before.left + 1)
        return self._replace(open={**self.open, judge: longer})

    def closing(self, judge: str, place: int, is_answered: bool, is_struck: bool = False) -> "Ballots":
        """With one question of the judge's ballot closed. The places are counted when all of it is closed."""
        ballot = self.open[judge].closing(place, is_answered, is_struck)
        if ballot.left:
            return self._replace(open={**self.open, judge: ballot})
        others = {name: other for name, other in self.open.items() if name != judge}
        return Ballots(others, self.closed | {judge}, self.places.after(ballot.listed, ballot.answered))


class Pools(NamedTuple):
    """From how many cases the questions of a study drew theirs, by the way of drawing; the largest number counts."""

    replaced: int = 0
    once: int = 0
    recorded: int = 0

    def after(self, drawing: Drawing, size: int) -> "Pools":
        """After one more question. Returns itself if nothing changed."""
        if size <= getattr(self, drawing):
            return self
        return self._replace(**{drawing: size})

    @property
    def is_once(self) -> bool:
        """Whether questions had cases, and none may have had the case of another."""
        return any(self) and not self.replaced

    @property
    def words(self) -> str:
        """What the questions are averages over; empty if none had a case."""
        found = []
        if self.replaced:
            found.append(f"on average over {_these(self.replaced)}")
        if self.once:
            used = f"each of the {self.once:,} cases was used at most once"
            found.append(f"on average over cases like these ({used})")
        if self.recorded:
            used = f"each of the {self.recorded:,} was used at most once"
            found.append(f"on average over votes like the recorded ones ({used})")
        return ", and ".join(found)


def _these(count: int) -> str:
    return "this one case" if count == 1 else f"these {count:,} cases"


def panels_of(setups: Setups) -> Panels:
    """Those judges of a study that are panels, by name."""
    return {one.judge: one for one in setups.judges if one.panel}


def with_claims(
    guarantee: str, claim: JudgesClaim, judges: Collection[str | None], pools: Pools, panels: Panels | None = None,
    has_facts: bool = False,
) -> str:  # fmt: skip
    """The guarantee of a study: that of its stopping rule, and what its questions are about. `judges` are those whose
    answers were counted; None is a judge without a name. `has_facts`: known answers decide pairs by themselves."""
    about = _judges_words(claim, judges, pools, panels or {})
    ties = "with exact ties counted for the item that is listed first" if has_facts else ""
    words = ", ".join(part for part in (about, pools.words, ties) if part)
    return f"{guarantee}; items are compared {words}" if guarantee and words else guarantee


def price_sentence(problem: Problem) -> str:
    """Why a proof states a larger error than delta, if delta was lowered after the first question; else empty."""
    if problem.accepted_delta == problem.delta:
        return ""
    return (
        f"The accepted error (delta) was lowered to {problem.delta:g} after votes could be seen, so a proof states an "
        f"error of {problem.accepted_delta:g}: the largest delta that was in force."
    )


def _judges_words(claim: JudgesClaim, judges: Collection[str | None], pools: Pools, panels: Panels) -> str:
    if claim == "public":
        return "on average over the public that the judges come from (each judge was asked once, with one ballot)"
    if pools.recorded:
        return ""  # the votes are the judge's, not the judge
    if set(judges) <= {None}:
        return "by the judges' answers" if pools.replaced else ""
    panel = _only_panel(judges, panels)
    if panel is not None:
        return PANEL_WORDS[panel.how].format(len(panel.panel))
    several = "separately for every judge who answered" + (" (a panel counts as one, by its mean)" if panels else "")
    return "by this judge's answers" if len(judges) == 1 else several


def _only_panel(judges: Collection[str | None], panels: Panels) -> JudgeSetup | None:
    """The panel whose answers all votes are; None if there is another judge."""
    names = [judge for judge in judges if judge is not None]
    return panels.get(names[0]) if len(judges) == len(names) == 1 else None


def claim_sentences(
    judges_claim: JudgesClaim, cases_claim: CasesClaim, judges: Collection[str | None], pools: Pools, panels: Panels
) -> tuple[str, ...]:
    """What a proof of this study is about, one sentence for each claim that it makes."""
    has_names = judges_claim == "public" or not set(judges) <= {None}
    is_one = judges_claim == "each" and len(judges) == 1
    has_cases = any(pools) or cases_claim == "like these"
    about_cases: CasesClaim = "like these" if pools.is_once else cases_claim
    panel = _only_panel(judges, panels)
    one = ONE_JUDGE if panel is None else PANEL.format(len(panel.panel))
    about_judges = one if is_one else SENTENCES[judges_claim]
    found = has_names and about_judges, has_cases and SENTENCES[about_cases]
    return tuple(sentence for sentence in found if sentence)


class CasePool:
    """The cases that questions draw from: one list for all pairs, or a list for each pair by its number."""

    def __init__(self, cases: Sequence[str] | Mapping[int, Sequence[str]], used: Set[str] | None = None) -> None:
        """`used` are the cases that earlier questions had, if each case serves one question; None: all are open."""
        self._cases, self._used, self._new = cases, used, set[str]()

    def __bool__(self) -> bool:
        return bool(self._cases) or isinstance(self._cases, Mapping)

    @property
    def drawing(self) -> Drawing:
        if self._used is None:
            return "replaced"
        return "recorded" if isinstance(self._cases, Mapping) else "once"

    @property
    def size(self) -> int:
        return len(set().union(*self._cases.values())) if isinstance(self._cases, Mapping) else len(self._cases)

    def closed_pairs(self, n: int) -> frozenset[int]:
        """The pairs that have no case left."""
        if not isinstance(self._cases, Mapping):
            if next(self._open(self._cases), None) is None:
                raise self.used_up()
            return frozenset()
        having = {pair for pair, cases in self._cases.items() if next(self._open(cases), None) is not None}
        return frozenset(range(n_pairs(n))) - having

    def draw(self, seed: int, question: int, pair: int) -> str:
        """The case of a question about this pair: uniform among those that are open. Raises CasesUsedUp."""
        cases = self._cases.get(pair, ()) if isinstance(self._cases, Mapping) else self._cases
        left = cases if self._used is None else list(self._open(cases))
        if not left:
            raise self.used_up()
        drawn = draw_case(seed, question, left)
        self._new.add(drawn)
        return drawn

    def used_up(self) -> CasesUsedUp:
        """The error to raise when nothing is left to ask."""
        cases = set().union(*self._cases.values()) if isinstance(self._cases, Mapping) else set(self._cases)
        used = set() if self._used is None else {case for case in cases if case in self._used or case in self._new}
        return CasesUsedUp(len(used), len(cases))

    def _open(self, cases: Sequence[str]) -> Iterator[str]:
        if self._used is None:
            return iter(cases)
        return (case for case in cases if case not in self._used and case not in self._new)


NO_CASES = CasePool(())


class PairCells(NamedTuple):
    """What one judge answered on one pair, by order and case; `skips` counts what was not answered. `ahead` is 1 if the
    known cells put the pair's lower item ahead, -1 the higher one, 0 if they do not decide yet. `tied`: all cells are
    known, and the items are equal."""

    answers: dict[str, float] = {}  # noqa: RUF012 - never changed in place
    skips: dict[str, int] = {}  # noqa: RUF012
    ahead: int = 0
    tied: bool = False
    refused: int = 0  # cells that count as ties because they were not answered

    def decide(self, size: int) -> "PairCells":
        """With what the known cells decide, among `size` cases in both orders."""
        known, parts = _units(self.answers), self._parts()
        refused = _units(place for place, times in self.skips.items() if times >= REFUSALS) - known
        if known and len(known) + len(refused) == 2 * size:  # refused cells are ties, so only the known ones matter
            margin = math.fsum([*parts, -len(known) / 2])
            return self._replace(ahead=1 if margin >= 0 else -1, tied=margin == 0, refused=len(refused))
        lower, higher = math.fsum([*parts, -size]), math.fsum([len(known), -size, *(-part for part in parts)])
        return self._replace(ahead=1 if lower >= 0 else -1 if higher > 0 else 0, tied=False, refused=0)

    def _parts(self) -> list[float]:
        """Numbers that add up, without rounding, to the lower item's share of all known cells."""
        parts = list[float]()
        for place, value in self.answers.items():
            order, case = place[0], place[1:]
            others = {LOW_FIRST: (BOTH_LOW, BOTH_HIGH), HIGH_FIRST: (BOTH_LOW, BOTH_HIGH), BOTH_HIGH: (BOTH_LOW,)}
            if any(other + case in self.answers for other in others.get(order, ())):
                continue  # the same cells are known from an answer about both orders
            weight = 1 if order in (LOW_FIRST, HIGH_FIRST) else 2
            parts += [weight * value] if order in (LOW_FIRST, BOTH_LOW) else [weight, -weight * value]
        return parts


def _units(places: Iterable[str]) -> set[str]:
    """The cells that these answers are about, one for each order and case."""
    found = set[str]()
    for place in places:
        found |= {place} if place[0] in (LOW_FIRST, HIGH_FIRST) else {LOW_FIRST + place[1:], HIGH_FIRST + place[1:]}
    return found


class AnswerTable(NamedTuple):
    """The cells that are known. `changed` are judges who answered the same cell in two ways: their answers are not a
    table, so they decide nothing."""

    pairs: dict[Key, PairCells] = {}  # noqa: RUF012 - never changed in place
    changed: frozenset[str | None] = frozenset()

    def answered(self, asked: Asked, cases: Collection[str] | None, n: int, outcome: float) -> "AnswerTable":
        """With one more answer; `cases` is the list of the study. Returns itself if there is nothing new."""
        if not _is_cell(asked, cases):
            return self
        key, place = _key(asked, n), _place(asked)
        cells = self.pairs.get(key, PairCells())
        before = cells.answers.get(place)
        if before == outcome:
            return self
        if before is not None:
            return self._replace(changed=self.changed | {asked.judge})
        return self._with(key, cells._replace(answers={**cells.answers, place: outcome}), cases)

    def skipped(self, asked: Asked, cases: Collection[str] | None, n: int, reason: str) -> "AnswerTable":
        """With one more question that the judge did not answer."""
        if not _is_cell(asked, cases) or reason in NO_REFUSALS:
            return self
        key, place = _key(asked, n), _place(asked) if asked.cells == 1 else f"{BOTH_LOW}{asked.case}"
        cells = self.pairs.get(key, PairCells())
        skips = {**cells.skips, place: cells.skips.get(place, 0) + 1}
        return self._with(key, cells._replace(skips=skips), cases)

    def _with(self, key: Key, cells: PairCells, cases: Collection[str] | None) -> "AnswerTable":
        return self._replace(pairs={**self.pairs, key: cells.decide(len(cases or ()))})

    def facts(self, n: int, min_judges: int, spent: Collection[Key], voided: Collection[str]) -> Facts:
        """Which items are ahead of which, by the tables of at least so many judges. What an undo touched does not
        count, nor does a judge who is voided."""
        found = Counter[tuple[int, int]]()
        for (judge, pair), cells in self.pairs.items():
            if cells.ahead and not (judge in self.changed or judge in voided or (judge, pair) in spent):
                low, high = pair_items(n, pair)
                found[(low, high) if cells.ahead > 0 else (high, low)] += 1
        return frozenset(ends for ends, judges in found.items() if judges >= min_judges)

    def ties(self, n: int) -> list[tuple[int, int]]:
        """The pairs that are exactly equal for some judge, the item that is listed first before the other."""
        return sorted({pair_items(n, pair) for (_, pair), cells in self.pairs.items() if cells.tied})

    @property
    def refused(self) -> int:
        """How many cells count as ties because the judge did not answer them."""
        return sum(cells.refused for cells in self.pairs.values())


def _is_cell(asked: Asked, cases: Collection[str] | None) -> bool:
    """Whether the question is about a cell of the table over these cases."""
    return asked.cells > 0 and cases is not None and asked.pool == len(cases) and asked.case in cases


def _key(asked: Asked, n: int) -> Key:
    return asked.judge, pair_number(n, asked.first, asked.second)


def _place(asked: Asked) -> str:
    orders = LOW_FIRST + HIGH_FIRST if asked.cells == 1 else BOTH_LOW + BOTH_HIGH
    return orders[asked.first > asked.second] + str(asked.case)
