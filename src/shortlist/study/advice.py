"""What the owner of a study should know."""

from collections.abc import Sequence

from shortlist import loop
from shortlist.rules.bridge import Bridge


def advise(state: loop.State, items: Sequence[str]) -> str | None:
    """A tie that will never end, or pairs that block a proof; None if all is well."""
    problem = state.problem
    if state.verdict.done or not isinstance(state.rule, Bridge):
        return None
    if state.memory.plan is not None and state.memory.plan.blocked:
        u, v = (items[i] for i in state.memory.plan.blocked[0])
        return f"{u} and {v} cannot be told apart by the allowed pairs; allow more or nothing will be proved"
    hint = state.rule.hint(state.memory, state.facts)
    if hint is not None:
        u, v = (items[i] for i in hint.line)
        return (
            f"{u} and {v} look tied at the line; a tolerance of {hint.tolerance:g} would end in about "
            f"{round(hint.votes, -2 if hint.votes > 1000 else -1):,.0f} votes"
        )
    if problem.tolerance == 0 and problem.max_votes is None and state.verdict.votes == 0:
        return "no tolerance and no vote budget: if two items tie at the line, this study never ends by itself"
    return None
