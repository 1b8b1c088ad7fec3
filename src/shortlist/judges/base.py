"""What a judge is: an object that is opened for a run and then answers calls. Functions, recorded votes and panels as
judges.

A judge that cannot answer raises JudgeUnclear (asked again, then skipped), JudgeUnavailable (asked again after a wait,
then the run stops), or JudgeFailed or BadInput (the run stops at once).

A panel is several judges as one: each question goes to one of them, drawn at random, or to all of them. Both make a
claim about the mean of the judges' answers. With "random" this needs that the drawing depends on nothing that happened
before: the study's seed and the question's number decide, after the pair and the bet are fixed, as they do for a case.
With "mean" one vote is the mean of all answers to a question: they are about one pair on one case, so they are not
several votes.
"""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, cast, get_args

import numpy as np

from shortlist.core.draws import digest, draw_number
from shortlist.core.families import Family, make_family
from shortlist.core.outcomes import flipped
from shortlist.errors import BadJudge
from shortlist.study.events import fingerprint


@dataclass(frozen=True)
class Case:
    """Something to compare the items on, such as a prompt, and a reference answer if there is one."""

    id: str
    text: str
    reference: str = ""


@dataclass(frozen=True)
class Call:
    """One call to a judge: is `first` better than `second`, on this case? `first` is shown first."""

    id: int  # of the question
    first: str
    second: str
    first_text: str | None = None  # what the item is, or its answer to the case
    second_text: str | None = None
    case: Case | None = None
    turned: bool = False  # the second of two calls about one question, with the sides swapped
    member: int | None = None  # which judge of a panel is asked

    @property
    def key(self) -> str:
        """A key that no other call of the study has."""
        member = "" if self.member is None else f"-{self.member}"
        return f"{self.id}{member}-turned" if self.turned else f"{self.id}{member}"

    def __str__(self) -> str:
        return f"{self.first!r} against {self.second!r}" + (f" on case {self.case.id!r}" if self.case else "")


@dataclass(frozen=True)
class Skip:
    """An answer that is not a vote, and the reason."""

    reason: str


