"""Studies in a database. Events and answers are only inserted; snapshots and runs may be deleted.

A writer holds the lock of its study: a row on PostgreSQL, the whole file on SQLite, which has no
smaller one.
"""

import atexit
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Float, Table, cast, delete, extract, func, insert, literal, select, text, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from shortlist.errors import (
    BadStorage,
    BrokenChain,
    ForeignStorage,
    StorageOutdated,
    StorageUnavailable,
    StudyExists,
    StudyReplaced,
    UnknownStudy,
)
from shortlist.study.events import NAMES, Archived, Entry, chain, dump, load, origin
from shortlist.study.schema import (
    FLUSH,
    HEAD,
    answers,
    begin,
    check_file,
    commit_quickly,
    connect,
    displays,
    events,
    foreign_tables,
    runs,
    schema_version,
    shown,
    snapshots,
    sqlite_file,
    stay_in_line,
    studies,
    upgrade,
    use_wal,
    wait_for,
)
from shortlist.study.schema import replies as judge_replies
from shortlist.study.schema import texts as shown_texts
from shortlist.study.storage import (
    AnswerKey,
    JudgeReply,
    Snapshot,
    Spent,
    Writer,
    displayed_texts,
    items_digest,
    spec_digest,
)

_HOLDER = text(  # who has locked a study: the transaction whose number is in the row
    "SELECT a.application_name FROM studies s JOIN pg_locks l ON l.transactionid = s.xmax AND l.granted "
    "JOIN pg_stat_activity a USING (pid) WHERE s.id = :study AND a.pid <> pg_backend_pid() LIMIT 1"
)
MAY_PASS = (OperationalError, InterfaceError, PoolTimeout)  # lost connections, locks, full disks
LASTING = ("no such", "readonly", "read-only", "malformed", "unable to open", "authentication failed", "does not exist")
# The machines that share a database may disagree about the time, so its own clock decides. It is read after the lock.
_CLOCK = cast(extract("epoch", func.clock_timestamp()), Float)
_ENTRIES = select(*(events.c[name] for name in ("number", "at", "kind", "body", "previous"))).order_by(events.c.number)


@dataclass(frozen=True)
class _Writer:
    """The events of one study, read and added on one connection."""

    connection: Connection
    study: int
    name: str
    now: float = 0.0  # when the lock was taken

    def since(self, number: int, most: int | None = None) -> list[Entry]:
        here = (events.c.study == self.study) & (events.c.number >= number)
        return [self._entry(*row) for row in self.connection.execute(_ENTRIES.where(here).limit(most))]

    def _entry(self, number: int, at: float, kind: str, body: str, previous: str) -> Entry:
        try:
            return Entry(number, at, load(kind, body), previous, chain(previous, number, at, kind, body))
        except (ValueError, TypeError):
            raise BrokenChain(self.name, number) from None

    def add(self, entries: Sequence[Entry], head: str) -> str:
        rows = []
        for number, at, event, _, _ in entries:
            kind, body = dump(event)
            row = {"study": self.study, "number": number, "kind": kind, "body": body, "at": at, "previous": head}
            rows.append(row)
            head = chain(head, number, at, kind, body)
        if rows:
            self.connection.execute(insert(events), rows)
        return head


def lock_study(connection: Connection, study: int, place: str) -> float | None:
    """Lock a study, as the first thing in a transaction: its row on PostgreSQL; SQLite has locked the file already.
    Returns the time; None if the study is gone."""
    here = select(studies.c.id).where(studies.c.id == study)
    if connection.dialect.name == "sqlite":
        return None if connection.scalar(here) is None else time.time()
    row = here.with_for_update().subquery()

    def take() -> float | None:
        try:
            return connection.scalar(select(_CLOCK).select_from(row))
        except OperationalError:
            connection.rollback()
            with suppress(SQLAlchemyError):  # a lost connection is said by the error below
                stay_in_line(connection)
            raise

    return wait_for(take, place, lambda: str(connection.scalar(_HOLDER, {"study": study}) or "another process"))


def add_study(connection: Connection, row: Mapping[str, Any]) -> int:
    """Add a study; returns its number. SQLite would use the number of a deleted study again, and a process that has
    that one open would write to the new one; milliseconds are not used twice."""
    if connection.dialect.name == "sqlite":
        last = connection.scalar(select(func.max(studies.c.id))) or 0
        row = {**row, "id": max(last + 1, int(1000 * time.time()))}
    return int(connection.scalars(insert(studies).returning(studies.c.id), dict(row)).one())


