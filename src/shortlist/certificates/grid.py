"""Evidence that needs no order of votes: for each ordered pair, wealth averaged over a fixed grid of bets.

For wins and losses it depends on the two counts alone, so files of counts can be certified. It has no belief to bet
with, and its losing accounts lose everything; so a single account must reach log(k(n-k)/delta) by itself.
"""

import math

import numpy as np

from shortlist.ledger import Accounts
from shortlist.pairs import Floats, node_sums, pair_ends, pair_numbers
from shortlist.problem import Problem
from shortlist.tally import Block

ETAS = np.geomspace(0.01, 8.0, 32)


def grid_accounts(problem: Problem, block: Block, tolerant: bool = False) -> Accounts:
    """Accounts of all pairs in the block, seen as the ledger sees them: from the smaller side of the line."""
    family, n = problem.family, problem.n
    pairs, slots = np.unique(pair_numbers(n, block.first, block.second), return_inverse=True)
    turned = (block.first > block.second) != (2 * problem.k > n)
    outcome = np.where(turned, family.flip(block.outcome), block.outcome)
    null = -problem.margin if tolerant else 0.0
    scale = 0.5 * family.variance_bound**-0.5  # 1 for Bradley-Terry, in units of sigma for Gaussian votes
    ahead, behind = (
        _average([
            node_sums(slots, block.counts * family.log_factor(null + scale * eta, null, seen), len(pairs))
            for eta in ETAS
        ])
        for seen in (outcome, family.flip(outcome))
    )  # fmt: skip
    first, second = pair_ends(n, pairs)
    ends = np.concatenate([first, second]), np.concatenate([second, first])
    return Accounts(*ends, np.concatenate([ahead, behind]))


def _average(log_wealth: list[Floats]) -> Floats:
    average: Floats = np.logaddexp.reduce(np.stack(log_wealth), axis=0) - math.log(len(log_wealth))
    return average


def grid_level(problem: Problem, delta: float) -> float:
    """What one account must reach: log(k(n-k)/delta), with a tolerance log(n(n-1)/delta) for accounts of two kinds."""
    n, k = problem.n, problem.k
    return math.log((n * (n - 1) if problem.tolerance else k * (n - k)) / delta)
