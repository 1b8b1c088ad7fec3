"""Two runs with one judge: each question is with one of them, and a run that is gone holds nothing back."""

import os
import subprocess
import sys
import threading

import pytest

import shortlist
from shortlist.judges.pending import EXPIRES_AFTER, RunLease
from tests.judges.world import new_study
from tests.patience import PATIENCE

LEAVE = """
import os, sys, shortlist
from shortlist.judges.pending import RunLease
study = shortlist.load_study("demo", sys.argv[1])
with RunLease(study) as lease:
    study.ask(3, judge="judge", run=lease.id)
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(9)
"""


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'studies.db'}"


def test_questions_are_free_when_their_run_has_ended():
    study = new_study()
    with RunLease(study) as one, RunLease(study) as two:
        mine = study.ask(2, judge="judge", run=one.id)
        assert two.take_over("judge") == []
        nobodys = study.ask(judge="judge")
        assert two.take_over("judge") == [nobodys]
        assert one.take_over("judge") == []
    assert study.storage.beats(study.name) == {}
    with RunLease(study) as three:
        assert three.take_over("judge") == [*mine, nobodys]


def test_questions_of_a_process_are_free_when_it_is_dead(url):
    study = new_study(storage=url, name="demo")
    other = subprocess.Popen([sys.executable, "-c", LEAVE, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout.readline() == b"ready\n"
    with RunLease(study) as lease:
        assert lease.take_over("judge") == []
        other.communicate()
        assert len(study.storage.beats("demo")) == 2
        assert [question.id for question in lease.take_over("judge")] == [0, 1, 2]


def test_a_run_on_another_machine_is_given_up_after_a_while():
    study = new_study()
    away = f"elsewhere {os.getpid()} 1 0"
    question = study.ask(judge="judge", run=away)
    with RunLease(study) as lease:
        study.storage.beat(study.name, away, EXPIRES_AFTER)
        assert lease.take_over("judge") == []
        study.storage.beat(study.name, away, -1.0)  # it was not renewed in time
        assert lease.take_over("judge") == [question]


def test_a_run_that_begins_during_the_look_keeps_its_questions(url, monkeypatch):
    new_study(storage=url, name="demo")
    one, two = (shortlist.load_study("demo", url) for _ in range(2))
    look = one.storage.beats
    with RunLease(one) as early, RunLease(two) as late:
        two.storage.leave("demo", late.id)

        def slow_look(name):
            seen = look(name)
            two.storage.beat(name, late.id, EXPIRES_AFTER)  # `late` begins now, and asks
            two.ask(judge="judge", run=late.id)
            return seen

        monkeypatch.setattr(one.storage, "beats", slow_look)
        assert early.take_over("judge") == []


def test_a_run_renews_its_lease_before_each_step_on_a_slow_storage(monkeypatch):
    monkeypatch.setattr("shortlist.judges.pending.RENEW_EVERY", 0.0)
    study = new_study(max_votes=5, delta=1e-9)
    tell, left = study.tell, []

    def judge(first, second):
        (run,) = study.storage.beats(study.name)
        study.storage.beat(study.name, run, -1.0)  # the step before took longer than the lease
        return "first"

    def watched(*answer):
        left.extend(study.storage.beats(study.name).values())
        return tell(*answer)

    monkeypatch.setattr(study, "tell", watched)
    shortlist.run_study(study, judge, warn=lambda text: None)
    assert len(left) == 5
    assert min(left) > 0


def test_a_run_takes_over_from_one_that_ends_meanwhile(monkeypatch):
    monkeypatch.setattr("shortlist.judges.pending.RENEW_EVERY", 0.0)
    study = new_study(max_votes=30, delta=1e-9)
    away = "elsewhere 1 1 0"
    study.ask(3, judge="judge", run=away)
    study.storage.beat(study.name, away, EXPIRES_AFTER)
    asked = []

    def judge(first, second):
        asked.append(first)
        if len(asked) == 10:
            study.storage.leave(study.name, away)
        return "first"

    found = shortlist.run_study(study, judge, workers=2, warn=lambda text: None)
    assert found.verdict.votes == len(asked) == 30
    assert not study.pending


def test_two_runs_with_one_judge_do_not_do_the_work_twice(url):
    """All runs have questions pending at the same time, and none answers a question of another.

    No call is answered before each run has made one: else one run could use up all votes before another begins.
    """
    new_study(storage=url, name="demo", max_votes=60, delta=1e-9)
    asked, runs, lock, all_asked = [], set(), threading.Lock(), threading.Event()

    def work(run):
        def judge(call):
            with lock:
                asked.append(call.id)
                runs.add(run)
                if len(runs) == 3:
                    all_asked.set()
            assert all_asked.wait(PATIENCE)
            return "first"

        study = shortlist.load_study("demo", url)
        made = shortlist.CallableJudge(judge, takes_call=True)
        shortlist.run_study(study, made, workers=4, warn=lambda text: None)

    hands = [threading.Thread(target=work, args=(run,)) for run in range(3)]
    for hand in hands:
        hand.start()
    for hand in hands:
        hand.join()
    assert len(asked) == len(set(asked))
    assert shortlist.load_study("demo", url).verdict.votes == 60


def test_what_was_paid_for_is_known_to_the_next_process(url):
    """The study ends in the middle; a second one with the same judge, pairs and cases calls nobody."""
    calls = []

    def judge(first, second, case):
        calls.append((first, second, case.id))
        return min(first, second)

    options = {"cases": ["one", "two"], "workers": 1, "warn": lambda text: None}
    study = new_study(storage=url, name="demo", max_votes=60, delta=1e-9, tolerance=0.01)

    def stop(so_far):
        if so_far.verdict.votes == 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shortlist.run_study(study, judge, progress=stop, **options)
    before = set(calls)
    assert len(before) == len(calls)
    from shortlist.study.sql import close_databases

    close_databases()
    again = shortlist.load_study("demo", url)
    found = shortlist.run_study(again, judge, **options)
    assert found.verdict.done
    assert len(calls) == len(set(calls)) <= 4 * 3 * 2
    assert found.costs.calls == len(calls) - len(before)
    cases = {answer.case for answer in again.rows}
    assert len(cases) == 2


def test_half_a_question_is_not_paid_for_again(url):
    """In both orders without cases: the first answer waits for the second, also across a failure."""
    study = new_study(storage=url, name="demo", max_votes=20, delta=1e-9)
    calls, second_orders = [], []

    def judge(call):
        calls.append(call.key)
        if call.turned:
            second_orders.append(call.key)
            if len(second_orders) == 5:
                raise RuntimeError("out of coffee")
        return "first"

    def run():
        made = shortlist.CallableJudge(judge, name="me", takes_call=True)
        return shortlist.run_study(study, made, workers=4, position="both", retries=0, warn=lambda text: None)

    with pytest.raises(shortlist.errors.JudgeFailed):
        run()
    assert run().verdict.votes == 20
    assert len(calls) == len(set(calls))


def test_an_open_question_needs_its_case():
    def judge(first, second, case=None):
        return "tie"

    study = new_study(max_votes=10)
    study.ask(judge="judge", cases=["gone"], once=True)
    for options in ({}, {"cases": ["one"]}):
        with pytest.raises(shortlist.ShortlistError, match="question 0 is pending on case 'gone', which was not given"):
            shortlist.run_study(study, judge, warn=lambda text: None, **options)
