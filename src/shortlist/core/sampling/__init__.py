"""Sampling rules: which pair to ask next. One file each. Stopping rules decide when to stop."""

from collections.abc import Callable

from shortlist.core.sampling.base import SamplingRule
from shortlist.core.sampling.bridge import Bridge
from shortlist.core.sampling.oracle_tracking import OracleTracking
from shortlist.core.sampling.track_and_stop import TrackAndStop
from shortlist.core.sampling.uniform import Uniform

PAPERS = ("oracle-tracking", "track-and-stop", "oracle", "online-oracle", "uniform")
SAMPLING_RULES: dict[str, Callable[[], SamplingRule]] = {
    "bridge": Bridge,
    "oracle-tracking": OracleTracking,
    "track-and-stop": TrackAndStop,
    "uniform": Uniform,
}


def default_stopping(sampling: SamplingRule | str) -> str:
    """The name of the default stopping rule for a sampling rule."""
    return "glr" if getattr(sampling, "name", sampling) in PAPERS else "edges"
