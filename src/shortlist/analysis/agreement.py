"""Do judges agree: each with the rest, and all together? The one definition of agreement, for reports and pages.

A judge's agreement is the share of its votes, ties left out, for the item that all other judges' votes rate higher.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from shortlist.analysis.position_bias import PositionBias, Share, position_bias, wilson, win_chances
from shortlist.analysis.ranking import prior_scale
from shortlist.analysis.votes import Votes
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import Floats, node_sums
from shortlist.core.problem import Problem
from shortlist.core.ridge import laplace
from shortlist.core.tally import Tally

MOST_JUDGES = 100  # the ones with most votes; each costs a fit


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
