"""The scores of `sharpen` a second time: as its first lines say, with loops; and the exact drop they stand for."""

import math

import numpy as np
from scipy.special import ndtr


def information(family, theta, covariance, a, b):
    spread = covariance[a, a] + covariance[b, b] - 2 * covariance[a, b]
    return float(family.moments(family.damp(np.array([theta[a] - theta[b]]), np.array([spread]))).variance[0])


def plain_drop(problem, theta, covariance, inside, outside, pair):
    """w x'CLCx / (1 + w x'Cx)."""
    n = len(theta)
    matrix = np.zeros((n, n))
    for u in inside:
        for v in outside:
            e = np.zeros(n)
            e[u], e[v] = 1, -1
            spread = e @ covariance @ e
            z = (theta[u] - theta[v] + problem.margin) / math.sqrt(spread)
            matrix += math.exp(-(z**2)) / (2 * math.pi) / spread * np.outer(e, e)
    x = np.zeros(n)
    x[pair[0]], x[pair[1]] = 1, -1
    w = information(problem.family, theta, covariance, *pair)
    return w * (x @ covariance @ matrix @ covariance @ x) / (1 + w * (x @ covariance @ x))


def told(problem, theta, covariance, votes):
    """C after votes on pairs, one rank-one update each; what they tell is that of the belief before all of them."""
    before = covariance
    for (a, b), count in votes:
        x = np.zeros(len(theta))
        x[a], x[b] = 1, -1
        v, w = covariance @ x, count * information(problem.family, theta, before, a, b)
        covariance = covariance - w * np.outer(v, v) / (1 + w * (x @ v))
    return covariance


def exact_drop(problem, theta, covariance, inside, outside, pair, points=4001):
    """By how much one vote on the pair lowers the expected sum of p(1-p), by Bayes' rule without approximation.

    The vote depends on e = x'theta alone, so a one-dimensional integral over e is enough for every (u, v); a Gaussian
    vote is integrated over its outcome too.
    """
    a, b = pair
    spread = covariance[a, a] + covariance[b, b] - 2 * covariance[a, b]
    grid = np.linspace(-8, 8, points)
    e = theta[a] - theta[b] + math.sqrt(spread) * grid
    prior = np.exp(-(grid**2) / 2)
    prior /= prior.sum()
    likelihoods = _likelihoods(problem.family, e, prior)
    drop = 0.0
    for u in inside:
        for v in outside:
            gap = theta[u] - theta[v] + problem.margin
            own = covariance[u, u] + covariance[v, v] - 2 * covariance[u, v]
            shared = covariance[u, a] - covariance[u, b] - covariance[v, a] + covariance[v, b]
            rest = math.sqrt(max(own - shared**2 / spread, 1e-18))
            better = ndtr((gap + shared / spread * (e - theta[a] + theta[b])) / rest)
            p = float(prior @ better)
            drop += p * (1 - p)
            for chance, likelihood in likelihoods:
                after = float(prior @ (likelihood * better)) / float(prior @ likelihood)
                drop -= chance * after * (1 - after)
    return drop


def _likelihoods(family, e, prior):
    """(chance of the outcome, its likelihood at each e) for every outcome."""
    if not family.is_measured:
        win = family.mean(e)
        return [(float(prior @ likelihood), likelihood) for likelihood in (win, 1 - win)]
    centre, width = float(prior @ e), math.sqrt(float(prior @ e**2) - float(prior @ e) ** 2 + family.sigma**2)
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    outcomes = centre + width * nodes
    return [
        (chance, np.exp(-((y - e) ** 2) / (2 * family.sigma**2)))
        for y, chance in zip(outcomes, weights / weights.sum(), strict=True)
    ]
