"""Questions: what one is, when its answer is final, what becomes of it without an answer, and a judge's ballot of them.

A vote's result is the last answer when it settles, with the bet, the sides and the case of its question. Until then the
question counts as pending. A question that the judge has seen and not answered may be silent because of what the answer
would have been, so it is lost for good where votes can be lost. One that was never shown is dropped without effect.

The ballot of a judge in a study about the public is opened once, as a whole, and never changed. The list does not
depend on who the judge is, and everything on it is fixed when it is opened: pairs, sides, cases and bets. Pairs that
the judge must not see, such as their own work, are struck out when it is opened and not replaced: else the list would
depend on who the judge is.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shortlist.core import loop
from shortlist.core.draws import Draws, draw_number
from shortlist.core.pairs import Floats, pair_items, pair_number
from shortlist.core.sampling import planned_by
from shortlist.core.sampling.ballot import Listed, draw_ballot
from shortlist.core.sampling.bridge import Bridge
from shortlist.core.sampling.sharpen import Sharpen
from shortlist.errors import BadOutcome, BadProblem, BallotsOpen, CasesUsedUp, NeedsJudges, NothingToAsk
from shortlist.study.claims import CasePool
from shortlist.study.events import (
    CONFLICT,
    DROPPED,
    ENDED,
    EXPIRED,
    LEFT,
    VOIDED,
    Asked,
    CountedVote,
    Event,
    Lost,
    Settled,
    Skipped,
    Withdrawn,
)
from shortlist.study.state import StudyState, Unsettled

Pair = tuple[str, str]
Pairs = Iterable[Pair]
SETTLES_AFTER = 30.0  # seconds in which a person may take an answer back
UNDO_STEPS = 3  # answers that a person may take back, the last ones
FRESH = 0.1  # of a lease, in which it is not written again
BALLOT_LEASE = 3600.0  # seconds that a person has for the next question of a ballot, where nothing else is said
DRAW = 2  # the kind of draw of a ballot, beside those of the loop


@dataclass(frozen=True)
class Question:
    """Which of these two items is better? A fair coin decided which one is `first`."""

    id: int
    first: str
    second: str
    judge: str | None = None
    bet: float = 0.0  # on `first`, fixed when the question was asked
    case: str | None = None  # the id of the case on which the items are compared
    place: int | None = None  # on the judge's ballot, from 0; None if it is on no ballot


def as_outcomes(values: Sequence[float]) -> Floats:
    """Outcomes as an array of numbers. The family checks their range."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty((0, 0))
    if numbers.ndim != 1:
        raise BadOutcome("the outcomes are not a list of numbers; give one number for each vote")
    return numbers


def check_items(items: Any) -> tuple[str, ...]:
    """The names of the items, in the given order. Raises BadProblem unless they are distinct."""
    if isinstance(items, str | bytes | set | frozenset) or not hasattr(items, "__iter__"):
        raise BadProblem(f"items is a {type(items).__name__}; give a list of item names")
    names = tuple(items)
    for name in names:
        if not isinstance(name, str) or not name:
            raise BadProblem(f"item {name!r} is not a name; the name of an item is a string that is not empty")
        if name != name.strip():
            raise BadProblem(f"item {name!r} begins or ends with a space, which vote files do not keep; remove it")
    doubled = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if doubled:
        raise BadProblem(f"items must differ; given more than once: {', '.join(doubled[:5])}")
    if "tie" in names:
        raise BadProblem("an item cannot be called 'tie', because this is the answer for a tie; rename it")
    return names


def check_pairs(items: Sequence[str], pairs: Pairs) -> tuple[int, ...]:
    """The numbers of these pairs of items, in increasing order."""
    number = {item: place for place, item in enumerate(items)}
    return tuple(sorted({number_of_pair(number, *pair) for pair in pairs}))


def number_of_pair(number: Mapping[str, int], first: str, second: str) -> int:
    """The number of this pair of items, given theirs. Raises BadProblem if it is not a pair of this study."""
    if first not in number or second not in number or first == second:
        raise BadProblem(f"({first!r}, {second!r}) is not a pair of two different items of this study")
    return pair_number(len(number), number[first], number[second])


