"""What the votes say, and nothing more: per pair the number of votes and the sum of T(outcome).

A tally is a value: adding to it gives a new one. It holds only pairs that have votes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from shortlist.core.families import Family
from shortlist.core.pairs import (
    Floats,
    Ints,
    all_pairs,
    components,
    edge_codes,
    n_pairs,
    node_sums,
    pair_ends,
    pair_number,
    pair_numbers,
)
from shortlist.core.problem import whole
from shortlist.errors import BadVotes

Value = TypeVar("Value")


def evolve(value: Value, **changes: Any) -> Value:
    """The same value with some fields changed and all that it has cached, where `dataclasses.replace` caches nothing.

    For copies made at every vote: a round of ask and tell takes about a tenth longer without it. Use it only if the
    changed fields leave the cached properties true, or are such properties themselves.
    """
    copy: Value = object.__new__(type(value))
    copy.__dict__.update(value.__dict__, **changes)
    return copy


class Vote(NamedTuple):
    """One answer: the outcome as seen from the item `first`, and what was bet on it when it was asked."""

    first: int
    second: int
    outcome: float
    bet: float = 0.0  # the log-odds (gaussian: the difference) expected then, from the side of `first`
    weight: float = 1.0  # as in `Block.weights`
    judge: int = 0  # a number, the same for all votes of a judge


class Block(NamedTuple):
    """Many votes at once: each row a pair seen from its first item, an outcome, how many such votes, and the bet.

    `counts` is how many votes a row is. `weights` multiply what its bet wins or loses on the log scale: votes of one
    unit share a weight of 1 (`units`).
    """

    first: Ints
    second: Ints
    outcome: Floats
    counts: Floats
    bets: Floats | None = None  # as in `Vote`; None until they are placed, which must be before the outcome is known
    weights: Floats | None = None  # None: 1 each
    judges: Ints | None = None  # as in `Vote`; None: 0 each

    @property
    def votes(self) -> float:
        return float(self.counts.sum())

    def part(self, begin: int, end: int) -> "Block":
        """Rows begin to end."""
        return self.select(slice(begin, end))

    def select(self, here: slice | Ints) -> "Block":
        """Some of the rows, with their bets."""
        columns: Any = (None if values is None else values[here] for values in self)
        return Block(*columns)

    def ordered(self, order: Ints) -> "Block":
        """The same rows in another order, without their bets."""
        return Block(self.first[order], self.second[order], self.outcome[order], self.counts[order])

    def joined(self, other: "Block") -> "Block":
        """These rows, then the other's, without their bets."""
        return Block(*(np.concatenate(columns) for columns in zip(self[:4], other[:4], strict=True)))

    def divided(self, outcomes: Floats, often: Floats) -> "Block":
        """The same pairs once for each row of `outcomes`, which happened `often`; without bets."""
        ways = len(outcomes)
        return Block(np.tile(self.first, ways), np.tile(self.second, ways), outcomes.ravel(), often.ravel())


def join_blocks(blocks: Sequence[Block]) -> Block:
    """Blocks one after the other, at least one; all of them have bets, and all or none have weights."""
    columns: Any = (
        None if any(part is None for part in parts) else np.concatenate(parts) for parts in zip(*blocks, strict=True)
    )
    return Block(*columns)


def as_block(votes: Sequence[Vote]) -> Block:
    """Single votes, at least one, as a block with their bets."""
    numbers = np.array([(vote.first, vote.second, vote.judge) for vote in votes], dtype=np.int64)
    values = np.array([(vote.outcome, vote.bet) for vote in votes])
    block = Block(numbers[:, 0], numbers[:, 1], values[:, 0], np.ones(len(votes)), values[:, 1], judges=numbers[:, 2])
    if all(vote.weight == 1.0 for vote in votes):
        return block
    return block._replace(weights=np.array([vote.weight for vote in votes]))


def one_vote(vote: Vote) -> Block:
    """One vote as a block of plain numbers in place of arrays of length one.

    numpy takes both, and numbers make a round of ask and tell a third quicker. The types do not tell: only here and
    in `loop.bet` do numbers pass for arrays, and only the ledger takes them.
    """
    first: Any = vote.first
    second: Any = vote.second
    judge: Any = vote.judge
    outcome, count, bet = np.array((vote.outcome, 1.0, vote.bet))
    weight: Any = None if vote.weight == 1.0 else vote.weight
    return Block(first, second, outcome, count, bet, weight, judge)


