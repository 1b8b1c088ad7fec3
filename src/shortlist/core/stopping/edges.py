"""The default stopping rule: bets on direct comparisons, which are won too often only if the answer is right.

Proved: error at most delta for any sampling rule, if there is a set S* of k items that no outsider is expected to beat.
No Bradley-Terry, no transitivity. Level log(k/delta), or log(2n/delta) with a tolerance, which needs strong
stochastic transitivity. Theorems and proofs: docs/guarantee.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from shortlist.core.betting import GRID_SHARE, Accounts, Ledger, empty_ledger, in_parts
from shortlist.core.evidence import Evidence
from shortlist.core.pairs import Flags, Floats
from shortlist.core.problem import Problem
from shortlist.core.stopping.base import Verdict
from shortlist.core.stopping.chains import (
    AnyPull,
    Pull,
    absorb,
    capped_pull,
    capped_pulls,
    each_alone,
    grid_accounts,
    grid_level,
    pull,
    starts,
    step,
)
from shortlist.core.tally import Block, join_blocks
from shortlist.core.units import Units

REPORT = 0.05  # report again who is proved in or out, and the bound, when the votes grew by this share
FILE_SHARE = 0.5  # of the stake is on bets on a file; the rest is on the grid, which does not mind how it is sorted
LEAST_LOG = -500.0  # smaller error bounds than its exponential are not told apart
GUARANTEE = (
    "a proved answer is wrong with probability at most {delta:g} if there is a top {k} that no other item beats on "
    "average ({theorem})"
)
LEFT = (
    "a proved answer among the {left} items that were not withdrawn is wrong with probability at most {delta:g} if all "
    "items have a top {k}{more}, each within the next, and no item outside one of these beats an item inside it on "
    "average ({theorem} for withdrawn items)"
)
SEVERAL = ", and rests on at least {} judges"
SORTED = (
    "The votes look sorted by winner, so nothing that was bet on them counts, only how often each item won. Give them "
    "in the order in which they were cast."
)
LEFT_OUT = (
    "{:,} of {:,} votes count for nothing: they share a unit with an earlier vote against the same item, and not all "
    "units have the same pairs equally often."
)
TOLERANT = (
    "in a proved answer no outsider {beats}, with error probability at most {delta:g}, under strong stochastic "
    "transitivity (edge theorem with tolerance)"
)


def certify_votes(
    problem: Problem, votes: Block, counted: bool, units: Units | None = None, is_sorted: bool = False
) -> tuple[Verdict[int], Ledger]:
    """What votes prove in the order given, which is unit by unit if there are units.

    `counted` votes have no order: only the grid counts for them. If votes are sorted by winner, what was bet on them
    is dropped and the grid keeps its part of the stake: to choose between the two after a look would not be fair.
    """
    ledger, placed = replay(replace(empty_ledger(problem), share=FILE_SHARE), votes, units, counted)
    share = None if units is None else (units.trusting_no_order() if is_sorted else units).share
    grids = grid_evidence(problem, votes._replace(weights=share))
    left = 1.0 if counted else 1 - FILE_SHARE
    chains = _Chains(problem, ledger.refresh(), grids, left, not (counted or is_sorted))
    verdict = chains.verdict(round(ledger.votes), nothing_proved(problem))
    return replace(verdict, caveats=(*([SORTED] if is_sorted else ()), *left_out(placed))), chains.ledger


def left_out(placed: Block, words: str = LEFT_OUT) -> tuple[str, ...]:
    """A caveat if some votes of a file weigh nothing."""
    unused = 0 if placed.weights is None else int(np.count_nonzero(placed.weights == 0))
    return (words.format(unused, len(placed.first)),) if unused else ()


def replay(ledger: Ledger, votes: Block, units: Units | None, counted: bool) -> tuple[Ledger, Block]:
    """The ledger after votes in their order, and the votes with their bets and weights."""
    size, parts = len(votes.first), list[Block]()
    starts = None if units is None else units.starts
    for begin, end in [(0, size)] if counted else in_parts(size, 0.0, starts):
        part = votes.part(begin, end)
        part = part._replace(bets=np.zeros(size)) if counted else ledger.place_bets(part)
        parts.append(part if units is None else with_weights(ledger, part, units.part(begin, end)))
        ledger = ledger.add(parts[-1])
    return ledger, join_blocks(parts) if parts else votes._replace(bets=np.empty(0))


def with_weights(ledger: Ledger, placed: Block, units: Units) -> Block:
    """Votes of whole units, whose bets are placed, with their weights in the ledger's accounts. With a marker a product
    may have all votes of a unit."""
    if ledger.marker is not None:
        return placed._replace(weights=units.whole)
    weights = units.weights(placed, ledger.flipped, both=bool(ledger.problem.tolerance))
    return placed._replace(weights=weights)


def grid_evidence(problem: Problem, votes: Block) -> list[Accounts]:
    """The accounts of the grid, and the tolerant ones if there is a tolerance."""
    return [grid_accounts(problem, votes, tolerant) for tolerant in ((False, True) if problem.tolerance else (False,))]


class EdgesMemory(NamedTuple):
    """The last report, and how many votes it had."""

    verdict: Verdict[int]
    reported: float


@dataclass(frozen=True)
class Edges:
    """every: check again when votes grew by this share."""

    every: float = 0.0
    name: str = "edges"
    wants: frozenset[str] = frozenset({"ledger"})

    def any_order(self, problem: Problem) -> bool:
        """Answers may count as they come, because pending questions count as lost. A measured loss has no limit."""
        return not problem.family.is_measured

    def start(self, problem: Problem) -> EdgesMemory:
        return EdgesMemory(nothing_proved(problem), 0.0)

    def check(
        self, memory: EdgesMemory, problem: Problem, evidence: Evidence, pending: Block | None = None
    ) -> tuple[EdgesMemory, Verdict[int]]:
        ledger = evidence.ledger
        assert ledger is not None  # it is wanted
        votes = round(ledger.votes)
        enough = may_be_enough(problem, ledger)  # pending questions can only take away from it
        if not enough and ledger.votes < (1 + REPORT) * memory.reported and ledger.votes > 1:
            return memory, memory.verdict  # the loop counts the votes
        if pending is not None:
            ledger = ledger.doubting(pending)
        if enough and may_be_enough(problem, ledger):
            chains = _Chains(problem, ledger)
            if chains.decide(problem.delta):
                verdict = chains.verdict(votes, memory.verdict)
                return EdgesMemory(verdict, ledger.votes), verdict
        if ledger.votes < (1 + REPORT) * memory.reported and ledger.votes > 1:
            return memory, memory.verdict  # the loop counts the votes
        verdict = _Chains(problem, ledger).verdict(votes, memory.verdict)
        return EdgesMemory(verdict, ledger.votes), verdict

    def examine(
        self, memory: EdgesMemory, problem: Problem, evidence: Evidence, pending: Block | None = None
    ) -> Verdict[int]:
        ledger = evidence.kept_ledger if pending is None else evidence.kept_ledger.doubting(pending)
        return _Chains(problem, ledger).verdict(round(ledger.votes), memory.verdict)

    def filled(self, problem: Problem, evidence: Evidence, pending: Block | None = None) -> Floats:
        """How much of the proof about each item is there, from 0 to 1. All are 1 when the answer is proved."""
        ledger = evidence.kept_ledger if pending is None else evidence.kept_ledger.doubting(pending)
        return _Chains(problem, ledger).filled(problem.delta)


def may_be_enough(problem: Problem, ledger: Ledger) -> bool:
    """A cheap condition that every stop meets: all but k items have enough evidence against them."""
    if problem.tolerance:
        return ledger.votes > 0
    full = ledger.inflow >= ledger.enough
    if ledger.has_caps and full.any():
        full &= ledger.reachable()
    full[ledger.proved.target] = True
    return int(np.count_nonzero(full)) >= problem.n - ledger.k


def is_enough(problem: Problem, ledger: Ledger) -> bool:
    """Whether the ledger proves its answer. Accounts that are larger never prove less."""
    return _Chains(problem, ledger).decide(problem.delta)


class _Chains:
    """Whom the items that look best absorb, at any level."""

    def __init__(
        self,
        problem: Problem,
        ledger: Ledger,
        grids: Sequence[Accounts] | None = None,
        grid_share: float = GRID_SHARE,
        bets: bool = True,
    ) -> None:
        """The ledger's accounts and those of the grids, with the shares of the stake that are on them. Without `bets`
        only the grids count."""
        self.problem, self.ledger, self.bets = problem, ledger, bets
        self.grids, self.grid_share = ledger.grids() if grids is None else grids, grid_share
        self.top = ledger.top  # on the ledger's side
        self.inside = np.zeros(problem.n, dtype=np.bool_)
        self.inside[self.top] = True
        self.plain: Pull = pull(problem.n, ledger.accounts())
        self.tolerant = pull(problem.n, ledger.accounts(tolerant=True)) if problem.tolerance else None
        self.capped = capped_pull(ledger, problem.delta) if ledger.has_caps else None

    def absorbed(self, delta: float) -> Flags:
        """A column for each of the top: all that it is proved not to be worse than, with error at most delta."""
        plain = self._pulls(self.plain, 0, delta)
        known = self.ledger.proved if self.bets and delta >= self.problem.delta else self.ledger.facts
        if len(known.source):
            plain.append(each_alone(self.problem.n, known, 1.0))
        reached = absorb(plain, starts(self.problem.n, self.top))
        if self.tolerant is None:
            return reached
        return absorb(plain, step(self._pulls(self.tolerant, 1, delta), reached))

    def _pulls(self, bets: Pull, kind: int, delta: float) -> list[tuple[AnyPull, float]]:
        if self.capped is not None:
            return capped_pulls(self.capped, self.ledger, delta)
        pulls: list[tuple[AnyPull, float]] = [(bets, self.ledger.level(delta))] if self.bets else []
        if self.grids:
            level = grid_level(self.problem, delta * self.grid_share)
            pulls.append(each_alone(self.problem.n, self.grids[kind], level))
        return pulls

    def filled(self, delta: float) -> Floats:
        """For each item of the top and each one outside: which share of the evidence that the first needs to absorb the
        second it has. An item's share is the average over its pairs."""
        absorbed = self.absorbed(delta)
        last, kind = (self.plain, 0) if self.tolerant is None else (self.tolerant, 1)
        evidence = [pull.on(absorbed) / level for pull, level in self._pulls(last, kind, delta)]
        pairs = np.where(absorbed, 1.0, np.clip(np.max(evidence, axis=0), 0.0, 1.0))
        left = ~np.isin(np.arange(self.problem.n), self.problem.withdrawn)
        asked = left[self.top]
        shares: Floats = np.where(left, pairs[:, asked].mean(axis=1), 1.0)
        shares[self.top[asked]] = pairs[np.ix_(~self.inside & left, asked)].mean(axis=0)
        return shares

    def decide(self, delta: float) -> bool:
        """Does every item of the top absorb every item outside? Not if a fact speaks against the top itself."""
        source, target, _ = self.ledger.facts
        return bool(self.absorbed(delta)[~self.inside].all()) and not (~self.inside[source] & self.inside[target]).any()

    def error_bound(self) -> float:
        return smallest_delta(self.decide)

    def verdict(self, votes: int, last: Verdict[int]) -> Verdict[int]:
        problem, bound = self.problem, self.error_bound()
        if self.decide(problem.delta):
            bound = min(bound, problem.delta)  # which rounding must not hide
        return report(self.ledger, bound, self._certain(problem.delta), votes, last, guarantee(problem))

    def _certain(self, delta: float) -> tuple[set[int], set[int]]:
        """Within a tolerance nobody is certain."""
        return (set(), set()) if self.problem.tolerance else certain(self.ledger, self.absorbed(delta))