def advise(state: loop.State, items: Sequence[str], judges: Collection[int] = ()) -> str | None:
    """A hint for the owner: a tie that never resolves, pairs that block a proof, or judges that are missing. None if
    there is nothing to say. `judges` are the numbers of those who can still be asked."""
    problem = state.problem
    if state.verdict.done:
        return None
    if isinstance(state.sampling, Sharpen):
        return _advise_without_proof(state)
    planned = planned_by(state.sampling_memory)
    if planned is None:
        return None
    if planned.plan is not None and planned.plan.blocked:
        u, v = (items[i] for i in planned.plan.blocked[0])
        return f"the allowed pairs cannot separate {u} from {v}, so nothing can be proved; allow more pairs"
    if problem.min_judges > 1 and judges and not any(_can_help(state, judge) for judge in judges):
        return _more_judges(problem.min_judges, len(judges))
    hint = Bridge().hint(planned, state.evidence)
    if hint is not None:
        u, v = (items[i] for i in hint.line)
        return (
            f"{u} and {v} look tied at the cutoff; with a tolerance of {hint.tolerance:g}"
            f"{' (which needs min_judges 1)' if problem.min_judges > 1 else ''} the study would end in about "
            f"{round(hint.votes, -2 if hint.votes > 1000 else -1):,.0f} votes"
        )
    if problem.tolerance == 0 and problem.max_votes is None and state.verdict.votes == 0:
        return "no tolerance and no vote budget are set; if two items tie at the cutoff, this study never ends"
    return None


def _can_help(state: loop.State, judge: int) -> bool:
    try:
        loop.full_pairs(state, judge)
    except NeedsJudges:
        return False
    return True


def _more_judges(needed: int, judges: int) -> str:
    given = "the one judge so far has" if judges == 1 else f"the {judges} judges so far have"
    return (
        f"another judge is needed: a proof must rest on at least {needed} judges, and {given} given all that counts. "
        "Invite another judge, or lower the number of judges that a proof needs (min_judges)"
    )


def _advise_without_proof(state: loop.State) -> str | None:
    if state.problem.max_votes is not None or state.stopping.name == "posterior":
        return None
    return (
        "the sampling rule sharpen looks for the best answer, not for a proof, so this study may never end by itself; "
        "set max_votes, or choose the sampling rule bridge or learn-then-prove"
    )


def due(state: StudyState, now: float) -> list[Event]:
    """What is to happen by now: answers settle, leases end."""
    found: list[Event] = []
    if state.archived:  # nothing happens until it is taken out of the archive
        return found
    for question in state.unsettled.values():
        if question.is_answered:
            if question.settles is None or question.settles <= now:
                found.append(Settled(question.asked.question))
        elif question.is_pending and question.asked.lease is not None and question.asked.lease < now:
            found.append(closing(state, question, EXPIRED))
    return found


def is_fresh(state: StudyState, number: int, lease: float | None, until: float | None) -> bool:
    """Whether a question is on the screen already, with a lease that began so lately that renewing it changes
    little."""
    asked = state.unsettled[number].asked
    if not asked.shown or lease is None or until is None or asked.lease is None:
        return asked.shown and asked.lease == until
    return 0 <= until - asked.lease < FRESH * lease


def closing(state: StudyState, question: Unsettled, reason: str) -> Event:
    """How a question ends that nobody answers: lost if it was shown or is on a ballot, else dropped. Measured
    differences and rules that need the order know no largest loss, so there it is skipped."""
    number, is_seen = question.asked.question, question.asked.shown or question.asked.place is not None
    return Lost(number, reason) if is_seen and state.any_order else Skipped(number, reason)


def skipping(state: StudyState, number: int, reason: str) -> Event:
    """A judge skips a question. If its answer was taken back before, or it is on a ballot, it is lost. So is what a
    run leaves without an answer when the study ends: it may go on, and slow answers may be the losing ones."""
    question = state.unsettled[number]
    is_lost = question.reopened or question.asked.place is not None or reason == ENDED
    return closing(state, question, reason) if is_lost else Skipped(number, reason)


def also_asked(state: StudyState, vote: CountedVote) -> list[Event]:
    """Close the other questions that the judge of an undone vote holds on its pair: their bets were made before the
    undo, and an answer to them would be the vote again."""
    pair = {vote.first, vote.second}
    return [
        closing(state, question, DROPPED)
        for question in state.unsettled.values()
        if question.is_pending and question.asked.judge == vote.judge
        if {question.asked.first, question.asked.second} == pair
    ]


def still_free(state: StudyState) -> int:
    """How many answers of a judge stay open to an undo when they give another, or skip."""
    return UNDO_STEPS - 1 if state.any_order else 0


def answers_of(state: StudyState, judge: str | None, keep: int = 0) -> list[Event]:
    """Settle the answers of a judge, except for the last `keep`."""
    theirs = [found for found in state.unsettled.values() if found.asked.judge == judge and found.is_answered]
    theirs.sort(key=lambda found: found.settles or 0.0)  # in the order of the answers
    return [Settled(found.asked.question) for found in theirs[: len(theirs) - keep]]


def all_answers(state: StudyState) -> list[Event]:
    """Settle every answer."""
    return [Settled(number) for number, question in state.unsettled.items() if question.is_answered]


