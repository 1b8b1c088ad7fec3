"""Who beat whom, and which pairs were asked how often."""

from dataclasses import dataclass

import numpy as np

from shortlist.findings.ballots import Ballots
from shortlist.pairs import Flags, Floats, Ints, n_pairs


@dataclass(frozen=True, eq=False)
class Matrix:
    """Rows and columns in the report's order. share[i, j] is the mean outcome of i against j: with wins, ties and
    losses the share of votes won, ties as half; NaN where there are no votes."""

    items: tuple[str, ...]
    votes: Floats
    share: Floats


@dataclass(frozen=True)
class Asked:
    """A pair and its votes."""

    first: str
    second: str
    votes: float
    crosses: bool  # the line


@dataclass(frozen=True)
class Allocation:
    """Where the votes went. `pairs` are those with votes, most first."""

    pairs: tuple[Asked, ...]
    possible: int
    across: float  # share of votes on pairs with one item of the answer and one of the rest
    even_across: float  # share of such pairs among all
    busiest: float  # share of votes on the most asked tenth of all pairs


def matrix(items: tuple[str, ...], ballots: Ballots, order: Ints) -> Matrix:
    n, tally, mean = ballots.n, ballots.tally, mean_outcomes(ballots)
    votes, share = np.zeros((n, n)), np.full((n, n), np.nan)
    votes[tally.first, tally.second] = votes[tally.second, tally.first] = tally.counts
    share[tally.first, tally.second], share[tally.second, tally.first] = mean, ballots.family.flip(mean)
    square = np.ix_(order, order)
    return Matrix(tuple(items[i] for i in order.tolist()), votes[square], share[square])


def mean_outcomes(ballots: Ballots) -> Floats:
    """Of each pair of the tally, from its lower item's side; T is linear, so this undoes it."""
    tally = ballots.tally
    mean: Floats = tally.sums / (tally.counts * ballots.family.statistic(np.ones(())))
    return mean


def allocation(items: tuple[str, ...], ballots: Ballots, inside: Flags) -> Allocation:
    tally, n = ballots.tally, ballots.n
    crosses = inside[tally.first] != inside[tally.second]
    order = np.lexsort((tally.pairs, -tally.counts))
    pairs = tuple(
        Asked(items[tally.first[p]], items[tally.second[p]], float(tally.counts[p]), bool(crosses[p]))
        for p in order.tolist()
    )
    k, total = int(np.count_nonzero(inside)), max(tally.votes, 1.0)
    busiest = float(tally.counts[order][: max(1, n_pairs(n) // 10)].sum()) / total
    across = float(tally.counts[crosses].sum()) / total
    return Allocation(pairs, n_pairs(n), across, k * (n - k) / n_pairs(n), busiest)
