"""What is sent to a language model, and what is made of the kinds of answers that servers give."""

import json
import math
import time

import pytest

import shortlist
from shortlist.errors import BadJudge, JudgeFailed, SetupChanged
from tests.judges.server import fail, say, send
from tests.judges.test_endpoint import run
from tests.judges.world import AT_ONCE, ITEMS, new_study, told

CASES = [shortlist.Case(f"c{number}", f"question {number}", f"right {number}") for number in range(5)]


def judge_at(endpoint, **options):
    return shortlist.EndpointJudge(endpoint.url, "tiny", **options)


def body(endpoint):
    return endpoint.requests[-1]["body"]


def test_a_system_prompt_criteria_and_a_reference(endpoint):
    prompt = "[Answer A]\n{first}\n[End]\n[Answer B]\n{second}\n[End]\n{case}|{reference}|{criteria}"
    judge = judge_at(endpoint, prompt=prompt, system="You judge by {criteria}", criteria="brevity")
    run(endpoint, judge=judge, cases=CASES)
    system, user = body(endpoint)["messages"]
    assert system == {"role": "system", "content": "You judge by brevity"}
    case = user["content"].split("|")[0][-1]
    assert user["content"].endswith(f"question {case}|right {case}|brevity")


def test_other_references_are_another_judge(endpoint):
    prompt = "[Answer A]\n{first}\n[End]\n[Answer B]\n{second}\n[End]\n{case}{reference}"
    study = new_study(max_votes=50)
    shown = {"backoff": AT_ONCE, "warn": lambda text: None, "max_calls": 4}
    shortlist.run_study(study, judge_at(endpoint, prompt=prompt), cases=CASES, **shown)
    others = [shortlist.Case(case.id, case.text, "wrong") for case in CASES]
    with pytest.raises(SetupChanged, match="another set of reference answers"):
        shortlist.run_study(study, judge_at(endpoint, prompt=prompt), cases=others, **shown)
    shortlist.run_study(study, judge_at(endpoint), cases=others, as_new_judge=True, **shown)  # shows no reference


MADE = {
    "system": "s", "criteria": "c", "verdict": "grades", "pattern": "(A|B)", "max_tokens": 9,
    "headers": {"x-team": "blue"}, "query": {"v": "1"}, "options": {"seed": 1}, "temperature": 0.0,
}  # fmt: skip


def test_everything_that_decides_answers_is_part_of_the_name_and_settings():
    plain = shortlist.EndpointJudge("http://x/v1", "tiny")
    made = [shortlist.EndpointJudge("http://x/v1", "tiny", **{name: value}) for name, value in MADE.items()]
    style = shortlist.EndpointJudge("http://x/v1", "t", "{QUESTION}{ANSWER_A}{ANSWER_B}", prompt_style="arena-hard")
    assert len({judge.name for judge in [plain, *made, style]}) == len(MADE) + 2
    assert all(judge.settings[name] == MADE[name] for judge, name in zip(made, MADE, strict=True))
    assert style.settings["prompt_style"] == "arena-hard"
    assert style.settings["verdict"] == "grades"


def test_a_judge_without_new_settings_keeps_its_name_and_settings():
    """Studies of earlier versions go on."""
    judge = shortlist.EndpointJudge("http://x/v1", "tiny", temperature=0.5)
    assert judge.name == "tiny-07893902bc67"
    assert set(judge.settings) == {"kind", "base_url", "model", "prompt", "temperature", "options"}


@pytest.mark.parametrize(
    "options",
    [
        {"options": {"messages": []}},
        {"options": {"model": "other"}},
        {"options": {"stream": True}},
        {"options": {"n": 4}},
        {"options": {"max_tokens": 4}, "max_tokens": 5},
        {"options": {"max_completion_tokens": 4}, "max_tokens": 5},
        {"options": {"temperature": 1}, "temperature": 0.0},
        {"options": {"response_format": {}}, "verdict": "json"},
        {"verdict": "logprob", "max_tokens": 50},
        {"verdict": "numbers"},
        {"verdict": "letters", "pattern": "(A|B)"},
        {"pattern": "("},
        {"pattern": "(A)(B)"},
        {"pattern": "(?P<one>A)"},
        {"prompt_style": "arena-hard"},
        {"prompt_style": "unknown", "prompt": "{first}{second}"},
        {"headers": {"Authorization": "Bearer secret"}},
        {"headers": {"a b": "c"}},
        {"rpm": 0},
        {"max_tokens": 0},
    ],
)
def test_requests_that_make_no_sense(options):
    with pytest.raises((BadJudge, shortlist.ShortlistError)):
        shortlist.EndpointJudge("http://x/v1", "tiny", **options)


