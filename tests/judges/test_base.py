import asyncio
import contextlib
import contextvars
import functools
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
from collections import Counter

import numpy as np
import pytest

import shortlist
from shortlist.errors import BadCases, BadJudge, BadOutcome, JudgeFailed, JudgeUnavailable, JudgeUnclear
from shortlist.study.sql import close_databases
from tests.judges.world import AT_ONCE, ITEMS, new_study, noisy, told
from tests.patience import PATIENCE, wait_until


def run(judge, votes=4, **options):
    study = new_study(max_votes=votes)
    quick = {"backoff": AT_ONCE, "workers": 2, "retries": 0, "warn": lambda text: None, **options}
    return study, shortlist.run_study(study, judge, **quick)


async def later(first, second):
    await asyncio.sleep(0.001)
    return min(first, second)


class Object:
    async def __call__(self, first, second):
        return await later(first, second)


@pytest.mark.parametrize(
    "judge",
    [
        min,
        later,
        Object(),
        functools.partial(later),
        lambda a, b: later(a, b),
        lambda *both: np.float64(both[0] < both[1]),
    ],
    ids=["plain", "async", "object", "partial", "returns an awaitable", "number"],
)
def test_functions_of_all_kinds(judge):
    study, found = run(judge, votes=6)
    assert found.verdict.votes == 6
    for answer in told(study):
        assert answer.outcome == float(answer.first < answer.second)


def test_sides_ties_grades_and_skips():
    answers = iter(["first", "second", "tie", 0.25, True, shortlist.Reply("first"), shortlist.Skip("dark"), 1])
    study, found = run(lambda first, second: next(answers), votes=7, workers=1)
    assert [answer.outcome for answer in told(study)] == [1.0, 0.0, 0.5, 0.25, 1.0, 1.0, 1.0]
    assert dict(found.skipped) == {6: "dark"}


def test_names_go_before_sides():
    study = shortlist.create_study(["first", "second"], k=1, max_votes=6)
    shortlist.run_study(study, lambda first, second: "second", workers=1)
    assert {answer.outcome == float(answer.first == "second") for answer in told(study)} == {True}


def test_the_whole_call_and_the_case():
    seen = []
    judge = shortlist.CallableJudge(lambda call: seen.append(call) or "first", name="me", takes_call=True)
    contents = {item: item.upper() for item in ITEMS}
    study, found = run(judge, votes=1, cases=["one"], contents=contents)
    question = study.question(0)
    assert (seen[0].id, seen[0].first, seen[0].second) == (0, question.first, question.second)
    assert (seen[0].first_text, seen[0].second_text) == (question.first.upper(), question.second.upper())
    assert seen[0].case.text == "one"
    assert question.judge == found.stats.judge == "me"
    run(lambda first, second, case: seen.append(case) or "first", votes=1, cases=["two"])
    assert seen[-1].text == "two"


def test_a_function_that_cannot_be_called_that_way():
    for judge, cases in ((lambda a: a, None), (lambda a, b: a, ["one"]), (lambda a, b, c: a, None)):
        with pytest.raises(BadJudge, match=r"cannot be called with \(first, second"):
            run(judge, cases=cases)
    with pytest.raises(BadJudge, match="is not a judge"):
        run("gpt")


@pytest.mark.parametrize("failure", [RuntimeError("tired"), StopIteration(), SystemExit(3), KeyboardInterrupt()])
@pytest.mark.parametrize("is_async", [False, True])
def test_whatever_a_judge_raises_is_reported(failure, is_async):
    def judge(first, second):
        raise failure

    async def async_judge(first, second):
        raise failure

    with pytest.raises(JudgeFailed, match="the judge failed on") as caught:
        run(async_judge if is_async else judge)
    assert type(failure).__name__ in repr(caught.value) or isinstance(failure, StopIteration)


def test_a_judge_that_cancels_itself():
    async def judge(first, second):
        raise asyncio.CancelledError

    with pytest.raises(JudgeFailed, match="CancelledError"):
        run(judge)


def test_a_judge_may_say_what_kind_of_trouble_it_has():
    troubles = iter([JudgeUnclear("hm", (3, 4)), JudgeUnavailable("busy", 0.01), RuntimeError("odd"), None])

    def judge(first, second):
        trouble = next(troubles, None)
        if trouble:
            raise trouble
        return first

    _, found = run(judge, retries=3, workers=1)
    assert (found.costs.retries, found.costs.unclear, found.costs.prompt_tokens) == (3, 1, 3)


