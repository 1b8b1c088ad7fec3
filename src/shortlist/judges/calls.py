"""Judge calls: retries, time limits, and the thread that makes the calls; and retries of work on the storage.

The calls run on an event loop in a thread of its own. The caller's thread picks up the results and is the only one that
touches the study. So it does not matter whether the caller has an event loop of its own, and Ctrl-C reaches the caller
at once.
"""

import asyncio
import contextlib
import logging
import random
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import FrameType, TracebackType
from typing import Any, NamedTuple, TypeVar

from shortlist.core.problem import real, whole
from shortlist.errors import BadJudge, JudgeFailed, JudgeUnavailable, JudgeUnclear, ShortlistError, StorageUnavailable
from shortlist.judges.base import Ask, Call, Judge, Reply, Skip, Tokens
from shortlist.judges.cases import TextFunction
from shortlist.judges.run_log import Costs, Warn

CLOSE_LIMIT = 2.0  # seconds that cancelled calls have to end

log = logging.getLogger("shortlist")
Done = TypeVar("Done")


@dataclass(frozen=True)
class Backoff:
    """The wait before a retry: `first` seconds, doubled each time up to `most`, times a random factor from 0.5 to 1 so
    that workers do not retry all at once. A judge may ask for a longer wait, up to `patience` seconds."""

    first: float = 1.0
    most: float = 60.0
    patience: float = 600.0

    def __post_init__(self) -> None:
        for name in ("first", "most", "patience"):
            if real(name, getattr(self, name)) < 0:
                raise BadJudge(f"{name} is {getattr(self, name)}; give a number of seconds")

    def delay(self, retry: int, wanted: float | None = None) -> float:
        """Seconds to wait before that retry (0 is the first one), at least what the judge wants."""
        usual = min(self.first * 2.0 ** min(retry, 60), self.most) * random.uniform(0.5, 1.0)
        return usual if wanted is None else max(usual, wanted + random.uniform(0.0, self.first))


STORAGE_BACKOFF = Backoff(first=0.2, most=5.0)


@dataclass(frozen=True)
class RetryPolicy:
    """How often a call is tried, and how long one try may take."""

    retries: int = 3
    time_limit: float | None = 300.0  # seconds for one try
    backoff: Backoff = Backoff()

    def __post_init__(self) -> None:
        whole("retries", self.retries, 0)
        if self.time_limit is not None and real("time_limit", self.time_limit) <= 0:
            raise BadJudge(f"time_limit is {self.time_limit}; give seconds, or None for no limit")


class StoragePatience:
    """`patience(work)` works on the storage, and tries again while it does not respond, for up to `seconds`.

    After that, or if `wait` raises, nothing more is tried: what is left to store goes to a file (pending.py).
    """

    def __init__(self, seconds: float, warn: Warn) -> None:
        if real("storage_patience", seconds) < 0:
            raise BadJudge(f"storage_patience is {seconds}; give a number of seconds")
        self.seconds, self._warn = seconds, warn
        self.wait: Callable[[float], None] = time.sleep
        self.outages = 0
        self._over: StorageUnavailable | None = None

    def __call__(self, work: Callable[[], Done]) -> Done:
        began, retry = time.monotonic(), 0
        while True:
            if self._over is not None:
                raise self._over
            try:
                done = work()
            except StorageUnavailable as reason:
                self._wait(reason, began, retry)
                retry += 1
            else:
                if retry:
                    self.outages += 1
                    self._warn(f"the storage responds again after {time.monotonic() - began:.0f} s")
                return done

    def _wait(self, reason: StorageUnavailable, began: float, retry: int) -> None:
        self._over = reason
        left = began + self.seconds - time.monotonic()
        if left <= 0:
            raise reason
        if not retry:
            self._warn(f"{reason}. Trying again for {left:.0f} s; nothing new is asked meanwhile")
        self.wait(min(STORAGE_BACKOFF.delay(retry), left))
        self._over = None


