"""Sampling rules: which pair to ask next. One file each. Stopping rules decide when to stop."""

from collections.abc import Callable
from dataclasses import replace

from shortlist.core.sampling.base import SamplingMemory, SamplingRule
from shortlist.core.sampling.bridge import Bridge, BridgeMemory
from shortlist.core.sampling.learn_then_prove import LearnThenProve, TwoPhases
from shortlist.core.sampling.sharpen import Sharpen
from shortlist.core.sampling.tracking import OracleTracking, TrackAndStop
from shortlist.core.sampling.uniform import Uniform
from shortlist.core.stopping.base import StoppingRule

PAPERS = ("oracle-tracking", "track-and-stop", "oracle", "online-oracle", "uniform")
DEFAULT_SAMPLING = "learn-then-prove"
PLANS = ("bridge", "learn-then-prove")  # these plan a proof
ASKS_ALLOWED = ("bridge", "sharpen", "learn-then-prove")  # these can do without some pairs
SAMPLING_RULES: dict[str, Callable[[], SamplingRule]] = {
    "bridge": Bridge,
    "sharpen": Sharpen,
    "learn-then-prove": LearnThenProve,
    "oracle-tracking": OracleTracking,
    "track-and-stop": TrackAndStop,
    "uniform": Uniform,
}


def default_stopping(sampling: SamplingRule | str) -> str:
    """The name of the default stopping rule for a sampling rule."""
    return "glr" if getattr(sampling, "name", sampling) in PAPERS else "edges"


def planned_by(memory: SamplingMemory) -> BridgeMemory | None:
    """The plan of a proof, if the sampling rule with this memory makes one."""
    if isinstance(memory, TwoPhases):
        return memory.bridge
    return memory if isinstance(memory, BridgeMemory) else None


def suited(sampling: SamplingRule, stopping: StoppingRule) -> SamplingRule:
    """The sampling rule as it works under a stopping rule: `posterior` gains nothing from the direct comparisons that
    a proof needs, so under it a rule of two phases never leaves the first."""
    if isinstance(sampling, LearnThenProve) and stopping.name == "posterior":
        return replace(sampling, proves=False)
    return sampling
