"""What a stopping rule is (a memory, a cheap check after every vote, and a full examination), and the verdict it gives.

Copy `posterior.py` to add one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from html import escape
from typing import Any, Generic, Literal, Protocol, TypeVar

from shortlist.core.evidence import Evidence
from shortlist.core.pairs import Floats
from shortlist.core.problem import Problem
from shortlist.core.tally import Block, evolve

Item = TypeVar("Item")
Reason = Literal["certified", "budget", "no top"]


@dataclass(frozen=True)
class Verdict(Generic[Item]):
    """The answer so far. Items are numbers in the core and names in a study.

    `error_bound` is an anytime bound: for any level a fixed beforehand, the chance of ever showing a wrong set
    with a bound of at most a is itself at most a (posterior: on average over its prior, when one stops at it).
    `guarantee` says what it assumes; it is empty while nothing is proved.
    """

    done: bool
    reason: Reason | None
    top: tuple[Item, ...]
    error_bound: float
    certainly_in: tuple[Item, ...]
    certainly_out: tuple[Item, ...]
    undecided: tuple[Item, ...]
    votes: int
    votes_left: float | None  # an estimate, None while there is nothing to base it on
    guarantee: str
    statistic: float | None = None  # glr: min Z; while not done, a number between it and the threshold
    threshold: float | None = None  # glr: beta; while not done, at most beta
    caveats: tuple[str, ...] = ()  # what to know before relying on it, one sentence each
    error: float = 1.0  # the probability of error that a proof states: delta, which was fixed before the votes

    def __post_init__(self) -> None:
        if not self.proves:
            object.__setattr__(self, "guarantee", "")  # it speaks about what is proved

    @property
    def proves(self) -> bool:
        """Whether the answer is proved, or at least some item in or out."""
        return self.reason == "certified" or bool(self.certainly_in or self.certainly_out)

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain values for JSON: lists for tuples, None for numbers that are not finite."""
        parts = {name: _plain(getattr(self, name)) for name in FIELDS}
        return {**parts, "sentence": str(self)}

    def is_left(self, item: Item) -> bool:
        """Whether the item was not withdrawn."""
        return item in self.top or item in self.undecided or item in self.certainly_out or item in self.certainly_in

    def status(self, item: Item) -> str:
        """Whether the item is in the answer, and whether that is proved."""
        if not self.is_left(item):
            return "withdrawn"
        if item in self.certainly_in or item in self.certainly_out:
            return "in, proved" if item in self.certainly_in else "out, proved"
        return f"{'in' if item in self.top else 'out'}, {'proved' if self.reason == 'certified' else 'not proved'}"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        rest = (*self.certainly_in, *self.undecided, *self.certainly_out)
        items = [*self.top, *(item for item in rest if item not in self.top)]
        return html_table(self, ("item", "status"), [(str(item), self.status(item)) for item in items])

    def __str__(self) -> str:
        size = len(self.certainly_in) + len(self.certainly_out) + len(self.undecided)
        names = ", ".join(map(str, self.top))
        votes = f"{self.votes:,} vote{'' if self.votes == 1 else 's'}"
        if self.reason == "certified":
            return f"Top {len(self.top)} of {size}: {names}. Error at most {self.error:g}, {votes}."
        if self.reason == "no top":
            return f"There is no top {len(self.top)} of {size}: known answers speak against every set. {votes}."
        left = f", about {self.votes_left:,.0f} to go" if self.votes_left else ""
        ending = f"Vote budget used up after {votes}" if self.done else f"Not proved yet: {votes} so far{left}"
        bound = f"error bound {self.error_bound:.2g}" if self.error_bound < 1 else "no error bound yet"
        return f"{ending}. Best guess for the top {len(self.top)} of {size}: {names} ({bound})."


def html_table(verdict: Verdict[Any], head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The verdict in a sentence, and a table of its items, as HTML for notebooks."""

    def row(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    left = verdict.votes_left if verdict.votes_left and math.isfinite(verdict.votes_left) else None
    to_go = "" if verdict.done or left is None else f", about {left:,.0f} to go"
    votes = f"{verdict.votes:,} vote{'' if verdict.votes == 1 else 's'}"
    body = "".join(row("td", cells) for cells in rows)
    caveats = "".join(f"<p>Caveat: {escape(caveat)}</p>" for caveat in verdict.caveats)
    return (
        f"<p>{escape(str(verdict))}</p>{caveats}<table><caption>{votes} so far{to_go}</caption>"
        f"<thead>{row('th', head)}</thead><tbody>{body}</tbody></table>"
    )


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


FIELDS = tuple(part.name for part in fields(Verdict))


def named(verdict: Verdict[int], items: Sequence[str], theta: Floats) -> Verdict[str]:
    """The verdict with names instead of item numbers, the top best first."""

    def names(numbers: Sequence[int]) -> tuple[str, ...]:
        return tuple(items[number] for number in numbers)

    best_first = sorted(verdict.top, key=lambda i: -theta[i])
    sides = {side: names(getattr(verdict, side)) for side in ("certainly_in", "certainly_out", "undecided")}
    return Verdict(**{**vars(verdict), **sides, "top": names(best_first)})


def renamed(verdict: Verdict[int], last: Verdict[int], named: Verdict[str]) -> Verdict[str] | None:
    """The verdict with the names of the last one; None unless both say the same, as can be seen at a glance."""
    same = verdict.top is last.top and verdict.undecided is last.undecided and verdict.done == last.done
    if not same or (verdict.statistic, verdict.error_bound) != (last.statistic, last.error_bound):
        return None
    return evolve(named, votes=verdict.votes, votes_left=verdict.votes_left)


StoppingMemory = Any  # a stopping rule's own value; only the rule looks inside


class StoppingRule(Protocol):
    """When a study ends, and what is then proved. It never chooses a question."""

    @property
    def name(self) -> str: ...
    @property
    def wants(self) -> frozenset[str]:
        """Which of `mle` and `ledger` it reads."""
        ...

    @property
    def every(self) -> float:
        """Check again when the votes grew by this share."""
        ...

    def any_order(self, problem: Problem) -> bool:
        """Whether answers count as they arrive. Otherwise they count in the order asked."""
        ...

    def start(self, problem: Problem) -> StoppingMemory:
        """Memory before the first vote."""
        ...

    def check(
        self, memory: StoppingMemory, problem: Problem, evidence: Evidence, pending: Block | None = None
    ) -> tuple[StoppingMemory, Verdict[int]]:
        """Whether to stop. Called after every vote, so it must be cheap. `pending` are questions not answered yet."""
        ...

    def examine(
        self, memory: StoppingMemory, problem: Problem, evidence: Evidence, pending: Block | None = None
    ) -> Verdict[int]:
        """The full verdict. Called when a person asks for it."""
        ...
