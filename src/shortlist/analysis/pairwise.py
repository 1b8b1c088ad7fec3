"""Pair by pair: who beat whom, which pairs were asked how often, and whether the votes connect all items."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from shortlist.analysis.votes import Votes
from shortlist.core.pairs import Flags, Floats, Ints, components, n_pairs


@dataclass(frozen=True, eq=False)
class Matrix:
    """Rows and columns in the order of the ranking. share[i, j] is the mean outcome of i against j: with wins, ties and
    losses the share of votes won, ties as half; NaN where there are no votes."""

    items: tuple[str, ...]
    votes: Floats
    share: Floats

    def to_rows(self) -> list[tuple[str, str, float, float]]:
        """Pairs with votes as rows: first, second, votes, mean outcome from the first's side."""
        ends = zip(*(end.tolist() for end in np.nonzero(np.triu(self.votes))), strict=True)
        return [(self.items[i], self.items[j], float(self.votes[i, j]), float(self.share[i, j])) for i, j in ends]


@dataclass(frozen=True)
class PairVotes:
    """A pair and its votes."""

    first: str
    second: str
    votes: float
    crosses: bool  # is one item above the cutoff and one below?


@dataclass(frozen=True)
class Allocation:
    """Where the votes went. `pairs` are those with votes, most first."""

    pairs: tuple[PairVotes, ...]
    possible: int
    across: float  # share of votes on pairs across the cutoff
    even_across: float  # share of such pairs among all pairs
    busiest: float  # share of votes on the most asked tenth of all pairs


@dataclass(frozen=True)
class Connectivity:
    """Do the votes connect all items? Without that the items have no common scale."""

    groups: int  # of items that votes connect, directly or by a chain
    unseen: tuple[str, ...]  # items without votes
    asked: int  # pairs with votes
    possible: int
    bounded: bool  # do finite utilities explain the votes best, without prior or bound? (Ford 1957)


def win_matrix(items: tuple[str, ...], votes: Votes, order: Ints) -> Matrix:
    """Who beat whom, with rows and columns in this order."""
    n, tally, mean = votes.n, votes.tally, mean_outcomes(votes)
    counts, share = np.zeros((n, n)), np.full((n, n), np.nan)
    counts[tally.first, tally.second] = counts[tally.second, tally.first] = tally.counts
    share[tally.first, tally.second], share[tally.second, tally.first] = mean, votes.family.flip(mean)
    square = np.ix_(order, order)
    return Matrix(tuple(items[i] for i in order.tolist()), counts[square], share[square])


def mean_outcomes(votes: Votes) -> Floats:
    """The mean outcome of each pair of the tally from its lower item's side; T is linear, so this inverts it."""
    tally = votes.tally
    mean: Floats = tally.sums / (tally.counts * votes.family.statistic(np.ones(())))
    return mean


def allocate(items: tuple[str, ...], votes: Votes, in_top: Flags) -> Allocation:
    """Where the votes went; `in_top` marks the items of the answer."""
    tally, n = votes.tally, votes.n
    crosses = in_top[tally.first] != in_top[tally.second]
    order = np.lexsort((tally.pairs, -tally.counts))
    pairs = tuple(
        PairVotes(items[tally.first[p]], items[tally.second[p]], float(tally.counts[p]), bool(crosses[p]))
        for p in order.tolist()
    )
    k, total = int(np.count_nonzero(in_top)), max(tally.votes, 1.0)
    busiest = float(tally.counts[order][: max(1, n_pairs(n) // 10)].sum()) / total
    across = float(tally.counts[crosses].sum()) / total
    return Allocation(pairs, n_pairs(n), across, k * (n - k) / n_pairs(n), busiest)


def connect(items: tuple[str, ...], votes: Votes) -> Connectivity:
    """The groups of items that the votes connect."""
    n, tally = votes.n, votes.tally
    groups = components(n, tally.first, tally.second)[0]
    touched = np.union1d(tally.first, tally.second)
    unseen = tuple(items[i] for i in np.setdiff1d(np.arange(n), touched).tolist())
    return Connectivity(groups, unseen, len(tally.pairs), n_pairs(n), _bounded(votes, groups))


def _bounded(votes: Votes, groups: int) -> bool:
    """With wins and losses: does a chain of at least partly won votes lead from every item to every other?"""
    if votes.family.is_measured:
        return groups == 1
    tally = votes.tally
    won, lost = tally.sums > 1e-9, tally.counts - tally.sums > 1e-9
    source = np.concatenate([tally.first[won], tally.second[lost]])
    target = np.concatenate([tally.second[won], tally.first[lost]])
    links = coo_array((np.ones(len(source), np.int8), (source, target)), shape=(votes.n, votes.n))
    return int(connected_components(links, connection="strong")[0]) == 1
