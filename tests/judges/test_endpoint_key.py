"""The key goes into one header, and nowhere else."""

import logging
import pickle
import traceback

import pytest

import shortlist
from shortlist.errors import BadJudge, JudgeFailed
from tests.judges.server import fail, say, send
from tests.judges.world import AT_ONCE, new_study

pytestmark = pytest.mark.slow

KEY = "sk-this-is-the-secret-42"
ECHO = f'{{"error": {{"message": "Incorrect API key provided: {KEY}."}}}}'.encode()


def everything_said(judge, caplog, **options):
    """The outcome, the error with its whole traceback and locals, and every log line."""
    caplog.set_level(logging.DEBUG)
    seen = [repr(judge), str(pickle.dumps(judge)), str(vars(judge))]
    try:
        quick = {"retries": 1, "workers": 2, "time_limit": 60.0, "patience": 0.0, "backoff": AT_ONCE, **options}
        seen.append(repr(shortlist.run_study(new_study(max_votes=4), judge, **quick)))
    except shortlist.ShortlistError as error:
        told = traceback.TracebackException.from_exception(error, capture_locals=True)
        seen += ["".join(told.format()), repr(error), repr(error.__cause__)]
    return "\n".join([*seen, caplog.text])


@pytest.mark.parametrize(
    "behave",
    [
        say("[[A]]"),
        say(f"Your key is {KEY}."),
        say(None, refusal=f"Your key is {KEY}."),
        fail(400, ECHO),
        fail(401, ECHO),
        fail(500, ECHO),
        fail(403, KEY.encode()),
        lambda handler: send(handler, 200, f"x{KEY}".encode()),
        lambda handler: send(handler, 200, (" " * 300 + "x" * 190 + KEY).encode()),
    ],
)
def test_a_server_that_repeats_the_key(endpoint, caplog, behave):
    endpoint.always = behave
    text = everything_said(shortlist.EndpointJudge(endpoint.url, "tiny"), caplog)
    assert len(endpoint.requests) > 0
    assert endpoint.requests[0]["headers"]["Authorization"] == f"Bearer {KEY}"
    assert "secret" not in text
    assert "sk-this" not in text


@pytest.mark.parametrize("spoiled", [f"{KEY}\nx", f"{KEY}\x00", f"{KEY}ß", f"{KEY}\x7f"])
def test_a_key_that_no_header_can_carry(endpoint, caplog, monkeypatch, spoiled):
    if "\x00" in spoiled:
        monkeypatch.setattr("os.environ", {"OPENAI_API_KEY": spoiled})
    else:
        monkeypatch.setenv("OPENAI_API_KEY", spoiled)
    text = everything_said(shortlist.EndpointJudge(endpoint.url, "tiny"), caplog)
    assert "the key in OPENAI_API_KEY contains characters that cannot be sent" in text
    assert "secret" not in text
    assert not endpoint.requests


def test_spaces_around_a_key_do_no_harm(endpoint, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    shortlist.run_study(new_study(max_votes=1), shortlist.EndpointJudge(endpoint.url, "tiny"))
    assert endpoint.requests[0]["headers"]["Authorization"] == f"Bearer {KEY}"


def test_a_server_that_is_gone(endpoint, caplog):
    text = everything_said(shortlist.EndpointJudge("http://127.0.0.1:1/v1", "tiny"), caplog)
    assert "no answer from" in text
    assert "secret" not in text


@pytest.mark.parametrize("url", [f"http://me:{KEY}@x/v1", f"http://x/v1?key={KEY}", f"http://x/v1#{KEY}"])
def test_a_key_in_the_url_is_refused_and_not_repeated(url):
    with pytest.raises(BadJudge) as caught:
        shortlist.EndpointJudge(url, "tiny")
    assert "secret" not in str(caught.value)


def test_the_key_is_read_for_every_call(endpoint, monkeypatch):
    judge = shortlist.EndpointJudge(endpoint.url, "tiny")
    endpoint.always = fail(401)
    with pytest.raises(JudgeFailed, match="check the key"):
        shortlist.run_study(new_study(max_votes=1), judge)
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    endpoint.always = say("[[A]]")
    shortlist.run_study(new_study(max_votes=1), judge)
    assert [one["headers"]["Authorization"] for one in endpoint.requests] == [f"Bearer {KEY}", "Bearer another"]
