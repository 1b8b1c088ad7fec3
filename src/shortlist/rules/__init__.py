"""One file per way of asking. A rule never stops a study: certificates do."""

from collections.abc import Callable

from shortlist.rules.bridge import Bridge
from shortlist.rules.oracle_tracking import OracleTracking
from shortlist.rules.rule import Rule
from shortlist.rules.track_and_stop import TrackAndStop
from shortlist.rules.uniform import Uniform

PAPERS = ("oracle-tracking", "track-and-stop", "oracle", "online-oracle", "uniform")
RULES: dict[str, Callable[[], Rule]] = {
    "bridge": Bridge,
    "oracle-tracking": OracleTracking,
    "track-and-stop": TrackAndStop,
    "uniform": Uniform,
}


def default_rule(rule: Rule | str) -> str:
    """The certificate that goes with a way of asking unless another is wanted."""
    return "glr" if getattr(rule, "name", rule) in PAPERS else "edges"
