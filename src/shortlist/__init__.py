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
    from shortlist.judges.book import MemoryBook as MemoryBook
    from shortlist.judges.callables import CallableJudge as CallableJudge
    from shortlist.judges.cases import read_cases as read_cases
    from shortlist.judges.command import CommandJudge as CommandJudge
    from shortlist.judges.endpoint import EndpointJudge as EndpointJudge
    from shortlist.judges.judge import Asked as Asked
    from shortlist.judges.judge import Case as Case
    from shortlist.judges.judge import Reply as Reply
    from shortlist.judges.judge import Skip as Skip
    from shortlist.judges.patience import Backoff as Backoff
    from shortlist.judges.record import StudyRun as StudyRun
    from shortlist.judges.recorded import RecordedJudge as RecordedJudge
    from shortlist.judges.runner import find_top as find_top
    from shortlist.judges.runner import run_study as run_study
    from shortlist.oracle import solve_oracle as solve_oracle
    from shortlist.report.page import write_report as write_report
    from shortlist.rules.bridge import Bridge as Bridge
    from shortlist.rules.oracle_tracking import OracleTracking as OracleTracking
    from shortlist.rules.track_and_stop import TrackAndStop as TrackAndStop
    from shortlist.rules.uniform import Uniform as Uniform
    from shortlist.simulation import simulate as simulate
    from shortlist.study.create import create_study as create_study
    from shortlist.study.create import load_study as load_study
    from shortlist.study.questions import Question as Question
    from shortlist.study.study import Study as Study

# Loaded on first use, so that importing the package, or asking the command for help, costs nothing.
_HOMES = {
    "Asked": "judges.judge",
    "Backoff": "judges.patience",
    "BradleyTerry": "families",
    "Bridge": "rules.bridge",
    "CallableJudge": "judges.callables",
    "Case": "judges.judge",
    "CommandJudge": "judges.command",
    "Edges": "certificates.edges",
    "EndpointJudge": "judges.endpoint",
    "Gaussian": "families",
    "Glr": "certificates.glr",
    "MemoryBook": "judges.book",
    "OracleTracking": "rules.oracle_tracking",
    "Posterior": "certificates.posterior",
    "Question": "study.questions",
    "Reading": "io.report",
    "RecordedJudge": "judges.recorded",
    "Reply": "judges.judge",
    "ShortlistError": "errors",
    "Skip": "judges.judge",
    "Study": "study.study",
    "StudyRun": "judges.record",
    "TrackAndStop": "rules.track_and_stop",
    "Uniform": "rules.uniform",
    "Verdict": "certificates.verdict",
    "VoteTable": "io.table",
    "certify": "arrays",
    "create_study": "study.create",
    "find_top": "judges.runner",
    "fit": "arrays",
    "inspect_votes": "io.votes",
    "load_study": "study.create",
    "make_instance": "io.instances",
    "make_table": "io.table",
    "read_cases": "judges.cases",
    "read_votes": "io.votes",
    "run_study": "judges.runner",
    "simulate": "simulation",
    "solve_oracle": "oracle",
    "write_report": "report.page",
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
