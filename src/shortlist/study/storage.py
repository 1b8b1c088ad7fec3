"""Where events are stored: in memory here, in a database in sql.py. Events are only added, never changed.

A study is known by its name. Its events are numbered from 0 without gaps, and `writing` holds the study's lock, so
a writer has read all events before its own. The storage also keeps judges' cached answers, of which the first one
counts, and when each run was last seen alive.
"""

import hashlib
import json
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from shortlist.errors import StudyExists, UnknownStudy
from shortlist.study.events import Entry, dump, fingerprint


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


class JudgeReply(NamedTuple):
    """What a judge said in one try, and what it cost. Texts are kept apart, by digest."""

    question: int
    judge: str  # as its votes are stored
    member: str  # of a panel: which of its judges; else empty
    case: str | None
    first: str
    second: str
    outcome: float | None  # as seen from `first`, which was shown first; None if it gave none
    reason: str  # why there is no outcome
    attempt: int  # 1 is the first
    at: float  # seconds since 1970
    seconds: float  # how long it took
    request: str  # a digest of what was sent
    model: str  # as the server calls it
    text: str | None  # None if texts are not kept
    reasoning: str | None
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    cost: float | None  # None if no price is known
    first_text: str | None  # digests of what was shown; None if texts are not kept
    second_text: str | None
    case_text: str | None

    @property
    def digest(self) -> str:
        place = self.question, self.judge, self.member, self.case, self.first, self.second, self.attempt, self.at
        return hashlib.blake2b(repr(place).encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()


class Spent(NamedTuple):
    """What the answers of a study's judges cost so far. `unpriced` calls have no known price."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0


class Writer(Protocol):
    """Writes to a study whose lock is held. All of it happens, or nothing."""

    @property
    def now(self) -> float:
        """When the lock was taken, by the storage's clock."""
        ...

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

    def length(self, name: str) -> int:
        """The number of events."""
        ...

    def since(self, name: str, number: int, most: int | None = None) -> list[Entry]:
        """The events from this number on; at most so many."""
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

    def add_replies(self, name: str, replies: Sequence[JudgeReply], texts: Mapping[str, str]) -> None:
        """Store what judges said, each reply once, and texts by digest."""
        ...

    def replies(self, name: str) -> list[JudgeReply]:
        """What judges said, the oldest first."""
        ...

    def texts(self, name: str) -> dict[str, str]:
        """The texts that replies refer to, by digest. What people are shown too is kept once, with that."""
        ...

    def spent(self, name: str) -> Spent: ...
    def now(self) -> float:
        """Seconds since 1970 by the clock that all users of the storage share."""
        ...

    def beat(self, name: str, run: str, seconds: float) -> None:
        """Note that the run works on the study, and will for so many seconds."""
        ...

    def leave(self, name: str, run: str) -> None:
        """Note that the run has ended."""
        ...

    def beats(self, name: str) -> dict[str, float]:
        """The seconds that are left of what each run has noted, by the storage's clock. Negative if it is over."""
        ...


def items_digest(items: Iterable[str]) -> str:
    """A digest of a set of items."""
    return hashlib.blake2b(repr(sorted(items)).encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()


def storable(text: str) -> str:
    """A text that every database can hold: no NUL, and no half of a pair of surrogates."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def displayed_texts(body: str | None) -> dict[str, str]:
    """The texts of items and cases that people are shown in a study, by digest, from how the display is stored."""
    if body is None:
        return {}
    kept = json.loads(body)
    found = [case["text"] for case in kept["cases"]]
    for content in kept["contents"].values():
        found += [content["text"], *content["answers"].values()]
    return {fingerprint(text): text for text in map(storable, found)}


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
    replies: dict[str, JudgeReply] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

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

    @property
    def now(self) -> float:
        return time.time()

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

    def length(self, name: str) -> int:
        return len(self._study(name).entries)

    def since(self, name: str, number: int, most: int | None = None) -> list[Entry]:
        return self._study(name).since(number)[:most]

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

    def add_replies(self, name: str, replies: Sequence[JudgeReply], texts: Mapping[str, str]) -> None:
        study = self._study(name)
        study.replies |= {reply.digest: reply for reply in replies}
        study.texts |= texts

    def replies(self, name: str) -> list[JudgeReply]:
        return sorted(self._study(name).replies.values(), key=lambda reply: reply.at)

    def texts(self, name: str) -> dict[str, str]:
        return dict(self._study(name).texts)

    def spent(self, name: str) -> Spent:
        replies = self._study(name).replies.values()
        tokens = (sum(getattr(reply, part) for reply in replies) for part in ("prompt_tokens", "completion_tokens"))
        cost = sum(reply.cost or 0.0 for reply in replies)
        read, written = tokens
        return Spent(len(replies), read, written, cost, sum(reply.cost is None for reply in replies))

    def now(self) -> float:
        return time.time()

    def beat(self, name: str, run: str, seconds: float) -> None:
        self._study(name).beats[run] = self.now() + seconds

    def leave(self, name: str, run: str) -> None:
        self._study(name).beats.pop(run, None)

    def beats(self, name: str) -> dict[str, float]:
        now = self.now()
        return {run: until - now for run, until in self._study(name).beats.items()}

    def _study(self, name: str) -> _Stored:
        if name not in self._studies:
            raise UnknownStudy(name, list(self._studies))
        return self._studies[name]
