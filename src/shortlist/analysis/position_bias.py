"""Does it matter which item is shown first, and do judges contradict themselves when they see a pair again?"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from shortlist.analysis.ranking import WIDTH
from shortlist.analysis.votes import Votes
from shortlist.core.families import Family
from shortlist.core.pairs import Floats


@dataclass(frozen=True)
class Share:
    """A share of `votes`, ties left out; `low` and `high` are Wilson's 95 % interval."""

    share: float
    low: float
    high: float
    votes: float


@dataclass(frozen=True)
class Repeats:
    """How often two votes of one judge on the same pair (and case) prefer different items.

    Over all such couples of votes; ties are left out. None where there are no couples.
    """

    same_order: float | None  # both shown in the same order: 0 for a judge that never changes its mind
    other_order: float | None  # once in each order: the flip rate
    expected: float | None  # same order, for independent votes that follow the fit
    couples: float  # in the same order
    flips: float  # couples shown in both orders


@dataclass(frozen=True)
class PositionBias:
    first: Share  # how often the item shown first was preferred
    expected: float  # the same by the fit: 1/2 if the order was drawn by a coin
    repeats: Repeats

    @property
    def votes(self) -> float:
        """Votes that were not ties."""
        return self.first.votes


def position_bias(votes: Votes, theta: Floats) -> PositionBias:
    """How often the item shown first was preferred, against what the utilities `theta` predict."""
    decided = votes.select(votes.preference != 0)
    p = win_chances(votes.family, theta[decided.first] - theta[decided.second])
    total = max(decided.total, 1e-300)
    wins = float(decided.weight @ (decided.preference > 0))
    expected = float(decided.weight @ p) / total if len(p) else 0.5
    return PositionBias(wilson(wins, decided.total), expected, _repeats(decided, p))


def wilson(wins: float, votes: float) -> Share:
    """A share and its interval: all p with |share - p| <= 1.96 sqrt(p(1-p)/votes)."""
    if not votes:
        return Share(0.5, 0.0, 1.0, 0.0)
    share, square = wins / votes, WIDTH**2 / votes
    middle = (share + square / 2) / (1 + square)
    reach = WIDTH * math.sqrt(share * (1 - share) / votes + square / (4 * votes)) / (1 + square)
    return Share(share, max(0.0, min(middle - reach, share)), min(1.0, max(middle + reach, share)), votes)


def win_chances(family: Family, eta: Floats) -> Floats:
    """The chance that the first item is preferred in a vote that is not a tie, at a difference of utilities eta."""
    chance: Floats = ndtr(eta * math.sqrt(family.variance_bound)) if family.is_measured else family.expect(eta)
    return chance


def _repeats(decided: Votes, p: Floats) -> Repeats:
    """Counted from wins and losses in each group of judge, pair, case and order."""
    named = decided.judge >= 0
    if not named.any():
        return Repeats(None, None, None, 0.0, 0.0)
    rows, p = decided.select(named), p[named]
    keys = np.stack([rows.judge, rows.pair, rows.case], axis=1)
    group = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
    low_wins = np.where(rows.low_first > 0, rows.preference > 0, rows.preference < 0)
    cell, size = 2 * group + (rows.low_first > 0), 2 * (int(group.max()) + 1)
    won, lost = (np.bincount(cell, rows.weight * side, size) for side in (low_wins, ~low_wins))
    seen = won + lost
    couples, differ = seen * (seen - 1) / 2, won * lost
    chance = np.bincount(cell, rows.weight * p, size) / np.maximum(seen, 1e-300)
    flips, flipped = seen[::2] * seen[1::2], won[::2] * lost[1::2] + lost[::2] * won[1::2]
    return Repeats(
        _ratio(differ.sum(), couples.sum()), _ratio(flipped.sum(), flips.sum()),
        _ratio((couples * 2 * chance * (1 - chance)).sum(), couples.sum()), float(couples.sum()), float(flips.sum()),
    )  # fmt: skip


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None
