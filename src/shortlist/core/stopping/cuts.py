"""A stopping rule that rejects whole sets: what all accounts across a set have won together must be too much for luck.

E(S) is the sum of the log wealth of all accounts from outside S against S. The k-set S is rejected once E(S) reaches
log(1/delta), with pending questions lost. The answer is proved when every other k-set was rejected. Proved: error at
most delta for any sampling rule, under the assumption of `edges`. Theorem and proof: docs/guarantee.md.

The least E(S) is bounded from below by a least cut, in which S may have any size. To turn every vote around and to look
for the n-k worst changes neither the accounts across a set nor E(S), so a ledger that is turned needs no other care.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from shortlist.core.betting import (
    AHEAD,
    BEHIND,
    FACT,
    GRID_SHARE,
    MARK,
    PROVED_AHEAD,
    PROVED_BEHIND,
    Accounts,
    Ledger,
    empty_ledger,
    with_cash,
)
from shortlist.core.evidence import Evidence
from shortlist.core.pairs import Flags, Floats, Ints, node_sums
from shortlist.core.problem import Problem
from shortlist.core.stopping import edges
from shortlist.core.stopping.base import Verdict
from shortlist.core.stopping.chains import Pull, absorb, each_alone, grid_level, starts
from shortlist.core.stopping.edges import (
    FILE_SHARE,
    REPORT,
    certain,
    grid_evidence,
    guarantee,
    left_out,
    may_be_enough,
    nothing_proved,
    replay,
    report,
    smallest_delta,
)
from shortlist.core.tally import Block
from shortlist.core.units import Units
from shortlist.errors import BadProblem

Evidenced = tuple[Pull, float]
ENDLESS = 2**29  # the capacity of an arc that no cut may cross; all others together have at most half of it
FINEST = 2.0**20  # a nat has so many units of capacity, or fewer if the sums would be too large
CONTRADICTED = (
    "The votes speak against every set of {k} items, also against this one, so nothing is proved: probably the judges "
    "differ about the top {k}, or no such set exists."
)
LEFT_OUT = (
    "{:,} of {:,} votes count for nothing: they share a unit with an earlier vote, and not all units have equally many."
)


class Cut(NamedTuple):
    """A set, and a lower bound on its E(S), which is exact unless both accounts of some pair lose."""

    value: float
    inside: Flags


class Flow(NamedTuple):
    """A maximum flow: its value in nats, and in whole numbers what it leaves of each arc, and what goes through it."""

    value: float
    left: Any
    through: csr_array


class _Graph(NamedTuple):
    """A network with a source n and a sink n + 1 in the form of a matrix, with an arc back for each arc: what each arc
    may carry, where it begins, and which are the arcs to each item from the source and from it to the sink."""

    limits: Any  # whole numbers of 32 bits, as `maximum_flow` wants them
    source: Ints
    matrix: csr_array
    from_source: Ints
    to_sink: Ints


class Network:
    """Accounts as a network whose cuts bound E(S) from below: items on the side of the source are outside S.

    For the accounts a >= b of x against y and of y against x, a pair adds to E(S)

        a + b >= 0:  max(b, 0) [y out, x in] + (a + min(b, 0)) [x out, y in] - min(b, 0) ([x out] - [y out])
        a + b < 0:   at least q + (a - q) [x out] + (b - q) [y out], for every q from a + b to 0

    with equality in the second line where q = 0 if both are in, and where q = a + b if both are out.
    """

    def __init__(self, ledger: Ledger, marked: bool = True) -> None:
        """`marked`: sets that were rejected when an account was marked as proved are left out. Those that facts speak
        against always are."""
        self.n = ledger.problem.n
        lost = ledger.lost_to_withdrawn
        wealth = (ledger.accounts().wealth - lost).reshape(2, -1)
        marks, least = ledger.table[:, PROVED_AHEAD : PROVED_BEHIND + 1].T, MARK if marked else FACT
        wealth[marks >= least] = np.inf
        self.inside = np.zeros(self.n, dtype=np.bool_)
        self.inside[ledger.top] = True
        self._split(*ledger.ends, *wealth)
        self.constant += float(lost.sum())

    def _split(self, low: Ints, high: Ints, ahead: Floats, behind: Floats) -> None:
        """Arcs, a cost for each item that is out, and a constant."""
        turned = behind > ahead
        x, y = np.where(turned, high, low), np.where(turned, low, high)
        a, b = np.maximum(ahead, behind), np.minimum(ahead, behind)
        lost, both = np.minimum(b, 0.0), np.minimum(a + b, 0.0)
        q = both * (1.0 - 0.5 * self.inside[x] - 0.5 * self.inside[y])
        x_out, y_out = np.where(both < 0, a - q, -lost), np.where(both < 0, b - q, lost)
        self.out: Floats = node_sums(x, x_out, self.n) + node_sums(y, y_out, self.n)
        self.constant, self.linear = float(q.sum()), (x, y, x_out, y_out)
        self.source = self.target = np.empty(0, np.int64)
        self.capacity = np.empty(0)
        self._arcs(x, y, np.maximum(a + lost, 0.0))
        self._arcs(y, x, np.maximum(b, 0.0))

    def _arcs(self, source: Ints, target: Ints, capacity: Floats) -> None:
        some = capacity > 0
        self.source, self.target = np.append(self.source, source[some]), np.append(self.target, target[some])
        self.capacity = np.append(self.capacity, capacity[some])

    def forbid(self, accounts: Accounts, level: float) -> None:
        """Leave out sets that are crossed by one of these accounts that has reached the level."""
        proved = accounts.wealth >= level
        self._arcs(accounts.source[proved], accounts.target[proved], np.full(int(proved.sum()), np.inf))

    def bound(self, inside: Flags) -> float:
        """The lower bound on E(S) of this set; endless if it was rejected before."""
        crossing = ~inside[self.source] & inside[self.target]
        return float(self.constant + self.out[~inside].sum() + self.capacity[crossing].sum())

    @cached_property
    def _scale(self) -> float:
        total = self.capacity[np.isfinite(self.capacity)].sum() + np.abs(self.out).sum()
        return min(FINEST, 0.5 * ENDLESS / max(float(total), 1.0))

    @cached_property
    def _graph(self) -> _Graph:
        n, items = self.n, np.arange(self.n)
        source = np.concatenate([self.source, np.full(n, n), items])
        target = np.concatenate([self.target, items, np.full(n, n + 1)])
        values = np.concatenate([self.capacity, np.maximum(-self.out, 0.0), np.maximum(self.out, 0.0)])
        whole = np.minimum(np.floor(values * self._scale), ENDLESS).astype(np.int32)  # never too much
        both = np.concatenate([source * (n + 2) + target, target * (n + 2) + source])
        codes, places = np.unique(both, return_inverse=True)
        limits, sources = np.zeros(len(codes), np.int32), codes // (n + 2)
        np.maximum.at(limits, places[: len(whole)], whole)
        ends = np.searchsorted(sources, np.arange(n + 3)).astype(np.int32)
        matrix = csr_array((limits, (codes % (n + 2)).astype(np.int32), ends), shape=(n + 2, n + 2))
        return _Graph(limits, sources, matrix, places[len(self.source) :][:n], places[len(self.source) + n :][:n])

    def flow(self, out: Flags, into: int | None = None) -> Flow:
        """The least bound of a set with all of `out` outside and `into` inside."""
        graph = self._graph
        limits = graph.limits.copy()
        limits[graph.from_source[out]] = ENDLESS
        if into is not None:
            limits[graph.to_sink[into]] = ENDLESS
        graph.matrix.data = limits
        found = maximum_flow(graph.matrix, self.n, self.n + 1)
        value = self.constant + float(np.minimum(self.out, 0.0).sum()) + float(found.flow_value) / self._scale
        return Flow(value, limits - found.flow.data, found.flow)

    def least(self, out: Flags, into: int | None = None, level: float = np.inf) -> Cut:
        """The set with all of `out` outside and `into` inside that has the least bound. It is not looked for, and
        empty, if the bound reaches the level."""
        value, left, _ = self.flow(out, into)
        reached = np.zeros(self.n + 2, dtype=np.bool_)
        if value >= level:
            return Cut(value, reached[: self.n])
        is_open = left > 0
        source, target = self._graph.source[is_open], self._graph.matrix.indices[is_open]
        reached[self.n], size = True, 0
        while size < (size := int(np.count_nonzero(reached))):
            reached[target[reached[source]]] = True
        return Cut(value, ~reached[: self.n])

    def paid(self, flow: csr_array) -> list[tuple[int, int, float, float]]:
        """How this flow pays for what is lost: rows x, y, t_xy, t_yx. Each pair adds q + t_xy [x out] + t_yx [y out] or
        more to E(S), with the largest q for which that is true in all four cases; `verify` adds this up."""
        x, y, x_out, y_out = self.linear
        sent = np.asarray(flow[x, y]).ravel() / self._scale if len(x) else np.empty(0)
        some = (x_out + sent != 0) | (y_out - sent != 0)
        columns = x[some], y[some], (x_out + sent)[some], (y_out - sent)[some]
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def pull(self, out: Flags) -> Pull:
        """What each item adds against another, at least, where all of `out` are out: what the arcs have left after the
        least cut without any item inside, which pays for all losses."""
        value, left, _ = self.flow(out)
        source, target = self._graph.source, self._graph.matrix.indices
        here = (left > 0) & (source < self.n) & (target < self.n)
        gains = csr_array((left[here] / self._scale, (target[here], source[here])), shape=(self.n, self.n))
        return Pull(gains, np.full(self.n, -value))


class Search:
    """Which items must be out if another is, unless the set was rejected: at any level, for the believed top."""

    def __init__(self, network: Network, theta: Floats) -> None:
        self.network, self.inside = network, network.inside
        order = np.argsort(-theta, kind="stable")
        self.members: list[int] = order[self.inside[order]][::-1].tolist()  # from the cutoff outwards
        self.others: list[int] = order[~self.inside[order]].tolist()
        self.pulls: dict[int, Pull] = {}

    def implied(self, item: int, level: float, out: Flags | None = None, alone: Sequence[Evidenced] = ()) -> Flags:
        """What is out if `item` is, by its direct accounts and those of what is out: `out` is known already. `alone`
        are other accounts that are enough one by one."""
        if item not in self.pulls:
            self.pulls[item] = self.network.pull(starts(self.network.n, np.array([item]))[:, 0])
        column = starts(self.network.n, np.array([item])) if out is None else out[:, None]
        return absorb([(self.pulls[item], level), *alone], column)[:, 0]

    def quick(self, level: float, alone: Sequence[Evidenced] = ()) -> bool:
        """Is every set but the believed one rejected, by direct accounts alone?"""
        done = np.zeros(self.network.n, dtype=np.bool_)
        for member in self.members:
            out = self.implied(member, level, None, alone)
            if not ((out & done).any() or out[~self.inside].all()):
                return False
            done[member] = True
        return True

    def standing(self, level: float) -> Cut | None:
        """A set that keeps the believed one from being proved; None if every other set is rejected."""
        done = np.zeros(self.network.n, dtype=np.bool_)
        for member in self.members:
            out = self.implied(member, level)
            for other in self.others:
                if (out & done).any():
                    break
                if not out[other]:
                    cut = self.network.least(out, other, level)
                    if cut.value < level:
                        return cut
                    out[other] = True
                    out = self.implied(member, level, out)
            done[member] = True
        return None


class CutsMemory(NamedTuple):
    """The last report, how many votes it had, and a set that kept the answer from being proved."""

    verdict: Verdict[int]
    reported: float
    standing: Flags | None = None


@dataclass(frozen=True)
class Cuts:
    """every: check again when votes grew by this share."""

    every: float = 0.0
    name: str = "cuts"
    wants: frozenset[str] = frozenset({"ledger"})

    def any_order(self, problem: Problem) -> bool:
        """Answers may count as they come, because pending questions count as lost. A measured loss has no limit."""
        return not problem.family.is_measured

    def start(self, problem: Problem) -> CutsMemory:
        check_problem(problem)
        return CutsMemory(nothing_proved(problem), 0.0)

    def check(
        self, memory: CutsMemory, problem: Problem, evidence: Evidence, pending: Block | None = None
    ) -> tuple[CutsMemory, Verdict[int]]:
        ledger = evidence.kept_ledger
        is_due = not 1 < ledger.votes < (1 + REPORT) * memory.reported
        enough = may_be_enough(problem, ledger)  # pending questions can only take away from it
        if not (enough or is_due):
            return memory, memory.verdict  # the loop counts the votes
        if pending is not None:
            ledger = ledger.doubting(pending)
        sets = _Sets(ledger)
        if enough and may_be_enough(problem, ledger) and not sets.is_held_by(memory.standing):
            memory = memory._replace(standing=sets.standing)
            is_due = is_due or (sets.standing is None and not sets.is_rejected)
        if not is_due:
            return memory, memory.verdict
        verdict = sets.verdict(round(ledger.votes), memory.verdict)
        return memory._replace(verdict=verdict, reported=ledger.votes), verdict

    def examine(
        self, memory: CutsMemory, problem: Problem, evidence: Evidence, pending: Block | None = None
    ) -> Verdict[int]:
        ledger = evidence.kept_ledger if pending is None else evidence.kept_ledger.doubting(pending)
        return _Sets(ledger).verdict(round(ledger.votes), memory.verdict)

    def filled(self, problem: Problem, evidence: Evidence, pending: Block | None = None) -> Floats:
        """How much of the proof about each item is there, from 0 to 1. All are 1 when the answer is proved."""
        ledger = evidence.kept_ledger if pending is None else evidence.kept_ledger.doubting(pending)
        return _Sets(ledger).filled()

    def mark(self, ledger: Ledger, pending: Block | None) -> Ledger:
        """A mark on each account with enough by itself if all sets that it crosses are rejected at this moment."""
        accounts = ledger.accounts()
        full = (accounts.wealth >= ledger.enough) & (ledger.inflow[accounts.target] >= ledger.enough)
        full &= ~ledger.is_proved(accounts.source, accounts.target)
        if not full.any():
            return ledger
        sure = ledger if pending is None else ledger.doubting(pending)
        source, target = accounts.source[full], accounts.target[full]
        is_proved = are_rejected(sure, source, target, ledger.enough)
        return ledger.with_marks(source[is_proved], target[is_proved])


def are_rejected(ledger: Ledger, source: Ints, target: Ints, level: float) -> Flags:
    """Are all sets with a source outside and its target inside rejected at this moment?"""
    network, nothing = Network(ledger), np.zeros(ledger.problem.n, dtype=np.bool_)
    found = ~_may_lack(network, source, target, level, nothing)
    for first in np.unique(source[~found]).tolist():
        out = nothing.copy()
        out[first] = True
        trial = network.least(out).inside  # with the target it is often low enough
        for place in np.flatnonzero(~found & (source == first)).tolist():
            inside = trial.copy()
            inside[target[place]] = True
            found[place] = network.bound(inside) >= level and network.flow(out, int(target[place])).value >= level
    return found


def missing(ledger: Ledger, source: Ints, target: Ints, level: float, out: Ints | None = None) -> Floats:
    """What some set with a source and all of `out` outside and the source's target inside lacks until the level: more
    than nothing if the least cut lacks anything."""
    network, also, lacks = Network(ledger), np.zeros(ledger.problem.n, dtype=np.bool_), np.zeros(len(source))
    if out is not None:
        also[out] = True
    trial, unsure = np.zeros_like(also), np.flatnonzero(_may_lack(network, source, target, level, also))
    for place, first, second in zip(unsure.tolist(), source[unsure].tolist(), target[unsure].tolist(), strict=True):
        column = also.copy()
        column[first] = True
        inside = trial & ~column
        inside[second] = True
        value = network.bound(inside)
        if value >= level:  # what was the least cut for another target is not low enough for this one
            value, least = network.least(column, second, level)
            trial = least if value < level else trial
        lacks[place] = level - value
    return lacks


def _may_lack(network: Network, source: Ints, target: Ints, level: float, also: Flags) -> Flags:
    """Where the level may not be reached, by one flow for all targets with the same items outside."""
    group, unsure = np.where(also[source], -1, source), np.ones(len(source), dtype=np.bool_)
    for first in np.unique(group).tolist():
        places = np.flatnonzero(group == first)
        if len(places) > 1:
            column = also.copy()
            column[source[places[0]]] = True
            unsure[places] = network.pull(column).on(column[:, None])[target[places], 0] < level
    return unsure


def evidence_against(ledger: Ledger, inside: Flags) -> float:
    """E(S) of this set; endless if it was rejected when an account was marked."""
    low, high = ledger.ends
    crossing = np.flatnonzero(inside[low] != inside[high])
    is_ahead, rows = inside[high[crossing]], ledger.table[crossing]
    if np.where(is_ahead, rows[:, PROVED_AHEAD], rows[:, PROVED_BEHIND]).any():
        return np.inf
    if ledger.problem.withdrawn:
        (source, target, wealth), lost = ledger.accounts(), ledger.lost_to_withdrawn
        return float((wealth - lost)[~inside[source] & inside[target]].sum() + lost.sum())
    return float(with_cash(np.where(is_ahead, rows[:, AHEAD], rows[:, BEHIND])).sum())


def is_rival(ledger: Ledger, inside: Flags) -> bool:
    """Does this set speak against the believed one: does it lack a member, and have an outsider?"""
    top = np.isin(np.arange(ledger.problem.n), ledger.top)
    return bool((inside & ~top).any() and (top & ~inside).any())


class _Sets:
    """What the accounts of a ledger say about all k-sets; and those of a grid, which are enough one by one."""

    def __init__(self, ledger: Ledger, grid: Accounts | None = None, grid_share: float = GRID_SHARE) -> None:
        """The ledger's accounts, and those of a grid with the share of the stake that is on it."""
        grids = ledger.grids() if grid is None else [grid]
        self.ledger, self.grid, self.grid_share = ledger, grids[0] if grids else None, grid_share
        self._top = ledger.top

    @cached_property
    def marked(self) -> Network:
        network = Network(self.ledger)
        if self.grid is not None:
            network.forbid(self.grid, self._grid_level(self.ledger.problem.delta))
        return network

    @cached_property
    def _search(self) -> Search:
        return Search(self.marked, self.ledger.belief.theta)

    @cached_property
    def _unmarked(self) -> Search:
        """Without what was marked at the problem's delta, for smaller ones."""
        return Search(Network(self.ledger, marked=False), self.ledger.belief.theta)

    @cached_property
    def standing(self) -> Flags | None:
        """A set that keeps the believed one from being proved; None if there is none."""
        cut = self._search.standing(self.ledger.enough)
        return None if cut is None else cut.inside

    def is_held_by(self, inside: Flags | None) -> bool:
        """Does this set still keep the believed one from being proved?"""
        ledger = self.ledger
        if inside is None or not is_rival(ledger, inside):
            return False
        return evidence_against(ledger, inside) < ledger.enough or self.marked.bound(inside) < ledger.enough

    @cached_property
    def is_rejected(self) -> bool:
        """Is the believed set itself rejected?"""
        inside = self.marked.inside
        return max(evidence_against(self.ledger, inside), self.marked.bound(inside)) >= self.ledger.enough

    def decide(self, delta: float) -> bool:
        """Are all sets but the believed one rejected at this delta, by direct accounts alone?"""
        is_marked = delta >= self.ledger.problem.delta
        return (self._search if is_marked else self._unmarked).quick(self.ledger.level(delta), self._alone(delta))

    def verdict(self, votes: int, last: Verdict[int]) -> Verdict[int]:
        problem, ledger = self.ledger.problem, self.ledger
        bound, is_only = smallest_delta(self.decide), self._may_be_only and self.standing is None
        if is_only:
            bound = min(bound, problem.delta)
        if self.is_rejected:
            bound, last = 1.0, replace(last, error_bound=1.0)
        verdict = report(ledger, bound, self._certain(), votes, last, guarantee(problem, "cut theorem"))
        is_open = is_only and self.is_rejected and not verdict.done
        caveats = (CONTRADICTED.format(k=problem.k),) if is_open else ()
        return replace(verdict, caveats=caveats)

    def filled(self) -> Floats:
        """For each item of the top and each one outside: which share of the level the evidence has against all sets
        with the first outside and the second inside. An item's share is the average over its pairs."""
        level, search, inside = self.ledger.enough, self._search, self.marked.inside
        pairs = np.ones((self.marked.n, len(self._top)))
        for column, item in enumerate(self._top.tolist()):
            out = search.implied(item, level, None, self._alone(self.ledger.problem.delta))
            evidence = search.pulls[item].on(out[:, None])[:, 0] / level
            pairs[~out, column] = np.clip(evidence[~out], 0.0, 1.0)
        left = ~np.isin(np.arange(self.marked.n), self.ledger.problem.withdrawn)
        asked = left[self._top]
        shares: Floats = np.where(left, pairs[:, asked].mean(axis=1), 1.0)
        shares[self._top[asked]] = pairs[np.ix_(~inside & left, asked)].mean(axis=0)
        return shares

    @property
    def _may_be_only(self) -> bool:
        return self.grid is not None or may_be_enough(self.ledger.problem, self.ledger)

    def _certain(self) -> tuple[set[int], set[int]]:
        ledger, network = self.ledger, self.marked
        if not len(network.capacity) or network.capacity.max() < ledger.enough:
            return set(), set()
        implied = [self._search.implied(item, ledger.enough) for item in self._top.tolist()]
        return certain(ledger, np.stack(implied, axis=1))

    def _alone(self, delta: float) -> list[Evidenced]:
        return [] if self.grid is None else [each_alone(self.marked.n, self.grid, self._grid_level(delta))]

    def _grid_level(self, delta: float) -> float:
        return grid_level(self.ledger.problem, delta * self.grid_share)


