"""`shortlist run` with language models: real requests to a server on this machine."""

import functools
import json
import ssl
from collections import Counter

import pytest

from shortlist.analysis.votes import decisive_votes
from shortlist.study.create import load_study
from tests.judges.server import say, serving
from tests.report.html import check

certificates = functools.cache(ssl.create_default_context)  # to load them takes longer than a test


@pytest.fixture
def endpoint(monkeypatch, shortlist):
    context = certificates()
    monkeypatch.setattr(ssl, "create_default_context", lambda *given, **more: context)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    rows = [
        {
            "item": item,
            "case": f"c{case}",
            "text": f"question {case}",
            "output": f"{item} {case}",
            "reference": f"r{case}",
        }
        for item in ("a", "b", "c")
        for case in range(40)
    ]
    (shortlist.folder / "outputs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with serving() as server:
        yield server


def run(endpoint, *options):
    return ["run", "outputs.jsonl", "-k", 1, "--judge-url", endpoint.url, "--model", "tiny", *options]


def test_options_reach_the_server(endpoint, shortlist, monkeypatch):
    monkeypatch.setenv("MY_KEY", "key-1")
    (shortlist.folder / "system.txt").write_text("You judge.")
    (shortlist.folder / "criteria.txt").write_text("brevity")
    (shortlist.folder / "prompt.txt").write_text(
        "[Answer A]\n{first}\n[End]\n[Answer B]\n{second}\n[End]\n{case} {reference} {criteria}"
    )
    made = ["--system", "system.txt", "--criteria", "@criteria.txt", "--prompt", "prompt.txt", "--max-tokens", 90]
    made += ["--option", "seed=1", "--option", "reasoning_effort=low", "--header", "x-team: blue", "--query", "v=2"]
    found = shortlist.json(*run(endpoint, *made, "--key-variable", "MY_KEY", "--key-header", "api-key"))
    assert found["top"] == ["a"]
    request = endpoint.requests[0]
    assert [message["role"] for message in request["body"]["messages"]] == ["system", "user"]
    assert request["body"]["messages"][1]["content"].endswith("brevity")
    sent = {name: request["body"][name] for name in ("seed", "reasoning_effort", "max_tokens")}
    assert sent == {"seed": 1, "reasoning_effort": "low", "max_tokens": 90}
    assert (request["headers"]["api-key"], request["headers"]["x-team"]) == ("key-1", "blue")
    assert request["path"].endswith("?v=2")


def test_a_prompt_of_another_tool(endpoint, shortlist):
    (shortlist.folder / "arena.txt").write_text("{QUESTION}\n{ANSWER_A}\n{ANSWER_B}")
    endpoint.always = say("[[A=B]]")
    options = ["--prompt", "arena.txt", "--prompt-style", "arena-hard", "--max-votes", 5]
    assert shortlist.json(*run(endpoint, *options))["reason"] == "budget"
    refused = shortlist.refused(*run(endpoint, "--prompt-style", "arena-hard", "--name", "other"))
    assert "give the prompt too" in refused


def test_a_panel_of_models(endpoint, shortlist):
    found = shortlist.json(*run(endpoint, "--model", "other"))
    assert "by the mean answer of a panel of 2 judges" in found["guarantee"]
    assert {request["body"]["model"] for request in endpoint.requests} == {"tiny", "other"}
    said = shortlist(*run(endpoint, "--model", "other", "--panel", "mean", "--name", "two")).out
    assert "agreed in 100% of them" in said
    assert "The result is about the mean of the panel's 2 judges" in said


def test_pictures_are_shown_and_paths_are_not(endpoint, shortlist):
    photos = shortlist.folder / "photos"
    photos.mkdir()
    for name in "abc":
        (photos / f"{name}.gif").write_bytes(b"GIF89a" + bytes([1, 0, 1, 0]) + bytes(10))
    endpoint.always = say("[[C]]")
    command = ["run", "photos", "-k", 1, "--judge-url", endpoint.url, "--model", "tiny", "--max-votes", 3]
    shortlist(*command)
    parts = endpoint.requests[0]["body"]["messages"][0]["content"]
    assert [part["image_url"]["url"][:22] for part in parts if part["type"] == "image_url"] == [
        "data:image/gif;base64,"
    ] * 2
    assert not any(".gif" in part.get("text", "") for part in parts)
    (photos / "d.bin").write_bytes(b"\xff\x00\xfe")
    assert "cannot be shown to a language model" in shortlist.refused(*command, "--name", "other")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--judge", "true", "--system", "x"], "--system works only with --judge-url"),
        (["--judge", "true", "--verdict", "json"], "--verdict works only with --judge-url"),
        (["--judge-url", "http://x/v1"], "needs a model"),
        (["--judge-url", "http://x/v1", "--model", "m", "--header", "nothing"], "NAME: VALUE"),
        (["--judge-url", "http://x/v1", "--model", "m", "--option", "messages=[]"], "options cannot set messages"),
        (["--judge-url", "http://x/v1", "--judge-url", "http://y/v1", "--model", "m"], "once for each of the 1 models"),
        (["--judge-url", "http://x/v1", "--model", "m", "--verdict", "grades", "--family", "gaussian"], "measured"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(endpoint, shortlist, options, said):
    assert said in shortlist.refused("run", "outputs.jsonl", "-k", 1, *options)


def test_what_the_judge_said_can_be_read(endpoint, shortlist):
    endpoint.always = say("It is clear.\n{better}", usage={"prompt_tokens": 50, "completion_tokens": 5})
    money = ["--price", "1,10", "--max-tokens", 60, "--max-cost", 1]
    found = shortlist.json(*run(endpoint, *money, "--order", "both", "--workers", 1))
    assert found["costs"]["cost"] == pytest.approx(0.0001 * found["costs"]["calls"])
    status = shortlist.json("status", "outputs")
    assert status["spent"]["calls"] == len(endpoint.requests)
    assert status["spent"]["cost"] == pytest.approx(0.0001 * len(endpoint.requests))
    assert "To read them: shortlist read outputs" in shortlist("status", "outputs").out
    lines = [json.loads(line) for line in shortlist("read", "outputs", "--json").out.splitlines()]
    assert len(lines) == len(endpoint.requests)
    assert all(line["first_text"].startswith(line["first"]) and line["case_text"] for line in lines)
    page = shortlist("read", "outputs", "--only", "decisive").out
    assert "It is clear." in page
    assert "question" in page
    said = shortlist("read", "outputs", "--export", "all.jsonl").out
    assert f"{len(lines)} answers written" in said
    assert len((shortlist.folder / "all.jsonl").read_text().splitlines()) == len(lines)
    assert "No question of 'outputs' fits" in shortlist("read", "outputs", "--only", "flips").out
    pair = [
        json.loads(line)
        for line in shortlist("read", "outputs", "--item", "a", "--item", "b", "--json").out.splitlines()
    ]
    assert {frozenset((line["first"], line["second"])) for line in pair} == {frozenset("ab")}


def test_flips_and_unclear_answers_are_found(endpoint, shortlist):
    endpoint.script = [say("I cannot tell.")]
    endpoint.always = say("[[A]]")  # whatever is shown first
    shortlist(*run(endpoint, "--order", "both", "--max-votes", 3, "--keep-texts", "no", "--workers", 1))
    assert "no verdict" in shortlist("read", "outputs", "--only", "unclear").out
    flips = shortlist("read", "outputs", "--only", "flips").out
    assert flips.count("(texts are not kept)") >= 6


def test_flips_are_found_where_each_order_was_a_question_of_its_own(endpoint, shortlist):
    """And votes that were answered from stored answers have words too: each answer of the judge can be read."""
    endpoint.always = say("[[A]]")  # whatever is shown first: all pairs tie, and the whole table is asked
    table = shortlist.folder / "outputs.jsonl"
    rows = table.read_text().splitlines()
    table.write_text("\n".join(row for row in rows if int(json.loads(row)["case"][1:]) < 10))
    shortlist(*run(endpoint, "--workers", 1))
    asked = [json.loads(line) for line in shortlist("read", "outputs", "--json").out.splitlines()]
    flips = [json.loads(line) for line in shortlist("read", "outputs", "--only", "flips", "--json").out.splitlines()]
    orders = Counter((one["case"], frozenset((one["first"], one["second"]))) for one in asked)
    assert len(flips) == sum(count for count in orders.values() if count == 2) > 0
    assert "shown first: " in shortlist("read", "outputs", "--only", "flips").out
    study = load_study("outputs", f"sqlite:///{shortlist.folder}/shortlist.db")
    calls = {(row.case, row.first, row.second) for row in decisive_votes(study)}
    only = shortlist("read", "outputs", "--only", "decisive", "--json").out.splitlines()
    assert len(only) == len(calls) < len(decisive_votes(study))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--max-cost", 1], "needs the price"),
        (["--max-cost", 1, "--price", "1,2"], "--max-tokens"),
        (["--price", "cheap"], "cannot be read"),
        (["--price", "1,-2"], "cannot be read"),
        (["--prices", "none.toml"], "cannot read"),
        (["--prices", "prices.toml"], "has no price for 'tiny'; it has large"),
        (["--prices", "bad.toml"], "is not a file of prices"),
        (["--price", "1,2", "--prices", "prices.toml"], "not both"),
    ],
)
def test_money_that_cannot_be_counted(endpoint, shortlist, options, said):
    (shortlist.folder / "prices.toml").write_text('["large"]\ninput = 1\noutput = 2.5\ncached = 0.5\n')
    (shortlist.folder / "bad.toml").write_text('["tiny"]\ninput = 1\n')
    assert said in shortlist.refused(*run(endpoint, *options))
    assert not endpoint.requests


