"""Sampling rules: which pair to ask next. One file each. Stopping rules decide when to stop."""

from collections.abc import Callable
from dataclasses import replace

from shortlist.core.problem import Problem
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


def default_stopping(sampling: SamplingRule | str, problem: Problem, judges_claim: str = "each") -> str:
    """The name of the stopping rule of a study that names none."""
    if getattr(sampling, "name", sampling) in PAPERS:
        return "glr"
    return "edges" if why_edges(sampling, problem, judges_claim) else "cuts"


def why_edges(sampling: SamplingRule | str, problem: Problem, judges_claim: str = "each") -> str:
    """Why edges is the default stopping rule and not cuts, which needs fewer votes; empty if it is cuts."""
    if judges_claim == "public":
        return "under cuts all votes of a ballot would have to weigh as one"
    if problem.tolerance:
        return "cuts proves the exact top k only, and takes no tolerance"
    if problem.min_judges > 1:
        return "cuts does not tell judges apart, so it cannot ask for several judges behind a proof"
    if problem.family.is_measured:
        return "the bets that save votes under cuts were chosen for wins, ties and grades"
    if getattr(sampling, "name", sampling) == "bridge":
        return "bridge plans for edges unless told otherwise"
    return ""


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
