"""A Bayesian stopping rule: stop when, under a prior on the utilities, a wrong answer is improbable enough.

Utilities are independent N(0, scale^2) beforehand; given the votes they are taken for normal around the most probable
ones (Laplace approximation, exact for the Gaussian family). Not proved: the error is right on average over worlds from
the prior, up to the approximation, and may be larger in a single world. A bound holds when one stops at it, not for
ever: later votes may raise it again.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from shortlist.certificates.verdict import Verdict
from shortlist.checks import real, whole
from shortlist.errors import BadProblem, NotConverged
from shortlist.facts import Facts, Questions
from shortlist.families import Family
from shortlist.pairs import Floats, boundary, laplacian, node_sums, top_k
from shortlist.problem import Problem
from shortlist.tally import Tally
from shortlist.threads import one_thread

SCALE = 1.5
MAX_STEPS = 200
CLOSE = 1e-4  # Newton converges quadratically: after such a step the error is near 1e-8
NOISE = 1e-13  # nats per vote: rounding in the value must not veto a good step
SHORTEST = 1e-12  # share of a Newton step; if even that does not help, only rounding is left
LEAST_PRECISION = 1e-13  # of the prior, per vote: keeps the matrix positive definite in floating point
GUARANTEE = (
    "error at most {delta:g} on average over a N(0, {scale:g}²) prior on utilities, up to the Laplace approximation; "
    "no worst-case promise"
)


class Laplace(NamedTuple):
    """Utilities given the votes are about N(theta, hessian^-1)."""

    theta: Floats
    hessian: Floats

    @property
    def covariance(self) -> Floats:
        lower, _ = lapack.dpotri(self._factor, lower=1)
        inverse: Floats = np.tril(lower) + np.tril(lower, -1).T
        return inverse

    def draw(self, rng: np.random.Generator, draws: int) -> Floats:
        """One row of utilities per draw."""
        noise = solve_triangular(self._factor, rng.standard_normal((len(self.theta), draws)), lower=True, trans="T")
        samples: Floats = self.theta + noise.T
        return samples

    @property
    def _factor(self) -> Floats:
        factor, info = lapack.dpotrf(self.hessian.T, lower=1)
        assert info == 0  # a positive diagonal plus a Laplacian is positive definite
        return np.asarray(factor, dtype=np.float64)


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
        _, step, info = lapack.dposv(hessian.T, -gradient, lower=1)
        assert info == 0  # a positive diagonal plus a Laplacian is positive definite
        length, share, slope = float(np.abs(step).max()), 1.0, float(gradient @ step)
        moved = _local(family, tally, precision, theta + step)
        while not moved[0] <= value + 1e-4 * share * slope + noise and share > SHORTEST:
            share /= 2
            moved = _local(family, tally, precision, theta + share * step)
        theta, (value, gradient, hessian) = theta + share * step, moved
        if length <= CLOSE * min(scale, 1.0) or share <= SHORTEST:
            return Laplace(theta, hessian)
    raise NotConverged(MAX_STEPS, length)


def _local(family: Family, tally: Tally, precision: float, theta: Floats) -> tuple[float, Floats, Floats]:
    """Minus the log-posterior up to a constant, its gradient and its Hessian."""
    n, first, second = tally.n, tally.first, tally.second
    eta = theta[first] - theta[second]
    moments = family.moments(eta)
    residual = family.residual(moments, tally.counts, tally.sums)
    value = float(tally.counts @ moments.log_partition - tally.sums @ eta + 0.5 * precision * (theta @ theta))
    gradient = node_sums(first, residual, n) - node_sums(second, residual, n) + precision * theta
    hessian = laplacian(n, tally.edges, tally.counts * moments.variance)
    hessian.ravel()[:: n + 1] += precision
    return value, gradient, hessian


def error(problem: Problem, posterior: Laplace) -> float:
    """At least the posterior chance that an outsider of the top k of theta beats a member, with the margin to spare.

    sum over u in S, v not in S of P(theta_v > theta_u + margin | votes), at most 1
    """
    from scipy.special import ndtr  # slow to load

    theta, covariance = posterior.theta, posterior.covariance
    u, v = boundary(theta, problem.k)
    lead = theta[u] - theta[v] + problem.margin
    spread = covariance[u, u] + covariance[v, v] - 2 * covariance[u, v]
    return min(1.0, float(ndtr(-lead / np.sqrt(np.maximum(spread, 1e-300))).sum()))


def chances(problem: Problem, tally: Tally, scale: float = SCALE, draws: int = 4000, seed: int = 0) -> Floats:
    """Each item's posterior chance of being in the top k, by seeded draws; they sum to k."""
    _check_scale(scale)
    rng = np.random.default_rng(whole("seed", seed, 0))
    with one_thread():
        samples = laplace(problem.family, tally, scale).draw(rng, whole("draws", draws, 1))
    best = np.argpartition(-samples, problem.k - 1, axis=1)[:, : problem.k]
    return np.bincount(best.ravel(), minlength=problem.n) / draws


class Evidence(NamedTuple):
    """The most probable utilities at the last check, where the next one starts."""

    theta: Floats


@dataclass(frozen=True)
class Posterior:
    """scale: standard deviation of the prior on each utility. every: check again when votes grew by this share."""

    scale: float = SCALE
    every: float = 0.01
    name: str = "posterior"
    wants: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        _check_scale(self.scale)
        if not real("every", self.every) >= 0:
            raise BadProblem(f"every is {self.every}; the checking interval is a share of the votes, 0 or more")

    def any_order(self, problem: Problem) -> bool:
        """Votes must be folded in the order asked."""
        return False

    def start(self, problem: Problem) -> Evidence:
        return Evidence(np.zeros(problem.n))

    def check(
        self, evidence: Evidence, problem: Problem, facts: Facts, out: Questions | None = None
    ) -> tuple[Evidence, Verdict[int]]:
        """Stop when the posterior chance of a wrong answer is at most delta."""
        posterior = laplace(problem.family, facts.tally, self.scale, evidence.theta)
        bound = error(problem, posterior)
        done = bound <= problem.delta
        top, everyone = tuple(top_k(posterior.theta, problem.k).tolist()), tuple(range(problem.n))
        return Evidence(posterior.theta), Verdict(
            done, "certified" if done else None, top, bound, (), (), everyone, round(facts.tally.votes),
            0.0 if done else None, self._guarantee(problem),
        )  # fmt: skip

    def examine(self, evidence: Evidence, problem: Problem, facts: Facts, out: Questions | None = None) -> Verdict[int]:
        return self.check(evidence, problem, facts, out)[1]

    def _guarantee(self, problem: Problem) -> str:
        within = f"no outsider better by {problem.tolerance:g} or more, " if problem.tolerance else ""
        return within + GUARANTEE.format(delta=problem.delta, scale=self.scale)


def _check_scale(scale: float) -> None:
    if not 1e-9 <= real("scale", scale) <= 1e9:
        raise BadProblem(f"scale is {scale}; the prior's standard deviation must be a positive number, up to 1e9")
