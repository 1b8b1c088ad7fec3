"""The sampling rule for a vote budget: ask the pair that is expected to sharpen the answer most. It aims at no proof.

The belief is theta ~ N(theta, C). What is in doubt is V = sum p(1-p) over pairs of a believed member u and a believed
outsider v, with p = P(u is better than v | votes). One vote on x = e_a - e_b with Fisher information w_x lowers it, to
first order in what the vote tells, by

    drop_x = w_x x'C L C x / (1 + w_x x'C x),    L = sum_uv c_uv (e_u - e_v)(e_u - e_v)',    c_uv = phi(z_uv)^2 / s_uv^2

with s_uv^2 the variance of theta_u - theta_v and z_uv = (theta_u - theta_v + margin) / s_uv. Any pair may be best, not
only pairs across the cutoff. All of it is seen from the ledger's side.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shortlist.core.betting import WEIGHT, Ledger
from shortlist.core.draws import Draws
from shortlist.core.evidence import Evidence
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import (
    Floats,
    Ints,
    all_pairs,
    edge_codes,
    laplacian,
    n_pairs,
    node_sums,
    pair_ends,
    pair_numbers,
)
from shortlist.core.problem import Problem
from shortlist.core.ridge import Belief
from shortlist.core.sampling.base import NO_PAIRS

SIDE = 32  # items on each side of the cutoff that count, if there are more than twice as many items
PICKS = 32  # a block of questions goes to at most so many pairs, one after the other
JITTER = 1e-6  # breaks ties, of items and of pairs, in a fresh way each time
FAR = 100.0  # beyond this z^2 of the closest pair, only the ratios of the scores are kept, or all would be 0
LEAST_SPREAD = 1e-12  # in units of the prior's variance; keeps z finite


class Given(NamedTuple):
    """Votes whose outcome is unknown to the belief, by pair: pending questions, and votes newer than the belief."""

    pairs: Ints
    counts: Floats

    def plus(self, pairs: Ints, counts: Floats) -> "Given":
        return Given(np.concatenate([self.pairs, pairs]), np.concatenate([self.counts, counts]))


NOTHING = Given(np.empty(0, np.int64), np.empty(0))


class Scores(NamedTuple):
    """Pairs, and by how much one vote on each is expected to lower the sum of p(1-p) across the cutoff."""

    pairs: Ints
    drops: Floats

    def best(self, rng: np.random.Generator) -> int:
        """The pair with the largest score; ties are broken by chance."""
        return int(self.pairs[np.argmax(self.drops * (1.0 + JITTER * rng.random(len(self.drops))))])


def score_pairs(ledger: Ledger, given: Given, allowed: Ints | None, rng: np.random.Generator) -> Scores:
    """The score of every pair that may be asked; among more than 64 items, of those near the cutoff.

    allowed: the numbers of the pairs that may be asked, None for all. rng orders items that are believed equal.
    """
    sides, n = believed_sides(ledger, rng), ledger.problem.n
    near = np.concatenate(sides)
    others = np.empty(0, np.int64) if allowed is None else np.setdiff1d(np.arange(n), near)
    items = np.concatenate([near, others])  # a pair has an end among the near ones, which come first
    rows, columns = all_pairs(len(near)) if allowed is None else _places(n, near, items, allowed)
    first, second = near[rows], items[columns]
    open_ones = ~ledger.are_decided(first, second)
    if 0 < np.count_nonzero(open_ones) < len(open_ones):  # a vote on a decided pair decides nothing
        rows, columns, first, second = rows[open_ones], columns[open_ones], first[open_ones], second[open_ones]
    with one_thread():
        spread, reach = _spread_and_reach(ledger, given, items, len(sides[0]), len(near))
    spread, reach = spread[rows, columns], reach[rows, columns]
    information = _information(ledger, first, second, spread)
    return Scores(pair_numbers(n, first, second), information * reach / (1.0 + information * spread))


def believed_sides(ledger: Ledger, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Believed members and outsiders, without withdrawn items. Of more than 64 items, the 32 of each side nearest to
    the cutoff in z."""
    belief, k, n = ledger.belief, ledger.k, ledger.problem.n
    order = ledger.order(belief.theta + JITTER * rng.standard_normal(n))
    if gone := ledger.problem.withdrawn:
        order = order[~np.isin(order, gone)]
        k = k - len(gone) if ledger.flipped else k
    if len(order) <= 2 * SIDE:
        return order[:k], order[k:]
    cutoff = 0.5 * (belief.theta[order[k - 1]] + belief.theta[order[k]])
    z = np.abs(belief.theta - cutoff) / np.sqrt(belief.variances)
    inside, outside = (side[np.argsort(z[side], kind="stable")[:SIDE]] for side in (order[:k], order[k:]))
    return inside, outside


