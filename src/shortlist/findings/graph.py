"""Do the votes connect all items? Without that there is no common scale."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from shortlist.findings.ballots import Ballots
from shortlist.pairs import components


@dataclass(frozen=True)
class Graph:
    groups: int  # of items that votes connect, directly or in a chain
    unseen: tuple[str, ...]  # items without votes
    asked: int  # pairs with votes
    possible: int
    bounded: bool  # do finite utilities explain the votes best, without prior or bound? (Ford 1957)


def graph(items: tuple[str, ...], ballots: Ballots) -> Graph:
    n, tally = ballots.n, ballots.tally
    groups = components(n, tally.first, tally.second)[0]
    touched = np.union1d(tally.first, tally.second)
    unseen = tuple(items[i] for i in np.setdiff1d(np.arange(n), touched).tolist())
    return Graph(groups, unseen, len(tally.pairs), n * (n - 1) // 2, _bounded(ballots, groups))


def _bounded(ballots: Ballots, groups: int) -> bool:
    """Wins and losses: from every item a chain of at least partly won votes leads to every other."""
    if ballots.family.win is None:
        return groups == 1
    tally = ballots.tally
    won, lost = tally.sums > 1e-9, tally.counts - tally.sums > 1e-9
    source = np.concatenate([tally.first[won], tally.second[lost]])
    target = np.concatenate([tally.second[won], tally.first[lost]])
    links = coo_array((np.ones(len(source), np.int8), (source, target)), shape=(ballots.n, ballots.n))
    return int(connected_components(links, connection="strong")[0]) == 1