class Tokens(NamedTuple):
    """The tokens that a language model read and wrote. `cached` are those it read that cost less."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0


NO_TOKENS = Tokens()


@dataclass(frozen=True)
class Said:
    """What a judge said, in full: kept with the study, to be read."""

    text: str = ""
    reasoning: str = ""
    request: str = ""  # a digest of what was sent
    model: str = ""  # as the server calls it


@dataclass(frozen=True)
class Reply:
    """A judge's answer, and what it cost.

    `answer` is the better item's name, "first", "second", "tie", a number as seen from the item shown first, or a
    Skip.
    """

    answer: Any
    tokens: Tokens = NO_TOKENS
    said: Said | None = None


Ask = Callable[[Call], Awaitable[Reply]]


class Judge(Protocol):
    """A way of answering.

    A judge may also have `settings`, a mapping that JSON can hold, with all that decides its answers: model, prompt,
    parameters. They are part of what its answers are cached by, and a study notices when they change. A judge without
    them is known by its name alone, so with other settings it needs another name. A judge whose name is made from its
    settings says so with `default_name`. A judge may have `check_cases`, which raises BadJudge if it cannot be asked
    about such cases, and `shows_references` if reference answers are part of what it is shown.
    """

    @property
    def name(self) -> str: ...
    @property
    def max_parallel(self) -> int | None:
        """How many calls it can take at the same time; None for any number."""
        ...

    def open(self) -> AbstractAsyncContextManager[Ask]:
        """Open connections and processes for one run. A cancelled call must leave nothing behind."""
        ...


T = TypeVar("T")
Ended = tuple[T | None, BaseException | None]  # a future refuses some exceptions, such as StopIteration


@dataclass(frozen=True)
class CallableJudge:
    """`function(first, second)`, `function(first, second, case)` with cases, or `function(call)` with `takes_call`.

    The function returns what `Reply.answer` may be, or a Reply. A plain function runs in a thread. Python cannot stop
    a thread, so a function that exceeds its time limit keeps running in the background.

    The judge is known by its name alone. A function that was changed is another judge and needs another name: give one
    with `name`.
    """

    function: Callable[..., Any]
    name: str = ""
    takes_call: bool = False
    max_parallel: int | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise BadJudge(f"{self.function!r} is not a judge; give a function or one of this package's judges")
        if not self.name:
            name = getattr(self.function, "__name__", None) or type(self.function).__name__
            object.__setattr__(self, "name", str(name))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ask]:
        called = getattr(self.function, "__call__", None)  # noqa: B004
        is_async = inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(called)
        yield partial(self._ask, self.function if is_async else partial(in_thread, self.function))

    def check(self, with_case: bool) -> None:
        """Raise BadJudge unless the function takes the arguments it will be given."""
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):  # some builtins have none
            return
        wanted = ["call"] if self.takes_call else ["first", "second", "case"][: 2 + with_case]
        try:
            signature.bind(*wanted)
        except TypeError:
            raise BadJudge(f"judge {self.name} cannot be called with ({', '.join(wanted)})") from None

    async def _ask(self, function: Callable[..., Any], call: Call) -> Reply:
        arguments = (call,) if self.takes_call else (call.first, call.second, call.case)[: 3 if call.case else 2]
        answer = await function(*arguments)
        if inspect.isawaitable(answer):
            answer = await answer
        return answer if isinstance(answer, Reply) else Reply(answer)


def as_judge(judge: Judge | Callable[..., Any]) -> Judge:
    """A judge, given as one or as a function."""
    if all(hasattr(judge, member) for member in ("name", "max_parallel", "open")):
        return cast(Judge, judge)
    return CallableJudge(cast(Callable[..., Any], judge))


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Run the function in a thread of its own and return its result. A pool would fill up with hung calls."""
    value, failure = await asyncio.wrap_future(start_thread(function, *arguments))
    if failure is not None:
        raise failure
    return cast(T, value)


def start_thread(function: Callable[..., T], *arguments: Any) -> Future[Ended[T]]:
    """Start the function in a thread of its own, with the caller's context variables."""
    ended: Future[Ended[T]] = Future()
    ended.set_running_or_notify_cancel()  # from here on nobody can cancel it

    def work() -> None:
        try:
            end: Ended[T] = function(*arguments), None
        except BaseException as reason:
            end = None, reason
        ended.set_result(end)

    threading.Thread(target=contextvars.copy_context().run, args=(work,), name="shortlist-judge", daemon=True).start()
    return ended


Pair = tuple[str, str]


