"""What a judge said is kept: every answer that a server was paid for, once."""

import json
import threading
import time

import pytest
from sqlalchemy import func, select

import shortlist
from shortlist.errors import JudgeFailed, StorageUnavailable
from shortlist.judges.base import Tokens
from shortlist.judges.meter import ListedPrice
from shortlist.judges.run_log import save_texts
from shortlist.study.schema import texts
from shortlist.study.sql import close_databases
from shortlist.study.storage import storable
from tests.judges.server import fail, say, send
from tests.judges.test_endpoint import cut_off, slam
from tests.judges.world import AT_ONCE, ITEMS, told

CASES = [f"case {number}" for number in range(60)]
USAGE = {"prompt_tokens": 100, "completion_tokens": 10}
PRICE = shortlist.Price(1.0, 10.0)  # a call costs 0.0002


class Account:
    """Counts what the server answers, as the server sees it: what it has generated it charges for."""

    def __init__(self, endpoint, usage=USAGE):
        self.paid, self.lock = [], threading.Lock()
        self.endpoint, self.usage = endpoint, usage
        endpoint.always = self.answer("I think so.\n{better}")

    def answer(self, text, **options):
        behave = say(text, usage=self.usage, **options)

        def charge(handler):
            with self.lock:
                self.paid.append(handler.prompt)
            behave(handler)

        return charge


def judge_at(endpoint, **options):
    return shortlist.EndpointJudge(endpoint.url, "tiny", **{"price": PRICE, "max_tokens": 50, **options})


def study_in(folder, **options):
    made = {"delta": 0.1, "storage": f"sqlite:///{folder}/s.db", "name": "s", "load_if_exists": True}
    return shortlist.create_study(ITEMS, 2, **{**made, **options})


def run(study, judge, **options):
    quick = {"backoff": AT_ONCE, "warn": lambda text: None, "cases": CASES}
    return shortlist.run_study(study, judge, **{**quick, **options})


def test_every_answer_is_kept_with_its_words_tokens_and_cost(endpoint, tmp_path):
    account = Account(endpoint)
    study = study_in(tmp_path)
    found = run(study, judge_at(endpoint))
    replies = study.storage.replies("s")
    assert found.verdict.reason == "certified"
    assert len(replies) == len(account.paid) == found.costs.calls
    assert {reply.text.split("\n")[0] for reply in replies} == {"I think so."}
    assert {(reply.prompt_tokens, reply.completion_tokens, round(reply.cost, 9)) for reply in replies} == {
        (100, 10, 0.0002)
    }
    assert study.spent.cost == pytest.approx(0.0002 * len(account.paid)) == pytest.approx(found.costs.cost)
    assert len({reply.request for reply in replies}) == len(set(account.paid)) == len(account.paid)
    by_question = {row.question: row for row in told(study)}
    for reply in replies:
        row = by_question.get(reply.question)
        if row is not None:  # a case may answer several questions
            assert {row.first, row.second} == {reply.first, reply.second}
    texts = study.storage.texts("s")
    assert {texts[reply.case_text] for reply in replies} <= set(CASES)


def no_json(handler):
    send(handler, 200, b"this is not JSON")


def test_a_server_with_every_fault_is_paid_for_nothing_twice(endpoint, tmp_path):
    """Refusals, cut-off answers, thinking, rate limits, errors, malformed JSON, broken connections: what the server
    generated is kept, one row for each, and no question is asked twice once it has an answer."""
    account = Account(endpoint)
    faults = [
        account.answer(None, refusal="I will not judge people."),
        account.answer("[[A]]", finish="length"),
        account.answer("<think>perhaps\n[[A]]"),
        account.answer("<think>[[A]]</think>{better}"),
        account.answer("{better}", reasoning_content="[[A]] looks good"),
        fail(429, Retry_After="0.05"),
        fail(500),
        fail(503),
        slam,
        no_json,
        cut_off,
        account.answer(""),
    ]
    ordinary = endpoint.always
    endpoint.script = [behave for fault in faults for behave in (fault, ordinary)] * 3
    study = study_in(tmp_path)
    warned = []
    run(study, judge_at(endpoint), workers=4, warn=warned.append, max_calls=40)
    again = study_in(tmp_path)  # the same command again, in the next process
    found = run(again, judge_at(endpoint), workers=4, warn=warned.append)
    assert found.verdict.reason == "certified"
    replies = again.storage.replies("s")
    generated = [reply for reply in replies if reply.prompt_tokens]
    assert len(generated) == len(account.paid)
    answered = [(reply.case, reply.first, reply.second) for reply in replies if reply.outcome is not None]
    assert len(answered) == len(set(answered))  # none was paid for twice
    reasons = " ".join(reply.reason for reply in replies)
    for word in (
        "refused",
        "cut off (length)",
        "no end",
        "answer is empty",
        "not send a JSON object",
        "no answer from",
    ):
        assert word in reasons
    assert again.spent.cost >= 0.0002 * len(account.paid) - 1e-12


