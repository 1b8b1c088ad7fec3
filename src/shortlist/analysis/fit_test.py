"""Do utilities explain the votes? Pearson's chi-square over pairs.

    X^2 = sum over pairs of N (mean outcome - expected)^2 / variance,    pairs - (items - groups) degrees of freedom

Only pairs with at least 10 votes, refitted on these alone. Variance is p(1-p), times the votes' own dispersion around
their pair's mean if there are ties or grades, or sigma^2. Numbers of votes are taken as given, so for a study that
chooses its questions the p-value is only a guide.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from shortlist.analysis.pairwise import mean_outcomes
from shortlist.analysis.votes import Votes
from shortlist.core.estimate import fit
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import Floats, components, node_sums
from shortlist.core.problem import Problem

ENOUGH = 10  # votes of a pair; with fewer its outcomes are far from normal
SHOWN = 5


@dataclass(frozen=True)
class Residual:
    """A pair whose votes differ from the fit, seen from the side of the item that does better than expected."""

    better: str
    worse: str
    votes: float
    share: float  # mean outcome
    expected: float
    z: float  # in standard deviations


@dataclass(frozen=True)
class FitTest:
    chi_square: float
    degrees_of_freedom: int
    p_value: float | None  # None where nothing is left to test
    pairs: int
    dispersion: float
    noise: float | None  # measured differences: their variance around their pair's mean, over sigma^2
    residuals: tuple[Residual, ...]  # the largest first


def fit_test(problem: Problem, items: tuple[str, ...], votes: Votes) -> FitTest:
    """Test whether one utility for each item explains the mean outcomes of the pairs."""
    counts = np.bincount(votes.pair, votes.weight, minlength=1)
    kept = votes.select(counts[votes.pair] >= ENOUGH)
    tally = kept.tally
    if not len(tally.pairs):
        return FitTest(0.0, 0, None, 0, 1.0, None, ())
    with one_thread():
        theta = fit(problem.family, tally, problem.bound)
    expected, mean = problem.family.expect(theta[tally.first] - theta[tally.second]), mean_outcomes(kept)
    variance, dispersion, noise = _variance(kept, expected, mean)
    z = (mean - expected) * np.sqrt(tally.counts / variance)
    groups = components(votes.n, tally.first, tally.second)[0]
    freedom, chi_square = len(tally.pairs) - (votes.n - groups), float(z @ z)
    p_value = float(chdtrc(freedom, chi_square)) if freedom > 0 else None
    return FitTest(chi_square, freedom, p_value, len(z), dispersion, noise, _residuals(items, kept, mean, expected, z))


def _variance(votes: Votes, expected: Floats, mean: Floats) -> tuple[Floats, float, float | None]:
    """The variance of one vote on each pair, over that of wins and losses, and over sigma^2."""
    tally, family = votes.tally, votes.family
    slots = tally.pairs.searchsorted(votes.pair)
    seen = np.where(votes.low_first > 0, votes.outcome, family.flip(votes.outcome))
    within = node_sums(slots, votes.weight * (seen - mean[slots]) ** 2, len(mean))
    if family.is_measured:
        square = 1.0 / family.variance_bound
        spare = float((tally.counts - 1).sum())
        return np.full(len(mean), square), 1.0, float(within.sum()) / (spare * square)
    binary = np.maximum(expected * (1 - expected), 1e-12)
    plain = bool(np.isin(votes.outcome, (0.0, family.win)).all())
    own = float(within.sum()) / max(float(((tally.counts - 1) * mean * (1 - mean)).sum()), 1e-12)
    dispersion = 1.0 if plain else max(own, 1e-6)
    return binary * dispersion, dispersion, None


def _residuals(items: tuple[str, ...], votes: Votes, mean: Floats, expected: Floats, z: Floats) -> tuple[Residual, ...]:
    tally, flip = votes.tally, votes.family.flip
    found = []
    for p in np.argsort(-np.abs(z), kind="stable")[:SHOWN].tolist():
        ends, told = (int(tally.first[p]), int(tally.second[p])), np.array([mean[p], expected[p]])
        if z[p] < 0:
            ends, told = ends[::-1], flip(told)
        names, count = (items[ends[0]], items[ends[1]]), float(tally.counts[p])
        found.append(Residual(*names, count, float(told[0]), float(told[1]), abs(float(z[p]))))
    return tuple(found)
