"""A study's records, and the desk they fold to, kept in step with a storage that other processes write to as well."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from shortlist.study.codec import decode, encode
from shortlist.study.desk import Desk, apply_all
from shortlist.study.records import Record
from shortlist.study.storage import Entry, Snapshot, Storage, Writer

SNAPSHOT = 1000  # records and votes to fold before a snapshot pays


class Journal:
    """`desk` is where the study stands after the records read so far."""

    def __init__(self, storage: Storage, name: str, start: Desk, known: Sequence[object]) -> None:
        """The records of that name; `known` are the objects that snapshots name and do not hold."""
        self.storage, self.name, self.start, self.known = storage, name, start, list(known)
        self.desk, self._read = start, 0
        self._saved = 0
        self._writer: Writer | None = None
        self._lock = threading.RLock()  # one thread of this process at a time; the storage's lock is for all
        self._resume()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    @property
    def entries(self) -> list[Entry]:
        """All records, with the times they were added."""
        return self.storage.since(self.name, 0)

    @property
    def records(self) -> list[Record]:
        return [entry.record for entry in self.entries]

    def records_of(self, question: int) -> list[Record]:
        """What happened to a question, oldest first."""
        return [entry.record for entry in self.storage.of_question(self.name, question)]

    def refresh(self) -> None:
        """Read what other processes have added."""
        with self._lock:
            self._fold(self.storage.since(self.name, self._read))

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """What is written inside is one write to the storage, with its lock held: all of it happens or nothing."""
        with self._lock:
            if self._writer is not None:
                yield
                return
            known = self.desk, self._read
            try:
                with self.storage.writing(self.name) as self._writer:
                    self._fold(self._writer.since(self._read))
                    known = self.desk, self._read
                    yield
            except BaseException:
                self.desk, self._read = known
                raise
            finally:
                self._writer = None
            self._save_snapshot()

    def write(self, decide: Callable[[Desk], tuple[Sequence[Record], Desk]]) -> Sequence[Record]:
        """Under the study's lock: read what is new, decide what to add, add it. What cannot be folded is not added."""
        with self.at_once():
            assert self._writer is not None
            records, desk = decide(self.desk)
            self._writer.add(self._read, records)
            self.desk, self._read = desk, self._read + len(records)
        return records

    def add(self, decide: Callable[[], Sequence[Record]]) -> Sequence[Record]:
        """Write records that are folded in the usual way."""

        def fold(desk: Desk) -> tuple[Sequence[Record], Desk]:
            records = decide()
            return records, apply_all(desk, records)

        return self.write(fold)

    def _fold(self, entries: Sequence[Entry]) -> None:
        self.desk = apply_all(self.desk, (entry.record for entry in entries))
        self._read += len(entries)

    def _resume(self) -> None:
        snapshot = self.storage.snapshot(self.name)
        desk = None if snapshot is None else decode(snapshot.data, self.known)
        if snapshot is not None and desk is not None:
            self.desk, self._read = desk, snapshot.number
        self._saved = self._effort
        self.refresh()
        self._save_snapshot()

    @property
    def _effort(self) -> int:
        return self._read + round(self.desk.settled.tally.votes)

    def _save_snapshot(self) -> None:
        if self.storage.keeps_snapshots and self._effort >= self._saved + SNAPSHOT:
            self.storage.save_snapshot(self.name, Snapshot(self._read, encode(self.desk, self.known)))
            self._saved = self._effort
