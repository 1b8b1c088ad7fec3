"""A Bayesian stopping rule: stop when, under a prior on the utilities, a wrong answer is improbable enough.

A priori, utilities are independent N(0, scale^2). Given the votes they are treated as normal around the posterior mode
(Laplace approximation, exact for the Gaussian family). This is not a worst-case proof: the error holds on average over
worlds from the prior, up to the approximation, and may be larger in a single world. A bound holds for a study that
stops at it; later votes may raise it again.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shortlist.core.evidence import Evidence
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import Floats, boundary, top_k
from shortlist.core.problem import Problem, real, whole
from shortlist.core.ridge import SCALE, Laplace, laplace
from shortlist.core.stopping.base import Verdict
from shortlist.core.tally import Block, Tally
from shortlist.errors import BadProblem

GUARANTEE = (
    "a proved answer is wrong with probability at most {delta:g} on average over a N(0, {scale:g}²) prior on utilities,"
    " up to the Laplace approximation; no worst-case promise"
)


def error(problem: Problem, posterior: Laplace) -> float:
    """An upper bound on the posterior chance that an outsider is better than a member by more than the margin.

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
    samples[:, list(problem.withdrawn)] = -np.inf
    best = np.argpartition(-samples, problem.k - 1, axis=1)[:, : problem.k]
    return np.bincount(best.ravel(), minlength=problem.n) / draws


class PosteriorMemory(NamedTuple):
    """The posterior mode at the last check, where the next one starts."""

    theta: Floats


@dataclass(frozen=True)
class Posterior:
    """scale: standard deviation of the prior on each utility. every: check again after votes grow by this share."""

    scale: float = SCALE
    every: float = 0.01
    name: str = "posterior"
    wants: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        _check_scale(self.scale)
        if not real("every", self.every) >= 0:
            raise BadProblem(f"every is {self.every}; the checking interval is a share of the votes, 0 or more")

    def any_order(self, problem: Problem) -> bool:
        """Votes must be counted in the order asked."""
        return False

    def start(self, problem: Problem) -> PosteriorMemory:
        return PosteriorMemory(np.zeros(problem.n))

    def check(
        self, memory: PosteriorMemory, problem: Problem, evidence: Evidence, pending: Block | None = None
    ) -> tuple[PosteriorMemory, Verdict[int]]:
        """Stop when the posterior chance of a wrong answer is at most delta."""
        posterior = laplace(problem.family, evidence.tally, self.scale, memory.theta)
        bound = error(problem, posterior)
        done = bound <= problem.delta
        top, everyone = tuple(top_k(posterior.theta, problem.k).tolist()), tuple(range(problem.n))
        return PosteriorMemory(posterior.theta), Verdict(
            done, "certified" if done else None, top, bound, (), (), everyone, round(evidence.tally.votes),
            0.0 if done else None, self._guarantee(problem), error=problem.stated_delta,
        )  # fmt: skip

    def examine(
        self, memory: PosteriorMemory, problem: Problem, evidence: Evidence, pending: Block | None = None
    ) -> Verdict[int]:
        return self.check(memory, problem, evidence, pending)[1]

    def _guarantee(self, problem: Problem) -> str:
        within = (
            f"wrong means that some outsider is better by {problem.tolerance:g} or more; " if problem.tolerance else ""
        )
        return within + GUARANTEE.format(delta=problem.stated_delta, scale=self.scale)


def _check_scale(scale: float) -> None:
    if not 1e-9 <= real("scale", scale) <= 1e9:
        raise BadProblem(f"scale is {scale}; the prior's standard deviation must be a positive number, up to 1e9")
