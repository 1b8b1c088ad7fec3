"""Track-and-Stop: solve the oracle game at the current estimate at intervals, and follow its allocation.

D-tracking with forced exploration. Garivier & Kaufmann (2016), Section 3.1, with pairs for arms.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shortlist.core.draws import Draws
from shortlist.core.evidence import Evidence
from shortlist.core.pairs import Floats, Ints, n_pairs
from shortlist.core.problem import Problem, real
from shortlist.core.sampling.base import NO_PAIRS, deficits, hand_out
from shortlist.errors import BadProblem, GapNotReached, TieAtCutoff

INSIDE = 1.0 - 1e-9  # rounding must not move an estimate at the boundary of Theta out of it


class TrackAndStopMemory(NamedTuple):
    """The allocation to follow, and how many votes there were when it was computed."""

    w: Floats
    solved: float


@dataclass(frozen=True)
class TrackAndStop:
    """growth: solve the game again when votes have grown by this share. gap: relative precision of the solution."""

    growth: float = 0.05
    gap: float = 0.05
    name: str = "track-and-stop"
    wants: frozenset[str] = frozenset({"mle"})

    def __post_init__(self) -> None:
        if not real("growth", self.growth) >= 0:
            raise BadProblem(f"growth is {self.growth}; the solving interval is a share of the votes, 0 or more")
        if not real("gap", self.gap) > 0:
            raise BadProblem(f"gap is {self.gap}; give a positive number, such as 0.05")

    def start(self, problem: Problem) -> TrackAndStopMemory:
        size = n_pairs(problem.n)
        return TrackAndStopMemory(np.full(size, 1 / size), 0.0)

    def questions(
        self, memory: TrackAndStopMemory, evidence: Evidence, pending: Ints, size: int, draws: Draws,
        avoid: Ints = NO_PAIRS,
    ) -> tuple[Ints, Floats]:  # fmt: skip
        """Pairs with fewer than sqrt(t) - P/2 votes first, the least asked first; then where t w - N is largest."""
        t, pairs = evidence.tally.votes + len(pending) + size - 1, len(memory.w)
        short = deficits(np.full(pairs, np.sqrt(t) - pairs / 2), evidence.tally, pending, avoid)
        forced = np.ceil(np.maximum(short, 0.0))
        left = size - int(forced.sum())
        if left <= 0:
            return hand_out(short, size)
        chosen, counts = hand_out(deficits(t * memory.w, evidence.tally, pending, avoid) - forced, left)
        forced[chosen] += counts
        asked = np.flatnonzero(forced)
        return asked, forced[asked]

    def learn(
        self, memory: TrackAndStopMemory, problem: Problem, evidence: Evidence, rounds: int, draws: Draws
    ) -> TrackAndStopMemory:
        """The oracle's allocation at the estimate, once there are as many votes as pairs; else the old one."""
        votes = evidence.tally.votes
        if votes < max(len(memory.w), (1 + self.growth) * memory.solved):
            return memory
        from shortlist.core.oracle import solve_oracle  # imports a linear-programming library

        theta, bound, start = INSIDE * evidence.theta_hat, problem.bound, memory.w if memory.solved else None
        try:
            solved = solve_oracle(theta, problem.k, problem.family, bound=bound, rel_gap=self.gap, start=start)
        except TieAtCutoff:
            return memory
        except GapNotReached:
            return TrackAndStopMemory(memory.w, votes)
        return TrackAndStopMemory(solved.weights, votes)

    def votes_left(self, memory: TrackAndStopMemory, evidence: Evidence) -> None:
        return None
