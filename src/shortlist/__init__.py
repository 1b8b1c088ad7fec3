"""The best k of n items from as few noisy pairwise comparisons as possible, and how sure that is."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shortlist.core.arrays import certify as certify
    from shortlist.core.arrays import fit as fit
    from shortlist.core.families import BradleyTerry as BradleyTerry
    from shortlist.core.families import Gaussian as Gaussian
    from shortlist.core.oracle import solve_oracle as solve_oracle
    from shortlist.core.sampling.bridge import Bridge as Bridge
    from shortlist.core.sampling.learn_then_prove import LearnThenProve as LearnThenProve
    from shortlist.core.sampling.sharpen import Sharpen as Sharpen
    from shortlist.core.sampling.tracking import OracleTracking as OracleTracking
    from shortlist.core.sampling.tracking import TrackAndStop as TrackAndStop
    from shortlist.core.sampling.uniform import Uniform as Uniform
    from shortlist.core.stopping.base import Verdict as Verdict
    from shortlist.core.stopping.cuts import Cuts as Cuts
    from shortlist.core.stopping.edges import Edges as Edges
    from shortlist.core.stopping.glr import Glr as Glr
    from shortlist.core.stopping.posterior import Posterior as Posterior
    from shortlist.errors import ShortlistError as ShortlistError
    from shortlist.judges.base import Call as Call
    from shortlist.judges.base import CallableJudge as CallableJudge
    from shortlist.judges.base import Case as Case
    from shortlist.judges.base import PanelJudge as PanelJudge
    from shortlist.judges.base import RecordedJudge as RecordedJudge
    from shortlist.judges.base import Reply as Reply
    from shortlist.judges.base import Skip as Skip
    from shortlist.judges.calls import Backoff as Backoff
    from shortlist.judges.cases import read_cases as read_cases
    from shortlist.judges.command import CommandJudge as CommandJudge
    from shortlist.judges.endpoint import EndpointJudge as EndpointJudge
    from shortlist.judges.estimate import Estimate as Estimate
    from shortlist.judges.estimate import estimate_run as estimate_run
    from shortlist.judges.meter import Price as Price
    from shortlist.judges.pending import MemoryCache as MemoryCache
    from shortlist.judges.run import arun_study as arun_study
    from shortlist.judges.run import find_top as find_top
    from shortlist.judges.run import run_study as run_study
    from shortlist.judges.run_log import StudyRun as StudyRun
    from shortlist.outputs.read import Outputs as Outputs
    from shortlist.outputs.read import inspect_outputs as inspect_outputs
    from shortlist.outputs.read import read_outputs as read_outputs
    from shortlist.report.page import write_report as write_report
    from shortlist.simulation.run import simulate as simulate
    from shortlist.simulation.worlds import make_instance as make_instance
    from shortlist.study.create import create_study as create_study
    from shortlist.study.create import load_study as load_study
    from shortlist.study.proof import certify_proof as certify_proof
    from shortlist.study.proof import write_proof as write_proof
    from shortlist.study.questions import Question as Question
    from shortlist.study.study import Study as Study
    from shortlist.votes.read import Reading as Reading
    from shortlist.votes.read import inspect_votes as inspect_votes
    from shortlist.votes.read import read_votes as read_votes
    from shortlist.votes.table import VoteTable as VoteTable
    from shortlist.votes.table import make_table as make_table
    from shortlist.votes.table import write_votes as write_votes

# Loaded on first use, so that importing the package, or asking the command for help, costs nothing.
_HOMES = {
    "Backoff": "judges.calls",
    "BradleyTerry": "core.families",
    "Bridge": "core.sampling.bridge",
    "Call": "judges.base",
    "CallableJudge": "judges.base",
    "Case": "judges.base",
    "CommandJudge": "judges.command",
    "Cuts": "core.stopping.cuts",
    "Edges": "core.stopping.edges",
    "EndpointJudge": "judges.endpoint",
    "Estimate": "judges.estimate",
    "Gaussian": "core.families",
    "Glr": "core.stopping.glr",
    "LearnThenProve": "core.sampling.learn_then_prove",
    "MemoryCache": "judges.pending",
    "OracleTracking": "core.sampling.tracking",
    "Outputs": "outputs.read",
    "PanelJudge": "judges.base",
    "Posterior": "core.stopping.posterior",
    "Price": "judges.meter",
    "Question": "study.questions",
    "Reading": "votes.read",
    "RecordedJudge": "judges.base",
    "Reply": "judges.base",
    "Sharpen": "core.sampling.sharpen",
    "ShortlistError": "errors",
    "Skip": "judges.base",
    "Study": "study.study",
    "StudyRun": "judges.run_log",
    "TrackAndStop": "core.sampling.tracking",
    "Uniform": "core.sampling.uniform",
    "Verdict": "core.stopping.base",
    "VoteTable": "votes.table",
    "arun_study": "judges.run",
    "certify": "core.arrays",
    "certify_proof": "study.proof",
    "create_study": "study.create",
    "estimate_run": "judges.estimate",
    "find_top": "judges.run",
    "fit": "core.arrays",
    "inspect_outputs": "outputs.read",
    "inspect_votes": "votes.read",
    "load_study": "study.create",
    "make_instance": "simulation.worlds",
    "make_table": "votes.table",
    "read_cases": "judges.cases",
    "read_outputs": "outputs.read",
    "read_votes": "votes.read",
    "run_study": "judges.run",
    "simulate": "simulation.run",
    "solve_oracle": "core.oracle",
    "write_proof": "study.proof",
    "write_report": "report.page",
    "write_votes": "votes.table",
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
