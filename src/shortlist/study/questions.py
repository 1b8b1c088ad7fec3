"""What a person meets in a study: questions and names, and whether what they say makes sense."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shortlist.core import loop
from shortlist.core.pairs import Floats, pair_number
from shortlist.core.sampling.bridge import Bridge
from shortlist.errors import BadOutcome, BadProblem

Pair = tuple[str, str]
Pairs = Iterable[Pair]


@dataclass(frozen=True)
class Question:
    """Which of these two is better? `first` was put first by a fair coin."""

    id: int
    first: str
    second: str
    judge: str | None = None
    bet: float = 0.0  # what the certificate bet on `first` when it was asked
    case: str | None = None  # the id of what the items are to be compared on


def as_outcomes(values: Sequence[float]) -> Floats:
    """Many outcomes as numbers; whether the family allows them is for it to say."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty((0, 0))
    if numbers.ndim != 1:
        raise BadOutcome("the outcomes are not a list of numbers; give one for each vote")
    return numbers


def check_items(items: Any) -> tuple[str, ...]:
    """Distinct names in an order of their own."""
    if isinstance(items, str | bytes | set | frozenset) or not hasattr(items, "__iter__"):
        raise BadProblem(f"items is a {type(items).__name__}; give a list of item names")
    names = tuple(items)
    for name in names:
        if not isinstance(name, str) or not name:
            raise BadProblem(f"item {name!r} is no name; every item needs a string that is not empty")
        if name != name.strip():
            raise BadProblem(f"item {name!r} begins or ends with a blank, which vote files lose; take it away")
    doubled = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if doubled:
        raise BadProblem(f"items must differ; given more than once: {', '.join(doubled[:5])}")
    if "tie" in names:
        raise BadProblem("an item cannot be called 'tie': judges say that when they see no difference")
    return names


def check_pairs(items: Sequence[str], pairs: Pairs) -> tuple[int, ...]:
    """The numbers of pairs of items, in increasing order."""
    number = {item: place for place, item in enumerate(items)}
    found = set()
    for first, second in pairs:
        if first not in number or second not in number or first == second:
            raise BadProblem(f"({first!r}, {second!r}) is no pair of two different items of this study")
        found.add(pair_number(len(items), number[first], number[second]))
    return tuple(sorted(found))


def advise(state: loop.State, items: Sequence[str]) -> str | None:
    """What the owner should know: a tie that will never resolve, or pairs that block a proof. None if all is well."""
    problem = state.problem
    if state.verdict.done or not isinstance(state.sampling, Bridge):
        return None
    if state.sampling_memory.plan is not None and state.sampling_memory.plan.blocked:
        u, v = (items[i] for i in state.sampling_memory.plan.blocked[0])
        return f"{u} and {v} cannot be told apart by the allowed pairs; allow more or nothing will be proved"
    hint = state.sampling.hint(state.sampling_memory, state.evidence)
    if hint is not None:
        u, v = (items[i] for i in hint.line)
        return (
            f"{u} and {v} look tied at the cutoff; a tolerance of {hint.tolerance:g} would end in about "
            f"{round(hint.votes, -2 if hint.votes > 1000 else -1):,.0f} votes"
        )
    if problem.tolerance == 0 and problem.max_votes is None and state.verdict.votes == 0:
        return "no tolerance and no vote budget: if two items tie at the cutoff, this study never ends by itself"
    return None
