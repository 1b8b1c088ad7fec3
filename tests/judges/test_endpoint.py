"""Against a real server on this machine that misbehaves on purpose."""

import datetime
import email.utils
import gzip
import subprocess
import sys
import time
from collections import Counter

import pytest

import shortlist
from shortlist.errors import BadJudge, JudgeFailed, NotInstalled
from shortlist.judges.prompts import read_retry_after
from tests.judges.server import fail, say, send
from tests.judges.world import AT_ONCE, new_study, told
from tests.patience import PATIENCE


def run(endpoint, votes=3, judge=None, **options):
    study = new_study(max_votes=votes)
    judge = judge or shortlist.EndpointJudge(endpoint.url, "tiny")
    quick = {"backoff": AT_ONCE, "workers": 1, "warn": lambda text: None, "patience": 0.0, **options}
    return study, shortlist.run_study(study, judge, **quick)


def test_a_study_by_a_language_model(endpoint):
    study = new_study()
    judge = shortlist.EndpointJudge(endpoint.url, "tiny", temperature=0.5, options={"max_tokens": 99})
    found = shortlist.run_study(study, judge, workers=4, warn=lambda text: None)
    assert found.verdict.reason == "certified"
    assert set(found.verdict.top) == {"ann", "bob"}
    arrived = len(endpoint.requests)  # a call given up at the end may not have got this far
    assert found.costs.calls - found.costs.skips <= arrived <= found.costs.calls
    assert arrived >= found.verdict.votes
    assert found.costs.prompt_tokens >= 10 * found.verdict.votes
    assert found.costs.completion_tokens >= 3 * found.verdict.votes
    request = endpoint.requests[0]
    assert request["path"] == "/v1/chat/completions"
    assert request["headers"]["Authorization"] == "Bearer sk-this-is-the-secret-42"
    assert request["body"]["model"] == "tiny"
    assert request["body"]["temperature"] == 0.5
    assert request["body"]["max_tokens"] == 99
    answered = [answer for answer in study.rows if answer.outcome is not None]
    assert {question.judge for question in answered} == {judge.name}
    asked = Counter((question.first, question.second) for question in answered)  # calls may overtake each other
    assert not asked - Counter(_shown(request, study.items) for request in endpoint.requests)


def _shown(request, items):
    """The two items of a request, in the order in which they are shown."""
    return tuple(word for word in request["body"]["messages"][0]["content"].split() if word in items)


def test_cases_and_contents_are_shown(endpoint):
    contents = {item: {"c1": f"{item} says one", "c2": f"{item} says two"} for item in ["ann", "bob", "cid", "dee"]}
    cases = [shortlist.Case("c1", "Count to one {first}."), shortlist.Case("c2", "Count to two.")]
    study = new_study(max_votes=30, tolerance=0.01)  # so that no answer decides alone
    judge = shortlist.EndpointJudge(endpoint.url, "tiny")
    found = shortlist.run_study(study, judge, workers=1, cases=cases, contents=contents, warn=lambda text: None)
    prompts = [request["body"]["messages"][0]["content"] for request in endpoint.requests]
    assert any("Count to one {first}." in prompt and " says one" in prompt for prompt in prompts)
    assert all(("Count to two." in prompt) == ("says two" in prompt) for prompt in prompts)
    assert found.costs.saved > 0
    assert found.costs.calls == len(prompts) == len(set(prompts)) == found.verdict.votes - found.costs.saved


def test_no_key_is_sent_where_there_is_none(endpoint, monkeypatch):
    run(endpoint, judge=shortlist.EndpointJudge(endpoint.url, "tiny", key_variable=None))
    monkeypatch.delenv("OPENAI_API_KEY")
    run(endpoint)
    monkeypatch.setenv("OTHER_KEY", "other")
    run(endpoint, judge=shortlist.EndpointJudge(endpoint.url, "tiny", key_variable="OTHER_KEY"))
    sent = [request["headers"].get("Authorization") for request in endpoint.requests]
    assert sent == [None] * 6 + ["Bearer other"] * 3


@pytest.mark.parametrize("status", [429, 500, 502, 503, 408])
def test_trouble_that_passes_is_waited_for(endpoint, status):
    endpoint.script = [fail(status), fail(status, b"<html>busy</html>", Content_Type="text/html")]
    study, found = run(endpoint)
    assert len(told(study)) == found.verdict.votes == 3
    assert (found.costs.calls, found.costs.retries, found.costs.skips) == (5, 2, 0)


