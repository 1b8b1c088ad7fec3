"""The one convex solver: maximum likelihood on Theta = {sum zero, |theta| <= bound}, free or with two items tied.

The MLE, the KL projection and the constrained likelihood of the stopping rule are the same fit; tying two items
merges two nodes of the graph. Newton's method on the Laplacian, with the box handled by an exact active set.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from shortlist.core import linalg
from shortlist.core.families import Family
from shortlist.core.linalg import cholesky, inverse
from shortlist.core.pairs import Flags, Floats, Ints, all_pairs, components, edge_codes, laplacian, net_sums, node_sums
from shortlist.core.tally import Tally
from shortlist.errors import BadProblem, NotConverged

STEP_TOLERANCE = 1e-4  # Newton converges quadratically: after such a step the error is near 1e-8
FACE_TOLERANCE = 1e-6  # on a face; after such a step the signs of the multipliers can be read
PULL_TOLERANCE = 1e-12  # per vote; a vote at the edge of the box has a gradient of e^-20
DECREMENT_TOLERANCE = 1e-17  # nats per vote; below it, steps are rounding noise
MAX_STEPS_PER_ITEM, MAX_STEPS = 20, 200
MAX_ITEMS = 10_000  # a dense matrix of that size takes 0.8 GB
COMPONENT_PULL = 1e-11  # centres groups that no vote connects; up to 10^5 votes weaker than one at the box, e^-20
SHORTEST = 1e-15  # share of a Newton step; if even that gains nothing, the numbers are not finite
STALL, MAX_STALLS = 1e-15, 10  # nats per vote; ten steps or releases in a row without a gain: only rounding is left
VALUE_NOISE = 1e-13  # nats per vote: rounding in the value must not reject a good step
DESIGN_FLOOR = 1e-9  # share of a uniform design that every pair keeps: exponential weights may underflow
DAMPING = 1e-14  # per vote; makes Cholesky work where the logistic is flat; it changes steps, not the optimum


class Projection(NamedTuple):
    """The nearest model that reverses a pair: its distance gamma = w @ divergence."""

    theta_alt: Floats
    gamma: float
    divergence: Floats  # d(eta_p, eta_alt_p) for all pairs


@dataclass(frozen=True)
class Tie:
    """theta[worse] = theta[better] - margin: the boundary of the half-space in which `better` is at least as good."""

    better: int
    worse: int
    margin: float = 0.0


def log_likelihood(family: Family, tally: Tally, theta: Floats) -> float:
    """sum_p S_p eta_p - N_p A(eta_p)."""
    eta = theta[tally.first] - theta[tally.second]
    return float(tally.sums @ eta - tally.counts @ family.log_partition(eta))


def fit(family: Family, tally: Tally, bound: float, start: Floats | None = None, tie: Tie | None = None) -> Floats:
    """The utilities in Theta that maximise the likelihood, with two items tied if asked.

    Items that nothing connects are centred group by group. `start` is any guess. Raises NotConverged.
    """
    if tally.n > MAX_ITEMS:
        raise BadProblem(f"{tally.n} items are too many for a dense fit; it takes up to {MAX_ITEMS}")
    graph = _Graph.build(family, tally, bound, tie)
    z = graph.feasible(np.zeros(tally.n) if start is None else start)
    return graph.expand(graph.minimise(z))


def reverse(
    family: Family, tally: Tally, bound: float, theta_hat: Floats, tie: Tie, start: Floats | None = None
) -> Floats:
    """The best utilities in the half-space {theta[worse] <= theta[better] - margin}; theta_hat is the best without it.

    If theta_hat lies outside, then by convexity the maximum is on the boundary: the same fit, with the items tied.
    """
    if theta_hat[tie.worse] <= theta_hat[tie.better] - tie.margin:
        return theta_hat
    return fit(family, tally, bound, theta_hat if start is None else start, tie)


def project(
    family: Family, theta: Floats, w: Floats, bound: float, tie: Tie, start: Floats | None = None
) -> Projection:
    """theta* = argmin sum_p w_p d(eta_p(theta), eta_p(theta')) over the half-space of `tie`. Paper: Section 4.2."""
    first, second = all_pairs(len(theta))
    eta = theta[first] - theta[second]
    held = hold(w)
    tally = Tally(len(theta), np.arange(len(w)), first, second, held, held * family.mean(eta))
    theta_alt = reverse(family, tally, bound, theta, tie, start)
    divergence = family.divergence(eta, theta_alt[first] - theta_alt[second])
    return Projection(theta_alt, float(w @ divergence), divergence)


def hold(w: Floats) -> Floats:
    """The design w with a positive share for every pair, so that all items stay connected."""
    return np.maximum(w, DESIGN_FLOOR * float(w.sum()) / len(w))


class _Local(NamedTuple):
    """The negative log-likelihood at a point, with its derivatives."""

    value: float
    gradient: Floats
    hessian: Floats


@dataclass
class _Graph:
    """The fit on nodes: one node for each item, and a shared one for tied items. z are the utilities of the nodes."""

    family: Family
    node: Ints  # item -> node
    offset: Floats  # item utility minus node utility
    first: Ints
    second: Ints
    eta_offset: Floats | None
    counts: Floats
    sums: Floats
    size: Floats  # items per node, for the sum-zero constraint
    low: Floats
    high: Floats
    group: Ints | None  # connected component of each node, None if there is only one

    @classmethod
    def build(cls, family: Family, tally: Tally, bound: float, tie: Tie | None) -> "_Graph":
        n = tally.n
        if tie is None:
            ones = np.ones(n)
            return cls(family, np.arange(n), np.zeros(n), tally.first, tally.second, None,
                       tally.counts, tally.sums, ones, -bound * ones, bound * ones, tally.groups)  # fmt: skip
        node = np.arange(n)
        node[tie.worse] = tie.better
        node[node > tie.worse] -= 1
        offset = np.zeros(n)
        offset[tie.worse] = -tie.margin
        size = np.bincount(node).astype(np.float64)
        low, high = np.full(n - 1, -bound), np.full(n - 1, bound)
        low[node[tie.better]] += tie.margin
        first, second = node[tally.first], node[tally.second]
        eta_offset = offset[tally.first] - offset[tally.second] if tie.margin else None
        group = None if tally.groups is None else components(n - 1, first, second)[1]
        return cls(family, node, offset, first, second, eta_offset,
                   tally.counts, tally.sums, size, low, high, group)  # fmt: skip

    def __post_init__(self) -> None:
        """Weak ridges centre groups of items that no vote connects, which the likelihood leaves free."""
        self.total = float(self.counts.sum())
        self.connected = self.group is None
        self.edge = edge_codes(len(self.size), self.first, self.second)
        if self.group is not None:
            stiffness = COMPONENT_PULL * (1.0 + 1e-4 * self.total)
            self.spring = (self.group[:, None] == self.group) * np.outer(stiffness * self.size, self.size)

    def expand(self, z: Floats) -> Floats:
        return z[self.node] + self.offset

    def feasible(self, theta: Floats) -> Floats:
        """A feasible point near theta: tied, sum zero, and scaled into the box if necessary."""
        tied = len(self.size) < len(self.node)
        z = node_sums(self.node, theta - self.offset, len(self.size)) / self.size if tied else theta
        z = z - float(self.size @ z + self.offset.sum()) / len(self.node)
        if self._fits(z):
            return z
        centre = -float(self.offset.sum()) / len(self.node)
        way = z - centre
        room = np.where(way > 0, self.high - centre, centre - self.low)
        inside: Floats = centre + way / float(np.max(np.abs(way) / room))
        return inside

    def local(self, z: Floats) -> _Local:
        m = len(z)
        eta = z[self.first] - z[self.second]
        if self.eta_offset is not None:
            eta += self.eta_offset
        moments = self.family.moments(eta)
        residual = self.family.residual(moments, self.counts, self.sums)
        gradient = net_sums(self.first, self.second, residual, m)
        hessian = laplacian(m, self.edge, self.counts * moments.variance)
        value = float(self.counts @ moments.log_partition - self.sums @ eta)
        if self.connected:
            return _Local(value, gradient, hessian)
        pull = self.spring @ z
        return _Local(value + 0.5 * float(z @ pull), gradient + pull, hessian + self.spring)

    def minimise(self, z: Floats) -> Floats:
        """Newton inside the face of active bounds; a bound is dropped when its multiplier has the wrong sign."""
        active = (z <= self.low) | (z >= self.high)
        here = self.local(z)
        limit, length = MAX_STEPS + MAX_STEPS_PER_ITEM * len(z), np.inf
        lowest, stalls, mark, idle = np.inf, 0, np.inf, 0
        for _ in range(limit):
            step, multiplier = self._newton_step(here, active)
            length = float(np.abs(step).max())
            if length <= STEP_TOLERANCE and self._inside(z + step):
                return z + step
            slope = (
                here.gradient + multiplier * self.size
            )  # along the constraint, so that rounding of the sum does not count
            decrement = -float(slope @ step)
            if length > FACE_TOLERANCE and decrement > DECREMENT_TOLERANCE * (1.0 + self.total) and idle < MAX_STALLS:
                z, active, here = self._advance(z, step, decrement, active, here)
                gained = here.value < mark - VALUE_NOISE * (1.0 + self.total)
                mark, idle = (here.value, 0) if gained else (mark, idle + 1)
                continue
            mark, idle = np.inf, 0
            wrong = self._wrong_sign(z, slope, active)
            stalls = stalls + 1 if here.value >= lowest - STALL * (1.0 + self.total) else 0
            lowest = min(lowest, here.value)
            if wrong is not None and stalls < MAX_STALLS:
                active[wrong] = False
                continue
            beyond = self._jump(z, step) if length > STEP_TOLERANCE else None
            if beyond is None:
                return z + step if length <= STEP_TOLERANCE and self._fits(z + step) else z
            z, active, here = beyond[0], active | beyond[1], beyond[2]
        raise NotConverged(limit, length)

    def _newton_step(self, here: _Local, active: Flags) -> tuple[Floats, float]:
        """min g'd + d'Hd/2 over d with size'd = 0 and d = 0 on active bounds; also the sum's multiplier."""
        if self.connected and not active.any():
            here.hessian[0, 0] += self.total / len(active)  # hold node 0, then shift: only differences matter
            step = -_solve(here.hessian, here.gradient, self.total)
            return step - float(self.size @ step) / len(self.node), 0.0
        step = np.zeros(len(active))
        free: Any = np.flatnonzero(~active) if active.any() else slice(None)
        size = self.size[free]
        if len(size) == 0:
            return step, 0.0
        block = here.hessian[free][:, free]
        right = np.empty((len(size), 2), order="F")
        right[:, 0], right[:, 1] = here.gradient[free], size
        solved = _solve(block, right, self.total)
        multiplier = -float(size @ solved[:, 0]) / float(size @ solved[:, 1])
        inner = -(solved[:, 0] + multiplier * solved[:, 1])
        step[free] = inner - float(size @ inner) / float(size.sum())
        return step, multiplier

    def _inside(self, z: Floats) -> bool:
        return bool(np.all((self.low < z) & (z < self.high)))

    def _fits(self, z: Floats) -> bool:
        return bool(np.all((self.low <= z) & (z <= self.high)))

    def _room(self, z: Floats, step: Floats) -> Floats:
        """How many such steps fit between each node and its bound."""
        room = np.full(len(z), np.inf)
        np.divide(np.where(step > 0, self.high - z, z - self.low), np.abs(step), out=room, where=step != 0)
        return room

    def _wrong_sign(self, z: Floats, slope: Floats, active: Flags) -> int | None:
        """The active bound whose multiplier has the wrong sign and is largest, if any."""
        pull = np.where(z >= self.high, slope, -slope)  # at the upper bound the slope must not be positive
        pull[~active] = 0.0
        worst = int(np.argmax(pull))
        return worst if pull[worst] > PULL_TOLERANCE * (1.0 + self.total) else None

    def _try(self, z: Floats, step: Floats, length: float) -> tuple[Floats, _Local]:
        moved = np.clip(z + length * step, self.low, self.high)
        return moved, self.local(moved)

    def _jump(self, z: Floats, step: Floats) -> tuple[Floats, Flags, _Local] | None:
        """In the flat tail a Newton step is about 1. If the likelihood still rises at the bound, go there at once."""
        room = self._room(z, step)
        hit = room <= room.min()
        moved, there = self._try(z, step, float(room.min()))
        if not float(there.gradient @ step) < 0:
            return None
        return self._snapped(moved, step, hit), hit, there

    def _snapped(self, z: Floats, step: Floats, hit: Flags) -> Floats:
        """With the utilities that reached their bound set exactly to it."""
        z[hit] = np.where(step > 0, self.high, self.low)[hit]
        return z

    def _advance(
        self, z: Floats, step: Floats, decrement: float, active: Flags, here: _Local
    ) -> tuple[Floats, Flags, _Local]:
        """Take the largest part of the step that stays in the box and decreases the value sufficiently."""
        room = self._room(z, step)
        nearest = float(room.min())
        length = min(1.0, nearest)
        slack = VALUE_NOISE * (1.0 + self.total)
        moved, there = self._try(z, step, length)
        while not there.value <= here.value - 1e-4 * length * decrement + slack:
            length /= 2
            if length < SHORTEST:
                raise NotConverged(0, length)
            moved, there = self._try(z, step, length)
        if length == nearest:
            hit = room <= nearest
            moved, active = self._snapped(moved, step, hit), active | hit
        return moved, active, there


def _solve(matrix: Floats, right: Floats, votes: float) -> Floats:
    """Solve a positive definite system. Where the logistic is too flat for Cholesky, solve a slightly damped one."""
    solved = linalg.solve(matrix, right)
    if solved is None:
        solved = linalg.solve(matrix + DAMPING * (1.0 + votes) * np.eye(len(matrix)), right)
    if solved is None:
        raise NotConverged(0, np.inf)
    return solved[0]


DAMPINGS = 0.0, 1e-12, 1e-9, 1e-6  # tried in turn where the likelihood is nearly flat: only the order matters


class Screen(NamedTuple):
    """Approximate values of boundary pairs (inside[m], outside[m]), and what `guess` needs."""

    inside: Ints
    outside: Ints
    values: Floats
    gaps: Floats
    resistances: Floats
    inverse: Floats

    def way(self, m: int) -> Floats:
        """The direction in which reversing pair m costs least, to second order; sums to zero."""
        direction: Floats = self.inverse[self.inside[m]] - self.inverse[self.outside[m]]
        return direction

    def guess(self, theta: Floats, m: int) -> Floats:
        """Where reversing pair m would move theta, to second order; ties the pair."""
        return theta - float(self.gaps[m] / self.resistances[m]) * self.way(m)


def screen(family: Family, tally: Tally, theta: Floats, inside: Ints, outside: Ints, margin: float) -> Screen:
    """Approximate the value of reversing each pair, theta'[inside] <= theta'[outside] - margin. Needs one group."""
    covariance = curvature_inverse(family, tally, theta)
    diagonal = covariance.diagonal()
    resistances = diagonal[inside] + diagonal[outside] - 2 * covariance[inside, outside]
    gaps = np.maximum(theta[inside] - theta[outside] + margin, 0.0)
    return Screen(inside, outside, gaps**2 / (2 * resistances), gaps, resistances, covariance)


def curvature_inverse(family: Family, tally: Tally, theta: Floats) -> Floats:
    """Inverse of the likelihood's curvature at theta, regular on the all-ones direction."""
    variance = family.moments(theta[tally.first] - theta[tally.second]).variance
    curvature = laplacian(tally.n, tally.edges, tally.counts * variance)
    curvature += curvature.trace() / tally.n**2
    for damping in DAMPINGS:
        curvature.ravel()[:: tally.n + 1] += damping * (1.0 + curvature.trace())
        if (factor := cholesky(curvature)) is not None:
            return inverse(factor)
    raise NotConverged(0, np.inf)