def check_problem(problem: Problem) -> None:
    """Raise BadProblem for what the rule does not prove."""
    if problem.tolerance:
        raise BadProblem(
            "stopping rule cuts proves the exact top k; with a tolerance choose edges, or leave the tolerance out"
        )
    if problem.min_judges > 1:
        raise BadProblem(
            "stopping rule cuts cannot ask for several judges behind a proof; with min_judges choose edges"
        )


def certify_votes(
    problem: Problem, votes: Block, counted: bool, units: Units | None = None, is_sorted: bool = False
) -> tuple[Verdict[int], Ledger]:
    """What votes prove in the order given, which is unit by unit if there are units. As with `edges`, half of the stake
    is on bets, half on the grid. `counted` votes have no order, and sorted ones no fair one: only the grid counts for
    them, as it does for `edges`."""
    check_problem(problem)
    if counted or is_sorted:
        return edges.certify_votes(problem, votes, counted, units, is_sorted)
    ledger, placed = replay(replace(empty_ledger(problem, Cuts()), share=FILE_SHARE), votes, units, counted)
    grid = grid_evidence(problem, votes._replace(weights=None if units is None else units.share))[0]
    sets = _Sets(ledger.refresh(), grid, 1 - FILE_SHARE)
    verdict = sets.verdict(round(ledger.votes), nothing_proved(problem))
    return replace(verdict, caveats=(*verdict.caveats, *left_out(placed, LEFT_OUT))), sets.ledger
