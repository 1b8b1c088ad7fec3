"""The state of a study: the fold of its events. A state is a value and `apply` is pure, so every process that has read
the same events has the same state, bit for bit, and would ask the same question next.

Answers may come in any order, and how long one takes must not bias the verdict. The `edges` stopping rule takes every
answer as it comes and counts a pending question as lost by both items. Other stopping rules need the votes in the order
asked: then `settled` has folded every question up to the oldest pending one, and it alone decides; `ahead` also has the
answers that came early, and only chooses what to ask next. An answer that is not settled counts as pending everywhere.

A verdict ends the fold of votes: later answers are stored and do not change it. If the owner then changes the vote
budget or delta, the study goes on from the state before the end, and every event since then is folded again.

The state also keeps how the error bound fell: one series for the terminal, the page and the report.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from shortlist.core import loop, revisions
from shortlist.core.betting import in_parts
from shortlist.core.draws import draw_number
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import pair_items, pair_number
from shortlist.core.problem import Problem
from shortlist.core.stopping.base import StoppingRule
from shortlist.core.tally import Block, Vote, as_block
from shortlist.errors import NeedsJudges, NothingToAsk, StudyArchived, StudyDone, StudyPaused, VoidJudge
from shortlist.study.claims import NO_CASES, AnswerTable, Ballots, CasePool, Facts, Pools
from shortlist.study.events import (
    Archived,
    Asked,
    Changed,
    Configured,
    Corrected,
    CountedVote,
    Event,
    Imported,
    JudgeSetup,
    Late,
    Lost,
    Materials,
    Paused,
    Reopened,
    Settled,
    Setups,
    Shown,
    Skipped,
    TakenOver,
    TextShown,
    Told,
    Withdrawn,
)

GROWTH = 1.05
MOST_FITS = 500  # constrained fits that one point of a glr study may cost


class BoundPoint(NamedTuple):
    """The error bound after `votes` votes, about how many more votes were needed then, and the share of the proof that
    was filled: the average over all items that are left of what `loop.filled` says."""

    votes: int
    error_bound: float
    votes_left: float | None
    filled: float = 0.0


BoundHistory = tuple[BoundPoint, ...]
START: BoundHistory = (BoundPoint(0, 1.0, None),)


class Unsettled(NamedTuple):
    """A question that is not settled yet, with its answer if it has one."""

    asked: Asked  # with the run, the lease and `shown` as of now
    outcome: float | None = None
    closed: bool = False
    settles: float | None = None  # when its answer becomes final, if it is not closed
    reopened: bool = False  # its answer was taken back once

    @property
    def is_pending(self) -> bool:
        """Whether it waits for an answer."""
        return self.outcome is None and not self.closed

    @property
    def is_answered(self) -> bool:
        """Whether it has an answer that the judge may still take back."""
        return self.outcome is not None and not self.closed


class StudyState(NamedTuple):
    """`unsettled` are the pending questions and, where the order matters, all younger ones."""

    settled: loop.State
    ahead: loop.State
    unsettled: dict[int, Unsettled]
    n_asked: int = 0
    skipped: tuple[int, ...] = ()  # pairs, which count as asked
    voided: frozenset[str] = frozenset()
    paused: bool = False
    bound_history: BoundHistory = START
    setups: Setups = Setups()
    pools: Pools = Pools()
    spent: tuple[tuple[str | None, int], ...] = ()  # judges and pairs on which they bet nothing any more
    judges: frozenset[str | None] = frozenset()  # whose votes the verdict rests on; None has no name
    ballots: Ballots = Ballots()
    numbers: dict[str | None, int] = {}  # noqa: RUF012 - of judges, if proofs need several; never changed in place
    ended: "Ended | None" = None
    table: AnswerTable = AnswerTable()
    archived: bool = False

    @property
    def any_order(self) -> bool:
        return self.ahead.stopping.any_order(self.ahead.problem)

    @property
    def pending(self) -> list[Asked]:
        """Questions without an answer, oldest first."""
        return [question.asked for question in self.unsettled.values() if question.is_pending]

    @property
    def not_final(self) -> list[Asked]:
        """Questions that are pending, or whose answer is not settled."""
        return [question.asked for question in self.unsettled.values() if not question.closed]

    @property
    def facts(self) -> Facts:
        """Which items are ahead of which by known answers alone."""
        problem = self.ahead.problem
        return frozenset() if problem.withdrawn else _known(self, problem)

    def is_pending(self, question: int) -> bool:
        found = self.unsettled.get(question)
        return found is not None and found.is_pending

    def bets_nothing(self, judge: str | None, pair: int) -> bool:
        """Whether votes of this judge on this pair have bet 0, because one that counted was undone. Votes without a
        judge's name are one judge."""
        return (judge, pair) in self.spent

    def numbered(self, judges: Iterable[str | None]) -> "StudyState":
        """With a number for each judge, in the order in which they first appear. Only a study whose proofs need several
        judges knows its judges by number."""
        if self.ahead.evidence.ledger is None or self.ahead.evidence.ledger.by_judge is None:
            return self
        new = [judge for judge in dict.fromkeys(judges) if judge not in self.numbers]
        if not new:
            return self
        return self._replace(numbers={**self.numbers, **{judge: len(self.numbers) + i for i, judge in enumerate(new)}})


