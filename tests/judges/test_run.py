"""The runner against real studies: nothing that was paid for is lost, nothing is counted twice."""

import asyncio
import signal
import subprocess
import sys
import textwrap
import threading
import zlib

import pytest
from scipy.stats import binomtest

import shortlist
from shortlist.errors import BadInput, JudgeFailed, JudgeUnclear
from shortlist.judges.setup import set_up
from shortlist.study.storage import AnswerKey
from tests.judges.world import AT_ONCE, ITEMS, new_study, noisy, same, told
from tests.patience import PATIENCE, wait_until, wait_until_gone

CASES = [f"case {number}" for number in range(40)]


def run(study, judge, **options):
    return shortlist.run_study(study, judge, **{"backoff": AT_ONCE, "warn": lambda text: None, **options})


@pytest.mark.parametrize("seed", [2, 12, 198])
def test_a_proved_answer_says_of_every_item_whether_it_is_in_or_out(seed):
    """With these seeds the last sets are rejected by least cuts, and not by direct accounts alone."""

    def judge(first, second, case):
        is_slip = zlib.crc32((first + second + case.id).encode()) % 10 == 0
        return first if (first < second) != is_slip else second

    verdict = run(
        new_study(stopping="cuts", delta=0.05, seed=seed), judge, cases=[f"case {number}" for number in range(60)]
    ).verdict
    assert verdict.reason == "certified"
    assert sorted(verdict.certainly_in) == sorted(verdict.top) == ["ann", "bob"]
    assert sorted(verdict.certainly_out) == ["cid", "dee"]


@pytest.mark.parametrize("rule", ["edges", "glr", "posterior"])
def test_a_run_to_the_end(rule):
    study = new_study(stopping=rule, delta=0.001)
    found = run(study, noisy(), workers=4)
    assert found.verdict == study.verdict
    assert found.verdict.reason == "certified"
    assert set(found.verdict.top) == {"ann", "bob"}
    assert not study.pending
    assert found.costs.calls == len(study.rows) >= len(told(study)) >= found.verdict.votes


def test_one_worker_does_what_a_loop_by_hand_does():
    by_hand, judge = new_study(), noisy()
    while not by_hand.verdict.done:
        question = by_hand.ask(judge="judge")
        by_hand.tell(question, winner=judge(question.first, question.second))
    study = new_study()
    run(study, noisy(), workers=1)
    assert same(study, by_hand)
    assert study.verdict == by_hand.verdict


def test_workers_are_kept_busy():
    """Nobody answers before five are asked at once."""
    asked, all_busy = [], threading.Event()

    def judge(first, second):
        asked.append(first)
        if len(asked) == 5:
            all_busy.set()
        assert all_busy.wait(PATIENCE)
        return min(first, second)

    assert run(new_study(max_votes=40), judge, workers=5).verdict.done


def test_answers_are_told_when_they_arrive():
    """A slow first question keeps no other answer from being told."""
    slow = threading.Event()
    seen = []

    def judge(call):
        if call.id == 0:
            slow.wait(PATIENCE)
        return "first"

    def progress(so_far):
        seen.append(so_far.verdict.votes)
        if len(seen) == 5:
            slow.set()

    study = new_study(max_votes=10)
    run(study, shortlist.CallableJudge(judge, takes_call=True), workers=2, progress=progress)
    assert seen == list(range(1, 11))


def test_progress_shows_the_run():
    seen = []
    found = run(new_study(max_votes=6), noisy(), progress=seen.append)
    assert [one.verdict.votes for one in seen] == [1, 2, 3, 4, 5, 6]
    assert seen[0].costs is not found.costs
    assert seen[-1].stats == found.stats


def test_inside_a_running_loop():
    async def notebook():
        return run(new_study(max_votes=10), noisy(), workers=3)

    assert asyncio.run(notebook()).verdict.votes == 10


def test_a_failure_loses_no_answer(monkeypatch):
    """Eight calls under way: two are answered, one fails, two answer after the failure, the rest after these."""
    monkeypatch.setattr("shortlist.judges.run.GRACE", PATIENCE)
    two_told, failed, four_told = threading.Event(), threading.Event(), threading.Event()
    turn = {2: None, 3: None, 7: two_told, 4: failed, 5: failed}

    def judge(call):
        event = turn.get(call.id, four_told)
        assert event is None or event.wait(PATIENCE)
        if call.id == 7:
            raise RuntimeError("out of coffee")
        return "first"

    def progress(so_far):
        answers = {answer.question for answer in told(study)}
        for event, is_due in ((two_told, {2, 3} <= answers), (failed, so_far.skipped), (four_told, {4, 5} <= answers)):
            if is_due:
                event.set()

    study = new_study()
    judge = shortlist.CallableJudge(judge, takes_call=True)
    with pytest.raises(JudgeFailed, match="out of coffee") as caught:
        run(study, judge, workers=8, retries=0, progress=progress)
    assert caught.value.study is study
    answers = {answer.question for answer in told(study)}
    assert {2, 3, 4, 5} <= answers
    assert 7 not in answers
    assert study.rows[7].status != "pending"
    assert caught.value.run.costs.calls == len(study.rows)
    assert "out of coffee" in caught.value.run.skipped[7]