def smallest_delta(decide: Callable[[float], bool]) -> float:
    """The smallest delta that decides, to a relative 1e-3, rounded up; 1 if there is none."""
    if not decide(1.0):
        return 1.0
    high, low = 0.0, -1.0
    while low > LEAST_LOG and decide(math.exp(low)):
        high, low = low, 2 * low
    while high - low > 1e-3:
        middle = 0.5 * (high + low)
        high, low = (middle, low) if decide(math.exp(middle)) else (high, middle)
    return math.exp(high)


def certain(ledger: Ledger, absorbed: Flags) -> tuple[set[int], set[int]]:
    """Certainly in: absorbs n-k others. Certainly out: absorbed by k others. A column for each of the believed top."""
    top, n, k = ledger.top, ledger.problem.n, ledger.k
    best = set(top[absorbed.sum(axis=0) - 1 >= n - k].tolist())
    rest = set(np.flatnonzero(absorbed.sum(axis=1) >= k).tolist()) - set(top.tolist())
    return (rest, best) if ledger.flipped else (best, rest)


def report(
    ledger: Ledger, bound: float, sure: tuple[set[int], set[int]], votes: int, last: Verdict[int], words: str
) -> Verdict[int]:
    """The verdict with this error bound and these items in or out for certain, and what the last one had proved;
    `words` are its guarantee."""
    problem, n = ledger.problem, ledger.problem.n
    inside = np.isin(np.arange(n), ledger.top)
    top = tuple(np.flatnonzero(inside != ledger.flipped).tolist())
    if ledger.lacks_top:
        everyone = tuple(range(n))
        return Verdict(True, "no top", top, 1.0, (), (), everyone, votes, None, "", error=problem.stated_delta)
    if top == last.top:
        bound = min(bound, last.error_bound)  # what was proved once stays proved, with the same probability
    done = bound <= problem.delta
    sure_in, sure_out = sure[0] | set(last.certainly_in), sure[1] | set(last.certainly_out)
    if done and not problem.tolerance:
        sure_in, sure_out = sure_in | set(top), sure_out | set(range(n)).difference(top)
    sure_out -= set(problem.withdrawn)  # they are no part of the answer's items
    undecided = tuple(i for i in range(n) if i not in (*sure_in, *sure_out, *problem.withdrawn))
    return Verdict(
        done, "certified" if done else None, top, bound, tuple(sorted(sure_in)), tuple(sorted(sure_out)),
        undecided, votes, 0.0 if done else last.votes_left, words, error=problem.stated_delta,
    )  # fmt: skip


