"""Items from best to worst: utilities with intervals, the chance of being in the top k, and the cutoff. And pair by
pair: who beat whom, which pairs were asked how often, and whether the votes connect all items.

The ranking comes from one model: utilities have a N(0, scale^2) prior, votes follow the family, and given the votes
utilities are approximately normal (Laplace). The verdicts of `cuts` and `edges` do not depend on it.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtr

from shortlist.analysis.votes import Votes
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import Flags, Floats, Ints, components, n_pairs, node_sums
from shortlist.core.problem import Problem
from shortlist.core.ridge import SCALE, Laplace, laplace
from shortlist.core.stopping.base import Verdict
from shortlist.core.stopping.posterior import chances
from shortlist.core.tally import Tally

WIDTH = 1.959963984540054  # half of a 95 % interval, in standard deviations
Side = Literal["in", "out", "withdrawn"]


@dataclass(frozen=True)
class RankedItem:
    """One item. `low` and `high` bound its utility with posterior probability 95 %, for this item alone."""

    item: str
    in_top: bool  # is it one of the answer's k items?
    proved: Side | None  # is it proved to be in or out of the true top k, or withdrawn?
    utility: float  # its rating: 0 is the average item
    low: float
    high: float
    chance: float  # of being in the true top k, by the model
    votes: float


@dataclass(frozen=True)
class Cutoff:
    """The weakest item of the answer and the strongest of the rest."""

    inside: str
    outside: str
    gap: float  # of their utilities
    low: float
    high: float
    chance: float  # that the outsider is better, by the model


@dataclass(frozen=True)
class Ranking:
    """`items` has the answer first, then the rest; each side best first."""

    items: tuple[RankedItem, ...]
    cutoff: Cutoff
    model: str
    scale: float

    def utilities(self, items: tuple[str, ...]) -> Floats:
        """The utilities in the order of `items`."""
        utility = {one.item: one.utility for one in self.items}
        return np.array([utility[item] for item in items])


def rank_items(problem: Problem, items: tuple[str, ...], tally: Tally, verdict: Verdict[str]) -> Ranking:
    """Rank the items by the votes of `tally`, with the verdict's answer first."""
    scale = prior_scale(problem)
    with one_thread():
        posterior = laplace(problem.family, tally, scale)
        chance = chances(problem, tally, scale)
        covariance = _centred(posterior)
    theta = posterior.theta - posterior.theta.mean()
    spread = WIDTH * np.sqrt(np.diag(covariance))
    votes = node_sums(tally.first, tally.counts, tally.n) + node_sums(tally.second, tally.counts, tally.n)
    order, answer, proved = _best_first(items, verdict, theta), set(verdict.top), _proved(items, verdict)
    columns = np.stack([theta, theta - spread, theta + spread, chance, votes])
    ranked = tuple(
        RankedItem(items[i], items[i] in answer, proved.get(items[i]), *columns[:, i].tolist()) for i in order.tolist()
    )
    u, v = int(order[problem.k - 1]), int(order[problem.k])
    return Ranking(ranked, _cutoff(items, theta, covariance, u, v), _model(problem, scale), scale)


def prior_scale(problem: Problem) -> float:
    """1.5 in log-odds. Measured differences have their own unit, so there it is the bound on utilities."""
    return SCALE if not problem.family.is_measured else problem.bound


def _proved(items: tuple[str, ...], verdict: Verdict[str]) -> dict[str, Side]:
    inside: dict[str, Side] = dict.fromkeys(verdict.certainly_in, "in")
    gone: dict[str, Side] = dict.fromkeys((item for item in items if not verdict.is_left(item)), "withdrawn")
    return inside | dict.fromkeys(verdict.certainly_out, "out") | gone


def _best_first(items: tuple[str, ...], verdict: Verdict[str], theta: Floats) -> Ints:
    """Item numbers, the answer first, then the rest and what was withdrawn, each best first."""
    answer, left = set(verdict.top), {*verdict.certainly_in, *verdict.certainly_out, *verdict.undecided}
    outside = np.array([0 if item in answer else 1 if item in left else 2 for item in items])
    return np.lexsort((-theta, outside)).astype(np.int64)


def _centred(posterior: Laplace) -> Floats:
    """The covariance of utilities minus their mean: only differences can be compared."""
    covariance = posterior.covariance
    covariance = covariance - covariance.mean(axis=0)
    less: Floats = covariance - covariance.mean(axis=1)[:, None]
    return less


def _cutoff(items: tuple[str, ...], theta: Floats, covariance: Floats, u: int, v: int) -> Cutoff:
    gap = float(theta[u] - theta[v])
    spread = float(np.sqrt(max(covariance[u, u] + covariance[v, v] - 2 * covariance[u, v], 0.0)))
    chance = float(ndtr(-gap / spread)) if spread else float(gap < 0)
    return Cutoff(items[u], items[v], gap, gap - WIDTH * spread, gap + WIDTH * spread, chance)


def _model(problem: Problem, scale: float) -> str:
    votes = "Bradley–Terry votes" if not problem.family.is_measured else "normal differences with the given sigma"
    return f"{votes}, a N(0, {scale:g}²) prior on ratings, Laplace approximation"


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
