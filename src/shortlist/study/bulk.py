"""Fold many events at once, with the state that one after the other gives, bit for bit: for loading long studies.

Questions and answers are read as a stretch while only sums change in the evidence (`core.bulk`). All other events, and
votes that change more, are folded one by one (`state.apply`).
"""

from collections.abc import Sequence

import numpy as np

from shortlist.core import bulk
from shortlist.core.loop import State
from shortlist.core.pairs import pair_number
from shortlist.core.tally import Block
from shortlist.study.answer_table import PairCells
from shortlist.study.events import (
    Archived,
    Asked,
    Configured,
    Event,
    JudgeSetup,
    Late,
    Paused,
    Reopened,
    Settled,
    Shown,
    TakenOver,
    TextShown,
    Told,
)
from shortlist.study.state import FOLDS, GROWTH, StudyState, Unsettled, apply_all

FEW = 8  # votes that are not worth a stretch
NO_VOTES = (
    Told,
    Shown,
    TakenOver,
    Reopened,
    Late,
    Paused,
    Archived,
    TextShown,
    JudgeSetup,
    Configured,
)  # until it is settled


def apply_many(state: StudyState, events: Sequence[Event]) -> StudyState:
    """The state after these events, as `apply_all` gives it."""
    place, reach = 0, FEW
    while place < len(events):
        end, most = place + 1, min(reach, _room(state))
        if most >= FEW:
            stretch = _Stretch(state, events, place, most)
            told, quiet = stretch.tell()
            reach = 2 * reach if quiet == len(stretch.places) else FEW
            if quiet < len(stretch.places):  # fold the eventful vote by itself, or all if it is the first of them
                end = stretch.places[quiet or -1] + 1
                stretch = _Stretch(state, events, place, quiet)
            state, place = stretch.after(told), stretch.end
            end = max(end, place + 1)
        state = apply_all(state, events[place:end])
        place = end
    return state


def _room(state: StudyState) -> int:
    """How many votes a stretch may have. A point of the bound history ends it too."""
    if state.ended is not None or state.settled is not state.ahead or not state.any_order:
        return 0
    votes, last = round(state.ahead.evidence.tally.votes), state.bound_history[-1]
    if state.ahead.verdict.error_bound != last.error_bound:
        return 0
    most = bulk.room(state.ahead)
    while most > 0 and votes + most >= GROWTH * last.votes and votes + most > last.votes:
        most = min(most - 1, max(int(GROWTH * last.votes), last.votes + 1) - votes)
    return most


class _Stretch:
    """The next events of a study up to a number of votes, and what they change beside the evidence."""

    def __init__(self, state: StudyState, events: Sequence[Event], place: int, most: int) -> None:
        self._state, self._unsettled = state, dict(state.unsettled)
        self._n_asked, self._pools, self._numbers = state.n_asked, state.pools, dict(state.numbers)
        self._is_numbered = state.ahead.evidence.kept_ledger.by_judge is not None
        self._voted: list[Asked] = []
        self._outcomes: list[float] = []
        self.places: list[int] = []  # of events with votes
        self.end = place
        while self.end < len(events) and len(self.places) < most and self._read(events[self.end]):
            self.end += 1

    def _read(self, event: Event) -> bool:
        """Read an event; False if it has to be folded by itself."""
        if isinstance(event, Asked):
            return self._ask(event)
        if isinstance(event, Told) and event.settles is None:
            return self._vote(event.question, event.outcome)
        if isinstance(event, Settled):
            return self._vote(event.question, self._unsettled[event.question].outcome)
        if isinstance(event, NO_VOTES):
            self._state = FOLDS[type(event)](event, self._state._replace(unsettled=self._unsettled))
            self._unsettled = dict(self._state.unsettled)
            return True
        return False

    def _ask(self, event: Asked) -> bool:
        if event.place is not None:
            return False
        self._unsettled[event.question] = Unsettled(event)
        self._n_asked = event.question + 1
        if event.drawing is not None:
            self._pools = self._pools.after(event.drawing, event.pool)
        if self._is_numbered:
            self._numbers.setdefault(event.judge, len(self._numbers))
        return True

    def _vote(self, question: int, outcome: float | None) -> bool:
        asked = self._unsettled[question].asked
        if outcome is None or asked.place is not None or not self._know(asked, outcome):
            return False
        del self._unsettled[question]
        self._voted.append(asked)
        self._outcomes.append(outcome)
        self.places.append(self.end)
        return True

    def _know(self, asked: Asked, outcome: float) -> bool:
        """Add an answer that never changes to those that are known; False if it decides something by itself."""
        before, problem = self._state.table, self._state.ahead.problem
        table = before.answered(asked, self._state.setups.cases, problem.n, outcome)
        if table is before:
            return True
        key = asked.judge, pair_number(problem.n, asked.first, asked.second)
        known = before.pairs.get(key, PairCells())
        if table.changed != before.changed or table.pairs[key].ahead != known.ahead:
            return False
        self._state = self._state._replace(table=table)
        return True

    def tell(self) -> tuple[State, int]:
        """The evidence after as many of these votes as only change sums, and how many these are."""
        if not self._voted:
            return self._state.ahead, 0
        numbers = np.array([(asked.first, asked.second, self._numbers.get(asked.judge, 0)) for asked in self._voted])
        first, second, judges = numbers.T
        bets, weights = np.array([(asked.bet, asked.weight) for asked in self._voted]).T
        outcomes, ones = np.array(self._outcomes), np.ones(len(first))
        return bulk.tell_stretch(self._state.ahead, Block(first, second, outcomes, ones, bets, weights, judges))

    def after(self, told: State) -> StudyState:
        """The state after these events, with this evidence."""
        judges = self._state.judges.union(asked.judge for asked in self._voted)
        return self._state._replace(
            settled=told, ahead=told, unsettled=self._unsettled, n_asked=self._n_asked, pools=self._pools,
            numbers=self._numbers, judges=judges,
        )  # fmt: skip