def test_headers_query_and_the_place_of_the_key(endpoint, monkeypatch):
    monkeypatch.setenv("AZURE_KEY", "azure-secret-77")
    monkeypatch.setenv("TEAM", "blue-secret-78")
    judge = judge_at(
        endpoint, key_variable="AZURE_KEY", key_header="api-key", headers={"x-team": "$TEAM"},
        query={"api-version": "2024-10-21"},
    )  # fmt: skip
    run(endpoint, judge=judge)
    request = endpoint.requests[0]
    assert request["path"] == "/v1/chat/completions?api-version=2024-10-21"
    assert request["headers"]["api-key"] == "azure-secret-77"
    assert request["headers"]["x-team"] == "blue-secret-78"
    assert "Authorization" not in request["headers"]
    assert not any(secret in json.dumps(judge.settings) for secret in ("azure-secret", "blue-secret"))
    endpoint.always = fail(403, b'{"error": {"message": "blue-secret-78 may not use azure-secret-77"}}')
    with pytest.raises(JudgeFailed, match=r"403: \*\*\* may not use \*\*\*"):
        run(endpoint, judge=judge)


def test_the_limit_of_tokens_is_spelled_as_the_server_wants(endpoint):
    refuse = b'{"error": {"message": "Unsupported parameter: max_tokens. Use max_completion_tokens instead."}}'
    endpoint.script = [fail(400, refuse)]
    _, found = run(endpoint, judge=judge_at(endpoint, max_tokens=70))
    sent = [{name: value for name, value in one["body"].items() if "tokens" in name} for one in endpoint.requests]
    assert sent == [{"max_tokens": 70}, *[{"max_completion_tokens": 70}] * 3]
    assert (found.costs.calls, found.costs.retries) == (3, 0)


def test_a_refusal_of_both_spellings_stops(endpoint):
    endpoint.always = fail(400, b'{"error": {"message": "no max_tokens, no max_completion_tokens"}}')
    with pytest.raises(JudgeFailed, match="400"):
        run(endpoint, judge=judge_at(endpoint, max_tokens=70))
    assert len(endpoint.requests) == 2


def test_grades_become_votes(endpoint):
    endpoint.always = say("It is close.\n[[A>B]]")
    study, _ = run(endpoint, judge=judge_at(endpoint, verdict="grades"))
    assert [row.outcome for row in told(study)] == [0.75] * 3
    assert "[[A>>B]]" in body(endpoint)["messages"][0]["content"]


