"""The ballot of one judge: a list of pairs with bets that is drawn as a whole, for a claim about the judges' public.

One judge's answers share the luck of that judge, so no item is bet against twice on a list: then every product of
accounts meets the judge at most once (docs/guarantee.md). An item that a bet is against is its *target*, as the ledger
sees it. With a tolerance both items of a pair bet, so no item is listed twice.

While the order at the cutoff is in doubt, the list has the pairs that sharpen it most. After that it has the pairs of
the bridge plan, drawn with chances as in `bridge`, the most needed first, and is filled with pairs that sharpen. A bet
knows its place: later places are answered less often, and what is not answered is lost.
"""

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from shortlist.core.betting import Ledger
from shortlist.core.draws import Draws
from shortlist.core.evidence import Evidence
from shortlist.core.families import Family
from shortlist.core.pairs import Flags, Floats, Ints, pair_ends, pair_items
from shortlist.core.sampling.base import NO_PAIRS
from shortlist.core.sampling.bridge import BridgeMemory, planned, votes_out
from shortlist.core.sampling.learn_then_prove import DOUBT
from shortlist.core.sampling.plan import Plan
from shortlist.core.sampling.sharpen import Given, Scores, score_pairs

ANSWERED, CLOSED = 19.0, 20.0  # what the counts of a place start with: people answer nearly all of a short list


class Places(NamedTuple):
    """How many lists that are closed had each place, and how many of them were answered there."""

    answered: tuple[int, ...] = ()
    closed: tuple[int, ...] = ()

    def after(self, listed: Collection[int], answered: Collection[int]) -> "Places":
        """After one more list with these places was closed, with answers at some of them."""
        length = max((*(place + 1 for place in listed), len(self.closed)))
        before = (counts + (0,) * (length - len(counts)) for counts in self)
        added = [place in answered for place in range(length)], [place in listed for place in range(length)]
        return Places(*(tuple(map(sum, zip(*both, strict=True))) for both in zip(before, added, strict=True)))

    def share(self, place: int) -> float:
        """The expected share of lists that are answered at this place."""
        if place >= len(self.closed):
            return ANSWERED / CLOSED
        return (self.answered[place] + ANSWERED) / (self.closed[place] + CLOSED)


class Listed(NamedTuple):
    """A pair on a list, and the bet on it, seen from the pair's lower item."""

    pair: int
    bet: float


def draw_ballot(
    memory: BridgeMemory, evidence: Evidence, pending: Ints, size: int, places: Places, draws: Draws,
    avoid: Ints = NO_PAIRS,
) -> list[Listed]:  # fmt: skip
    """The list of the next judge, in the order of its places; empty if no pair may be asked. It depends on what the
    study knows and on the draws, never on who the judge is. `avoid` are pairs that may not be asked now."""
    ledger, rng = evidence.kept_ledger, draws.generator()
    ballot = _Ballot(ledger, avoid)
    if ledger.misordered() <= DOUBT:
        ballot.take_plan(planned(memory, evidence, draws, avoid), pending, size, rng)
    ballot.fill(pending, size, rng)
    return ballot.listed(places)


class _Ballot:
    """A list that grows pair by pair."""

    def __init__(self, ledger: Ledger, avoid: Ints) -> None:
        self._ledger, self._avoid = ledger, avoid
        self._pairs: list[int] = []
        self._used = np.zeros(ledger.problem.n, dtype=np.bool_)  # items that are targets already

    def take_plan(self, plan: Plan, pending: Ints, size: int, rng: np.random.Generator) -> None:
        """Pairs of the plan, drawn by the votes that they still need, until no target is left; then the most needed
        comes first."""
        left, chosen = np.maximum(plan.costs - votes_out(plan, pending), 0.0), list[int]()
        while len(chosen) < size and (is_open := self._is_open(plan.pairs)).any():
            needed = left * is_open
            chances = (needed if needed.any() else plan.costs * is_open) ** plan.power
            chosen.append(int(rng.choice(len(chances), p=chances / chances.sum())))
            self._add(int(plan.pairs[chosen[-1]]))
        self._pairs = plan.pairs[sorted(chosen, key=lambda slot: -plan.costs[slot])].tolist()

    def fill(self, pending: Ints, size: int, rng: np.random.Generator) -> None:
        """The pairs that sharpen the answer most, each given those before it."""
        allowed = self._ledger.problem.allowed
        out = np.concatenate([pending, np.array(self._pairs, np.int64)])
        pairs, counts = np.unique(out, return_counts=True)
        given, may_ask = Given(pairs, counts.astype(np.float64)), None if allowed is None else np.array(allowed)
        while len(self._pairs) < size:
            scores = score_pairs(self._ledger, given, may_ask, rng)
            is_open = self._is_open(scores.pairs)
            if not is_open.any():
                return
            best = Scores(scores.pairs[is_open], scores.drops[is_open]).best(rng)
            self._add(best)
            given = given.plus(np.array([best]), np.ones(1))

    def listed(self, places: Places) -> list[Listed]:
        return with_bets(self._ledger, self._pairs, places)

    def _add(self, pair: int) -> None:
        self._pairs.append(pair)
        if self._ledger.problem.tolerance:
            self._used[list(pair_items(self._ledger.problem.n, pair))] = True
            return
        target = int(self._targets(np.array([pair]))[0])
        if target >= 0:
            self._used[target] = True

    def _is_open(self, pairs: Ints) -> Flags:
        """Which of these pairs may still be listed."""
        is_new: Flags = ~np.isin(pairs, self._pairs)
        if len(self._avoid):
            is_new &= ~np.isin(pairs, self._avoid)
        if self._ledger.problem.tolerance:
            first, second = pair_ends(self._ledger.problem.n, pairs)
            return is_new & ~self._used[first] & ~self._used[second]
        targets = self._targets(pairs)
        return is_new & ~(self._used[targets] & (targets >= 0))

    def _targets(self, pairs: Ints) -> Ints:
        """The item that a bet on each pair is against, in the ledger's orientation; -1 if nothing is bet."""
        first, second = pair_ends(self._ledger.problem.n, pairs)
        expected = self._expected(pairs)
        return np.where(expected > 0, second, np.where(expected < 0, first, -1))

    def _expected(self, pairs: Ints) -> Floats:
        return self._ledger.expected(*pair_ends(self._ledger.problem.n, pairs), damped=True)


def with_bets(ledger: Ledger, pairs: Sequence[int], places: Places) -> list[Listed]:
    """The pairs of a list with their bets, each smaller the less often its place is answered."""
    expected = ledger.expected(*pair_ends(ledger.problem.n, np.array(pairs, np.int64)), damped=True)
    family, side = ledger.problem.family, -1.0 if ledger.flipped else 1.0
    return [
        Listed(pair, side * _damped(family, eta, places.share(place)))
        for place, (pair, eta) in enumerate(zip(pairs, expected.tolist(), strict=True))
    ]


def _damped(family: Family, eta: float, share: float) -> float:
    """The bet of the side that is believed better, if this share of such questions is answered and the rest is lost."""
    mean = share * float(family.expect(np.array(abs(eta))))
    return math.copysign(float(family.natural(np.array(mean))), eta) if mean > family.tie else 0.0
