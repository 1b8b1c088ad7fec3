"""What a stopping rule is: a memory, a cheap check after every vote, and a full examination.

Copy `posterior.py` to add one.
"""

from typing import Any, Protocol

from shortlist.core.evidence import Evidence
from shortlist.core.problem import Problem
from shortlist.core.stopping.verdict import Verdict
from shortlist.core.tally import Block

StoppingMemory = Any  # a stopping rule's own value; only the rule looks inside


class StoppingRule(Protocol):
    """When a study ends, and what is then proved. It never chooses a question."""

    @property
    def name(self) -> str: ...
    @property
    def wants(self) -> frozenset[str]:
        """Which of `mle` and `ledger` it reads."""
        ...

    @property
    def every(self) -> float:
        """Check again when the votes grew by this share."""
        ...

    def any_order(self, problem: Problem) -> bool:
        """Whether answers count as they arrive. Otherwise they count in the order asked."""
        ...

    def start(self, problem: Problem) -> StoppingMemory:
        """Memory before the first vote."""
        ...

    def check(
        self, memory: StoppingMemory, problem: Problem, evidence: Evidence, pending: Block | None = None
    ) -> tuple[StoppingMemory, Verdict[int]]:
        """Whether to stop. Called after every vote, so it must be cheap. `pending` are questions not answered yet."""
        ...

    def examine(
        self, memory: StoppingMemory, problem: Problem, evidence: Evidence, pending: Block | None = None
    ) -> Verdict[int]:
        """The full verdict. Called when a person asks for it."""
        ...
