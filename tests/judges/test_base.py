import asyncio
import contextlib
import contextvars
import functools
import itertools
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest

import shortlist
from shortlist.errors import BadJudge, JudgeFailed, JudgeUnavailable, JudgeUnclear
from tests.judges.world import AT_ONCE, ITEMS, new_study, noisy, told
from tests.patience import PATIENCE


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
