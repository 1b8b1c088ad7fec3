"""Every pair equally often: the yardstick."""

from dataclasses import dataclass

import numpy as np

from shortlist.pairs import Floats, Ints, n_pairs
from shortlist.problem import Problem
from shortlist.tally import Tally
from shortlist.tracking import deficits


@dataclass(frozen=True)
class Uniform:
    """Ask the pair with the fewest votes."""

    name: str = "uniform"

    def start(self, problem: Problem) -> None:
        return None

    def behind(self, memory: None, tally: Tally, out: Ints, size: int) -> Floats:
        return deficits(np.zeros(n_pairs(tally.n)), tally, out)

    def learn(self, memory: None, problem: Problem, theta_hat: Floats, rounds: int, rng: np.random.Generator) -> None:
        return None