class Arrival(NamedTuple):
    """A call that has ended, with the reply or the error; or a call whose texts were found, with the one to make."""

    call: Call
    result: Reply | Call | Exception
    about_texts: bool = False


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

    def __init__(self, judge: Judge, policy: RetryPolicy, texts: TextFunction | None, costs: Costs) -> None:
        self._judge, self._policy, self._texts, self._costs = judge, policy, texts, costs
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

    async def _run_step(self, call: Call, step: Callable[[Call], Awaitable[Reply | Call]], about_texts: bool) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            self.arrived.put(Arrival(call, await step(call), about_texts))
        except Exception as reason:
            self.arrived.put(Arrival(call, reason, about_texts))
        finally:
            self._tasks.discard(task)

    async def _answer(self, call: Call) -> Reply:
        return await ask_with_retries(self._ask, call, self._policy, self._costs)

    async def _with_texts(self, call: Call) -> Reply | Call:
        assert self._texts is not None
        find = self._texts.add_to

        async def find_texts(call: Call) -> Reply:
            return Reply(await find(call))

        reply = await ask_with_retries(find_texts, call, self._policy, Costs())  # these tries are not paid for
        return reply.answer if isinstance(reply.answer, Call) else reply


async def ask_with_retries(ask: Ask, call: Call, policy: RetryPolicy, costs: Costs) -> Reply:
    """The judge's reply, or a Skip if the last try was unclear or too slow. Raises JudgeFailed."""
    retry = 0
    wait: float | None
    while True:
        costs.calls += 1
        costs.retries += retry > 0
        try:
            async with asyncio.timeout(policy.time_limit):
                reply, wait = await ask(call), None
            if not isinstance(reply, Reply):
                raise JudgeFailed(f"the judge returned a {type(reply).__name__}, not a Reply")
        except (Exception, SystemExit, KeyboardInterrupt, asyncio.CancelledError) as reason:
            if _is_cancelled(reason):
                raise
            costs.unclear += isinstance(reason, JudgeUnclear | TimeoutError)
            reply, wait = _after_failure(reason, retry, call, policy)
        costs.prompt_tokens += reply.tokens.prompt
        costs.completion_tokens += reply.tokens.completion
        if wait is None or retry == policy.retries:
            return reply
        await asyncio.sleep(wait)
        retry += 1


def _is_cancelled(reason: BaseException) -> bool:
    """Whether the run cancelled this call; a judge may also raise CancelledError by itself."""
    task = asyncio.current_task()
    return isinstance(reason, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _after_failure(reason: BaseException, retry: int, call: Call, policy: RetryPolicy) -> tuple[Reply, float]:
    """The reply if this was the last try, and the wait before the next one. Raises if there must not be another."""
    if isinstance(reason, JudgeUnclear):
        return Reply(Skip(str(reason)), Tokens(*reason.tokens)), 0.0
    if isinstance(reason, TimeoutError):
        limit = "in time" if policy.time_limit is None else f"within {policy.time_limit:g} seconds"
        return Reply(Skip(f"no answer {limit}")), policy.backoff.delay(retry)
    wanted = reason.retry_after if isinstance(reason, JudgeUnavailable) else None
    is_final = isinstance(reason, ShortlistError) and not isinstance(reason, JudgeUnavailable)
    if is_final or retry == policy.retries or (wanted or 0.0) > policy.backoff.patience:
        raise _failure(call, reason, retry + 1) from (None if isinstance(reason, ShortlistError) else reason)
    return Reply(Skip(str(reason))), policy.backoff.delay(retry, wanted)


def _failure(call: Call, reason: BaseException, tries: int) -> JudgeFailed:
    what = str(reason) if isinstance(reason, ShortlistError) else repr(reason)
    return JudgeFailed(f"the judge failed on {call}: {what}" + (f" ({tries} tries)" if tries > 1 else ""))
