"""Active ranking: Heckel, Shah, Ramchandran and Wainwright, Active Ranking from Pairwise Comparisons and When
Parametric Assumptions Do Not Help, Annals of Statistics 2019. Guarantee: the exact top k with probability at least
1 - delta, if votes are independent, every p_ij is fixed, and the k-th and (k+1)-th best Borda scores differ. It is the
top k by Borda score: under strong stochastic transitivity, so under Bradley-Terry, the top k itself. Scores, radius
and what is known about it are those of borda_lucb.py.

As published, an item must be c = 4 radii clear of the cutoff. `active-ranking-tight` has c = 2, which is enough for two
groups. Suppose no top item's score is more than alpha too low and no other's more than alpha too high. Were an outsider
accepted, each of the m top items still open would stand at most 2 alpha below it, so above the (m+1)-th best score;
with it that makes m+1 items above the (m+1)-th, which cannot be. Likewise for a rejected top item.
"""

import numpy as np

from shortlist.baselines.borda_lucb import error_level, radius
from shortlist.baselines.common import Result, budget, compiled
from shortlist.core.pairs import Floats, Ints

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
