"""The cheapest set of direct comparisons that would prove the believed top k.

A few items just above the cutoff and a few just below it are the bridgehead: all comparisons across it, one spoke from
each other top item to a bridgehead item on its side, and enough from the bridgehead below to each other outsider. Any
such set is a proof once every comparison in it is won. All of it is seen from the ledger's side.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from shortlist.core.betting import FACT, MARK, Ledger
from shortlist.core.pairs import Flags, Floats, Ints, n_pairs, pair_ends, pair_numbers
from shortlist.core.stopping.chains import capped_pull, starts
from shortlist.core.stopping.cuts import Network, missing

HEAD = 12  # a bridgehead has at most so many items on each side
JITTER = 1e-6  # puts items of which nothing is known in a fresh order each time
LEAST_ETA = 0.02  # closer items cost as much as at this difference
DOUBT = 1.0  # standard errors that differences across the cutoff count as at least, or a false tie draws all questions
LEAST_DELTA = 1e-200
FREE = 1e-9  # what a chosen comparison costs a second time; 0 would be no edge
MANY = 20  # votes per item before anything is called a tie
TOLERANCES = (0.02, 0.04, 0.1, 0.2)  # to suggest, as shares of the largest there is
LEARNING = 1.0  # nats that a bettor loses while learning how much to bet
POWER = 0.5  # chances grow like this power of the votes needed; with `cuts` in proportion
LOST, QUICKER, URGENCY = 0.02, 1.5, 20.0  # see `_repairs`


class Plan(NamedTuple):
    """Pairs still to ask, and about how many votes each needs."""

    pairs: Ints
    costs: Floats
    line: tuple[int, int]  # the believed last in and first out
    blocked: tuple[tuple[int, int], ...] = ()  # in and out items that no allowed comparisons connect
    delta: float = 0.0  # the error that it is made for
    power: float = POWER
    urgency: float | Floats = 1.0  # pairs are asked as often as if they needed so many times as many votes

    def chances(self, votes_out: float | Floats = 0.0) -> Floats:
        """How often each pair is asked, in proportion, with so many questions on it pending, which need no votes."""
        left = np.maximum(self.costs - votes_out, 0.0)
        return self.urgency * (left if left.any() else self.costs) ** self.power

    def only(self, kept: Flags) -> "Plan":
        """With these pairs alone."""
        urgency = np.broadcast_to(self.urgency, self.costs.shape)[kept]
        return self._replace(pairs=self.pairs[kept], costs=self.costs[kept], urgency=urgency)


class _Prices:
    """What comparisons cost, in votes."""

    def __init__(self, ledger: Ledger, delta: float, allowed: Ints | None) -> None:
        self.ledger, self.problem, self.allowed = ledger, ledger.problem, allowed
        self.level, self.delta = ledger.level(delta), delta
        self.is_joint = ledger.marker is not None
        self.power = 1.0 if self.is_joint else POWER
        self.losses = np.zeros(self.problem.n) if self.is_joint else ledger.accounts().losses(self.problem.n)
        self.counted = ledger.capped(delta) if ledger.has_caps else ledger
        self.tolerant_losses = ledger.accounts(True).losses(self.problem.n) if self.problem.tolerance else self.losses

    def rates(self, source: Ints, target: Ints, across: bool) -> Floats:
        """Nats that one vote is expected to bring to source's account against target; 0 for a forbidden pair, and where
        the target is known to be ahead."""
        null = -self.problem.margin if across else 0.0
        least = np.full(source.shape, null + LEAST_ETA)
        if across:
            least += DOUBT * np.sqrt(self.ledger.belief.spread(source, target))
        eta = np.maximum(self.ledger.expected(source, target, damped=False), least)
        rates = self.problem.family.divergence(eta, np.full_like(eta, null))
        if len(self.ledger.facts.source):
            rates = np.where(self.ledger.is_proved(target, source, FACT), 0.0, rates)
        if self.allowed is None:
            return rates
        return np.where(np.isin(pair_numbers(self.problem.n, source, target), self.allowed), rates, 0.0)

    def gains(self, source: Ints, target: Ints, across: bool) -> Floats:
        """What the accounts have won; without limit where they were enough once."""
        won = np.maximum(self.counted.wealth(source, target, across and self.problem.tolerance > 0), 0.0)
        least = MARK if self.delta >= self.problem.delta else FACT
        return np.where(self.ledger.is_proved(source, target, least), np.inf, won)

    def gains_together(self, sources: Ints, targets: Ints, alone: Floats) -> Floats:
        """What the accounts of the first 1, 2, ... sources against each target have won together; `alone` is what they
        won one by one."""
        if not self.ledger.has_caps:
            return alone.cumsum(axis=0)
        firsts = np.zeros((self.problem.n, len(sources)), dtype=np.bool_)
        firsts[sources] = np.triu(np.ones((len(sources),) * 2, dtype=np.bool_))
        together = (capped_pull(self.ledger, self.delta).on(firsts) + self.losses[:, None])[targets].T
        return np.maximum(together, np.maximum.accumulate(alone, axis=0))

    def votes(self, gains: Floats, target: Ints, rates: Floats, across: bool) -> Floats:
        """How many more votes until the gains against target are enough."""
        net = gains - (self.tolerant_losses if across else self.losses)[target]
        missing = np.where(net >= self.level, 0.0, self.level + LEARNING - net)
        with np.errstate(divide="ignore"):
            return np.where(missing > 0, missing / np.where(missing > 0, rates, 1.0), 0.0)

    def with_cuts(
        self, source: Ints, target: Ints, costs: Floats, out: Ints | None = None
    ) -> tuple[Ints, Ints, Floats]:
        """Comparisons with their costs. With `cuts`, accounts may be enough by themselves and not for all sets that
        they cross: then they cost what is missing there. `out` are more items that are out if a source is."""
        if not self.is_joint:
            return source, target, costs
        full = np.flatnonzero((costs == 0) & np.isfinite(self.gains(source, target, across=False)))
        if not len(full):
            return source, target, costs
        lacks, costs = missing(self.ledger, source[full], target[full], self.level, out), costs.copy()
        rates = self.rates(source[full], target[full], across=False)
        with np.errstate(divide="ignore"):
            costs[full] = np.where(lacks > 0, (lacks + LEARNING) / rates, 0.0)
        return source, target, costs


class Hint(NamedTuple):
    """Two items that look tied at the cutoff, and a tolerance that would end the study in about so many votes."""

    line: tuple[int, int]
    tolerance: float
    votes: float


def near_tie(ledger: Ledger, plan: Plan) -> Hint | None:
    """A tolerance that would help if the cutoff looks tied and more votes are still needed than were asked so far."""
    problem, ends = ledger.problem, np.array(plan.line)
    if problem.withdrawn:  # no tolerance then
        return None
    gap = float(np.abs(ledger.belief.theta[ends[0]] - ledger.belief.theta[ends[1]]))
    doubt = math.sqrt(float(ledger.belief.spread(ends[:1], ends[1:])[0]))
    if ledger.votes < MANY * problem.n or gap > 2 * doubt or plan.costs.sum() < ledger.votes * ledger.decisive:
        return None
    for share in TOLERANCES:
        tolerance = share * problem.family.tolerance_unit
        if tolerance <= problem.tolerance:
            continue
        tolerant = make_plan(ledger.tolerating(tolerance), np.random.default_rng(0))
        votes = float(tolerant.costs.sum()) / ledger.decisive
        if votes < ledger.votes:
            return Hint(plan.line, tolerance, votes)
    return None


def make_plan(ledger: Ledger, rng: np.random.Generator, allowed: Ints | None = None) -> Plan:
    """The plan for delta; if nothing is left of it, because another set of comparisons decides, for a smaller one.
    `allowed` are the pairs to plan with, by default those of the problem."""
    delta = ledger.problem.delta
    if allowed is None and ledger.problem.allowed is not None:
        allowed = np.array(ledger.problem.allowed)
    while not len((plan := _plan(ledger, rng, delta, allowed)).pairs) and not plan.blocked and delta > LEAST_DELTA:
        delta = delta**2
    return plan._replace(delta=delta)


def _plan(ledger: Ledger, rng: np.random.Generator, delta: float, allowed: Ints | None) -> Plan:
    """The plan of least total cost over all sizes of the bridgehead."""
    n, k = ledger.problem.n, ledger.k
    order = ledger.order(ledger.belief.theta + JITTER * rng.standard_normal(n))
    above, below = order[:k][::-1], order[k:]  # both from the cutoff outwards
    upper, lower = above[:HEAD], below[:HEAD]
    prices = _Prices(ledger, delta, allowed)
    across = _across(prices, upper, lower)
    to_head = _spokes_above(prices, above, upper)
    from_head, sources = _spokes_below(prices, below, lower)
    cheapest = np.minimum.accumulate(to_head, axis=1)
    spokes_above = np.array([cheapest[x:, x - 1].sum() for x in range(1, len(upper) + 1)])
    spokes_below = np.array([from_head[y - 1, y:].sum() for y in range(1, len(lower) + 1)])
    totals = across.cumsum(axis=0).cumsum(axis=1) + spokes_above[:, None] + spokes_below
    line = (int(below[0]), int(above[0])) if ledger.flipped else (int(above[0]), int(below[0]))
    if not np.isfinite(totals.min()):
        return by_paths(prices, order, line)
    x, y = (int(size) + 1 for size in np.unravel_index(np.argmin(totals), totals.shape))
    ends = [
        prices.with_cuts(np.repeat(upper[:x], y), np.tile(lower[:y], x), across[:x, :y].ravel()),
        prices.with_cuts(above[x:], upper[to_head[x:, :x].argmin(axis=1)], cheapest[x:, x - 1]),
        prices.with_cuts(lower[sources[y - 1, y:]], below[y:], from_head[y - 1, y:], lower[:y]),
    ]
    first, second, costs = (np.concatenate(parts) for parts in zip(*ends, strict=True))
    needed = (costs > 0) & np.isfinite(costs)
    pairs, costs = pair_numbers(n, first[needed], second[needed]), costs[needed]
    plan = Plan(pairs, costs, line, power=prices.power)
    return _with_repairs(prices, plan, *ends[0]) if prices.is_joint else plan


def _with_repairs(prices: _Prices, plan: Plan, first: Ints, second: Ints, costs: Floats) -> Plan:
    """The plan and more pairs. What accounts have lost burdens every set that they cross, and some comparison across
    the cutoff has to make up for it. A pair that wins faster than that comparison makes up for its own loss sooner.
    The comparisons are those across the bridgehead."""
    ledger, n = prices.ledger, prices.problem.n
    source, target, wealth = ledger.accounts()
    lost = np.flatnonzero((wealth < -LOST) & (ledger.belief.theta[source] > ledger.belief.theta[target]))
    if not len(lost):
        return plan
    source, target, wealth = source[lost], target[lost], wealth[lost]
    rates, wanted = prices.rates(source, target, across=False), np.zeros(len(lost), dtype=np.bool_)
    network, slow = Network(ledger), prices.rates(first, second, across=True)
    for place in np.flatnonzero((costs > 0) & np.isfinite(costs)).tolist():
        quicker = ~wanted & (rates > QUICKER * slow[place])
        if quicker.any():
            inside = network.least(starts(n, first[[place]])[:, 0], int(second[place])).inside
            wanted |= quicker & ~inside[source] & inside[target]
    pairs = pair_numbers(n, source[wanted], target[wanted])
    more = np.maximum(1.0, -wealth[wanted] / rates[wanted])
    is_new = ~np.isin(pairs, plan.pairs)
    pairs, more = pairs[is_new], more[is_new]
    urgency = np.concatenate([np.ones(len(plan.pairs)), np.full(len(pairs), URGENCY)])
    pairs, costs = np.concatenate([plan.pairs, pairs]), np.concatenate([plan.costs, more])
    return plan._replace(pairs=pairs, costs=costs, urgency=urgency)


def _across(prices: _Prices, upper: Ints, lower: Ints) -> Floats:
    source, target = np.meshgrid(upper, lower, indexing="ij")
    rates = prices.rates(source, target, across=True)
    return prices.votes(prices.gains(source, target, across=True), target, rates, across=True)


def _spokes_above(prices: _Prices, above: Ints, upper: Ints) -> Floats:
    """From each top item to each item of the bridgehead; infinite to itself."""
    source, target = np.meshgrid(above, upper, indexing="ij")
    apart = np.where(source == target, (target + 1) % prices.problem.n, target)
    votes = prices.votes(
        prices.gains(source, apart, across=False), apart, prices.rates(source, apart, across=False), across=False
    )
    return np.where(source == target, np.inf, votes)


def _spokes_below(prices: _Prices, below: Ints, lower: Ints) -> tuple[Floats, Ints]:
    """To each outsider from the first 1, 2, ... of the bridgehead together: votes, and which of them asks best."""
    source, target = np.meshgrid(lower, below, indexing="ij")
    apart = np.where(source == target, (source + 1) % prices.problem.n, source)
    known = np.where(source == target, 0.0, prices.gains(apart, target, across=False))
    rates = np.where(source == target, 0.0, prices.rates(apart, target, across=False))
    best = np.maximum.accumulate(rates, axis=0)
    place = np.maximum.accumulate(np.where(rates == best, np.arange(len(lower))[:, None], 0), axis=0)
    together = prices.gains_together(lower, below, known)
    return prices.votes(together, target, best, across=False), place


def by_paths(prices: _Prices, order: Ints, line: tuple[int, int]) -> Plan:
    """Where forbidden pairs leave no bridgehead: cheapest chains from each top item to each outsider, the item nearest
    to the cutoff first, and what is chosen already is free."""
    n, k = prices.problem.n, prices.ledger.k
    source, target = (order[end] for end in np.triu_indices(n, 1))
    rates = prices.rates(source, target, across=False)
    costs = prices.votes(prices.gains(source, target, across=False), target, rates, across=False)
    source, target, costs = prices.with_cuts(source, target, costs)
    usable = np.isfinite(costs)
    graph = csr_array((costs[usable] + FREE, (source[usable], target[usable])), shape=(n, n)).tolil()
    chosen: dict[tuple[int, int], float] = {}
    blocked = []
    for u in order[:k][::-1].tolist():
        distance, before = dijkstra(graph.tocsr(), indices=u, return_predecessors=True)
        for v in order[k:].tolist():
            if not np.isfinite(distance[v]):
                blocked.append((u, v))
                continue
            while v != u:
                ahead = int(before[v])
                chosen.setdefault((ahead, v), float(graph[ahead, v]) - FREE)
                graph[ahead, v], v = FREE, ahead
    needed = {ends: cost for ends, cost in chosen.items() if cost > 0}
    if blocked and not needed:  # only another order could be proved: ask what may bring one
        ends = pair_ends(n, np.arange(n_pairs(n)) if prices.allowed is None else prices.allowed)
        is_open = ~(prices.ledger.is_proved(*ends, FACT) | prices.ledger.is_proved(*ends[::-1], FACT))
        touching = is_open & np.isin(ends, np.unique(blocked)).any(axis=0)
        wanted = touching if touching.any() else is_open
        needed = dict.fromkeys(zip(*(end[wanted].tolist() for end in ends), strict=True), 1.0)
    first, second = (np.array([ends[place] for ends in needed], dtype=np.int64) for place in (0, 1))
    return Plan(
        pair_numbers(n, first, second), np.array(list(needed.values())), line, tuple(blocked), power=prices.power
    )
