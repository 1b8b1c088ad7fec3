"""Bets on direct comparisons, and what they have won: the evidence behind the `edges` stopping rule.

For every ordered pair (x, y) that was asked there is an account. Before each vote on the pair it bets on x if x is
believed better, and its wealth is multiplied by a factor whose expectation is at most 1 unless x really is. The bet is
fixed when the question is asked, so the order in which answers come back does not matter.

With k > n/2 the ledger looks for the n-k worst: it sees every vote from the other side, and `k` is the smaller number.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import erfcx, expit, ndtr

from shortlist.core.pairs import (
    Flags,
    Floats,
    Ints,
    cycle_across,
    n_pairs,
    node_sums,
    order_by_facts,
    pair_ends,
    pair_numbers,
)
from shortlist.core.problem import Problem
from shortlist.core.ridge import Belief, nothing_known, refine
from shortlist.core.tally import Block, evolve

REFRESH = 0.01  # form a new belief when the votes grew by this share
LEAST_SPREAD = 1e-12  # of a difference, in units of the prior's variance; keeps z finite
PRIOR_VOTES = 150.0  # what other pairs say about a pair counts as so many votes of its own
CASH = 0.1  # the share of an account that is never bet and cannot be lost
BETS_SHARE, OWN_SHARE, GRID_SHARE = 0.5, 0.25, 0.25  # of the stake, once votes are imported; see `Ledger.share`
LOG_CASH, LOG_STAKE = math.log(CASH), math.log1p(-CASH)
WEIGHT, SUM, AHEAD, BEHIND, PROVED_AHEAD, PROVED_BEHIND, AHEAD_EPS, BEHIND_EPS = range(8)  # columns of the table
LEAN_AHEAD, LEAN_BEHIND = AHEAD_EPS, BEHIND_EPS  # with a marker, which allows no tolerance; see `_mixed`
SETTLED = 1.0  # the order is settled once at most so many pairs across the cutoff are expected to be misordered
CLEAR, CLEAR_EARLY = 0.7, 2.5  # standard errors from which a pair is bet on, when the order is settled and before
KELLY = 0.8  # the share that is bet of what would be best if the belief were true
OWN_PRECISION = 4.0  # of the prior on a pair's log-odds, for the bets from its own votes alone
OWN_ODDS = math.log(0.35 / 0.55)  # how the stake is divided at first: bets from own votes, and from the belief
MARK, FACT = 1.0, 2.0  # in a proved column: by bets at the problem's delta; by known answers alone, at any delta


class Accounts(NamedTuple):
    """Log wealth of every ordered pair that was asked: `source` bets that it is better than `target`."""

    source: Ints
    target: Ints
    wealth: Floats

    def losses(self, n: int) -> Floats:
        """What the losing accounts against each target lost together."""
        return node_sums(self.target, np.maximum(-self.wealth, 0.0), n)


class Marker(Protocol):
    """Which accounts need no more votes, where whole sets are rejected: the stopping rule `cuts`."""

    def mark(self, ledger: "Ledger", pending: Block | None) -> "Ledger":
        """The ledger with these accounts marked as proved, whatever is pending."""
        ...


class JudgeGains(NamedTuple):
    """What the votes of each judge add to the two accounts of each pair, ahead and behind. `places` are the number of
    the judge times the number of pairs, plus that of the pair; they are sorted."""

    places: Ints
    gains: Floats

    def add(self, places: Ints, gains: Floats) -> "JudgeGains":
        """With more gains; a place may come more than once."""
        new = np.setdiff1d(places, self.places)
        merged = np.union1d(self.places, new) if len(new) else self.places
        total = np.zeros((len(merged), 2))
        total[merged.searchsorted(self.places)] = self.gains
        np.add.at(total, merged.searchsorted(places), gains)
        return JudgeGains(merged, total)


NO_GAINS = JudgeGains(np.empty(0, np.int64), np.empty((0, 2)))


class Gains(NamedTuple):
    """The gains of judges, other than 0, one by one: `source` bets against `target`."""

    judge: Ints
    source: Ints
    target: Ints
    gain: Floats


class Imports(NamedTuple):
    """Sums over imported votes by pair, seen from the pair's lower item: what their bets won, as columns of the table,
    and the log wealth of each bet of the grid [pair, kind, side, bet]: plain, and tolerant if there is a tolerance;
    ahead, and behind. `grid` is their average, whatever the imports that the votes came in. `lost` is what accounts
    against each item had lost before the first import: the grid against it starts with no more than was left.
    `by_judge` is what their bets won by judge, if the ledger keeps that."""

    pairs: Ints
    bets: Floats
    sums: Floats
    lost: Floats
    grid: Floats
    by_judge: JudgeGains | None = None

    def add(self, other: "Imports") -> "Imports":
        pairs = np.union1d(self.pairs, other.pairs)
        bets, sums = (np.zeros((len(pairs), *part.shape[1:])) for part in (other.bets, other.sums))
        for one in (self, other):
            places = pairs.searchsorted(one.pairs)
            bets[places] += one.bets
            sums[places] += one.sums
        by_judge = None if self.by_judge is None or other.by_judge is None else self.by_judge.add(*other.by_judge)
        return Imports(pairs, bets, sums, self.lost, grid_average(sums), by_judge)


@dataclass(frozen=True)
class Ledger:
    """A value. `pairs` is sorted; the table has a row for each, seen from the pair's lower item.

    An account that was once enough by itself, at the problem's delta, is marked as proved and needs no more votes. So
    is one whose source is ahead of its target by known answers alone (`with_facts`), whatever was bet.

    `share` of the stake is on the accounts of the table. It is all of it until votes are imported; then half is on
    accounts with the bets on imported votes, a quarter on accounts without them, which take over if imported votes look
    sorted, and a quarter on the grid.

    With a `marker` the level is log(1/delta), the marker marks accounts as proved at each new belief, and the bets are
    those of `_mixed`, most of which begin when the order is `settled`.

    `by_judge` divides the accounts of the table by judge. It is kept if proofs need at least m judges: in a step from a
    set R of items to v, each judge's gains in accounts of R against v then count up to a cap (docs/guarantee.md).
    """

    problem: Problem
    pairs: Ints
    table: Floats
    inflow: Floats  # per item: sum of the log wealth of all accounts against it
    belief: Belief
    votes: float
    believed: float  # votes when the belief was formed
    share: float = 1.0
    imports: Imports | None = None
    by_judge: JudgeGains | None = None
    marker: Marker | None = None
    settled: bool = False

    @cached_property
    def flipped(self) -> bool:
        return self.problem.flipped

    @cached_property
    def k(self) -> int:
        return min(self.problem.k, self.problem.n - self.problem.k)

    @cached_property
    def enough(self) -> float:
        """The level at the problem's delta."""
        return self.level(self.problem.delta)

    @property
    def theta(self) -> Floats:
        """What is believed of the items, in the world's own direction."""
        return -self.belief.theta if self.flipped else self.belief.theta

    @property
    def decisive(self) -> float:
        """The share of votes that were not ties."""
        return float(self.table[:, WEIGHT].sum()) / self.votes if self.votes else 1.0

    def level(self, delta: float) -> float:
        """What the evidence against an item must reach: log(k/delta), log(2n/delta) with a tolerance. With a marker:
        what the evidence against a set must reach, log(1/delta), and log(k/delta) when an item was withdrawn, for which
        a proof states a larger error (of k > n/2, one that pays for log(1/delta))."""
        is_one = self.marker is not None and (self.flipped or not self.problem.withdrawn)
        ways = 2 * self.problem.n if self.problem.tolerance else 1 if is_one else self.k
        return math.log(ways / (delta * self.share))

    @property
    def has_caps(self) -> bool:
        """Whether a proof needs more than one judge."""
        return self.problem.min_judges > 1

    def caps(self, delta: float) -> Floats:
        """How much one judge can give against each item: a little more than 1/m of what is needed, so that m judges are
        enough."""
        losses = self.accounts().losses(self.problem.n)
        limits: Floats = (self.level(delta) + losses) / (self.problem.min_judges - 0.5)
        return limits

    @cached_property
    def gains(self) -> Gains:
        """What each judge has won or lost in each account."""
        assert self.by_judge is not None, "a problem with min_judges > 1 keeps the gains of judges"
        (places, gains), pairs = self.by_judge, n_pairs(self.problem.n)
        low, high = pair_ends(self.problem.n, places % pairs)
        columns = (places // pairs,) * 2, (low, high), (high, low), (gains[:, 0], gains[:, 1])
        judge, source, target, gain = (np.concatenate(both) for both in columns)
        kept = gain != 0.0
        return Gains(judge[kept], source[kept], target[kept], gain[kept])

    def capped(self, delta: float) -> "Ledger":
        """With each account as it counts alone, in a step from its source: no judge gives more than the cap."""
        _, source, target, gain = self.gains
        slots, is_ahead = self.pairs.searchsorted(pair_numbers(self.problem.n, source, target)), source < target
        table, counted = self.table.copy(), np.minimum(gain, self.caps(delta)[target])
        for column, side in ((AHEAD, is_ahead), (BEHIND, ~is_ahead)):
            table[:, column] = node_sums(slots[side], counted[side], len(table))
        return replace(self, table=table)

    def reachable(self) -> Flags:
        """The items against which the capped gains of all judges would be enough, in the best case."""
        n, (judge, _, target, gain), caps = self.problem.n, self.gains, self.caps(self.problem.delta)
        givers, slots = np.unique(judge * n + target, return_inverse=True)
        given, whom = node_sums(slots, np.maximum(gain, 0.0), len(givers)), givers % n
        counted = node_sums(whom, np.minimum(given, caps[whom]), n)
        return counted >= (self.problem.min_judges - 0.5) * caps

    def is_full(self, judge: int, pairs: Ints, delta: float) -> Flags:
        """The pairs on which more votes of this judge prove nothing: in the account that would bet on the next one the
        judge has given as much as counts."""
        n, caps = self.problem.n, self.caps(delta)
        first, second = pair_ends(n, pairs)
        is_ahead = self.expected(first, second, damped=True) > 0
        source, target = np.where(is_ahead, first, second), np.where(is_ahead, second, first)
        theirs = self.gains.judge == judge
        given = np.zeros((n, n))
        given[self.gains.source[theirs], self.gains.target[theirs]] = self.gains.gain[theirs]
        return given[source, target] >= caps[target]

    @cached_property
    def ends(self) -> tuple[Ints, Ints]:
        return pair_ends(self.problem.n, self.pairs)

    @cached_property
    def proved(self) -> Accounts:
        """A wealth of 1 for each ordered pair whose account was once enough by itself, or whose answers are known."""
        return self._with_mark(MARK)

    @cached_property
    def facts(self) -> Accounts:
        """The same for those that known answers prove, without bets."""
        return self._with_mark(FACT)

    def _with_mark(self, least: float) -> Accounts:
        first, second = self.ends
        ahead, behind = (np.flatnonzero(self.table[:, column] >= least) for column in (PROVED_AHEAD, PROVED_BEHIND))
        source, target = (
            np.concatenate([one[ahead], other[behind]]) for one, other in ((first, second), (second, first))
        )
        return Accounts(source, target, np.ones(len(source)))

    def accounts(self, tolerant: bool = False) -> Accounts:
        """All accounts; the tolerant ones bet that the source is not worse by more than the tolerance."""
        ahead, behind = (AHEAD_EPS, BEHIND_EPS) if tolerant else (AHEAD, BEHIND)
        first, second = self.ends
        wealth = with_cash(np.concatenate([self.table[:, ahead], self.table[:, behind]]))
        source, target = np.concatenate([first, second]), np.concatenate([second, first])
        return Accounts(source, target, self._standing(source, target, wealth))

    def _standing(self, source: Ints, target: Ints, wealth: Floats) -> Floats:
        """The wealth that counts: what a withdrawn item has won over others does not, what it has lost does. With a
        marker, nothing that was won on its pairs."""
        if not self.problem.withdrawn:
            return wealth
        void = self._is_void(source, target)
        void = void if self.marker is None else void | self._is_void(target, source)
        return np.where(void, np.minimum(wealth, 0.0), wealth)

    @property
    def lost_to_withdrawn(self) -> Floats:
        """What was lost in accounts against withdrawn items, by account, from 0 down. With a marker it counts against
        every set, because the true set of a size with these items inside may be crossed by it."""
        if not self.problem.withdrawn:
            return np.zeros(2 * len(self.pairs))
        source, target, wealth = self.accounts()
        gone = np.isin(source if self.flipped else target, self.problem.withdrawn)
        return np.where(gone, np.minimum(wealth, 0.0), 0.0)

    def _is_void(self, source: Ints, target: Ints) -> Flags:
        """Whether an account says that a withdrawn item is better than another."""
        better = target if self.flipped else source
        void: Flags = np.isin(better, self.problem.withdrawn)
        return void

    def look_up(self, first: Ints, second: Ints) -> Floats:
        """Table rows of pairs, seen from the pair's lower item; zeros where nothing was asked."""
        slots, known = self._find(first, second)
        if not len(self.pairs):
            return np.zeros((*slots.shape, self.table.shape[1]))
        return (self.table.take(slots, axis=0, mode="clip").T * known.T).T

    def wealth(self, source: Ints, target: Ints, tolerant: bool = False) -> Floats:
        """Log wealth of accounts, 0 where nothing was bet."""
        rows = self.look_up(source, target)
        ahead, behind = (AHEAD_EPS, BEHIND_EPS) if tolerant else (AHEAD, BEHIND)
        return self._standing(source, target, with_cash(np.where(source < target, rows[..., ahead], rows[..., behind])))

    def is_proved(self, source: Ints, target: Ints, least: float = MARK) -> Flags:
        """Does the account of source against target have a mark, or a FACT?"""
        rows = self.look_up(source, target)
        return np.where(source < target, rows[..., PROVED_AHEAD], rows[..., PROVED_BEHIND]) >= least

    def is_decided(self, first: int, second: int) -> bool:
        """Do known answers alone say which of the two is ahead?"""
        return bool(self.are_decided(np.array([first]), np.array([second]))[0])

    def are_decided(self, first: Ints, second: Ints) -> Flags:
        """The same for many pairs."""
        if not len(self.facts.source):
            return np.zeros(np.broadcast_shapes(first.shape, second.shape), dtype=np.bool_)
        return self.is_proved(first, second, FACT) | self.is_proved(second, first, FACT)

    def misordered(self) -> float:
        """The expected number of pairs across the believed cutoff that are in the wrong order: sum of Phi(-z). Those
        that known answers decide are in the right one."""
        top = self.top
        rest = np.delete(np.arange(self.problem.n), top)
        doubts = np.where(self.are_decided(top[:, None], rest), 0.0, ndtr(-self._z(top[:, None], rest)))
        return float(doubts.sum())

    def _z(self, first: Ints, second: Ints) -> Floats:
        """By how many standard errors the first items are believed ahead."""
        belief, least = self.belief, LEAST_SPREAD / self.problem.family.variance_bound
        gap = belief.theta[first] - belief.theta[second] + self.problem.margin
        return gap / np.sqrt(np.maximum(belief.spread(first, second), least))

    def expected(self, first: Ints, second: Ints, damped: bool) -> Floats:
        """eta of pairs as the ledger sees them: the belief, corrected by the pair's own votes."""
        return self._expected(first, second, damped, self.look_up(first, second))

    def _expected(self, first: Ints, second: Ints, damped: bool, rows: Floats) -> Floats:
        family, belief = self.problem.family, self.belief
        side = 1.0 - 2.0 * (first > second)
        eta = belief.theta[first] - belief.theta[second]
        if damped:
            eta = family.damp(eta, belief.spread(first, second))
        mean = (rows[..., SUM] + PRIOR_VOTES * family.mean(side * eta)) / (rows[..., WEIGHT] + PRIOR_VOTES)
        return side * family.natural(mean)

    def bets(self, first: Ints, second: Ints) -> Floats:
        """What to expect of the next votes, seen from their first items: to be fixed before the outcome is known."""
        expected = self.expected(first, second, damped=True) if self.marker is None else self._mixed(first, second)
        return -expected if self.flipped else expected

    def _mixed(self, first: Ints, second: Ints) -> Floats:
        """The bets where whole sets are rejected, and every loss on any pair across a set counts. So hardly anything is
        bet until the order is settled, and nothing on pairs that are hardly apart. An account is divided between two
        bettors, one with the belief and one with the pair's own votes; what they bet together is the average of their
        bets by their wealth."""
        rows, z = self.look_up(first, second), self._z(first, second)
        expected = self._expected(first, second, True, rows)
        is_open = (np.abs(z) >= (CLEAR if self.settled else CLEAR_EARLY)) & (z * expected > 0)
        if self.problem.family.is_measured:
            return KELLY * expected * is_open
        is_ahead = (expected > 0) == (first < second)
        believed, own = self._bettors(np.abs(expected), is_ahead, rows)
        lean = _pick(is_ahead, rows[..., LEAN_AHEAD], rows[..., LEAN_BEHIND])
        together = believed + expit(OWN_ODDS + lean) * (own - believed)
        return np.sign(expected) * is_open * 2.0 * np.arctanh(together)

    def _bettors(self, expected: Floats, is_ahead: Flags, rows: Floats) -> tuple[Floats, Floats]:
        """What the two bettors bet on the side that is believed better, as 2p - 1; `is_ahead` if it is the lower item.
        `expected` is seen from that side."""
        weight, total = rows[..., WEIGHT], rows[..., SUM]
        return KELLY * np.tanh(0.5 * expected), own_bet(weight, _pick(is_ahead, total, weight - total))

    def _lean(self, block: Block, bet: Floats, seen: Floats, before: Floats | None) -> Floats:
        """What votes add to the log wealth of the bettor with own votes, less that of the bettor with the belief. They
        are worked out anew, as of now; only later bets depend on them. `before`: see `_rows`."""
        low, high = np.minimum(block.first, block.second), np.maximum(block.first, block.second)
        rows = self.look_up(low, high) if before is None else before
        expected = self._expected(low, high, True, rows)
        believed, own = self._bettors(np.abs(expected), expected > 0, rows)
        won = (2.0 * seen - 1.0) * (bet * expected > 0)
        return np.log1p(own * won) - np.log1p(believed * won)

    def place_bets(self, block: Block) -> Block:
        """The block with the bets on it as of now."""
        return block._replace(bets=self.bets(block.first, block.second))

    def add(self, block: Block, pending: Block | None = None) -> "Ledger":
        """After more votes, with the bets placed when they were asked; `pending` are questions not answered yet."""
        ledger, slots = self._with_rows(block, self._rows(block), float(block.counts.sum()))
        if self.marker is None and (ledger.table[slots, AHEAD : BEHIND + 1] >= self.enough).any():  # almost never
            ledger = ledger._mark(slots, block, pending)
        if ledger.votes < (1 + REFRESH) * self.believed + 1 - REFRESH:
            return ledger
        return ledger.refresh() if self.marker is None else self.marker.mark(ledger.refresh(), pending)

    def with_marks(self, source: Ints, target: Ints) -> "Ledger":
        """With a mark on the accounts of these sources against these targets, which were asked."""
        return self._marked(source, target, MARK)

    def with_only_marks(self, source: Ints, target: Ints) -> "Ledger":
        """With these marks and no others, and with all facts."""
        ledger = self._with_pairs(source, target)
        return replace(ledger, table=_unmarked(ledger.table)).with_marks(source, target)

    def with_facts(self, source: Ints, target: Ints) -> "Ledger":
        """With these facts and no others: each source is ahead of its target by known answers. A new
        belief is formed, so that plans follow. With a marker a mark may rest on a fact that is gone."""
        ledger, n, before = self._with_pairs(source, target), self.problem.n, self.facts
        if self.marker is not None and len(np.setdiff1d(before.source * n + before.target, source * n + target)):
            ledger = replace(ledger, table=_unmarked(ledger.table))
        marks = ledger.table[:, PROVED_AHEAD : PROVED_BEHIND + 1]
        marks[marks == FACT] = 0.0
        return ledger._marked(source, target, FACT).refresh()

    def _marked(self, source: Ints, target: Ints, mark: float) -> "Ledger":
        slots, _ = self._find(source, target)
        table, columns = self.table.copy(), np.where(source < target, PROVED_AHEAD, PROVED_BEHIND)
        table[slots, columns] = np.maximum(table[slots, columns], mark)
        return replace(self, table=table)

    @property
    def top(self) -> Ints:
        """The k items that are believed best, in increasing order of item number."""
        return np.sort(self.order(self.belief.theta)[: self.k])

    @property
    def lacks_top(self) -> bool:
        """Whether the facts speak against every set of k items."""
        source, target, _ = self.facts
        if self.problem.withdrawn:  # then these are the only facts
            return False
        return len(source) > 0 and bool(cycle_across(self.problem.n, self.k, source, target))

    def order(self, theta: Floats) -> Ints:
        """The items, best first by theta, but never against a fact where that is possible. Withdrawn items are last; on
        the ledger's other side, first."""
        if self.problem.withdrawn:
            out = np.isin(np.arange(self.problem.n), self.problem.withdrawn)
            return np.lexsort((-theta, ~out if self.flipped else out))
        source, target, _ = self.facts
        if not len(source):
            return np.argsort(-theta, kind="stable")
        return order_by_facts(theta, self.k, source, target)

    def withdraw(self, block: Block) -> "Ledger":
        """After an undo: the support these votes gave is gone, their opposition stays; so no undo helps a proof."""
        rows = self._rows(block)
        rows[:, AHEAD:] = np.maximum(rows[:, AHEAD:], 0.0)
        ledger, _ = self._with_rows(block, -rows, -block.votes)
        touched = np.concatenate([block.first, block.second])  # marks against these items may rest on these votes
        if self.marker is not None:  # and with a marker any mark
            touched = np.arange(self.problem.n)
        low, high = ledger.ends
        return replace(ledger, table=_unmarked(ledger.table, np.isin(high, touched), np.isin(low, touched)))

    def inform(self, block: Block) -> "Ledger":
        """After votes that count for the belief and not yet for the accounts."""
        none = np.zeros(len(block.first))
        ledger, _ = self._with_rows(block, self._rows(block._replace(bets=none, weights=none)), block.votes)
        return ledger.refresh() if ledger.votes >= (1 + REFRESH) * self.believed + 1 - REFRESH else ledger

    def add_import(
        self, votes: Block, grid: Floats, grid_level: float, is_sorted: bool, pending: Block | None = None
    ) -> "Ledger":
        """After imported votes, all at once: nothing is marked in the middle of an import. `grid` has what each bet of
        the grid won on their pairs, in order of pair number; sorted votes end the part of the stake that bets on
        imports."""
        numbers = pair_numbers(self.problem.n, votes.first, votes.second)
        pairs, slots = np.unique(numbers, return_inverse=True)
        rows = self._rows(votes)
        if is_sorted or self.share == OWN_SHARE:
            rows[:, AHEAD:] = 0.0
        bets = np.zeros((len(pairs), rows.shape[1]))
        np.add.at(bets, slots, rows)
        bets[:, :AHEAD] = 0.0
        lost = self._lost(pending) if self.imports is None else self.imports.lost
        by_judge = None if self.by_judge is None else NO_GAINS.add(*self._divided(votes, rows))
        new = Imports(pairs, bets, grid, lost, grid_average(grid), by_judge)
        ledger, places = replace(self, share=min(self.share, BETS_SHARE))._with_rows(votes, rows, votes.votes)
        ledger = replace(ledger, imports=new if self.imports is None else self.imports.add(new))
        if is_sorted:
            ledger = ledger._without_import_bets()
        return ledger._mark(places, votes, pending)._mark_grid(grid_level).refresh()

    def _lost(self, pending: Block | None) -> Floats:
        """What a product of accounts against each item has lost at most; with a marker, one against a set. With a
        tolerance, whose grid has a part of the average of all products: what that has lost, for every item."""
        n, sure = self.problem.n, self if pending is None else self.doubting(pending)
        plain = sure.accounts().losses(n)
        if self.marker is not None:
            return np.full(n, plain.sum())
        if not self.problem.tolerance:
            return plain
        losses = np.concatenate([plain, sure.accounts(tolerant=True).losses(n)])
        return np.full(n, math.log(2 * n) - np.logaddexp.reduce(-losses))

    def _without_import_bets(self) -> "Ledger":
        """With the accounts that do not bet on imported votes, on which a quarter of the stake was from the start. No
        mark is left, because it may rest on such bets."""
        assert self.imports is not None
        first, second = pair_ends(self.problem.n, self.imports.pairs)
        block = Block(first, second, np.zeros(len(first)), np.zeros(len(first)))
        ledger, _ = self._with_rows(block, -self.imports.bets, 0.0)
        table, imports = _unmarked(ledger.table), self.imports._replace(bets=np.zeros_like(self.imports.bets))
        by_judge = self.by_judge
        if by_judge is not None and imports.by_judge is not None:
            places, gains = imports.by_judge
            by_judge, imports = by_judge.add(places, -gains), imports._replace(by_judge=NO_GAINS)
        return replace(ledger, table=table, share=OWN_SHARE, imports=imports, by_judge=by_judge)

    def under(self, problem: Problem) -> "Ledger":
        """With another vote budget, delta, number of judges, or items withdrawn. No mark is left that was made at
        another delta, rests on fewer judges, or is for a withdrawn item."""
        if self.by_judge is None and problem.min_judges > 1:
            assert not len(self.pairs), "gains of judges are kept from the first vote, or not at all"
            return replace(self, problem=problem, by_judge=NO_GAINS)
        ledger = replace(self, problem=problem)
        if problem.delta != self.problem.delta or problem.min_judges > self.problem.min_judges:
            return replace(ledger, table=_unmarked(self.table))
        if problem.withdrawn == self.problem.withdrawn:
            return ledger
        if self.marker is not None:  # the level is another one, and any set may be crossed by these accounts
            return replace(ledger, table=_unmarked(self.table))
        low, high = ledger.ends
        return replace(ledger, table=_unmarked(self.table, ledger._is_void(low, high), ledger._is_void(high, low)))

    def mark_all(self, grid_level: float, pending: Block | None) -> "Ledger":
        """With a mark on all accounts that are enough by themselves now, whatever is pending."""
        first, second = self.ends
        block = Block(first, second, np.zeros(len(first)), np.zeros(len(first)))
        marked = self._mark(np.arange(len(first)), block, pending) if len(first) else self
        return marked if marked.imports is None else marked._mark_grid(grid_level)

    def _mark_grid(self, level: float) -> "Ledger":
        """With a mark on plain accounts of the grid that are enough by themselves. The grid knows no judges."""
        assert self.imports is not None
        if self.has_caps:
            return self
        table, places = self.table.copy(), self.pairs.searchsorted(self.imports.pairs)
        proved = (self.grids()[0].wealth >= level).reshape(2, -1)
        for side, mark in zip(proved, (PROVED_AHEAD, PROVED_BEHIND), strict=True):
            table[places, mark] = np.maximum(table[places, mark], side)
        return replace(self, table=table)

    def forget_grid(self, block: Block) -> "Ledger":
        """After imported votes were withdrawn: the grid no longer supports anything on their pairs."""
        assert self.imports is not None
        touched = np.isin(self.imports.pairs, pair_numbers(self.problem.n, block.first, block.second))
        sums = self.imports.sums.copy()
        sums[touched] = np.minimum(sums[touched], 0.0)
        return replace(self, imports=self.imports._replace(sums=sums, grid=grid_average(sums)))

    def grids(self) -> list[Accounts]:
        """The accounts of the grid on imported votes, with what the study had left when they began: plain, and tolerant
        if there is a tolerance. It knows no judges, so it counts for nothing if a proof needs more than one."""
        if self.imports is None or self.has_caps:
            return []
        low, high = pair_ends(self.problem.n, self.imports.pairs)
        source, target = np.concatenate([low, high]), np.concatenate([high, low])
        grid, lost = self.imports.grid, self.imports.lost[target]
        return [Accounts(source, target, grid[:, kind].T.ravel() - lost) for kind in range(grid.shape[1])]

    def doubting(self, pending: Block) -> "Ledger":
        """As if both sides lost every pending question: what is proved then holds however they are answered."""
        family = self.problem.family  # its votes are not measured: a difference can be lost by any amount
        ends = (np.full(len(pending.first), end) for end in (family.win, family.flip(family.win)))
        worst = np.minimum(*(self._rows(pending._replace(outcome=end)) for end in ends))
        worst[:, :AHEAD] = 0.0
        return self._with_rows(pending, worst, 0.0)[0]

    def tolerating(self, tolerance: float) -> "Ledger":
        """As if this tolerance had just been set: nothing is bet on it yet."""
        table = np.pad(self.table[:, :PROVED_AHEAD], ((0, 0), (0, 4)))
        problem = replace(self.problem, tolerance=tolerance, min_judges=1)
        return replace(self, problem=problem, table=table, imports=None, by_judge=None, marker=None)

    def refresh(self) -> "Ledger":
        """With a belief from all votes so far."""
        first, second = self.ends
        belief = refine(self.problem.family, self.belief, first, second, self.table[:, WEIGHT], self.table[:, SUM])
        new = replace(self, belief=belief, believed=self.votes)
        if self.marker is None or self.settled or new.misordered() > SETTLED:
            return new
        return replace(new, settled=True)

    def _rows(self, block: Block, before: Floats | None = None) -> Floats:
        """What each row of the block adds to its pair's row of the table. `before` is what that row has before it, if
        this is not what the table has now."""
        family, bets = self.problem.family, block.bets
        assert bets is not None, "bets are placed when a question is asked, before its outcome is known"
        turned = (block.first > block.second) != self.flipped
        bet, other = bets * (1.0 - 2.0 * turned), family.flip(block.outcome)
        outcome, seen_by_bettor = _pick(turned, other, block.outcome), _pick(bets > 0, block.outcome, other)
        rows = np.zeros((*bet.shape, self.table.shape[1]))
        rows[..., WEIGHT], rows[..., SUM] = family.decisive(outcome)
        gain = family.log_factor(np.abs(bet), 0.0, seen_by_bettor)
        rows[..., AHEAD] = gain * (bet > 0)  # only the side that is believed better bets
        rows[..., BEHIND] = gain - rows[..., AHEAD]
        if self.problem.tolerance:
            null = -self.problem.margin
            rows[..., AHEAD_EPS] = family.log_factor(np.maximum(bet, null), null, outcome)
            rows[..., BEHIND_EPS] = family.log_factor(np.maximum(-bet, null), null, family.flip(outcome))
        if self.marker is not None and not family.is_measured and np.any(bets):
            lean = self._lean(block, bet, seen_by_bettor, before)
            rows[..., LEAN_AHEAD] = lean * (bet > 0)
            rows[..., LEAN_BEHIND] = lean - rows[..., LEAN_AHEAD]
        if block.weights is not None:
            rows[..., AHEAD:] = (rows[..., AHEAD:].T * block.weights).T
        return (rows.T * block.counts).T

    def _with_rows(self, block: Block, rows: Floats, votes: float) -> tuple["Ledger", Ints]:
        """With the rows added to their pairs, and where those are in the table."""
        slots, known = self._find(block.first, block.second)
        ledger = self if known.all() else self._with_pairs(block.first, block.second)
        if ledger is not self:
            slots, _ = ledger._find(block.first, block.second)
        touched = np.unique(slots) if slots.ndim else slots
        low, high = (ends[touched] for ends in ledger.ends)
        table, inflow = ledger.table.copy(), self.inflow.copy()
        before = with_cash(table[touched, AHEAD : BEHIND + 1])
        if slots.ndim:
            np.add.at(table, slots, rows)
        else:
            table[slots] += rows
        change = with_cash(table[touched, AHEAD : BEHIND + 1]) - before
        np.add.at(inflow, high, change[..., 0])
        np.add.at(inflow, low, change[..., 1])
        if self.by_judge is not None:
            ledger = replace(ledger, by_judge=self.by_judge.add(*self._divided(block, rows)))
        return evolve(ledger, table=table, inflow=inflow, votes=self.votes + votes), slots

    def _divided(self, block: Block, rows: Floats) -> JudgeGains:
        """What rows of the table add to the gains of the block's judges."""
        pairs = np.atleast_1d(pair_numbers(self.problem.n, block.first, block.second))
        judges = np.zeros(len(pairs), np.int64) if block.judges is None else np.atleast_1d(block.judges)
        return JudgeGains(judges * n_pairs(self.problem.n) + pairs, np.atleast_2d(rows[..., AHEAD : BEHIND + 1]))

    def _with_pairs(self, first: Ints, second: Ints) -> "Ledger":
        """With a row for each of these pairs."""
        pairs = np.union1d(self.pairs, pair_numbers(self.problem.n, first, second))
        table = np.zeros((len(pairs), self.table.shape[1]))
        table[pairs.searchsorted(self.pairs)] = self.table
        return replace(self, pairs=pairs, table=table)

    def _find(self, first: Ints, second: Ints) -> tuple[Ints, Flags]:
        """Where pairs are in the table, or would be, and which of them are there."""
        numbers = pair_numbers(self.problem.n, first, second)
        slots = self.pairs.searchsorted(numbers)
        if not len(self.pairs):
            return slots, np.zeros(slots.shape, dtype=np.bool_)
        return slots, self.pairs.take(slots, mode="clip") == numbers

    def _mark(self, slots: Ints, block: Block, pending: Block | None) -> "Ledger":
        """With a mark on accounts of the block's pairs that are now enough by themselves, whatever is pending."""
        if self.marker is not None:
            return self.marker.mark(self, pending)
        enough, rows = self.enough, self.table[slots, AHEAD : PROVED_BEHIND + 1]
        if not ((rows[..., :2] >= enough) > rows[..., 2:]).any():
            return self
        sure = self if pending is None else self.doubting(pending)
        counted = sure.capped(self.problem.delta) if self.has_caps else sure
        wealth = with_cash(counted.look_up(block.first, block.second))
        losses = sure.accounts().losses(self.problem.n)
        low, high = (ends[slots] for ends in self.ends)
        table = self.table.copy()
        for column, mark, source, target in ((AHEAD, PROVED_AHEAD, low, high), (BEHIND, PROVED_BEHIND, high, low)):
            proved = sure._standing(source, target, wealth[..., column]) - losses[target] >= enough
            table[slots, mark] = np.maximum(table[slots, mark], proved)
        return replace(self, table=table)


def _unmarked(table: Floats, ahead: Flags | None = None, behind: Flags | None = None) -> Floats:
    """The table without marks in these rows, by default in all. Facts stay: they do not rest on bets."""
    table = table.copy()
    for column, rows in ((PROVED_AHEAD, ahead), (PROVED_BEHIND, behind)):
        marks = table[:, column]
        marks[(marks == MARK) & (True if rows is None else rows)] = 0.0
    return table


def in_parts(size: int, known: float = 0.0, starts: Ints | None = None) -> Iterator[tuple[int, int]]:
    """Rows of votes from elsewhere in parts (begin, end), each to be added with bets made before it.

    `known` votes are counted already. A part is as long as one belief is used: bets that stay the same meanwhile are
    predictable and quick. `starts` are where units begin, and the size last: no part cuts a unit.
    """
    begin = 0
    while begin < size:
        end = min(begin + 1 + int(REFRESH * (known + begin)), size)
        end = end if starts is None else int(starts[starts.searchsorted(end)])
        yield begin, end
        begin = end


def grid_average(sums: Floats) -> Floats:
    """Log wealth of accounts with equal parts on the bets of a grid, given by the last index."""
    average: Floats = np.logaddexp.reduce(sums, axis=-1) - math.log(sums.shape[-1])
    return average


def own_bet(votes: Floats, won: Floats) -> Floats:
    """What to bet on an item of a pair, as 2p - 1, after so many votes: log-odds with a normal prior, cut off at 0, and
    a normal approximation of the likelihood at even odds."""
    precision = OWN_PRECISION + 0.25 * votes
    mean, spread = (won - 0.5 * votes) / precision, 1.0 / np.sqrt(precision)
    z = mean / spread
    hazard = math.sqrt(2.0 / math.pi) / erfcx(-z / math.sqrt(2.0))  # phi(z) / Phi(z)
    mean = np.maximum(mean + spread * hazard, 0.0)
    variance = spread**2 * np.maximum(1.0 - z * hazard - hazard**2, 0.0)
    return np.tanh(0.5 * mean / np.sqrt(1.0 + (math.pi / 8) * variance))


def _pick(which: Flags, yes: Floats, no: Floats) -> Floats:
    """np.where, and quick for a single choice."""
    return np.where(which, yes, no) if isinstance(which, np.ndarray) else yes if which else no


def with_cash(bet: Floats) -> Floats:
    """Log wealth of accounts that keep a share in cash and bet the rest."""
    return np.logaddexp(LOG_CASH, LOG_STAKE + bet)


def empty_ledger(problem: Problem, marker: Marker | None = None) -> Ledger:
    columns = 1 + (BEHIND_EPS if problem.tolerance or marker is not None else PROVED_BEHIND)
    belief = nothing_known(problem.family, problem.n)
    by_judge = NO_GAINS if problem.min_judges > 1 else None
    none, table, inflow = np.empty(0, np.int64), np.zeros((0, columns)), np.zeros(problem.n)
    return Ledger(problem, none, table, inflow, belief, 0.0, 0.0, by_judge=by_judge, marker=marker)


class Additions(NamedTuple):
    """What votes add to a ledger one after the other: the ledger with all of them and, after each vote, the row of its
    pair, which is at `slots`, and the inflow of the pair's higher and lower item, `items`."""

    ledger: Ledger
    slots: Ints
    rows: Floats
    items: Ints
    inflow: Floats


def add_each(ledger: Ledger, votes: Block) -> Additions | None:
    """The sums of `Ledger.add` for one vote after the other, bit for bit, without its marks and beliefs. None if a
    pair has no row yet."""
    slots, known = ledger._find(votes.first, votes.second)
    if not known.all():
        return None
    added = ledger._rows(votes) if ledger.marker is None else _rows_in_turn(ledger, votes, slots)
    table, rows, change = ledger.table.copy(), np.empty_like(added), np.empty((len(slots), 2))
    for slot, here in _groups(slots):
        sums = np.add.accumulate(np.concatenate([table[slot : slot + 1], added[here]]))
        table[slot], rows[here] = sums[-1], sums[1:]
        change[here] = np.diff(with_cash(sums[:, AHEAD : BEHIND + 1]), axis=0)
    low, high = (ends[slots] for ends in ledger.ends)
    items, inflow, last = np.stack([high, low], axis=1), np.empty_like(change), ledger.inflow.copy()
    for item, here in _groups(items.ravel()):
        sums = np.add.accumulate(np.concatenate([last[item : item + 1], change.ravel()[here]]))
        last[item], inflow.ravel()[here] = sums[-1], sums[1:]
    if ledger.by_judge is not None:
        ledger = replace(ledger, by_judge=ledger.by_judge.add(*ledger._divided(votes, added)))
    together = evolve(ledger, table=table, inflow=last, votes=ledger.votes + votes.votes)
    return Additions(together, slots, rows, items, inflow)


def _rows_in_turn(ledger: Ledger, votes: Block, slots: Ints) -> Floats:
    """What votes add to the rows of their pairs, where that depends on the votes before them on the same pair: on how
    many there are and on their sum, which depend on nothing else."""
    added, before = ledger._rows(votes)[:, : SUM + 1], ledger.table[slots]
    for slot, here in _groups(slots):
        start = ledger.table[slot : slot + 1, : SUM + 1]
        before[here, : SUM + 1] = np.add.accumulate(np.concatenate([start, added[here[:-1]]]))
    return ledger._rows(votes, before)


def _groups(keys: Ints) -> Iterator[tuple[int, Ints]]:
    """Each key, and where it is, in order."""
    order = keys.argsort(kind="stable")
    kept, starts = np.unique(keys[order], return_index=True)
    yield from zip(kept.tolist(), np.split(order, starts[1:]), strict=True)
