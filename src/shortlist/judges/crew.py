"""A judge at work on an event loop in a thread of its own. What it answers is picked up in the caller's thread, which
alone touches the study; so a notebook's running loop does not matter, and Ctrl-C reaches the caller at once."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import NamedTuple

from shortlist.errors import JudgeFailed
from shortlist.judges.contents import Contents, fill
from shortlist.judges.judge import Ask, Asked, Judge, Reply
from shortlist.judges.patience import Patience, persist
from shortlist.judges.stats import Costs

HEARTBEAT = 1.0  # seconds between looks whether the thread is alive
TIDY_UP = 2.0  # seconds that calls have to end when they are cancelled

log = logging.getLogger("shortlist")


class Arrival(NamedTuple):
    """A finished call."""

    asked: Asked
    reply: Reply | None
    failure: Exception | None


class Crew:
    """`with Crew(...) as crew`: put calls in, get arrivals out; leaving cancels what is under way."""

    def __init__(self, judge: Judge, patience: Patience, contents: Contents | None, costs: Costs) -> None:
        self._judge, self._patience, self._contents, self._costs = judge, patience, contents, costs
        self._arrived: SimpleQueue[Arrival] = SimpleQueue()
        self._opened: Future[tuple[asyncio.AbstractEventLoop, Ask]] = Future()
        self._thread = threading.Thread(target=self._run, name="shortlist-crew", daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()
        self.under_way = 0
        self._put = 0

    @property
    def calls(self) -> int:
        """How many were started, and tries after the first."""
        return self._put + self._costs.retries

    def __enter__(self) -> "Crew":
        self._thread.start()
        self._loop, self._ask = self._opened.result()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop may have ended by itself
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(2 * TIDY_UP)

    def put(self, asked: Asked) -> None:
        """Start a call."""
        self.under_way += 1
        self._put += 1
        self._loop.call_soon_threadsafe(self._start, asked)

    def next(self, meanwhile: Callable[[], None]) -> Arrival:
        """The next call that finishes, however long that takes; `meanwhile` is called now and then."""
        while True:
            meanwhile()
            arrival = self.poll(HEARTBEAT)
            if arrival is not None:
                return arrival
            if not self._thread.is_alive():
                raise JudgeFailed("the judge's event loop has ended; nothing more will be answered")

    def poll(self, wait: float = 0.0) -> Arrival | None:
        """The next call that finishes within so many seconds; None if there is none."""
        try:
            arrival = self._arrived.get(timeout=wait) if wait > 0 else self._arrived.get_nowait()
        except Empty:
            return None
        self.under_way -= 1
        return arrival

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as reason:
            if self._opened.done():
                log.warning("closing judge %r failed: %r", self._judge.name, reason)
            else:
                self._opened.set_exception(reason)

    async def _main(self) -> None:
        async with self._judge.open() as ask:
            self._stop = asyncio.Event()
            self._opened.set_result((asyncio.get_running_loop(), ask))
            await self._stop.wait()
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=TIDY_UP)

    def _start(self, asked: Asked) -> None:
        task = asyncio.create_task(self._call(asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _call(self, asked: Asked) -> None:
        reply, failure = None, None
        try:
            reply = await persist(self._answer, asked, self._patience, self._costs)
        except Exception as reason:
            failure = reason
        self._arrived.put(Arrival(asked, reply, failure))

    async def _answer(self, asked: Asked) -> Reply:
        return await self._ask(await fill(asked, self._contents))
