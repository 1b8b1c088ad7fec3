"""Who voted how: a fold of a study's records for the owner's dashboard, kept up to date record by record."""

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from shortlist.study.records import Asked, Imported, Skipped, TakenBack, Told
from shortlist.study.storage import Entry

RECENT = 50


class Ballot(NamedTuple):
    """A question that was answered."""

    question: int
    first: int
    second: int
    judge: str | None
    outcome: float
    at: float


@dataclass
class Tab:
    """What one judge did. `first_wins` counts a tie as half."""

    votes: int = 0
    first_wins: float = 0.0
    skips: int = 0
    out: int = 0
    undone: int = 0


@dataclass
class Box:
    """Votes on a pair, seen from its lower item: how many, and the sum of outcomes, for each judge."""

    votes: dict[str | None, int] = field(default_factory=dict)
    won: dict[str | None, float] = field(default_factory=dict)
    all_votes: int = 0
    all_won: float = 0.0

    def add(self, judge: str | None, outcome: float, sign: int) -> None:
        self.all_votes += sign
        self.all_won += sign * outcome
        self.votes[judge] = self.votes.get(judge, 0) + sign
        self.won[judge] = self.won.get(judge, 0.0) + sign * outcome


class Watch:
    """Not for several threads at once: hold its lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.read = 0
        self.tabs: dict[str | None, Tab] = {}
        self.boxes: dict[tuple[int, int], Box] = {}
        self.recent: deque[Ballot] = deque(maxlen=RECENT)
        self.undone: set[int] = set()
        self.voided: set[str] = set()
        self._out: dict[int, Asked] = {}
        self._who: dict[int, str | None] = {}

    def fold(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.read = entry.number + 1
            match entry.record:
                case Asked() as asked:
                    self._out[asked.question] = asked
                    self._tab(asked.judge).out += 1
                case Told(question, outcome):
                    self._told(self._close(question), outcome, entry.at)
                case Skipped(question, _):
                    self._tab(self._close(question).judge).skips += 1
                case TakenBack() as taken:
                    self._taken_back(taken)
                case Imported() as votes:
                    for row in zip(votes.first, votes.second, votes.judge, votes.outcome, strict=True):
                        self._count(*row, sign=1)

    def _tab(self, judge: str | None) -> Tab:
        return self.tabs.setdefault(judge, Tab())

    def _close(self, question: int) -> Asked:
        asked = self._out.pop(question)
        self._tab(asked.judge).out -= 1
        return asked

    def _told(self, asked: Asked, outcome: float, at: float) -> None:
        self._who[asked.question] = asked.judge
        self._count(asked.first, asked.second, asked.judge, outcome, sign=1)
        self.recent.append(Ballot(asked.question, asked.first, asked.second, asked.judge, outcome, at))

    def _taken_back(self, taken: TakenBack) -> None:
        if taken.judge is not None:
            self.voided.add(taken.judge)
        for cast in taken.votes:
            judge = taken.judge
            if cast.question is not None:
                judge = self._who[cast.question]
                self.undone.add(cast.question)
            self._count(cast.first, cast.second, judge, cast.outcome, sign=-1)
            self._tab(judge).undone += 1

    def _count(self, first: int, second: int, judge: str | None, outcome: float, sign: int) -> None:
        tab = self._tab(judge)
        tab.votes += sign
        tab.first_wins += sign * outcome
        low, high = min(first, second), max(first, second)
        self.boxes.setdefault((low, high), Box()).add(judge, outcome if first == low else 1 - outcome, sign)


def agreement(boxes: Iterable[Box], judge: str | None) -> float | None:
    """The share of a judge's votes that side with most of the others' votes on the pair; a tie sides half."""
    sided, counted = 0.0, 0
    for box in boxes:
        own = box.votes.get(judge, 0)
        others = box.all_votes - own
        if own <= 0 or others <= 0:
            continue
        mean = (box.all_won - box.won[judge]) / others
        if mean != 0.5:
            sided += box.won[judge] if mean > 0.5 else own - box.won[judge]
            counted += own
    return sided / counted if counted else None


def counts(boxes: dict[tuple[int, int], Box]) -> Sequence[tuple[int, int, int, float]]:
    """Pairs with their votes and how many of these the lower item won."""
    return [(low, high, box.all_votes, box.all_won) for (low, high), box in sorted(boxes.items()) if box.all_votes]
