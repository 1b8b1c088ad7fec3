import functools
import ssl

import pytest

from tests.judges.server import serving


@pytest.fixture(scope="session")
def tls():
    """A client loads all certificates of the machine when it opens, which takes longer than a test."""
    return functools.cache(ssl.create_default_context)


@pytest.fixture
def endpoint(monkeypatch, tls):
    monkeypatch.setattr(ssl, "create_default_context", tls)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-this-is-the-secret-42")
    with serving() as server:
        yield server