class Ended(NamedTuple):
    """How a study ended: the state before its verdict, and all events from then on."""

    before: StudyState
    events: tuple[Event, ...]


def empty_state(start: loop.State) -> StudyState:
    return StudyState(start, start, {})


def check_open(state: StudyState, judge: str | None, study: str) -> None:
    """Raise StudyArchived, VoidJudge, StudyDone or StudyPaused if this judge is asked nothing more."""
    if state.archived:
        raise StudyArchived(study)
    if judge in state.voided:
        raise VoidJudge(str(judge))
    if state.settled.verdict.done:
        raise StudyDone(str(state.settled.verdict.reason))
    if state.paused:
        raise StudyPaused(study)


def next_question(
    state: StudyState, judge: str | None, avoid: frozenset[int], pair: int | None = None, cases: CasePool = NO_CASES,
    lease: float | None = None, run: str | None = None, shown: bool = True, cells: int = 0,
) -> Asked:  # fmt: skip
    """The question to ask now, about the pair if one is given. Raises NothingToAsk when pending questions use up the
    vote budget, or no case is left."""
    ahead, problem, pending = state.ahead, state.ahead.problem, state.not_final
    if problem.max_votes is not None and len(pending) + round(ahead.evidence.tally.votes) >= problem.max_votes:
        raise NothingToAsk(
            f"all {problem.max_votes} votes of the budget are asked for; answer or skip the pending questions"
        )
    asked = [pair_number(problem.n, question.first, question.second) for question in pending]
    if pair is None:
        pair = _useful_pair(state, judge, [*asked, *state.skipped], avoid, cases)
    i, j = pair_items(problem.n, pair)
    if draw_number(2, "side", ahead.seed, state.n_asked):
        i, j = j, i
    bet, weight = (0.0, 0.0) if state.bets_nothing(judge, pair) else (loop.bet(ahead, i, j), 1.0)
    question = Asked(state.n_asked, i, j, bet, judge, None, lease, run, shown=shown, weight=weight)
    if not cases:
        return question
    case = cases.draw(ahead.seed, state.n_asked, pair)
    is_table = cells > 0 and cases.drawing == "replaced"
    return question._replace(case=case, pool=cases.size, drawing=cases.drawing, cells=cells if is_table else 0)


def _useful_pair(
    state: StudyState, judge: str | None, asked: Sequence[int], avoid: frozenset[int], cases: CasePool
) -> int:
    """The pair to ask about: none without a case that is left, and none on which this judge bets nothing, because such
    a vote proves nothing."""
    closed = cases.closed_pairs(state.ahead.problem.n) if cases else frozenset[int]()
    spent = frozenset(pair for who, pair in state.spent if who == judge) if state.spent else frozenset[int]()
    try:
        return loop.ask(state.ahead, asked, avoid | closed | spent, state.numbers.get(judge))
    except NeedsJudges:
        raise
    except NothingToAsk:
        if closed:
            raise cases.used_up() from None
        if spent:
            raise NothingToAsk(
                "after an undo, more votes of this judge on this pair prove nothing, and no other pair is left for "
                "them; ask another judge"
            ) from None
        raise


def apply_all(state: StudyState, events: Iterable[Event]) -> StudyState:
    for event in events:
        state = apply(event, state)
    return state


def apply(event: Event, state: StudyState) -> StudyState:
    """The state after one more event."""
    if isinstance(event, Changed):
        return _changed(event, state)
    after, ended = FOLDS[type(event)](event, state), state.ended
    if ended is not None:
        return after._replace(ended=Ended(ended.before, (*ended.events, event)))
    return after._replace(ended=Ended(state, (event,))) if after.settled.verdict.done else after