def test_a_question_that_the_server_cannot_take_is_skipped_with_the_reason(endpoint, tmp_path):
    ordinary = endpoint.always
    too_long = fail(400, b'{"error": {"message": "the context is too long"}}')
    endpoint.script = [ordinary, too_long, ordinary]
    found = run(study_in(tmp_path, max_votes=5), judge_at(endpoint), workers=1)
    assert [reason for reason in found.skipped.values() if "the context is too long" in reason]
    assert (found.verdict.votes, found.costs.retries) == (5, 0)


def test_an_outage_is_waited_for_and_said(endpoint, tmp_path):
    ordinary, warned = endpoint.always, []
    endpoint.script = [ordinary, *[fail(503, b'{"error": {"message": "loading"}}')] * 30, ordinary]
    found = run(study_in(tmp_path, max_votes=4), judge_at(endpoint), workers=1, retries=1, warn=warned.append)
    assert found.verdict.votes == 4
    said = [text for text in warned if text.startswith("waiting for the judge")]
    assert len(said) == 1
    assert "503: loading. Trying again for up to 10 minutes" in said[0]
    assert any(text.startswith("the judge responds again after") for text in warned)


def test_patience_has_an_end_and_the_run_goes_on_later(endpoint, tmp_path):
    ordinary = endpoint.always
    endpoint.always = fail(503)
    study = study_in(tmp_path, max_votes=4)
    with pytest.raises(JudgeFailed, match="503"):
        run(study, judge_at(endpoint), patience=0.2)
    endpoint.always = ordinary
    assert run(study, judge_at(endpoint), patience=0.2).verdict.votes == 4


def test_one_question_that_always_fails_does_not_end_the_run(endpoint, tmp_path):
    """The server crashes on one case, and answers all others."""
    ordinary = endpoint.always

    def crash(handler):
        (fail(500) if "case 7\n" in handler.prompt else ordinary)(handler)

    endpoint.always = crash
    found = run(study_in(tmp_path), judge_at(endpoint), workers=4, retries=8)
    assert found.verdict.reason == "certified"
    assert all("500" in reason for reason in found.skipped.values() if "the study was done" not in reason)


def test_answers_under_way_when_a_run_is_stopped_are_waited_for(endpoint, tmp_path):
    account, stop, warned = Account(endpoint), threading.Event(), []
    plain = endpoint.always

    def slow(handler):
        if len(account.paid) >= 6:
            stop.set()
            time.sleep(0.2)
        plain(handler)

    endpoint.always, study = slow, study_in(tmp_path)
    run(study, judge_at(endpoint), workers=4, stop=stop, warn=warned.append)
    replies = study.storage.replies("s")
    assert len(replies) == len(account.paid) == sum(reply.outcome is not None for reply in replies) < 20
    assert any("under way, to keep the answers" in text for text in warned)


def test_texts_need_not_be_kept(endpoint, tmp_path):
    study = study_in(tmp_path, max_votes=4)
    run(study, judge_at(endpoint), keep_texts=False)
    replies = study.storage.replies("s")
    assert {(reply.text, reply.reasoning, reply.first_text) for reply in replies} == {(None, None, None)}
    assert study.storage.texts("s") == {}
    assert study.spent.calls == len(replies) > 0


def test_the_words_of_a_program_are_kept(tmp_path):
    study = study_in(tmp_path, max_votes=3)
    program = shortlist.CommandJudge(["echo", json.dumps({"winner": "first", "why": "shorter"})])
    run(study, program, workers=1)
    assert "shorter" in study.storage.replies("s")[0].text


def test_any_text_can_be_stored():
    assert storable("a\0b\ud800c") == "a\ufffdb?c"


