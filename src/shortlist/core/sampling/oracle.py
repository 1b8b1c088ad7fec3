"""Sampling rules that know the true utilities: they show what learning costs.

`Oracle` tracks w*, computed offline. `OnlineOracle` is Algorithm 1 playing the game at the true theta.
Paper: Section 7.
"""

from dataclasses import dataclass, field

from shortlist.core.draws import Draws
from shortlist.core.evidence import Evidence
from shortlist.core.pairs import Floats, Ints
from shortlist.core.problem import Problem
from shortlist.core.sampling.base import deficits, hand_out
from shortlist.core.sampling.oracle_tracking import OracleTracking, TrackingMemory


@dataclass(frozen=True)
class Oracle:
    """Track the optimal allocation w_star of the true utilities."""

    w_star: Floats
    name: str = "oracle"
    wants: frozenset[str] = frozenset()

    def start(self, problem: Problem) -> None:
        return None

    def questions(
        self, memory: None, evidence: Evidence, pending: Ints, size: int, draws: Draws
    ) -> tuple[Ints, Floats]:
        asked = evidence.tally.votes + len(pending) + size
        return hand_out(deficits(asked * self.w_star, evidence.tally, pending), size)

    def learn(self, memory: None, problem: Problem, evidence: Evidence, rounds: int, draws: Draws) -> None:
        return None

    def votes_left(self, memory: None, evidence: Evidence) -> None:
        return None


@dataclass(frozen=True)
class OnlineOracle:
    """Algorithm 1 with theta in place of its estimate."""

    theta: Floats
    inner: OracleTracking = field(default_factory=OracleTracking)
    name: str = "online-oracle"
    wants: frozenset[str] = frozenset()

    def start(self, problem: Problem) -> TrackingMemory:
        return self.inner.start(problem)

    def questions(
        self, memory: TrackingMemory, evidence: Evidence, pending: Ints, size: int, draws: Draws
    ) -> tuple[Ints, Floats]:
        return self.inner.questions(memory, evidence, pending, size, draws)

    def learn(
        self, memory: TrackingMemory, problem: Problem, evidence: Evidence, rounds: int, draws: Draws
    ) -> TrackingMemory:
        return self.inner.learn(memory, problem, evidence._replace(mle=self.theta), rounds, draws)

    def votes_left(self, memory: TrackingMemory, evidence: Evidence) -> None:
        return None