def _places(n: int, near: Ints, items: Ints, allowed: Ints) -> tuple[Ints, Ints]:
    """Where the ends of the allowed pairs are in `items`, the nearer end first; pairs of two far items are left out."""
    place = np.empty(n, np.int64)
    place[items] = np.arange(n)
    ends = place[np.stack(pair_ends(n, allowed))]
    rows, columns = ends.min(axis=0), ends.max(axis=0)
    kept = rows < len(near)
    return rows[kept], columns[kept]


def _z(ledger: Ledger, inside: Ints, outside: Ints, spread: Floats) -> Floats:
    least = LEAST_SPREAD / ledger.problem.family.variance_bound
    theta = ledger.belief.theta
    gap = theta[inside][:, None] - theta[outside] + ledger.problem.margin
    z: Floats = gap / np.sqrt(np.maximum(spread, least))
    return z


def _spread_and_reach(ledger: Ledger, given: Given, items: Ints, k: int, near: int) -> tuple[Floats, Floats]:
    """x'Cx and x'CLCx of all pairs of a near item (row) and an item (column). The first k items are members, the
    first `near` ones are those that L is made of."""
    covariance, variances = _after(ledger, given, items[:near], items)
    spread = np.maximum(variances[:near, None] + variances - 2 * covariance, 0.0)
    across = spread[:k, k:near]
    squares = _z(ledger, items[:k], items[k:near], across) ** 2
    least = LEAST_SPREAD / ledger.problem.family.variance_bound
    squares[ledger.are_decided(items[:k, None], items[k:near])] = np.inf  # known answers leave no doubt about these
    nearest = float(squares.min()) if np.isfinite(squares).any() else 0.0
    doubts = np.exp(max(nearest - FAR, 0.0) - squares) / np.maximum(across, least) / (2 * math.pi)
    pulled = _laplacian_across(doubts) @ covariance
    reach = covariance[:, :near] @ pulled
    own = np.einsum("ij,ij->j", covariance, pulled)
    return spread, np.maximum(own[:near, None] + own - 2 * reach, 0.0)


def _laplacian_across(weights: Floats) -> Floats:
    """L of the pairs between the rows' items, which come first, and the columns' items."""
    k, rest = weights.shape
    matrix: Floats = np.zeros((k + rest, k + rest))
    matrix[:k, k:], matrix[k:, :k] = -weights, -weights.T
    matrix.ravel()[:: k + rest + 1] = np.concatenate([weights.sum(axis=1), weights.sum(axis=0)])
    return matrix


def _after(ledger: Ledger, given: Given, rows: Ints, columns: Ints) -> tuple[Floats, Floats]:
    """C[rows, columns], and the columns' variances, once the given votes are known: (C^-1 + L_g)^-1, with L_g their
    information. Their outcomes do not matter to C."""
    belief = ledger.belief
    covariance, variances = _block(belief, rows, columns), belief.variances[columns]
    if not len(given.pairs):
        return covariance, variances
    first, second = pair_ends(ledger.problem.n, given.pairs)
    touched, places = np.unique(np.stack([first, second]), return_inverse=True)
    places, size = places.reshape(2, -1), len(touched)
    weights = given.counts * _information(ledger, first, second, belief.spread(first, second))
    told = laplacian(size, edge_codes(size, *places), weights)
    change = np.linalg.solve(np.eye(size) + told @ _block(belief, touched, touched), told)
    aside = _block(belief, touched, columns)
    moved = change @ aside
    return covariance - _block(belief, rows, touched) @ moved, variances - np.einsum("ij,ij->j", aside, moved)


