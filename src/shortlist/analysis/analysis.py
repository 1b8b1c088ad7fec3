"""Everything a report says about a study or a vote file, as plain numbers. Values are computed lazily."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from shortlist.analysis.audit import check_texts
from shortlist.analysis.checks import Check, Checks, run_checks
from shortlist.analysis.ranking import Allocation, Matrix, Ranking, allocate, rank_items, win_matrix
from shortlist.analysis.votes import DecisiveAnswer, VoteCounts, Votes, study_votes, table_votes
from shortlist.core import arrays
from shortlist.core.estimate import fit
from shortlist.core.families import Family, make_family
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import Flags, Floats, Ints, top_k
from shortlist.core.problem import Problem
from shortlist.core.stopping import STOPPING_RULES
from shortlist.core.stopping.base import StoppingRule, Verdict, named
from shortlist.errors import BadInput
from shortlist.simulation.run import simulate
from shortlist.simulation.worlds import Utilities
from shortlist.study.events import Head
from shortlist.study.state import BoundHistory, BoundPoint, is_recorded
from shortlist.study.storage import Spent
from shortlist.study.study import Study
from shortlist.votes.table import VoteTable

RUNS, GROWTH, SEED = 5, 0.05, 1
MOST_ITEMS = 60  # more would make a report too slow
LIMIT = 1000  # times the study's votes; a run that needs more is given up


@dataclass(frozen=True)
class Savings:
    """Votes of round-robin in each simulated run, fewest first. Empty if it was not simulated; `note` says why."""

    round_robin: tuple[int, ...]
    given_up: int  # runs that had no verdict after 1000 times the votes
    median: float | None
    saved: float | None  # share of the median that was not needed here
    note: str = ""


def simulate_round_robin(
    problem: Problem, stopping: StoppingRule, votes: Votes, items: tuple[str, ...], verdict: Verdict[str],
    chosen: float,
) -> Savings:  # fmt: skip
    """Simulate round-robin until the same verdict. `chosen` is the share of votes on questions that the study chose."""
    if verdict.reason != "certified":
        return _none("there is no proved answer yet")
    if chosen < 0.5:
        return _none("most votes were imported, so the study did not choose their pairs")
    if problem.n > MOST_ITEMS:
        return _none(f"it is not simulated for more than {MOST_ITEMS} items")
    with one_thread():
        theta = fit(problem.family, votes.tally, problem.bound)
    if {items[i] for i in top_k(theta, problem.k).tolist()} != set(verdict.top):
        return _none("the answer differs from the top items of the best-fitting ratings")
    world = Utilities(tuple(theta.tolist()), problem.k, problem.family)
    try:
        played = simulate(
            world, "uniform", RUNS, SEED, delta=problem.delta, stopping=stopping, growth=GROWTH,
            bound=min(problem.family.max_bound, 2 * problem.bound), tolerance=problem.tolerance,
            max_votes=LIMIT * verdict.votes,
        )  # fmt: skip
    except BadInput as reason:  # such as a tie at the cutoff
        return _none(str(reason))
    counts = sorted(run.comparisons for run in played.runs)
    median = float(np.median(counts))
    given_up = sum(not run.certified for run in played.runs)
    return Savings(tuple(counts), given_up, median, 1 - verdict.votes / median)


def _none(note: str) -> Savings:
    return Savings((), 0, None, None, note)


PARTS = ("ranking", "matrix", "allocation", "checks", "savings")  # the last one takes longest


@dataclass(frozen=True, eq=False)
class Analysis:
    """Made by `analyse_study` and `analyse_votes`."""

    name: str
    items: tuple[str, ...]
    problem: Problem
    sampling: str | None  # the sampling rule; None for a vote file
    stopping: StoppingRule
    verdict: Verdict[str]
    votes: Votes
    counts: VoteCounts
    paused: bool = False
    advice: str | None = None
    bound_history: BoundHistory = ()  # empty for a vote file, and where it would take too long
    claims: tuple[str, ...] = ()  # what a proof is about, one sentence each
    head: Head | None = None  # of the study's chain of events
    text_checks: tuple[Check, ...] = ()  # of what judges were shown, if that is known
    spent: Spent = Spent()  # noqa: RUF009 - a tuple
    words: tuple[DecisiveAnswer, ...] = ()  # what judges said in the votes that decided the line

    @property
    def is_study(self) -> bool:
        """Whether it is about a study and not about a vote file."""
        return self.sampling is not None

    @property
    def counts_pending(self) -> bool:
        """Whether a pending question counts as a loss for both items. Otherwise later votes wait for its answer."""
        return self.stopping.any_order(self.problem)

    @cached_property
    def ranking(self) -> Ranking:
        return rank_items(self.problem, self.items, self.votes.tally, self.verdict)

    @cached_property
    def matrix(self) -> Matrix:
        return win_matrix(self.items, self.votes, self._order)

    @cached_property
    def allocation(self) -> Allocation:
        return allocate(self.items, self.votes, self._in_top)

    @cached_property
    def checks(self) -> Checks:
        found = run_checks(self.problem, self.items, self.votes, self._theta, self._in_top)
        return replace(found, results=(*found.results, *self.text_checks))

    @cached_property
    def savings(self) -> Savings:
        chosen = 1 - self.counts.imported / max(self.votes.total, 1.0) if self.is_study else 0.0
        return simulate_round_robin(self.problem, self.stopping, self.votes, self.items, self.verdict, chosen)

    def to_dict(self, parts: Sequence[str] = PARTS) -> dict[str, Any]:
        """Everything, or these parts, as plain values for JSON; None for what is unknown or not finite.

        `matrix` is a list of rows: first, second, votes, mean outcome from the first's side.
        """
        problem = self.problem
        return {
            "name": self.name, "n": problem.n, "k": problem.k, "delta": problem.delta, "family": problem.family.name,
            "tolerance": problem.tolerance, "max_votes": problem.max_votes, "sampling": self.sampling,
            "stopping": self.stopping.name, "paused": self.paused, "advice": self.advice,
            "verdict": self.verdict.to_dict(), "claims": list(self.claims), "spent": self.spent._asdict(),
            "words": [one._asdict() for one in self.words],
            "head": None if self.head is None else self.head._asdict(), "vote_counts": self.counts._asdict(),
            "bound_history": [_finite(point._asdict()) for point in self.bound_history],
            **{part: self._part(part) for part in parts},
        }  # fmt: skip

    def _part(self, name: str) -> Any:
        return self.matrix.to_rows() if name == "matrix" else asdict(getattr(self, name))

    @cached_property
    def _theta(self) -> Floats:
        return self.ranking.utilities(self.items)

    @cached_property
    def _order(self) -> Ints:
        number = {item: place for place, item in enumerate(self.items)}
        return np.array([number[one.item] for one in self.ranking.items], dtype=np.int64)

    @cached_property
    def _in_top(self) -> Flags:
        answer = set(self.verdict.top)
        return np.array([item in answer for item in self.items])


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity."""
    return {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in values.items()}


