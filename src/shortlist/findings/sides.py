"""Does it matter who is shown first, and does a judge ever change its mind?"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from shortlist.findings.ballots import Ballots
from shortlist.findings.standing import WIDTH
from shortlist.pairs import Floats

JUDGES = 100  # of whom more is said than how many votes they gave: those with most votes


@dataclass(frozen=True)
class Share:
    """Of `votes` that were no ties; `low` and `high` are Wilson's 95 % interval."""

    share: float
    low: float
    high: float
    votes: float


@dataclass(frozen=True)
class Repeats:
    """The same judge on the same pair (and case) more than once: how often two of its votes prefer different items.

    Over all such couples of votes; ties are left out. None where there are no couples.
    """

    same_order: float | None  # both shown the same way round: a judge that never changes its mind has 0
    other_order: float | None  # once each way round: the flip rate
    expected: float | None  # of fresh votes that follow the fit, same way round
    couples: float  # same way round
    flips: float  # couples shown both ways round


@dataclass(frozen=True)
class Sides:
    first: Share  # how often the item shown first was preferred
    expected: float  # the same, by the fit: 1/2 if sides were drawn by a coin
    repeats: Repeats


def sides(ballots: Ballots, theta: Floats) -> Sides:
    decided = ballots.where(ballots.lean != 0)
    p = _first_wins(decided, theta)
    total = max(decided.votes, 1e-300)
    wins = float(decided.weight @ (decided.lean > 0))
    expected = float(decided.weight @ p) / total if len(p) else 0.5
    return Sides(wilson(wins, decided.votes), expected, repeats(decided, p))


def wilson(wins: float, votes: float) -> Share:
    """A share and its interval: all p with |share - p| <= 1.96 sqrt(p(1-p)/votes)."""
    if not votes:
        return Share(0.5, 0.0, 1.0, 0.0)
    share, square = wins / votes, WIDTH**2 / votes
    middle = (share + square / 2) / (1 + square)
    reach = WIDTH * math.sqrt(share * (1 - share) / votes + square / (4 * votes)) / (1 + square)
    return Share(share, max(0.0, min(middle - reach, share)), min(1.0, max(middle + reach, share)), votes)


def _first_wins(ballots: Ballots, theta: Floats) -> Floats:
    """The chance that the first is preferred in a vote that is no tie."""
    from scipy.special import ndtr

    eta = theta[ballots.first] - theta[ballots.second]
    if ballots.family.win is None:
        chance: Floats = ndtr(eta * math.sqrt(ballots.family.variance_bound))
        return chance
    return ballots.family.expect(eta)


def repeats(decided: Ballots, p: Floats) -> Repeats:
    """Counted from wins and losses in each group of judge, pair, case and order."""
    named = decided.judge >= 0
    if not named.any():
        return Repeats(None, None, None, 0.0, 0.0)
    rows, p = decided.where(named), p[named]
    keys = np.stack([rows.judge, rows.pair, rows.case], axis=1)
    group = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
    low_wins = np.where(rows.low_first > 0, rows.lean > 0, rows.lean < 0)
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


def by_judge(ballots: Ballots) -> Iterator[tuple[int, Ballots]]:
    """The rows of each named judge, those with most votes first."""
    named = ballots.judge >= 0
    counts = np.bincount(ballots.judge[named], ballots.weight[named], len(ballots.judges))
    order = np.argsort(ballots.judge, kind="stable")
    ends = np.searchsorted(ballots.judge[order], np.arange(len(ballots.judges) + 1))
    for judge in np.argsort(-counts, kind="stable").tolist():
        if counts[judge]:
            yield judge, ballots.where(order[ends[judge] : ends[judge + 1]])
