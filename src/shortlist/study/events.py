"""The events of a study. Events are only added, never changed; the state of a study is a fold over them.

An event has everything that the fold needs, with item numbers. An undo is a new event.
"""

import json
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from shortlist.core.tally import Block

Drawing = Literal["replaced", "once", "recorded"]  # how a case was drawn: with replacement, or used once


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
    pool: int = 0  # how many cases there were to draw from, used ones too
    drawing: Drawing | None = None  # how the case was drawn


class TakenOver(NamedTuple):
    """A run continues with a question that another run left pending."""

    question: int
    run: str


class Told(NamedTuple):
    """The answer, from the side of the first item."""

    question: int
    outcome: float


EXPIRED = "lease ran out"
VOIDED = "judge voided"


class Skipped(NamedTuple):
    """The question was closed without an answer: by the judge, or because its lease expired."""

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


class Withdrawn(NamedTuple):
    """Votes that no longer support any item. With a judge: that judge is voided."""

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


Event: TypeAlias = Asked | TakenOver | Told | Skipped | Late | Withdrawn | Imported | Paused
KINDS: dict[str, type[Any]] = {
    "asked": Asked, "taken over": TakenOver, "told": Told, "skipped": Skipped, "late": Late,
    "withdrawn": Withdrawn, "imported": Imported, "paused": Paused,
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