@dataclass(frozen=True)
class Tally:
    """Sufficient statistics of a graph of comparisons; `pairs` is sorted, first < second."""

    n: int
    pairs: Ints
    first: Ints
    second: Ints
    counts: Floats  # N, or a design w when the tally is an expectation
    sums: Floats  # sum of T(outcome), from the side of `first`

    @cached_property
    def votes(self) -> float:
        return float(self.counts.sum())

    @cached_property
    def edges(self) -> Ints:
        """The pairs as edge codes."""
        return edge_codes(self.n, self.first, self.second)

    @cached_property
    def groups(self) -> Ints | None:
        """Which items the votes connect: each item's group, or None if there is only one."""
        if len(self.pairs) == n_pairs(self.n):
            return None
        count, labels = components(self.n, self.first, self.second)
        return None if count == 1 else labels

    def _heir(self, tally: "Tally", votes: float) -> "Tally":
        """Hand on what is known: more votes never disconnect a graph, and on old pairs add no edges."""
        tally.__dict__["votes"] = self.votes + votes
        if self.__dict__.get("groups", ...) is None:
            tally.__dict__["groups"] = None
        if tally.pairs is self.pairs and "edges" in self.__dict__:
            tally.__dict__["edges"] = self.edges
        return tally

    def add(self, family: Family, vote: Vote, count: float = 1.0) -> "Tally":
        """The tally after one more vote, or with count=-1 without one that it has."""
        is_turned = vote.first > vote.second
        i, j = (vote.second, vote.first) if is_turned else (vote.first, vote.second)
        total = count * family.statistic(family.flip(vote.outcome) if is_turned else vote.outcome)
        pair = pair_number(self.n, i, j)
        slot = int(self.pairs.searchsorted(pair))
        if slot < len(self.pairs) and self.pairs[slot] == pair:
            counts, sums = self.counts.copy(), self.sums.copy()
            counts[slot] += count
            sums[slot] += total
            return evolve(self, counts=counts, sums=sums, votes=self.votes + count)
        pairs, first = np.insert(self.pairs, slot, pair), np.insert(self.first, slot, i)
        second, counts = np.insert(self.second, slot, j), np.insert(self.counts, slot, count)
        return self._heir(Tally(self.n, pairs, first, second, counts, np.insert(self.sums, slot, total)), count)

    def add_block(self, family: Family, block: Block) -> "Tally":
        """The tally after many votes at once."""
        numbers = pair_numbers(self.n, block.first, block.second)
        pairs, slots = np.unique(numbers, return_inverse=True)
        seen = np.where(block.first < block.second, block.outcome, family.flip(block.outcome))
        counts = node_sums(slots, block.counts, len(pairs))
        return self._add_sums(pairs, counts, node_sums(slots, block.counts * family.statistic(seen), len(pairs)))

    def _add_sums(self, pairs: Ints, counts: Floats, sums: Floats) -> "Tally":
        """`pairs` sorted and distinct, sums of T from the lower item's side."""
        here, slots = self, self.pairs.searchsorted(pairs)
        if not (len(self.pairs) and np.array_equal(self.pairs.take(slots, mode="clip"), pairs)):
            merged = np.union1d(self.pairs, pairs)
            first, second = pair_ends(self.n, merged)
            where = np.searchsorted(merged, self.pairs)
            zeros = np.zeros(len(merged))
            here = Tally(self.n, merged, first, second, zeros, zeros.copy())
            here.counts[where], here.sums[where] = self.counts, self.sums
            slots = np.searchsorted(merged, pairs)
        new_counts, new_sums = here.counts.copy(), here.sums.copy()
        new_counts[slots] += counts
        new_sums[slots] += sums
        return self._heir(replace(here, counts=new_counts, sums=new_sums), float(counts.sum()))


def empty_tally(n: int) -> Tally:
    """No votes yet."""
    none, nothing = np.empty(0, dtype=np.int64), np.empty(0)
    return Tally(n, none, none, none, nothing, nothing)


def expected_tally(family: Family, theta: Floats, w: Floats) -> Tally:
    """What a design w over all pairs would see under theta: counts w, sums w A'(eta)."""
    kept = np.flatnonzero(w)
    first, second = (ends[kept] for ends in all_pairs(len(theta)))
    mean = family.mean(theta[first] - theta[second])
    return Tally(len(theta), kept, first, second, w[kept], w[kept] * mean)


