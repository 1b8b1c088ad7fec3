"""`arun_study`: the same run from a running event loop, which stays free."""

import asyncio
import threading

import pytest

import shortlist
from shortlist.errors import JudgeFailed
from tests.judges.world import AT_ONCE, new_study, noisy, same, told
from tests.patience import PATIENCE

QUIET = {"backoff": AT_ONCE, "warn": lambda text: None}


def test_it_does_what_run_study_does():
    async def notebook():
        return await shortlist.arun_study(study, noisy(), workers=1, **QUIET)

    study, other = new_study(), new_study()
    found = asyncio.run(notebook())
    assert found.verdict == shortlist.run_study(other, noisy(), workers=1, **QUIET).verdict
    assert same(study, other)


def test_the_event_loop_stays_free():
    """The judge answers only after the caller's loop has done something else."""

    async def notebook():
        async def work():
            await asyncio.to_thread(asked.wait, PATIENCE)
            free.set()

        working = asyncio.create_task(work())
        found = await shortlist.arun_study(new_study(max_votes=5), judge, **QUIET)
        await working
        return found

    asked, free = threading.Event(), threading.Event()

    def judge(first, second):
        asked.set()
        assert free.wait(PATIENCE)
        return "first"

    assert asyncio.run(notebook()).verdict.votes == 5


def test_two_studies_at_the_same_time():
    """Each judge waits for the other."""
    both = threading.Barrier(2, timeout=PATIENCE)

    def judge(first, second):
        both.wait()
        return min(first, second)

    async def notebook():
        studies = (new_study(max_votes=5), new_study(max_votes=5))
        return await asyncio.gather(*(shortlist.arun_study(study, judge, workers=1, **QUIET) for study in studies))

    assert [found.verdict.votes for found in asyncio.run(notebook())] == [5, 5]


def test_failures_reach_the_caller():
    def judge(first, second):
        raise RuntimeError("out of coffee")

    study = new_study()
    with pytest.raises(JudgeFailed, match="out of coffee") as caught:
        asyncio.run(shortlist.arun_study(study, judge, retries=0, **QUIET))
    assert caught.value.study is study
    with pytest.raises(shortlist.ShortlistError, match="workers"):
        asyncio.run(shortlist.arun_study(study, judge, workers=0))


@pytest.mark.parametrize("is_async", [False, True])
def test_cancelling_stops_the_run_and_loses_nothing(is_async):
    """Ten votes are told and three calls hang when the task is cancelled; the next run answers these first."""
    calls, ten_told, never, cancelled = [], threading.Event(), threading.Event(), []

    def judge(call):
        calls.append(call.id)
        if call.id >= 10:
            never.wait(PATIENCE)
        return "first"

    async def async_judge(call):
        calls.append(call.id)
        try:
            if call.id >= 10:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(call.id)
            raise
        return "first"

    def progress(so_far):
        if len(told(study)) == 10:
            ten_told.set()

    async def notebook():
        made = shortlist.CallableJudge(async_judge if is_async else judge, name="me", takes_call=True)
        task = asyncio.create_task(shortlist.arun_study(study, made, workers=3, progress=progress, **QUIET))
        assert await asyncio.to_thread(ten_told.wait, PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert study.storage.beats(study.name) == {}  # the run has ended, not just the task

    study = new_study(max_votes=20, delta=1e-9)
    asyncio.run(notebook())
    never.set()
    assert len(told(study)) == 10
    pending = [question.id for question in study.pending]
    assert set(pending) <= {10, 11, 12}
    assert not is_async or set(cancelled) <= set(pending)
    again = []
    made = shortlist.CallableJudge(lambda call: again.append(call.id) or "first", name="me", takes_call=True)
    assert shortlist.run_study(study, made, workers=1, **QUIET).verdict.votes == 20
    assert again[: len(pending)] == pending


def test_a_stop_event_ends_a_run_early():
    stop, study = threading.Event(), new_study(max_votes=50, delta=1e-9)

    def progress(so_far):
        if so_far.verdict.votes == 7:
            stop.set()

    found = shortlist.run_study(study, noisy(), workers=1, progress=progress, stop=stop, **QUIET)
    assert found.verdict.votes == 7
    assert not found.verdict.done
    assert shortlist.run_study(study, noisy(), workers=1, **QUIET).verdict.votes == 50
