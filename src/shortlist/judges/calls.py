"""Judge calls: retries, time limits, and the thread that makes the calls.

The calls run on an event loop in a thread of its own. The caller's thread picks up the results and is the only one that
touches the study. So it does not matter whether the caller has an event loop of its own, and Ctrl-C reaches the caller
at once.
"""

import asyncio
import contextlib
import logging
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from types import FrameType, TracebackType
from typing import Any, NamedTuple

from shortlist.errors import JudgeFailed, JudgeUnavailable, JudgeUnclear, ShortlistError
from shortlist.judges.base import NO_TOKENS, Ask, Call, Judge, Reply, Said, Skip, Tokens
from shortlist.judges.cases import TextFunction
from shortlist.judges.meter import Meter
from shortlist.judges.replies import Try
from shortlist.judges.retry import RetryPolicy, ServerPatience
from shortlist.judges.run_log import Costs

CLOSE_LIMIT = 2.0  # seconds that cancelled calls have to end
CANCELLED = "cancelled before the answer came"

log = logging.getLogger("shortlist")


class Arrival(NamedTuple):
    """A call that has ended, with the reply or the error; or a call whose texts were found, with the one to make.
    `tries` are what the judge said, also if it failed in the end."""

    call: Call
    result: Reply | Call | Exception
    about_texts: bool = False
    tries: tuple[Try, ...] = ()


class DeferredInterrupt:
    """`with DeferredInterrupt() as interrupt`: Ctrl-C is noted, and raised by the next `check`.

    So it cannot strike inside a transaction, which would keep the storage locked. A second Ctrl-C strikes at once. Only
    Python's own handler is replaced, and only in the main thread, where signals arrive.
    """

    def __init__(self) -> None:
        self.noted = self._replaced = False
        self.on_signal: Callable[[], None] | None = None

    def __enter__(self) -> "DeferredInterrupt":
        in_main = threading.current_thread() is threading.main_thread()
        self._replaced = in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._replaced:
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._replaced:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if kind is None:
            self.check()

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self.noted:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.noted = True
        if self.on_signal is not None:
            self.on_signal()


