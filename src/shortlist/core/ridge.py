"""Utilities under a normal prior: the ridge fit, for planning and for the Bayesian stopping rule.

`refine` is the planning estimate: a few capped Newton steps from the last one, approximate by design, because it only
chooses questions and places bets. `laplace` is the same fit to convergence, with a line search. They share
matrices and solver but not the steps, because the same Newton method for both would change every planned question.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from shortlist.core.families import Family
from shortlist.core.linalg import cholesky, inverse, one_thread, solve
from shortlist.core.pairs import Floats, Ints, edge_codes, laplacian, net_sums, node_sums
from shortlist.core.tally import Tally
from shortlist.errors import NotConverged

RIDGE = 1.2  # first guess of 1/(spread of utilities)^2, in units of the family's variance bound: +-1.8 in log-odds
RIDGES = 0.25, 50.0  # limits within which the votes may move that guess
DENSE = 300  # for more items, n x n matrices are avoided and items are treated as independent
STEPS, LONGEST, CLOSE = 8, 2.0, 1e-3
SCALE = 1.5  # standard deviation of the prior on a utility
MAX_STEPS = 200
CONVERGED = 1e-4  # Newton converges quadratically: after such a step the error is near 1e-8
NOISE = 1e-13  # nats per vote: rounding in the value must not reject a good step
SHORTEST = 1e-12  # share of a Newton step; if even that gains nothing, only rounding is left
LEAST_PRECISION = 1e-13  # of the prior, per vote: keeps the matrix positive definite in floating point


class Belief(NamedTuple):
    """theta is about N(theta, covariance); for many items only the variances are kept.

    `number` counts the beliefs of a study, so that a plan knows which one it was made for.
    """

    number: int
    theta: Floats
    variances: Floats
    covariance: Floats | None

    def spread(self, first: Ints, second: Ints) -> Floats:
        """The variance of theta_first - theta_second."""
        total = self.variances[first] + self.variances[second]
        return total if self.covariance is None else np.maximum(total - 2 * self.covariance[first, second], 0.0)


def nothing_known(family: Family, n: int) -> Belief:
    return Belief(0, np.zeros(n), np.full(n, 1 / (RIDGE * family.variance_bound)), None)


def refine(family: Family, belief: Belief, first: Ints, second: Ints, weights: Floats, sums: Floats) -> Belief:
    """The belief from these votes, starting from an older one: Newton, with conjugate gradients for many items."""
    n, theta = len(belief.theta), belief.theta
    ridge = max(_ridge(family, belief), LEAST_PRECISION * float(weights.sum()) * family.variance_bound)
    step_of = _dense if n <= DENSE else _sparse
    for _ in range(STEPS):
        moments = family.moments(theta[first] - theta[second])
        gradient = net_sums(first, second, sums - weights * moments.mean, n) - ridge * theta
        step, variances, covariance = step_of(n, first, second, weights * moments.variance, ridge, gradient)
        longest = float(np.abs(step).max())
        theta = theta + step * min(1.0, LONGEST / max(longest, LONGEST))
        if longest < CLOSE:
            break
    return Belief(belief.number + 1, theta, variances, covariance)


def _ridge(family: Family, belief: Belief) -> float:
    """The prior precision that fits the older belief: one step of empirical Bayes."""
    first_guess = RIDGE * family.variance_bound
    suggested = len(belief.theta) / float((belief.theta**2).sum() + belief.variances.sum())
    return min(max(suggested, RIDGES[0] * first_guess), RIDGES[1] * first_guess)


def _ridge_matrix(n: int, edges: Ints, curvature: Floats, ridge: float) -> Floats:
    """sum_p curvature_p x_p x_p' + ridge I."""
    matrix = laplacian(n, edges, curvature)
    matrix.ravel()[:: n + 1] += ridge
    return matrix


def _newton_step(matrix: Floats, gradient: Floats) -> tuple[Floats, Floats]:
    """The step and the Cholesky factor."""
    solved = solve(matrix, gradient)
    assert solved is not None  # a positive diagonal plus a Laplacian is positive definite
    return solved


def _dense(
    n: int, first: Ints, second: Ints, curvature: Floats, ridge: float, gradient: Floats
) -> tuple[Floats, Floats, Floats | None]:
    matrix = _ridge_matrix(n, edge_codes(n, first, second), curvature, ridge)
    with one_thread():
        step, factor = _newton_step(matrix, gradient)
        covariance = inverse(factor)
    return step, covariance.diagonal(), covariance


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


class Laplace(NamedTuple):
    """Utilities given the votes are about N(theta, hessian^-1)."""

    theta: Floats
    hessian: Floats

    @property
    def covariance(self) -> Floats:
        return inverse(self._factor)

    def draw(self, rng: np.random.Generator, draws: int) -> Floats:
        """One row of utilities per draw."""
        noise = solve_triangular(self._factor, rng.standard_normal((len(self.theta), draws)), lower=True, trans="T")
        samples: Floats = self.theta + noise.T
        return samples

    @property
    def _factor(self) -> Floats:
        factor = cholesky(self.hessian)
        assert factor is not None  # a positive diagonal plus a Laplacian is positive definite
        return factor


def laplace(family: Family, tally: Tally, scale: float = SCALE, start: Floats | None = None) -> Laplace:
    """The most probable utilities under the prior N(0, scale^2), and the curvature there; `start` is any guess.

        H = I / scale^2 + sum_p N_p A''(eta_p) x_p x_p'

    Newton's method with backtracking. Raises NotConverged.
    """
    precision = max(scale**-2, LEAST_PRECISION * tally.votes * family.variance_bound)
    noise = NOISE * (1.0 + tally.votes)
    theta = np.zeros(tally.n) if start is None else start
    value, gradient, hessian = _local(family, tally, precision, theta)
    length = np.inf
    for _ in range(MAX_STEPS):
        step, _ = _newton_step(hessian, -gradient)
        length, share, slope = float(np.abs(step).max()), 1.0, float(gradient @ step)
        moved = _local(family, tally, precision, theta + step)
        while not moved[0] <= value + 1e-4 * share * slope + noise and share > SHORTEST:
            share /= 2
            moved = _local(family, tally, precision, theta + share * step)
        theta, (value, gradient, hessian) = theta + share * step, moved
        if length <= CONVERGED * min(scale, 1.0) or share <= SHORTEST:
            return Laplace(theta, hessian)
    raise NotConverged(MAX_STEPS, length)


def _local(family: Family, tally: Tally, precision: float, theta: Floats) -> tuple[float, Floats, Floats]:
    """Minus the log-posterior up to a constant, its gradient and its Hessian."""
    eta = theta[tally.first] - theta[tally.second]
    moments = family.moments(eta)
    residual = family.residual(moments, tally.counts, tally.sums)
    value = float(tally.counts @ moments.log_partition - tally.sums @ eta + 0.5 * precision * (theta @ theta))
    gradient = net_sums(tally.first, tally.second, residual, tally.n) + precision * theta
    return value, gradient, _ridge_matrix(tally.n, tally.edges, tally.counts * moments.variance, precision)
