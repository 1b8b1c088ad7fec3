"""The core on plain arrays: item numbers, outcomes seen from the first item's side, optional weights."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from shortlist.core import estimate
from shortlist.core.betting import Ledger
from shortlist.core.evidence import Evidence
from shortlist.core.families import Family, make_family
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import Floats, pair_ends
from shortlist.core.problem import Problem
from shortlist.core.sampling.plan import make_plan
from shortlist.core.stopping import STOPPING_RULES, cuts, posterior
from shortlist.core.stopping.base import StoppingRule, Verdict
from shortlist.core.stopping.edges import certify_votes
from shortlist.core.stopping.glr import Glr
from shortlist.core.tally import Block, tally_votes
from shortlist.core.units import Units, find_units, is_shared, looks_sorted
from shortlist.errors import BadProblem, BadVotes


def fit(
    first: ArrayLike,
    second: ArrayLike,
    outcome: ArrayLike,
    weight: ArrayLike | None = None,
    n: int | None = None,
    family: str | Family = "bradley-terry",
    bound: float = 10.0,
    sigma: float = 1.0,
) -> Floats:
    """The maximum-likelihood utilities on {sum zero, |theta| <= bound}; an item that never lost is at the bound.

    A row of weight w counts as w votes with that mean outcome. `sigma` is the noise of the Gaussian family.
    """
    model = make_family(family, sigma)
    tally = tally_votes(model, first, second, outcome, weight, n)
    problem = Problem(tally.n, 1, 0.5, model, bound)  # checks the bound
    with one_thread():
        return estimate.fit(model, tally, problem.bound)


def certify(
    first: ArrayLike,
    second: ArrayLike,
    outcome: ArrayLike,
    k: int,
    delta: float = 0.05,
    weight: ArrayLike | None = None,
    n: int | None = None,
    family: str | Family = "bradley-terry",
    stopping: str = "edges",
    bound: float = 10.0,
    lam: float = 0.1,
    sigma: float = 1.0,
    tolerance: float = 0.0,
    unit: Sequence[Hashable] | None = None,
) -> Verdict[int]:
    """The verdict on these votes, in this order: what they prove about the top k.

    A row of weight w and mean outcome y counts as y w wins and (1-y) w losses. stopping="glr" also fills `statistic`
    (min Z) and `threshold` (beta).

    unit: a label per row; rows with the same label share a source of chance, such as the case they are about, and weigh
    at most as one vote together. None: every row is a unit of its own. Not for rows with a weight.
    """
    if not isinstance(stopping, str) or stopping not in STOPPING_RULES:
        raise BadProblem(f"unknown stopping rule {stopping!r}; choose one of {', '.join(STOPPING_RULES)}")
    model = make_family(family, sigma)
    tally = tally_votes(model, first, second, outcome, weight, n)
    problem = Problem(tally.n, k, delta, model, bound, tolerance)
    with one_thread():
        if stopping in ("edges", "cuts"):
            return certify_bets(problem, first, second, outcome, weight, unit, stopping)[0]
        if unit is not None and is_shared(unit):
            return _certify_units(stopping, lam, problem, first, second, outcome, weight, unit)
        evidence = Evidence(tally, estimate.fit(model, tally, bound))
        stops: StoppingRule = Glr(lam) if stopping == "glr" else STOPPING_RULES[stopping]()
        return stops.examine(stops.start(problem), problem, evidence)


def chances(
    first: ArrayLike,
    second: ArrayLike,
    outcome: ArrayLike,
    k: int,
    weight: ArrayLike | None = None,
    n: int | None = None,
    family: str | Family = "bradley-terry",
    sigma: float = 1.0,
    scale: float = 1.5,
) -> Floats:
    """Each item's probability of being in the top k under a N(0, scale^2) prior: an estimate, not a proof."""
    model = make_family(family, sigma)
    tally = tally_votes(model, first, second, outcome, weight, n)
    with one_thread():
        return posterior.chances(Problem(tally.n, k, 0.5, model), tally, scale)


