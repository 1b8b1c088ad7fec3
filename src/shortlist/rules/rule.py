"""What a way of asking is: a memory, how a round changes it, and the questions it wants.

Copy `uniform.py` to add one.
"""

from typing import Any, Protocol

import numpy as np

from shortlist.pairs import Floats, Ints
from shortlist.problem import Problem
from shortlist.tally import Tally

Memory = Any  # a rule's own value; only the rule looks inside


class Rule(Protocol):
    """A way of asking."""

    @property
    def name(self) -> str: ...

    def start(self, problem: Problem) -> Memory:
        """Memory before the first vote."""
        ...

    def behind(self, memory: Memory, tally: Tally, out: Ints, size: int) -> Floats:
        """How much each pair wants one of the next `size` questions, given what is out already."""
        ...

    def learn(
        self, memory: Memory, problem: Problem, theta_hat: Floats, rounds: int, rng: np.random.Generator
    ) -> Memory:
        """Memory after `rounds` more votes (one, but for simulated blocks), theta_hat being the estimate now."""
        ...
