"""Where the items stand: utilities with intervals, chances, and the line between the k-th and the next.

All of it comes from one model: utilities are N(0, scale^2) beforehand, votes follow the family, and given the votes
utilities are about normal (Laplace). The verdict does not rest on this.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from shortlist.certificates.posterior import SCALE, Laplace, chances, laplace
from shortlist.certificates.verdict import Verdict
from shortlist.pairs import Floats, Ints, node_sums
from shortlist.problem import Problem
from shortlist.tally import Tally
from shortlist.threads import one_thread

WIDTH = 1.959963984540054  # half of a 95 % interval, in standard deviations


@dataclass(frozen=True)
class Place:
    """One item. `low` and `high` bound its utility with posterior probability 95 %, item by item."""

    item: str
    inside: bool  # of the answer
    certain: str | None  # in, out
    utility: float
    low: float
    high: float
    chance: float  # of being in the top k
    votes: float


@dataclass(frozen=True)
class Line:
    """Between the weakest of the answer and the strongest of the rest."""

    inside: str
    outside: str
    gap: float  # of utilities
    low: float
    high: float
    chance: float  # that the outsider is better


@dataclass(frozen=True)
class Standing:
    """`places` has the answer first, and each side best first."""

    places: tuple[Place, ...]
    line: Line
    model: str
    scale: float


def standing(problem: Problem, items: tuple[str, ...], tally: Tally, verdict: Verdict[str]) -> Standing:
    scale = prior_scale(problem)
    with one_thread():
        posterior = laplace(problem.family, tally, scale)
        likely = chances(problem, tally, scale)
        covariance = centred(posterior)
    theta = posterior.theta - posterior.theta.mean()
    order, spread = in_order(items, verdict, theta), WIDTH * np.sqrt(np.diag(covariance))
    counts = node_sums(tally.first, tally.counts, tally.n) + node_sums(tally.second, tally.counts, tally.n)
    certain = dict.fromkeys(verdict.certainly_in, "in") | dict.fromkeys(verdict.certainly_out, "out")
    answer = set(verdict.top)
    places = tuple(
        Place(
            items[i], items[i] in answer, certain.get(items[i]), float(theta[i]), float(theta[i] - spread[i]),
            float(theta[i] + spread[i]), float(likely[i]), float(counts[i]),
        )
        for i in order.tolist()
    )  # fmt: skip
    u, v = int(order[problem.k - 1]), int(order[problem.k])
    return Standing(places, _line(items, theta, covariance, u, v), _model(problem, scale), scale)


def in_order(items: tuple[str, ...], verdict: Verdict[str], theta: Floats) -> Ints:
    """Item numbers, the answer first, and each side best first."""
    answer = set(verdict.top)
    outside = np.array([item not in answer for item in items])
    return np.lexsort((-theta, outside)).astype(np.int64)


def prior_scale(problem: Problem) -> float:
    """1.5 in log-odds; measured differences have units of their own, so there it is the bound on utilities."""
    return SCALE if problem.family.win is not None else problem.bound


def centred(posterior: Laplace) -> Floats:
    """The covariance of utilities less their mean: only differences can be compared."""
    covariance = posterior.covariance
    covariance = covariance - covariance.mean(axis=0)
    less: Floats = covariance - covariance.mean(axis=1)[:, None]
    return less


def _line(items: tuple[str, ...], theta: Floats, covariance: Floats, u: int, v: int) -> Line:
    gap = float(theta[u] - theta[v])
    spread = float(np.sqrt(max(covariance[u, u] + covariance[v, v] - 2 * covariance[u, v], 0.0)))
    chance = float(ndtr(-gap / spread)) if spread else float(gap < 0)
    return Line(items[u], items[v], gap, gap - WIDTH * spread, gap + WIDTH * spread, chance)


def _model(problem: Problem, scale: float) -> str:
    votes = "Bradley–Terry votes" if problem.family.win is not None else "normal differences of the given sigma"
    return f"{votes}, a N(0, {scale:g}²) prior on utilities, Laplace approximation"
