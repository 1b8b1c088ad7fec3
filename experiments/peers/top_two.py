"""Top-two rules for the best k: a leading set, and the swap that is hardest to tell from it. The pair of the swap is
asked. They were made for independent arms and the best one; here arms are pairs, and the answer is a set.

- Top-two (Russo, COLT 2016): the leader is the top k of a draw from the belief; draw again until another set comes out.
  Of the items in which the sets differ, the pair that is nearest in standard deviations is asked. If 200 draws give the
  same set, the challenger is that of T3C.
- T3C (Shang, de Heide, Kaufmann, Menard & Valko, AISTATS 2020): the leader is drawn; the challenger swaps u in for v
  out where the transportation cost (theta_u - theta_v)+^2 / (2 s_uv^2) is least.
- EB-TCI (Jourdan, Degenne, Baudry, de Heide & Kaufmann, NeurIPS 2022): the leader is the empirical best set; the
  challenger has the least cost + log N. N is the geometric mean of the votes of the two items, each with one more so
  that it is finite; with the votes of the pair, of both items, or the precision of their difference it is no better.
"""

import numpy as np

from experiments.peers.base import Peer, covariance_of, spreads, told
from shortlist.core.betting import Ledger
from shortlist.core.evidence import Evidence
from shortlist.core.linalg import cholesky
from shortlist.core.pairs import Flags, Floats, Ints, node_sums, pair_number, pair_numbers

REDRAWS = 200
JITTER = 1e-9  # breaks ties by chance


def costs_of(theta: Floats, covariance: Floats) -> Floats:
    """The transportation cost of swapping v in for u: [u, v], 0 where v is believed to be at least as good."""
    gaps = np.maximum(np.subtract.outer(theta, theta), 0.0)
    return gaps**2 / (2 * spreads(covariance))


def drawn_sets(ledger: Ledger, size: int, rng: np.random.Generator) -> Flags:
    """Who is in the top k of each of `size` draws from the belief."""
    factor = cholesky(covariance_of(ledger.belief))
    assert factor is not None  # a covariance
    draws = ledger.belief.theta + rng.standard_normal((size, len(factor))) @ factor.T
    return tops(draws, ledger.k)


def tops(draws: Floats, k: int) -> Flags:
    """Who is in the top k of each row."""
    inside = np.zeros(draws.shape, dtype=bool)
    np.put_along_axis(inside, np.argpartition(-draws, k - 1, axis=1)[:, :k], True, axis=1)
    return inside


def cheapest_swap(costs: Floats, inside: Flags, rng: np.random.Generator) -> tuple[int, int]:
    """The member u and the outsider v with the least cost; ties are broken by chance."""
    members, others = np.flatnonzero(inside), np.flatnonzero(~inside)
    here = costs[np.ix_(members, others)]
    slot = int(np.argmin(here + JITTER * rng.random(here.shape)))
    return int(members[slot // len(others)]), int(others[slot % len(others)])


class T3c(Peer):
    def ask(self, memory: None, evidence: Evidence, size: int, rng: np.random.Generator) -> Ints:
        ledger = evidence.kept_ledger
        costs = costs_of(ledger.belief.theta, covariance_of(ledger.belief))
        swaps = [cheapest_swap(costs, inside, rng) for inside in drawn_sets(ledger, size, rng)]
        first, second = np.array(swaps).T
        return pair_numbers(evidence.tally.n, first, second)


class TopTwo(Peer):
    def ask(self, memory: None, evidence: Evidence, size: int, rng: np.random.Generator) -> Ints:
        ledger = evidence.kept_ledger
        theta, covariance = ledger.belief.theta, covariance_of(ledger.belief)
        nearness = np.abs(np.subtract.outer(theta, theta)) / np.sqrt(spreads(covariance))
        swaps = []
        for _ in range(size):
            leader, *others = drawn_sets(ledger, REDRAWS, rng)
            swaps.append(self._swap(leader, np.array(others), nearness, costs_of(theta, covariance), rng))
        first, second = np.array(swaps).T
        return pair_numbers(evidence.tally.n, first, second)

    def _swap(
        self, leader: Flags, others: Flags, nearness: Floats, costs: Floats, rng: np.random.Generator
    ) -> tuple[int, int]:
        differ = np.flatnonzero((others != leader).any(axis=1))
        if not len(differ):
            return cheapest_swap(costs, leader, rng)
        challenger = others[differ[0]]
        out, into = np.flatnonzero(leader & ~challenger), np.flatnonzero(challenger & ~leader)
        slot = int(np.argmin(nearness[np.ix_(out, into)]))
        return int(out[slot // len(into)]), int(into[slot % len(into)])


class EbTci(Peer):
    def ask(self, memory: None, evidence: Evidence, size: int, rng: np.random.Generator) -> Ints:
        ledger, tally, n = evidence.kept_ledger, evidence.tally, evidence.tally.n
        theta, covariance = ledger.belief.theta, covariance_of(ledger.belief)
        inside = tops((theta + JITTER * rng.random(n))[None], ledger.k)[0]
        votes = node_sums(tally.first, tally.counts, n) + node_sums(tally.second, tally.counts, n)
        chosen = []
        for _ in range(size):
            logs = 0.5 * np.log1p(votes)
            swap = cheapest_swap(costs_of(theta, covariance) + logs[:, None] + logs, inside, rng)
            chosen.append(pair_number(n, *swap))
            votes[[*swap]] += 1
            covariance = told(covariance, theta, *swap)
        return np.array(chosen)