def _changed(event: Changed, state: StudyState) -> StudyState:
    """With other settings. If the study has ended, it goes on from before the end, with all events since."""
    back = goes_back(event, state)
    if back is None or state.ended is None:
        return _under(state, _with_settings(event, state))
    return apply_all(back, state.ended.events)


def goes_back(event: Changed, state: StudyState) -> StudyState | None:
    """The state before the end of the study, with other settings, if the study goes on from there: another vote budget
    or fewer judges do not reopen a proof."""
    problem = _with_settings(event, state)
    is_proof = state.settled.verdict.reason == "certified" and not revisions.is_harder(problem, state.settled.problem)
    return None if state.ended is None or is_proof else _under(state.ended.before, problem)


def _with_settings(event: Changed, state: StudyState) -> Problem:
    old = state.settled.problem
    gone = tuple(event.settings.get("withdrawn", old.withdrawn))  # a list if it was read from JSON
    problem = replace(old, **{**event.settings, "withdrawn": gone})
    if problem.delta != old.delta and (state.n_asked or state.bound_history != START):
        return replace(problem, largest_delta=old.accepted_delta)
    return problem


def _under(state: StudyState, problem: Problem) -> StudyState:
    """The state with these settings, which may end the study."""
    state, pending = _with_facts(state, problem), pending_votes(state)
    with one_thread():
        settled = revisions.change(state.settled, problem, pending)
        history = _extended(state.bound_history, settled, pending)
    changed = _look_ahead(state._replace(settled=settled, bound_history=history))
    is_end = settled.verdict.done and state.ended is None
    return changed._replace(ended=Ended(state, ())) if is_end else changed


def _asked(event: Asked, state: StudyState) -> StudyState:
    unsettled = {**state.unsettled, event.question: Unsettled(event)}
    pools = state.pools if event.drawing is None else state.pools.after(event.drawing, event.pool)
    ballots = state.ballots if event.place is None else state.ballots.listing(str(event.judge))
    state = state.numbered([event.judge])
    return state._replace(unsettled=unsettled, n_asked=event.question + 1, pools=pools, ballots=ballots)


def _taken_over(event: TakenOver, state: StudyState) -> StudyState:
    question = state.unsettled[event.question]
    taken = question._replace(asked=question.asked._replace(run=event.run))
    return state._replace(unsettled={**state.unsettled, event.question: taken})


def _shown(event: Shown, state: StudyState) -> StudyState:
    judge, unsettled = state.unsettled[event.question].asked.judge, dict(state.unsettled)
    for number, question in state.unsettled.items():
        asked = question.asked
        if number == event.question:
            unsettled[number] = question._replace(asked=asked._replace(lease=event.lease, shown=True))
        elif judge is not None and asked.judge == judge and asked.lease is not None:
            lease = None if event.lease is None else max(asked.lease, event.lease)
            unsettled[number] = question._replace(asked=asked._replace(lease=lease))
    return state._replace(unsettled=unsettled)


def _told(event: Told, state: StudyState) -> StudyState:
    question = state.unsettled[event.question]
    if event.settles is None:
        state = _knowing(state, state.table.answered(question.asked, state.setups.cases, _n(state), event.outcome))
        return _close(state, Unsettled(question.asked, event.outcome, True))
    answered = question._replace(outcome=event.outcome, settles=event.settles)
    return state._replace(unsettled={**state.unsettled, event.question: answered})


def _settled(event: Settled, state: StudyState) -> StudyState:
    question = state.unsettled[event.question]
    assert question.outcome is not None
    state = _knowing(state, state.table.answered(question.asked, state.setups.cases, _n(state), question.outcome))
    return _close(state, Unsettled(question.asked, question.outcome, True))


def _reopened(event: Reopened, state: StudyState) -> StudyState:
    asked = state.unsettled[event.question].asked._replace(shown=True)  # who answered it has seen it
    pending = Unsettled(asked, reopened=True)
    return state._replace(unsettled={**state.unsettled, event.question: pending})


def _skipped(event: Skipped | Lost, state: StudyState) -> StudyState:
    asked = state.unsettled[event.question].asked
    if isinstance(event, Skipped):
        state = _knowing(state, state.table.skipped(asked, state.setups.cases, _n(state), event.reason))
    closed = _close(state, Unsettled(asked, None, True), is_struck=isinstance(event, Skipped))
    return closed._replace(skipped=(*state.skipped, pair_number(state.ahead.problem.n, asked.first, asked.second)))


