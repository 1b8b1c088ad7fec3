"""Units: votes that share a source of chance, such as two games on one case, together weigh at most as one vote.

All bets of a unit are made before any of its votes is read, and the logarithm of what a bet wins is multiplied by the
vote's weight. Over the votes of a unit that bet against one item the weights sum to at most 1 (docs/guarantee.md).

Bets also need votes in the order in which they were cast. Sorted by winner, an early part is not a fair sample of the
rest (`looks_sorted`).
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from shortlist.core.families import Family
from shortlist.core.pairs import Flags, Floats, Ints, components, edge_codes, node_sums, pair_numbers
from shortlist.core.tally import Block
from shortlist.errors import BadVotes

ENOUGH = 20.0  # expected runs of equal winners before their number says anything
FEW = 0.25  # of the expected runs; votes that come in groups, such as five on the same case, still make more than half


class Units(NamedTuple):
    """Which rows of votes make a unit. Rows are in the order in which they are counted: unit by unit."""

    number: Ints  # of each row's unit, counted from 0
    pair: Ints
    share: Floats  # of a row among its unit's rows on its pair: 1/m, or 1 for the first of them and 0 for the others
    whole: Floats  # of a row among all rows of its unit, for products of all of them: 1/m, or 1 for the first row
    is_fixed: Flags  # does every unit that has the row's pair have it equally often?
    regular: bool  # does every unit have the same pairs, each equally often?

    @property
    def size(self) -> int:
        """How many units there are."""
        return int(self.number[-1]) + 1 if len(self.number) else 0

    @property
    def starts(self) -> Ints:
        """Where each unit begins, and where the last one ends."""
        return np.flatnonzero(np.diff(self.number, prepend=-1, append=self.size))

    def part(self, begin: int, end: int) -> "Units":
        """Rows begin to end, which must not cut a unit."""
        return self.select(slice(begin, end))

    def select(self, here: slice | Flags) -> "Units":
        """Some of the rows."""
        number, pair, share, whole, is_fixed, regular = self
        return Units(number[here], pair[here], share[here], whole[here], is_fixed[here], regular)

    def trusting_no_order(self) -> "Units":
        """With share 0 where a unit's first row counts: if rows are sorted by outcome, the first one is no fair one."""
        return self._replace(share=np.where(self.is_fixed, self.share, 0.0))

    def weights(self, block: Block, flipped: bool, both: bool) -> Floats:
        """What the rows of whole units weigh, given their bets. With `both`, both sides of a row bet.

        In a regular design the m rows of a unit against one item weigh 1/m. Else how many there are may depend on
        answers, and the first pair against the item counts alone.
        """
        assert block.bets is not None
        targets = np.where((block.bets > 0) != flipped, block.second, block.first)[:, None]
        if both:
            targets = np.stack([block.first, block.second], axis=1)
        size = int(targets.max(initial=0)) + 1
        codes = (self.number - self.number.min(initial=0))[:, None] * size + targets
        _, at, slots, often = np.unique(codes.ravel(), return_index=True, return_inverse=True, return_counts=True)
        slots = slots.reshape(codes.shape)
        if self.regular:
            return np.asarray(1.0 / often[slots].max(axis=1))
        first_pair = self.pair[at // codes.shape[1]]
        return np.where((first_pair[slots] == self.pair[:, None]).all(axis=1), self.share, 0.0)


def unit_numbers(labels: Sequence[Hashable]) -> Ints:
    """The number of each row's unit, counted from 0 as units come. A row with the label None is a unit of its own. A
    tuple is several labels: rows that share one of them in the same place, directly or through other rows, are one
    unit."""
    numbers: dict[Hashable, int] = {}
    parts = [_parts(label, row) for row, label in enumerate(labels)]
    nodes = [[numbers.setdefault(part, len(numbers)) for part in row] for row in parts]
    links = [(row[0], other) for row in nodes for other in row[1:]]
    ends = np.array(links, dtype=np.int64).reshape(-1, 2)
    _, groups = components(len(numbers), ends[:, 0], ends[:, 1])
    of_row = groups[[row[0] for row in nodes]] if nodes else groups
    found, first, number = np.unique(of_row, return_index=True, return_inverse=True)
    place = np.empty(len(found), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(found))
    return np.asarray(place[number], dtype=np.int64)


def _parts(label: Hashable, row: int) -> list[Hashable]:
    if isinstance(label, tuple):
        return list(enumerate(label))
    return [("row", row) if label is None else ("unit", label)]


def is_shared(labels: Sequence[Hashable] | None) -> bool:
    """Does any unit have more than one row?"""
    named = [label for label in labels or () if label is not None]
    if any(isinstance(label, tuple) for label in named):
        return int(unit_numbers(named).max(initial=-1)) + 1 < len(named)
    return len(set(named)) < len(named)


def find_units(n: int, first: Ints, second: Ints, labels: Sequence[Hashable]) -> tuple[Ints, Units]:
    """The order in which to count the rows, unit by unit as each unit's first row comes, and the units in it
    (`unit_numbers`)."""
    if len(labels) != len(first):
        raise BadVotes(f"there are {len(first)} votes and {len(labels)} units; give one unit per vote")
    number = unit_numbers(labels)
    size = int(number.max(initial=-1)) + 1
    order = np.argsort(number, kind="stable")
    number, pair = number[order], pair_numbers(n, first[order], second[order])
    pairs, slots = np.unique(pair, return_inverse=True)
    groups, begins, group, often = np.unique(
        number * max(len(pairs), 1) + slots, return_index=True, return_inverse=True, return_counts=True
    )
    of_pair = groups % max(len(pairs), 1)
    units_with = node_sums(of_pair, np.ones(len(groups)), len(pairs))
    fewest, most = np.full(len(pairs), np.inf), np.zeros(len(pairs))
    np.minimum.at(fewest, of_pair, often)
    np.maximum.at(most, of_pair, often)
    fixed = fewest == most
    leads = np.zeros(len(number))
    leads[begins] = 1.0
    share = np.where(fixed[slots], 1.0 / often[group], leads)
    regular = bool(fixed.all() and (units_with == size).all())
    sizes, is_first = np.bincount(number), np.diff(number, prepend=-1) > 0
    whole = (
        np.full(len(number), 1 / sizes[0]) if len(sizes) and (sizes == sizes[0]).all() else is_first.astype(np.float64)
    )
    return order, Units(number, pair, share, whole, fixed[slots], regular)


def looks_sorted(family: Family, first: Ints, second: Ints, outcome: Floats) -> bool:
    """Whether the votes on each pair come as a block of wins and a block of losses.

    Compares the number of runs of equal winners with the number to expect in random order.
    """
    weight, won = family.decisive(outcome)
    first, second = first[weight > 0], second[weight > 0]
    ahead = (won[weight > 0] > 0) != (first > second)
    size = int(max(first.max(initial=0), second.max(initial=0))) + 1
    codes = edge_codes(size, np.minimum(first, second), np.maximum(first, second))
    pairs, slots = np.unique(codes, return_inverse=True)
    order = np.argsort(slots, kind="stable")
    slots, ahead = slots[order], ahead[order]
    begins = np.ones(len(slots), dtype=np.bool_)
    begins[1:] = (slots[1:] != slots[:-1]) | (ahead[1:] != ahead[:-1])
    counts = np.bincount(slots, minlength=len(pairs))
    wins = np.bincount(slots, ahead, minlength=len(pairs))
    expected = 1 + 2 * wins * (counts - wins) / np.maximum(counts, 1)
    mixed = (wins > 0) & (wins < counts)
    runs = np.bincount(slots, begins, minlength=len(pairs))[mixed].sum()
    return bool(expected[mixed].sum() >= ENOUGH and runs < FEW * expected[mixed].sum())
