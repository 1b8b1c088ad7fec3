"""Studies in a database: SQLite in a file, or PostgreSQL. Three tables: studies, records, snapshots.

Records are only inserted. Whoever writes holds the lock of that study alone: its row on PostgreSQL, the whole file on
SQLite, which has no smaller one.
"""

import atexit
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    insert,
    inspect,
    make_url,
    select,
    text,
    update,
)
from sqlalchemy.exc import ArgumentError, IntegrityError, SQLAlchemyError

from shortlist.errors import BadStorage, StorageOutdated, StudyExists, UnknownStudy
from shortlist.study.records import Record, dump, load
from shortlist.study.storage import Entry, Snapshot, Writer

PATIENCE = 60.0  # seconds to wait for another process's lock
HEAD = "0003"  # the newest of migrations/versions

tables = MetaData()
number = BigInteger().with_variant(Integer, "sqlite")
studies = Table(
    "studies", tables,
    Column("id", number, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("spec", Text, nullable=False),
    Column("created", Float, nullable=False),
)  # fmt: skip
records = Table(
    "records", tables,
    Column("study", ForeignKey("studies.id"), primary_key=True),
    Column("number", number, primary_key=True, autoincrement=False),
    Column("kind", String(20), nullable=False),
    Column("question", number),
    Column("body", Text, nullable=False),
    Column("at", Float, nullable=False),
    Index("records_of_question", "study", "question"),
)  # fmt: skip
snapshots = Table(
    "snapshots", tables,
    Column("study", ForeignKey("studies.id"), primary_key=True),
    Column("number", number, nullable=False),
    Column("data", LargeBinary, nullable=False),
)  # fmt: skip


class _Writer:
    """The lock is held by its transaction."""

    def __init__(self, connection: Connection, study: int) -> None:
        self.connection, self.study = connection, study

    def since(self, number: int) -> list[Entry]:
        return _since(self.connection, self.study, number)

    def add(self, number: int, new: Sequence[Record]) -> None:
        now = time.time()
        rows = []
        for place, record in enumerate(new, number):
            kind, body = dump(record)
            question = getattr(record, "question", None)
            rows.append(
                {"study": self.study, "number": place, "kind": kind, "question": question, "body": body, "at": now}
            )
        if rows:
            self.connection.execute(insert(records), rows)


class Database:
    """A storage behind a URL such as sqlite:///studies.db or postgresql://user@host/database."""

    keeps_snapshots = True

    def __init__(self, url: str, flush_later: bool = False) -> None:
        """flush_later: PostgreSQL writes to its disk when `flush` is called, not while a study's lock is held."""
        self.url, self._engine = _shown(url), _connect(url)
        self._flush_later = flush_later and self._engine.dialect.name == "postgresql"
        if self._flush_later:
            event.listen(self._engine, "connect", _commit_quickly)
        self._ids: dict[str, int] = {}
        try:
            with _explained(self.url):
                if not _has_tables(self._engine):
                    upgrade(self._engine)
                found = schema_version(self._engine)
            if found != HEAD:
                raise StorageOutdated(self.url, found, HEAD)
        except BadStorage:
            self.close()
            raise

    def close(self) -> None:
        """Let go of all connections."""
        self._engine.dispose()

    def create(self, name: str, spec: str) -> None:
        row = {"name": name, "spec": spec, "created": time.time()}
        with _explained(self.url):
            try:
                with self._begin() as connection:
                    connection.execute(insert(studies), row)
            except IntegrityError:
                raise StudyExists(name) from None

    def spec(self, name: str) -> str:
        with _explained(self.url), self._engine.connect() as connection:
            found = connection.scalar(select(studies.c.spec).where(studies.c.name == name))
        if found is None:
            raise UnknownStudy(name, self.names())
        return str(found)

    def names(self) -> list[str]:
        with _explained(self.url), self._engine.connect() as connection:
            return list(connection.scalars(select(studies.c.name).order_by(studies.c.name)))

    def since(self, name: str, number: int) -> list[Entry]:
        study = self._id(name)
        with _explained(self.url), self._engine.connect() as connection:
            return _since(connection, study, number)

    def of_question(self, name: str, question: int) -> list[Entry]:
        here = (records.c.study == self._id(name)) & (records.c.question == question)
        with _explained(self.url), self._engine.connect() as connection:
            return [_entry(row) for row in connection.execute(_ENTRIES.where(here).order_by(records.c.number))]

    @contextmanager
    def writing(self, name: str) -> Iterator[Writer]:
        study = self._id(name)
        with _explained(self.url), self._begin() as connection:
            connection.execute(select(studies.c.id).where(studies.c.id == study).with_for_update())
            yield _Writer(connection, study)

    def snapshot(self, name: str) -> Snapshot | None:
        here = select(snapshots.c.number, snapshots.c.data).where(snapshots.c.study == self._id(name))
        with _explained(self.url), self._engine.connect() as connection:
            row = connection.execute(here).first()
        return None if row is None else Snapshot(row.number, row.data)

    def save_snapshot(self, name: str, snapshot: Snapshot) -> None:
        study = self._id(name)
        newer = (snapshots.c.study == study) & (snapshots.c.number < snapshot.number)
        with _explained(self.url), self._begin() as connection:
            connection.execute(select(studies.c.id).where(studies.c.id == study).with_for_update())
            old = connection.scalar(select(snapshots.c.number).where(snapshots.c.study == study))
            if old is None:
                connection.execute(insert(snapshots), {"study": study, **snapshot._asdict()})
            else:
                connection.execute(update(snapshots).where(newer).values(**snapshot._asdict()))

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to look into tables that others keep beside the studies; each query is its own transaction."""
        with _explained(self.url), self._engine.connect() as connection:
            if self._engine.dialect.name == "postgresql":
                connection.execution_options(isolation_level="AUTOCOMMIT")  # saves two of four round trips
            yield connection

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """A transaction on such tables: all of it happens, or nothing."""
        with _explained(self.url), self._begin() as connection:
            yield connection
        self.flush()

    def flush(self) -> None:
        """From here on, all that this process has written survives a crash of the database."""
        if self._flush_later:
            with self.reading() as connection:
                connection.exec_driver_sql(_FLUSH)

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
            with _explained(self.url), self._engine.connect() as connection:
                found = connection.scalar(select(studies.c.id).where(studies.c.name == name))
            if found is None:
                raise UnknownStudy(name, self.names())
            self._ids[name] = found
        return self._ids[name]


_open: dict[tuple[int, str], Database] = {}


def open_database(url: str, create: bool = True) -> Database:
    """The database behind a URL: one set of connections for all studies of a process. A SQLite file that is not there
    is made only to create a study in it."""
    place = os.getpid(), url
    if place not in _open:
        if not create and url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists():
            raise BadStorage(f"there is no storage {_shown(url)}; create a study in it first")
        _open[place] = Database(url)
    return _open[place]


@atexit.register
def close_databases() -> None:
    for place in [place for place in _open if place[0] == os.getpid()]:
        _open.pop(place).close()


_ENTRIES = select(records.c.number, records.c.at, records.c.kind, records.c.body)


def _since(connection: Connection, study: int, number: int) -> list[Entry]:
    here = (records.c.study == study) & (records.c.number >= number)
    return [_entry(row) for row in connection.execute(_ENTRIES.where(here).order_by(records.c.number))]


def _entry(row: Any) -> Entry:
    return Entry(row.number, row.at, load(row.kind, row.body))


def _connect(url: str) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() == "postgresql":
            return create_engine(parsed.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
        if parsed.get_backend_name() != "sqlite":
            raise BadStorage(f"{_shown(url)} is neither sqlite:///FILE nor postgresql://USER@HOST/DATABASE")
        if parsed.database in (None, "", ":memory:"):
            raise BadStorage(
                "a SQLite storage needs a file, such as sqlite:///studies.db; leave storage out for memory"
            )
        if not (folder := Path(str(parsed.database)).absolute().parent).is_dir():
            raise BadStorage(f"{folder} is no folder; create it, or put the database elsewhere")
        engine = create_engine(parsed, connect_args={"timeout": PATIENCE, "isolation_level": None})
    except ArgumentError:
        raise BadStorage(f"{url!r} is no storage; give sqlite:///FILE or postgresql://USER@HOST/DATABASE") from None
    except ModuleNotFoundError:
        raise BadStorage("PostgreSQL needs psycopg: pip install 'shortlist[postgres]'") from None
    event.listen(engine, "connect", _set_up_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _: Any) -> None:
    """Readers do not wait for writers, and what is committed survives the process."""
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


_FLUSH = (  # PostgreSQL's log is one: what commits now takes all before it to the disk
    "BEGIN; SET LOCAL synchronous_commit = on; SELECT pg_logical_emit_message(true, 'shortlist', 'flush'); COMMIT"
)


def _commit_quickly(connection: Any, _: Any) -> None:
    connection.execute("SET synchronous_commit = off").close()
    connection.commit()


@contextmanager
def _explained(url: str) -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as reason:
        what = str(getattr(reason, "orig", None) or reason).strip().splitlines()[0]
        raise BadStorage(f"the storage {url} does not answer: {what}") from reason


def _shown(url: str) -> str:
    """Without its password."""
    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return "the storage"


def _has_tables(engine: Engine) -> bool:
    return inspect(engine).has_table("alembic_version")


def schema_version(engine: Engine) -> str | None:
    if not _has_tables(engine):
        return None
    with engine.connect() as connection:
        found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return found


def upgrade(engine: Engine) -> None:
    """Bring the tables to this version."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "shortlist.study:migrations")
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.execute(text("BEGIN IMMEDIATE"))
        else:
            connection.execute(text("SELECT pg_advisory_xact_lock(73501)"))
        if not inspect(connection).has_table("alembic_version") or _version(connection) != HEAD:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
        connection.commit()


def _version(connection: Connection) -> str | None:
    found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return found


def upgrade_storage(url: str) -> tuple[str | None, str]:
    """The schema's version before and after."""
    engine = _connect(url)
    with _explained(_shown(url)):
        before = schema_version(engine)
        upgrade(engine)
    engine.dispose()
    return before, HEAD
