"""Ask every pair equally often: the reference for other sampling rules."""

from dataclasses import dataclass

import numpy as np

from shortlist.core.draws import Draws
from shortlist.core.evidence import Evidence
from shortlist.core.pairs import Floats, Ints, n_pairs
from shortlist.core.problem import Problem
from shortlist.core.sampling.base import NO_PAIRS, deficits, hand_out


@dataclass(frozen=True)
class Uniform:
    """Ask the pair with the fewest votes."""

    name: str = "uniform"
    wants: frozenset[str] = frozenset()

    def start(self, problem: Problem) -> None:
        return None

    def questions(
        self, memory: None, evidence: Evidence, pending: Ints, size: int, draws: Draws, avoid: Ints = NO_PAIRS
    ) -> tuple[Ints, Floats]:
        return hand_out(deficits(np.zeros(n_pairs(evidence.tally.n)), evidence.tally, pending, avoid), size)

    def learn(self, memory: None, problem: Problem, evidence: Evidence, rounds: int, draws: Draws) -> None:
        return None

    def votes_left(self, memory: None, evidence: Evidence) -> None:
        return None
