"""Where a study stands: the fold of its records. A desk is a value and `apply` is pure, so that every process that
has read the same records has the same desk, bit for bit, and would ask the same question next.

Answers may come in any order, and how long one takes must not bias the verdict. The `edges` certificate takes every
answer as it comes and counts what is still out as lost. Others need the votes in the order asked: then `settled` has
folded every question up to the oldest one still out, and it alone decides; `ahead` also has the answers that came out
of turn, and only chooses what to ask next.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from typing import Any, NamedTuple

from shortlist import loop
from shortlist.dice import draw_number
from shortlist.errors import NothingToAsk
from shortlist.facts import Questions
from shortlist.ledger import in_parts
from shortlist.pairs import pair_items, pair_number
from shortlist.study.records import (
    VOIDED,
    Asked,
    Cast,
    Imported,
    Late,
    Paused,
    Record,
    Skipped,
    TakenBack,
    TakenOver,
    Told,
)
from shortlist.tally import Block, Vote
from shortlist.threads import one_thread


class Turn(NamedTuple):
    """A question that is not settled yet, with its answer if it has one."""

    asked: Asked
    outcome: float | None = None
    closed: bool = False


class Desk(NamedTuple):
    """`turns` are the questions that are out and, where the order matters, all younger ones."""

    settled: loop.State
    ahead: loop.State
    turns: dict[int, Turn]
    n_asked: int = 0
    skipped: tuple[int, ...] = ()  # pairs, which count as asked
    voided: frozenset[str] = frozenset()
    paused: bool = False

    @property
    def any_order(self) -> bool:
        return self.ahead.certificate.any_order(self.ahead.problem)

    @property
    def out(self) -> list[Asked]:
        """Questions that wait for an answer, oldest first."""
        return [turn.asked for turn in self.turns.values() if not turn.closed]


def empty_desk(state: loop.State) -> Desk:
    return Desk(state, state, {})


def next_question(
    desk: Desk, judge: str | None, avoid: frozenset[int], lease: float | None, pair: int | None = None
) -> Asked:
    """The question to put out now, about the pair if one is given; raises NothingToAsk when the vote budget is all
    asked for."""
    state, problem, out = desk.ahead, desk.ahead.problem, desk.out
    if problem.max_votes is not None and len(out) + round(state.tally.votes) >= problem.max_votes:
        raise NothingToAsk(f"all {problem.max_votes} votes of the budget are asked for; answer or skip what is out")
    waiting = [pair_number(problem.n, asked.first, asked.second) for asked in out]
    i, j = pair_items(problem.n, loop.ask(state, [*waiting, *desk.skipped], avoid) if pair is None else pair)
    if draw_number(2, "side", state.seed, desk.n_asked):
        i, j = j, i
    return Asked(desk.n_asked, i, j, loop.bet(state, i, j), judge, None, lease)


def apply_all(desk: Desk, records: Iterable[Record]) -> Desk:
    for record in records:
        desk = apply(record, desk)
    return desk


def apply(record: Record, desk: Desk) -> Desk:
    """The desk after one more record."""
    return FOLDS[type(record)](record, desk)


def _asked(record: Asked, desk: Desk) -> Desk:
    return desk._replace(turns={**desk.turns, record.question: Turn(record)}, n_asked=record.question + 1)


def _taken_over(record: TakenOver, desk: Desk) -> Desk:
    turn = desk.turns[record.question]
    return desk._replace(
        turns={**desk.turns, record.question: turn._replace(asked=turn.asked._replace(run=record.run))}
    )


def _told(record: Told, desk: Desk) -> Desk:
    return _close(desk, Turn(desk.turns[record.question].asked, record.outcome, True))


def _skipped(record: Skipped, desk: Desk) -> Desk:
    asked = desk.turns[record.question].asked
    if record.reason == VOIDED and desk.any_order:
        desk = _lose(desk, asked)
    closed = _close(desk, Turn(asked, None, True))
    return closed._replace(skipped=(*desk.skipped, pair_number(desk.ahead.problem.n, asked.first, asked.second)))


def _lose(desk: Desk, asked: Asked) -> Desk:
    """A question that is given up counts as lost for good where its answer might have come, had it been another."""
    state = loop.lose(desk.ahead, [Vote(asked.first, asked.second, 0.0, asked.bet)])
    return desk._replace(settled=state, ahead=state)


def _late(record: Late, desk: Desk) -> Desk:
    return desk


def _taken_back(record: TakenBack, desk: Desk) -> Desk:
    if record.judge is not None:
        desk = desk._replace(voided=desk.voided | {record.judge})
    if not record.votes:
        return desk
    with one_thread():
        state = loop.withdraw(desk.ahead, [_vote(cast) for cast in record.votes], waiting(desk))
    return desk._replace(settled=state, ahead=state)


def _imported(record: Imported, desk: Desk) -> Desk:
    state = desk.settled
    with one_thread():
        for _, _, after in _parts(record, desk):
            state = after
    return _look_ahead(desk._replace(settled=state))


def _parts(record: Imported, desk: Desk) -> Iterator[tuple[loop.State, Block, loop.State]]:
    """Imported votes as they are folded, in parts, with the states before and after each. The bets of a part stand
    before its first vote is read."""
    after = desk.settled
    for part in in_parts(record.block, after.tally.votes):
        if after.verdict.done:
            return
        before, after = after, loop.tell_block(after, part, waiting(desk))
        yield before, part, after


def imported_casts(desk: Desk, records: Sequence[Record], judge: str) -> list[Cast]:
    """The imported votes of a judge, with the bets that stood on them: these are not stored, so the study is folded
    again up to the last such vote."""
    theirs = [place for place, record in enumerate(records) if isinstance(record, Imported) and judge in record.judge]
    found: list[Cast] = []
    for place in range(theirs[-1] + 1 if theirs else 0):
        record = records[place]
        if isinstance(record, Imported) and judge in record.judge:
            found += _casts(record, desk, judge)
        desk = apply(record, desk)
    return found


def _casts(record: Imported, desk: Desk, judge: str) -> list[Cast]:
    names, found = iter(record.judge), list[Cast]()
    with one_thread():
        for before, part, _ in _parts(record, desk):
            bets = loop.bets(before, part.first, part.second).tolist()
            columns = part.first.tolist(), part.second.tolist(), part.outcome.tolist(), bets
            rows = zip(*columns, islice(names, len(bets)), strict=True)
            found += [Cast(None, *row) for *row, name in rows if name == judge]
    return found


def _paused(record: Paused, desk: Desk) -> Desk:
    return desk._replace(paused=record.paused)


def waiting(desk: Desk) -> Questions | None:
    """What is out, for a certificate that counts it as lost."""
    if not desk.any_order:
        return None
    return loop.questions_out([_turn_vote(turn) for turn in desk.turns.values()])


def _close(desk: Desk, turn: Turn) -> Desk:
    if desk.any_order:
        return _close_now(desk, turn)
    desk = desk._replace(turns={**desk.turns, turn.asked.question: turn})
    state, turns = desk.settled, list(desk.turns.values())
    with one_thread():
        while turns and turns[0].closed:
            first = turns.pop(0)
            state = state if first.outcome is None else loop.tell(state, _turn_vote(first))
    left = {later.asked.question: later for later in turns}
    return _look_ahead(desk._replace(settled=state, turns=left))


def _close_now(desk: Desk, turn: Turn) -> Desk:
    desk = desk._replace(turns={key: other for key, other in desk.turns.items() if key != turn.asked.question})
    out = waiting(desk)
    with nullcontext() if desk.ahead.facts.mle is None else one_thread():
        state = loop.check(desk.ahead, out) if turn.outcome is None else loop.tell(desk.ahead, _turn_vote(turn), out)
    return desk._replace(settled=state, ahead=state)


def _look_ahead(desk: Desk) -> Desk:
    """With the answers that came out of turn, for choosing questions."""
    votes = [_turn_vote(turn) for turn in desk.turns.values() if turn.outcome is not None]
    with one_thread() if votes else nullcontext():
        return desk._replace(ahead=loop.look_ahead(desk.settled, votes))


def _turn_vote(turn: Turn) -> Vote:
    return Vote(turn.asked.first, turn.asked.second, turn.outcome or 0.0, turn.asked.bet)


def _vote(cast: Cast) -> Vote:
    return Vote(cast.first, cast.second, cast.outcome, cast.bet)


FOLDS: dict[type[Any], Callable[[Any, Desk], Desk]] = {
    Asked: _asked, TakenOver: _taken_over, Told: _told, Skipped: _skipped, Late: _late,
    TakenBack: _taken_back, Imported: _imported, Paused: _paused,
}  # fmt: skip
