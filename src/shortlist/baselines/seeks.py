"""SEEKS and SEEKS-v2: Ren, Liu and Shroff, The Sample Complexity of Best-k Items Selection from Pairwise Comparisons,
ICML 2020. Guarantee (Theorem 8): the exact top k with probability at least 1 - delta, for delta < 1/2, if votes are
independent, every p_ij is fixed and none is 1/2, with strong stochastic transitivity (p_il >= max(p_ij, p_jl) when
i is better than j and j better than l) and the stochastic triangle inequality (|p_il - 1/2| <= |p_ij - 1/2| +
|p_jl - 1/2|). Bradley-Terry has both. A tie at the cutoff is never decided.

Round t compares every open item with a pivot v near the k-th best, found by selections that are good up to 2^-t / 3.
Two errors are corrected, in line with the proof: eps_t contains eps (left out in print), and rounds continue until k
items in all are chosen (the released code compares with the number still missing, and is often wrong).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shortlist.baselines import Result, budget, compiled
from shortlist.core.pairs import Floats, Ints

UP, MID, DOWN, OUT_OF_BUDGET = 1, 0, -1, -2


@compiled
def distribute(
    rng: np.random.Generator, p: float, eps: float, s_up: float, s_down: float, delta: float, most: int
) -> tuple[int, int]:
    """DI: is p above 1/2 + s_up, below 1/2 - s_down, or between? With the comparisons made, at most `most`.

    With probability 1 - delta a p beyond either line by eps is UP or DOWN, and none on the other side is; a p between
    the lines is MID with probability 1 - 1.5 delta (Lemma 3 states 1 - delta; nothing depends on it).
    """
    t_max = math.ceil(2 / eps**2 * math.log(4 / delta))
    won = 0
    for t in range(1, min(t_max, most) + 1):
        won += rng.random() < p
        b_t = math.sqrt(math.log(math.pi**2 * float(t) ** 2 / (3 * delta)) / (2 * t))
        if won / t - b_t > 0.5 + s_up:
            return UP, t
        if won / t + b_t < 0.5 - s_down:
            return DOWN, t
    if most < t_max:
        return OUT_OF_BUDGET, most
    if won / t_max > 0.5 + eps / 2 + s_up:
        return UP, t_max
    if won / t_max < 0.5 - eps / 2 - s_down:
        return DOWN, t_max
    return MID, t_max


@compiled
def distribute_each(
    rng: np.random.Generator, p: Floats, eps: float, shift: float, delta: float, most: int
) -> tuple[Ints, int]:
    """DI for each p in turn, with fresh comparisons."""
    answers = np.full(len(p), OUT_OF_BUDGET)
    spent = 0
    for i in range(len(p)):
        answers[i], made = distribute(rng, p[i], eps, shift, shift, delta, most - spent)
        spent += made
        if answers[i] == OUT_OF_BUDGET:
            break
    return answers, spent


class OutOfBudget(Exception):
    """Ends a run from inside its selections."""


@dataclass
class Counter:
    """Comparisons made, of those allowed."""

    rng: np.random.Generator
    budget: int
    comparisons: int = 0

    def pile(
        self, wins: Floats, items: list[int], v: int, eps: float, shift: float, delta: float
    ) -> tuple[list[int], list[int], list[int]]:
        """Up, mid and down: all items by their DI against v, and v itself in the middle."""
        others = [i for i in items if i != v]
        left = self.budget - self.comparisons
        answers, made = distribute_each(self.rng, wins[others, v], eps, shift, delta, left)
        self.comparisons += made
        if OUT_OF_BUDGET in answers:
            raise OutOfBudget
        piles: dict[int, list[int]] = {UP: [], MID: [v], DOWN: []}
        for i, answer in zip(others, answers, strict=True):
            piles[int(answer)].append(i)
        return piles[UP], piles[MID], piles[DOWN]


def quick_select(counter: Counter, wins: Floats, items: list[int], k: int, eps: float, delta: float) -> list[int]:
    """EQS: k items that with probability 1 - delta lose to none of the others by more than eps."""
    n = len(items)
    if n <= k:
        return items
    v = items[int(counter.rng.integers(n))]
    up, mid, down = counter.pile(wins, items, v, eps / 2, 0.0, delta / (n * (n - 1)))
    rest = (n - 1) * delta / n
    if len(up) > k:
        return quick_select(counter, wins, up, k, eps, rest)
    if len(up) + len(mid) >= k:
        return (up + mid)[:k]
    return up + mid + quick_select(counter, wins, down, k - len(up) - len(mid), eps, rest)


def tournament(counter: Counter, wins: Floats, items: list[int], k: int, eps: float, delta: float) -> list[int]:
    """TKS: as EQS, in groups of 2k whose best k go on; log(k / delta) in place of log(n / delta)."""
    t = 0
    while len(items) > k:
        t += 1
        eps_t, delta_t = eps / 4 * (4 / 5) ** t, share(delta, t)
        groups = [items[start : start + 2 * k] for start in range(0, len(items), 2 * k)]
        items = [i for group in groups for i in quick_select(counter, wins, group, k, eps_t, delta_t / k)]
    return items


def share(delta: float, t: int) -> float:
    """delta_t = 6 delta / (pi t)^2, which adds up to delta."""
    return 6 * delta / (math.pi * t) ** 2


Select = Callable[[Counter, Floats, list[int], int, float, float], list[int]]


def _seeks(
    wins: Floats, k: int, delta: float, rng: np.random.Generator, max_votes: int | None, select: Select
) -> Result:
    counter = Counter(rng, budget(max_votes))
    chosen: list[int] = []
    unsure = list(range(len(wins)))
    dropped: list[int] = []
    t = 0
    certified = True
    try:
        while len(chosen) < k < len(chosen) + len(unsure):
            t += 1
            alpha, delta_t = 2.0**-t, share(delta, t)
            best = select(counter, wins, unsure, k - len(chosen), alpha / 3, delta_t / 3)
            (v,) = tournament(counter, wins.T, best, 1, alpha / 3, delta_t / 3)  # outcomes flipped: the worst of them
            each = delta_t / (3 * (len(unsure) - 1))
            up, unsure, down = counter.pile(wins, unsure, v, alpha / 3, alpha / 3, each)
            chosen += up
            dropped += down
    except OutOfBudget:
        certified = False
    top = (chosen + unsure + dropped)[:k]  # after an error there may be too many or too few
    return Result(tuple(sorted(top)), counter.comparisons, certified)


def seeks(wins: Floats, k: int, delta: float, rng: np.random.Generator, max_votes: int | None = None) -> Result:
    """SEEKS: the pivot comes from TKS."""
    return _seeks(wins, k, delta, rng, max_votes, tournament)


def seeks_v2(wins: Floats, k: int, delta: float, rng: np.random.Generator, max_votes: int | None = None) -> Result:
    """SEEKS-v2: the pivot comes from EQS; cheaper unless k is small."""
    return _seeks(wins, k, delta, rng, max_votes, quick_select)