def ask_next(
    first: ArrayLike,
    second: ArrayLike,
    outcome: ArrayLike,
    k: int,
    delta: float = 0.05,
    weight: ArrayLike | None = None,
    n: int | None = None,
    family: str | Family = "bradley-terry",
    sigma: float = 1.0,
    tolerance: float = 0.0,
    unit: Sequence[Hashable] | None = None,
) -> list[tuple[int, int, float]]:
    """The pairs that complete a proof with the fewest votes, and about how many votes each needs, largest first."""
    model = make_family(family, sigma)
    size = tally_votes(model, first, second, outcome, weight, n).n
    problem = Problem(size, k, delta, model, tolerance=tolerance)
    with one_thread():
        plan = make_plan(certify_bets(problem, first, second, outcome, weight, unit)[1], np.random.default_rng(0))
    ends = zip(*(end.tolist() for end in pair_ends(size, plan.pairs)), plan.costs.tolist(), strict=True)
    return sorted(ends, key=lambda row: -row[2])


def certify_bets(
    problem: Problem,
    first: ArrayLike,
    second: ArrayLike,
    outcome: ArrayLike,
    weight: ArrayLike | None,
    unit: Sequence[Hashable] | None = None,
    stopping: str = "edges",
) -> tuple[Verdict[int], Ledger]:
    """The verdict of `edges` or `cuts` on checked votes, with an estimate of how many more it needs, and its ledger."""
    ends = np.asarray(first, np.int64), np.asarray(second, np.int64)
    y, w = np.asarray(outcome, np.float64), np.ones(len(ends[0])) if weight is None else np.asarray(weight, np.float64)
    counted = bool(np.any(w != 1))
    block, units = Block(*ends, y, w), None
    is_sorted = not counted and looks_sorted(problem.family, *ends, y)
    if unit is not None and is_shared(unit):
        _refuse_units(stopping)
        block, units = _unit_by_unit(problem.n, block, counted, unit)
    if counted:
        block = block.divided(*problem.family.split(w, w * y))
    if stopping == "cuts":
        verdict, ledger = cuts.certify_votes(problem, block, counted, units, is_sorted)
    else:
        verdict, ledger = certify_votes(problem, block, counted, units, is_sorted)
    if not verdict.done:
        left = float(make_plan(ledger, np.random.default_rng(0)).costs.sum()) / ledger.decisive
        rows_a_unit = 1.0 if units is None else len(y) / units.size
        verdict = replace(verdict, votes_left=left * rows_a_unit)
    return verdict, ledger


def _unit_by_unit(n: int, block: Block, counted: bool, unit: Sequence[Hashable]) -> tuple[Block, Units]:
    if counted:
        raise BadVotes("votes with weights cannot have units; give one row per vote, or a unit of its own to every row")
    order, units = find_units(n, block.first, block.second, unit)
    return block.ordered(order), units


def _refuse_units(stopping: str) -> None:
    if stopping == "posterior":
        raise BadProblem(
            f"stopping rule {stopping} takes every vote as independent; use edges or glr for votes that share a unit, "
            "or say that every row is a unit of its own (--unit row)"
        )


def _certify_units(
    stopping: str,
    lam: float,
    problem: Problem,
    first: ArrayLike,
    second: ArrayLike,
    outcome: ArrayLike,
    weight: ArrayLike | None,
    unit: Sequence[Hashable],
) -> Verdict[int]:
    """The verdict of `glr` where all votes of a unit together have at most the weight of one vote."""
    _refuse_units(stopping)
    rows = np.asarray(first, np.int64), np.asarray(second, np.int64), np.asarray(outcome, np.float64)
    w = np.ones(len(rows[0])) if weight is None else np.asarray(weight, np.float64)
    block, units = _unit_by_unit(problem.n, Block(*rows, w), bool(np.any(w != 1)), unit)
    tally = tally_votes(problem.family, *block[:3], units.whole, problem.n)
    stops = Glr(lam)
    verdict = stops.examine(None, problem, Evidence(tally, estimate.fit(problem.family, tally, problem.bound)))
    left = None if verdict.votes_left is None else verdict.votes_left * len(w) / units.size
    return replace(verdict, votes=len(w), votes_left=left)