@pytest.mark.parametrize("workers", [1, 16])
def test_a_ceiling_on_money_is_never_exceeded(endpoint, tmp_path, workers):
    """By the server's own account. Answers cost 0.01 to 0.05, and up to 0.06 are possible."""
    account, spent, lock = Account(endpoint), [], threading.Lock()

    def answer(handler):
        with lock:
            written = 1_000 * (1 + len(spent) % 5)
            spent.append(100 * 1e-6 + written * 10e-6)
        say("[[C]]", usage={"prompt_tokens": 100, "completion_tokens": written})(handler)

    endpoint.always = answer
    study, warned = study_in(tmp_path), []
    run(study, judge_at(endpoint, max_tokens=5_000), max_cost=1.0, workers=workers, warn=warned.append)
    assert 0.9 < sum(spent) <= 1.0
    assert study.spent.cost == pytest.approx(sum(spent))
    assert any("is spent, and the next call may cost more than is left" in text for text in warned)
    assert not study.pending or workers > 1
    paid = len(spent)
    run(study, judge_at(endpoint, max_tokens=5_000), max_cost=1.0, workers=workers)
    assert len(spent) == paid  # the same command spends nothing more
    run(study, judge_at(endpoint, max_tokens=5_000), max_cost=1.5, workers=workers)
    assert 1.4 < sum(spent) <= 1.5
    assert account.paid == []


def test_a_ceiling_needs_a_price_and_a_limit(endpoint, tmp_path):
    for options, said in (({"price": None}, "the price of"), ({"max_tokens": None}, "--max-tokens")):
        with pytest.raises(shortlist.ShortlistError, match=said):
            run(study_in(tmp_path), judge_at(endpoint, **options), max_cost=1.0)
    with pytest.raises(shortlist.ShortlistError, match="the price of"):
        run(study_in(tmp_path), lambda first, second, case: first, max_cost=1.0)
    assert not endpoint.requests


def test_calls_that_may_have_been_paid_count_with_the_most(endpoint, tmp_path):
    """The connection broke after the request was sent, so the server may charge for it."""
    endpoint.script = [slam]
    study = study_in(tmp_path, max_votes=2)
    run(study, judge_at(endpoint), workers=1)
    broken = study.storage.replies("s")[0]
    assert "no answer from" in broken.reason
    assert broken.cost > 0.0002


def test_published_prices():
    small, large = (ListedPrice("gpt-4o-mini").cost(Tokens(read, 100)) for read in (1_000, 1_000_000))
    assert 0 < small < large
    with pytest.raises(shortlist.ShortlistError, match="does not know the model"):
        ListedPrice("no-such-model-at-all")


@pytest.mark.parametrize("comes_back", [True, False], ids=["comes back", "stays away"])
def test_words_and_costs_survive_a_storage_that_goes_away(comes_back, endpoint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    account, study = Account(endpoint), study_in(tmp_path)
    here, away = tmp_path / "s.db", tmp_path / "away.db"
    plain = endpoint.always

    def vanish(handler):
        with account.lock:
            if len(account.paid) == 7 and here.exists() and not away.exists():
                here.rename(away)
        plain(handler)

    def warn(text):
        if comes_back and "Trying again" in text:
            away.rename(here)

    endpoint.always = vanish
    if comes_back:
        run(study, judge_at(endpoint), warn=warn)
    else:
        with pytest.raises(StorageUnavailable):
            run(study, judge_at(endpoint), storage_patience=0.0)
        away.rename(here)
        close_databases()
        study = study_in(tmp_path)
        run(study, judge_at(endpoint))
    replies = study.storage.replies("s")
    assert len(replies) == len(account.paid) == len(set(account.paid))
    assert study.spent.cost == pytest.approx(0.0002 * len(account.paid))
    assert all(study.storage.texts("s")[reply.first_text] for reply in replies)
    assert not list(tmp_path.glob("*unsaved*"))
    close_databases()


def test_a_text_that_people_are_shown_is_kept_once(endpoint, tmp_path):
    study = study_in(tmp_path)
    contents = {item: f"text of {item}" for item in ITEMS}
    listed = [shortlist.Case(text, text) for text in CASES]
    save_texts(study, contents, listed)
    run(study, judge_at(endpoint), contents=contents, cases=listed)
    with study.storage.reading() as connection:
        assert connection.scalar(select(func.count()).select_from(texts)) == 0
    known = study.storage.texts("s")
    assert {known[reply.first_text] for reply in study.storage.replies("s")} <= set(contents.values())
    assert {known[reply.case_text] for reply in study.storage.replies("s")} <= set(CASES)
    close_databases()
