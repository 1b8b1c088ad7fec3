"""Are votes in the order in which they were cast? Sorted by winner, an early part is not a fair sample of the rest."""

import numpy as np

from shortlist.core.families import Family
from shortlist.core.pairs import Floats, Ints, edge_codes

ENOUGH = 20.0  # expected runs of equal winners before their number says anything
FEW = 0.25  # of the expected runs; votes that come in groups, such as five on the same case, still make more than half


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