def test_prices_from_a_file(endpoint, shortlist):
    (shortlist.folder / "prices.toml").write_text('["tiny"]\ninput = 1\noutput = 10\ncached = 0.5\n')
    usage = {"prompt_tokens": 50, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 20}}
    endpoint.always = say("{better}", usage=usage)
    found = shortlist.json(*run(endpoint, "--prices", "prices.toml", "--max-votes", 3))
    assert found["costs"]["cost"] == pytest.approx((30 + 10 + 50) * 1e-6 * found["costs"]["calls"])


def test_the_report_shows_cost_and_the_words_that_decided(endpoint, shortlist):
    endpoint.always = say(
        "<script>alert(1)</script> & so on\n{better}", usage={"prompt_tokens": 10, "completion_tokens": 3}
    )
    found = shortlist.json(*run(endpoint, "--price", "1,2"))
    assert "A ruler as judge" in {one["name"] for one in found["checks"]}
    shortlist("report", "outputs")
    page = (shortlist.folder / "report.html").read_text(encoding="utf-8")
    read = check(page).words
    assert "What the judge said" in read
    assert "<script>alert(1)</script> & so on" in read
    assert "<script" not in page
    assert page.count("<details>") >= 1
    cost = shortlist.json("report", "outputs")
    assert cost["spent"]["cost"] == pytest.approx(found["costs"]["cost"])
    assert cost["words"][0]["text"].startswith("<script>")


def test_without_texts_nothing_of_them_is_kept(endpoint, shortlist):
    shortlist(*run(endpoint, "--keep-texts", "no"))
    assert b"question 1" not in (shortlist.folder / "shortlist.db").read_bytes()
    shortlist("report", "outputs")
    assert "What the judge said" not in (shortlist.folder / "report.html").read_text(encoding="utf-8")
