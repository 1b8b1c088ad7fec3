"""What the peers share: how a peer is a sampling rule, rounds of questions, and what is believed of the items.

Peers exist to be compared with. They ask all pairs, and nobody waits for an answer: nothing is pending, and no pair is
to be avoided. Their belief is the ridge fit of the ledger, N(theta, C), which is at most 1 % of the votes old.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from shortlist.core.draws import Draws
from shortlist.core.evidence import Evidence
from shortlist.core.families import BradleyTerry
from shortlist.core.pairs import Floats, Ints, n_pairs
from shortlist.core.problem import Problem
from shortlist.core.ridge import Belief
from shortlist.core.sampling.base import NO_PAIRS
from shortlist.core.tally import Tally

FAMILY = BradleyTerry()
LEAST_SPREAD = 1e-12  # keeps the distance of two items finite


@dataclass(frozen=True)
class Peer:
    """A sampling rule of the literature. Most have no memory: all they need is in the evidence."""

    name: str
    wants: frozenset[str] = frozenset({"ledger"})

    def start(self, problem: Problem) -> Any:
        return None

    def questions(
        self, memory: Any, evidence: Evidence, pending: Ints, size: int, draws: Draws, avoid: Ints = NO_PAIRS
    ) -> tuple[Ints, Floats]:
        """As `SamplingRule.questions`; a peer may ask fewer than `size` at once if it must see the answers first."""
        pairs, counts = np.unique(self.ask(memory, evidence, size, draws.generator()), return_counts=True)
        return pairs, counts.astype(np.float64)

    def ask(self, memory: Any, evidence: Evidence, size: int, rng: np.random.Generator) -> Ints:
        """The pairs of the next questions, at most `size` of them."""
        raise NotImplementedError

    def learn(self, memory: Any, problem: Problem, evidence: Evidence, rounds: int, draws: Draws) -> Any:
        return memory

    def votes_left(self, memory: Any, evidence: Evidence) -> None:
        return None


class Round(NamedTuple):
    """Pairs that are asked once each, and the votes that each had before."""

    pairs: Ints
    before: Floats

    def left(self, tally: Tally) -> Ints:
        """The pairs of the round that were not asked yet."""
        return self.pairs[counts_of(tally)[self.pairs] <= self.before]


class InRounds(Peer):
    """A peer that decides on a round of questions once the answers of the last round are in."""

    def start(self, problem: Problem) -> Round:
        pairs = self.first_round(problem.n)
        return Round(pairs, np.zeros(len(pairs)))

    def ask(self, memory: Round, evidence: Evidence, size: int, rng: np.random.Generator) -> Ints:
        return rng.permutation(memory.left(evidence.tally))[:size]

    def learn(self, memory: Round, problem: Problem, evidence: Evidence, rounds: int, draws: Draws) -> Round:
        if len(memory.left(evidence.tally)):
            return memory
        pairs = self.next_round(memory, evidence, draws.generator())
        return Round(pairs, counts_of(evidence.tally)[pairs])

    def first_round(self, n: int) -> Ints:
        raise NotImplementedError

    def next_round(self, last: Round, evidence: Evidence, rng: np.random.Generator) -> Ints:
        raise NotImplementedError


def counts_of(tally: Tally) -> Floats:
    """How many votes every pair has."""
    counts: Floats = np.zeros(n_pairs(tally.n))
    counts[tally.pairs] = tally.counts
    return counts


def covariance_of(belief: Belief) -> Floats:
    return np.diag(belief.variances) if belief.covariance is None else belief.covariance


def spreads(covariance: Floats) -> Floats:
    """The variance of theta_i - theta_j, for all i and j."""
    own = covariance.diagonal()
    return np.maximum(own[:, None] + own - 2 * covariance, LEAST_SPREAD)


def told(covariance: Floats, theta: Floats, first: int, second: int) -> Floats:
    """The covariance once a vote on the pair is known; to this order its outcome does not matter."""
    row = covariance[first] - covariance[second]
    spread = row[first] - row[second]
    gap = np.asarray(theta[first] - theta[second])
    information = float(FAMILY.moments(FAMILY.damp(gap, np.asarray(spread))).variance)
    now: Floats = covariance - np.outer(row, row) * (information / (1.0 + information * spread))
    return now
