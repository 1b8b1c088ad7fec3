"""One service for all tests of a process; every test has a study of its own."""

import uuid

import pytest

from shortlist.study.sql import close_databases
from tests.study.conftest import postgres, postgres_url  # noqa: F401  the same real PostgreSQL
from tests.web.server import Audited, Owner, owner_key


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("web")
    made = Audited(f"sqlite:///{folder / 'studies.db'}", folder).start()
    yield made
    made.end()


@pytest.fixture(scope="session")
def key(server):
    return owner_key(server, server.owner_token)


@pytest.fixture(autouse=True)
def no_connections_left():
    yield
    close_databases()


@pytest.fixture
def owner(server, key):
    made = Owner(server, key)
    yield made
    made.close()


@pytest.fixture
def name():
    """Of a study that nobody else has."""
    return f"study {uuid.uuid4().hex[:8]}"