def _block(belief: Belief, rows: Ints, columns: Ints) -> Floats:
    """C[rows, columns]; items are independent where no covariances are kept."""
    if belief.covariance is None:
        return np.where(rows[:, None] == columns, belief.variances[columns], 0.0)
    return belief.covariance[rows[:, None], columns]


def _information(ledger: Ledger, first: Ints, second: Ints, spread: Floats) -> Floats:
    """w_x: what one vote on a pair tells about its difference, A'' at the damped difference."""
    family, theta = ledger.problem.family, ledger.belief.theta
    return family.moments(family.damp(theta[first] - theta[second], spread)).variance


class SharpenMemory(NamedTuple):
    """The number of the belief, and the votes it was formed from, by pair."""

    belief: int = 0
    pairs: Ints = NOTHING.pairs
    weights: Floats = NOTHING.counts


@dataclass(frozen=True)
class Sharpen:
    """The best answer for a fixed number of votes: set `max_votes`, or stop by `posterior`."""

    name: str = "sharpen"
    wants: frozenset[str] = frozenset({"ledger"})

    def start(self, problem: Problem) -> SharpenMemory:
        return SharpenMemory()

    def questions(
        self, memory: SharpenMemory, evidence: Evidence, pending: Ints, size: int, draws: Draws, avoid: Ints = NO_PAIRS
    ) -> tuple[Ints, Floats]:
        """The best pair, then the best one given that, and so on; a large block asks each several times in a row."""
        ledger, rng = evidence.kept_ledger, draws.generator()
        waiting, counts = np.unique(pending, return_counts=True)
        given = _newer(memory, ledger).plus(waiting, counts.astype(np.float64))
        allowed = None if ledger.problem.allowed is None else np.array(ledger.problem.allowed)
        if len(avoid):
            allowed = np.setdiff1d(np.arange(n_pairs(ledger.problem.n)) if allowed is None else allowed, avoid)
        picked = NOTHING
        for part in _parts(size):
            best = np.array([score_pairs(ledger, given, allowed, rng).best(rng)])
            picked, given = picked.plus(best, part), given.plus(best, part)
        pairs, slots = np.unique(picked.pairs, return_inverse=True)
        return pairs, node_sums(slots, picked.counts, len(pairs))

    def learn(
        self, memory: SharpenMemory, problem: Problem, evidence: Evidence, rounds: int, draws: Draws
    ) -> SharpenMemory:
        ledger = evidence.kept_ledger
        if memory.belief == ledger.belief.number:
            return memory
        return SharpenMemory(ledger.belief.number, ledger.pairs, ledger.table[:, WEIGHT].copy())

    def votes_left(self, memory: SharpenMemory, evidence: Evidence) -> None:
        return None


def _newer(memory: SharpenMemory, ledger: Ledger) -> Given:
    """The votes that came after the belief was formed; those that were taken back since count as none."""
    if ledger.votes == ledger.believed:
        return NOTHING
    weights = ledger.table[:, WEIGHT].copy()
    weights[ledger.pairs.searchsorted(memory.pairs)] -= memory.weights
    newer = np.flatnonzero(weights > 0.0)
    return Given(ledger.pairs[newer], weights[newer])


def _parts(size: int) -> list[Floats]:
    """How many questions each pick of a block stands for."""
    picks = min(size, PICKS)
    return [np.array([float(size // picks + (place < size % picks))]) for place in range(picks)]
