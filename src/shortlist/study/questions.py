"""What a person meets in a study: questions, answers and names, and whether what they say makes sense."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shortlist.core import loop
from shortlist.core.arguments import shown
from shortlist.core.families import Family
from shortlist.core.outcomes import TIE, outcome_of, outcome_of_winner
from shortlist.core.pairs import Floats, pair_number
from shortlist.core.sampling.bridge import Bridge, BridgeMemory
from shortlist.core.sampling.learn_then_prove import TwoPhases
from shortlist.core.sampling.sharpen import Sharpen
from shortlist.errors import BadOutcome, BadProblem, UnknownQuestion

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


def question_id(question: Question | int) -> int:
    """The number of a question, given as such or by its number."""
    number = question.id if isinstance(question, Question) else question
    if not isinstance(number, int) or isinstance(number, bool):
        raise UnknownQuestion(number)
    return number


def outcome_told(family: Family, question: Question, outcome: Any, winner: str | None) -> float:
    """The outcome of an answer to a question, as seen from its first item."""
    if (outcome is None) == (winner is None):
        raise BadOutcome("give either an outcome or winner=, and one of them")
    if winner is not None:
        return outcome_of_winner(winner, question.first, question.second, family)
    if isinstance(outcome, str) and outcome != TIE:
        raise BadOutcome(f"outcome {shown(outcome)} is not a number; for a name use winner=, for a tie give 'tie'")
    return outcome_of(outcome, question.first, question.second, family)


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
    if state.verdict.done:
        return None
    if isinstance(state.sampling, Sharpen):
        return _advise_without_proof(state)
    planned = _planned(state)
    if planned is None:
        return None
    if planned.plan is not None and planned.plan.blocked:
        u, v = (items[i] for i in planned.plan.blocked[0])
        return f"{u} and {v} cannot be told apart by the allowed pairs; allow more or nothing will be proved"
    hint = Bridge().hint(planned, state.evidence)
    if hint is not None:
        u, v = (items[i] for i in hint.line)
        return (
            f"{u} and {v} look tied at the cutoff; a tolerance of {hint.tolerance:g} would end in about "
            f"{round(hint.votes, -2 if hint.votes > 1000 else -1):,.0f} votes"
        )
    if problem.tolerance == 0 and problem.max_votes is None and state.verdict.votes == 0:
        return "no tolerance and no vote budget: if two items tie at the cutoff, this study never ends by itself"
    return None


def _planned(state: loop.State) -> BridgeMemory | None:
    """The plan of a proof, if the sampling rule makes one."""
    memory = state.sampling_memory
    if isinstance(memory, TwoPhases):
        return memory.bridge
    return memory if isinstance(memory, BridgeMemory) else None


def _advise_without_proof(state: loop.State) -> str | None:
    if state.problem.max_votes is not None or state.stopping.name == "posterior":
        return None
    return (
        "the sampling rule sharpen looks for the best answer, not for a proof, so this study may never end by itself; "
        "set max_votes, or choose the sampling rule bridge or learn-then-prove"
    )
