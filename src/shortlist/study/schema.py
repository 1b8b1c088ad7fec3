"""A database: the way to it, its tables and their version. `migrations/versions` makes the same tables step by step."""

import logging
import math
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from sqlalchemy import (
    URL,
    BigInteger,
    Boolean,
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
    UniqueConstraint,
    create_engine,
    event,
    inspect,
    make_url,
    text,
)
from sqlalchemy.exc import ArgumentError, DisconnectionError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry

from shortlist.errors import BadStorage

log = logging.getLogger("shortlist")
NOTICE = 2.0  # seconds of waiting for another process's lock before a person is told
PATIENCE = 60.0  # seconds before waiting is given up
CONNECT = 10.0  # seconds for a database server to accept a connection
IDLE = 5.0  # seconds after which a connection may have been lost
FLUSH = (  # PostgreSQL has one log, so this commit also flushes every commit before it
    "BEGIN; SET LOCAL synchronous_commit = on; SELECT pg_logical_emit_message(true, 'shortlist', 'flush'); COMMIT"
)
HEAD = "0001"  # the newest of migrations/versions
VERSION = "shortlist_version"  # the table that says which of them the tables are

Taken = TypeVar("Taken")
tables = MetaData()
number = BigInteger().with_variant(Integer, "sqlite")
studies = Table(
    "studies", tables,
    Column("id", number, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("spec", Text, nullable=False),
    Column("created", Float, nullable=False),
)  # fmt: skip
events = Table(
    "events", tables,
    Column("study", ForeignKey("studies.id"), primary_key=True),
    Column("number", number, primary_key=True, autoincrement=False),
    Column("kind", String(20), nullable=False),
    Column("body", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("previous", String(64), nullable=False),  # the hash of the event before
)  # fmt: skip
snapshots = Table(
    "snapshots", tables,
    Column("study", ForeignKey("studies.id"), primary_key=True),
    Column("number", number, nullable=False),
    Column("head", String(64), nullable=False),
    Column("data", LargeBinary, nullable=False),
)  # fmt: skip
answers = Table(
    "answers", tables,
    Column("study", ForeignKey("studies.id"), primary_key=True),
    Column("digest", String(32), primary_key=True),  # of the next six: names can be longer than an index can hold
    Column("judge", Text, nullable=False),
    Column("case", Text),
    Column("first", Text, nullable=False),
    Column("second", Text, nullable=False),
    Column("shown", String(32), nullable=False),
    Column("question", number),
    Column("outcome", Float, nullable=False),
    Column("at", Float, nullable=False),
)  # fmt: skip
replies = Table(
    "replies", tables,
    Column("study", ForeignKey("studies.id"), primary_key=True),
    Column("digest", String(32), primary_key=True),  # of what makes it another reply, so that it is stored once
    Column("question", number, nullable=False),
    Column("judge", Text, nullable=False),
    Column("member", Text, nullable=False),
    Column("case", Text),
    Column("first", Text, nullable=False),
    Column("second", Text, nullable=False),
    Column("outcome", Float),
    Column("reason", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("at", Float, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("request", String(32), nullable=False),
    Column("model", Text, nullable=False),
    Column("text", Text),
    Column("reasoning", Text),
    Column("prompt_tokens", number, nullable=False),
    Column("cached_tokens", number, nullable=False),
    Column("completion_tokens", number, nullable=False),
    Column("cost", Float),
    Column("first_text", String(32)),
    Column("second_text", String(32)),
    Column("case_text", String(32)),
)  # fmt: skip
texts = Table(
    "texts", tables,
    Column("study", ForeignKey("studies.id"), primary_key=True),
    Column("digest", String(32), primary_key=True),
    Column("text", Text, nullable=False),
)  # fmt: skip
runs = Table(
    "runs", tables,
    Column("study", ForeignKey("studies.id"), primary_key=True),
    Column("run", String(200), primary_key=True),
    Column("until", Float, nullable=False),  # works on the study until then, by the database's clock
)  # fmt: skip

displays = Table(
    "web_displays", tables,
    Column("study", ForeignKey("studies.id"), primary_key=True),
    Column("body", Text, nullable=False),
    Column("closed", Boolean, nullable=False),
)  # fmt: skip
judges = Table(
    "web_judges", tables,
    Column("id", number, primary_key=True),
    Column("study", ForeignKey("studies.id"), nullable=False),
    Column("name", String(100), nullable=False),
    Column("created", Float, nullable=False),
    Column("key", String(100), nullable=False),  # the name that votes are stored under, which no erasure changes
    Column("email", String(200)),
    Column("state", String(20), nullable=False),  # active, waiting or refused
    Column("is_open", Boolean, nullable=False),  # came by the open link
    UniqueConstraint("study", "name"),
    Index("web_judges_by_key", "study", "key", unique=True),
)  # fmt: skip
invitations = Table(  # how judges may come by the open link
    "web_invitations", tables,
    Column("study", ForeignKey("studies.id"), primary_key=True),
    Column("code", String(40)),
    Column("max_judges", Integer),
    Column("max_votes", Integer),  # of each judge
    Column("approve", Boolean, nullable=False),
)  # fmt: skip
conflicts = Table(  # items that a judge must not be shown
    "web_conflicts", tables,
    Column("id", number, primary_key=True),
    Column("study", ForeignKey("studies.id"), nullable=False),
    Column("judge", ForeignKey("web_judges.id"), nullable=False),
    Column("item", Text, nullable=False),
    Column("declared", Boolean, nullable=False),  # by the judge
    Index("web_conflicts_of_judge", "judge"),
)  # fmt: skip
notes = Table(  # what judges write; beside the events, so that it can be erased
    "web_notes", tables,
    Column("id", number, primary_key=True),
    Column("study", ForeignKey("studies.id"), nullable=False),
    Column("judge", ForeignKey("web_judges.id"), nullable=False),
    Column("question", number, nullable=False),
    Column("text", Text, nullable=False),
    Column("created", Float, nullable=False),
    Index("web_notes_of_study", "study", "question"),
)  # fmt: skip
tokens = Table(
    "web_tokens", tables,
    Column("id", String(24), primary_key=True),
    Column("hash", String(64), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("study", ForeignKey("studies.id")),
    Column("judge", ForeignKey("web_judges.id")),
    Column("created", Float, nullable=False),
    Column("expires", Float),
    Column("revoked", Boolean, nullable=False),
    Index("web_tokens_of_judge", "judge"),
)  # fmt: skip
uploads = Table(
    "web_uploads", tables,
    Column("id", String(24), primary_key=True),
    Column("study", ForeignKey("studies.id")),
    Column("type", String(40), nullable=False),
    Column("data", LargeBinary, nullable=False),
    Column("created", Float, nullable=False),
)  # fmt: skip


def schema_version(engine: Engine) -> str | None:
    """The version of the tables; None if there are none of ours."""
    with engine.connect() as connection:
        return _version(connection)


def foreign_tables(engine: Engine) -> list[str]:
    """The tables in a database that has none of ours."""
    names = inspect(engine).get_table_names()  # one look: another process may be making ours
    return [] if VERSION in names else sorted(names)


def upgrade(engine: Engine, version: str = HEAD) -> None:
    """Bring the tables to this version."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "shortlist.study:migrations")
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            use_wal(connection)
            begin(connection, shown(str(engine.url)))
        else:
            connection.execute(text("SELECT pg_advisory_xact_lock(73501)"))
        if _version(connection) != version:
            config.attributes.update(connection=connection, table=VERSION)
            command.upgrade(config, version)
        connection.commit()


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION):
        return None
    found: str | None = connection.scalar(text(f"SELECT version_num FROM {VERSION}"))
    return found


def connect(url: str) -> Engine:
    """An engine for this URL. Raises BadStorage if it is not a SQLite or PostgreSQL URL."""
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() == "postgresql":
            return _with_pings(create_engine(_with_limits(parsed)))
        if parsed.get_backend_name() != "sqlite":
            raise BadStorage(f"{shown(url)} is neither sqlite:///FILE nor postgresql://USER@HOST/DATABASE")
        if parsed.database in (None, "", ":memory:"):
            raise BadStorage(
                "a SQLite storage needs a file, such as sqlite:///studies.db; leave storage out for memory"
            )
        if not (folder := sqlite_file(url).parent).is_dir():
            raise BadStorage(f"there is no folder {folder}; create it, or choose another place for the database")
        if not str(parsed.database).startswith("file:"):
            parsed = parsed.set(database=str(sqlite_file(url)))  # the current folder may change
        engine = create_engine(parsed, connect_args={"timeout": NOTICE, "isolation_level": None})
    except ArgumentError:
        raise BadStorage(f"{url!r} is not a storage; give sqlite:///FILE or postgresql://USER@HOST/DATABASE") from None
    except ModuleNotFoundError:
        raise BadStorage("PostgreSQL needs psycopg: pip install 'shortlist[postgres]'") from None
    event.listen(engine, "connect", _set_up_sqlite)
    return engine


def _with_limits(url: URL) -> URL:
    """With the driver, the name that other users of the server see, and limits, unless the URL sets its own."""
    limits = f"-c lock_timeout={1000 * NOTICE:.0f} -c statement_timeout={1000 * PATIENCE:.0f}"
    named = {
        "application_name": f"shortlist process {os.getpid()} on {socket.gethostname()}"[:63],
        "options": limits,
        "connect_timeout": f"{CONNECT:.0f}",
    }
    return url.set(drivername="postgresql+psycopg", query={**named, **url.query})


def begin(connection: Connection, place: str) -> None:
    """Begin a transaction that writes to SQLite: take the lock of the file now, because a transaction that reads first
    could not get it later."""
    wait_for(lambda: connection.execute(text("BEGIN IMMEDIATE")), place, lambda: _writer_of(connection.engine.url))


def _writer_of(url: URL) -> str:
    """Which process writes to a SQLite file: on Linux it is found by its lock, byte 120 of the file beside it."""
    try:
        number = str(os.stat(f"{url.database}-shm").st_ino)
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        return "another process"
    found = [lock[4] for lock in locks if lock[3] == "WRITE" and lock[5].endswith(f":{number}") and lock[6] == "120"]
    return f"process {found[0]}" if found and int(found[0]) > 0 else "another process"


def wait_for(take: Callable[[], Taken], place: str, holder: Callable[[], str]) -> Taken:
    """Take a lock, and say for whom this waits if it takes long. Raises the database's error after PATIENCE seconds."""
    since, told = time.monotonic(), False
    while True:
        try:
            return take()
        except OperationalError as reason:
            waited = time.monotonic() - since
            if not _is_locked(reason) or waited > PATIENCE:
                raise
            if not told:
                log.warning("waiting up to %.0f s for %s, which is writing to %s", PATIENCE, holder(), place)
            told = True


def stay_in_line(connection: Connection) -> None:
    """Let the next wait on PostgreSQL be a long one: who leaves the line every two seconds may never get the lock."""
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {1000 * (PATIENCE - NOTICE):.0f}")


def _is_locked(reason: OperationalError) -> bool:
    said = str(reason.orig)
    return "database is locked" in said or "lock timeout" in said


def _with_pings(engine: Engine) -> Engine:
    """Ping a connection that was idle for a while before it is used again; a ping every time would cost as much as
    the work."""

    def used(_: Any, record: ConnectionPoolEntry) -> None:
        record.info["used"] = time.monotonic()

    def check(connection: Any, record: ConnectionPoolEntry, _: Any) -> None:
        if time.monotonic() - record.info.get("used", math.inf) > IDLE:
            try:
                engine.dialect.do_ping(connection)
            except engine.dialect.loaded_dbapi.Error as reason:
                raise DisconnectionError from reason  # the pool opens another

    event.listen(engine, "checkin", used)
    event.listen(engine, "checkout", check)
    return engine


def _set_up_sqlite(connection: Any, _: Any) -> None:
    """A committed vote survives a crash of the process."""
    for pragma in ("synchronous=NORMAL", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def use_wal(connection: Connection) -> None:
    """Let readers of a SQLite file not wait for writers. The file keeps this, so it is set by who writes to it."""
    if connection.execute(text("PRAGMA journal_mode")).scalar() != "wal":
        with suppress(OperationalError):  # another process reads it now; the next writer tries again
            connection.execute(text("PRAGMA journal_mode=WAL"))


def commit_quickly(engine: Engine) -> None:
    """Let PostgreSQL answer before a commit is on disk. FLUSH then waits for all commits at once."""
    event.listen(engine, "connect", _commit_quickly)


def _commit_quickly(connection: Any, _: Any) -> None:
    connection.execute("SET synchronous_commit = off").close()
    connection.commit()


def shown(url: str) -> str:
    """The URL without its password."""
    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return "the storage"


def check_file(url: str) -> None:
    """Raise BadStorage if the SQLite file is missing, because opening it would create it."""
    if url.startswith("sqlite:///") and not sqlite_file(url).exists():
        raise BadStorage(f"there is no storage {shown(url)}; create a study in it first")


def sqlite_file(url: str) -> Path:
    """The file of a SQLite URL, also of one such as sqlite:///file:studies.db?mode=ro&uri=true."""
    name = str(make_url(url).database)
    return Path(unquote(name.removeprefix("file:")) if name.startswith("file:") else name).absolute()
