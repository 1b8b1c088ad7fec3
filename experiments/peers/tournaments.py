"""Schedules that people use: a round robin, a Swiss tournament, and neighbours in the ranking.

- Round robin: all pairs equally often, each round in a new random order. This is uniform sampling; in random order it
  is never worse at a small budget than in the order of the list.
- Swiss: as in chess (FIDE handbook C.04): each round pairs items of equal or nearest score, and no pair of the round
  before. Tournaments never repeat a pair; with more rounds than opponents that cannot be, so only the last round is
  barred. With an odd number of items the one that sat out least, lowest first, has a bye and gets a point.
- Adjacent: neighbours in the believed ranking, the pair with the fewest votes first. Sorting by comparison asks these
  pairs, and so does matching players of nearly equal rating.
"""

import numpy as np

from experiments.peers.base import InRounds, Peer, Round, counts_of
from shortlist.core.evidence import Evidence
from shortlist.core.pairs import Floats, Ints, n_pairs, node_sums, pair_ends, pair_numbers
from shortlist.core.sampling.base import hand_out
from shortlist.core.tally import Tally

JITTER = 1e-6  # breaks ties by chance


class RoundRobin(InRounds):
    def first_round(self, n: int) -> Ints:
        return np.arange(n_pairs(n))

    def next_round(self, last: Round, evidence: Evidence, rng: np.random.Generator) -> Ints:
        return last.pairs


class Swiss(InRounds):
    def first_round(self, n: int) -> Ints:
        half = np.arange(n // 2)
        return pair_numbers(n, 2 * half, 2 * half + 1)  # items come in no particular order

    def next_round(self, last: Round, evidence: Evidence, rng: np.random.Generator) -> Ints:
        n, points = evidence.tally.n, scores(evidence.tally)
        order = np.lexsort((rng.random(n), -points)).tolist()
        if n % 2:
            games = _games(evidence.tally)
            order.remove(next(item for item in reversed(order) if games[item] == games.max()))
        barred = {frozenset(ends) for ends in zip(*map(np.ndarray.tolist, pair_ends(n, last.pairs)), strict=True)}
        pairs = _matched(order, barred) or _matched(order, set())
        assert pairs is not None  # without barred pairs everybody finds an opponent
        first, second = np.array(pairs).T
        return pair_numbers(n, first, second)


def scores(tally: Tally) -> Floats:
    """Points: wins, and one for every bye."""
    losses = tally.counts - tally.sums
    wins = node_sums(tally.first, tally.sums, tally.n) + node_sums(tally.second, losses, tally.n)
    games = _games(tally)
    points: Floats = wins + games.max() - games
    return points


def _games(tally: Tally) -> Floats:
    return node_sums(tally.first, tally.counts, tally.n) + node_sums(tally.second, tally.counts, tally.n)


def _matched(order: list[int], barred: set[frozenset[int]]) -> list[tuple[int, int]] | None:
    """Opponents for all, from the top: each gets the next one below that leaves opponents for the others."""
    if not order:
        return []
    first, *others = order
    for place, second in enumerate(others):
        if frozenset((first, second)) not in barred:
            rest = _matched(others[:place] + others[place + 1 :], barred)
            if rest is not None:
                return [(first, second), *rest]
    return None


class Adjacent(Peer):
    def ask(self, memory: None, evidence: Evidence, size: int, rng: np.random.Generator) -> Ints:
        n = evidence.tally.n
        order = np.argsort(-evidence.kept_ledger.theta - JITTER * rng.random(n))
        pairs = pair_numbers(n, order[:-1], order[1:])
        chosen, counts = hand_out(JITTER * rng.random(n - 1) - counts_of(evidence.tally)[pairs], size)
        return np.repeat(pairs[chosen], counts.astype(np.int64))
