"""Fold many events at once, with the state that one after the other gives, bit for bit: for loading long studies.

At most votes only sums change: the tally, the accounts, the evidence against items. What else can happen is a new
belief with a new plan, a report, a mark, or a proof, and when it may happen is known from the sums. Questions and
answers are read as a stretch that ends before such a vote. All other events, and votes that change more, are folded one
by one (`state.apply`).
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shortlist.core import loop
from shortlist.core.betting import AHEAD, BEHIND, PROVED_AHEAD, PROVED_BEHIND, REFRESH, Additions, Ledger, add_each
from shortlist.core.evidence import Evidence
from shortlist.core.families import Family
from shortlist.core.loop import State
from shortlist.core.pairs import Flags, pair_number, pair_numbers
from shortlist.core.sampling.bridge import Bridge
from shortlist.core.sampling.learn_then_prove import LearnThenProve
from shortlist.core.sampling.sharpen import Sharpen
from shortlist.core.sampling.uniform import Uniform
from shortlist.core.stopping.base import StoppingMemory
from shortlist.core.stopping.cuts import Cuts, CutsMemory, evidence_against, is_rival
from shortlist.core.stopping.edges import REPORT, Edges, EdgesMemory, is_enough
from shortlist.core.tally import Block, Tally, evolve
from shortlist.study.claims import PairCells
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

LEARN_FROM_BELIEFS = (Bridge, Sharpen, LearnThenProve, Uniform)  # these learn nothing while the belief is the same
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


def room(state: State) -> int:
    """How many votes can come before a new belief, a report or the end of the budget is due."""
    memory, ledger, problem = state.stopping_memory, state.evidence.ledger, state.problem
    is_plain = isinstance(state.stopping, Edges | Cuts) and type(state.sampling) in LEARN_FROM_BELIEFS
    if not (is_plain and isinstance(memory, EdgesMemory | CutsMemory)) or not ledger or state.evidence.mle is not None:
        return 0
    if state.stopping.every or problem.tolerance or problem.family.is_measured or state.verdict.done:
        return 0
    limit = min((1 + REFRESH) * ledger.believed + 1 - REFRESH, (1 + REPORT) * memory.reported)
    budget = (problem.max_votes or math.inf) - round(state.evidence.tally.votes)
    votes = ledger.votes + np.arange(1.0, max(2.0, limit - ledger.votes + 2.0))
    return int(max(0.0, min(np.count_nonzero((votes < limit) & (votes > 1)), budget - 1)))


def tell_stretch(state: State, votes: Block) -> tuple[State, int]:
    """The state after the first of these votes, and how many they are: all votes at which only sums change. There is
    `room` for them."""
    ledger, tally, size = state.evidence.kept_ledger, state.evidence.tally, len(votes.first)
    numbers = pair_numbers(tally.n, votes.first, votes.second)
    added = add_each(ledger, votes) if np.isin(numbers, tally.pairs).all() else None
    quiet = 0 if added is None else _quiet(ledger, added, state.stopping_memory)
    if added is None or not quiet:
        return state, 0
    if quiet < size:
        votes = votes.part(0, quiet)
        added = add_each(ledger, votes)
        assert added is not None
    counted = _counted(tally, state.problem.family, votes)
    return loop.next_round(state, Evidence(counted, None, added.ledger), quiet, None), quiet


def _quiet(ledger: Ledger, added: Additions, memory: StoppingMemory) -> int:
    """The number of votes before the first one that may mark an account or end the study. `cuts` marks nothing until
    there is a new belief, and does not end while a set that it knows keeps the answer from being proved."""
    accounts, marks = added.rows[:, AHEAD : BEHIND + 1], added.rows[:, PROVED_AHEAD : PROVED_BEHIND + 1]
    eventful = np.any((accounts >= ledger.enough) > marks, axis=1) & (ledger.marker is None)
    ends = _may_end(ledger, added)
    if ends.any() and _may_be_proved(_at_best(ledger, added), memory):
        eventful |= ends
    return int(eventful.argmax()) if eventful.any() else len(eventful)


def _may_be_proved(best: Ledger, memory: StoppingMemory) -> bool:
    """Whether votes may prove an answer: not if the best that each account had at any of them does not."""
    if isinstance(memory, CutsMemory):
        standing = memory.standing
        is_held = standing is not None and is_rival(best, standing) and evidence_against(best, standing) < best.enough
        return not is_held
    return best.has_caps or is_enough(best.problem, best)


def _at_best(ledger: Ledger, added: Additions) -> Ledger:
    """The ledger with every account as high as it ever is. What this does not prove is not proved at any vote."""
    table = ledger.table.copy()
    np.maximum.at(table, added.slots, added.rows)
    return replace(ledger, table=table)


def _may_end(ledger: Ledger, added: Additions) -> Flags:
    """The votes after which `edges.may_be_enough` may hold: all but k items have enough evidence against them."""
    n, size = ledger.problem.n, len(added.items)
    is_full, is_proved = ledger.inflow >= ledger.enough, np.zeros(n, dtype=np.bool_)
    is_proved[ledger.proved.target] = True
    number = np.full(size, np.count_nonzero(is_full | is_proved))
    full_now = added.inflow >= ledger.enough
    touched = np.unique(added.items[full_now != is_full[added.items]])
    for item in touched[~is_proved[touched]].tolist():
        here, side = (added.items == item).nonzero()
        since = np.searchsorted(here, np.arange(size), side="right")
        number += np.append(is_full[item], full_now[here, side])[since].astype(np.int64) - is_full[item]
    return number >= n - ledger.k


def _counted(tally: Tally, family: Family, votes: Block) -> Tally:
    """The tally with these votes, added one after the other. All pairs are in it; a pair that was only lost is not."""
    is_turned = votes.first > votes.second
    slots = tally.pairs.searchsorted(pair_numbers(tally.n, votes.first, votes.second))
    counts, sums = tally.counts.copy(), tally.sums.copy()
    np.add.at(counts, slots, 1.0)
    np.add.at(sums, slots, family.statistic(np.where(is_turned, family.flip(votes.outcome), votes.outcome)))
    return evolve(tally, counts=counts, sums=sums, votes=tally.votes + len(slots))


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
    most = room(state.ahead)
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
        return tell_stretch(self._state.ahead, Block(first, second, outcomes, ones, bets, weights, judges))

    def after(self, told: State) -> StudyState:
        """The state after these events, with this evidence."""
        judges = self._state.judges.union(asked.judge for asked in self._voted)
        return self._state._replace(
            settled=told, ahead=told, unsettled=self._unsettled, n_asked=self._n_asked, pools=self._pools,
            numbers=self._numbers, judges=judges,
        )  # fmt: skip
