"""The paper's stopping rule: the generalised likelihood ratio of every boundary pair against one threshold.

Stop when min Z >= beta. Proved: error at most delta for any sampling rule, if the family and Theta are right
(paper, Proposition 6.4; docs/guarantee.md). It stops only on exact values, never on an approximation.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from shortlist.core.estimate import Screen, Tie, log_likelihood, reverse, screen
from shortlist.core.evidence import Evidence
from shortlist.core.linalg import cholesky
from shortlist.core.pairs import Floats, boundary, laplacian, top_k
from shortlist.core.problem import Problem, real
from shortlist.core.stopping.base import Verdict
from shortlist.core.tally import Block, Tally
from shortlist.errors import BadProblem

REFRESH = 0.01  # check all pairs again when the votes have grown by this share
GUARANTEE = (
    "a proved answer is wrong with probability at most {delta:g} if votes are independent and follow the {model} model "
    "with utilities within ±{bound:g} (GLR theorem)"
)


@dataclass(frozen=True)
class Glr:
    """lam: ridge of the threshold, fixed before the first vote. every: check again after votes grow by this share."""

    lam: float = 0.1
    every: float = 0.0
    name: str = "glr"
    wants: frozenset[str] = frozenset({"mle"})

    def __post_init__(self) -> None:
        if not real("lam", self.lam) > 0:
            raise BadProblem(f"lam is {self.lam}; the ridge of the threshold must be a positive number")
        if not real("every", self.every) >= 0:
            raise BadProblem(f"every is {self.every}; the checking interval is a share of the votes, 0 or more")

    def any_order(self, problem: Problem) -> bool:
        """Votes must be counted in the order asked."""
        return False

    def start(self, problem: Problem) -> "GlrMemory | None":
        return None

    def slack(self, problem: Problem, tally: Tally, theta_hat: Floats) -> float:
        """beta - log(1/delta) = (lam/2) |theta_hat|^2 + (1/2) log det(I + (variance_bound/lam) L). Paper: Eq. (4)."""
        return self._ridge(theta_hat) + self._half_log_det(problem, tally)

    def _ridge(self, theta_hat: Floats) -> float:
        return 0.5 * self.lam * float(theta_hat @ theta_hat)

    def _half_log_det(self, problem: Problem, tally: Tally) -> float:
        matrix = laplacian(tally.n, tally.edges, tally.counts * (problem.family.variance_bound / self.lam))
        matrix.ravel()[:: tally.n + 1] += 1.0
        factor = cholesky(matrix)
        assert factor is not None  # I plus a Laplacian is positive definite
        return float(np.log(factor.diagonal()).sum())

    def check(
        self, memory: "GlrMemory | None", problem: Problem, evidence: Evidence, pending: Block | None = None
    ) -> tuple["GlrMemory | None", Verdict[int]]:
        """Whether to stop. One Z below beta ends the check, so the last worst pair is tried first, then all."""
        tally, theta_hat = evidence.tally, evidence.theta_hat
        if tally.groups is not None:
            return None, _open(problem, tally, theta_hat, 0.0, math.inf)
        level = -math.log(problem.delta) + self._ridge(theta_hat)
        if memory is not None and tally.votes < (1 + REFRESH) * memory.votes:
            statistic, threshold = memory.at_most(problem, tally, theta_hat), level + memory.half_log_det
            if statistic < threshold:  # beta is at least as high: the determinant only grows
                return memory, _open(problem, tally, theta_hat, statistic, threshold)
        half_log_det = self._half_log_det(problem, tally)
        threshold = level + half_log_det
        search = _Search(problem, tally, theta_hat)
        lowest = search.lowest(threshold)
        if lowest < threshold:
            return search.memory(half_log_det), _open(problem, tally, theta_hat, lowest, threshold)
        return memory, _certified(problem, tally, theta_hat, lowest, threshold)

    def examine(
        self, memory: "GlrMemory | None", problem: Problem, evidence: Evidence, pending: Block | None = None
    ) -> Verdict[int]:
        """The full verdict: every Z exact, the current error bound, and which items are proved in or out."""
        tally, theta_hat = evidence.tally, evidence.theta_hat
        if tally.groups is not None:
            return _open(problem, tally, theta_hat, 0.0, math.inf)
        slack = self.slack(problem, tally, theta_hat)
        threshold = -math.log(problem.delta) + slack
        search = _Search(problem, tally, theta_hat)
        exact = np.array([search.exact(m) for m in range(len(search.screen.values))]).reshape(problem.k, -1)
        lowest = float(exact.min())
        if lowest >= threshold:
            return _certified(problem, tally, theta_hat, lowest, threshold)
        if problem.tolerance:  # with a tolerance nothing is proved about single items
            return replace(_open(problem, tally, theta_hat, lowest, threshold), error_bound=_bound(slack - lowest))
        members = search.screen.inside.reshape(exact.shape)[:, 0]
        outsiders = search.screen.outside.reshape(exact.shape)[0]
        certainly_in = tuple(map(int, members[exact.min(axis=1) >= threshold]))
        certainly_out = tuple(map(int, outsiders[exact.min(axis=0) >= threshold]))
        return replace(
            _open(problem, tally, theta_hat, lowest, threshold),
            error_bound=_bound(slack - lowest),
            certainly_in=certainly_in,
            certainly_out=certainly_out,
            undecided=tuple(i for i in range(problem.n) if i not in certainly_in + certainly_out),
        )


class GlrMemory(NamedTuple):
    """What a full check leaves for the next ones: the worst pair, and the direction of its alternative."""

    votes: float
    half_log_det: float
    inside: int
    outside: int
    way: Floats  # theta_alt - theta_hat, up to a factor

    def at_most(self, problem: Problem, tally: Tally, theta_hat: Floats) -> float:
        """An upper bound on min Z, from one point of the worst pair's half-space; infinite if outside Theta."""
        u, v = self.inside, self.outside
        cut = np.partition(theta_hat, -problem.k)[-problem.k]  # the lowest utility inside
        gap = float(theta_hat[u] - theta_hat[v]) + problem.margin
        if not theta_hat[u] >= cut > theta_hat[v]:
            return math.inf
        theta_alt = theta_hat - (gap / float(self.way[u] - self.way[v])) * self.way
        return _loss(problem, tally, theta_hat, theta_alt)


