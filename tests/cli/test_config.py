"""`shortlist run --config FILE`."""

import pytest

from shortlist.study.create import load_study
from tests.cli.test_models import endpoint  # noqa: F401 - a fixture

FILE = """
items = ["outputs.jsonl"]
k = 1
[judge]
judge-url = "{url}"
model = "tiny"
max_tokens = 90
[budget]
price = "1,2"
max-calls = 4
"""


TWO = ["--only", "a", "--only", "b"]  # quick to simulate


@pytest.fixture
def config(endpoint, shortlist):  # noqa: F811
    path = shortlist.folder / "shortlist.toml"
    path.write_text(FILE.format(url=endpoint.url))
    return path


def test_a_file_has_the_options_and_the_command_line_wins(config, endpoint, shortlist):  # noqa: F811
    found = shortlist.json("run", "--config", "shortlist.toml", "--workers", 1)
    assert found["costs"]["calls"] == 4
    assert endpoint.requests[0]["body"]["max_tokens"] == 90
    more = shortlist.json("run", "--config", "shortlist.toml", "--max-calls", 6, "--workers", 1)
    assert more["costs"]["calls"] == 6
    assert len(more["configs"]) == 1


def test_the_digest_is_kept_and_another_file_is_noted(config, shortlist):
    shortlist("run", "--config", "shortlist.toml")
    config.write_text(config.read_text().replace("max-calls = 4", "max-calls = 5"))
    assert "is not what the last run with a file had" in shortlist("run", "--config", "shortlist.toml").err
    shortlist("export", "outputs", "--proof", "proof.jsonl")
    shortlist("verify", "proof.jsonl", "--replay")
    study = load_study("outputs", "sqlite:///shortlist.db")
    assert len(study.setups.configs) == 2


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('modle = "x"', "did you mean 'model'?"),
        ('api_key = "sk-1"', "name its environment variable with key-variable"),
        ('header = ["Authorization: Bearer sk-1"]', "header has a secret"),
        ('query = "key=sk-1"', "query has a secret"),
        ('storage = "postgresql://me:pw@host/db"', "storage has a secret"),
        ("workers = true", "is not a text or a number"),
        ("wide = 1", "is not true or false"),
        ("k = [1, 2]", "has one value"),
        ('config = "other.toml"', "there is no option 'config'"),
        ("k = 1\n[run]\nk = 2", "'k' is given twice"),
        ("[a.b]\nk = 1", "is a table inside a table"),
        ("k = ", "is not TOML"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_asked(line, why, shortlist):
    (shortlist.folder / "wrong.toml").write_text(line)
    assert why in shortlist.refused("run", "--config", "wrong.toml")
    assert not (shortlist.folder / "shortlist.db").exists()


def test_a_header_may_name_an_environment_variable(config, endpoint, shortlist, monkeypatch):  # noqa: F811
    monkeypatch.setenv("MY_KEY", "sk-2")
    config.write_text('header = "api-key: $MY_KEY"\n' + config.read_text())
    shortlist("run", "--config", "shortlist.toml")
    assert endpoint.requests[0]["headers"]["api-key"] == "sk-2"


def test_an_estimate_asks_and_writes_nothing(config, endpoint, shortlist):  # noqa: F811
    found = shortlist.json("run", "--config", "shortlist.toml", *TWO, "--estimate")
    assert 0 < found["calls"]["low"] <= found["calls"]["high"]
    assert 0 < found["cost"]["low"] < found["cost"]["high"]
    said = shortlist("run", "--config", "shortlist.toml", *TWO, "--estimate", "--max-calls", 2, code=0).out
    assert "nothing was asked" in said
    assert "The run may reach --max-calls 2." in said
    assert endpoint.requests == []
    assert not (shortlist.folder / "shortlist.db").exists()
    shortlist("run", "--config", "shortlist.toml", *TWO)
    assert shortlist.json("run", "--config", "shortlist.toml", *TWO, "--estimate")["known_votes"] > 0
    assert "about the calls to a program" in shortlist.refused(
        "run", "outputs.jsonl", "-k", 1, *TWO, "--judge", "me", "--estimate"
    )
