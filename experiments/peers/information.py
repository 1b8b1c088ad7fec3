"""Rules that ask what tells most about all utilities, wherever the cutoff is.

- Information gain: the pair whose vote is expected to tell most, which is the mutual information of the vote and the
  utilities. This is the criterion of ASAP (Mikhailiuk, Wilmot, Perez-Ortiz, Yue & Mantiuk, ICPR 2020) one pair at a
  time. ASAP has independent items from TrueSkill; here items have their covariances, as all peers do.
- ASAP: the same criterion in its batches: the n - 1 pairs of a minimum spanning tree with weights 1 / gain.
- Crowd-BT (Chen, Bennett, Collins-Thompson & Horvitz, WSDM 2013), with the constants of the software gavel: items are
  independent normals, moved after each vote by its formulas; the judge has a quality with a beta distribution. It asks
  the pair with the largest expected divergence, and one question in four goes to a random pair.
- gavel: Crowd-BT where the judge walks: the next pair is the item seen last and the best second one, or, one time in
  four, a random one. Here one judge gives all votes. gavel's least number of views for each item is left out.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import betaln, digamma, entr, expit

from experiments.peers.base import InRounds, Peer, Round, counts_of, covariance_of, spreads, told
from shortlist.core.draws import Draws
from shortlist.core.evidence import Evidence
from shortlist.core.pairs import Floats, Ints, all_pairs, n_pairs, pair_items, pair_numbers
from shortlist.core.problem import Problem
from shortlist.core.tally import Tally

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
JITTER = 1e-9  # breaks ties by chance
LEAST_GAIN = 1e-15  # keeps the weights of a tree finite
RANDOM_SHARE = 0.25
QUALITY_WEIGHT = 0.1  # gamma, what learning about the judge counts
PRIOR_VARIANCE, PRIOR_QUALITY = 1.0, (10.0, 1.0)
LEAST_FACTOR = 1e-4  # kappa, keeps variances positive


def information(gap: Floats, spread: Floats) -> Floats:
    """I(vote; utilities) in nats if the difference is N(gap, spread): H(E p) - E H(p), by Gauss-Hermite quadrature."""
    chances = expit(gap[..., None] + np.sqrt(spread)[..., None] * NODES)
    mean = np.minimum(chances @ WEIGHTS, 1.0)  # rounding
    return entr(mean) + entr(1 - mean) - (entr(chances) + entr(1 - chances)) @ WEIGHTS


def gains_of(theta: Floats, covariance: Floats) -> Floats:
    """The expected information of a vote on each pair."""
    first, second = all_pairs(len(theta))
    return information(theta[first] - theta[second], spreads(covariance)[first, second])


class InformationGain(Peer):
    def ask(self, memory: None, evidence: Evidence, size: int, rng: np.random.Generator) -> Ints:
        belief = evidence.kept_ledger.belief
        covariance, n = covariance_of(belief), evidence.tally.n
        chosen = []
        for _ in range(size):
            gains = gains_of(belief.theta, covariance)
            chosen.append(int(np.argmax(gains * (1 + JITTER * rng.random(len(gains))))))
            covariance = told(covariance, belief.theta, *pair_items(n, chosen[-1]))
        return np.array(chosen)


class Asap(InRounds):
    def first_round(self, n: int) -> Ints:
        return pair_numbers(n, np.arange(n - 1), np.arange(1, n))  # all gains are equal: any tree

    def next_round(self, last: Round, evidence: Evidence, rng: np.random.Generator) -> Ints:
        belief, n = evidence.kept_ledger.belief, evidence.tally.n
        gains = gains_of(belief.theta, covariance_of(belief))
        costs = (1 + JITTER * rng.random(len(gains))) / np.maximum(gains, LEAST_GAIN)
        tree = minimum_spanning_tree(coo_array((costs, all_pairs(n)), shape=(n, n))).tocoo()
        return pair_numbers(n, tree.row.astype(np.int64), tree.col.astype(np.int64))


class Crowd(NamedTuple):
    """Crowd-BT's posterior, the item seen last, and the votes it was formed from."""

    means: Floats
    variances: Floats
    quality: tuple[float, float]
    last: int
    tally: Tally | None = None


