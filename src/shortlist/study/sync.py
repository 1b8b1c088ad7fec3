"""A study's events and state, synchronised with a storage that other processes also write to."""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from shortlist.errors import BadStorage, BrokenChain, StudyArchived
from shortlist.study.bulk import apply_many
from shortlist.study.events import Archived, Entry, Event, Head, chain, dump, origin
from shortlist.study.rows import RowTable
from shortlist.study.snapshot import decode, encode
from shortlist.study.state import StudyState, apply
from shortlist.study.storage import Snapshot, Storage, Writer

log = logging.getLogger("shortlist")
SNAPSHOT = 1000  # events and votes to fold before a snapshot pays off
BLOCK = 5000  # events to read at once
NOTICE = 2.0  # seconds of reading before a person is told how far it is
PERIOD = 5.0  # seconds between two of these messages


class Sync:
    """`state` is the study after the events read so far."""

    def __init__(
        self, storage: Storage, name: str, items: Sequence[str], start: StudyState, known: Sequence[object]
    ) -> None:
        """`known` are the objects that snapshots reference instead of containing."""
        self.storage, self.name, self.items, self.start, self.known = storage, name, items, start, list(known)
        self.state, self._read, self._hash = start, 0, storage.origin(name)
        self._table: RowTable | None = None
        self._saved, self._has_warned = 0, False
        self._writer: Writer | None = None
        self._unsaved: list[Entry] = []  # added in the transaction under way
        self._lock = threading.RLock()  # one thread of this process at a time; the storage's lock is for all
        self._resume()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    @property
    def entries(self) -> list[Entry]:
        """The events read so far, with the times at which they were added."""
        with self._lock:
            return [*self._since(0), *self._unsaved][: self._read]

    @property
    def head(self) -> Head:
        """How many events there are, and the hash of the last. Events in memory are chained when this is asked for."""
        if self._hash:
            return Head(self._read, self._hash)
        last = origin(self.storage.spec(self.name))
        for number, at, event, _, _ in self.entries:
            last = chain(last, number, at, *dump(event))
        return Head(self._read, last)

    @property
    def events(self) -> list[Event]:
        return [entry.event for entry in self.entries]

    @property
    def table(self) -> RowTable:
        """The rows of the events read so far. Computed lazily, then updated with each event."""
        with self._lock:
            if self._table is None:
                self._table = RowTable(self.items)
                self._table.fold(self.entries)
            return self._table

    def refresh(self) -> None:
        """Read what other processes have added."""
        with self._lock:
            self._fold(self._since(self._read))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """With the study's lock held and all events read. What is added inside is one write to the storage: all of it
        happens or nothing."""
        with self._lock:
            if self._writer is not None:
                yield
                return
            known = self.state, self._read, self._hash
            try:
                with self.storage.writing(self.name) as self._writer:
                    if new := self._writer.since(self._read):
                        self._fold(new)
                    known = self.state, self._read, self._hash
                    yield
                    self._hash = self._writer.add(self._unsaved, self._hash)
            except BaseException:
                (self.state, self._read, self._hash), self._table = known, None
                raise
            finally:
                self._writer, self._unsaved = None, []
            if self._effort >= self._saved + SNAPSHOT:
                self._save_snapshot()

    def add(self, events: Sequence[Event], state: StudyState) -> None:
        """Add events, in a transaction. `state` is the study after them, so what cannot be folded is not added. Raises
        StudyArchived."""
        if self.state.archived and any(not isinstance(event, Archived) for event in events):
            raise StudyArchived(self.name)
        now = self.now()
        entries = [Entry(number, now, event) for number, event in enumerate(events, self._read)]
        self._unsaved += entries
        self.state = state
        self._read += len(entries)
        if self._table is not None:
            self._table.fold(entries)

    def now(self) -> float:
        """The time by the storage's clock: in a transaction, when it began."""
        return self.storage.now() if self._writer is None else self._writer.now

    def _since(self, number: int) -> list[Entry]:
        return self.storage.since(self.name, number) if self._writer is None else self._writer.since(number)

    def _fold(self, entries: Sequence[Entry]) -> None:
        self._hash = check_chain(self.name, entries, self._read, self._hash)
        try:
            self.state = apply_many(self.state, [entry.event for entry in entries])
        except (LookupError, ValueError, TypeError):
            self._fold_one_by_one(entries)
        self._read += len(entries)
        if self._table is not None:
            self._table.fold(entries)

    def _fold_one_by_one(self, entries: Sequence[Entry]) -> None:
        """Fold events one of which cannot follow those before it, to say which."""
        for entry in entries:
            try:
                self.state = apply(entry.event, self.state)
            except (LookupError, ValueError, TypeError) as reason:
                raise BrokenChain(self.name, entry.number) from reason

    def _resume(self) -> None:
        snapshot = self.storage.snapshot(self.name)
        if snapshot is not None:
            state = self._state_of(snapshot)
            if state is not None:
                self.state, self._read, self._hash = state, snapshot.number, snapshot.head
            else:
                log.warning("study %r: its snapshot cannot be used, so all of its events are read again", self.name)
        self._saved = self._effort
        self._read_all()
        if self._effort >= self._saved + SNAPSHOT:
            self._save_snapshot()

    def _state_of(self, snapshot: Snapshot) -> StudyState | None:
        """The state of a snapshot; None if it is damaged, or not of these events."""
        try:
            state: StudyState | None = decode(snapshot.data, self.known)
            return state if state is not None and self.had(Head(snapshot.number, snapshot.head)) else None
        except TypeError:  # SQLite may hold a text where a number or bytes belong
            return None

    def _read_all(self) -> None:
        """Read the events block by block, and say how far this is if it takes long."""
        tell_at = time.monotonic() + NOTICE
        while entries := self.storage.since(self.name, self._read, BLOCK):
            self._fold(entries)
            if time.monotonic() > tell_at:
                tell_at = time.monotonic() + PERIOD
                total = self.storage.length(self.name)
                log.warning("study %r: read %s of %s events", self.name, f"{self._read:,}", f"{total:,}")

    def had(self, head: Head) -> bool:
        """Whether the stored events go on from this head."""
        last = self.storage.since(self.name, head.events - 1, 1)
        return bool(last) and last[0].hash == head.hash

    @property
    def _effort(self) -> int:
        """What it takes to fold the study from its first event: an import is one event with many votes."""
        return self._read + round(self.state.settled.evidence.tally.votes)

    def _save_snapshot(self) -> None:
        self._saved = self._effort
        if not self.storage.keeps_snapshots:
            return
        try:
            self.storage.save_snapshot(self.name, Snapshot(self._read, self._hash, encode(self.state, self.known)))
        except BadStorage as reason:  # the events are stored; a snapshot only makes loading quicker
            if self._has_warned:
                return
            self._has_warned = True
            log.warning("study %r: no snapshot was saved, so loading it takes longer (%s)", self.name, reason)


def check_chain(study: str, entries: Sequence[Entry], number: int, last: str) -> str:
    """The hash of the last of these events. Raises BrokenChain if they do not follow the event before `number`, whose
    hash is `last`: one was changed, removed or added."""
    for entry in entries:
        if (entry.number, entry.previous) != (number, last):
            raise BrokenChain(study, number)
        number, last = number + 1, entry.hash
    return last
