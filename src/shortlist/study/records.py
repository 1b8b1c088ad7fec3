"""What happens in a study, one record after the other. Records are only ever added: a study is a fold over them.

A record says all that the fold needs, in item numbers; what a person may change later is said by a new record.
"""

import json
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from shortlist.tally import Block


class Asked(NamedTuple):
    """A question went out: `first` was put first by a fair coin, and `bet` is what stood on it then."""

    question: int
    first: int
    second: int
    bet: float
    judge: str | None = None
    case: str | None = None
    lease: float | None = None  # when it is given up, in seconds since 1970; None is never
    run: str | None = None  # who is at work on it


class TakenOver(NamedTuple):
    """A run went on with a question that another one had left."""

    question: int
    run: str


class Told(NamedTuple):
    """Its answer, from the side of its first item."""

    question: int
    outcome: float


EXPIRED = "lease ran out"
VOIDED = "judge voided"


class Skipped(NamedTuple):
    """It was closed without an answer: by the judge, or because its lease ran out."""

    question: int
    reason: str = ""


class Late(NamedTuple):
    """An answer after the question was closed: kept, and not counted."""

    question: int
    outcome: float


class Cast(NamedTuple):
    """A vote as it was counted; an imported one has no question."""

    question: int | None
    first: int
    second: int
    outcome: float
    bet: float


class TakenBack(NamedTuple):
    """Votes that count no more, except against; with a judge, whom to ask nothing any more."""

    votes: tuple[Cast, ...]
    judge: str | None = None

    @property
    def question(self) -> int | None:
        """The question, if it is about one alone."""
        return self.votes[0].question if len(self.votes) == 1 else None


class Imported(NamedTuple):
    """Votes from elsewhere, in their order."""

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
    """The owner closed the study for questions, or opened it again."""

    paused: bool


Record: TypeAlias = Asked | TakenOver | Told | Skipped | Late | TakenBack | Imported | Paused
KINDS: dict[str, type[Any]] = {
    "asked": Asked, "taken over": TakenOver, "told": Told, "skipped": Skipped, "late": Late,
    "taken back": TakenBack, "imported": Imported, "paused": Paused,
}  # fmt: skip
NAMES = {kind: name for name, kind in KINDS.items()}


def dump(record: Record) -> tuple[str, str]:
    """The record's kind and the rest of it as JSON."""
    return NAMES[type(record)], json.dumps(record._asdict(), separators=(",", ":"))


def load(kind: str, body: str) -> Record:
    """The record that was dumped."""
    fields = json.loads(body)
    if kind == "taken back":
        fields["votes"] = tuple(Cast(*vote) for vote in fields["votes"])
    made: Record = KINDS[kind](**{name: tuple(v) if isinstance(v, list) else v for name, v in fields.items()})
    return made
