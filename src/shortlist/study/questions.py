"""What a person meets in a study: questions, answers and names, and whether what they say makes sense."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shortlist.errors import BadOutcome, BadProblem, UnknownItem, UnknownQuestion
from shortlist.families import Family
from shortlist.pairs import Floats, pair_number

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


@dataclass(frozen=True)
class Answer:
    """A question with its outcome as seen from its first item; None while it is out or if it was skipped."""

    question: Question
    outcome: float | None = None
    closed: bool = False
    undone: bool = False


def question_id(question: Question | int) -> int:
    """The number of a question, given as such or by its number."""
    number = question.id if isinstance(question, Question) else question
    if not isinstance(number, int) or isinstance(number, bool):
        raise UnknownQuestion(number)
    return number


def outcome_told(family: Family, question: Question, outcome: Any, winner: str | None) -> float:
    """The number that an answer stands for, from the side of the question's first item."""
    if (outcome is None) == (winner is None):
        raise BadOutcome("give either an outcome or winner=, and one of them")
    if winner is not None:
        return _win(family, question, winner)
    if isinstance(outcome, str | bytes):
        if outcome == "tie":
            return family.tie
        raise BadOutcome(f"outcome {outcome!r} is no number; for a name say winner={outcome!r}, else give 'tie'")
    try:
        number = np.asarray(outcome, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadOutcome(f"outcome {outcome!r} is no number; give one, 'tie', or winner=") from None
    if number.ndim != 0:
        raise BadOutcome(f"outcome {outcome!r} is not a single number; answer one question at a time")
    family.check(number)
    return float(number)


def _win(family: Family, question: Question, winner: str) -> float:
    if not isinstance(winner, str) or winner not in (question.first, question.second):
        raise UnknownItem(winner)
    if family.win is None:
        raise BadOutcome(f"the {family.name} family needs the measured difference, not a winner")
    return family.win if winner == question.first else float(family.flip(np.asarray(family.win)))


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
