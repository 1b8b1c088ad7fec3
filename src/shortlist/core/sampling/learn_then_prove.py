"""The default sampling rule, in two phases: learn the answer with `sharpen`, then prove it with `bridge`.

A proof is planned from what is believed, so questions for it are wasted while the belief is wrong. The first phase
lasts while more than `doubt` pairs across the believed cutoff are expected to be in the wrong order. This is looked at
again at each new belief, so a surprise leads back to it. With a budget that a proof does not fit in, it lasts to the
end.
"""

from dataclasses import dataclass
from typing import NamedTuple

from shortlist.core.betting import SETTLED
from shortlist.core.draws import Draws
from shortlist.core.evidence import Evidence
from shortlist.core.pairs import Floats, Ints
from shortlist.core.problem import Problem, real
from shortlist.core.sampling.base import NO_PAIRS
from shortlist.core.sampling.bridge import Bridge, BridgeMemory
from shortlist.core.sampling.sharpen import Sharpen, SharpenMemory
from shortlist.errors import BadProblem

DOUBT = 0.3  # the default with `edges`
SHARPEN, BRIDGE = Sharpen(), Bridge()


class TwoPhases(NamedTuple):
    """What both rules remember, and whether the first phase lasts."""

    sharpen: SharpenMemory
    bridge: BridgeMemory
    learning: bool = True


@dataclass(frozen=True)
class LearnThenProve:
    """doubt: learn while more pairs across the believed cutoff than this are expected to be in the wrong order; by
    default 0.3, and 1 with `cuts`, whose bets begin there. proves: False never leaves the first phase; the loop sets it
    for the stopping rule `posterior`."""

    doubt: float | None = None
    proves: bool = True
    name: str = "learn-then-prove"
    wants: frozenset[str] = frozenset({"ledger"})

    def __post_init__(self) -> None:
        if self.doubt is not None and not real("doubt", self.doubt) > 0:
            raise BadProblem(f"doubt is {self.doubt}; the expected number of misordered pairs must be positive")

    def start(self, problem: Problem) -> TwoPhases:
        return TwoPhases(SHARPEN.start(problem), BRIDGE.start(problem))

    def questions(
        self, memory: TwoPhases, evidence: Evidence, pending: Ints, size: int, draws: Draws, avoid: Ints = NO_PAIRS
    ) -> tuple[Ints, Floats]:
        if memory.learning:
            return SHARPEN.questions(memory.sharpen, evidence, pending, size, draws, avoid)
        return BRIDGE.questions(memory.bridge, evidence, pending, size, draws, avoid)

    def learn(self, memory: TwoPhases, problem: Problem, evidence: Evidence, rounds: int, draws: Draws) -> TwoPhases:
        """Which phase it is, for each new belief. The plan is made in both: it says how many votes are left."""
        bridge = BRIDGE.learn(memory.bridge, problem, evidence, rounds, draws)
        if bridge is memory.bridge:
            return memory
        sharpen = SHARPEN.learn(memory.sharpen, problem, evidence, rounds, draws)
        return TwoPhases(sharpen, bridge, self._learning(problem, evidence, bridge))

    def _learning(self, problem: Problem, evidence: Evidence, bridge: BridgeMemory) -> bool:
        ledger = evidence.kept_ledger
        if not self.proves or bridge.votes_left is None:  # no proof is wanted, or none is possible
            return True
        if problem.max_votes is not None and ledger.votes + bridge.votes_left > problem.max_votes:
            return True
        default = DOUBT if ledger.marker is None else SETTLED
        return ledger.misordered() > (default if self.doubt is None else self.doubt)

    def votes_left(self, memory: TwoPhases, evidence: Evidence) -> float | None:
        return BRIDGE.votes_left(memory.bridge, evidence)