def test_json_is_asked_for_and_read(endpoint):
    endpoint.always = say('{"reason": "shorter", "winner": "B"}')
    study, _ = run(endpoint, judge=judge_at(endpoint, verdict="json"))
    assert [row.outcome for row in told(study)] == [0.0] * 3
    schema = body(endpoint)["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["winner"]["enum"] == ["A", "B", "tie"]


@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_server_without_schemas_is_asked_in_another_form(endpoint, status):
    """As llama.cpp's own server answers, with 500. The text is read, whatever form it was asked for."""
    refuse = fail(status, b"{\"error\": {\"message\": \"('body', 'response_format', 'type'): literal_error\"}}")
    endpoint.script, endpoint.always = [refuse, refuse], say('{"winner": "B"}')
    study, found = run(endpoint, judge=judge_at(endpoint, verdict="json", max_tokens=50))
    sent = [one["body"].get("response_format", {}).get("type") for one in endpoint.requests]
    assert sent == ["json_schema", "json_object", None, None, None]
    assert (found.costs.calls, found.costs.retries) == (3, 0)
    assert [row.outcome for row in told(study)] == [0.0] * 3
    endpoint.requests.clear()
    endpoint.always = refuse
    with pytest.raises(JudgeFailed, match="response_format"):
        run(endpoint, judge=judge_at(endpoint, verdict="json", max_tokens=50), retries=0, patience=0.0)
    assert len(endpoint.requests) == 3


def probable(first, second, finish="length"):
    listed = [{"token": token, "logprob": math.log(part)} for token, part in (("A", first), ("B", second))]
    choice = {
        "message": {"content": "A"},
        "finish_reason": finish,
        "logprobs": {"content": [{"token": "A", "logprob": 0.0, "top_logprobs": listed}]},
    }
    return lambda handler: send(handler, 200, json.dumps({"choices": [choice]}).encode())


def test_probabilities_become_votes(endpoint):
    endpoint.always = probable(0.6, 0.2)
    study, _ = run(endpoint, judge=judge_at(endpoint, verdict="logprob"))
    assert [row.outcome for row in told(study)] == pytest.approx([0.75] * 3)
    asked = {name: body(endpoint)[name] for name in ("max_tokens", "logprobs", "top_logprobs")}
    assert asked == {"max_tokens": 1, "logprobs": True, "top_logprobs": 5}


@pytest.mark.parametrize(
    ("behave", "reason"),
    [
        (probable(0.2, 0.1), "less than half of the probability"),
        (probable(0.6, 0.2, "content_filter"), "cut off"),
        (say("A", finish="length"), "sends no log-probabilities"),
    ],
)
def test_probabilities_that_are_not_votes(endpoint, behave, reason):
    endpoint.script = [behave]
    endpoint.always = probable(0.6, 0.2)
    _, found = run(endpoint, judge=judge_at(endpoint, verdict="logprob"), retries=0)
    assert reason in found.skipped[0]


def test_probabilities_and_letters_are_never_one_judge(endpoint):
    """Even if both are given the same name."""
    study = new_study(max_votes=50)
    quick = {"backoff": AT_ONCE, "warn": lambda text: None, "max_calls": 4}
    shortlist.run_study(study, judge_at(endpoint, name="me"), **quick)
    endpoint.always = probable(0.6, 0.2)
    again = judge_at(endpoint, name="me", verdict="logprob")
    with pytest.raises(SetupChanged, match="another kind of verdict"):
        shortlist.run_study(study, again, **quick)
    shortlist.run_study(study, again, as_new_judge=True, **quick)
    assert {row.judge for row in told(study)} == {"me", "me#2"}


def test_a_regular_expression_or_a_function_reads_the_rest(endpoint):
    endpoint.always = say("<think>GRADE: A</think>\nGRADE: B")
    for options in ({"pattern": r"GRADE: (\w)"}, {"verdict": lambda text: "second" if "GRADE: B" in text else None}):
        study, _ = run(endpoint, judge=judge_at(endpoint, **options))
        assert [row.outcome for row in told(study)] == [0.0] * 3


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_never_a_verdict(endpoint, field):
    endpoint.script = [say("", **{field: "perhaps [[A]]"}), say(None, **{field: "[[A]]"})]
    endpoint.script += [say([{"type": "thinking", "text": "[[A]]"}, {"type": "reasoning", "text": "[[A]]"}])]
    endpoint.always = say([{"type": "thinking", "text": "[[A]]"}, {"type": "text", "text": "[[B]]"}])
    study, found = run(endpoint, retries=3)
    assert found.costs.unclear == 3
    assert [row.outcome for row in told(study)] == [0.0] * 3


def test_rates_are_kept(endpoint, monkeypatch):
    """A minute is a third of a second here: 9 requests at 4 a minute need two full minutes of waiting."""
    monkeypatch.setattr("shortlist.judges.meter.MINUTE", 0.3)
    times, answer, began = [], endpoint.always, time.monotonic()
    endpoint.always = lambda handler: (times.append(time.monotonic()), answer(handler))
    run(endpoint, votes=9, judge=judge_at(endpoint, rpm=4), workers=8)
    assert max(times) - began >= 2 * 0.3  # the first may reach the server late, so its time there says nothing


def test_pictures_are_sent_as_pictures(endpoint):
    url = "data:image/png;base64,AAAA"
    endpoint.always = say("[[A]]")
    run(endpoint, contents=dict.fromkeys(ITEMS, url))
    kinds = [part["type"] for part in body(endpoint)["messages"][0]["content"]]
    assert kinds == ["text", "image_url", "text", "image_url", "text"]
