"""The paper's Algorithm 1: learn the oracle's allocation online as a two-player game, and track it.

The designer (w, over all pairs) maximises and an opponent (q, over boundary pairs) minimises the information rate;
both play entropic FTRL on gradients from one sampled boundary pair a round. Paper: Section 5, Algorithm 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from shortlist.errors import BadProblem
from shortlist.estimate import Projection, Tie, project
from shortlist.pairs import Floats, Ints, boundary, n_pairs, pair_numbers
from shortlist.problem import Problem
from shortlist.resistance import screen
from shortlist.tally import Tally, expected_tally
from shortlist.tracking import deficits

MAX_DRAWS = 4  # boundary pairs sampled for one simulated block of rounds
NEAR_BEST = 2.0  # screening is good to much better than this factor near the best response


class Memory(NamedTuple):
    """What the two players remember after `rounds` rounds; all arrays over pairs."""

    rounds: int
    w: Floats  # the designer's allocation now
    w_sum: Floats  # sum of the mixed targets so far: P in the paper
    gain_sum: Floats  # Psi^w
    loss_sum: Floats  # Psi^q
    shifts: Mapping[int, Floats]  # theta* - theta_hat of each boundary pair when last drawn: where to start next time


class _Gradients(NamedTuple):
    """One round's gain for the designer, and what the opponent remembers after it."""

    gain: Floats
    loss_sum: Floats
    shifts: Mapping[int, Floats]


@dataclass(frozen=True)
class OracleTracking:
    """alpha: learning rate t^-alpha. gamma: forced exploration t^-gamma.
    gradient: `sampled` as in the paper, or `full`, the opponent's exact best response each round (paper's remark)."""

    alpha: float = 0.2
    gamma: float = 1 / 3
    gradient: Literal["sampled", "full"] = "sampled"
    name: str = "oracle-tracking"

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1 or not 0 < self.gamma < 1:
            raise BadProblem(f"alpha is {self.alpha} and gamma {self.gamma}; both must lie strictly between 0 and 1")
        if self.gradient not in ("sampled", "full"):
            raise BadProblem(f"gradient is {self.gradient!r}; choose sampled or full")

    def start(self, problem: Problem) -> Memory:
        size = n_pairs(problem.n)
        return Memory(0, np.full(size, 1 / size), np.zeros(size), np.zeros(size), np.zeros(size), {})

    def behind(self, memory: Memory, tally: Tally, out: Ints, size: int) -> Floats:
        """P(t-1) + w~_t - N(t-1), with w~ counted once for every question from here to the last of `size`."""
        ahead = len(out) + size
        return deficits(memory.w_sum + ahead * self._mixed(memory.w, memory.rounds + ahead), tally, out)

    def learn(
        self, memory: Memory, problem: Problem, theta_hat: Floats, rounds: int, rng: np.random.Generator
    ) -> Memory:
        """One round of both players: lines 7 to 11 of Algorithm 1."""
        t = memory.rounds + rounds
        play = self._best_response if self.gradient == "full" else self._sampled
        gain, loss_sum, shifts = play(memory, problem, theta_hat, rounds, rng)
        gain_sum = memory.gain_sum + gain
        w_sum = memory.w_sum + rounds * self._mixed(memory.w, t)
        return Memory(t, _softmax(self._step(t + 1) * gain_sum), w_sum, gain_sum, loss_sum, shifts)

    def _step(self, t: int) -> float:
        """mu_t = t^-alpha."""
        return float(t**-self.alpha)

    def _mixed(self, w: Floats, t: int) -> Floats:
        """w~_t = (1 - rho_t) w_t + rho_t u, rho_t = t^-gamma."""
        rho = float(t**-self.gamma)
        return (1 - rho) * w + rho / len(w)

    def _sampled(
        self, memory: Memory, problem: Problem, theta_hat: Floats, rounds: int, rng: np.random.Generator
    ) -> _Gradients:
        """Unbiased gradients from boundary pairs drawn uniformly: one a round. Paper: Eq. (4)."""
        inside, outside = boundary(theta_hat, problem.k)
        pairs = pair_numbers(problem.n, inside, outside)
        q = _softmax(-self._step(memory.rounds + 1) * memory.loss_sum[pairs])
        draws = min(rounds, MAX_DRAWS, len(pairs))
        weight = len(pairs) * rounds / draws
        gain, loss_sum, shifts = np.zeros(len(memory.w)), memory.loss_sum.copy(), dict(memory.shifts)
        for m in rng.choice(len(pairs), draws, replace=False):
            pair = int(pairs[m])
            nearest = _project(problem, theta_hat, memory.w, int(inside[m]), int(outside[m]), shifts.get(pair))
            gain += weight * q[m] * nearest.divergence
            loss_sum[pair] += weight * nearest.gamma
            shifts[pair] = nearest.theta_alt - theta_hat
        return _Gradients(gain, loss_sum, shifts)

    def _best_response(
        self, memory: Memory, problem: Problem, theta_hat: Floats, rounds: int, rng: np.random.Generator
    ) -> _Gradients:
        """A supergradient of min gamma at the boundary pair that attains it; no q is needed."""
        inside, outside = boundary(theta_hat, problem.k)
        expected = expected_tally(problem.family, theta_hat, memory.w)
        screened = screen(problem.family, expected, theta_hat, inside, outside, problem.margin)
        best: Projection | None = None
        for m in np.argsort(screened.values, kind="stable"):
            if best is not None and screened.values[m] > NEAR_BEST * best.gamma:
                break
            nearest = _project(problem, theta_hat, memory.w, int(inside[m]), int(outside[m]))
            best = nearest if best is None or nearest.gamma < best.gamma else best
        assert best is not None
        return _Gradients(rounds * best.divergence, memory.loss_sum, memory.shifts)


def _project(
    problem: Problem, theta: Floats, w: Floats, inside: int, outside: int, shift: Floats | None = None
) -> Projection:
    start = None if shift is None else theta + shift
    return project(problem.family, theta, w, problem.bound, Tie(outside, inside, problem.margin), start)


def _softmax(score: Floats) -> Floats:
    weights: Floats = np.exp(score - score.max())
    return weights / float(weights.sum())
