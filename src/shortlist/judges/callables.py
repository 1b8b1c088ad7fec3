"""A Python function as a judge, plain or async."""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast

from shortlist.errors import BadJudge
from shortlist.judges.judge import Ask, Asked, Judge, Reply


@dataclass(frozen=True)
class CallableJudge:
    """`function(first, second)`, with cases `function(first, second, case)`, or with `record` `function(asked)`.

    It returns what `Reply.answer` may be, or a Reply. A plain function runs in threads. Python cannot end a thread, so
    one that is over its time limit is left behind.
    """

    function: Callable[..., Any]
    name: str = ""
    record: bool = False
    at_once: int | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise BadJudge(f"{self.function!r} is no judge; give a function or one of the judges of this package")
        if not self.name:
            name = getattr(self.function, "__name__", None) or type(self.function).__name__
            object.__setattr__(self, "name", str(name))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ask]:
        yield self._answer

    def check(self, with_case: bool) -> None:
        """Can the function be called the way it will be?"""
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):  # some builtins do not tell
            return
        wanted = ["asked"] if self.record else ["first", "second", "case"][: 2 + with_case]
        try:
            signature.bind(*wanted)
        except TypeError:
            raise BadJudge(f"judge {self.name} cannot be called with ({', '.join(wanted)})") from None

    async def _answer(self, asked: Asked) -> Reply:
        arguments = (asked,) if self.record else (asked.first, asked.second, asked.case)[: 3 if asked.case else 2]
        if self._is_async:
            answer = await self.function(*arguments)
        else:
            answer = await in_thread(self.function, *arguments)
            if inspect.isawaitable(answer):
                answer = await answer
        return answer if isinstance(answer, Reply) else Reply(answer)

    @property
    def _is_async(self) -> bool:
        called = getattr(self.function, "__call__", None)  # noqa: B004
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(called)


def as_judge(judge: Judge | Callable[..., Any]) -> Judge:
    """A judge from a judge or a function."""
    if all(hasattr(judge, member) for member in ("name", "at_once", "open")):
        return cast(Judge, judge)
    return CallableJudge(cast(Callable[..., Any], judge))


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns, from a thread that nobody has to wait for: a pool would fill up with hung calls."""
    loop = asyncio.get_running_loop()
    finished: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def deliver(value: Any, failure: BaseException | None) -> None:
        if not finished.done():
            finished.set_result((value, failure))  # a future refuses some exceptions, such as StopIteration

    def work() -> None:
        value, failure = None, None
        try:
            value = function(*arguments)
        except BaseException as reason:
            failure = reason
        with suppress(RuntimeError):  # the run may be over
            loop.call_soon_threadsafe(deliver, value, failure)

    threading.Thread(target=contextvars.copy_context().run, args=(work,), name="shortlist-judge", daemon=True).start()
    value, failure = await finished
    if failure is not None:
        raise failure
    return value
