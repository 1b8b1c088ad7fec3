"""One service for all tests of a process; every test has a study of its own."""

import uuid

import pytest
from playwright.sync_api import sync_playwright

from shortlist.study.sql import close_databases
from tests.patience import PATIENCE
from tests.study.conftest import postgres, postgres_url  # noqa: F401  the same real PostgreSQL
from tests.web.browser import launch
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


@pytest.fixture(scope="module")
def browser():
    """For one file of tests alone: while it is open, no other test of the process can run an event loop."""
    with sync_playwright() as playwright:
        made = launch(playwright)
        yield made
        made.close()


@pytest.fixture
def open_page(browser, server):
    """Pages that must not fail, nor ask any other machine for anything."""
    contexts, wrong = [], []

    def opened(**options):
        context = browser.new_context(**options)
        context.set_default_timeout(1000 * PATIENCE)
        context.clock.install()
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: request.url.startswith(server.base) or wrong.append(request.url))
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not wrong