class CallPool:
    """`with CallPool(...) as pool`: start calls with `put`, get their results with `next`; leaving cancels the rest.

    `find_texts` is a step of its own before a call whose texts come from a function. The caller's thread then looks
    into the answer cache, because only with the texts is it known what the judge would be shown.
    """

    def __init__(
        self, judge: Judge, policy: RetryPolicy, texts: TextFunction | None, costs: Costs, meter: Meter | None = None,
        patience: ServerPatience | None = None,
    ) -> None:  # fmt: skip
        self._judge, self._policy, self._texts, self._costs = judge, policy, texts, costs
        self.meter, self.patience = meter or Meter(judge), patience or ServerPatience(0.0)
        self._opened: Future[tuple[asyncio.AbstractEventLoop, Ask]] = Future()
        self._thread = threading.Thread(target=self._run, name="shortlist-calls", daemon=True)
        self._tasks: set[asyncio.Task[Any]] = set()
        self.arrived: SimpleQueue[Arrival | None] = SimpleQueue()
        self.under_way = self._started = self._finding = 0

    def __enter__(self) -> "CallPool":
        self._thread.start()
        self._loop, self._ask = self._opened.result()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop may have ended by itself
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(2 * CLOSE_LIMIT)

    @property
    def calls(self) -> int:
        """The number of calls so far, retries included, and those that may follow when their texts are found."""
        return self._started + self._costs.retries + self._finding

    def put(self, call: Call) -> None:
        """Start a call."""
        self.under_way += 1
        self._started += 1
        asyncio.run_coroutine_threadsafe(self._run_step(call, self._answer, False), self._loop)

    def find_texts(self, call: Call) -> None:
        """Find the texts of a call. `next` returns the call to make, which is not started."""
        self.under_way += 1
        self._finding += 1
        asyncio.run_coroutine_threadsafe(self._run_step(call, self._with_texts, True), self._loop)

    def next(self, wait: float) -> Arrival | None:
        """The next call that ends within that many seconds; None if there is none, or after `wake`."""
        try:
            arrival = self.arrived.get(timeout=wait) if wait > 0 else self.arrived.get_nowait()
        except Empty:
            return None
        if arrival is not None:
            self.under_way -= 1
            self._finding -= arrival.about_texts
        return arrival

    def wake(self) -> None:
        """Let `next` return at once. Can be called from a signal handler."""
        self.arrived.put(None)

    def check(self) -> None:
        """Raise JudgeFailed if no more calls can end."""
        if not self._thread.is_alive():
            raise JudgeFailed("the judge's event loop has ended, so its calls cannot be answered")

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as reason:
            if self._opened.done():
                log.warning("closing judge %r failed: %r", self._judge.name, reason)
            else:
                self._opened.set_exception(reason)

    async def _serve(self) -> None:
        async with self._judge.open() as ask:
            self._stop = asyncio.Event()
            self._opened.set_result((asyncio.get_running_loop(), ask))
            await self._stop.wait()
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=CLOSE_LIMIT)

    async def _run_step(
        self, call: Call, step: Callable[[Call, list[Try]], Awaitable[Reply | Call]], about_texts: bool
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        tries: list[Try] = []
        try:
            self.arrived.put(Arrival(call, await step(call, tries), about_texts, tuple(tries)))
        except Exception as reason:
            self.arrived.put(Arrival(call, reason, about_texts, tuple(tries)))
        except asyncio.CancelledError:
            if tries:
                self.arrived.put(Arrival(call, JudgeUnavailable(CANCELLED), about_texts, tuple(tries)))
            raise
        finally:
            self._tasks.discard(task)

    async def _answer(self, call: Call, tries: list[Try]) -> Reply:
        return await ask_with_retries(self._ask, call, self._policy, self._costs, self.meter, self.patience, tries)

    async def _with_texts(self, call: Call, tries: list[Try]) -> Reply | Call:
        assert self._texts is not None
        find = self._texts.add_to

        async def find_texts(call: Call) -> Reply:
            return Reply(await find(call))

        reply = await ask_with_retries(find_texts, call, self._policy, Costs())  # these tries are not paid for
        return reply.answer if isinstance(reply.answer, Call) else reply


async def ask_with_retries(
    ask: Ask,
    call: Call,
    policy: RetryPolicy,
    costs: Costs,
    meter: Meter | None = None,
    patience: ServerPatience | None = None,
    tries: list[Try] | None = None,
) -> Reply:
    """The judge's reply, or a Skip if the last try was unclear or too slow. Raises JudgeFailed, or OutOfMoney if the
    next try cannot be paid for. `tries` gets what the judge said in each try."""
    patience, began, retry = patience or ServerPatience(0.0), time.monotonic(), 0
    while True:
        admission = None if meter is None else await meter.admit(call)
        costs.calls += 1
        costs.retries += retry > 0
        at, clock = time.time(), time.monotonic()
        result = await _try(ask, call, policy)
        failure = None if isinstance(result, Reply) else result
        said, tokens = _said(result, admission is not None)
        cost = None if meter is None else meter.settle(call, admission, tokens, said is not None)
        costs.prompt_tokens += tokens.prompt
        costs.completion_tokens += tokens.completion
        costs.cost += cost or 0.0
        if said is not None and tries is not None:
            answer = result.answer if isinstance(result, Reply) else Skip(_reason(result, policy))
            tries.append(Try(retry + 1, at, time.monotonic() - clock, answer, said, tokens, cost))
        if failure is None:
            patience.worked()
            assert isinstance(result, Reply)
            return result
        if _is_cancelled(failure):
            raise failure
        costs.unclear += isinstance(failure, JudgeUnclear | TimeoutError)
        wait = _wait_after(failure, retry, call, policy, patience, began)
        if wait is None:
            return Reply(Skip(_reason(failure, policy)), tokens)
        await asyncio.sleep(wait)
        retry += 1


async def _try(ask: Ask, call: Call, policy: RetryPolicy) -> Reply | BaseException:
    """One try: the reply, or what went wrong."""
    try:
        async with asyncio.timeout(policy.time_limit):
            reply = await ask(call)
    except (Exception, SystemExit, KeyboardInterrupt, asyncio.CancelledError) as reason:
        return reason
    if isinstance(reply, Reply):
        return reply
    return JudgeFailed(f"the judge returned a {type(reply).__name__}, not a Reply")


def _said(result: Reply | BaseException, is_paid: bool) -> tuple[Said | None, Tokens]:
    """What the judge said in a try, if it may have to be paid for, and its tokens. An answer that did not come in time,
    or that was not waited for, may have to be paid for too."""
    said = getattr(result, "said", None)
    tokens = Tokens(*getattr(result, "tokens", NO_TOKENS))
    if said is None and is_paid and isinstance(result, Reply | TimeoutError | asyncio.CancelledError):
        said = Said()
    return said, tokens


def _is_cancelled(reason: BaseException) -> bool:
    """Whether the run cancelled this call; a judge may also raise CancelledError by itself."""
    task = asyncio.current_task()
    return isinstance(reason, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _reason(failure: BaseException, policy: RetryPolicy) -> str:
    if isinstance(failure, TimeoutError):
        return "no answer " + ("in time" if policy.time_limit is None else f"within {policy.time_limit:g} seconds")
    return CANCELLED if isinstance(failure, asyncio.CancelledError) else str(failure)


def _wait_after(
    reason: BaseException, retry: int, call: Call, policy: RetryPolicy, patience: ServerPatience, began: float
) -> float | None:
    """Seconds until the next try; None if the question is to be skipped. Raises JudgeFailed if the run has to end."""
    is_last = retry >= policy.retries
    if isinstance(reason, JudgeUnclear | TimeoutError):
        is_last |= isinstance(reason, JudgeUnclear) and reason.is_final
        wait = 0.0 if isinstance(reason, JudgeUnclear) else policy.backoff.delay(retry)
        return None if is_last else wait
    if not isinstance(reason, JudgeUnavailable):
        if is_last or isinstance(reason, ShortlistError):
            raise _failure(call, reason, retry + 1) from (None if isinstance(reason, ShortlistError) else reason)
        return policy.backoff.delay(retry)
    patience.failed()
    wanted = reason.retry_after
    if is_last and reason.may_be_the_question and patience.has_worked_since(began):
        return None  # others are answered, so it is about this question
    if (wanted or 0.0) > policy.backoff.patience or (is_last and not (reason.is_outage and patience.goes_on(reason))):
        raise _failure(call, reason, retry + 1) from None
    return policy.backoff.delay(retry, wanted)


def _failure(call: Call, reason: BaseException, tries: int) -> JudgeFailed:
    what = str(reason) if isinstance(reason, ShortlistError) else repr(reason)
    return JudgeFailed(f"the judge failed on {call}: {what}" + (f" ({tries} tries)" if tries > 1 else ""))