def test_the_next_run_answers_what_was_left_out_first(monkeypatch):
    monkeypatch.setattr("shortlist.judges.run.GRACE", 0.1)
    never = threading.Event()

    def stuck(call):
        if call.id == 3:
            raise RuntimeError("out of coffee")
        if call.id >= 1:
            never.wait(PATIENCE)
        return "first"

    study = new_study(max_votes=20)
    with pytest.raises(JudgeFailed):
        run(study, shortlist.CallableJudge(stuck, name="me", takes_call=True), workers=4, retries=0)
    never.set()
    left = [question.id for question in study.pending]
    assert set(left) <= {1, 2, 4, 5}
    asked = []
    again = shortlist.CallableJudge(lambda one: asked.append(one.id) or "second", name="me", takes_call=True)
    found = run(study, again, workers=1)
    assert asked[: len(left)] == left
    assert found.verdict.votes == 20
    assert not study.pending


def test_questions_of_others_are_left_alone():
    study = new_study(max_votes=10)
    theirs = study.ask(2, judge="somebody else")
    found = run(study, noisy())
    assert study.pending == theirs
    assert found.verdict.votes == 8
    assert not found.verdict.done
    assert "stopped without a proof: all 10 votes" in found.warnings[-1]
    mine = new_study(max_votes=10)
    mine.ask(2, judge="judge")
    assert run(mine, noisy(), resume=False).verdict.votes == 8
    assert run(mine, noisy()).verdict.done


def test_a_progress_that_raises_loses_nothing():
    study = new_study()

    def progress(so_far):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(study, noisy(), workers=4, progress=progress)
    assert 1 <= len(told(study)) <= 4
    assert run(study, noisy()).verdict.done


def test_ctrl_c_tells_what_has_arrived():
    """In a process of its own, by a real signal, while other calls are under way."""
    code = """
    import os, signal, threading, shortlist
    lock, count = threading.Lock(), 0
    def judge(first, second):
        global count
        with lock:
            count += 1
            mine = count
        if mine == 30:
            os.kill(os.getpid(), signal.SIGINT)
        if mine >= 30:
            threading.Event().wait()
        return min(first, second)
    study = shortlist.create_study([f"i{x}" for x in range(9)], k=3)
    try:
        shortlist.run_study(study, judge, workers=4, warn=lambda text: None)
    except KeyboardInterrupt:
        print(len(study.pending), study.verdict.votes, len(study.rows))
    study.skip(study.pending[0])
    print(shortlist.run_study(study, min, workers=4, warn=lambda text: None).verdict.top)
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    numbers, top = ran.stdout.splitlines()
    out, votes, asked = map(int, numbers.split())
    assert votes + out == asked
    assert votes >= 26
    assert 1 <= out <= 4
    assert set(eval(top)) == {"i0", "i1", "i2"}


def test_ctrl_c_does_not_strike_inside_a_transaction(tmp_path):
    """There it would leave the storage locked by the very process that wants to save the answers that have arrived."""
    code = f"""
    import os, signal, shortlist
    study = shortlist.create_study(["a", "b", "c", "d"], k=1, storage="sqlite:///{tmp_path}/studies.db", name="s")
    class Interrupted:
        def __init__(self, inner):
            self.inner = inner
        def __enter__(self):
            return self.inner.__enter__()
        def __exit__(self, *error):
            if study.verdict.votes == 5:
                os.kill(os.getpid(), signal.SIGINT)
            return self.inner.__exit__(*error)
    writing = study.storage.writing
    study.storage.writing = lambda name: Interrupted(writing(name))
    try:
        shortlist.run_study(study, min, workers=2, warn=lambda text: None)
    except KeyboardInterrupt:
        print(study.verdict.votes, len(study.pending))
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    votes, pending = map(int, ran.stdout.split())
    assert votes >= 5
    assert pending <= 2