def analyse_study(
    study: Study, texts: Mapping[str, Any] | None = None, cases: Sequence[Any] | None = None,
    words: Sequence[DecisiveAnswer] = (),
) -> Analysis:  # fmt: skip
    """Analyse a study as it is now. `texts` are what judges were shown, by item or by item and case: then it is checked
    whether their answers go with length, and what else may sway them. `words` are what judges said, for those who may
    read it."""
    verdict, (votes, counts) = study.examine(), study_votes(study)
    return Analysis(
        study.name, study.items, study.problem, study.sampling.name, study.stopping, verdict, votes, counts,
        study.paused, study.advice, _bound_history(study, verdict), study.claims, study.head,
        () if texts is None else check_texts(study, texts, cases), study.spent, tuple(words),
    )  # fmt: skip


def _bound_history(study: Study, verdict: Verdict[str]) -> BoundHistory:
    """The study's series of the error bound, with this verdict as its last point."""
    if not is_recorded(study.problem, study.stopping):
        return ()
    earlier = (point for point in study.bound_history if point.votes != verdict.votes)
    filled = study.filled
    share = sum(filled.values()) / len(filled)
    return (*earlier, BoundPoint(verdict.votes, verdict.error_bound, verdict.votes_left, share))


def analyse_votes(
    table: VoteTable,
    k: int,
    delta: float = 0.05,
    *,
    name: str = "votes",
    stopping: str = "edges",
    family: str | Family = "bradley-terry",
    sigma: float = 1.0,
    bound: float = 10.0,
    tolerance: float = 0.0,
) -> Analysis:
    """Analyse a table of votes; the verdict is that of `certify`."""
    model = make_family(family, sigma)
    columns, size = (table.first, table.second, table.outcome), len(table.items)
    verdict = arrays.certify(
        *columns, k, delta, table.weight, size, model, stopping, bound, tolerance=tolerance, unit=table.unit
    )
    theta = arrays.fit(*columns, table.weight, size, model, bound)
    problem, votes = Problem(size, k, delta, model, bound, tolerance), table_votes(model, table)
    count = round(votes.total)
    return Analysis(
        name, table.items, problem, None, STOPPING_RULES[stopping](), named(verdict, table.items, theta), votes,
        VoteCounts(counted=count, imported=count),
    )  # fmt: skip


def as_analysis(source: Study | Analysis) -> Analysis:
    """The analysis of a study; an analysis passes through."""
    return source if isinstance(source, Analysis) else analyse_study(source)
