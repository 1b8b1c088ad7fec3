"""Where events are stored: in memory here, in a database in sql.py. Events are only added, never changed.

A study is known by its name. Its events are numbered from 0 without gaps, and `writing` holds the study's lock, so
a writer has read all events before its own. The storage also keeps judges' cached answers, of which the first one
counts, and when each run was last seen alive.
"""

import hashlib
import json
import threading
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from shortlist.errors import StudyExists, UnknownStudy
from shortlist.study.events import Entry, dump


class Snapshot(NamedTuple):
    """The state after the events before `number`: a cache that may be thrown away."""

    number: int
    head: str  # the hash of the last of these events
    data: bytes


class AnswerKey(NamedTuple):
    """The key of a cached answer: which judge was asked about which pair, in which order."""

    judge: str
    case: str | None  # its id
    first: str
    second: str
    shown: str  # a digest of what the judge was shown and asked with: texts, case, settings
    question: int | None = None  # without a case: the only question that the answer is for

    @property
    def digest(self) -> str:
        return hashlib.blake2b(repr(tuple(self)).encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()


class Writer(Protocol):
    """Writes to a study whose lock is held. All of it happens, or nothing."""

    def since(self, number: int) -> list[Entry]: ...
    def add(self, entries: Sequence[Entry], head: str) -> str:
        """Add events after the one with the hash `head`; returns the hash of the last."""
        ...


class Storage(Protocol):
    """Stores studies."""

    @property
    def keeps_snapshots(self) -> bool: ...
    def create(self, name: str, spec: str) -> None:
        """Create a study. Raises StudyExists if the name is taken."""
        ...

    def spec(self, name: str) -> str:
        """What the study was created with. Raises UnknownStudy."""
        ...

    def origin(self, name: str) -> str:
        """The hash that the first event of the study follows; empty if events are not chained here."""
        ...

    def names(self) -> list[str]: ...
    def studies_of(self, items: Sequence[str]) -> int:
        """How many studies have these items, in any order."""
        ...

    def since(self, name: str, number: int) -> list[Entry]:
        """All events from this number on."""
        ...

    def written(self, name: str) -> list[tuple[str, str]]:
        """The kind and the body of every event, as they are stored."""
        ...

    def writing(self, name: str) -> AbstractContextManager[Writer]: ...
    def snapshot(self, name: str) -> Snapshot | None: ...
    def save_snapshot(self, name: str, snapshot: Snapshot) -> None: ...
    def known_answer(self, name: str, key: AnswerKey) -> float | None: ...
    def keep_answer(self, name: str, key: AnswerKey, outcome: float) -> float:
        """Store an answer unless there is one already. Returns the one that is stored."""
        ...

    def beat(self, name: str, run: str, now: float) -> None:
        """Note that the run was working on the study at this time."""
        ...

    def leave(self, name: str, run: str) -> None:
        """Note that the run has ended."""
        ...

    def beats(self, name: str) -> dict[str, float]:
        """When each run was last seen."""
        ...


def items_digest(items: Iterable[str]) -> str:
    """A digest of a set of items."""
    return hashlib.blake2b(repr(sorted(items)).encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()


def spec_digest(spec: str) -> str:
    """The digest of the items of a study; empty if the spec does not say."""
    return items_digest(json.loads(spec)["items"]) if spec else ""


@dataclass
class _Stored:
    """One study in memory, and its own writer."""

    spec: str
    lock: threading.RLock = field(default_factory=threading.RLock)
    entries: list[Entry] = field(default_factory=list)
    unsaved: list[Entry] = field(default_factory=list)  # not visible to readers until the write ends
    answers: dict[AnswerKey, float] = field(default_factory=dict)
    beats: dict[str, float] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, lock=threading.RLock())

    def __enter__(self) -> "_Stored":
        self.lock.acquire()
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        unsaved, self.unsaved = self.unsaved, []
        if error is None:
            self.entries += unsaved
        self.lock.release()

    def since(self, number: int) -> list[Entry]:
        return self.entries[number:]

    def add(self, entries: Sequence[Entry], head: str) -> str:
        self.unsaved += entries
        return head


class MemoryStorage:
    """Studies in memory. They end with the process."""

    keeps_snapshots = False

    def __init__(self) -> None:
        self._studies: dict[str, _Stored] = {}

    def create(self, name: str, spec: str) -> None:
        if self._studies.setdefault(name, new := _Stored(spec)) is not new:
            raise StudyExists(name)

    def spec(self, name: str) -> str:
        return self._study(name).spec

    def origin(self, name: str) -> str:
        return ""

    def names(self) -> list[str]:
        return sorted(self._studies)

    def studies_of(self, items: Sequence[str]) -> int:
        wanted = items_digest(items)
        return sum(spec_digest(study.spec) == wanted for study in self._studies.values())

    def since(self, name: str, number: int) -> list[Entry]:
        return self._study(name).since(number)

    def written(self, name: str) -> list[tuple[str, str]]:
        return [dump(entry.event) for entry in self.since(name, 0)]

    def writing(self, name: str) -> AbstractContextManager[Writer]:
        return self._study(name)

    def snapshot(self, name: str) -> Snapshot | None:
        return None  # in memory the events are enough

    def save_snapshot(self, name: str, snapshot: Snapshot) -> None:
        pass

    def known_answer(self, name: str, key: AnswerKey) -> float | None:
        return self._study(name).answers.get(key)

    def keep_answer(self, name: str, key: AnswerKey, outcome: float) -> float:
        return self._study(name).answers.setdefault(key, outcome)

    def beat(self, name: str, run: str, now: float) -> None:
        self._study(name).beats[run] = now

    def leave(self, name: str, run: str) -> None:
        self._study(name).beats.pop(run, None)

    def beats(self, name: str) -> dict[str, float]:
        return dict(self._study(name).beats)

    def _study(self, name: str) -> _Stored:
        if name not in self._studies:
            raise UnknownStudy(name, list(self._studies))
        return self._studies[name]