def tally_votes(
    family: Family,
    first: ArrayLike,
    second: ArrayLike,
    outcome: ArrayLike,
    weight: ArrayLike | None = None,
    n: int | None = None,
) -> Tally:
    """The tally of votes given as arrays; a row of weight w counts as w votes with that mean outcome."""
    i, j, y, w = _as_arrays(first, second, outcome, weight)
    size = _check_items(i, j, n)
    family.check(y)
    if w is not None and not np.all(np.isfinite(w) & (w >= 0)):
        raise BadVotes("a weight is negative or not a number; a weight is the number of votes that a row counts for")
    if w is not None and not np.all(w > 0):
        i, j, y, w = i[w > 0], j[w > 0], y[w > 0], w[w > 0]
    codes, counts, sums = _add_up(edge_codes(size, i, j), size * size, y, w)
    return _undirected(family, size, codes, counts, sums)


def _undirected(family: Family, n: int, codes: Ints, counts: Floats, sums: Floats) -> Tally:
    """Join what was asked as (i, j) and as (j, i)."""
    i, j = codes // n, codes % n
    if np.any(i == j):
        raise BadVotes(f"item {int(i[i == j][0])} is compared with itself; a vote needs two different items")
    flipped = counts * family.flip(0.0) - sums  # an outcome y is flip(0) - y from the other side
    numbers, outcomes = pair_numbers(n, i, j), np.where(i < j, sums, flipped)
    pairs, slots = np.unique(numbers, return_inverse=True)
    totals = (node_sums(slots, values, len(pairs)) for values in (counts, family.statistic(outcomes)))
    return Tally(n, pairs, *pair_ends(n, pairs), *totals)


def _add_up(codes: Ints, limit: int, y: Floats, w: Floats | None) -> tuple[Ints, Floats, Floats]:
    """The distinct codes below `limit`, and the votes and the sum of outcomes of each."""
    places = codes
    if limit > 4 * len(codes):  # else counting into a table is faster than sorting
        distinct, places = np.unique(codes, return_inverse=True)
        limit = len(distinct)
    counts = np.bincount(places, w, limit).astype(np.float64)
    sums = node_sums(places, y if w is None else w * y, limit)
    if places is not codes:
        return distinct, counts, sums
    seen = np.flatnonzero(counts)
    return seen, counts[seen], sums[seen]


def _as_arrays(
    first: ArrayLike, second: ArrayLike, outcome: ArrayLike, weight: ArrayLike | None
) -> tuple[Ints, Ints, Floats, Floats | None]:
    try:
        ends = [np.asarray(end) for end in (first, second)]
        y = np.asarray(outcome, dtype=np.float64)
        w = None if weight is None else np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError) as reason:
        raise BadVotes(f"votes must be arrays of numbers: {reason}") from None
    if any(end.size and not np.issubdtype(end.dtype, np.integer) for end in ends):
        raise BadVotes("first and second must be whole item numbers, counted from 0")
    shapes = [array.shape for array in (*ends, y, w) if array is not None]
    if any(len(shape) != 1 for shape in shapes) or len(set(shapes)) != 1:
        raise BadVotes(f"first, second, outcome and weight must be flat arrays of equal length, got shapes {shapes}")
    return ends[0].astype(np.int64, copy=False), ends[1].astype(np.int64, copy=False), y, w


def _check_items(i: Ints, j: Ints, n: int | None) -> int:
    if len(i) == 0 and n is None:
        raise BadVotes("no votes and no n; give n, the number of items")
    highest = int(max(i.max(initial=-1), j.max(initial=-1)))
    lowest = int(min(i.min(initial=0), j.min(initial=0)))
    size = highest + 1 if n is None else whole("n", n, 2)
    if lowest < 0:
        raise BadVotes(f"item number {lowest} is negative; items are counted from 0")
    if n is None and len(i) and np.all(i == j):
        raise BadVotes(f"item {int(i[0])} is compared with itself; a vote needs two different items")
    if size < 2:
        raise BadVotes(f"{size} items cannot be compared; give at least two")
    if highest >= size:
        raise BadVotes(f"item numbers must lie in 0..{size - 1}, found {highest}")
    return size
