"""Studies in a database. Events and answers are only inserted; snapshots and runs may be deleted.

A writer holds the lock of its study: a row on PostgreSQL, the whole file on SQLite, which has no
smaller one.
"""

import atexit
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Table, delete, insert, select, text, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from shortlist.errors import BadStorage, StorageOutdated, StudyExists, UnknownStudy
from shortlist.study.engine import FLUSH, check_file, commit_quickly, connect, explained, shown
from shortlist.study.events import Entry, dump, load
from shortlist.study.schema import HEAD, answers, events, has_tables, runs, schema_version, snapshots, studies, upgrade
from shortlist.study.storage import AnswerKey, Snapshot, Writer


class _Writer:
    """Its transaction holds the lock, and writes the added events at its end."""

    def __init__(self, connection: Connection, study: int) -> None:
        self.connection, self.study = connection, study
        self.rows: list[dict[str, Any]] = []

    def since(self, number: int) -> list[Entry]:
        return _since(self.connection, self.study, number)

    def add(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            kind, body = dump(entry.event)
            self.rows.append({"study": self.study, "number": entry.number, "kind": kind, "body": body, "at": entry.at})

    def write(self) -> None:
        if self.rows:
            self.connection.execute(insert(events), self.rows)


class Database:
    """A storage behind a URL such as sqlite:///studies.db or postgresql://user@host/database."""

    keeps_snapshots = True

    def __init__(self, url: str, flush_later: bool = False) -> None:
        """flush_later: PostgreSQL writes to disk when `flush` is called, not while the lock of a study is held."""
        self.url, self._engine = shown(url), connect(url)
        self._flush_later = flush_later and self._engine.dialect.name == "postgresql"
        if self._flush_later:
            commit_quickly(self._engine)
        self._ids: dict[str, int] = {}
        try:
            with explained(self.url):
                if not has_tables(self._engine):
                    upgrade(self._engine)
                found = schema_version(self._engine)
            if found != HEAD:
                raise StorageOutdated(self.url, found, HEAD)
        except BadStorage:
            self.close()
            raise

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def create(self, name: str, spec: str) -> None:
        row = {"name": name, "spec": spec, "created": time.time()}
        with explained(self.url):
            try:
                with self._begin() as connection:
                    connection.execute(insert(studies), row)
            except IntegrityError:
                raise StudyExists(name) from None

    def spec(self, name: str) -> str:
        with explained(self.url), self._engine.connect() as connection:
            found = connection.scalar(select(studies.c.spec).where(studies.c.name == name))
        if found is None:
            raise UnknownStudy(name, self.names())
        return str(found)

    def names(self) -> list[str]:
        with explained(self.url), self._engine.connect() as connection:
            return list(connection.scalars(select(studies.c.name).order_by(studies.c.name)))

    def since(self, name: str, number: int) -> list[Entry]:
        study = self._id(name)
        with explained(self.url), self._engine.connect() as connection:
            return _since(connection, study, number)

    @contextmanager
    def writing(self, name: str) -> Iterator[Writer]:
        study = self._id(name)
        with explained(self.url), self._begin() as connection:
            connection.execute(select(studies.c.id).where(studies.c.id == study).with_for_update())
            writer = _Writer(connection, study)
            yield writer
            writer.write()

    def snapshot(self, name: str) -> Snapshot | None:
        here = select(snapshots.c.number, snapshots.c.data).where(snapshots.c.study == self._id(name))
        with explained(self.url), self._engine.connect() as connection:
            row = connection.execute(here).first()
        return None if row is None else Snapshot(row.number, row.data)

    def save_snapshot(self, name: str, snapshot: Snapshot) -> None:
        study = self._id(name)
        newer = (snapshots.c.study == study) & (snapshots.c.number < snapshot.number)
        with explained(self.url), self._begin() as connection:
            connection.execute(select(studies.c.id).where(studies.c.id == study).with_for_update())
            old = connection.scalar(select(snapshots.c.number).where(snapshots.c.study == study))
            if old is None:
                connection.execute(insert(snapshots), {"study": study, **snapshot._asdict()})
            else:
                connection.execute(update(snapshots).where(newer).values(**snapshot._asdict()))

    def known_answer(self, name: str, key: AnswerKey) -> float | None:
        here = (answers.c.study == self._id(name)) & (answers.c.digest == key.digest)
        with explained(self.url), self._engine.connect() as connection:
            found: float | None = connection.scalar(select(answers.c.outcome).where(here))
        return found

    def keep_answer(self, name: str, key: AnswerKey, outcome: float) -> float:
        place = {"study": self._id(name), "digest": key.digest}
        row = {**place, **key._asdict(), "outcome": outcome, "at": time.time()}
        with explained(self.url), self._begin() as connection:
            connection.execute(self._insert(answers).on_conflict_do_nothing(), row)
            kept: float = connection.scalars(select(answers.c.outcome).filter_by(**place)).one()
        return kept

    def beat(self, name: str, run: str, now: float) -> None:
        row = {"study": self._id(name), "run": run, "seen": now}
        with explained(self.url), self._begin() as connection:
            added = self._insert(runs).on_conflict_do_update(index_elements=["study", "run"], set_={"seen": now})
            connection.execute(added, row)

    def leave(self, name: str, run: str) -> None:
        with explained(self.url), self._begin() as connection:
            connection.execute(delete(runs).where((runs.c.study == self._id(name)) & (runs.c.run == run)))

    def beats(self, name: str) -> dict[str, float]:
        here = select(runs.c.run, runs.c.seen).where(runs.c.study == self._id(name))
        with explained(self.url), self._engine.connect() as connection:
            return {row.run: row.seen for row in connection.execute(here)}

    def _insert(self, table: Table) -> Any:
        """An insert that can say what to do if the row exists."""
        return (sqlite if self._engine.dialect.name == "sqlite" else postgresql).insert(table)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that reads the tables of the web service; each query is its own transaction."""
        with explained(self.url), self._engine.connect() as connection:
            if self._engine.dialect.name == "postgresql":
                connection.execution_options(isolation_level="AUTOCOMMIT")  # saves two of four round trips
            yield connection

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """A transaction on these tables: all of it happens, or nothing."""
        with explained(self.url), self._begin() as connection:
            yield connection
        self.flush()

    def flush(self) -> None:
        """Make everything that this process has written survive a crash of the database."""
        if self._flush_later:
            with self.reading() as connection:
                connection.exec_driver_sql(FLUSH)

    @contextmanager
    def _begin(self) -> Iterator[Connection]:
        """A transaction that writes."""
        with self._engine.connect() as connection:
            if self._engine.dialect.name == "sqlite":
                connection.execute(text("BEGIN IMMEDIATE"))
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def _id(self, name: str) -> int:
        if name not in self._ids:
            with explained(self.url), self._engine.connect() as connection:
                found = connection.scalar(select(studies.c.id).where(studies.c.name == name))
            if found is None:
                raise UnknownStudy(name, self.names())
            self._ids[name] = found
        return self._ids[name]


_open: dict[tuple[int, str], Database] = {}


def open_database(url: str, create: bool = True) -> Database:
    """The database at a URL: one set of connections for all studies of a process. A missing SQLite file
    is made only to create a study in it."""
    place = os.getpid(), url
    if place not in _open:
        if not create:
            check_file(url)
        _open[place] = Database(url)
    return _open[place]


@atexit.register
def close_databases() -> None:
    for place in [place for place in _open if place[0] == os.getpid()]:
        _open.pop(place).close()


_ENTRIES = select(events.c.number, events.c.at, events.c.kind, events.c.body)


def _since(connection: Connection, study: int, number: int) -> list[Entry]:
    here = (events.c.study == study) & (events.c.number >= number)
    return [_entry(row) for row in connection.execute(_ENTRIES.where(here).order_by(events.c.number))]


def _entry(row: Any) -> Entry:
    return Entry(row.number, row.at, load(row.kind, row.body))


def upgrade_storage(url: str) -> tuple[str | None, str]:
    """Upgrade the tables. Returns the schema's version before and after."""
    check_file(url)
    engine = connect(url)
    try:
        with explained(shown(url)):
            before = schema_version(engine)
            if before is not None and before > HEAD:
                raise StorageOutdated(shown(url), before, HEAD)
            upgrade(engine)
    finally:
        engine.dispose()
    return before, HEAD