def test_trouble_that_stays_ends_the_run_and_loses_nothing(endpoint):
    endpoint.script = [endpoint.always] * 2
    endpoint.always = fail(503, b'{"error": {"message": "the cluster is\\n on fire"}}')
    with pytest.raises(JudgeFailed, match="503: the cluster is on fire") as caught:
        run(endpoint, votes=9, retries=2)
    study = caught.value.study
    assert len(told(study)) == study.verdict.votes == 2
    assert not study.pending
    assert (caught.value.run.costs.calls, caught.value.run.costs.retries) == (5, 2)


def test_retry_after_is_honoured(endpoint):
    endpoint.script = [fail(429, Retry_After="0.1")]
    started = time.monotonic()
    _, found = run(endpoint)
    assert time.monotonic() - started >= 0.1
    assert found.costs.retries == 1


def test_a_server_that_wants_too_much_patience_is_left(endpoint):
    endpoint.always = fail(429, b"come back tomorrow", Retry_After="86400")
    with pytest.raises(JudgeFailed, match="429: come back tomorrow"):
        run(endpoint)
    assert len(endpoint.requests) == 1


def test_retry_after_is_a_number_or_a_date():
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=30)
    left = read_retry_after(email.utils.format_datetime(soon, usegmt=True))  # in whole seconds
    took = (datetime.datetime.now(datetime.UTC) - soon).total_seconds() + 30
    assert 29 - took <= left <= 30
    assert read_retry_after("7") == 7
    assert read_retry_after("-7") == read_retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    for nonsense in (None, "", "soon", "nan", "inf", "99 Foo 9999999", "Wed, 21 Oct 99999 07:28:00"):
        assert read_retry_after(nonsense) is None


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 301])
def test_what_will_not_pass_stops_at_once(endpoint, status):
    endpoint.always = fail(status, b'{"error": {"message": "no such thing"}}', Location="http://elsewhere/")
    with pytest.raises(JudgeFailed, match=f"{status}: no such thing; check"):
        run(endpoint)
    assert len(endpoint.requests) == 1


