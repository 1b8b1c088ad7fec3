"""The events of a study. Events are only added, never changed; the state of a study is a fold over them.

An event has everything that the fold needs, with item numbers. An undo is a new event.
"""

import json
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from shortlist.core.tally import Block


class Asked(NamedTuple):
    """A question was asked. A fair coin chose `first`, and `bet` was fixed at that moment."""

    question: int
    first: int
    second: int
    bet: float
    judge: str | None = None
    case: str | None = None
    lease: float | None = None  # when it expires, in seconds since 1970; None is never
    run: str | None = None  # the run that works on it
    shown: bool = True  # False: prefetched, and the judge has not seen it yet


class Shown(NamedTuple):
    """The judge sees the question, or still does: its lease begins again. Other leases of a judge with a name are
    extended to this one, because the judge is there."""

    question: int
    lease: float | None = None


class TakenOver(NamedTuple):
    """A run continues with a question that another run left pending."""

    question: int
    run: str


class Told(NamedTuple):
    """The answer, from the side of the first item. Until it is settled, the judge may take it back."""

    question: int
    outcome: float
    settles: float | None = None  # when it becomes final by itself, in seconds since 1970; None is at once


class Settled(NamedTuple):
    """The answer is final and counts."""

    question: int


class Reopened(NamedTuple):
    """The judge took an answer back before it was settled. The question is pending again, with the same bet, sides and
    case; from now on it can only be answered or lost."""

    question: int


EXPIRED = "lease ran out"
VOIDED = "judge voided"
LEFT = "judge left"
DROPPED = "no longer needed"


class Skipped(NamedTuple):
    """The question was closed without an answer and without an effect on the evidence: by the judge, or because it was
    prefetched and never shown."""

    question: int
    reason: str = ""


class Lost(NamedTuple):
    """The question was closed without an answer and counts as lost by both items for good: its answer might have come,
    had it been another."""

    question: int
    reason: str = ""


class Late(NamedTuple):
    """An answer that came after its question was closed. It is stored but not counted."""

    question: int
    outcome: float


class CountedVote(NamedTuple):
    """A vote as it was counted. An imported vote has no question."""

    question: int | None
    first: int
    second: int
    outcome: float
    bet: float
    judge: str | None = None


class Withdrawn(NamedTuple):
    """Votes that no longer support any item. With a judge: that judge is voided. Without one: the judges of these votes
    bet nothing on these pairs from now on."""

    votes: tuple[CountedVote, ...]
    judge: str | None = None

    @property
    def question(self) -> int | None:
        """The question that the event is about; None if there are several."""
        return self.votes[0].question if len(self.votes) == 1 else None


class Imported(NamedTuple):
    """Imported votes, in the order in which they were cast."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    outcome: tuple[float, ...]
    judge: tuple[str | None, ...]
    source: str = ""

    def part(self, begin: int, end: int) -> "Imported":
        here = slice(begin, end)
        return Imported(self.first[here], self.second[here], self.outcome[here], self.judge[here], self.source)

    @property
    def block(self) -> Block:
        columns = (self.first, self.second, self.outcome, np.ones(len(self.first)))
        return Block(*(np.asarray(column) for column in columns))


class Paused(NamedTuple):
    """The owner paused the study, or opened it again."""

    paused: bool


Event: TypeAlias = (
    Asked | Shown | TakenOver | Told | Settled | Reopened | Skipped | Lost | Late | Withdrawn | Imported | Paused
)
KINDS: dict[str, type[Any]] = {
    "asked": Asked, "shown": Shown, "taken over": TakenOver, "told": Told, "settled": Settled, "reopened": Reopened,
    "skipped": Skipped, "lost": Lost, "late": Late, "withdrawn": Withdrawn, "imported": Imported, "paused": Paused,
}  # fmt: skip
NAMES = {kind: name for name, kind in KINDS.items()}


class Entry(NamedTuple):
    """An event with its number and the time it was added, in seconds since 1970."""

    number: int
    at: float
    event: Event


def dump(event: Event) -> tuple[str, str]:
    """The event's kind, and the rest of it as JSON."""
    return NAMES[type(event)], json.dumps(event._asdict(), separators=(",", ":"))


def load(kind: str, body: str) -> Event:
    """The event that `dump` wrote."""
    fields = json.loads(body)
    if kind == "withdrawn":
        fields["votes"] = tuple(CountedVote(*vote) for vote in fields["votes"])
    made: Event = KINDS[kind](**{name: tuple(v) if isinstance(v, list) else v for name, v in fields.items()})
    return made
