import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.errors import BadInput, JudgeFailed, JudgeUnavailable, JudgeUnclear
from shortlist.judges.base import Call, Reply, Skip
from shortlist.judges.calls import Backoff, RetryPolicy, ask_with_retries
from shortlist.judges.run_log import Costs

CALL = Call(3, "ann", "bob")
AT_ONCE = Backoff(0.0, 0.0)


def try_it(*script, retries=3, time_limit=60.0, backoff=AT_ONCE):
    """What comes of a judge that raises or answers these, one per try."""
    steps, costs = iter(script), Costs()

    async def ask(call):
        step = next(steps)
        if isinstance(step, BaseException):
            raise step
        return Reply(step)

    return asyncio.run(ask_with_retries(ask, CALL, RetryPolicy(retries, time_limit, backoff), costs)), costs


@given(st.integers(0, 10_000), st.floats(0, 100), st.floats(0, 100))
def test_waits_double_up_to_a_limit(retry, first, most):
    backoff = Backoff(first, most)
    usual = min(first * 2.0 ** min(retry, 60), most)
    assert usual / 2 <= backoff.delay(retry) <= usual
    assert 33.0 <= backoff.delay(retry, 33.0) <= max(usual, 33.0 + first)


def test_trouble_passes():
    reply, costs = try_it(JudgeUnavailable("down"), ValueError("odd"), JudgeUnclear("hm", (2, 1)), "ann")
    assert reply.answer == "ann"
    assert (costs.calls, costs.retries, costs.unclear, costs.prompt_tokens) == (4, 3, 1, 2)


def test_what_stays_unclear_is_skipped():
    reply, costs = try_it(*[JudgeUnclear("hm")] * 4)
    assert reply.answer == Skip("hm")
    assert (costs.calls, costs.unclear) == (4, 4)
    reply, _ = try_it(ValueError("odd"), TimeoutError(), retries=1)
    assert reply.answer == Skip("no answer within 60 seconds")


@pytest.mark.parametrize("failure", [JudgeUnavailable("down"), ValueError("odd")])
def test_trouble_that_stays_is_a_failure(failure):
    with pytest.raises(JudgeFailed, match=r"'ann' against 'bob': .*(down|odd).* \(3 tries\)"):
        try_it(*[failure] * 3, retries=2)


@pytest.mark.parametrize("failure", [JudgeFailed("no such model"), BadInput("no text")])
def test_what_cannot_get_better_is_not_tried_again(failure):
    with pytest.raises(JudgeFailed, match="'ann' against 'bob': no "):
        try_it(failure)


def test_a_judge_that_wants_to_be_left_alone_too_long():
    with pytest.raises(JudgeFailed, match="busy"):
        try_it(JudgeUnavailable("busy", 601.0))


def test_cancelling_a_call_is_no_failure():
    async def scene():
        started = asyncio.Event()

        async def ask(call):
            started.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(ask_with_retries(ask, CALL, RetryPolicy(), Costs()))
        await started.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(scene())


def test_settings_that_make_no_sense():
    for wrong in (
        lambda: Backoff(first=-1.0),
        lambda: Backoff(most=float("nan")),
        lambda: RetryPolicy(retries=-1),
        lambda: RetryPolicy(time_limit=0),
    ):
        with pytest.raises(BadInput):
            wrong()