@dataclass(frozen=True)
class CrowdBt(Peer):
    """walks: one end of each pair is the item seen last, as in gavel; otherwise any pair may be best."""

    walks: bool = False

    def start(self, problem: Problem) -> Crowd:
        return Crowd(np.zeros(problem.n), np.full(problem.n, PRIOR_VARIANCE), PRIOR_QUALITY, 0)

    def ask(self, memory: Crowd, evidence: Evidence, size: int, rng: np.random.Generator) -> Ints:
        """One pair: the next one depends on its answer."""
        n = evidence.tally.n
        first, second = all_pairs(n)
        if self.walks:
            second = np.delete(np.arange(n), memory.last)
            first = np.full(n - 1, memory.last)
        if rng.random() < RANDOM_SHARE:
            slot = int(rng.integers(len(first)))
        else:
            gains = expected_divergence(memory, first, second)
            slot = int(np.argmax(gains * (1 + JITTER * rng.random(len(gains)))))
        return np.array([pair_numbers(n, first[slot : slot + 1], second[slot : slot + 1])[0]])

    def learn(self, memory: Crowd, problem: Problem, evidence: Evidence, rounds: int, draws: Draws) -> Crowd:
        tally = evidence.tally
        first, second, won = _newest(memory.tally, tally)
        ends = (first, second) if won else (second, first)
        moved = after(memory, np.array(ends[:1]), np.array(ends[1:]))
        means, variances = memory.means.copy(), memory.variances.copy()
        for place, item in enumerate(ends):
            means[item], variances[item] = moved.means[place][0], moved.variances[place][0]
        seen = second if memory.last == first else first
        return Crowd(means, variances, (float(moved.quality[0][0]), float(moved.quality[1][0])), seen, tally)


def _newest(before: Tally | None, now: Tally) -> tuple[int, int, bool]:
    """The pair of the only new vote, and whether its first item won."""
    counts, sums = counts_of(now), np.zeros(n_pairs(now.n))
    sums[now.pairs] = now.sums
    if before is not None:
        counts[before.pairs] -= before.counts
        sums[before.pairs] -= before.sums
    pair = int(np.argmax(counts))
    assert counts.sum() == 1, "Crowd-BT learns vote by vote"
    return *pair_items(now.n, pair), bool(sums[pair] > 0.5)


class After(NamedTuple):
    """The posterior after a vote: of the winner and the loser, and of the judge; and the chance of that vote."""

    means: tuple[Floats, Floats]
    variances: tuple[Floats, Floats]
    quality: tuple[Floats, Floats]
    chance: Floats


def after(crowd: Crowd, winner: Ints, loser: Ints) -> After:
    """Crowd-BT's posterior after `winner` beats `loser`, for arrays of both (its equations for one new label)."""
    alpha, beta = crowd.quality
    gap = crowd.means[winner] - crowd.means[loser]
    spread = crowd.variances[winner] + crowd.variances[loser]
    plain, judged = expit(gap), expit(gap + np.log(alpha / beta))  # the winner is better; so is the judge's word
    push = judged - plain
    curve = judged * (1 - judged) - plain * (1 - plain)
    means = crowd.means[winner] + crowd.variances[winner] * push, crowd.means[loser] - crowd.variances[loser] * push
    ends = crowd.variances[winner], crowd.variances[loser]
    shrunk = (ends[0] * np.maximum(1 + ends[0] * curve, LEAST_FACTOR),
              ends[1] * np.maximum(1 + ends[1] * curve, LEAST_FACTOR))  # fmt: skip
    better = plain + 0.5 * spread * plain * (1 - plain) * (1 - 2 * plain)
    chance = (better * alpha + (1 - better) * beta) / (alpha + beta)
    return After(means, shrunk, _quality_after(alpha, beta, better, chance), chance)


def _quality_after(alpha: float, beta: float, better: Floats, chance: Floats) -> tuple[Floats, Floats]:
    """The beta distribution with the mean and variance of the judge's quality after the vote."""
    total = alpha + beta
    mean = alpha * (better * (alpha + 1) + (1 - better) * beta) / (chance * total * (total + 1))
    square = alpha * (alpha + 1) * (better * (alpha + 2) + (1 - better) * beta)
    square /= chance * total * (total + 1) * (total + 2)
    strength = (mean - square) / (square - mean**2)
    return mean * strength, (1 - mean) * strength


def expected_divergence(crowd: Crowd, first: Ints, second: Ints) -> Floats:
    """The expected Kullback-Leibler divergence of the posterior after a vote on each pair from the one before."""
    won, lost = after(crowd, first, second), after(crowd, second, first)
    told_by_win = _divergence(crowd, first, second, won)
    return won.chance * told_by_win + (1 - won.chance) * _divergence(crowd, second, first, lost)


def _divergence(crowd: Crowd, winner: Ints, loser: Ints, now: After) -> Floats:
    total = QUALITY_WEIGHT * _between_betas(*now.quality, *crowd.quality)
    for item, mean, variance in zip((winner, loser), now.means, now.variances, strict=True):
        before = crowd.variances[item]
        total += (mean - crowd.means[item]) ** 2 / (2 * before) + (
            variance / before - 1 - np.log(variance / before)
        ) / 2
    return total


def _between_betas(a: Floats, b: Floats, prior_a: float, prior_b: float) -> Floats:
    divergence: Floats = (
        betaln(prior_a, prior_b) - betaln(a, b) + (a - prior_a) * digamma(a) + (b - prior_b) * digamma(b)
        + (prior_a - a + prior_b - b) * digamma(a + b)
    )  # fmt: skip
    return divergence
