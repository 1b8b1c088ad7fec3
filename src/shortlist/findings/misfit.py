"""Do utilities explain the votes? Pearson's chi-square over pairs.

    X^2 = sum over pairs of N (mean outcome - expected)^2 / variance,    pairs - (items - groups) degrees of freedom

Only pairs with at least 10 votes, refitted on these alone. Variance is p(1-p), times the votes' own dispersion around
their pair's mean if there are ties or grades, or sigma^2. Numbers of votes are taken as given, so for a study that
chose its questions the p-value is a guide.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from shortlist.estimate import fit
from shortlist.findings.ballots import Ballots
from shortlist.findings.pairwise import mean_outcomes
from shortlist.pairs import Floats, components, node_sums
from shortlist.problem import Problem
from shortlist.threads import one_thread

ENOUGH = 10  # votes of a pair; with fewer its outcomes are far from normal
SHOWN = 5


@dataclass(frozen=True)
class Residual:
    """A pair that votes otherwise than the fit, from the side of the item that does better than expected."""

    better: str
    worse: str
    votes: float
    share: float  # mean outcome
    expected: float
    z: float  # in standard deviations


@dataclass(frozen=True)
class Misfit:
    chi_square: float
    freedom: int
    p_value: float | None  # None where nothing is left to test
    pairs: int
    dispersion: float
    noise: float | None  # measured differences: their variance around their pair's mean, over sigma^2
    residuals: tuple[Residual, ...]  # the largest first


def misfit(problem: Problem, items: tuple[str, ...], ballots: Ballots) -> Misfit:
    votes = np.bincount(ballots.pair, ballots.weight, minlength=1)
    kept = ballots.where(votes[ballots.pair] >= ENOUGH)
    tally = kept.tally
    if not len(tally.pairs):
        return Misfit(0.0, 0, None, 0, 1.0, None, ())
    with one_thread():
        theta = fit(problem.family, tally, problem.bound)
    expected, mean = problem.family.expect(theta[tally.first] - theta[tally.second]), mean_outcomes(kept)
    variance, dispersion, noise = _variance(kept, expected, mean)
    z = (mean - expected) * np.sqrt(tally.counts / variance)
    groups, touched = components(ballots.n, tally.first, tally.second)[0], ballots.n
    freedom, chi_square = len(tally.pairs) - (touched - groups), float(z @ z)
    p_value = float(chdtrc(freedom, chi_square)) if freedom > 0 else None
    return Misfit(chi_square, freedom, p_value, len(z), dispersion, noise, _residuals(items, kept, mean, expected, z))


def _variance(ballots: Ballots, expected: Floats, mean: Floats) -> tuple[Floats, float, float | None]:
    """Of one vote on each pair; how it compares with wins and losses; and with sigma^2."""
    tally, family = ballots.tally, ballots.family
    slots = tally.pairs.searchsorted(ballots.pair)
    seen = np.where(ballots.low_first > 0, ballots.outcome, family.flip(ballots.outcome))
    within = node_sums(slots, ballots.weight * (seen - mean[slots]) ** 2, len(mean))
    if family.win is None:
        square = 1.0 / family.variance_bound
        spare = float((tally.counts - 1).sum())
        return np.full(len(mean), square), 1.0, float(within.sum()) / (spare * square)
    binary = np.maximum(expected * (1 - expected), 1e-12)
    plain = bool(np.isin(ballots.outcome, (0.0, family.win)).all())
    own = float(within.sum()) / max(float(((tally.counts - 1) * mean * (1 - mean)).sum()), 1e-12)
    dispersion = 1.0 if plain else max(own, 1e-6)
    return binary * dispersion, dispersion, None


def _residuals(
    items: tuple[str, ...], ballots: Ballots, mean: Floats, expected: Floats, z: Floats
) -> tuple[Residual, ...]:
    tally, flip = ballots.tally, ballots.family.flip
    found = []
    for p in np.argsort(-np.abs(z), kind="stable")[:SHOWN].tolist():
        ends, told = (int(tally.first[p]), int(tally.second[p])), np.array([mean[p], expected[p]])
        if z[p] < 0:
            ends, told = ends[::-1], flip(told)
        names, votes = (items[ends[0]], items[ends[1]]), float(tally.counts[p])
        found.append(Residual(*names, votes, float(told[0]), float(told[1]), abs(float(z[p]))))
    return tuple(found)
