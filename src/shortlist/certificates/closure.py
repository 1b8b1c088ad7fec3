"""Chains of evidence: whom an item is proved to be ahead of, directly or through others.

An item absorbs v when the accounts of the absorbed items against v, less all that accounts against v have lost,
reach a level. If no account could win that much against a member of S* from outside (docs/guarantee.md), then what an
outsider absorbs is outside too.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from shortlist.ledger import Accounts
from shortlist.pairs import Flags, Floats, Ints


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


def step(pulls: Sequence[tuple[Pull, float]], absorbed: Flags) -> Flags:
    """Each column with all that it absorbs directly, by any kind of evidence that reaches its own level."""
    grown = absorbed
    for evidence, level in pulls:
        grown = grown | (evidence.on(absorbed) >= level)
    return grown


def absorb(pulls: Sequence[tuple[Pull, float]], absorbed: Flags) -> Flags:
    """Grow each column until no item can be added."""
    while True:
        grown = step(pulls, absorbed)
        if np.array_equal(grown, absorbed):
            return grown
        absorbed = grown


def certified(n: int, accounts: Accounts, level: float) -> tuple[Pull, float]:
    """Accounts that count one by one: each that reached the level pulls with 1."""
    won = accounts.wealth >= level
    places = accounts.target[won], accounts.source[won]
    return Pull(csr_array((np.ones(int(won.sum())), places), shape=(n, n)), np.zeros(n)), 1.0


def starts(n: int, sources: Ints) -> Flags:
    """One column per source, holding that item alone."""
    absorbed = np.zeros((n, len(sources)), dtype=np.bool_)
    absorbed[sources, np.arange(len(sources))] = True
    return absorbed
