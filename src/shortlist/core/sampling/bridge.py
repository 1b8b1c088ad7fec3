"""Ask for the cheapest proof that the votes so far suggest.

Each comparison of the plan is asked with a chance that grows like the square root of the votes it still needs: in
proportion to them, cheap comparisons that would correct a wrong order starve; cheapest first wastes votes whenever the
plan changes. With `cuts`, whose bets wait until the order is clear, it is in proportion.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shortlist.core.draws import Draws
from shortlist.core.evidence import Evidence
from shortlist.core.pairs import Floats, Ints, n_pairs, node_sums, pair_number
from shortlist.core.problem import Problem
from shortlist.core.sampling.base import NO_PAIRS
from shortlist.core.sampling.plan import Hint, Plan, make_plan, near_tie


class BridgeMemory(NamedTuple):
    """The plan, the number of the belief it was made for, and what is read off it at every vote."""

    plan: Plan | None = None
    belief: int | None = None
    ladder: Floats = np.empty(0)  # chances of the plan's pairs, added up
    votes_left: float | None = None


@dataclass(frozen=True)
class Bridge:
    name: str = "bridge"
    wants: frozenset[str] = frozenset({"ledger"})

    def start(self, problem: Problem) -> BridgeMemory:
        return BridgeMemory()

    def questions(
        self, memory: BridgeMemory, evidence: Evidence, pending: Ints, size: int, draws: Draws, avoid: Ints = NO_PAIRS
    ) -> tuple[Ints, Floats]:
        if memory.plan is None:
            memory = _remember(evidence, draws)
        plan = planned(memory, evidence, draws, avoid)
        if not len(plan.pairs):
            line = np.array([pair_number(evidence.tally.n, *plan.line)])
            is_useless = line[0] in avoid or evidence.kept_ledger.is_decided(*plan.line)
            return (NO_PAIRS, np.empty(0)) if is_useless else (line, np.array([float(size)]))
        if size == 1:
            is_left = len(pending) or len(avoid)
            ladder = plan.chances(votes_out(plan, pending)).cumsum() if is_left else memory.ladder
            slot = min(int(ladder.searchsorted(draws.share() * ladder[-1], side="right")), len(ladder) - 1)
            return plan.pairs[slot : slot + 1], np.array([1.0])
        chances = plan.chances(votes_out(plan, pending))
        counts = draws.generator().multinomial(size, chances / chances.sum())
        asked = np.flatnonzero(counts)
        order = asked[np.argsort(plan.pairs[asked])]
        return plan.pairs[order], counts[order].astype(np.float64)

    def learn(
        self, memory: BridgeMemory, problem: Problem, evidence: Evidence, rounds: int, draws: Draws
    ) -> BridgeMemory:
        """A new plan for each new belief."""
        assert evidence.ledger is not None  # it is wanted
        if memory.plan is not None and memory.belief == evidence.ledger.belief.number:
            return memory
        return _remember(evidence, draws)

    def hint(self, memory: BridgeMemory, evidence: Evidence) -> Hint | None:
        """A tolerance that would end a near tie at the cutoff, if there is one."""
        return None if memory.plan is None else near_tie(evidence.kept_ledger, memory.plan)

    def votes_left(self, memory: BridgeMemory, evidence: Evidence) -> float | None:
        return memory.votes_left


def planned(memory: BridgeMemory, evidence: Evidence, draws: Draws, avoid: Ints) -> Plan:
    """The plan, or the best one that does without the pairs to avoid."""
    plan = memory.plan or _remember(evidence, draws).plan
    assert plan is not None
    return _without(plan, evidence, avoid, draws) if len(avoid) else plan


def _remember(evidence: Evidence, draws: Draws) -> BridgeMemory:
    ledger = evidence.kept_ledger
    plan = make_plan(ledger, draws.generator())
    left = None if plan.blocked else float(plan.costs.sum()) / max(ledger.decisive, 1e-3)
    return BridgeMemory(plan, ledger.belief.number, plan.chances().cumsum(), left)


def _without(plan: Plan, evidence: Evidence, avoid: Ints, draws: Draws) -> Plan:
    """The plan without pairs to avoid. If nothing is left of it, the best plan that does without them."""
    is_open = ~np.isin(plan.pairs, avoid)
    if is_open.any():
        return plan.only(is_open)
    ledger = evidence.kept_ledger
    allowed = np.arange(n_pairs(ledger.problem.n)) if ledger.problem.allowed is None else ledger.problem.allowed
    return make_plan(ledger, draws.generator(), np.setdiff1d(allowed, avoid))


def votes_out(plan: Plan, pending: Ints) -> Floats:
    """How many pending questions there are on each pair of the plan."""
    if not len(plan.pairs):
        return np.empty(0)
    order = np.argsort(plan.pairs)
    slots = np.minimum(np.searchsorted(plan.pairs[order], pending), len(order) - 1)
    hits = plan.pairs[order][slots] == pending
    return node_sums(order[slots[hits]], np.ones(int(hits.sum())), len(order))
