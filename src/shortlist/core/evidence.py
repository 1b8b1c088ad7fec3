"""The votes so far and the estimates from them: the input of sampling rules and stopping rules."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shortlist.core.betting import Ledger, Marker, empty_ledger
from shortlist.core.estimate import fit
from shortlist.core.pairs import Floats
from shortlist.core.problem import Problem
from shortlist.core.tally import Block, Tally, Vote, as_block, empty_tally, one_vote


class Evidence(NamedTuple):
    """The maximum-likelihood estimate and the ledger are kept only if a rule wants them (`wants`)."""

    tally: Tally
    mle: Floats | None = None
    ledger: Ledger | None = None

    @property
    def theta_hat(self) -> Floats:
        """The maximum-likelihood utilities on Theta."""
        assert self.mle is not None, "a rule that reads theta_hat must want the mle"
        return self.mle

    @property
    def kept_ledger(self) -> Ledger:
        """The ledger, for rules that want one."""
        assert self.ledger is not None, "a rule that reads the ledger must want it"
        return self.ledger

    @property
    def theta(self) -> Floats:
        """The best available estimate, used to order the items."""
        return self.kept_ledger.theta if self.mle is None else self.mle

    def place_bets(self, votes: Block) -> Block:
        """These votes with the current bets; 0 without a ledger."""
        return votes._replace(bets=np.zeros(len(votes.first))) if self.ledger is None else self.ledger.place_bets(votes)

    def add(self, problem: Problem, vote: Vote, pending: Block | None = None) -> "Evidence":
        """With one more vote; the estimate is still the old one."""
        ledger = None if self.ledger is None else self.ledger.add(one_vote(vote), pending)
        return Evidence(self.tally.add(problem.family, vote), self.mle, ledger)

    def add_block(self, problem: Problem, votes: Block, pending: Block | None = None) -> "Evidence":
        """With many more votes, whose bets are placed; the estimate is still the old one."""
        ledger = None if self.ledger is None else self.ledger.add(votes, pending)
        return Evidence(self.tally.add_block(problem.family, votes), self.mle, ledger)

    def withdraw(self, problem: Problem, votes: Sequence[Vote], imported: Sequence[Vote] = ()) -> "Evidence":
        """Without votes that were withdrawn, as in `Ledger.withdraw`; the estimate is still the old one. `imported` are
        those of them that were imported."""
        tally = self.tally
        for vote in votes:
            tally = tally.add(problem.family, vote, -1.0)
        ledger = self.kept_ledger.withdraw(as_block(votes))
        return Evidence(tally, self.mle, ledger.forget_grid(as_block(imported)) if imported else ledger)

    def estimate(self, problem: Problem) -> "Evidence":
        """With the maximum-likelihood estimate of all its votes, if that is kept."""
        if self.mle is None:
            return self
        return self._replace(mle=fit(problem.family, self.tally, problem.bound, self.mle))


def no_evidence(problem: Problem, wants: frozenset[str], marker: Marker | None = None) -> Evidence:
    """Before the first vote; `wants` names which of `mle` and `ledger` are kept."""
    mle = np.zeros(problem.n) if "mle" in wants else None
    return Evidence(empty_tally(problem.n), mle, empty_ledger(problem, marker) if "ledger" in wants else None)
