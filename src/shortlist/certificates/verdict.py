"""What can be said now, in a record that reads aloud."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from shortlist.pairs import Floats

Item = TypeVar("Item")
Reason = Literal["certified", "budget"]


@dataclass(frozen=True)
class Verdict(Generic[Item]):
    """The answer so far. Items are numbers in the core and names in a study.

    `error_bound` is an anytime bound: for any level a fixed beforehand, the chance of ever showing a wrong set
    with a bound of at most a is itself at most a (posterior: on average over its prior, when one stops at it).
    It rests on `guarantee`.
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

    def says_the_same(self, other: "Verdict[Item]") -> bool:
        """Is only the number of votes another, as far as can be seen at a glance?"""
        same = self.top is other.top and self.undecided is other.undecided and self.done == other.done
        return same and (self.statistic, self.error_bound) == (other.statistic, other.error_bound)

    def after(self, votes: int, votes_left: float | None) -> "Verdict[Item]":
        """The same verdict some votes later; made at every vote, so quicker than dataclasses.replace."""
        later: Verdict[Item] = object.__new__(Verdict)
        later.__dict__.update(self.__dict__, votes=votes, votes_left=votes_left)
        return later

    def __str__(self) -> str:
        size = len(self.certainly_in) + len(self.certainly_out) + len(self.undecided)
        names = ", ".join(map(str, self.top))
        votes = f"{self.votes:,} vote{'' if self.votes == 1 else 's'}"
        if self.reason == "certified":
            return f"Top {len(self.top)} of {size}: {names}. Error at most {self.error_bound:.2g}, {votes}."
        ending = "Vote budget used up" if self.done else "Not certain yet"
        bound = f"error bound {self.error_bound:.2g}" if self.error_bound < 1 else "not proved"
        return f"{ending} after {votes}. Best guess for the top {len(self.top)} of {size}: {names} ({bound})."


def named(verdict: Verdict[int], items: Sequence[str], theta: Floats) -> Verdict[str]:
    """The verdict with names for numbers, the top best first."""

    def names(numbers: Sequence[int]) -> tuple[str, ...]:
        return tuple(items[number] for number in numbers)

    best_first = sorted(verdict.top, key=lambda i: -theta[i])
    sides = {side: names(getattr(verdict, side)) for side in ("certainly_in", "certainly_out", "undecided")}
    return Verdict(**{**vars(verdict), **sides, "top": names(best_first)})
