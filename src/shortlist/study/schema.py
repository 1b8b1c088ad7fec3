"""A database: the way to it, its tables and their version. `migrations/versions` makes the same tables step by step."""

import math
import time
from pathlib import Path
from typing import Any

from sqlalchemy import (
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
from sqlalchemy.exc import ArgumentError, DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry

from shortlist.errors import BadStorage

PATIENCE = 60.0  # seconds to wait for another process's lock
IDLE = 5.0  # seconds after which a connection may have been lost
FLUSH = (  # PostgreSQL has one log, so this commit also flushes every commit before it
    "BEGIN; SET LOCAL synchronous_commit = on; SELECT pg_logical_emit_message(true, 'shortlist', 'flush'); COMMIT"
)
HEAD = "0001"  # the newest of migrations/versions

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
    Column("digest", String(32), primary_key=True),  # of the next five: names can be longer than an index can hold
    Column("judge", Text, nullable=False),
    Column("case", Text),
    Column("first", Text, nullable=False),
    Column("second", Text, nullable=False),
    Column("question", number),
    Column("outcome", Float, nullable=False),
    Column("at", Float, nullable=False),
)  # fmt: skip
runs = Table(
    "runs", tables,
    Column("study", ForeignKey("studies.id"), primary_key=True),
    Column("run", String(200), primary_key=True),
    Column("seen", Float, nullable=False),
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
    UniqueConstraint("study", "name"),
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


def has_tables(engine: Engine) -> bool:
    return inspect(engine).has_table("alembic_version")


def schema_version(engine: Engine) -> str | None:
    if not has_tables(engine):
        return None
    with engine.connect() as connection:
        found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return found


def upgrade(engine: Engine, version: str = HEAD) -> None:
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
        if not inspect(connection).has_table("alembic_version") or _version(connection) != version:
            config.attributes["connection"] = connection
            command.upgrade(config, version)
        connection.commit()


def _version(connection: Connection) -> str | None:
    found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return found


def connect(url: str) -> Engine:
    """An engine for this URL. Raises BadStorage if it is not a SQLite or PostgreSQL URL."""
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() == "postgresql":
            return _with_pings(create_engine(parsed.set(drivername="postgresql+psycopg")))
        if parsed.get_backend_name() != "sqlite":
            raise BadStorage(f"{shown(url)} is neither sqlite:///FILE nor postgresql://USER@HOST/DATABASE")
        if parsed.database in (None, "", ":memory:"):
            raise BadStorage(
                "a SQLite storage needs a file, such as sqlite:///studies.db; leave storage out for memory"
            )
        if not (folder := Path(str(parsed.database)).absolute().parent).is_dir():
            raise BadStorage(f"there is no folder {folder}; create it, or choose another place for the database")
        engine = create_engine(parsed, connect_args={"timeout": PATIENCE, "isolation_level": None})
    except ArgumentError:
        raise BadStorage(f"{url!r} is not a storage; give sqlite:///FILE or postgresql://USER@HOST/DATABASE") from None
    except ModuleNotFoundError:
        raise BadStorage("PostgreSQL needs psycopg: pip install 'shortlist[postgres]'") from None
    event.listen(engine, "connect", _set_up_sqlite)
    return engine


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
    """Readers do not wait for writers, and a committed vote survives a crash of the process."""
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


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
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists():
        raise BadStorage(f"there is no storage {shown(url)}; create a study in it first")
