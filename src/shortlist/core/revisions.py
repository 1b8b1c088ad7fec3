"""Changes of a state other than a new vote: an undo, an abandoned question, answers that arrive early, an import.

Imported votes are added at once: their bets are made unit by unit, and nothing is proved in between. Half of the stake
is on accounts that bet on them, a quarter on a fixed grid of bets, which does not depend on their order, and a quarter
on accounts that ignore them (docs/guarantee.md).
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from shortlist.core import loop
from shortlist.core.betting import GRID_SHARE, OWN_SHARE, in_parts
from shortlist.core.evidence import Evidence
from shortlist.core.loop import State
from shortlist.core.pairs import Flags, Floats, pair_numbers
from shortlist.core.problem import Problem
from shortlist.core.stopping.chains import grid_level, grid_sums
from shortlist.core.stopping.edges import with_weights
from shortlist.core.tally import Block, Vote, as_block, join_blocks
from shortlist.core.units import Units

FEW = 4  # rounds of learning from votes out of turn: it is repeated when these are settled


def withdraw(state: State, votes: Sequence[Vote], pending: Block | None = None, imported: Sequence[Vote] = ()) -> State:
    """The state after votes were withdrawn, which can only weaken what is proved; see `Ledger.withdraw`. `imported` are
    those of them that were imported."""
    if state.verdict.done:
        return state
    evidence = state.evidence.withdraw(state.problem, votes, imported).estimate(state.problem)
    return loop.check_stop(
        state._replace(evidence=evidence, stopping_memory=state.stopping.start(state.problem)), pending
    )


def lose(state: State, votes: Sequence[Vote]) -> State:
    """The state after questions were abandoned, counted as lost by both items; see `Ledger.doubting`."""
    if state.verdict.done:
        return state
    ledger = state.evidence.kept_ledger.doubting(as_block(votes))
    return state._replace(evidence=state.evidence._replace(ledger=ledger))


def know(state: State, facts: frozenset[tuple[int, int]]) -> State:
    """The state with these facts and no others: each item is ahead of the other by known answers alone. If one is gone,
    what was reported goes too. Returns the state itself if nothing changed; nothing is checked yet."""
    ledger = state.evidence.kept_ledger
    source, target, _ = ledger.facts
    turned = {ends[::-1] for ends in facts} if ledger.flipped else facts
    before = set(zip(source.tolist(), target.tolist(), strict=True))
    if before == turned:
        return state
    memory: Any = state.stopping_memory if before <= turned else state.stopping.start(state.problem)
    ends = np.array(sorted(turned), dtype=np.int64).reshape(-1, 2)
    evidence = state.evidence._replace(ledger=ledger.with_facts(ends[:, 0], ends[:, 1]))
    return state._replace(evidence=evidence, stopping_memory=memory._replace(reported=0.0))


def recheck(state: State, pending: Block | None = None) -> State:
    """The state with its verdict checked again, because other questions are pending now."""
    return state if state.verdict.done else loop.check_stop(state, pending)


def look_ahead(state: State, votes: Sequence[Vote]) -> State:
    """The state with votes that came out of turn: good for choosing questions, never for a verdict."""
    if not votes:
        return state
    evidence = state.evidence
    for vote in votes:
        evidence = evidence.add(state.problem, vote)
    state = state._replace(evidence=evidence.estimate(state.problem))
    for place in range(min(len(votes), FEW)):
        state = loop.learn(state, 1, 0, place + 1)
    return state


def change(state: State, problem: Problem, pending: Block | None = None) -> State:
    """The state with another vote budget, delta or number of judges, or items withdrawn. Another delta and a larger
    number of judges remove the marks, the bound and the proved items that were found before, and the verdict is worked
    out again; so does a withdrawn item, but the marks of others stay. A verdict that is reached stays."""
    evidence, ledger = state.evidence, state.evidence.ledger
    if ledger is not None:
        evidence = evidence._replace(ledger=ledger.under(problem))
    old, state = state.problem, state._replace(problem=problem, evidence=evidence)
    if state.verdict.done:
        return state
    is_new = is_harder(problem, old) or problem.min_judges != old.min_judges
    if is_harder(problem, old):
        state = state._replace(stopping_memory=state.stopping.start(problem))
    if is_new:
        state = _replan(state, pending)
    is_over = round(evidence.tally.votes) >= (problem.max_votes or math.inf)
    return loop.check_stop(state, pending) if is_new or is_over else state


def is_harder(problem: Problem, old: Problem) -> bool:
    """Whether what was proved under the old settings has to be proved again."""
    is_other_answer = problem.withdrawn != old.withdrawn
    return is_other_answer or problem.delta != old.delta or problem.min_judges > old.min_judges


def _replan(state: State, pending: Block | None) -> State:
    """With marks and a plan for the delta of the problem."""
    ledger = state.evidence.ledger
    if ledger is None:
        return state
    ledger = ledger.mark_all(_grid_level(state.problem), pending).refresh()
    return loop.learn(state._replace(evidence=state.evidence._replace(ledger=ledger)), 1)


def _grid_level(problem: Problem) -> float:
    return grid_level(problem, problem.delta * GRID_SHARE)


def place_import(state: State, votes: Block, units: Units, is_new: Flags) -> Block:
    """Votes in the order of their units with bets and weights, which are 0 for units that are not new. All bets of a
    unit are made before its first vote is read, from votes before it."""
    ledger, size, parts = state.evidence.kept_ledger, len(votes.first), list[Block]()
    for begin, end in in_parts(size, ledger.votes, units.starts):
        part = with_weights(ledger, ledger.place_bets(votes.part(begin, end)), units.part(begin, end))
        ledger = ledger.inform(part)
        parts.append(part)
    placed = join_blocks(parts)
    assert placed.weights is not None
    weights = np.where(is_new, placed.weights, 0.0)
    is_over = ledger.share == OWN_SHARE  # nothing is bet on imported votes any more
    return placed._replace(bets=np.zeros(size) if is_over else placed.bets, weights=weights)


def add_import(state: State, votes: Block, share: Floats, is_sorted: bool, pending: Block | None = None) -> State:
    """The state after imported votes with their bets and weights; `share` are their weights in the grid. If they look
    sorted, what was reported goes, because it may rest on bets on imported votes."""
    if state.verdict.done:
        return state
    problem, (tally, mle, _) = state.problem, state.evidence
    kinds = (False, True) if problem.tolerance else (False,)
    grid = np.stack([grid_sums(problem, votes._replace(weights=share), kind) for kind in kinds], axis=1)
    if is_sorted:
        state = state._replace(stopping_memory=state.stopping.start(problem))
        pairs = pair_numbers(problem.n, votes.first, votes.second)
        grid[np.isin(np.unique(pairs), pairs[share == 0])] = -np.inf  # left out after a look, so lost for good
    ledger = state.evidence.kept_ledger.add_import(votes, grid, _grid_level(problem), is_sorted, pending)
    evidence = Evidence(tally.add_block(problem.family, votes), mle, ledger)
    return loop.next_round(state, evidence, len(votes.first), pending)