def test_ctrl_c_kills_commands_under_way(tmp_path):
    log = tmp_path / "pids"
    code = f"""
    import shortlist
    judge = shortlist.CommandJudge(["sh", "-c", "echo $$ >> {log}; sleep 3600"])
    shortlist.run_study(shortlist.create_study(["a", "b", "c"], k=1), judge, workers=3)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stderr=subprocess.DEVNULL)
    wait_until(lambda: log.exists() and len(log.read_text().split()) == 3)
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) != 0
    for pid in map(int, log.read_text().split()):
        wait_until_gone(pid)


def test_a_judge_that_only_skips_ends_the_run():
    study = new_study()
    with pytest.raises(JudgeFailed, match="the last 20 questions were all skipped; reason of the last skip: too dark"):
        run(study, lambda first, second: shortlist.Skip("too dark"), workers=1)
    assert len(study.rows) == 20


def test_a_voided_judge_stops():
    study = new_study()

    def progress(so_far):
        if so_far.verdict.votes == 5:
            study.void("judge")

    with pytest.raises(shortlist.ShortlistError, match="voided"):
        run(study, noisy(), progress=progress)
    assert not study.pending


@pytest.mark.parametrize(
    "options",
    [{"workers": 0}, {"workers": 2.5}, {"position": "left"}, {"retries": -1}, {"time_limit": -1}, {"contents": {}},
     {"contents": 3}, {"cases": []}],
)  # fmt: skip
def test_settings_that_make_no_sense(options):
    study = new_study()
    with pytest.raises(BadInput):
        run(study, lambda *pair: pair[0], **options)
    assert not study.rows


def test_contents_by_a_function_and_what_may_be_missing():
    seen = {}

    def judge(call):
        seen[call.first] = call.first_text
        return "first"

    judge = shortlist.CallableJudge(judge, takes_call=True)
    run(new_study(max_votes=8), judge, contents=lambda item, case: f"{item} on {case}")
    assert seen == {item: f"{item} on None" for item in seen}
    with pytest.raises(JudgeFailed, match=r"text of '\w+'"):
        run(new_study(), judge, contents=lambda item, case: None, cases=["one"], workers=1)
    for contents in (
        {item: {"x": "text"} for item in ITEMS},
        dict.fromkeys(ITEMS, 3),
    ):  # known before anything is asked
        study = new_study()
        with pytest.raises(BadInput, match=r"text of '\w+'"):
            run(study, judge, contents=contents, cases=["one"], workers=1)
        assert not study.rows


def test_a_measured_difference_cannot_be_a_winner():
    study = shortlist.create_study(["a", "b"], k=1, family="gaussian")
    with pytest.raises(JudgeFailed, match="needs the measured difference"):
        run(study, min)
    found = run(shortlist.create_study(["a", "b"], k=1, family="gaussian"), lambda a, b: 3.0 if a < b else -3.0)
    assert found.verdict.top == ("a",)


# --- cases ---


@pytest.mark.parametrize("workers", [1, 4])
def test_known_answers_are_free(workers):
    """With one worker this is exact; with four, up to three calls and the questions that wait for them may be under way
    when the study ends, and are given up."""
    calls = []

    def judge(first, second, case):
        calls.append((first, second, case.id))
        return min(first, second)

    cache, given_up = shortlist.MemoryCache(), workers - 1
    study = new_study(max_votes=120, delta=1e-9)
    found = run(study, judge, cases=CASES[:5], cache=cache, workers=workers)
    votes, paid_or_saved = len(told(study)), found.costs.calls + found.costs.saved
    assert votes <= paid_or_saved <= votes + found.costs.skips
    assert found.costs.saved > 0
    assert found.costs.skips <= given_up
    before = list(calls)
    assert len(before) == len(set(before))
    assert len(before) - given_up <= len(cache) <= len(before)
    again = run(new_study(max_votes=120, delta=1e-9), judge, cases=CASES[:5], cache=cache, workers=workers)
    later = calls[len(before) :]
    assert len(later) == len(set(later))
    assert len(set(before) & set(later)) <= given_up
    assert set(again.verdict.top) == set(found.verdict.top) == {"ann", "bob"}


def test_a_run_that_knows_everything_makes_no_call():
    def judge(first, second, case):
        raise AssertionError("never asked")

    def key(first, second, case):
        setup = set_up(new_study(), shortlist.CallableJudge(judge), cases, None)
        return setup.key(shortlist.Call(0, first, second, case=case))

    cache, cases = shortlist.MemoryCache(), [shortlist.Case("c", "text")]
    for first in ITEMS:
        for second in ITEMS:
            if first != second:
                cache.add(key(first, second, cases[0]), float(first < second))

    found = run(new_study(), judge, cases=cases, cache=cache)
    assert found.costs.calls == 0
    assert set(found.verdict.top) == {"ann", "bob"}
    assert found.costs.saved == found.verdict.votes
    assert cache.find(key("bob", "ann", cases[0])) == 0.0
    assert cache.find(key("bob", "ann", shortlist.Case("c", "another text"))) is None


def test_the_first_answer_stays_in_the_book():
    cache, key = shortlist.MemoryCache(), AnswerKey("me", "c", "a", "b", "shown")
    cache.add(key, 1.0)
    cache.add(key, 0.0)
    assert cache.find(key) == 1.0
    assert cache.find(AnswerKey("you", "c", "a", "b", "shown")) is None
    assert cache.find(AnswerKey("me", "c", "a", "b", "shown then")) is None


def test_one_call_serves_all_who_wait_for_it():
    """Many questions on one pair and one case at once: two calls, one per order."""
    calls = []

    async def judge(first, second, case):
        calls.append((first, second))
        while len(study.rows) < 8:
            await asyncio.sleep(0.001)
        return first

    study = shortlist.create_study(["a", "b"], k=1, max_votes=8, tolerance=0.01)  # so that no answer decides alone
    found = run(study, judge, cases=["one"], workers=8)
    assert sorted(calls) == [("a", "b"), ("b", "a")]
    assert (found.costs.calls, found.costs.saved, found.verdict.votes) == (2, 6, 8)


@pytest.mark.parametrize("position", ["random", "both"])
def test_calls_whose_answer_is_known_are_not_made(position):
    asked = []

    def judge(call):
        asked.append(call)
        return min(call.first, call.second)

    def known(call):
        pair = {call.first, call.second}
        return 0.5 if pair == {"ann", "bob"} else float(call.first == "dee") if "dee" in pair else None

    study = shortlist.create_study(ITEMS, k=3)  # dee wins by what is known, although the judge prefers ann
    judged = shortlist.CallableJudge(judge, takes_call=True)
    options = {"cases": ["x", "y"], "position": position, "max_calls": 50, "workers": 1}  # none under way at the end
    done = run(study, judged, known_answer=known, **options)
    assert not any(known(call) is not None for call in asked)
    assert done.costs.calls == len(asked)
    counted = [row for row in study.rows if row.status == "counted"]
    assert {row.outcome for row in counted if {row.first, row.second} == {"ann", "bob"}} <= {0.5}
    assert all(row.outcome == (row.first == "dee") for row in counted if "dee" in (row.first, row.second))
    assert "dee" in done.verdict.top


def test_without_cases_nothing_is_reused():
    cache = shortlist.MemoryCache()
    found = run(new_study(max_votes=30, delta=1e-9), min, cache=cache)
    assert found.costs.saved == len(cache) == 0
    assert found.costs.calls == found.verdict.votes


def test_cases_can_be_told_from_the_study_alone():
    """What a case was is not written down: seed and question say it."""
    from shortlist.core.draws import draw_case
    from shortlist.judges.cases import check_cases

    seen, study = {}, new_study(max_votes=30, seed=5)
    judge = shortlist.CallableJudge(lambda call: seen.setdefault(call.id, call.case) and "first", takes_call=True)
    run(study, judge, cases=CASES)
    assert seen == {number: draw_case(5, number, check_cases(CASES)) for number in seen}


@pytest.mark.slow
def test_reused_answers_keep_the_promise():
    """A judge with a fixed opinion on each case; by the average over cases, `b` is a little better than `a`."""
    for_a = [number < 17 for number in range(40)]

    def judge(first, second, case):
        return "a" if for_a[int(case.text)] else "b"

    wrong = 0
    for seed in range(40):
        study = shortlist.create_study(["a", "b"], k=1, delta=0.2, sampling="uniform", seed=seed, max_votes=100)
        found = run(study, judge, cases=[str(number) for number in range(40)], workers=1)
        assert found.costs.calls <= 80
        wrong += found.verdict.reason == "certified" and found.verdict.top == ("a",)
    assert binomtest(wrong, 40, 0.2, alternative="greater").pvalue > 1e-3


# --- positions ---


def test_one_call_answers_questions_of_either_order():
    """Two questions about one pair and case, put the other way round, wait for the same call."""
    study = shortlist.create_study(["a", "b"], k=1, delta=1e-9, max_votes=60)

    async def judge(first, second, case):
        await asyncio.sleep(0.01)
        return "a"

    found = run(study, judge, position="both", workers=8, cases=["one", "two"])
    assert found.costs.saved > 0
    assert found.stats.flips == 0
    firsts = {answer.first for answer in study.rows if answer.outcome is not None}
    assert firsts == {"a", "b"}
    for answer in study.rows:
        assert answer.outcome in (None, float(answer.first == "a"))


def test_both_orders_are_one_vote():
    calls = []

    def judge(first, second):
        calls.append((first, second))
        return first if {first, second} == {"ann", "bob"} else min(first, second)

    study = new_study(max_votes=30, delta=1e-9)
    found = run(study, judge, position="both", workers=3)
    assert found.verdict.votes == 30
    assert found.costs.calls == len(calls) == 60
    flips = 0
    for answer in told(study):
        question = answer
        if {question.first, question.second} == {"ann", "bob"}:
            assert answer.outcome == 0.5
            flips += 1
        else:
            assert answer.outcome == float(question.first < question.second)
    assert found.stats.both == 30
    assert found.stats.flips == flips
    assert found.stats.flip_rate == flips / 30


def test_grades_in_both_orders_are_averaged():
    study = shortlist.create_study(["a", "b"], k=1, max_votes=1)
    run(study, lambda first, second: 0.9 if first == "a" else 0.3, position="both")
    seen = told(study)[0]
    assert seen.outcome == pytest.approx(0.8 if seen.first == "a" else 0.2)


def test_a_judge_who_only_looks_at_positions():
    found = run(new_study(max_votes=60), lambda first, second: "first")
    assert found.stats.first_share == 1.0
    assert found.stats.flip_rate is None
    study = new_study(max_votes=60)
    both = run(study, lambda first, second: "first", position="both")
    assert {answer.outcome for answer in told(study)} == {0.5}
    assert both.stats.flip_rate == 1.0


def test_a_fair_judge_has_no_favourite_side():
    found = run(new_study(max_votes=200, delta=1e-12), noisy(), workers=1)
    assert binomtest(round(found.stats.first_wins), found.stats.answers).pvalue > 1e-3
    assert run(new_study(max_votes=3), lambda *pair: "tie").stats.first_share == 0.5


def test_both_orders_with_cases_are_looked_up_one_by_one():
    cache = shortlist.MemoryCache()
    study = shortlist.create_study(["a", "b"], k=1, max_votes=6, tolerance=0.01)
    found = run(study, lambda first, second, case: "first", cases=["one"], cache=cache, position="both", workers=1)
    assert (found.costs.calls, found.costs.saved, len(cache)) == (2, 10, 2)


def test_half_an_answer_is_no_vote():
    judge = shortlist.CallableJudge(
        lambda call: shortlist.Skip("tired") if call.turned and call.id == 1 else "first", takes_call=True
    )
    study = new_study(max_votes=4)
    found = run(study, judge, position="both", workers=1)
    assert dict(found.skipped) == {1: "tired"}
    assert found.costs.calls == 10


def test_a_run_ends_when_its_answers_decide():
    """Both items win on half of the cases, so no bet can ever prove anything: all eight cells are asked."""
    study = shortlist.create_study(["b", "a"], k=1)
    found = run(study, lambda first, second, case: min(first, second) if int(case.id) % 2 else max(first, second),
                cases=[shortlist.Case(str(place), f"case {place}") for place in range(4)])  # fmt: skip
    assert (found.verdict.reason, found.verdict.top) == ("certified", ("b",))
    assert found.costs.calls == 8
    assert (
        "b and a are exactly equal over all cases; b is in the top because it is listed first." in found.verdict.caveats
    )


def test_a_question_is_answered_in_the_orders_it_was_asked_in():
    """A run that asks in both orders takes over a question that was asked in one: the answer is still about one."""
    study = shortlist.create_study(["a", "b"], k=1, seed=3)
    cases = [shortlist.Case(str(place), f"case {place}") for place in range(3)]

    def judge(first, second, case):
        return first  # so that both orders together are a tie

    name = shortlist.CallableJudge(judge).name
    study.ask(judge=name, cases=[case.id for case in cases], cells=1)
    run(study, judge, cases=cases, workers=1, position="both")
    assert study.row(0).outcome == 1.0
    assert {row.outcome for row in study.rows[1:]} == {0.5}


def test_what_is_refused_twice_does_not_keep_a_run_from_ending():
    study = shortlist.create_study(["a", "b"], k=1)

    def judge(first, second, case):
        if (first, case.id) == ("a", "0"):
            raise JudgeUnclear("no answer to this")
        return "tie"

    found = run(study, judge, cases=[shortlist.Case(str(place), f"case {place}") for place in range(3)], retries=0)
    assert (found.verdict.reason, found.verdict.top) == ("certified", ("a",))
    assert "1 questions that the judge did not answer clearly count as ties." in found.verdict.caveats
