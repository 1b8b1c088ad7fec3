"""Judges: do they agree, does it matter to them which item is shown first, and do they contradict themselves when they
see a pair again? The one definition of agreement, for reports and pages.

A judge's agreement is the share of its votes, ties left out, for the item that all other judges' votes rate higher.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from shortlist.analysis.ranking import WIDTH, prior_scale
from shortlist.analysis.votes import Votes
from shortlist.core.families import Family
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import Floats, node_sums
from shortlist.core.problem import Problem
from shortlist.core.ridge import laplace
from shortlist.core.tally import Tally

MOST_JUDGES = 100  # the ones with most votes; each costs a fit


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


@dataclass(frozen=True)
class JudgeAgreement:
    """One judge and the rest."""

    judge: str
    votes: float
    ties: float
    agreement: Share | None  # None where nobody else voted
    expected: float | None  # the agreement of a judge who votes as the others' fit predicts
    kappa: float | None  # 2 agreement - 1: 0 for a coin, 1 for full agreement
    position_bias: PositionBias


@dataclass(frozen=True)
class Agreement:
    """`alpha` is Krippendorff's, over votes on the same pair (and case), with squared differences of outcomes.

        alpha = 1 - D_o / D_e,   D_o = 2/N sum over pairs of m/(m-1) sum (y - mean)^2,   D_e = 2 mean (y - tie)^2

    D_e is how much votes would differ if each had been cast at random from either side: 0 is chance, 1 is agreement.
    """

    alpha: float | None
    judges: tuple[JudgeAgreement, ...]  # those with most votes
    others: int  # judges not listed
    unnamed: float  # votes without a named judge


def measure_agreement(problem: Problem, votes: Votes, theta: Floats) -> Agreement:
    """Each judge against the rest, and all together."""
    judges = judge_agreements(problem, votes, theta)
    named = len(np.unique(votes.judge[votes.judge >= 0]))
    unnamed = float(votes.weight[votes.judge < 0].sum())
    return Agreement(krippendorff_alpha(votes), judges, named - len(judges), unnamed)


def judge_agreements(
    problem: Problem, votes: Votes, theta: Floats | None = None, most: int = MOST_JUDGES
) -> tuple[JudgeAgreement, ...]:
    """The judges with most votes, most first. Costs one fit for each, a few milliseconds for 50 items.

    `theta` are the utilities of all votes together, such as `Ranking.utilities`; left out, they are fitted here.
    """
    if theta is None:
        with one_thread():
            theta = laplace(problem.family, votes.tally, prior_scale(problem)).theta
    rows = list(_by_judge(votes, most))
    return tuple(_judge(problem, votes, number, mine, theta) for number, mine in rows)


def krippendorff_alpha(votes: Votes) -> float | None:
    """None if no pair has two votes, or all votes are ties."""
    units = np.unique(np.stack([votes.pair, votes.case], axis=1), axis=0, return_inverse=True)[1].ravel()
    if not len(units):
        return None
    size, tie = int(units.max()) + 1, votes.family.tie
    value = votes.low_first * (votes.outcome - tie)  # from the lower item's side
    often, total, square = (node_sums(units, votes.weight * part, size) for part in (value**0, value, value**2))
    several = often >= 2
    often, total, square = often[several], total[several], square[several]
    if not square.sum() > 0:
        return None
    observed = 2 * float((often / (often - 1) * (square - total**2 / often)).sum()) / float(often.sum())
    return 1.0 - observed / (2 * float(square.sum()) / float(often.sum()))


def _by_judge(votes: Votes, most: int) -> Iterator[tuple[int, Votes]]:
    """The rows of each named judge, those with most votes first."""
    named = votes.judge >= 0
    counts = np.bincount(votes.judge[named], votes.weight[named], len(votes.judges))
    order = np.argsort(votes.judge, kind="stable")
    ends = np.searchsorted(votes.judge[order], np.arange(len(votes.judges) + 1))
    for judge in np.argsort(-counts, kind="stable")[:most].tolist():
        if counts[judge]:
            yield judge, votes.select(order[ends[judge] : ends[judge + 1]])


def _judge(problem: Problem, votes: Votes, number: int, mine: Votes, theta: Floats) -> JudgeAgreement:
    shares = None
    if len(mine.first) < len(votes.first):
        shares = _with_the_rest(problem, mine, _others(votes.tally, mine.tally), theta)
    agreement, expected = (None, None) if shares is None else shares
    kappa = None if agreement is None else 2 * agreement.share - 1
    ties = float(mine.weight @ (mine.preference == 0))
    bias = position_bias(mine, theta)
    return JudgeAgreement(votes.judges[number], mine.total, ties, agreement, expected, kappa, bias)


def _others(all_votes: Tally, mine: Tally) -> Tally:
    """The tally of everybody else."""
    slots = all_votes.pairs.searchsorted(mine.pairs)
    counts, sums = all_votes.counts.copy(), all_votes.sums.copy()
    counts[slots] -= mine.counts
    sums[slots] -= mine.sums
    kept = counts > 0.5
    ends = all_votes.first[kept], all_votes.second[kept]
    return Tally(all_votes.n, all_votes.pairs[kept], *ends, counts[kept], sums[kept])


def _with_the_rest(problem: Problem, mine: Votes, others: Tally, theta: Floats) -> tuple[Share, float] | None:
    """How often the judge prefers the item that the others rate higher, and how often their fit predicts it."""
    with one_thread():
        utilities = laplace(problem.family, others, prior_scale(problem), theta).theta
    eta = utilities[mine.first] - utilities[mine.second]
    judged = (mine.preference != 0) & (np.abs(eta) > 1e-9)
    if not judged.any():
        return None
    weight, eta = mine.weight[judged], eta[judged]
    agreed = float(weight @ (np.sign(eta) == mine.preference[judged]))
    expected = float(weight @ win_chances(problem.family, np.abs(eta))) / float(weight.sum())
    return wilson(agreed, float(weight.sum())), expected
