"""One file per way of asking. A rule never stops a study: certificates do."""

from collections.abc import Callable

from shortlist.rules.oracle_tracking import OracleTracking
from shortlist.rules.rule import Rule
from shortlist.rules.uniform import Uniform

RULES: dict[str, Callable[[], Rule]] = {"oracle-tracking": OracleTracking, "uniform": Uniform}
