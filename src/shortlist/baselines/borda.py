"""Two procedures that find the top k by Borda score; a score tau_i is the mean of p_ij over all others. Guarantee:
the exact top k with probability at least 1 - delta, if votes are independent, every p_ij is fixed, and the k-th and
(k+1)-th best Borda scores differ. Under strong stochastic transitivity, so under Bradley-Terry, it is the top k itself.

Borda-LUCB: Heckel, Simchowitz, Ramchandran and Wainwright, Approximate Ranking from Pairwise Comparisons, AISTATS 2018
(Hamming-LUCB with h = 0). The proof needs n one-sided events, each failing with probability at most delta / n. The
paper states its radius for errors below 0.0005; at larger ones fair coins left it less often than they may, which is
not a proof.

Active ranking: Heckel, Shah, Ramchandran and Wainwright, Active Ranking from Pairwise Comparisons and When Parametric
Assumptions Do Not Help, Annals of Statistics 2019, with the same scores and radius. As published, an item must be c = 4
radii clear of the cutoff. `active-ranking-tight` has c = 2, which is enough for two groups. Suppose no top item's score
is more than alpha too low and no other's more than alpha too high. Were an outsider accepted, each of the m top items
still open would be at most 2 alpha below it, so above the (m+1)-th best score; with it that makes m+1 items above the
(m+1)-th, which cannot be. Likewise for a rejected top item.
"""

import math
from typing import Any

import numpy as np

from shortlist.baselines import Result, budget, compiled
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


ROUNDS = 1_000  # between two chances for Ctrl-C


@compiled
def sort_items(items: Ints, won: Ints) -> None:
    """Best first, by insertion: one round changes little."""
    for place in range(1, len(items)):
        i = items[place]
        while place > 0 and won[items[place - 1]] < won[i]:
            items[place] = items[place - 1]
            place -= 1
        items[place] = i


@compiled
def play_rounds(rng: np.random.Generator, wins: Floats, items: Ints, won: Ints, t: int, m: int, margins: Floats) -> int:
    """Rounds until an item is clear of the cutoff, at most one for each margin; how many have then been played in all.

    `items` is sorted by `won`, which is counted up."""
    for margin in margins:
        t += 1
        for i in items:
            j = int(rng.random() * (len(wins) - 1))  # an opponent from all others, decided or not
            won[i] += rng.random() < wins[i, j + (j >= i)]
        sort_items(items, won)
        best, last_in, first_out, worst = won[items[0]], won[items[m - 1]], won[items[m]], won[items[-1]]
        if best / t > first_out / t + margin or worst / t < last_in / t - margin:
            break
    return t


def _active_ranking(
    wins: Floats, k: int, delta: float, rng: np.random.Generator, max_votes: int | None, c: float
) -> Result:
    n, left = len(wins), budget(max_votes)
    level = error_level(n, delta)
    items, won, accepted = np.arange(n), np.zeros(n, dtype=np.int64), list[int]()
    m, t = k, 0
    while 0 < m < len(items) <= left:
        rounds = min(ROUNDS, left // len(items))
        margins = c * radius(level, np.arange(t + 1, t + rounds + 1))
        now = play_rounds(rng, wins, items, won, t, m, margins)
        left -= (now - t) * len(items)
        margin, t = margins[now - t - 1], now
        score = won[items] / t  # best first
        accept, reject = score > score[m] + margin, score < score[m - 1] - margin
        accepted += items[accept].tolist()
        items, m = items[~(accept | reject)], k - len(accepted)
    top = sorted(accepted + items[:m].tolist())
    return Result(tuple(top), budget(max_votes) - left, not 0 < m < len(items))


def active_ranking(
    wins: Floats, k: int, delta: float, rng: np.random.Generator, max_votes: int | None = None
) -> Result:
    """As published: each round every open item meets a random other; out or in at c = 4 radii from the cutoff."""
    return _active_ranking(wins, k, delta, rng, max_votes, 4.0)


def active_ranking_tight(
    wins: Floats, k: int, delta: float, rng: np.random.Generator, max_votes: int | None = None
) -> Result:
    """The same with c = 2."""
    return _active_ranking(wins, k, delta, rng, max_votes, 2.0)
