"""Connect to a database: SQLite in a file, or PostgreSQL."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DisconnectionError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from shortlist.errors import BadStorage

PATIENCE = 60.0  # seconds to wait for another process's lock
IDLE = 5.0  # seconds after which a connection may have been lost
FLUSH = (  # PostgreSQL has one log, so this commit also flushes every commit before it
    "BEGIN; SET LOCAL synchronous_commit = on; SELECT pg_logical_emit_message(true, 'shortlist', 'flush'); COMMIT"
)


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


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Turn errors of the database into BadStorage."""
    try:
        yield
    except SQLAlchemyError as reason:
        what = str(getattr(reason, "orig", None) or reason).strip().splitlines()[0]
        raise BadStorage(f"the storage {url} does not respond: {what}") from reason


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
