"""Borda-LUCB: Heckel, Simchowitz, Ramchandran and Wainwright, Approximate Ranking from Pairwise Comparisons, AISTATS
2018 (Hamming-LUCB with h = 0). Guarantee: the exact top k with probability at least 1 - delta, if votes are
independent, every p_ij is fixed, and the k-th and (k+1)-th best Borda scores differ; a score tau_i is the mean of p_ij
over all others. It is the top k by Borda score: under strong stochastic transitivity, so under Bradley-Terry, the
top k itself.

The proof needs n one-sided events, each failing with probability at most delta / n. The paper states its radius for
errors below 0.0005; at larger ones fair coins left it less often than they may, which is not a proof.
"""

import math
from typing import Any

import numpy as np

from shortlist.baselines.common import Result, budget, compiled
from shortlist.core.pairs import Floats, Ints

STEPS = 1_000_000  # between two chances for Ctrl-C


def error_level(n: int, delta: float) -> float:
    """log(1/d) + 0.75 log log(1/d) with d = delta / n."""
    d = delta / n
    return math.log(1 / d) + 0.75 * math.log(math.log(1 / d))


@compiled
def radius(level: float, t: Any) -> Any:
    """alpha_t = sqrt(beta_t / 2t) with beta_t = level + 1.5 log(1 + log(t / 2)); t is a number or an array."""
    return np.sqrt((level + 1.5 * np.log(1 + np.log(t / 2))) / (2 * t))


@compiled
def beats_somebody(rng: np.random.Generator, wins: Floats, i: int) -> bool:
    """Does i beat an opponent drawn from all others?"""
    j = int(rng.random() * (len(wins) - 1))  # rng.integers is ten times slower here
    return bool(rng.random() < wins[i, j + (j >= i)])


@compiled
def climb(rng: np.random.Generator, wins: Floats, won: Ints, times: Ints, top: Ints, level: float, steps: int) -> bool:
    """At most that many steps; did the top part from the rest? `won`, `times` and the marks `top` are updated."""
    score, alpha = won / times, radius(level, times)
    while True:
        low = high = d1 = d2 = -1
        for i in range(len(wins)):
            if top[i]:
                low = i if low < 0 or score[i] <= score[low] else low
                d1 = i if d1 < 0 or score[i] - alpha[i] < score[d1] - alpha[d1] else d1
            else:
                high = i if high < 0 or score[i] > score[high] else high
                d2 = i if d2 < 0 or score[i] + alpha[i] > score[d2] + alpha[d2] else d2
        if score[high] > score[low]:
            top[high], top[low] = 1, 0
            continue
        if score[d1] - alpha[d1] >= score[d2] + alpha[d2]:
            return True
        if steps == 0:
            return False
        steps -= 1
        for i in (d1, d2):
            won[i] += beats_somebody(rng, wins, i)
            times[i] += 1
            score[i], alpha[i] = won[i] / times[i], radius(level, times[i])


def borda_lucb(wins: Floats, k: int, delta: float, rng: np.random.Generator, max_votes: int | None = None) -> Result:
    """Ask the weakest of the top k and the strongest of the rest, by their confidence bounds, until these part."""
    n, most = len(wins), budget(max_votes)
    level = error_level(n, delta)
    won, times, top = np.zeros((3, n), dtype=np.int64)
    for i in range(min(n, most)):
        won[i] += beats_somebody(rng, wins, i)
        times[i] += 1
    top[np.argsort(-won, kind="stable")[:k]] = 1
    certified = False
    while not certified and most - times.sum() >= 2:
        steps = min(STEPS, int(most - times.sum()) // 2)
        certified = climb(rng, wins, won, times, top, level, steps)
    return Result(tuple(map(int, np.flatnonzero(top))), int(times.sum()), certified)
