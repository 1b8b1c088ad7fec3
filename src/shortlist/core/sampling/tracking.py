"""Rules that track an allocation: Oracle Tracking, Track-and-Stop, and two rules that know the truth.

Oracle Tracking is the paper's Algorithm 1: learn the oracle's allocation online as a two-player game, and track it. The
designer (w, over all pairs) maximises and an opponent (q, over boundary pairs) minimises the information rate; both use
entropic FTRL with gradients from one sampled boundary pair per round. Paper: Section 5, Algorithm 1.

`Oracle` and `OnlineOracle` know the true utilities, so the difference is the cost of learning. Paper: Section 7.

Track-and-Stop solves the oracle game at the current estimate at intervals, and follows its allocation: D-tracking with
forced exploration. Garivier & Kaufmann (2016), Section 3.1, with pairs for arms.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from shortlist.core.draws import Draws
from shortlist.core.estimate import Projection, Tie, hold, project, screen
from shortlist.core.evidence import Evidence
from shortlist.core.pairs import Floats, Ints, boundary, n_pairs, pair_numbers
from shortlist.core.problem import Problem, real
from shortlist.core.sampling.base import NO_PAIRS, deficits, hand_out
from shortlist.core.tally import expected_tally
from shortlist.errors import BadProblem, GapNotReached, TieAtCutoff

FEW, DRAWS = 4, 8  # a block of more than FEW rounds uses only DRAWS projections per stride
TRUST = 0.5  # nats that a weight may gain in one stride
NEAR_BEST = 2.0  # near the best response, screening is much more accurate than this factor
INSIDE = 1.0 - 1e-9  # rounding must not move an estimate at the boundary of Theta out of it


class Seen(NamedTuple):
    """A boundary pair when last drawn: direction of its alternative, where the next projection starts, and gamma."""

    shift: Floats
    gamma: float


class TrackingMemory(NamedTuple):
    """What the two players remember after `rounds` rounds; all arrays over pairs."""

    rounds: int
    w: Floats  # the designer's allocation now
    w_sum: Floats  # sum of the mixed targets so far: P in the paper
    gain_sum: Floats  # Psi^w
    loss_sum: Floats  # Psi^q
    seen: Mapping[int, Seen]  # each boundary pair when last drawn


class _Gradients(NamedTuple):
    """The gradients of a round: gains of the designer (all pairs), losses of the opponent (boundary pairs)."""

    gain: Floats
    loss: Floats
    rounds: int  # for how many rounds it may be used


class _Boundary:
    """The boundary pairs of theta_hat under the design w. Each is projected on demand, from its last projection."""

    def __init__(self, problem: Problem, theta_hat: Floats, memory: TrackingMemory) -> None:
        self.problem, self.theta_hat, self.w = problem, theta_hat, memory.w
        self.inside, self.outside = boundary(theta_hat, problem.k)
        self.pairs = pair_numbers(problem.n, self.inside, self.outside)
        self.seen = dict(memory.seen)

    def project(self, m: int) -> Projection:
        problem, pair = self.problem, int(self.pairs[m])
        tie = Tie(int(self.outside[m]), int(self.inside[m]), problem.margin)
        start = self.theta_hat + self.seen[pair].shift if pair in self.seen else None
        nearest = project(problem.family, self.theta_hat, self.w, problem.bound, tie, start)
        self.seen[pair] = Seen(nearest.theta_alt - self.theta_hat, nearest.gamma)
        return nearest

    def nearest(self) -> Projection:
        """The projection of the boundary pair with the smallest gamma, the likeliest tried first."""
        problem, family = self.problem, self.problem.family
        expected = expected_tally(family, self.theta_hat, hold(self.w))
        values = screen(family, expected, self.theta_hat, self.inside, self.outside, problem.margin).values
        order = np.argsort(values, kind="stable")
        best = self.project(int(order[0]))
        for m in order[1:]:
            if values[m] > NEAR_BEST * best.gamma:
                break
            best = min(best, self.project(int(m)), key=lambda nearest: nearest.gamma)
        return best

    def gammas(self) -> Floats:
        """gamma of every boundary pair when it was last drawn. Pairs that were never drawn are drawn now."""
        for m in (m for m, pair in enumerate(self.pairs.tolist()) if pair not in self.seen):
            self.project(m)
        return np.array([self.seen[pair].gamma for pair in self.pairs.tolist()])


@dataclass(frozen=True)
class OracleTracking:
    """alpha: learning rate t^-alpha. gamma: forced exploration t^-gamma.
    gradient: `sampled` as in the paper, or `full`, the opponent's exact best response each round (paper's remark)."""

    alpha: float = 0.2
    gamma: float = 1 / 3
    gradient: Literal["sampled", "full"] = "sampled"
    name: str = "oracle-tracking"
    wants: frozenset[str] = frozenset({"mle"})

    def __post_init__(self) -> None:
        if not 0 < real("alpha", self.alpha) < 1 or not 0 < real("gamma", self.gamma) < 1:
            raise BadProblem(f"alpha is {self.alpha} and gamma {self.gamma}; both must lie strictly between 0 and 1")
        if self.gradient not in ("sampled", "full"):
            raise BadProblem(f"gradient is {self.gradient!r}; choose sampled or full")

    def start(self, problem: Problem) -> TrackingMemory:
        size = n_pairs(problem.n)
        return TrackingMemory(0, np.full(size, 1 / size), np.zeros(size), np.zeros(size), np.zeros(size), {})

    def questions(
        self, memory: TrackingMemory, evidence: Evidence, pending: Ints, size: int, draws: Draws, avoid: Ints = NO_PAIRS
    ) -> tuple[Ints, Floats]:
        """Where P(t-1) + w~_t - N(t-1) is largest, w~ counted once for every question up to the last of `size`."""
        ahead = round(evidence.tally.votes) - memory.rounds + len(pending) + size
        w_sum = memory.w_sum + ahead * self._mixed(memory.w, memory.rounds + ahead)
        return hand_out(deficits(w_sum, evidence.tally, pending, avoid), size)

    def votes_left(self, memory: TrackingMemory, evidence: Evidence) -> None:
        return None

    def learn(
        self, memory: TrackingMemory, problem: Problem, evidence: Evidence, rounds: int, draws: Draws
    ) -> TrackingMemory:
        """Both players play `rounds` rounds against this estimate: lines 7 to 11 of Algorithm 1."""
        play = self._best_response if self.gradient == "full" else self._sampled if rounds <= FEW else self._expected
        end, rng = memory.rounds + rounds, draws.generator()
        while memory.rounds < end:
            game = _Boundary(problem, evidence.theta_hat, memory)
            memory = self._update(memory, game, play(memory, game, end - memory.rounds, rng))
        return memory

    def _update(self, memory: TrackingMemory, game: _Boundary, gradients: _Gradients) -> TrackingMemory:
        """Psi^w and Psi^q grow by the gradients, w = softmax(mu Psi^w)."""
        gain, loss, rounds = gradients
        t = memory.rounds + rounds
        gain_sum, loss_sum = memory.gain_sum + rounds * gain, memory.loss_sum.copy()
        loss_sum[game.pairs] += rounds * loss
        w_sum = memory.w_sum + rounds * self._mixed(memory.w, t)
        return TrackingMemory(t, _softmax(self._step(t + 1) * gain_sum), w_sum, gain_sum, loss_sum, game.seen)

    def _step(self, t: int) -> float:
        """mu_t = t^-alpha."""
        return float(t**-self.alpha)

    def _mixed(self, w: Floats, t: int) -> Floats:
        """w~_t = (1 - rho_t) w_t + rho_t u, rho_t = t^-gamma."""
        rho = float(t**-self.gamma)
        return (1 - rho) * w + rho / len(w)

    def _sampled(self, memory: TrackingMemory, game: _Boundary, left: int, rng: np.random.Generator) -> _Gradients:
        """Unbiased gradients from one boundary pair drawn uniformly. Paper: Eq. (3)."""
        m, size = int(rng.integers(len(game.pairs))), len(game.pairs)
        nearest = game.project(m)
        loss = np.zeros(size)
        loss[m] = size * nearest.gamma
        return _Gradients(size * self._opponent(memory, game)[m] * nearest.divergence, loss, 1)

    def _expected(self, memory: TrackingMemory, game: _Boundary, left: int, rng: np.random.Generator) -> _Gradients:
        """For simulated blocks: the same in expectation, from few projections. Pairs are drawn mostly where q is large,
        and the loss of every boundary pair is its gamma when last drawn."""
        q, size = self._opponent(memory, game), len(game.pairs)
        chance = 0.5 * q + 0.5 / size
        gain = np.zeros(len(memory.w))
        for m in rng.choice(size, DRAWS, p=chance):
            gain += q[m] / chance[m] / DRAWS * game.project(int(m)).divergence
        return _Gradients(gain, game.gammas(), self._stride(memory, gain, left))

    def _best_response(
        self, memory: TrackingMemory, game: _Boundary, left: int, rng: np.random.Generator
    ) -> _Gradients:
        """A supergradient of min gamma at the boundary pair that attains it. It does not need q."""
        best = game.nearest()
        return _Gradients(best.divergence, np.zeros(len(game.pairs)), self._stride(memory, best.divergence, left))

    def _stride(self, memory: TrackingMemory, gain: Floats, left: int) -> int:
        """Rounds for which w may follow one gradient: a weight grows by at most a factor e^TRUST."""
        fastest = self._step(memory.rounds + 1) * float(gain.max() - memory.w @ gain)
        return left if fastest * left <= TRUST else max(1, int(TRUST / fastest))

    def _opponent(self, memory: TrackingMemory, game: _Boundary) -> Floats:
        """q_t: exponential weights restricted to the boundary."""
        return _softmax(-self._step(memory.rounds + 1) * memory.loss_sum[game.pairs])


def _softmax(score: Floats) -> Floats:
    weights: Floats = np.exp(score - score.max())
    return weights / float(weights.sum())


@dataclass(frozen=True)
class Oracle:
    """Track the optimal allocation w_star of the true utilities."""

    w_star: Floats
    name: str = "oracle"
    wants: frozenset[str] = frozenset()

    def start(self, problem: Problem) -> None:
        return None

    def questions(
        self, memory: None, evidence: Evidence, pending: Ints, size: int, draws: Draws, avoid: Ints = NO_PAIRS
    ) -> tuple[Ints, Floats]:
        asked = evidence.tally.votes + len(pending) + size
        return hand_out(deficits(asked * self.w_star, evidence.tally, pending, avoid), size)

    def learn(self, memory: None, problem: Problem, evidence: Evidence, rounds: int, draws: Draws) -> None:
        return None

    def votes_left(self, memory: None, evidence: Evidence) -> None:
        return None


@dataclass(frozen=True)
class OnlineOracle:
    """Algorithm 1 with theta in place of its estimate."""

    theta: Floats
    inner: OracleTracking = field(default_factory=OracleTracking)
    name: str = "online-oracle"
    wants: frozenset[str] = frozenset()

    def start(self, problem: Problem) -> TrackingMemory:
        return self.inner.start(problem)

    def questions(
        self, memory: TrackingMemory, evidence: Evidence, pending: Ints, size: int, draws: Draws, avoid: Ints = NO_PAIRS
    ) -> tuple[Ints, Floats]:
        return self.inner.questions(memory, evidence, pending, size, draws, avoid)

    def learn(
        self, memory: TrackingMemory, problem: Problem, evidence: Evidence, rounds: int, draws: Draws
    ) -> TrackingMemory:
        return self.inner.learn(memory, problem, evidence._replace(mle=self.theta), rounds, draws)

    def votes_left(self, memory: TrackingMemory, evidence: Evidence) -> None:
        return None


class TrackAndStopMemory(NamedTuple):
    """The allocation to follow, and how many votes there were when it was computed."""

    w: Floats
    solved: float


@dataclass(frozen=True)
class TrackAndStop:
    """growth: solve the game again when votes have grown by this share. gap: relative precision of the solution."""

    growth: float = 0.05
    gap: float = 0.05
    name: str = "track-and-stop"
    wants: frozenset[str] = frozenset({"mle"})

    def __post_init__(self) -> None:
        if not real("growth", self.growth) >= 0:
            raise BadProblem(f"growth is {self.growth}; the solving interval is a share of the votes, 0 or more")
        if not real("gap", self.gap) > 0:
            raise BadProblem(f"gap is {self.gap}; give a positive number, such as 0.05")

    def start(self, problem: Problem) -> TrackAndStopMemory:
        size = n_pairs(problem.n)
        return TrackAndStopMemory(np.full(size, 1 / size), 0.0)

    def questions(
        self, memory: TrackAndStopMemory, evidence: Evidence, pending: Ints, size: int, draws: Draws,
        avoid: Ints = NO_PAIRS,
    ) -> tuple[Ints, Floats]:  # fmt: skip
        """Pairs with fewer than sqrt(t) - P/2 votes first, the least asked first; then where t w - N is largest."""
        t, pairs = evidence.tally.votes + len(pending) + size - 1, len(memory.w)
        short = deficits(np.full(pairs, np.sqrt(t) - pairs / 2), evidence.tally, pending, avoid)
        forced = np.ceil(np.maximum(short, 0.0))
        left = size - int(forced.sum())
        if left <= 0:
            return hand_out(short, size)
        chosen, counts = hand_out(deficits(t * memory.w, evidence.tally, pending, avoid) - forced, left)
        forced[chosen] += counts
        asked = np.flatnonzero(forced)
        return asked, forced[asked]

    def learn(
        self, memory: TrackAndStopMemory, problem: Problem, evidence: Evidence, rounds: int, draws: Draws
    ) -> TrackAndStopMemory:
        """The oracle's allocation at the estimate, once there are as many votes as pairs; else the old one."""
        votes = evidence.tally.votes
        if votes < max(len(memory.w), (1 + self.growth) * memory.solved):
            return memory
        from shortlist.core.oracle import solve_oracle  # imports a linear-programming library

        theta, bound, start = INSIDE * evidence.theta_hat, problem.bound, memory.w if memory.solved else None
        try:
            solved = solve_oracle(theta, problem.k, problem.family, bound=bound, rel_gap=self.gap, start=start)
        except TieAtCutoff:
            return memory
        except GapNotReached:
            return TrackAndStopMemory(memory.w, votes)
        return TrackAndStopMemory(solved.weights, votes)

    def votes_left(self, memory: TrackAndStopMemory, evidence: Evidence) -> None:
        return None
