"""Can this be the order in which votes were cast?"""

import numpy as np

from shortlist.families import Family
from shortlist.io.table import VoteTable
from shortlist.pairs import pair_numbers

ENOUGH = 20.0  # runs to expect before their number says anything
FEW = 0.25  # of those; votes that come in groups, such as five on the same case, still make more than half


def looks_sorted(table: VoteTable, family: Family) -> bool:
    """Do the votes on a pair come as a block of wins and a block of losses, pair by pair?

    Counted are runs of equal winners, against how many there would be in random order.
    """
    weight, won = family.decisive(table.outcome)
    first, second = table.first[weight > 0], table.second[weight > 0]
    ahead = (won[weight > 0] > 0) != (first > second)
    pairs, slots = np.unique(pair_numbers(len(table.items), first, second), return_inverse=True)
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
