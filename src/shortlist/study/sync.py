"""A study's events and state, synchronised with a storage that other processes also write to; and the snapshot, a state
as bytes, that saves folding a long study from its first event.

Of a snapshot only arrays, plain values and this package's own records are written; reading runs no code from the file.
Parts that are one object are written once. A checksum comes first: what was damaged is not read at all.
"""

import hashlib
import io
import json
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np

from shortlist.errors import BadStorage, BrokenChain, StudyArchived, StudyReplaced
from shortlist.study.bulk import apply_many
from shortlist.study.events import Archived, Entry, Event, Head, chain, dump, origin
from shortlist.study.rows import RowTable
from shortlist.study.state import StudyState, apply
from shortlist.study.storage import Snapshot, Storage, Writer

FORMAT = 6
CHECKSUM = 32  # bytes
PLAIN: dict[type[Any], str] = {tuple: "plain tuple", list: "list", frozenset: "frozenset", set: "set"}
log = logging.getLogger("shortlist")
SNAPSHOT = 1000  # events and votes to fold before a snapshot pays off
BLOCK = 5000  # events to read at once
NOTICE = 2.0  # seconds of reading before a person is told how far it is
PERIOD = 5.0  # seconds between two of these messages


def encode(value: Any, known: Sequence[Any]) -> bytes:
    """The value as bytes. The `known` objects in it are stored as references."""
    writer = _Writer(known)
    root = writer.place(value)
    file = io.BytesIO()
    head = np.frombuffer(json.dumps({"format": FORMAT, "root": root, "nodes": writer.nodes}).encode(), dtype=np.uint8)
    np.savez_compressed(file, head=head, **{f"a{place}": array for place, array in enumerate(writer.arrays)})
    return hashlib.sha256(file.getvalue()).digest() + file.getvalue()


def decode(data: bytes, known: Sequence[Any]) -> Any:
    """The value again, or None if these bytes are not an undamaged snapshot of this version."""
    if hashlib.sha256(data[CHECKSUM:]).digest() != data[:CHECKSUM]:
        return None
    try:
        with np.load(io.BytesIO(data[CHECKSUM:]), allow_pickle=False) as arrays:
            head = json.loads(arrays["head"].tobytes())
            if head["format"] != FORMAT:
                return None
            reader = _Reader(head["nodes"], {name: arrays[name] for name in arrays.files}, known)
        return reader.take(head["root"])
    except Exception:  # another version of the package wrote it; whatever is wrong with it, the events are enough
        return None


class _Writer:
    def __init__(self, known: Sequence[Any]) -> None:
        self.nodes: list[Any] = []
        self.arrays: list[Any] = []
        self.places = {id(thing): ["known", number] for number, thing in enumerate(known)}
        self.kept: list[Any] = []  # an id is valid while its object lives

    def place(self, value: Any) -> Any:
        """Plain values as they are, others as a reference to a node."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if id(value) not in self.places:
            self.kept.append(value)
            node = self._node(value)
            self.nodes.append(node)
            self.places[id(value)] = ["node", len(self.nodes) - 1]
        return self.places[id(value)]

    def _node(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            self.arrays.append(value)
            return ["array", len(self.arrays) - 1]
        if isinstance(value, np.generic):
            return ["number", value.dtype.str, value.item()]
        if isinstance(value, dict):
            return ["dict", [[self.place(key), self.place(item)] for key, item in value.items()]]
        if hasattr(value, "_fields"):
            return ["tuple", _address(value), [self.place(item) for item in value]]
        if is_dataclass(value):
            parts = {part.name: self.place(getattr(value, part.name)) for part in fields(value) if part.init}
            return ["record", _address(value), parts]
        # the order of a set depends on how it grew
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return [PLAIN[type(value)], [self.place(item) for item in items]]


class _Reader:
    def __init__(self, nodes: list[Any], arrays: dict[str, Any], known: Sequence[Any]) -> None:
        self.arrays, self.known, self.made = arrays, known, list[Any]()
        for node in nodes:  # parts come before what holds them
            self.made.append(self._make(*node))

    def take(self, place: Any) -> Any:
        if not isinstance(place, list):
            return place
        where, number = place
        return self.known[number] if where == "known" else self.made[number]

    def _make(self, kind: str, what: Any, parts: Any = None) -> Any:
        if kind == "array":
            return self.arrays[f"a{what}"]
        if kind == "number":
            return np.dtype(what).type(parts)
        if kind == "dict":
            return {self.take(key): self.take(item) for key, item in what}
        if kind == "tuple":
            return _class(what)(*(self.take(part) for part in parts))
        if kind == "record":
            return _class(what)(**{name: self.take(part) for name, part in parts.items()})
        plain = next(kept for kept, name in PLAIN.items() if name == kind)
        return plain(self.take(part) for part in what)


def _address(value: Any) -> str:
    address = f"{type(value).__module__}:{type(value).__qualname__}"
    assert _class(address) is type(value)
    return address


def _class(address: str) -> Any:
    module, name = address.split(":")
    found = getattr(import_module(module), name) if module.startswith("shortlist.") else None
    if found is None or not (hasattr(found, "_fields") or is_dataclass(found)):
        raise ValueError(f"{address} is not a record of this package")
    return found


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
        """Read what other processes have added. In a transaction nobody adds anything."""
        with self._lock:
            if self._writer is None:
                self._fold(self._unread())

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
                    if new := self._unread():
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

    def _unread(self) -> list[Entry]:
        """The events after those that were read. Raises StudyReplaced if the stored study does not go on from there,
        because it was deleted, and perhaps created anew: nothing may be added to that one."""
        if not self._read:
            if self.storage.origin(self.name) != self._hash:
                raise StudyReplaced(self.name)
            return self._since(0)
        found = self._since(self._read - 1)
        if not found or found[0].hash != self._hash:
            raise StudyReplaced(self.name)
        return found[1:]

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
                why = f"event {entry.number:,} cannot follow the events before it"
                raise BrokenChain(self.name, entry.number, why) from reason

    def _resume(self) -> None:
        snapshot = self.storage.snapshot(self.name)
        state = None if snapshot is None else self._state_of(snapshot)
        if snapshot is not None:
            if state is not None and self.had(Head(snapshot.number, snapshot.head)):
                self.state, self._read, self._hash = state, snapshot.number, snapshot.head
            else:
                log.warning("study %r: its snapshot cannot be used, so all of its events are read again", self.name)
        self._saved = self._effort
        self._read_all()
        if snapshot is not None and state is not None and self._read < snapshot.number:
            why = f"event {self._read:,} and later ones are missing; there were {snapshot.number:,} events once"
            raise BrokenChain(self.name, self._read, why)
        if self._effort >= self._saved + SNAPSHOT:
            self._save_snapshot()

    def _state_of(self, snapshot: Snapshot) -> StudyState | None:
        """The state of a snapshot; None if it is damaged."""
        try:
            found = decode(snapshot.data, self.known)
        except TypeError:  # SQLite may hold a text where a number or bytes belong
            return None
        if found is None or found[1:] != (snapshot.number, snapshot.head):
            return None
        state: StudyState = found[0]
        return state

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
        data = encode((self.state, self._read, self._hash), self.known)
        try:
            self.storage.save_snapshot(self.name, Snapshot(self._read, self._hash, data))
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
