"""Ways of asking that know the true utilities: what learning costs is measured against them.

`Oracle` tracks w*, computed offline. `OnlineOracle` is Algorithm 1 playing the game at the true theta.
Paper: Section 7.
"""

from dataclasses import dataclass, field

from shortlist.dice import Dice
from shortlist.facts import Facts
from shortlist.pairs import Floats, Ints
from shortlist.problem import Problem
from shortlist.rules.oracle_tracking import Memory, OracleTracking
from shortlist.tracking import deficits, hand_out


@dataclass(frozen=True)
class Oracle:
    """Track the optimal allocation w_star of the true utilities."""

    w_star: Floats
    name: str = "oracle"
    wants: frozenset[str] = frozenset()

    def start(self, problem: Problem) -> None:
        return None

    def questions(self, memory: None, facts: Facts, out: Ints, size: int, dice: Dice) -> tuple[Ints, Floats]:
        asked = facts.tally.votes + len(out) + size
        return hand_out(deficits(asked * self.w_star, facts.tally, out), size)

    def learn(self, memory: None, problem: Problem, facts: Facts, rounds: int, dice: Dice) -> None:
        return None

    def votes_left(self, memory: None, facts: Facts) -> None:
        return None


@dataclass(frozen=True)
class OnlineOracle:
    """Algorithm 1 with theta in place of its estimate."""

    theta: Floats
    inner: OracleTracking = field(default_factory=OracleTracking)
    name: str = "online-oracle"
    wants: frozenset[str] = frozenset()

    def start(self, problem: Problem) -> Memory:
        return self.inner.start(problem)

    def questions(self, memory: Memory, facts: Facts, out: Ints, size: int, dice: Dice) -> tuple[Ints, Floats]:
        return self.inner.questions(memory, facts, out, size, dice)

    def learn(self, memory: Memory, problem: Problem, facts: Facts, rounds: int, dice: Dice) -> Memory:
        return self.inner.learn(memory, problem, facts._replace(mle=self.theta), rounds, dice)

    def votes_left(self, memory: Memory, facts: Facts) -> None:
        return None
