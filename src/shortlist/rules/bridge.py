"""The default way of asking: fill the cheapest certificate that the votes so far suggest.

Each comparison of the plan is asked with a chance that grows like the square root of the votes it still needs: in
proportion to them, cheap comparisons that would correct a wrong order starve; cheapest first wastes votes whenever the
plan changes.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shortlist.belief import Belief
from shortlist.dice import Dice
from shortlist.facts import Facts
from shortlist.pairs import Floats, Ints, node_sums, pair_number
from shortlist.problem import Problem
from shortlist.rules.plan import Hint, Plan, make_plan, near_tie

POWER = 0.5  # chances grow like this power of the votes needed


class Memory(NamedTuple):
    """The plan, the belief it was made for, and what is read off it at every vote."""

    plan: Plan | None = None
    belief: Belief | None = None
    ladder: Floats = np.empty(0)  # chances of the plan's pairs, added up
    votes_left: float | None = None


@dataclass(frozen=True)
class Bridge:
    name: str = "bridge"
    wants: frozenset[str] = frozenset({"ledger"})

    def start(self, problem: Problem) -> Memory:
        return Memory()

    def questions(self, memory: Memory, facts: Facts, out: Ints, size: int, dice: Dice) -> tuple[Ints, Floats]:
        if memory.plan is None:
            memory = _remember(facts, dice)
        plan = memory.plan
        assert plan is not None
        if not len(plan.pairs):
            return np.array([pair_number(facts.tally.n, *plan.line)]), np.array([float(size)])
        if size == 1:
            ladder = _chances(plan, out).cumsum() if len(out) else memory.ladder
            slot = min(int(ladder.searchsorted(dice.share() * ladder[-1], side="right")), len(ladder) - 1)
            return plan.pairs[slot : slot + 1], np.array([1.0])
        chances = _chances(plan, out)
        counts = dice.generator().multinomial(size, chances / chances.sum())
        asked = np.flatnonzero(counts)
        order = asked[np.argsort(plan.pairs[asked])]
        return plan.pairs[order], counts[order].astype(np.float64)

    def learn(self, memory: Memory, problem: Problem, facts: Facts, rounds: int, dice: Dice) -> Memory:
        """A new plan for each new belief."""
        if memory.plan is not None and memory.belief is facts.book.belief:
            return memory
        return _remember(facts, dice)

    def hint(self, memory: Memory, facts: Facts) -> Hint | None:
        """A way out of a tie at the line, if it looks like one."""
        return None if memory.plan is None else near_tie(facts.book, memory.plan)

    def votes_left(self, memory: Memory, facts: Facts) -> float | None:
        return memory.votes_left


def _remember(facts: Facts, dice: Dice) -> Memory:
    plan = make_plan(facts.book, dice.generator())
    left = None if plan.blocked else float(plan.costs.sum()) / max(facts.book.decisive, 1e-3)
    return Memory(plan, facts.book.belief, (plan.costs**POWER).cumsum(), left)


def _chances(plan: Plan, out: Ints) -> Floats:
    if not len(out):
        return plan.costs**POWER
    order = np.argsort(plan.pairs)
    slots = np.minimum(np.searchsorted(plan.pairs[order], out), len(order) - 1)
    hits = plan.pairs[order][slots] == out
    waiting = node_sums(order[slots[hits]], np.ones(int(hits.sum())), len(order))
    left = np.maximum(plan.costs - waiting, 0.0)
    return (left if left.any() else plan.costs) ** POWER