def test_a_missing_key_is_named(endpoint, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    endpoint.always = fail(401)
    with pytest.raises(JudgeFailed, match="set OPENAI_API_KEY to your key"):
        run(endpoint)


def hang(handler):
    """Say nothing until the test is over."""
    handler.over.wait(PATIENCE)
    handler.close_connection = True


def drip(handler):
    """Headers at once, then a byte now and then: every read succeeds, and nothing ever comes of it."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    while not handler.over.wait(0.02):
        handler.wfile.write(b" ")


def cut_off(handler):
    """A connection that closes in the middle of a body."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [{"mess')
    handler.close_connection = True


def slam(handler):
    """A connection that closes without a word."""
    handler.close_connection = True


UNCLEAR = {
    "garbage": say("As a bowl of soup I cannot compare anything."),
    "two verdicts": say("[[A]] or rather\n[[A]] [[B]]"),
    "refusal": say(None, refusal="I will not judge people."),
    "nothing": say(None),
    "numbers": say([1, {"text": 3}, None]),
    "truncated JSON": lambda handler: send(handler, 200, b'{"choices": [{"message": {"content": "[[A]'),
    "not JSON": lambda handler: send(handler, 200, b"<html>login</html>", Content_Type="text/html"),
    "other JSON": lambda handler: send(handler, 200, b'[[["A"]]]'),
    "an error that says 200": lambda handler: send(handler, 200, b'{"error": {"message": "overloaded"}}'),
    "deep JSON": lambda handler: send(handler, 200, b"[" * 200_000),
    "not gzip": lambda handler: send(handler, 200, b"plain", Content_Encoding="gzip"),
    "a bomb": lambda handler: send(handler, 200, gzip.compress(b" " * (5 << 20)), Content_Encoding="gzip"),
    "no content": fail(204, b""),
}


@pytest.mark.parametrize("behave", UNCLEAR.values(), ids=UNCLEAR)
def test_answers_that_say_nothing_are_asked_again_and_then_skipped(endpoint, behave):
    endpoint.script = [endpoint.always, behave, endpoint.always, behave, behave]
    study, found = run(endpoint, retries=1)
    assert len(told(study)) == found.verdict.votes == 3
    costs = found.costs
    assert (costs.calls, costs.retries, costs.unclear, costs.skips) == (6, 2, 3, 1)
    assert list(found.skipped) == [2]
    assert not study.pending


@pytest.mark.parametrize("behave", [hang, drip])
def test_answers_that_never_end_are_skipped(endpoint, behave):
    endpoint.script = [behave]
    _, found = run(endpoint, retries=0, time_limit=0.5)
    assert found.verdict.votes == 3
    assert found.skipped[0] == "no answer within 0.5 seconds"
    assert found.costs.skips == found.costs.unclear >= 1


@pytest.mark.parametrize("behave", [cut_off, slam])
def test_broken_connections_are_tried_again(endpoint, behave):
    endpoint.script = [behave]
    _, found = run(endpoint)
    assert (found.verdict.votes, found.costs.retries, found.costs.skips) == (3, 1, 0)


def test_nobody_there(endpoint):
    judge = shortlist.EndpointJudge("http://127.0.0.1:1/v1", "tiny")
    with pytest.raises(JudgeFailed, match="no answer from http://127"):
        run(endpoint, judge=judge)


def test_a_model_that_always_refuses_ends_the_run(endpoint):
    endpoint.always = say(None, refusal="I will not judge people.", usage={"prompt_tokens": 2})
    with pytest.raises(JudgeFailed, match=r"reason of the last skip: .* it refused, 'I will not judge people\.'"):
        run(endpoint, retries=0, workers=4)


def test_tokens_of_useless_answers_are_counted(endpoint):
    endpoint.script = [say("hm", usage={"prompt_tokens": 5, "completion_tokens": 7})]
    endpoint.always = say("{better}", usage={"prompt_tokens": "many", "completion_tokens": True})
    _, found = run(endpoint)
    assert (found.costs.prompt_tokens, found.costs.completion_tokens) == (5, 7)


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://x/", "http://", "http://[", "http://x:notaport/", None])
def test_urls_that_cannot_be_called(url):
    with pytest.raises(BadJudge, match="base URL"):
        shortlist.EndpointJudge(url, "tiny")


def test_settings_that_make_no_sense():
    for options in ({"prompt": "{first} only"}, {"options": {"x": object()}}):
        with pytest.raises(BadJudge):
            shortlist.EndpointJudge("http://x/v1", "tiny", **options)
    assert shortlist.EndpointJudge("http://x/v1/chat/completions", "tiny").url == "http://x/v1/chat/completions"


def test_other_settings_are_another_judge():
    settings = [{}, {"temperature": 0.0}, {"prompt": "{first} {second}"}, {"options": {"seed": 1}}]
    names = {shortlist.EndpointJudge("http://x/v1", "tiny", **chosen).name for chosen in settings}
    assert len(names) == 4
    assert shortlist.EndpointJudge("http://x/v1/", "tiny").name in names


def test_a_prompt_must_fit_the_study(endpoint):
    for prompt, cases in (("{case} {first} {second}", None), ("{first} {second}", ["one"])):
        judge = shortlist.EndpointJudge(endpoint.url, "tiny", prompt=prompt)
        with pytest.raises(BadJudge, match="case"):
            run(endpoint, judge=judge, cases=cases)
    assert not endpoint.requests


def test_without_httpx_the_way_out_is_named(endpoint, monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(NotInstalled, match=r"shortlist\[llm\]"):
        run(endpoint)


def test_httpx_is_loaded_only_when_it_is_needed():
    code = "import sys, shortlist; shortlist.EndpointJudge('http://x/v1', 'm'), shortlist.run_study"
    subprocess.run([sys.executable, "-c", code + "; assert 'httpx' not in sys.modules"], check=True)


@pytest.mark.parametrize(
    "behave",
    [
        say("<think>Answer A is short. If that counts, the verdict is\n[[A]]"),  # no end, and no finish reason says so
        say("Both are good. If the first is shorter, I say\n[[A]]", finish="length"),
        say("[[A]]", finish="content_filter"),
    ],
)
def test_forty_answers_that_were_cut_off_are_not_votes(endpoint, behave):
    endpoint.script = [behave] * 40
    study, found = run(endpoint, votes=5, retries=9)
    assert found.costs.unclear == 40
    assert found.costs.skips == 4
    assert len(told(study)) == 5  # from the answers after these
