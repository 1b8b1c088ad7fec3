"""Ways of asking that know the true utilities: what learning costs is measured against them.

`Oracle` tracks w*, computed offline. `OnlineOracle` is Algorithm 1 playing the game at the true theta.
Paper: Section 7.
"""

from dataclasses import dataclass, field

import numpy as np

from shortlist.pairs import Floats, Ints
from shortlist.problem import Problem
from shortlist.rules.oracle_tracking import Memory, OracleTracking
from shortlist.tally import Tally
from shortlist.tracking import deficits


@dataclass(frozen=True)
class Oracle:
    """Track the optimal allocation w_star of the true utilities."""

    w_star: Floats
    name: str = "oracle"

    def start(self, problem: Problem) -> None:
        return None

    def behind(self, memory: None, tally: Tally, out: Ints, size: int) -> Floats:
        return deficits((tally.votes + len(out) + size) * self.w_star, tally, out)

    def learn(self, memory: None, problem: Problem, theta_hat: Floats, rounds: int, rng: np.random.Generator) -> None:
        return None


@dataclass(frozen=True)
class OnlineOracle:
    """Algorithm 1 with theta in place of its estimate."""

    theta: Floats
    inner: OracleTracking = field(default_factory=OracleTracking)
    name: str = "online-oracle"

    def start(self, problem: Problem) -> Memory:
        return self.inner.start(problem)

    def behind(self, memory: Memory, tally: Tally, out: Ints, size: int) -> Floats:
        return self.inner.behind(memory, tally, out, size)

    def learn(
        self, memory: Memory, problem: Problem, theta_hat: Floats, rounds: int, rng: np.random.Generator
    ) -> Memory:
        return self.inner.learn(memory, problem, self.theta, rounds, rng)
