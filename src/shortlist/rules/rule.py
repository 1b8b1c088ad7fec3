"""What a way of asking is: a memory, how a round changes it, and the questions it wants.

Copy `uniform.py` to add one.
"""

from typing import Any, Protocol

from shortlist.dice import Dice
from shortlist.facts import Facts
from shortlist.pairs import Floats, Ints
from shortlist.problem import Problem

Memory = Any  # a rule's own value; only the rule looks inside


class Rule(Protocol):
    """A way of asking."""

    @property
    def name(self) -> str: ...
    @property
    def wants(self) -> frozenset[str]:
        """Which of `mle` and `ledger` it reads."""
        ...

    def start(self, problem: Problem) -> Memory:
        """Memory before the first vote."""
        ...

    def questions(self, memory: Memory, facts: Facts, out: Ints, size: int, dice: Dice) -> tuple[Ints, Floats]:
        """The pairs the next `size` questions go to, and how many each; `out` are shown already."""
        ...

    def learn(self, memory: Memory, problem: Problem, facts: Facts, rounds: int, dice: Dice) -> Memory:
        """Memory after `rounds` more votes (one, but for simulated blocks)."""
        ...

    def votes_left(self, memory: Memory, facts: Facts) -> float | None:
        """About how many votes are still needed; None if the rule cannot say."""
        ...