def test_hung_threads_do_not_use_up_the_workers():
    free, hung = threading.Event(), []

    def judge(first, second):
        if len(hung) < 5:
            hung.append(first)
            free.wait(PATIENCE)
        return first

    _, found = run(judge, votes=4, time_limit=0.2)
    free.set()
    assert found.verdict.votes == 4
    assert found.costs.skips == found.costs.unclear >= 5
    assert set(found.skipped.values()) == {"no answer within 0.2 seconds"}


def test_an_async_judge_is_cancelled_when_its_time_is_up():
    ended = []

    async def judge(first, second):
        try:
            await asyncio.sleep(0.0 if len(ended) >= 2 else PATIENCE)
        except asyncio.CancelledError:
            ended.append(first)
            raise
        return first

    _, found = run(judge, time_limit=0.2, workers=1)
    assert len(ended) == found.costs.skips >= 2


def test_context_variables_reach_the_judge():
    who = contextvars.ContextVar("who", default="nobody")
    who.set("me")
    seen = set()
    run(lambda first, second: seen.add(who.get()) or first)
    assert seen == {"me"}


def test_a_blocked_judge_does_not_keep_python_from_ending():
    code = (
        "import shortlist, time\n"
        "judge = lambda a, b: time.sleep(3600)\n"
        "try: shortlist.run_study(shortlist.create_study(['a', 'b'], k=1), judge, time_limit=0.05, retries=0)\n"
        "except shortlist.ShortlistError: print('done')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout == "done\n"


def test_find_top_tries_again_if_told_to():
    judge = noisy()

    def flaky(calls):
        def once(first, second):
            if next(calls) == 3:
                raise ConnectionError
            return judge(first, second)

        return once

    with pytest.raises(JudgeFailed, match="ConnectionError"):
        shortlist.find_top(ITEMS, k=2, judge=flaky(itertools.count()))
    verdict = shortlist.find_top(ITEMS, k=2, judge=flaky(itertools.count()), retries=1, delta=0.1)
    assert set(verdict.top) == {"ann", "bob"}


def test_a_judge_of_another_kind():
    class Odd:
        name, max_parallel = "odd", 1

        def __init__(self, reply):
            self.reply = reply

        @contextlib.asynccontextmanager
        async def open(self):
            yield self.ask

        async def ask(self, call):
            return self.reply

    _, found = run(Odd(shortlist.Reply("tie")), workers=5)
    assert found.stats.first_share == 0.5
    with pytest.raises(JudgeFailed, match="returned a str, not a Reply"):
        run(Odd("tie"))
    with pytest.raises(BadJudge, match="is not a judge"):
        run(pathlib.Path("odd"))


def votes_study(items="ab", **options):
    return shortlist.create_study(list(items), k=1, delta=1e-30, **options)


def quiet(text):
    pass


def test_each_vote_is_used_once_whatever_side_it_was_recorded_from():
    judge = shortlist.RecordedJudge(["a", "b", "b", "a"], ["b", "a", "a", "b"], [1, 0, 0, 0])  # a wins 3 of 4
    orders = set()
    for seed in range(20):
        study = votes_study(seed=seed)
        run = shortlist.run_study(study, judge, warn=quiet)
        a_wins = [answer.outcome == (answer.first == "a") for answer in told(study)]
        assert sorted(a_wins) == [False, True, True, True]
        assert {answer.case for answer in told(study)} == {"vote 1", "vote 2", "vote 3", "vote 4"}
        assert run.used_up
        assert run.warnings == (
            "All recorded votes on the pairs that a proof needs are used up: 4 of 4 votes were used. Not proved.",
        )
        orders.add(tuple(answer.case for answer in told(study)))
    assert len(orders) > 10


def test_the_order_is_uniform_and_the_same_again():
    judge = shortlist.RecordedJudge(["a"] * 3, ["b"] * 3, [1, 1, 1])
    first = Counter()
    for seed in range(600):
        study = votes_study(seed=seed)
        first[study.ask(cases=judge.votes_on(study.items), once=True).case] += 1
    assert all(150 < count < 250 for count in first.values())
    orders = []
    for _ in range(2):
        study = votes_study(seed=5)
        shortlist.run_study(study, judge, warn=quiet)
        orders.append([answer.case for answer in told(study)])
    assert orders[0] == orders[1]


def test_pairs_without_votes_are_never_asked():
    judge = shortlist.RecordedJudge(["a", "b"], ["b", "c"], [1, 1])
    study = votes_study("abc")
    shortlist.run_study(study, judge, warn=quiet)
    assert {frozenset((row.first, row.second)) for row in study.rows} == {frozenset("ab"), frozenset("bc")}
    nothing = shortlist.run_study(votes_study("cd"), judge, warn=quiet)
    assert (nothing.used_up, nothing.verdict.votes) == (True, 0)


def test_a_question_uses_up_a_whole_unit_on_every_pair():
    first, second, unit = "aaabb", "bbccc", ["x", "x", "x", "y", None]
    judge = shortlist.RecordedJudge(list(first), list(second), [1, 0, 1, 1, 1], unit=unit)
    for seed in range(20):
        study = votes_study("abc", seed=seed)
        run = shortlist.run_study(study, judge, warn=quiet)
        assert sorted(row.case for row in study.rows) == ["unit x", "unit y", "vote 5"]
        assert "3 of 3 units were used" in run.warnings[-1]
        for row in study.rows:  # of two votes on one pair the first counts
            if {row.first, row.second} == {"a", "b"}:
                assert row.outcome == (row.first == "a")


def test_a_second_run_under_another_name_uses_nothing_again():
    votes = ["a"] * 5, ["b"] * 5, [1, 1, 1, 1, 1]
    study = votes_study()
    shortlist.run_study(study, shortlist.RecordedJudge(*votes), warn=quiet)
    shortlist.run_study(study, shortlist.RecordedJudge(*votes, name="other"), warn=quiet)
    assert len(study.rows) == 5


def test_a_question_without_a_recorded_vote_is_skipped():
    judge = shortlist.RecordedJudge(["a"], ["b"], [1])
    study = votes_study()
    study.ask(judge=judge.name)
    shortlist.run_study(study, judge, warn=quiet)
    assert study.counts["skipped"] == study.counts["counted"] == 1


def test_measured_differences():
    judge = shortlist.RecordedJudge(["a", "b"], ["b", "a"], [2.5, -2.5], family="gaussian")
    study = shortlist.create_study(["a", "b"], k=1, family="gaussian", max_votes=5)
    shortlist.run_study(study, judge, position="both", warn=quiet)
    assert {answer.outcome * (1 if answer.first == "a" else -1) for answer in told(study)} == {2.5}


def test_lists_that_make_no_sense():
    for first, second, outcome in (([], [], []), (["a"], ["b", "c"], [1]), (["a"], ["b"], [])):
        with pytest.raises(BadJudge):
            shortlist.RecordedJudge(first, second, outcome)
    with pytest.raises(BadJudge):
        shortlist.RecordedJudge(["a"], ["b"], [1], unit=[])
    with pytest.raises(BadOutcome):
        shortlist.RecordedJudge(["a"], ["b"], [7])
    with pytest.raises(BadCases, match="leave out cases"):
        shortlist.run_study(votes_study(), shortlist.RecordedJudge(["a"], ["b"], [1]), cases=["x"])


@pytest.mark.slow
def test_several_processes_and_a_kill_use_no_vote_twice(tmp_path):
    items = list("abcdef")
    rows = [
        f"{one},{other},{(one, other)[n % 2]}" for one in items for other in items if one < other for n in range(40)
    ]
    (tmp_path / "items.txt").write_text("\n".join(items))
    (tmp_path / "votes.csv").write_text("\n".join(["first,second,winner", *rows]))
    command = [sys.executable, "-m", "shortlist", "run", "items.txt", "-k", "2", "--votes", "votes.csv", "--json"]
    command += ["--delta", "1e-12"]
    url = f"sqlite:///{tmp_path / 'shortlist.db'}"
    start = {"cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "env": {**os.environ}}
    shortlist.create_study(items, 2, 1e-12, storage=url, name="items")
    killed, *others = [subprocess.Popen(command, **start) for _ in range(3)]
    study = shortlist.load_study("items", url)
    wait_until(lambda: study.refresh().votes > 60 or killed.poll() is not None)
    killed.send_signal(signal.SIGKILL)
    for process in (killed, *others):
        process.communicate()
    last = json.loads(subprocess.run(command, **start, check=False).stdout)
    study.refresh()
    assert last["votes"] == len(rows) == len(study.rows) == len({row.case for row in study.rows})
    assert study.counts["counted"] == len(rows)
    close_databases()
