"""All there is to say about a study or a file of votes. Each part is computed when it is first read, once."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shortlist.arrays import certify, fit
from shortlist.certificates import CERTIFICATES
from shortlist.certificates.verdict import Verdict, named
from shortlist.families import Family, make_family
from shortlist.findings.ballots import Ballots, Events, study_ballots, table_ballots
from shortlist.findings.bounds import Bounds, error_bounds
from shortlist.findings.pairwise import Allocation, Matrix, allocation, matrix
from shortlist.findings.savings import Saved, round_robin
from shortlist.findings.standing import Standing, standing
from shortlist.findings.trust import Trust, trust
from shortlist.io.table import VoteTable
from shortlist.loop import Certificate
from shortlist.pairs import Flags, Floats, Ints
from shortlist.problem import Problem
from shortlist.study.storage import Entry
from shortlist.study.study import Study

PARTS = ("standing", "matrix", "allocation", "trust", "bounds", "saved")  # the last two take longest


@dataclass(frozen=True, eq=False)
class Findings:
    """Made by `study_findings` and `vote_findings`. `entries` is None for a file of votes."""

    name: str
    items: tuple[str, ...]
    problem: Problem
    method: str | None  # None where somebody else chose the questions
    certificate: Certificate
    verdict: Verdict[str]
    ballots: Ballots
    events: Events
    paused: bool = False
    advice: str | None = None
    entries: Sequence[Entry] | None = None

    @cached_property
    def standing(self) -> Standing:
        return standing(self.problem, self.items, self.ballots.tally, self.verdict)

    @cached_property
    def matrix(self) -> Matrix:
        return matrix(self.items, self.ballots, self._order)

    @cached_property
    def allocation(self) -> Allocation:
        return allocation(self.items, self.ballots, self._inside)

    @cached_property
    def trust(self) -> Trust:
        return trust(self.problem, self.items, self.ballots, self._theta, self._inside)

    @cached_property
    def bounds(self) -> Bounds:
        if self.entries is None:
            return Bounds((), (), "not computed: a file is judged as a whole")
        return error_bounds(self.problem, self.certificate, self.entries, self.verdict)

    @cached_property
    def saved(self) -> Saved:
        chosen = 0.0 if self.method is None else 1 - self.events.imported / max(self.ballots.votes, 1.0)
        return round_robin(self.problem, self.certificate, self.ballots, self.items, self.verdict, chosen)

    def to_json(self, parts: Sequence[str] = PARTS) -> dict[str, Any]:
        """Everything, or these parts, as dictionaries, lists, strings and numbers; what is not known is None."""
        problem = self.problem
        return {
            "name": self.name, "n": problem.n, "k": problem.k, "delta": problem.delta, "family": problem.family.name,
            "tolerance": problem.tolerance, "max_votes": problem.max_votes, "method": self.method,
            "rule": self.certificate.name, "paused": self.paused, "advice": self.advice,
            "verdict": {**_finite(vars(self.verdict)), "says": str(self.verdict)}, "events": self.events._asdict(),
            **{part: self._pairs() if part == "matrix" else asdict(getattr(self, part)) for part in parts},
        }  # fmt: skip

    def _pairs(self) -> list[list[Any]]:
        """Who beat whom as rows: first, second, votes, mean outcome from the first's side."""
        votes, share, items = self.matrix.votes, self.matrix.share, self.matrix.items
        ends = zip(*(end.tolist() for end in np.nonzero(np.triu(votes))), strict=True)
        return [[items[i], items[j], float(votes[i, j]), float(share[i, j])] for i, j in ends]

    @cached_property
    def _theta(self) -> Floats:
        utility = {place.item: place.utility for place in self.standing.places}
        return np.array([utility[item] for item in self.items])

    @cached_property
    def _order(self) -> Ints:
        number = {item: place for place, item in enumerate(self.items)}
        return np.array([number[place.item] for place in self.standing.places], dtype=np.int64)

    @cached_property
    def _inside(self) -> Flags:
        answer = set(self.verdict.top)
        return np.array([item in answer for item in self.items])


def study_findings(study: Study) -> Findings:
    """What there is to say about a study now."""
    entries = study.entries
    ballots, events = study_ballots(study.problem.n, study.problem.family, entries)
    return Findings(
        study.name, study.items, study.problem, study.method.name, study.rule, study.examine(), ballots, events,
        study.paused, study.advice, entries,
    )  # fmt: skip


def vote_findings(
    table: VoteTable,
    k: int,
    delta: float = 0.05,
    *,
    name: str = "votes",
    rule: str = "edges",
    family: str | Family = "bradley-terry",
    sigma: float = 1.0,
    bound: float = 10.0,
    tolerance: float = 0.0,
) -> Findings:
    """What there is to say about a file of votes: the verdict is that of `certify`."""
    speaks = make_family(family, sigma)
    columns, size = (table.first, table.second, table.outcome), len(table.items)
    found = certify(*columns, k, delta, table.weight, size, speaks, rule, bound, tolerance=tolerance)
    theta = fit(*columns, table.weight, size, speaks, bound)
    problem = Problem(size, k, delta, speaks, bound, tolerance)
    return Findings(
        name, table.items, problem, None, CERTIFICATES[rule](), named(found, table.items, theta),
        table_ballots(speaks, table), Events(imported=round(float(table.weight.sum()))),
    )  # fmt: skip


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """JSON knows no infinity."""
    return {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in values.items()}


def findings_of(source: Study | Findings) -> Findings:
    """The findings themselves pass through."""
    return source if is_dataclass(source) else study_findings(source)
