"""Where records are kept: in memory here, in a database in sql.py. Facts in, facts out; nothing is ever changed.

A study is known by its name. Its records are numbered from 0 without gaps, and `writing` holds the study's lock, so
whoever adds records has read all before them. Beside the records there are judges' known answers, of which the first
stays, and when each run was last seen at work.
"""

import hashlib
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from shortlist.errors import StudyExists, UnknownStudy
from shortlist.study.records import Record


class Entry(NamedTuple):
    """A record with its number and the time it was added, in seconds since 1970."""

    number: int
    at: float
    record: Record


class Snapshot(NamedTuple):
    """The desk after the records before `number`: a cache that may be thrown away."""

    number: int
    data: bytes


class AnswerKey(NamedTuple):
    """Who was asked about what, in which order: what a known answer is found by."""

    judge: str
    case: str | None  # its id
    first: str
    second: str
    question: int | None = None  # without a case, the one question that the answer is for

    @property
    def digest(self) -> str:
        return hashlib.blake2b(repr(tuple(self)).encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()


class Writer(Protocol):
    """What the holder of a study's lock can do. All of it happens, or nothing."""

    def since(self, number: int) -> list[Entry]: ...
    def add(self, number: int, records: Sequence[Record]) -> None: ...


class Storage(Protocol):
    """A place for studies."""

    @property
    def keeps_snapshots(self) -> bool: ...
    def create(self, name: str, spec: str) -> None:
        """A new study; raises StudyExists if the name is taken."""
        ...

    def spec(self, name: str) -> str:
        """What the study was created with; raises UnknownStudy."""
        ...

    def names(self) -> list[str]: ...
    def since(self, name: str, number: int) -> list[Entry]:
        """All records from that number on."""
        ...

    def of_question(self, name: str, question: int) -> list[Entry]:
        """The records of one question."""
        ...

    def writing(self, name: str) -> AbstractContextManager[Writer]: ...
    def snapshot(self, name: str) -> Snapshot | None: ...
    def save_snapshot(self, name: str, snapshot: Snapshot) -> None: ...
    def known_answer(self, name: str, key: AnswerKey) -> float | None: ...
    def keep_answer(self, name: str, key: AnswerKey, outcome: float) -> float:
        """Keep an answer, and give back the one that stands: the first."""
        ...

    def beat(self, name: str, sign: str, now: float) -> None:
        """A run that signs so was at work on the study at that time."""
        ...

    def leave(self, name: str, sign: str) -> None:
        """It is at work no more."""
        ...

    def beats(self, name: str) -> dict[str, float]:
        """When each run was last seen."""
        ...


@dataclass
class _Shelf:
    spec: str
    lock: threading.RLock = field(default_factory=threading.RLock)
    entries: list[Entry] = field(default_factory=list)
    fresh: list[Entry] = field(default_factory=list)  # nobody reads them before the write is over
    of_question: dict[int, list[int]] = field(default_factory=dict)
    answers: dict[AnswerKey, float] = field(default_factory=dict)
    beats: dict[str, float] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, lock=threading.RLock())

    def __enter__(self) -> "_Shelf":
        self.lock.acquire()
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        fresh, self.fresh = self.fresh, []
        for entry in fresh if error is None else ():
            question = getattr(entry.record, "question", None)
            if question is not None:
                self.of_question.setdefault(question, []).append(entry.number)
            self.entries.append(entry)
        self.lock.release()

    def since(self, number: int) -> list[Entry]:
        return self.entries[number:]

    def add(self, number: int, records: Sequence[Record]) -> None:
        assert number == len(self.entries) + len(self.fresh), "the lock keeps others from adding in between"
        now = time.time()
        self.fresh += [Entry(number + place, now, record) for place, record in enumerate(records)]


class Memory:
    """For one process, and gone with it."""

    keeps_snapshots = False

    def __init__(self) -> None:
        self._shelves: dict[str, _Shelf] = {}

    def create(self, name: str, spec: str) -> None:
        if self._shelves.setdefault(name, shelf := _Shelf(spec)) is not shelf:
            raise StudyExists(name)

    def spec(self, name: str) -> str:
        return self._shelf(name).spec

    def names(self) -> list[str]:
        return sorted(self._shelves)

    def since(self, name: str, number: int) -> list[Entry]:
        return self._shelf(name).since(number)

    def of_question(self, name: str, question: int) -> list[Entry]:
        shelf = self._shelf(name)
        return [shelf.entries[number] for number in shelf.of_question.get(question, ())]

    def writing(self, name: str) -> AbstractContextManager[Writer]:
        return self._shelf(name)

    def snapshot(self, name: str) -> Snapshot | None:
        return None  # whoever has the records has the desk

    def save_snapshot(self, name: str, snapshot: Snapshot) -> None:
        pass

    def known_answer(self, name: str, key: AnswerKey) -> float | None:
        return self._shelf(name).answers.get(key)

    def keep_answer(self, name: str, key: AnswerKey, outcome: float) -> float:
        return self._shelf(name).answers.setdefault(key, outcome)

    def beat(self, name: str, sign: str, now: float) -> None:
        self._shelf(name).beats[sign] = now

    def leave(self, name: str, sign: str) -> None:
        self._shelf(name).beats.pop(sign, None)

    def beats(self, name: str) -> dict[str, float]:
        return dict(self._shelf(name).beats)

    def _shelf(self, name: str) -> _Shelf:
        if name not in self._shelves:
            raise UnknownStudy(name, list(self._shelves))
        return self._shelves[name]
