"""Questions and item names, and checks that they are valid."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shortlist.core import loop
from shortlist.core.pairs import Floats, pair_number
from shortlist.core.sampling import planned_by
from shortlist.core.sampling.bridge import Bridge
from shortlist.core.sampling.sharpen import Sharpen
from shortlist.errors import BadOutcome, BadProblem, NeedsJudges

Pair = tuple[str, str]
Pairs = Iterable[Pair]


@dataclass(frozen=True)
class Question:
    """Which of these two items is better? A fair coin decided which one is `first`."""

    id: int
    first: str
    second: str
    judge: str | None = None
    bet: float = 0.0  # on `first`, fixed when the question was asked
    case: str | None = None  # the id of the case on which the items are compared
    place: int | None = None  # on the judge's ballot, from 0; None if it is on no ballot


def as_outcomes(values: Sequence[float]) -> Floats:
    """Outcomes as an array of numbers. The family checks their range."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty((0, 0))
    if numbers.ndim != 1:
        raise BadOutcome("the outcomes are not a list of numbers; give one number for each vote")
    return numbers


def check_items(items: Any) -> tuple[str, ...]:
    """The names of the items, in the given order. Raises BadProblem unless they are distinct."""
    if isinstance(items, str | bytes | set | frozenset) or not hasattr(items, "__iter__"):
        raise BadProblem(f"items is a {type(items).__name__}; give a list of item names")
    names = tuple(items)
    for name in names:
        if not isinstance(name, str) or not name:
            raise BadProblem(f"item {name!r} is not a name; the name of an item is a string that is not empty")
        if name != name.strip():
            raise BadProblem(f"item {name!r} begins or ends with a space, which vote files do not keep; remove it")
    doubled = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if doubled:
        raise BadProblem(f"items must differ; given more than once: {', '.join(doubled[:5])}")
    if "tie" in names:
        raise BadProblem("an item cannot be called 'tie', because this is the answer for a tie; rename it")
    return names


def check_pairs(items: Sequence[str], pairs: Pairs) -> tuple[int, ...]:
    """The numbers of these pairs of items, in increasing order."""
    number = {item: place for place, item in enumerate(items)}
    return tuple(sorted({number_of_pair(number, *pair) for pair in pairs}))


def number_of_pair(number: Mapping[str, int], first: str, second: str) -> int:
    """The number of this pair of items, given theirs. Raises BadProblem if it is not a pair of this study."""
    if first not in number or second not in number or first == second:
        raise BadProblem(f"({first!r}, {second!r}) is not a pair of two different items of this study")
    return pair_number(len(number), number[first], number[second])


def advise(state: loop.State, items: Sequence[str], judges: Collection[int] = ()) -> str | None:
    """A hint for the owner: a tie that never resolves, pairs that block a proof, or judges that are missing. None if
    there is nothing to say. `judges` are the numbers of those who can still be asked."""
    problem = state.problem
    if state.verdict.done:
        return None
    if isinstance(state.sampling, Sharpen):
        return _advise_without_proof(state)
    planned = planned_by(state.sampling_memory)
    if planned is None:
        return None
    if planned.plan is not None and planned.plan.blocked:
        u, v = (items[i] for i in planned.plan.blocked[0])
        return f"the allowed pairs cannot separate {u} from {v}, so nothing can be proved; allow more pairs"
    if problem.min_judges > 1 and judges and not any(_can_help(state, judge) for judge in judges):
        return _more_judges(problem.min_judges, len(judges))
    hint = Bridge().hint(planned, state.evidence)
    if hint is not None:
        u, v = (items[i] for i in hint.line)
        rule = "stopping='edges' and " if state.stopping.name == "cuts" else ""  # which takes no tolerance
        return (
            f"{u} and {v} look tied at the cutoff; with {rule}a tolerance of {hint.tolerance:g}"
            f"{' (which needs min_judges 1)' if problem.min_judges > 1 else ''} the study would end in about "
            f"{round(hint.votes, -2 if hint.votes > 1000 else -1):,.0f} votes"
        )
    if problem.tolerance == 0 and problem.max_votes is None and state.verdict.votes == 0:
        return "no tolerance and no vote budget are set; if two items tie at the cutoff, this study never ends"
    return None


def _can_help(state: loop.State, judge: int) -> bool:
    try:
        loop.full_pairs(state, judge)
    except NeedsJudges:
        return False
    return True


def _more_judges(needed: int, judges: int) -> str:
    given = "the one judge so far has" if judges == 1 else f"the {judges} judges so far have"
    return (
        f"another judge is needed: a proof must rest on at least {needed} judges, and {given} given all that counts. "
        "Invite another judge, or lower the number of judges that a proof needs (min_judges)"
    )


def _advise_without_proof(state: loop.State) -> str | None:
    if state.problem.max_votes is not None or state.stopping.name == "posterior":
        return None
    return (
        "the sampling rule sharpen looks for the best answer, not for a proof, so this study may never end by itself; "
        "set max_votes, or choose the sampling rule bridge or learn-then-prove"
    )
