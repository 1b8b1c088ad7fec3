"""Many votes at once, with the state that one after the other gives, bit for bit.

At most votes only sums change: the tally, the accounts, the evidence against items. What else can happen is a new
belief with a new plan, a report, a mark, or a proof, and when it may happen is known from the sums. A stretch of votes
ends before such a vote.
"""

import math
from dataclasses import replace

import numpy as np

from shortlist.core import loop
from shortlist.core.betting import AHEAD, BEHIND, PROVED_AHEAD, PROVED_BEHIND, REFRESH, Additions, Ledger, add_each
from shortlist.core.evidence import Evidence
from shortlist.core.families import Family
from shortlist.core.loop import State
from shortlist.core.pairs import Flags, pair_numbers
from shortlist.core.sampling.bridge import Bridge
from shortlist.core.sampling.learn_then_prove import LearnThenProve
from shortlist.core.sampling.sharpen import Sharpen
from shortlist.core.sampling.uniform import Uniform
from shortlist.core.stopping.edges import REPORT, Edges, EdgesMemory, is_enough
from shortlist.core.tally import Block, Tally, evolve

LEARN_FROM_BELIEFS = (Bridge, Sharpen, LearnThenProve, Uniform)  # these learn nothing while the belief is the same


def room(state: State) -> int:
    """How many votes can come before a new belief, a report or the end of the budget is due."""
    memory, ledger, problem = state.stopping_memory, state.evidence.ledger, state.problem
    is_plain = isinstance(state.stopping, Edges) and type(state.sampling) in LEARN_FROM_BELIEFS
    if not (is_plain and isinstance(memory, EdgesMemory)) or ledger is None or state.evidence.mle is not None:
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
    quiet = 0 if added is None else _quiet(ledger, added)
    if added is None or not quiet:
        return state, 0
    if quiet < size:
        votes = votes.part(0, quiet)
        added = add_each(ledger, votes)
        assert added is not None
    counted = _counted(tally, state.problem.family, votes)
    return loop.next_round(state, Evidence(counted, None, added.ledger), quiet, None), quiet


def _quiet(ledger: Ledger, added: Additions) -> int:
    """The number of votes before the first one that may mark an account or end the study."""
    accounts, marks = added.rows[:, AHEAD : BEHIND + 1], added.rows[:, PROVED_AHEAD : PROVED_BEHIND + 1]
    eventful = np.any((accounts >= ledger.enough) > marks, axis=1)
    ends = _may_end(ledger, added)
    if ends.any() and (ledger.has_caps or is_enough(ledger.problem, _at_best(ledger, added))):
        eventful |= ends
    return int(eventful.argmax()) if eventful.any() else len(eventful)


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