def guarantee(problem: Problem, theorem: str = "edge theorem") -> str:
    if problem.withdrawn:
        return _left(problem, theorem) + (SEVERAL.format(problem.min_judges) if problem.min_judges > 1 else "")
    form = TOLERANT if problem.tolerance else GUARANTEE
    measured = problem.family.is_measured
    beats = f"beats a member {'by more than' if measured else 'with probability above 0.5 +'} {problem.tolerance:g}"
    noise = "" if not measured else ", for normal noise of the given sigma or less"
    several = SEVERAL.format(problem.min_judges) if problem.min_judges > 1 else ""
    return form.format(delta=problem.stated_delta, k=problem.k, beats=beats, theorem=theorem) + noise + several


def _left(problem: Problem, theorem: str) -> str:
    """The guarantee of a study from which items were withdrawn."""
    k, gone = problem.k, len(problem.withdrawn)
    sizes = [f"a top {size}" for size in range(k + 1, k + gone + 1)]
    more = f"{''.join(f', {size}' for size in sizes[:-1])} and {sizes[-1]}"
    return LEFT.format(left=problem.left, delta=problem.stated_delta, k=k, more=more, theorem=theorem)


def nothing_proved(problem: Problem) -> Verdict[int]:
    everyone = tuple(range(problem.n))
    return Verdict(False, None, everyone[: problem.k], 1.0, (), (), everyone, 0, None, "", error=problem.stated_delta)
