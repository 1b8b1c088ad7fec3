"""What the votes say so far, for rules and certificates to look at."""

from typing import NamedTuple

from shortlist.ledger import Ledger
from shortlist.pairs import Floats
from shortlist.tally import Block, Tally


class Questions(NamedTuple):
    """Questions that are out, with the bets on them; their outcomes mean nothing."""

    block: Block
    bets: Floats


class Facts(NamedTuple):
    """The MLE and the ledger are kept only if the rule or the certificate wants them."""

    tally: Tally
    mle: Floats | None = None
    ledger: Ledger | None = None

    @property
    def theta_hat(self) -> Floats:
        """The maximum-likelihood utilities on Theta."""
        assert self.mle is not None, "a rule or certificate that reads theta_hat must want the mle"
        return self.mle

    @property
    def book(self) -> Ledger:
        """The ledger of bets."""
        assert self.ledger is not None, "a rule or certificate that reads the ledger must want it"
        return self.ledger

    @property
    def theta(self) -> Floats:
        """The best estimate there is, to put items in order with."""
        return self.book.theta if self.mle is None else self.mle