class Database:
    """A storage behind a URL such as sqlite:///studies.db or postgresql://user@host/database."""

    keeps_snapshots = True

    def __init__(self, url: str, flush_later: bool = False, create: bool = True) -> None:
        """flush_later: PostgreSQL writes to disk when `flush` is called, not while the lock of a study is held.
        create: make the tables in an empty database."""
        self.url, self._engine = shown(url), connect(url)
        self._flush_later = flush_later and self._engine.dialect.name == "postgresql"
        if self._flush_later:
            commit_quickly(self._engine)
        self._ids: dict[str, int] = {}
        self._item_digests: dict[tuple[int, float], str] = {}  # by id and time, because an id may be used again
        try:
            self._check_tables(create)
        except SQLAlchemyError as reason:
            self.close()
            raise _no_answer(self.url, reason) from reason
        except BadStorage:
            self.close()
            raise
        self._file = None if self._engine.dialect.name != "sqlite" else sqlite_file(url)
        self._inode = None if self._file is None else self._file.stat().st_ino
        self._is_wal = False

    def _check_tables(self, create: bool) -> None:
        found = schema_version(self._engine)
        if found is None:
            if others := foreign_tables(self._engine):
                raise ForeignStorage(self.url, others)
            if not create:
                raise BadStorage(f"{self.url} has no studies; create one in it first")
            upgrade(self._engine)
        elif found != HEAD:
            raise StorageOutdated(self.url, found, HEAD)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def create(self, name: str, spec: str) -> None:
        row = {"name": name, "spec": spec, "created": time.time()}
        with self._transaction() as connection:
            try:
                add_study(connection, row)
            except IntegrityError:
                raise StudyExists(name) from None

    def spec(self, name: str) -> str:
        with self.reading() as connection:
            found = connection.execute(select(studies.c.id, studies.c.spec).where(studies.c.name == name)).first()
        if found is None:
            self.forget(name)
            raise UnknownStudy(name, self.names())
        self._ids[name] = found.id  # another process may have given the name to another study
        return str(found.spec)

    def origin(self, name: str) -> str:
        return origin(self.spec(name))

    def names(self) -> list[str]:
        with self.reading() as connection:
            return list(connection.scalars(select(studies.c.name).order_by(studies.c.name)))

    def archived(self) -> list[str]:
        """The names of archived studies: nothing comes after the event that archived them."""
        last = select(events.c.study, func.max(events.c.number).label("number")).group_by(events.c.study).subquery()
        is_last = (events.c.study == last.c.study) & (events.c.number == last.c.number)
        found = select(studies.c.name, events.c.body).join(events, events.c.study == studies.c.id).join(last, is_last)
        with self.reading() as connection:
            rows = connection.execute(found.where(events.c.kind == NAMES[Archived]).order_by(studies.c.name)).all()
        return [row.name for row in rows if json.loads(row.body)["archived"]]

    def studies_of(self, items: Sequence[str]) -> int:
        """Specs never change, so each is read once."""
        with self.reading() as connection:
            present = {
                (number, created) for number, created in connection.execute(select(studies.c.id, studies.c.created))
            }
            known = {study: found for study, found in self._item_digests.items() if study in present}
            if new := present - known.keys():
                specs = select(studies.c.id, studies.c.created, studies.c.spec).where(studies.c.id >= min(new)[0])
                known |= {(number, created): spec_digest(spec) for number, created, spec in connection.execute(specs)}
        self._item_digests = known
        return Counter(known.values())[items_digest(items)]

    def length(self, name: str) -> int:
        with self.reading() as connection:
            return connection.scalar(select(func.count()).where(events.c.study == self._id(name))) or 0

    def since(self, name: str, number: int, most: int | None = None) -> list[Entry]:
        study = self._id(name)
        with self.reading() as connection:
            return _Writer(connection, study, name).since(number, most)

    def written(self, name: str) -> list[tuple[str, str]]:
        here = select(events.c.kind, events.c.body).where(events.c.study == self._id(name)).order_by(events.c.number)
        with self.reading() as connection:
            return [(row.kind, row.body) for row in connection.execute(here)]

    @contextmanager
    def writing(self, name: str) -> Iterator[Writer]:
        study = self._id(name)
        with self._transaction() as connection:
            now = lock_study(connection, study, self.url)
            if now is None:
                raise StudyReplaced(name)
            yield _Writer(connection, study, name, now)

    def snapshot(self, name: str) -> Snapshot | None:
        columns = (snapshots.c[part] for part in Snapshot._fields)
        here = select(*columns).where(snapshots.c.study == self._id(name))
        with self.reading() as connection:
            row = connection.execute(here).first()
        return None if row is None else Snapshot(*row)

    def save_snapshot(self, name: str, snapshot: Snapshot) -> None:
        study = self._id(name)
        newer = (snapshots.c.study == study) & (snapshots.c.number < snapshot.number)
        with self._transaction() as connection:
            lock_study(connection, study, self.url)
            old = connection.scalar(select(snapshots.c.number).where(snapshots.c.study == study))
            if old is None:
                connection.execute(insert(snapshots), {"study": study, **snapshot._asdict()})
            else:
                connection.execute(update(snapshots).where(newer).values(**snapshot._asdict()))

    def known_answer(self, name: str, key: AnswerKey) -> float | None:
        here = (answers.c.study == self._id(name)) & (answers.c.digest == key.digest)
        with self.reading() as connection:
            found: float | None = connection.scalar(select(answers.c.outcome).where(here))
        return found

    def keep_answer(self, name: str, key: AnswerKey, outcome: float) -> float:
        place = {"study": self._id(name), "digest": key.digest}
        row = {**place, **key._asdict(), "outcome": outcome, "at": time.time()}
        with self._transaction() as connection:
            connection.execute(self._insert(answers).on_conflict_do_nothing(), row)
            kept: float = connection.scalars(select(answers.c.outcome).filter_by(**place)).one()
        return kept

    def add_replies(self, name: str, replies: Sequence[JudgeReply], texts: Mapping[str, str]) -> None:
        study = self._id(name)
        with self._transaction() as connection:
            if texts:
                shown = [{"study": study, "digest": digest, "text": text} for digest, text in texts.items()]
                connection.execute(self._insert(shown_texts).on_conflict_do_nothing(), shown)
            if replies:
                rows = [{"study": study, "digest": one.digest, **one._asdict()} for one in replies]
                connection.execute(self._insert(judge_replies).on_conflict_do_nothing(), rows)

    def replies(self, name: str) -> list[JudgeReply]:
        table = judge_replies
        columns = (table.c[part] for part in JudgeReply._fields)
        here = select(*columns).where(table.c.study == self._id(name)).order_by(table.c.at)
        with self.reading() as connection:
            return [JudgeReply(*row) for row in connection.execute(here)]

    def texts(self, name: str) -> dict[str, str]:
        table, study = shown_texts, self._id(name)
        with self.reading() as connection:
            rows = connection.execute(select(table.c.digest, table.c.text).where(table.c.study == study))
            kept = {row.digest: row.text for row in rows}
            body = connection.scalar(select(displays.c.body).where(displays.c.study == study))
        return {**displayed_texts(body), **kept}

    def spent(self, name: str) -> Spent:
        table = judge_replies
        sums = (func.coalesce(func.sum(table.c[part]), 0) for part in ("prompt_tokens", "completion_tokens", "cost"))
        unpriced = func.count() - func.count(table.c.cost)
        here = select(func.count(), *sums, unpriced).where(table.c.study == self._id(name))
        with self.reading() as connection:
            calls, read, written, cost, without = connection.execute(here).one()
        return Spent(int(calls), int(read), int(written), float(cost), int(without))

    def now(self) -> float:
        if self._engine.dialect.name == "sqlite":
            return time.time()
        with self.reading() as connection:
            return float(connection.scalars(select(_CLOCK)).one())

    def beat(self, name: str, run: str, seconds: float) -> None:
        until = self._time + seconds
        row = {"study": self._id(name), "run": run, "until": until}
        with self._transaction() as connection:
            added = self._insert(runs).on_conflict_do_update(index_elements=["study", "run"], set_={"until": until})
            connection.execute(added.values(row))

    def leave(self, name: str, run: str) -> None:
        with self._transaction() as connection:
            connection.execute(delete(runs).where((runs.c.study == self._id(name)) & (runs.c.run == run)))

    def beats(self, name: str) -> dict[str, float]:
        here = select(runs.c.run, runs.c.until - self._time).where(runs.c.study == self._id(name))
        with self.reading() as connection:
            return {row[0]: row[1] for row in connection.execute(here)}

    @property
    def _time(self) -> Any:
        """The time, in a statement."""
        return literal(time.time()) if self._engine.dialect.name == "sqlite" else _CLOCK

    def _insert(self, table: Table) -> Any:
        """An insert that can say what to do if the row exists."""
        return (sqlite if self._engine.dialect.name == "sqlite" else postgresql).insert(table)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to look into the tables; each query is its own transaction."""
        try:
            with self._engine.connect() as connection:
                if self._engine.dialect.name == "postgresql":
                    connection.execution_options(isolation_level="AUTOCOMMIT")  # saves two of four round trips
                yield connection
        except SQLAlchemyError as reason:
            raise _no_answer(self.url, reason) from reason

    @contextmanager
    def at_one_moment(self) -> Iterator[Connection]:
        """A connection that sees all tables as they are now, whatever others write."""
        try:
            with self._engine.connect() as connection:
                if self._engine.dialect.name == "postgresql":
                    connection.execution_options(isolation_level="REPEATABLE READ")
                else:
                    connection.execute(text("BEGIN"))
                yield connection
        except SQLAlchemyError as reason:
            raise _no_answer(self.url, reason) from reason

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """A transaction on tables that others keep beside the studies: all of it happens, or nothing."""
        with self._transaction() as connection:
            yield connection
        self.flush()

    def flush(self) -> None:
        """Make everything that this process has written survive a crash of the database."""
        if self._flush_later:
            with self.reading() as connection:
                connection.exec_driver_sql(FLUSH)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """A transaction that writes. A connection that closes without a commit takes everything back."""
        try:
            with self._engine.connect() as connection:
                if self._file is not None:
                    if not self._is_wal:
                        use_wal(connection)
                        self._is_wal = True
                    begin(connection, self.url)
                    self._check_file(self._file)
                yield connection
                connection.commit()
        except SQLAlchemyError as reason:
            raise _no_answer(self.url, reason) from reason

    def ping(self) -> None:
        """Raise if the storage does not respond, or its file is gone."""
        with self.reading() as connection:
            connection.execute(select(1))
        if self._file is not None:
            self._check_file(self._file)

    def overwrite_deleted(self) -> None:
        """Let what was deleted be gone from a SQLite file: secure_delete has overwritten it in the log beside the file,
        which is now written back and cut. PostgreSQL does this when it cleans its tables."""
        if self._file is not None:
            with self.reading() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def forget(self, name: str) -> None:
        """A study was renamed or deleted."""
        self._ids.pop(name, None)

    def _check_file(self, file: Path) -> None:
        """SQLite goes on writing to a file that was deleted, and all of it is lost. If another file is there, such as
        a restored backup, the next try works with that one."""
        try:
            found = file.stat().st_ino
        except FileNotFoundError:
            found = None
        if found == self._inode:
            return
        if found is not None:
            self._inode = found
            self._ids.clear()
            self._engine.dispose()  # the connection at work closes when it is returned
        raise StorageUnavailable(
            f"the file of {self.url} was deleted, moved or replaced; put it back, or restore a backup"
        )

    def _id(self, name: str) -> int:
        if name not in self._ids:
            with self.reading() as connection:
                found = connection.scalar(select(studies.c.id).where(studies.c.name == name))
            if found is None:
                raise UnknownStudy(name, self.names())
            self._ids[name] = found
        return self._ids[name]


_open: dict[tuple[int, str, str], Database] = {}


def open_database(url: str, create: bool = True) -> Database:
    """The database at a URL: one set of connections for all studies of a process. A missing SQLite file
    is made only to create a study in it."""
    place = os.getpid(), url, str(sqlite_file(url)) if url.startswith("sqlite:///") else ""
    if place not in _open:
        if not create:
            check_file(url)
        _open[place] = Database(url, create=create)
    return _open[place]


@atexit.register
def close_databases() -> None:
    for place in [place for place in _open if place[0] == os.getpid()]:
        _open.pop(place).close()


def upgrade_storage(url: str) -> tuple[str | None, str]:
    """Upgrade the tables. Returns the schema's version before and after."""
    check_file(url)
    engine = connect(url)
    try:
        before = schema_version(engine)
        if before is not None and before > HEAD:
            raise StorageOutdated(shown(url), before, HEAD)
        upgrade(engine)
    except SQLAlchemyError as reason:
        raise _no_answer(shown(url), reason) from reason
    finally:
        engine.dispose()
    return before, HEAD


def _no_answer(url: str, reason: SQLAlchemyError) -> BadStorage:
    """Turn errors of the database into ours: it may respond later, or the same error would come again."""
    what = str(getattr(reason, "orig", None) or reason).strip().splitlines()[0]
    if isinstance(reason, IntegrityError) and "foreign key" in what.lower():
        return BadStorage(f"a study in {url} was deleted by another program at this moment; load it again")
    is_lost = getattr(reason, "connection_invalidated", False)  # whatever the driver calls it
    if (is_lost or isinstance(reason, MAY_PASS)) and not any(said in what for said in LASTING):
        return StorageUnavailable(f"the storage {url} does not respond: {what}")
    if "readonly" in what or "read-only" in what:
        return BadStorage(f"the storage {url} is read-only, so nothing can be added to it ({what})")
    remedy = "; the file is damaged: restore a backup" if "malformed" in what or "not a database" in what else ""
    return BadStorage(f"the storage {url} cannot be used: {what}{remedy}")
