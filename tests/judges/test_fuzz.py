"""Whatever a program or a server says, the only errors that come out are ours."""

import contextlib
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shortlist
from shortlist.core.families import BradleyTerry, Gaussian
from shortlist.core.outcomes import outcome_of
from shortlist.errors import BadOutcome, JudgeUnclear, ShortlistError, UnknownItem
from shortlist.judges.base import Call, Skip
from shortlist.judges.command import read_reply
from shortlist.judges.prompts import read_retry_after
from tests.judges.server import send
from tests.judges.world import AT_ONCE, new_study, told

CALL = Call(7, "ann", "bob")
WORDS = st.sampled_from(
    ["winner", "outcome", "skip", "id", "choices", "message", "content", "usage", "error", "refusal"]
)
VALUES = st.sampled_from(["first", "second", "tie", "ann", "7", "[[A]]", "[[B]] [[C]]", 0, 0.5, 1, -1, 2, 10**400])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
CHOICE = st.fixed_dictionaries({"message": JSON | st.fixed_dictionaries({"content": JSON})})
CHAT = st.fixed_dictionaries(
    {}, optional={"choices": st.lists(CHOICE | JSON, max_size=2), "usage": JSON, "error": JSON}
)
BODIES = st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()) | CHAT.map(
    lambda value: json.dumps(value).encode()
)  # fmt: skip
QUICK = {"patience": 0.0, "backoff": AT_ONCE, "retries": 0, "workers": 2, "time_limit": 60.0, "warn": lambda text: None}


@pytest.fixture(autouse=True)
def few_skips(monkeypatch):
    """A judge that says nothing useful is given up soon."""
    monkeypatch.setattr("shortlist.judges.run.SKIPS_IN_A_ROW", 4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(BODIES, st.booleans())
def test_any_output_is_an_answer_or_unclear(output, kept):
    try:
        answer = read_reply(output, CALL, must_repeat_id=kept).answer
    except JudgeUnclear:
        return
    assert isinstance(answer, Skip) or answer in ("ann", "bob", "tie") or isinstance(answer, float)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JSON | st.binary() | st.lists(st.floats()), st.sampled_from([BradleyTerry(), Gaussian()]))
def test_any_answer_is_an_outcome_or_refused(answer, family):
    try:
        outcome = outcome_of(answer, "ann", "bob", family)
    except (BadOutcome, UnknownItem):
        return
    assert -1e12 <= outcome <= 1e12
    assert family.name == "gaussian" or 0.0 <= outcome <= 1.0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text() | st.floats().map(str) | st.dates().map(str))
def test_any_retry_after_is_seconds_or_nothing(value):
    seconds = read_retry_after(value)
    assert seconds is None or 0.0 <= seconds < float("inf")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(output=BODIES, keep=st.booleans())
def test_a_real_program_may_print_anything(tmp_path, output, keep):
    (tmp_path / "said").write_bytes(output)
    study = new_study(max_votes=3)
    judge = shortlist.CommandJudge(["cat", str(tmp_path / "said")], keep=keep)
    with contextlib.suppress(ShortlistError):
        shortlist.run_study(study, judge, **QUICK)
    assert all(0.0 <= answer.outcome <= 1.0 for answer in told(study))


STATUS = st.sampled_from([200] * 6 + [201, 204, 206, 300, 304, 400, 404, 429, 500, 599, 999])
HEADERS = st.dictionaries(
    st.sampled_from(["Retry-After", "Content-Encoding", "Content-Type", "Set-Cookie", "Location", "X"]),
    st.sampled_from(["0", "soon", "gzip", "deflate", "br", "text/html; charset=utf-7", "=;", "http://x/", "\u00ff"]),
    max_size=3,
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=BODIES, status=STATUS, headers=HEADERS, raw=st.booleans())
def test_a_real_server_may_say_anything(endpoint, body, status, headers, raw):
    def behave(handler):
        if raw:
            handler.wfile.write(body)
            handler.close_connection = True
        else:
            send(handler, status, body, **headers)

    endpoint.always = behave
    study = new_study(max_votes=3)
    with contextlib.suppress(ShortlistError):
        found = shortlist.run_study(study, shortlist.EndpointJudge(endpoint.url, "tiny"), **QUICK)
        assert found.verdict.votes == 3
    assert all(answer.outcome in (0.0, 0.5, 1.0) for answer in told(study))


@pytest.mark.parametrize(
    "first_line", [b"HTTP/1.1 abc\r\n\r\n", b"\x00" * 50, b"HTTP/1.1 200 OK\r\nA" + b"a" * 200_000]
)
def test_a_server_that_does_not_speak_http(endpoint, first_line):
    def behave(handler):
        handler.wfile.write(first_line)
        handler.close_connection = True

    endpoint.always = behave
    with pytest.raises(ShortlistError, match="no answer from"):
        shortlist.run_study(new_study(), shortlist.EndpointJudge(endpoint.url, "tiny"), **QUICK)