def _lost(event: Lost, state: StudyState) -> StudyState:
    lost = revisions.lose(state.ahead, [_answer(state, state.unsettled[event.question])])
    return _skipped(event, state._replace(settled=lost, ahead=lost))


def _unchanged(event: Late | Corrected, state: StudyState) -> StudyState:
    return state


def _withdrawn(event: Withdrawn, state: StudyState) -> StudyState:
    if event.judge is not None:
        judges = state.judges if state.settled.verdict.done else state.judges - {event.judge}
        state = state._replace(voided=state.voided | {event.judge}, judges=judges)
    else:
        n = state.ahead.problem.n
        spent = ((vote.judge, pair_number(n, vote.first, vote.second)) for vote in event.votes)
        state = state._replace(spent=tuple(dict.fromkeys((*state.spent, *spent))))
    state = _with_facts(state)
    if not event.votes:
        return state
    pending = pending_votes(state)
    with one_thread():
        votes = [_vote(state, counted) for counted in event.votes]
        imported = [_vote(state, counted) for counted in event.votes if counted.question is None]
        left = revisions.withdraw(state.ahead, votes, pending, imported)
    return _decided(state, left, pending)


def _imported(event: Imported, state: StudyState) -> StudyState:
    if not len(event.first):
        return state
    state = state.numbered(event.judge)
    judges = np.array([state.numbers.get(judge, 0) for judge in event.judge], np.int64)
    pending, settled, votes = pending_votes(state), state.settled, event.block._replace(judges=judges)
    if not settled.verdict.done:
        state = state._replace(judges=state.judges.union(event.judge))
    with one_thread():
        if "ledger" in settled.stopping.wants:
            settled = revisions.add_import(settled, votes, np.asarray(event.share), event.is_sorted, pending)
        else:
            for begin, end in in_parts(len(event.first), settled.evidence.tally.votes):
                settled = loop.tell_block(settled, votes.part(begin, end), pending)
        history = _extended(state.bound_history, settled, pending)
    return _look_ahead(state._replace(settled=settled, bound_history=history))


def _paused(event: Paused, state: StudyState) -> StudyState:
    return state._replace(paused=event.paused)


def _archived(event: Archived, state: StudyState) -> StudyState:
    return state._replace(archived=event.archived)


def _materials(event: Materials, state: StudyState) -> StudyState:
    is_same = event.cases is None or event.cases == state.setups.cases
    changed = state._replace(setups=state.setups.with_materials(event))
    return changed if is_same else _knowing(changed, AnswerTable())  # another list is another table


def _text_shown(event: TextShown, state: StudyState) -> StudyState:
    return state._replace(setups=state.setups.with_text(event))


def _configured(event: Configured, state: StudyState) -> StudyState:
    return state._replace(setups=state.setups.with_config(event))


def _judge_setup(event: JudgeSetup, state: StudyState) -> StudyState:
    return state._replace(setups=state.setups.with_judge(event))


def pending_votes(state: StudyState) -> Block | None:
    """The pending questions, for a stopping rule that counts them as lost. Their outcomes mean nothing."""
    if not state.unsettled or not state.any_order:
        return None
    return as_block([_answer(state, question) for question in state.unsettled.values()])


def _n(state: StudyState) -> int:
    return state.ahead.problem.n


def _knowing(state: StudyState, table: AnswerTable) -> StudyState:
    """With the answers that are known, before the vote or skip that made them known is counted."""
    return state if table is state.table else _with_facts(state._replace(table=table))


def _with_facts(state: StudyState, problem: Problem | None = None) -> StudyState:
    """With what the known answers of enough judges decide, and all other items ahead of those that are withdrawn in
    this problem. A tolerance allows other answers than the best, so there they decide nothing."""
    problem = problem or state.ahead.problem
    if not state.any_order or problem.tolerance or state.settled.verdict.done:
        return state
    facts = _left_ahead(problem) if problem.withdrawn else _known(state, problem)
    with one_thread():
        known = revisions.know(state.ahead, facts)
    return state if known is state.ahead else state._replace(settled=known, ahead=known)


def _known(state: StudyState, problem: Problem) -> Facts:
    return state.table.facts(problem.n, problem.min_judges, state.spent, state.voided)


def _left_ahead(problem: Problem) -> Facts:
    """Every item that is left is ahead of every one that was withdrawn."""
    left = set(range(problem.n)) - set(problem.withdrawn)
    return frozenset((item, gone) for item in left for gone in problem.withdrawn)


