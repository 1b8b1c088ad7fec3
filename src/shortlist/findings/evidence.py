"""How sure the direct votes of a pair are about its better item, for checks that look at many pairs.

An e-value for "i is better than j": the likelihood ratio of a win probability spread evenly over (1/2, 1), against 1/2.

    E = 2 * 2^N * integral from 1/2 to 1 of p^wins (1 - p)^losses dp

Ties say nothing, a grade counts as its side. min(1, 1/E) is a p-value that stays one whatever was asked when, and
whenever one looks (Ville), which counts of a study that chooses its questions need. For measured differences the mean
is spread as the positive half of N(0, sigma^2).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, betaincc, betaln, log_ndtr, ndtr

from shortlist.families import Family
from shortlist.findings.ballots import Ballots
from shortlist.pairs import Flags, Floats


@dataclass(frozen=True, eq=False)
class Directions:
    """n by n: who is ahead of whom. `wins` counts votes; all is 0, False or 1 where a pair has no votes."""

    wins: Floats  # votes in which the row's item was preferred
    ahead: Flags  # was it preferred by more votes, or on the mean?
    p_value: Floats  # of "the row's item is better", small if it surely is
    expected: Floats  # how probable `ahead` is under fitted utilities


def directions(ballots: Ballots, theta: Floats) -> Directions:
    n = ballots.n
    wins = np.zeros((n, n))
    np.add.at(wins, (ballots.first, ballots.second), ballots.weight * (ballots.lean > 0))
    np.add.at(wins, (ballots.second, ballots.first), ballots.weight * (ballots.lean < 0))
    eta = np.subtract.outer(theta, theta)
    if ballots.family.win is None:
        return _measured(ballots, wins, eta)
    votes = np.zeros((n, n))
    tally = ballots.tally
    votes[tally.first, tally.second] = votes[tally.second, tally.first] = tally.counts
    decided = wins + wins.T
    p_value = np.exp(-np.maximum(log_e_value(wins, wins.T), 0.0))
    return Directions(wins, wins > wins.T, p_value, _majority(ballots.family, eta, votes, decided))


def log_e_value(wins: Floats, losses: Floats) -> Floats:
    """log E; the integral is an incomplete beta function. Where that is 0 in doubles, E is far below 1."""
    tail = betaincc(wins + 1, losses + 1, 0.5)
    with np.errstate(divide="ignore"):
        value: Floats = (wins + losses + 1) * np.log(2) + betaln(wins + 1, losses + 1) + np.log(tail)
    return value


def log_e_measured(total: Floats, votes: Floats, sigma: float) -> Floats:
    """log E of `votes` differences that add up to `total`, in closed form."""
    z, shrink = total / sigma, 1.0 + votes
    value: Floats = np.log(2) - 0.5 * np.log(shrink) + z**2 / (2 * shrink) + log_ndtr(z / np.sqrt(shrink))
    return value


def _majority(family: Family, eta: Floats, votes: Floats, decided: Floats) -> Floats:
    """P(more than half of the decided votes) if votes follow the fit, with ties as often as they were."""
    count = np.maximum(decided, 1.0)
    tied = 1.0 - count / np.maximum(votes, count)
    p, half = np.clip((family.expect(eta) - tied / 2) / (1 - tied), 0.0, 1.0), np.floor(count / 2)
    return np.where(decided > 0, betainc(half + 1, count - half, p), 0.0)


def _measured(ballots: Ballots, wins: Floats, eta: Floats) -> Directions:
    tally, sigma = ballots.tally, ballots.family.variance_bound**-0.5
    votes, total = np.zeros(wins.shape), np.zeros(wins.shape)
    votes[tally.first, tally.second] = votes[tally.second, tally.first] = tally.counts
    total[tally.first, tally.second] = tally.sums * sigma**2
    total -= total.T
    p_value = np.exp(-np.maximum(log_e_measured(total, votes, sigma), 0.0))
    expected = np.where(votes > 0, ndtr(eta * np.sqrt(votes) / sigma), 0.0)
    return Directions(wins, total > 0, p_value, expected)
