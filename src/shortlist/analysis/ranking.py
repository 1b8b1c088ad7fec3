"""Items from best to worst: utilities with intervals, the chance of being in the top k, and the cutoff.

All of it comes from one model: utilities have a N(0, scale^2) prior, votes follow the family, and given the votes
utilities are approximately normal (Laplace). The verdict of `edges` does not depend on it.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr

from shortlist.core.linalg import one_thread
from shortlist.core.pairs import Floats, Ints, node_sums
from shortlist.core.problem import Problem
from shortlist.core.ridge import SCALE, Laplace, laplace
from shortlist.core.stopping.posterior import chances
from shortlist.core.stopping.verdict import Verdict
from shortlist.core.tally import Tally

WIDTH = 1.959963984540054  # half of a 95 % interval, in standard deviations
Side = Literal["in", "out"]


@dataclass(frozen=True)
class RankedItem:
    """One item. `low` and `high` bound its utility with posterior probability 95 %, for this item alone."""

    item: str
    in_top: bool  # is it one of the answer's k items?
    proved: Side | None  # is it proved to be in or out of the true top k?
    utility: float  # its rating: 0 is the average item
    low: float
    high: float
    chance: float  # of being in the true top k, by the model
    votes: float


@dataclass(frozen=True)
class Cutoff:
    """The weakest item of the answer and the strongest of the rest."""

    inside: str
    outside: str
    gap: float  # of their utilities
    low: float
    high: float
    chance: float  # that the outsider is better, by the model


@dataclass(frozen=True)
class Ranking:
    """`items` has the answer first, then the rest; each side best first."""

    items: tuple[RankedItem, ...]
    cutoff: Cutoff
    model: str
    scale: float

    def utilities(self, items: tuple[str, ...]) -> Floats:
        """The utilities in the order of `items`."""
        utility = {one.item: one.utility for one in self.items}
        return np.array([utility[item] for item in items])


def rank_items(problem: Problem, items: tuple[str, ...], tally: Tally, verdict: Verdict[str]) -> Ranking:
    """Rank the items by the votes of `tally`, with the verdict's answer first."""
    scale = prior_scale(problem)
    with one_thread():
        posterior = laplace(problem.family, tally, scale)
        chance = chances(problem, tally, scale)
        covariance = _centred(posterior)
    theta = posterior.theta - posterior.theta.mean()
    spread = WIDTH * np.sqrt(np.diag(covariance))
    votes = node_sums(tally.first, tally.counts, tally.n) + node_sums(tally.second, tally.counts, tally.n)
    order, answer, proved = _best_first(items, verdict, theta), set(verdict.top), _proved(verdict)
    columns = np.stack([theta, theta - spread, theta + spread, chance, votes])
    ranked = tuple(
        RankedItem(items[i], items[i] in answer, proved.get(items[i]), *columns[:, i].tolist()) for i in order.tolist()
    )
    u, v = int(order[problem.k - 1]), int(order[problem.k])
    return Ranking(ranked, _cutoff(items, theta, covariance, u, v), _model(problem, scale), scale)


def prior_scale(problem: Problem) -> float:
    """1.5 in log-odds. Measured differences have their own unit, so there it is the bound on utilities."""
    return SCALE if not problem.family.is_measured else problem.bound


def _proved(verdict: Verdict[str]) -> dict[str, Side]:
    inside: dict[str, Side] = dict.fromkeys(verdict.certainly_in, "in")
    return inside | dict.fromkeys(verdict.certainly_out, "out")


def _best_first(items: tuple[str, ...], verdict: Verdict[str], theta: Floats) -> Ints:
    """Item numbers, the answer first, and each side best first."""
    answer = set(verdict.top)
    outside = np.array([item not in answer for item in items])
    return np.lexsort((-theta, outside)).astype(np.int64)


def _centred(posterior: Laplace) -> Floats:
    """The covariance of utilities minus their mean: only differences can be compared."""
    covariance = posterior.covariance
    covariance = covariance - covariance.mean(axis=0)
    less: Floats = covariance - covariance.mean(axis=1)[:, None]
    return less


def _cutoff(items: tuple[str, ...], theta: Floats, covariance: Floats, u: int, v: int) -> Cutoff:
    gap = float(theta[u] - theta[v])
    spread = float(np.sqrt(max(covariance[u, u] + covariance[v, v] - 2 * covariance[u, v], 0.0)))
    chance = float(ndtr(-gap / spread)) if spread else float(gap < 0)
    return Cutoff(items[u], items[v], gap, gap - WIDTH * spread, gap + WIDTH * spread, chance)


def _model(problem: Problem, scale: float) -> str:
    votes = "Bradley–Terry votes" if not problem.family.is_measured else "normal differences with the given sigma"
    return f"{votes}, a N(0, {scale:g}²) prior on ratings, Laplace approximation"