def _loss(problem: Problem, tally: Tally, theta_hat: Floats, theta_alt: Floats) -> float:
    """l(theta_hat) - l(theta_alt), infinite outside Theta."""
    if np.abs(theta_alt).max() > problem.bound:
        return math.inf
    best = log_likelihood(problem.family, tally, theta_hat)
    return best - log_likelihood(problem.family, tally, theta_alt)


class _Search:
    """Z of the boundary pairs: approximate for all of them, exact on request."""

    def __init__(self, problem: Problem, tally: Tally, theta_hat: Floats) -> None:
        self.problem, self.tally, self.theta_hat = problem, tally, theta_hat
        inside, outside = boundary(theta_hat, problem.k)
        self.screen: Screen = screen(problem.family, tally, theta_hat, inside, outside, problem.margin)
        self.best = log_likelihood(problem.family, tally, theta_hat)

    def exact(self, m: int) -> float:
        """Z = l(theta_hat) - max{l(theta'): theta' in Theta, theta'_u <= theta'_v - margin}."""
        problem = self.problem
        tie = Tie(int(self.screen.outside[m]), int(self.screen.inside[m]), problem.margin)
        start = self.screen.guess(self.theta_hat, m)
        theta_alt = reverse(problem.family, self.tally, problem.bound, self.theta_hat, tie, start)
        return self.best - log_likelihood(problem.family, self.tally, theta_alt)

    def at_most(self, m: int) -> float:
        """An upper bound on Z, from any point of the half-space: cheaper than the exact value."""
        return _loss(self.problem, self.tally, self.theta_hat, self.screen.guess(self.theta_hat, m))

    def memory(self, half_log_det: float) -> GlrMemory:
        """The memory for the next checks."""
        m = int(np.argmin(self.screen.values))
        inside, outside = int(self.screen.inside[m]), int(self.screen.outside[m])
        return GlrMemory(self.tally.votes, half_log_det, inside, outside, self.screen.way(m))

    def lowest(self, threshold: float) -> float:
        """min Z if it reaches the threshold, else some number between min Z and the threshold."""
        order = np.argsort(self.screen.values, kind="stable")
        quick = self.at_most(int(order[0]))
        if quick < threshold:
            return quick
        lowest = math.inf
        for m in order:
            lowest = min(lowest, self.exact(int(m)))
            if lowest < threshold:
                break
        return lowest


def _bound(log_bound: float) -> float:
    return math.exp(min(0.0, log_bound))


def _guarantee(problem: Problem) -> str:
    within = f"wrong means that some outsider is better by {problem.tolerance:g} or more; " if problem.tolerance else ""
    return f"{within}{GUARANTEE.format(delta=problem.stated_delta, model=problem.family.name, bound=problem.bound)}"


def _open(problem: Problem, tally: Tally, theta_hat: Floats, statistic: float, threshold: float) -> Verdict[int]:
    votes = round(tally.votes)
    left = votes * (threshold / statistic - 1) if 0 < statistic < threshold < math.inf else None
    top, everyone = tuple(top_k(theta_hat, problem.k).tolist()), tuple(range(problem.n))
    numbers = votes, left, _guarantee(problem), statistic, threshold
    return Verdict(False, None, top, 1.0, (), (), everyone, *numbers, error=problem.stated_delta)


def _certified(problem: Problem, tally: Tally, theta_hat: Floats, statistic: float, threshold: float) -> Verdict[int]:
    top = tuple(top_k(theta_hat, problem.k).tolist())
    rest = tuple(i for i in range(problem.n) if i not in top)
    sure_in, sure_out, undecided = ((), (), top + rest) if problem.tolerance else (top, rest, ())
    bound = problem.delta * _bound(threshold - statistic)
    numbers = round(tally.votes), 0.0, _guarantee(problem), statistic, threshold
    return Verdict(True, "certified", top, bound, sure_in, sure_out, undecided, *numbers, error=problem.stated_delta)