def leaving(state: StudyState, judge: str) -> list[Event]:
    """A judge leaves: answers settle, answers taken back and the rest of a ballot are lost, and what was not shown is
    dropped. Another question on the screen keeps its lease, so that the judge may come back to it."""
    found = answers_of(state, judge)
    for question in state.unsettled.values():
        asked = question.asked
        is_over = question.reopened or not asked.shown or asked.place is not None
        if asked.judge == judge and question.is_pending and is_over:
            found.append(closing(state, question, LEFT))
    return found


def voiding(state: StudyState, votes: tuple[CountedVote, ...], judge: str) -> list[Event]:
    """A judge is voided: answers settle, all votes, which are given, are withdrawn, and nothing stays pending."""
    theirs = (question for question in state.unsettled.values() if question.asked.judge == judge)
    pending = [closing(state, question, VOIDED) for question in theirs if question.is_pending]
    return [*answers_of(state, judge), Withdrawn(votes, judge), *pending]


def useless(state: StudyState, judge: str) -> list[Event]:
    """Drop questions that were prefetched for a judge and not shown, if their pair needs no more votes. Nothing is
    taken from a ballot: the judge's own answers may be why."""
    return [
        Skipped(question.asked.question, DROPPED)
        for question in state.unsettled.values()
        if question.asked.judge == judge and question.is_pending and not question.asked.shown
        if question.asked.place is None
        if _needs_no_vote(state, question)
    ]  # fmt: skip


def _needs_no_vote(state: StudyState, question: Unsettled) -> bool:
    asked, ledger = question.asked, state.ahead.evidence.ledger
    if state.bets_nothing(asked.judge, pair_number(state.ahead.problem.n, asked.first, asked.second)):
        return True
    both = np.array([asked.first, asked.second])
    return ledger is not None and bool(ledger.is_proved(both, both[::-1]).any())


def open_ballot(
    state: StudyState, judge: str, size: int, cases: CasePool, lease: float | None, run: str | None = None
) -> list[Asked]:
    """The questions of a new ballot, in the order of their places. Raises BallotsOpen if open ballots may complete the
    proof, and NothingToAsk if they use up the vote budget or no pair may be asked."""
    if state.ballots.open and _would_end(state):
        raise BallotsOpen(len(state.ballots.open))
    closed = cases.closed_pairs(state.ahead.problem.n) if cases else frozenset[int]()
    closed |= state.ahead.problem.withdrawn_pairs
    listed = _draw(state, min(size, _votes_left(state, size)), closed)
    if not listed:
        raise NothingToAsk("no pair is left that may be asked")
    return questions_of(state, listed, Asked(0, 0, 0, 0.0, judge, None, lease, run, shown=False), cases)


def struck_out(n: int, ballot: Sequence[Asked], avoid: frozenset[int]) -> list[Skipped]:
    """The questions of a new ballot that the judge must not see, closed without effect."""
    return [Skipped(asked.question, CONFLICT) for asked in ballot if pair_number(n, asked.first, asked.second) in avoid]


def _would_end(state: StudyState) -> bool:
    """Whether all is proved, if the open ballots are left aside."""
    ahead = state.ahead
    return ahead.stopping.check(ahead.stopping_memory, ahead.problem, ahead.evidence)[1].done


def _votes_left(state: StudyState, size: int) -> int:
    budget = state.ahead.problem.max_votes
    if budget is None:
        return size
    left = budget - len(state.not_final) - round(state.ahead.evidence.tally.votes)
    if left <= 0:
        raise NothingToAsk(f"all {budget} votes of the budget are on open ballots; wait until these are closed")
    return left


def _draw(state: StudyState, size: int, closed: frozenset[int]) -> list[Listed]:
    ahead, n = state.ahead, state.ahead.problem.n
    pending = np.array([pair_number(n, asked.first, asked.second) for asked in state.not_final], np.int64)
    draws = Draws((ahead.seed, state.n_asked, DRAW))
    memory, places = planned_by(ahead.sampling_memory), state.ballots.places
    assert memory is not None, "the claim about the public is only for sampling rules that plan a proof"
    return draw_ballot(memory, ahead.evidence, pending, size, places, draws, np.array(sorted(closed), np.int64))


def questions_of(state: StudyState, listed: list[Listed], blank: Asked, cases: CasePool) -> list[Asked]:
    """The list as questions. It ends early where the cases end."""
    seed, found = state.ahead.seed, list[Asked]()
    for place, (pair, bet) in enumerate(listed):
        number, (i, j) = state.n_asked + place, pair_items(state.ahead.problem.n, pair)
        if draw_number(2, "side", seed, number):
            i, j, bet = j, i, -bet
        question = blank._replace(question=number, first=i, second=j, bet=bet, place=place)
        if cases:
            try:
                case = cases.draw(seed, number, pair)
            except CasesUsedUp:
                if not found:
                    raise
                break
            question = question._replace(case=case, pool=cases.size, drawing=cases.drawing)
        found.append(question)
    return found
