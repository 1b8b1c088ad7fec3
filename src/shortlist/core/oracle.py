"""The oracle game: the best rate of identifying the top k if theta is known, and the design that reaches it.

    Gamma*(theta) = max over designs w of min over boundary pairs (u, v) of gamma_uv(w)

Paper: Section 4. Both players learn: the design by multiplicative updates, the adversary by optimistic exponential
weights. Weak duality certifies the bracket, however the players learned. Votes play no part here.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from shortlist.core.estimate import Tie, reverse, screen
from shortlist.core.families import Family, make_family
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import TINY_GAP, Floats, Ints, all_pairs, boundary, n_pairs
from shortlist.core.problem import real, whole
from shortlist.core.tally import expected_tally
from shortlist.errors import BadProblem, GapNotReached, TieAtCutoff

DESIGN_STEP = 1.0  # exponent of the design's update; beyond 1 tree-like designs oscillate
ADVERSARY_STEP = 0.5  # times DESIGN_STEP it must stay below 1, or the two players oscillate
POLISH_EVERY = 10  # rounds between checks of all boundary pairs and of the best mixture
MAX_ROUNDS = 5000
FLOOR = 1e-4  # share of the allowed gap spent on keeping every pair in the design
NEARLY = 0.05  # at a good design, binding pairs are within this share of the rate
DOUBT = 0.1  # uniform share of an adversary's first mixture, so that every pair in play has some weight
DEFAULT_BOUND, HEADROOM = 10.0, 2.0


@dataclass(frozen=True)
class Oracle:
    """The value of the game, rate <= Gamma* <= rate_upper, and a design that reaches `rate`.

    Gamma* is the information that the best design gains per comparison against the worst alternative.
    """

    rate: float
    rate_upper: float
    weights: Floats  # w_star over all pairs, in the order of their numbers

    def lower_bound(self, delta: float) -> float:
        """Comparisons that any delta-correct method needs in expectation: kl(delta, 1 - delta) / Gamma*.

        Proved in the paper, Section 3 (win/loss or Gaussian votes). Divides by rate_upper, so it is never too high.
        """
        if not 0.0 < delta < 1.0:
            raise BadProblem(f"delta is {delta}; give an error probability between 0 and 1")
        d = min(delta, 0.5)  # kl increases again beyond 1/2, where the bound says nothing
        return (1.0 - 2.0 * d) * math.log((1.0 - d) / d) / self.rate_upper


def solve_oracle(
    utilities: ArrayLike,
    k: int,
    family: str | Family = "bradley-terry",
    sigma: float = 1.0,
    bound: float | None = None,
    rel_gap: float = 0.01,
    start: Floats | None = None,
) -> Oracle:
    """The oracle's design for known utilities, with rate_upper <= (1 + rel_gap) rate.

        rate = min_uv gamma_uv(w),    rate_upper = max_p sum_m q_m d(eta_p, eta_p(theta_m)), theta_m alternatives

    Paper: Section 4. Utilities are centred. `bound` is the box |theta| <= bound that alternatives must share; left out,
    it is the larger of 10 and twice the largest utility. `start` is a design to begin from, such as one for similar
    utilities.
    Raises BadProblem, TieAtCutoff, GapNotReached.
    """
    game = _make_game(utilities, k, make_family(family, sigma), bound)
    if not real("rel_gap", rel_gap) > 0.0:
        raise BadProblem(f"rel_gap is {rel_gap}; give a positive number, such as 0.01")
    with one_thread():
        return _solve(_Search(game, rel_gap, _start_design(game, start)), warm=start is not None)


def _solve(search: "_Search", warm: bool) -> Oracle:
    if warm:
        search.catch_up()
    for number in range(1, MAX_ROUNDS + 1):
        search.play(number)
        if search.closed and search.certify():
            return Oracle(search.rate, search.rate_upper, search.design)
    search.certify()
    raise GapNotReached(MAX_ROUNDS, search.rate, search.rate_upper)


def _make_game(utilities: ArrayLike, k: int, family: Family, bound: float | None) -> "_Game":
    try:
        theta = np.array(utilities, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadProblem("utilities must be a flat list of at least two finite numbers") from None
    if theta.ndim != 1 or len(theta) < 2 or not np.all(np.isfinite(theta)):
        raise BadProblem("utilities must be a flat list of at least two finite numbers")
    if whole("k", k, 1) >= len(theta):
        raise BadProblem(f"k is {k}; with {len(theta)} items it must be from 1 to {len(theta) - 1}")
    theta -= theta.mean()
    ranked = np.sort(theta)[::-1]
    if ranked[k - 1] - ranked[k] < TINY_GAP:
        raise TieAtCutoff(k)
    largest = float(np.abs(theta).max())
    box = min(max(DEFAULT_BOUND, HEADROOM * largest), family.max_bound) if bound is None else bound
    if not 0 < real("bound", box) <= family.max_bound:
        raise BadProblem(f"bound is {bound}; the largest utility must lie in (0, {family.max_bound:g}]")
    if largest > box:
        raise BadProblem(f"the largest centred utility is {largest:.4g}, outside the bound {box:g}")
    return _Game(family, theta, k, box)


def _start_design(game: "_Game", start: Floats | None) -> Floats:
    size = n_pairs(len(game.theta))
    if start is None:
        return np.full(size, 1.0 / size)
    start = np.asarray(start, dtype=np.float64)
    if start.shape != (size,) or not np.all(start >= 0.0) or not 0.0 < start.sum() < math.inf:
        raise BadProblem(f"start must have {size} weights, one per pair, none negative and not all zero")
    return np.asarray(start / start.sum(), dtype=np.float64)


@dataclass(frozen=True)
class _Game:
    """The payoff of the game: gamma_uv(w) and its gradient."""

    family: Family
    theta: Floats
    k: int
    bound: float

    @cached_property
    def boundary(self) -> tuple[Ints, Ints]:
        return boundary(self.theta, self.k)

    @cached_property
    def eta(self) -> Floats:
        first, second = all_pairs(len(self.theta))
        return self.theta[first] - self.theta[second]

    @cached_property
    def theta_alt(self) -> Floats:
        """The last projection of every boundary pair, where the next one starts."""
        return np.tile(self.theta, (len(self.boundary[0]), 1))

    def at_the_line(self) -> Ints:
        """The n-1 boundary pairs with the last item inside or the first outside: often only these are binding."""
        inside, outside = self.boundary
        last_in, first_out = self.theta[inside].min(), self.theta[outside].max()
        return np.flatnonzero((self.theta[inside] == last_in) | (self.theta[outside] == first_out))

    def respond(self, w: Floats, members: Ints) -> tuple[Floats, Floats]:
        """gamma_uv(w) of some boundary pairs, and their gradients d(eta_p, eta_p(theta*_uv)), one row each."""
        first, second = all_pairs(len(self.theta))
        tally = expected_tally(self.family, self.theta, w)
        for m in members:
            tie = Tie(better=int(self.boundary[1][m]), worse=int(self.boundary[0][m]))
            self.theta_alt[m] = reverse(self.family, tally, self.bound, self.theta, tie, self.theta_alt[m])
        alt = self.theta_alt[members]
        divergences = self.family.divergence(self.eta, alt[:, first] - alt[:, second])
        return divergences @ w, divergences

    def likeliest(self, w: Floats) -> Ints:
        """All boundary pairs, those that seem to have the smallest gamma_uv(w) first."""
        tally = expected_tally(self.family, self.theta, w)
        return np.argsort(screen(self.family, tally, self.theta, *self.boundary, 0.0).values)


class _Search:
    """The bracket so far, and where the two players stand. `members` are the boundary pairs in play."""

    def __init__(self, game: _Game, rel_gap: float, w: Floats) -> None:
        self.game, self.rel_gap = game, rel_gap
        self.w = self.design = self._keep_all(w)
        self.rate, self.rate_upper = 0.0, math.inf
        self.members = game.at_the_line()
        self.q = np.full(len(self.members), 1.0 / len(self.members))
        self.last: Floats | None = None  # log gamma of the round before

    @property
    def closed(self) -> bool:
        return self.rate_upper <= (1.0 + self.rel_gap) * self.rate

    def catch_up(self) -> None:
        """If the design is already good, start from the best mixture instead of a uniform one."""
        gamma, _ = self.game.respond(self.w, self.members)
        self._invite((1.0 + NEARLY) * float(gamma.min()))
        gamma, divergences = self.game.respond(self.w, self.members)
        q = best_mixture(divergences, float(gamma.min()))
        self._bound_above(q, divergences)
        self.q = (1.0 - DOUBT) * q + DOUBT / len(q)

    def play(self, number: int) -> None:
        """One round: the adversary answers the design, then the design answers the adversary."""
        gamma, divergences = self.game.respond(self.w, self.members)
        if gamma.min() > self.rate:
            self.rate, self.design = float(gamma.min()), self.w
        self._learn_adversary(np.log(gamma))
        gain = self._bound_above(self.q, divergences)
        if number % POLISH_EVERY == 0:
            self._bound_above(best_mixture(divergences, self.rate), divergences)
            self._invite(float(gamma.min()))
        self._learn_design(gain)

    def _learn_adversary(self, log_gamma: Floats) -> None:
        """q ~ exp(-step log gamma), optimistic: the last change is assumed to happen again."""
        ahead = log_gamma if self.last is None else 2.0 * log_gamma - self.last
        self.last = log_gamma
        q = self.q * np.exp(-ADVERSARY_STEP * (ahead - ahead.min()))
        self.q = q / q.sum()

    def _learn_design(self, gain: Floats) -> None:
        """w_p ~ w_p (sum_m q_m d_p)^step; every pair keeps a positive share, because it may be needed later."""
        w = self.w * gain**DESIGN_STEP
        self.w = self._keep_all(w / w.sum())

    def _keep_all(self, w: Floats) -> Floats:
        kept = np.maximum(w, FLOOR * self.rel_gap / len(w))
        normalised: Floats = kept / kept.sum()
        return normalised

    def _bound_above(self, q: Floats, divergences: Floats) -> Floats:
        """max_p sum_m q_m d_p >= Gamma*: no design gains more than that against this mixture."""
        gain: Floats = q @ divergences
        self.rate_upper = min(self.rate_upper, float(gain.max()))
        return gain

    def _invite(self, rate: float) -> None:
        """Check the likeliest boundary pairs that are not in play, and add those that are binding."""
        order = self.game.likeliest(self.w)
        others = order[~np.isin(order, self.members)][: len(self.members)]
        self._join(others[self.game.respond(self.w, others)[0] < rate])

    def _join(self, others: Ints) -> None:
        if len(others) == 0:
            return
        newcomers = np.full(len(others), self.q.mean())
        self.members, self.q = np.append(self.members, others), np.append(self.q, newcomers)
        self.q /= self.q.sum()
        self.rate, self.last = 0.0, None  # the old rate was for a game without them

    def certify(self) -> bool:
        """Whether the bracket is closed over all boundary pairs. If not, the pairs that violate it are added."""
        everyone = np.arange(len(self.game.boundary[0]))
        gamma, _ = self.game.respond(self.design, everyone)
        self._join(np.setdiff1d(everyone[gamma < self.rate], self.members))
        self.rate = float(gamma.min())
        return self.closed


def best_mixture(divergences: Floats, scale: float) -> Floats:
    """The mixture q of alternatives that is worst for the best design: min_q max_p sum_m q_m d_p, a linear program.

    `scale` is approximately the value; it is needed because the solver's tolerances are absolute.
    """
    m, size = divergences.shape
    above = np.column_stack([divergences.T / scale, -np.ones(size)])
    total = np.append(np.ones(m), 0.0)[None]
    cost = np.append(np.zeros(m), 1.0)
    solved = linprog(cost, A_ub=above, b_ub=np.zeros(size), A_eq=total, b_eq=[1.0], method="highs")
    if solved.x is None:
        return np.full(m, 1.0 / m)
    q = np.maximum(solved.x[:m], 0.0)
    normalised: Floats = q / q.sum()
    return normalised
