"""Chains of evidence: whom an item is proved to be ahead of, directly or through others.

An item absorbs v when the accounts of the absorbed items against v, less all that accounts against v have lost,
reach a level. If no account could win that much against a member of S* from outside (docs/guarantee.md), then what an
outsider absorbs is outside too.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array

from shortlist.core.betting import Accounts, Ledger, grid_average, with_cash
from shortlist.core.pairs import Flags, Floats, Ints, node_sums, pair_ends, pair_numbers
from shortlist.core.problem import Problem
from shortlist.core.tally import Block


class AnyPull(Protocol):
    """Accounts in a form that absorbing needs."""

    def on(self, absorbed: Flags) -> Floats:
        """Evidence of each column's absorbed items against every item."""
        ...


class Pull(NamedTuple):
    """Accounts in the form that absorbing needs: gains by (target, source), losses by target."""

    gains: csr_array
    losses: Floats

    def on(self, absorbed: Flags) -> Floats:
        """Evidence of each column's absorbed items against every item."""
        evidence: Floats = self.gains @ absorbed.astype(np.float64) - self.losses[:, None]
        return evidence


def pull(n: int, accounts: Accounts) -> Pull:
    won = accounts.wealth > 0
    places = accounts.target[won], accounts.source[won]
    return Pull(csr_array((accounts.wealth[won], places), shape=(n, n)), accounts.losses(n))


class CappedPull(NamedTuple):
    """The same where every step must rest on at least m judges: in a step from R to v, each judge's gains in accounts
    of R against v count up to a cap, which is less than 1/(m-1) of what the step needs.

    A row is what one judge won or lost in one account. Only accounts that won are there: a step may leave out others.
    """

    source: Ints
    gain: Floats
    giver: Ints  # of each row: its judge and target
    by_giver: csr_array  # sums of rows
    by_account: csr_array  # sums of rows
    by_target: csr_array  # sums of accounts
    target: Ints  # by giver
    caps: Floats  # by giver
    losses: Floats

    def on(self, absorbed: Flags) -> Floats:
        gain, here = self.gain[:, None], absorbed[self.source]
        given = self.by_giver @ (here * np.maximum(gain, 0.0))
        share = np.minimum(1.0, self.caps[:, None] / np.maximum(given, 1e-300))
        counted = here * np.where(gain > 0, share[self.giver] * gain, gain)
        evidence: Floats = self.by_target @ np.maximum(with_cash(self.by_account @ counted), 0.0)
        return evidence - self.losses[:, None]


def capped_pull(ledger: Ledger, delta: float) -> CappedPull:
    """The ledger's accounts with the caps of this delta."""
    n, (judge, source, target, gain), caps = ledger.problem.n, ledger.gains, ledger.caps(delta)
    won = ledger.wealth(source, target) > 0
    judge, source, target, gain = judge[won], source[won], target[won], gain[won]
    givers, giver = np.unique(judge * n + target, return_inverse=True)
    accounts, account = np.unique(source * n + target, return_inverse=True)
    sums = (_sums(giver, len(givers)), _sums(account, len(accounts)), _sums(accounts % n, n))
    return CappedPull(source, gain, giver, *sums, givers % n, caps[givers % n], ledger.accounts().losses(n))


def capped_pulls(together: CappedPull, ledger: Ledger, delta: float) -> list[tuple[AnyPull, float]]:
    """Steps that rest on at least m judges: from all absorbed items together, or from one of them. `together` is the
    ledger's `capped_pull` at any delta, which decides nothing but its caps."""
    level, (source, target, wealth) = ledger.level(delta), ledger.capped(delta).accounts()
    alone = Accounts(source, target, wealth - together.losses[target])
    at_delta = together._replace(caps=ledger.caps(delta)[together.target])
    return [(at_delta, level), each_alone(ledger.problem.n, alone, level)]


def _sums(places: Ints, size: int) -> csr_array:
    """A matrix that adds up rows by place."""
    return csr_array((np.ones(len(places)), (places, np.arange(len(places)))), shape=(size, len(places)))


def step(pulls: Sequence[tuple[AnyPull, float]], absorbed: Flags) -> Flags:
    """Each column with all that it absorbs directly, by any kind of evidence that reaches its own level."""
    grown = absorbed
    for evidence, level in pulls:
        grown = grown | (evidence.on(absorbed) >= level)
    return grown


def absorb(pulls: Sequence[tuple[AnyPull, float]], absorbed: Flags) -> Flags:
    """Grow each column until no item can be added."""
    while True:
        grown = step(pulls, absorbed)
        if np.array_equal(grown, absorbed):
            return grown
        absorbed = grown


def each_alone(n: int, accounts: Accounts, level: float) -> tuple[Pull, float]:
    """Accounts that count one by one: each that reaches the level is enough alone."""
    won = accounts.wealth >= level
    places = accounts.target[won], accounts.source[won]
    return Pull(csr_array((np.ones(int(won.sum())), places), shape=(n, n)), np.zeros(n)), 1.0


def starts(n: int, sources: Ints) -> Flags:
    """One column per source, holding that item alone."""
    absorbed = np.zeros((n, len(sources)), dtype=np.bool_)
    absorbed[sources, np.arange(len(sources))] = True
    return absorbed


ETAS = np.geomspace(0.01, 8.0, 32)


def grid_sums(problem: Problem, block: Block, tolerant: bool = False) -> Floats:
    """Log wealth of each bet of the grid on the pairs of the block [pair, side, bet], in order of pair number, seen as
    the ledger sees them: from the smaller side of the cutoff."""
    family, n = problem.family, problem.n
    pairs, slots = np.unique(pair_numbers(n, block.first, block.second), return_inverse=True)
    turned = (block.first > block.second) != (2 * problem.k > n)
    outcome = np.where(turned, family.flip(block.outcome), block.outcome)
    null = -problem.margin if tolerant else 0.0
    scale = 0.5 * family.variance_bound**-0.5  # 1 for Bradley-Terry, in units of sigma for Gaussian votes
    counts = block.counts if block.weights is None else block.counts * block.weights
    sides = [
        [node_sums(slots, counts * family.log_factor(null + scale * eta, null, seen), len(pairs)) for eta in ETAS]
        for seen in (outcome, family.flip(outcome))
    ]
    return np.moveaxis(np.asarray(sides), -1, 0)


def grid_accounts(problem: Problem, block: Block, tolerant: bool = False) -> Accounts:
    """Accounts of all pairs in the block."""
    first, second = pair_ends(problem.n, np.unique(pair_numbers(problem.n, block.first, block.second)))
    ends = np.concatenate([first, second]), np.concatenate([second, first])
    return Accounts(*ends, grid_average(grid_sums(problem, block, tolerant)).T.ravel())


def grid_level(problem: Problem, delta: float) -> float:
    """What one account must reach: log(k(n-k)/delta), with a tolerance log(n(n-1)/delta) for accounts of two kinds."""
    n, k = problem.n, problem.k
    return math.log((n * (n - 1) if problem.tolerance else k * (n - k)) / delta)
