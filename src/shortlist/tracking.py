"""From an allocation to the next question: C-tracking. Paper: Section 5.4.

The pair furthest behind its share of the questions so far is asked next. Questions that are out count as answered.
"""

import numpy as np

from shortlist.pairs import Floats, Ints
from shortlist.tally import Tally


def deficits(w_sum: Floats, tally: Tally, out: Ints) -> Floats:
    """How far each pair is behind: w_sum - N, a question that is out counting as a vote."""
    behind = w_sum.copy()
    behind[tally.pairs] -= tally.counts
    np.subtract.at(behind, out, 1.0)
    return behind


def most_behind(behind: Floats) -> int:
    """The pair to ask; ties go to the lowest pair number."""
    return int(np.argmax(behind))


def hand_out(behind: Floats, size: int) -> tuple[Ints, Floats]:
    """The pairs that `size` questions in a row would go to, each to the pair then furthest behind, and how often.

    Filling water to a level: pair p is asked once for each of behind_p, behind_p - 1, ... above the level.
    """
    if size == 1:
        return np.array([most_behind(behind)]), np.ones(1)
    low, high = float(behind.min()) - size, float(behind.max())
    for _ in range(30):
        level = 0.5 * (low + high)
        asked = np.ceil(np.maximum(behind - level, 0.0)).sum()
        low, high = (level, high) if asked > size else (low, level)
    counts = np.ceil(np.maximum(behind - high, 0.0))
    missing = size - int(counts.sum())  # pairs exactly at the level, in order of their numbers
    counts[np.argsort(-(behind - counts), kind="stable")[:missing]] += 1.0
    pairs = np.flatnonzero(counts)
    return pairs, counts[pairs]