class RecordedJudge:
    """Answers from recorded votes, given as lists: the two items of each vote, and its outcome for the first.

    `unit` labels votes that are not independent, such as votes on one case: a question uses up the whole unit, on
    every pair, and its answer is the unit's first vote on that pair. A vote without a label (None) is its own unit.
    Pairs without votes are never asked.

    The study draws which vote answers a question: the ids of the recorded votes are the cases of their pair, and each
    case is used once. So the record of the study shows which vote answered which question, and no vote is used twice,
    also after a kill.
    """

    max_parallel: int | None = None

    def __init__(
        self,
        first: Sequence[str],
        second: Sequence[str],
        outcome: Sequence[float],
        *,
        unit: Sequence[str | None] | None = None,
        family: str | Family = "bradley-terry",
        name: str = "recorded",
    ) -> None:
        labels = [None] * len(first) if unit is None else list(unit)
        if not len(first) == len(second) == len(outcome) == len(labels) > 0:
            raise BadJudge("first, second, outcome and unit must be lists of the same length, with at least one vote")
        self.name = name
        rows = list(zip(first, second, map(float, outcome), labels, strict=True))
        self.settings = {"kind": "recorded", "votes": fingerprint(rows)}
        self.unit_name = "vote" if all(label is None for label in labels) else "unit"
        self._family = make_family(family)
        self._family.check(np.asarray(outcome, dtype=np.float64))
        self._votes: dict[Pair, dict[str, float]] = {}
        for row, (one, other, value, label) in enumerate(zip(first, second, outcome, labels, strict=True), 1):
            seen = float(value) if one < other else flipped(float(value), self._family)
            votes = self._votes.setdefault(_sorted(one, other), {})
            votes.setdefault(f"vote {row}" if label is None else f"unit {label}", seen)

    @property
    def pairs(self) -> list[Pair]:
        """The pairs that have votes."""
        return list(self._votes)

    def votes_on(self, items: Iterable[str]) -> dict[Pair, tuple[str, ...]]:
        """The ids of the recorded votes, or of their units, on each pair of these items."""
        known = set(items)
        return {pair: tuple(votes) for pair, votes in self._votes.items() if known.issuperset(pair)}

    def ids(self, items: Iterable[str]) -> list[str]:
        """All these ids, each once."""
        return list(dict.fromkeys(vote for votes in self.votes_on(items).values() for vote in votes))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ask]:
        yield self._ask

    async def _ask(self, call: Call) -> Reply:
        vote = None if call.case is None else self._votes.get(_sorted(call.first, call.second), {}).get(call.case.id)
        if vote is None:
            return Reply(Skip(f"no recorded vote belongs to {call}"))
        return Reply(vote if call.first < call.second else flipped(vote, self._family))


def _sorted(one: str, other: str) -> Pair:
    return (one, other) if one < other else (other, one)


How = Literal["random", "mean"]


@dataclass(frozen=True)
class PanelJudge:
    """A panel of judges, whose votes are stored under one name.

    how: "random" asks one of them, drawn at random for each question. "mean" asks all of them, and the vote is the mean
        of their answers.
    name: by default made from the names and settings of the judges.
    """

    judges: Sequence[Judge]
    how: How = "random"
    name: str = ""

    def __post_init__(self) -> None:
        if self.how not in get_args(How):
            raise BadJudge(f"how is {self.how!r}; choose one of {', '.join(get_args(How))}")
        names = [judge.name for judge in self.judges]
        if len(names) < 2 or len(set(names)) < len(names):
            raise BadJudge("a panel needs at least two judges with different names")
        if any(isinstance(judge, RecordedJudge | PanelJudge) for judge in self.judges):
            raise BadJudge("recorded votes and panels cannot be part of a panel; give single judges")
        if not self.name:
            object.__setattr__(self, "name", self.default_name)

    @property
    def default_name(self) -> str:
        return f"panel-{digest(self.how, *(f'{judge.name} {_settings(judge)}' for judge in self.judges))}"

    @property
    def settings(self) -> dict[str, Any]:
        members = {judge.name: _settings(judge) for judge in self.judges}
        return {"kind": "panel", "how": self.how, "judges": members}

    @property
    def max_parallel(self) -> int | None:
        return min((judge.max_parallel for judge in self.judges if judge.max_parallel is not None), default=None)

    @property
    def shows_references(self) -> bool:
        return any(getattr(judge, "shows_references", False) for judge in self.judges)

    def check_cases(self, cases: Sequence[Case] | None) -> None:
        """Raise BadJudge unless all judges can be asked about these cases."""
        for judge in self.judges:
            if (check := getattr(judge, "check_cases", None)) is not None:
                check(cases)

    def asked(self, seed: int, question: int) -> tuple[int, ...]:
        """Which judges a question goes to."""
        if self.how == "mean":
            return tuple(range(len(self.judges)))
        return (draw_number(len(self.judges), "panel", seed, question),)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ask]:
        async with AsyncExitStack() as stack:
            asks = [await stack.enter_async_context(judge.open()) for judge in self.judges]

            async def ask(call: Call) -> Reply:
                assert call.member is not None
                return await asks[call.member](call)

            yield ask


def _settings(judge: Judge) -> Any:
    return getattr(judge, "settings", None)
