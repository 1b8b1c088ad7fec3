"""What a sampling rule is: a memory, how a round changes it, and the questions it wants.

Copy `uniform.py` to add one.
"""

from typing import Any, Protocol

import numpy as np

from shortlist.core.draws import Draws
from shortlist.core.evidence import Evidence
from shortlist.core.pairs import Floats, Ints
from shortlist.core.problem import Problem
from shortlist.core.tally import Tally

SamplingMemory = Any  # a rule's own value; only the rule looks inside
NO_PAIRS: Ints = np.empty(0, dtype=np.int64)


class SamplingRule(Protocol):
    """Which pair to ask next. It never stops a study."""

    @property
    def name(self) -> str: ...
    @property
    def wants(self) -> frozenset[str]:
        """Which of `mle` and `ledger` it reads."""
        ...

    def start(self, problem: Problem) -> SamplingMemory:
        """Memory before the first vote."""
        ...

    def questions(
        self, memory: SamplingMemory, evidence: Evidence, pending: Ints, size: int, draws: Draws, avoid: Ints = NO_PAIRS
    ) -> tuple[Ints, Floats]:
        """The pairs the next `size` questions go to, and how many each; `pending` are shown already. With pairs to
        `avoid`, which are never all pairs, size is 1; no pair if none of the others is worth asking."""
        ...

    def learn(
        self, memory: SamplingMemory, problem: Problem, evidence: Evidence, rounds: int, draws: Draws
    ) -> SamplingMemory:
        """Memory after `rounds` more votes (one, but for simulated blocks)."""
        ...

    def votes_left(self, memory: SamplingMemory, evidence: Evidence) -> float | None:
        """About how many votes are still needed; None if the rule cannot say."""
        ...


def deficits(w_sum: Floats, tally: Tally, pending: Ints, avoid: Ints = NO_PAIRS) -> Floats:
    """How far each pair is behind: w_sum - N, a pending question counting as a vote. A pair to avoid never is."""
    behind = w_sum.copy()
    behind[tally.pairs] -= tally.counts
    np.subtract.at(behind, pending, 1.0)
    behind[avoid] = -np.inf
    return behind


def most_behind(behind: Floats) -> int:
    """The pair to ask; ties go to the lowest pair number."""
    return int(np.argmax(behind))


def hand_out(behind: Floats, size: int) -> tuple[Ints, Floats]:
    """The pairs that `size` questions in a row would go to, each to the pair then furthest behind, and how often.

    Filling water to a level: pair p is asked once for each of behind_p, behind_p - 1, ... above the level.
    """
    if size == 1:
        return np.array([most_behind(behind)]), np.ones(1)
    low, high = float(behind.min()) - size, float(behind.max())
    for _ in range(30):
        level = 0.5 * (low + high)
        asked = np.ceil(np.maximum(behind - level, 0.0)).sum()
        low, high = (level, high) if asked > size else (low, level)
    counts = np.ceil(np.maximum(behind - high, 0.0))
    missing = size - int(counts.sum())  # pairs exactly at the level, in order of their numbers
    counts[np.argsort(-(behind - counts), kind="stable")[:missing]] += 1.0
    pairs = np.flatnonzero(counts)
    return pairs, counts[pairs]
