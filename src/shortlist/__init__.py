"""The best k of n items from as few noisy pairwise comparisons as possible, and how sure that is."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shortlist.arrays import certify as certify
    from shortlist.arrays import fit as fit
    from shortlist.certificates.edges import Edges as Edges
    from shortlist.certificates.glr import Glr as Glr
    from shortlist.certificates.posterior import Posterior as Posterior
    from shortlist.certificates.verdict import Verdict as Verdict
    from shortlist.errors import ShortlistError as ShortlistError
    from shortlist.families import BradleyTerry as BradleyTerry
    from shortlist.families import Gaussian as Gaussian
    from shortlist.io.instances import make_instance as make_instance
    from shortlist.io.report import Reading as Reading
    from shortlist.io.table import VoteTable as VoteTable
    from shortlist.io.table import make_table as make_table
    from shortlist.io.votes import inspect_votes as inspect_votes
    from shortlist.io.votes import read_votes as read_votes
    from shortlist.io.write import write_votes as write_votes
    from shortlist.oracle import solve_oracle as solve_oracle
    from shortlist.rules.bridge import Bridge as Bridge
    from shortlist.rules.oracle_tracking import OracleTracking as OracleTracking
    from shortlist.rules.track_and_stop import TrackAndStop as TrackAndStop
    from shortlist.rules.uniform import Uniform as Uniform
    from shortlist.simulation import simulate as simulate
    from shortlist.study.create import create_study as create_study
    from shortlist.study.create import find_top as find_top
    from shortlist.study.create import load_study as load_study
    from shortlist.study.study import Question as Question
    from shortlist.study.study import Study as Study

# Loaded on first use, so that importing the package, or asking the command for help, costs nothing.
_HOMES = {
    "BradleyTerry": "families",
    "Bridge": "rules.bridge",
    "Edges": "certificates.edges",
    "Gaussian": "families",
    "Glr": "certificates.glr",
    "OracleTracking": "rules.oracle_tracking",
    "Posterior": "certificates.posterior",
    "Question": "study.study",
    "Reading": "io.report",
    "ShortlistError": "errors",
    "Study": "study.study",
    "TrackAndStop": "rules.track_and_stop",
    "Uniform": "rules.uniform",
    "Verdict": "certificates.verdict",
    "VoteTable": "io.table",
    "certify": "arrays",
    "create_study": "study.create",
    "find_top": "study.create",
    "fit": "arrays",
    "load_study": "study.create",
    "inspect_votes": "io.votes",
    "make_instance": "io.instances",
    "make_table": "io.table",
    "read_votes": "io.votes",
    "simulate": "simulation",
    "solve_oracle": "oracle",
    "write_votes": "io.write",
}

__all__ = sorted(_HOMES)  # pyright: ignore
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'shortlist' has no attribute {name!r}")
    value = getattr(import_module(f"shortlist.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
