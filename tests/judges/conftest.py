import pytest

from tests.judges.server import serving


@pytest.fixture
def endpoint(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-this-is-the-secret-42")
    with serving() as server:
        yield server