def _close(state: StudyState, closed: Unsettled, is_struck: bool = False) -> StudyState:
    """With a question that was answered or skipped; on a ballot only what is struck out is skipped."""
    judge, place, is_answered = closed.asked.judge, closed.asked.place, closed.outcome is not None
    if is_answered and judge not in state.judges and not state.settled.verdict.done:
        state = state._replace(judges=state.judges | {judge})
    if place is not None:
        state = state._replace(ballots=state.ballots.closing(str(judge), place, is_answered, is_struck))
    if not state.any_order:
        return _close_in_order(state, closed)
    left = {number: other for number, other in state.unsettled.items() if number != closed.asked.question}
    state = state._replace(unsettled=left)
    pending = as_block([_answer(state, question) for question in left.values()]) if left else None
    with nullcontext() if state.ahead.evidence.mle is None else one_thread():
        if closed.outcome is None:
            return _decided(state, revisions.recheck(state.ahead, pending), pending)
        return _decided(state, loop.tell(state.ahead, _answer(state, closed), pending), pending)


def _close_in_order(state: StudyState, closed: Unsettled) -> StudyState:
    unsettled = {**state.unsettled, closed.asked.question: closed}
    settled, waiting = state.settled, list(unsettled.values())
    with one_thread():
        while waiting and waiting[0].closed:
            first = waiting.pop(0)
            settled = settled if first.outcome is None else loop.tell(settled, _answer(state, first))
    left = {later.asked.question: later for later in waiting}
    history = _extended(state.bound_history, settled, None)
    return _look_ahead(state._replace(settled=settled, unsettled=left, bound_history=history))


def _decided(state: StudyState, decided: loop.State, pending: Block | None) -> StudyState:
    """With a loop state that has every answer so far."""
    history = state.bound_history
    if decided.verdict is not state.settled.verdict:
        history = _extended(history, decided, pending)
    return state._replace(settled=decided, ahead=decided, bound_history=history)


def _extended(history: BoundHistory, state: loop.State, pending: Block | None) -> BoundHistory:
    """The series with a point for this state, if one is due: the bound changed, or the votes grew by 5 %."""
    verdict, last = state.verdict, history[-1]
    is_reported = state.stopping.name != "glr"  # the cheap check of glr only asks whether to stop
    grown = verdict.votes >= GROWTH * last.votes and verdict.votes > last.votes
    ended = verdict.done and verdict.votes != last.votes
    if not (grown or ended or (verdict.error_bound != last.error_bound and is_reported)):
        return history
    bound = verdict.error_bound
    if not (is_reported or verdict.done):
        bound = loop.examine(state, pending).error_bound if is_recorded(state.problem, state.stopping) else 1.0
    filled = np.delete(loop.filled(state, pending), list(state.problem.withdrawn))
    return (*history, BoundPoint(verdict.votes, bound, verdict.votes_left, float(filled.mean())))


def is_recorded(problem: Problem, stopping: StoppingRule) -> bool:
    """Whether the series is kept: the error bound of a glr study with many items takes too long."""
    return stopping.name != "glr" or problem.k * (problem.n - problem.k) <= MOST_FITS


def _look_ahead(state: StudyState) -> StudyState:
    """With the answers that came early, for choosing questions."""
    closed = [question for question in state.unsettled.values() if question.closed]
    votes = [_answer(state, question) for question in closed if question.outcome is not None]
    with one_thread() if votes else nullcontext():
        return state._replace(ahead=revisions.look_ahead(state.settled, votes))


def _answer(state: StudyState, question: Unsettled) -> Vote:
    asked = question.asked
    judge = state.numbers.get(asked.judge, 0)
    return Vote(asked.first, asked.second, question.outcome or 0.0, asked.bet, asked.weight, judge)


def _vote(state: StudyState, counted: CountedVote) -> Vote:
    judge = state.numbers.get(counted.judge, 0)
    return Vote(counted.first, counted.second, counted.outcome, counted.bet, counted.weight, judge)


FOLDS: dict[type[Any], Callable[[Any, StudyState], StudyState]] = {
    Asked: _asked, Shown: _shown, TakenOver: _taken_over, Told: _told, Settled: _settled, Reopened: _reopened,
    Skipped: _skipped, Lost: _lost, Late: _unchanged, Withdrawn: _withdrawn, Imported: _imported, Paused: _paused,
    Archived: _archived, Materials: _materials, Corrected: _unchanged, TextShown: _text_shown,
    JudgeSetup: _judge_setup, Configured: _configured,
}  # fmt: skip
