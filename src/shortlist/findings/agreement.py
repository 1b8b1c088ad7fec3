"""Do judges agree: each with the rest, and all together?"""

from dataclasses import dataclass

import numpy as np

from shortlist.certificates.posterior import laplace
from shortlist.findings.ballots import Ballots
from shortlist.findings.sides import JUDGES, Share, Sides, by_judge, sides, wilson
from shortlist.findings.standing import prior_scale
from shortlist.pairs import Floats, node_sums
from shortlist.problem import Problem
from shortlist.tally import Tally
from shortlist.threads import one_thread


@dataclass(frozen=True)
class JudgeFound:
    """`agreement` is the share of the judge's votes, ties left out, for the item that the others' votes put higher."""

    judge: str
    votes: float
    ties: float
    agreement: Share | None  # None where nobody else voted
    expected: float | None  # the same for a judge who votes as the others' fit says
    kappa: float | None  # 2 agreement - 1: 0 for a coin, 1 for full agreement
    sides: Sides


@dataclass(frozen=True)
class Agreement:
    """`alpha` is Krippendorff's, over votes on the same pair (and case), with squared differences of outcomes.

        alpha = 1 - D_o / D_e,   D_o = 2/N sum over pairs of m/(m-1) sum (y - mean)^2,   D_e = 2 mean (y - tie)^2

    D_e is what votes would differ by if each had been given at random from either side: 0 is chance, 1 is agreement.
    """

    alpha: float | None
    judges: tuple[JudgeFound, ...]  # those with most votes
    others: int  # judges not listed
    unnamed: float  # votes of nobody named


def agreement(problem: Problem, ballots: Ballots, theta: Floats) -> Agreement:
    found: list[JudgeFound] = []
    for number, rows in by_judge(ballots):
        if len(found) == JUDGES:
            break
        found.append(_judge(problem, ballots, number, rows, theta))
    names = len(np.unique(ballots.judge[ballots.judge >= 0]))
    unnamed = float(ballots.weight[ballots.judge < 0].sum())
    return Agreement(alpha(ballots), tuple(found), names - len(found), unnamed)


def alpha(ballots: Ballots) -> float | None:
    """None if no pair has two votes, or all votes are ties."""
    units = np.unique(np.stack([ballots.pair, ballots.case], axis=1), axis=0, return_inverse=True)[1].ravel()
    if not len(units):
        return None
    size, tie = int(units.max()) + 1, ballots.family.tie
    value = ballots.low_first * (ballots.outcome - tie)  # from the lower item's side
    often, total, square = (node_sums(units, ballots.weight * part, size) for part in (value**0, value, value**2))
    several = often >= 2
    often, total, square = often[several], total[several], square[several]
    if not square.sum() > 0:
        return None
    observed = 2 * float((often / (often - 1) * (square - total**2 / often)).sum()) / float(often.sum())
    return 1.0 - observed / (2 * float(square.sum()) / float(often.sum()))


def _judge(problem: Problem, ballots: Ballots, number: int, rows: Ballots, theta: Floats) -> JudgeFound:
    ties = float(rows.weight @ (rows.lean == 0))
    shares = None
    if len(rows.first) < len(ballots.first):
        shares = _with_the_rest(problem, rows, _others(ballots.tally, rows.tally), theta)
    votes, name, shown = rows.votes, ballots.judges[number], sides(rows, theta)
    if shares is None:
        return JudgeFound(name, votes, ties, None, None, None, shown)
    mine, expected = shares
    return JudgeFound(name, votes, ties, mine, expected, 2 * mine.share - 1, shown)


def _others(all_votes: Tally, mine: Tally) -> Tally:
    """The tally of everybody else."""
    slots = all_votes.pairs.searchsorted(mine.pairs)
    counts, sums = all_votes.counts.copy(), all_votes.sums.copy()
    counts[slots] -= mine.counts
    sums[slots] -= mine.sums
    kept = counts > 0.5
    ends = all_votes.first[kept], all_votes.second[kept]
    return Tally(all_votes.n, all_votes.pairs[kept], *ends, counts[kept], sums[kept])


def _with_the_rest(problem: Problem, rows: Ballots, others: Tally, theta: Floats) -> tuple[Share, float] | None:
    """How often the judge prefers the item that the others' votes put higher, and how often one of them would."""
    from scipy.special import ndtr

    family = problem.family
    with one_thread():
        utilities = laplace(family, others, prior_scale(problem), theta).theta
    eta = utilities[rows.first] - utilities[rows.second]
    judged = (rows.lean != 0) & (np.abs(eta) > 1e-9)
    if not judged.any():
        return None
    weight, size = rows.weight[judged], np.abs(eta[judged])
    wins = float(weight @ (np.sign(eta[judged]) == rows.lean[judged]))
    surely = ndtr(size * np.sqrt(family.variance_bound)) if family.win is None else family.expect(size)
    return wilson(wins, float(weight.sum())), float(weight @ surely) / float(weight.sum())
