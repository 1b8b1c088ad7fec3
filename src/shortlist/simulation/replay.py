"""Replay a vote file: how many votes a method would have needed if it could draw from these votes without limit.

Recorded votes are drawn with replacement, so the same vote counts many times. That is a fair way to compare methods and
to plan a study, but it says nothing about the items beyond the file: a replay is a simulation, never a proof.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shortlist.core.pairs import Floats
from shortlist.core.sampling.base import SamplingRule
from shortlist.core.stopping.base import StoppingRule
from shortlist.simulation.run import DEFAULT_METHOD, LAZY_GROWTH, describe, play_runs, prepare
from shortlist.simulation.worlds import Recorded

SIMULATED = "simulated: how many votes a method would have needed"


@dataclass(frozen=True)
class ReplayRun:
    """The result of one run."""

    votes: int
    stopped: bool  # before the vote budget was used up
    agrees: bool  # with the top k by all recorded votes
    top: tuple[int, ...]
    seconds: float


@dataclass(frozen=True)
class Replay:
    """All runs on one file, in the order of their seeds."""

    n: int
    k: int
    delta: float
    method: str
    stopping: str
    seed: int
    growth: float
    runs: tuple[ReplayRun, ...]
    note: str = SIMULATED

    @property
    def votes(self) -> Floats:
        return np.array([run.votes for run in self.runs], dtype=np.float64)

    @property
    def mean_votes(self) -> float:
        return float(self.votes.mean())

    @property
    def standard_error(self) -> float:
        """Of the mean; 0 for a single run."""
        return float(self.votes.std(ddof=1) / np.sqrt(len(self.runs))) if len(self.runs) > 1 else 0.0


def replay(
    recorded: Recorded,
    method: str | SamplingRule = DEFAULT_METHOD,
    runs: int = 20,
    seed: int = 1,
    *,
    delta: float = 0.05,
    stopping: str | StoppingRule | None = None,
    growth: float = LAZY_GROWTH,
    jobs: int = 1,
    tolerance: float = 0.0,
    max_votes: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Replay:
    """Play `runs` runs in which a question about a pair is answered by one of its recorded votes, drawn with
    replacement. Options as in `simulate`."""
    options = {"delta": delta, "stopping": stopping, "growth": growth, "tolerance": tolerance, "max_votes": max_votes}
    cell = prepare(recorded, method, **options)  # type: ignore[arg-type]  # one type for all of them
    played = play_runs(cell, runs, seed, jobs, progress)
    ended = tuple(ReplayRun(run.comparisons, run.certified, run.correct, run.top, run.seconds) for run in played)
    return Replay(recorded.n, recorded.k, delta, *describe(cell), seed, growth, ended)
