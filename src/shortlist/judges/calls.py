"""Judge calls: the thread that makes them, how long they may take, and how long to try again: a call that failed, a
judge that does not respond, a storage that does not respond.

The calls run on an event loop in a thread of its own. The caller's thread picks up the results and is the only one that
touches the study. So it does not matter whether the caller has an event loop of its own, and Ctrl-C reaches the caller
at once.
"""

import asyncio
import contextlib
import logging
import math
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
from shortlist.judges.base import NO_TOKENS, Ask, Call, Judge, Reply, Said, Skip, Tokens
from shortlist.judges.cases import TextFunction
from shortlist.judges.meter import Meter
from shortlist.judges.run_log import Costs, Try, Warn

CLOSE_LIMIT = 2.0  # seconds that cancelled calls have to end
CANCELLED = "cancelled before the answer came"
Done = TypeVar("Done")

log = logging.getLogger("shortlist")


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
        self.before: Callable[[], None] = lambda: None  # called before each try
        self.outages = 0
        self._over: StorageUnavailable | None = None

    def __call__(self, work: Callable[[], Done]) -> Done:
        began, retry = time.monotonic(), 0
        while True:
            if self._over is not None:
                raise self._over
            self.before()
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


class ServerPatience:
    """Shared by the calls of a run: how long a judge that does not respond is waited for, up to `seconds`. `notices`
    has what the user should know, for the caller's thread."""

    def __init__(self, seconds: float) -> None:
        if real("patience", seconds) < 0:
            raise BadJudge(f"patience is {seconds}; give a number of seconds")
        self._seconds, self._is_told, self._worked_at = seconds, False, -math.inf
        self._since: float | None = None
        self.notices: SimpleQueue[str] = SimpleQueue()

    def worked(self) -> None:
        """A call was answered."""
        self._worked_at = time.monotonic()
        if self._is_told and self._since is not None:
            self.notices.put(f"the judge responds again after {self._worked_at - self._since:.0f} s")
        self._since, self._is_told = None, False

    def has_worked_since(self, moment: float) -> bool:
        return self._worked_at > moment

    def failed(self) -> None:
        """A call found that the judge does not respond."""
        self._since = time.monotonic() if self._since is None else self._since

    def goes_on(self, reason: JudgeUnavailable) -> bool:
        """Whether to wait for the judge any longer, after the usual number of tries."""
        left = self._seconds if self._since is None else self._since + self._seconds - time.monotonic()
        if left <= 0:
            return False
        if not self._is_told:
            self._is_told = True
            self.notices.put(
                f"waiting for the judge: {reason}. Trying again for up to {_minutes(left)} (--patience); Ctrl-C stops "
                "the run, and it can be resumed"
            )
        return True


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} s"


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
    Python's own handler is replaced, and only in the main thread, where signals arrive. SIGTERM is treated alike if it
    has that handler, as it has in the command line.
    """

    def __init__(self) -> None:
        self.noted = False
        self.on_signal: Callable[[], None] | None = None
        self._replaced: list[int] = []

    def __enter__(self) -> "DeferredInterrupt":
        if threading.current_thread() is threading.main_thread():
            both = (signal.SIGINT, signal.SIGTERM)
            self._replaced = [number for number in both if signal.getsignal(number) is signal.default_int_handler]
        self._handle_with(self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._handle_with(signal.default_int_handler)
        if kind is None:
            self.check()

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self.noted:
            raise KeyboardInterrupt

    def _handle_with(self, handler: Callable[[int, FrameType | None], None]) -> None:
        for number in self._replaced:
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._handle_with(signal.default_int_handler)
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
