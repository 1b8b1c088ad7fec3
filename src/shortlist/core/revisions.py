"""Changes of a state other than a new vote: an undo, an abandoned question, answers that arrive early."""

from collections.abc import Sequence

from shortlist.core import loop
from shortlist.core.loop import State
from shortlist.core.tally import Block, Vote, as_block

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
