"""What all votes together suggest about every item: a ridge estimate and how sure it is.

It chooses questions and places bets, so being roughly right is enough; nothing proved rests on it.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from shortlist.families import Family
from shortlist.pairs import Floats, Ints, edge_codes, laplacian, node_sums
from shortlist.threads import one_thread

RIDGE = 1.2  # first guess of 1/(spread of utilities)^2, in units of the family's variance bound: +-1.8 in log-odds
RIDGES = 0.25, 50.0  # how far the votes may move that guess
DENSE = 300  # beyond, matrices of n x n are avoided and items are taken as independent
STEPS, LONGEST, CLOSE = 8, 2.0, 1e-3


class Belief(NamedTuple):
    """theta is about N(theta, covariance); for many items only the variances are kept."""

    theta: Floats
    variances: Floats
    covariance: Floats | None

    def spread(self, first: Ints, second: Ints) -> Floats:
        """The variance of theta_first - theta_second."""
        total = self.variances[first] + self.variances[second]
        return total if self.covariance is None else np.maximum(total - 2 * self.covariance[first, second], 0.0)


def nothing_known(family: Family, n: int) -> Belief:
    return Belief(np.zeros(n), np.full(n, 1 / (RIDGE * family.variance_bound)), None)


def refine(family: Family, belief: Belief, first: Ints, second: Ints, weights: Floats, sums: Floats) -> Belief:
    """The belief from these votes, started at an older one: Newton, or conjugate gradients inside for many items."""
    n, ridge, theta = len(belief.theta), _ridge(family, belief), belief.theta
    solve = _dense if n <= DENSE else _sparse
    for _ in range(STEPS):
        moments = family.moments(theta[first] - theta[second])
        pull = sums - weights * moments.mean
        gradient = node_sums(first, pull, n) - node_sums(second, pull, n) - ridge * theta
        step, variances, covariance = solve(n, first, second, weights * moments.variance, ridge, gradient)
        longest = float(np.abs(step).max())
        theta = theta + step * min(1.0, LONGEST / max(longest, LONGEST))
        if longest < CLOSE:
            break
    return Belief(theta, variances, covariance)


def _ridge(family: Family, belief: Belief) -> float:
    """The prior precision that the older belief itself suggests: empirical Bayes, one step."""
    first_guess = RIDGE * family.variance_bound
    suggested = len(belief.theta) / float((belief.theta**2).sum() + belief.variances.sum())
    return min(max(suggested, RIDGES[0] * first_guess), RIDGES[1] * first_guess)


def _dense(
    n: int, first: Ints, second: Ints, curvature: Floats, ridge: float, gradient: Floats
) -> tuple[Floats, Floats, Floats | None]:
    matrix = laplacian(n, edge_codes(n, first, second), curvature)
    matrix.ravel()[:: n + 1] += ridge
    with one_thread():
        factor, step, _ = lapack.dposv(matrix.T, gradient, lower=1, overwrite_a=1)
        lower, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    inverse = np.tril(lower) + np.tril(lower, -1).T
    return step, inverse.diagonal(), inverse


def _sparse(
    n: int, first: Ints, second: Ints, curvature: Floats, ridge: float, gradient: Floats
) -> tuple[Floats, Floats, Floats | None]:
    from scipy.sparse import coo_array, diags_array
    from scipy.sparse.linalg import cg

    diagonal = ridge + node_sums(first, curvature, n) + node_sums(second, curvature, n)
    links = coo_array((curvature, (first, second)), shape=(n, n)).tocsr()
    matrix = diags_array(diagonal) - links - links.T
    step, _ = cg(matrix, gradient, rtol=1e-3, maxiter=50, M=diags_array(1 / diagonal))
    return step, 1 / diagonal, None
