"""What a judge is: a value that is opened for a run and then answers one call at a time.

A judge that cannot answer raises: JudgeUnclear (ask again, then skip), JudgeUnavailable (wait, ask again, then stop),
JudgeFailed or BadInput (stop now). `patience.py` does what they ask for.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from shortlist.errors import BadOutcome, UnknownItem
from shortlist.families import Family


@dataclass(frozen=True)
class Case:
    """Something to compare the items on, such as a prompt; a changed text needs a new id."""

    id: str
    text: str


@dataclass(frozen=True)
class Asked:
    """One call to a judge: is `first` better than `second`, on this case? `first` is shown first."""

    id: int  # of the question
    first: str
    second: str
    first_text: str | None = None  # what the item is, or says on this case
    second_text: str | None = None
    case: Case | None = None
    turned: bool = False  # the second of two calls about one question, sides turned round

    @property
    def call(self) -> str:
        """A name for this call that no other call of the study has."""
        return f"{self.id}-turned" if self.turned else str(self.id)

    def __str__(self) -> str:
        return f"{self.first!r} against {self.second!r}" + (f" on case {self.case.id!r}" if self.case else "")


@dataclass(frozen=True)
class Skip:
    """Answered instead of an outcome: no vote, and why."""

    reason: str


class Tokens(NamedTuple):
    """What a language model read and wrote."""

    prompt: int = 0
    completion: int = 0


NO_TOKENS = Tokens()


@dataclass(frozen=True)
class Reply:
    """A judge's answer, and what it cost.

    `answer` is the better item's name, "first", "second", "tie", a number from the side of the item shown first, or a
    Skip.
    """

    answer: Any
    tokens: Tokens = NO_TOKENS


Ask = Callable[[Asked], Awaitable[Reply]]


class Judge(Protocol):
    """A way of answering. Answers are remembered under the name, so another way needs another name."""

    @property
    def name(self) -> str: ...
    @property
    def at_once(self) -> int | None:
        """How many calls it can take at the same time; None is any number."""
        ...

    def open(self) -> AbstractAsyncContextManager[Ask]:
        """Connections and processes for one run; a call that is cancelled must leave nothing behind."""
        ...


def outcome_of(asked: Asked, answer: Any, family: Family) -> float:
    """The number an answer stands for, from the side of the item shown first.

    Raises BadOutcome or UnknownItem if it stands for none.
    """
    if isinstance(answer, str):
        return family.tie if answer == "tie" else _win(asked, answer, family)
    try:
        number = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        number = np.empty(0)
    if answer is None or number.ndim != 0:
        raise BadOutcome("that is no answer; give an item's name, 'tie', a number or a Skip")
    family.check(number)
    return float(number)


def turn(outcome: float, family: Family) -> float:
    """The same outcome from the other item's side."""
    return float(family.flip(np.asarray(outcome)))


def _win(asked: Asked, answer: str, family: Family) -> float:
    """Names go before sides: an item may be called "second"."""
    first_won = {"first": True, "second": False, asked.second: False, asked.first: True}.get(answer)
    if first_won is None:
        raise UnknownItem(answer)
    if family.win is None:
        raise BadOutcome(f"the {family.name} family needs the measured difference, not a winner")
    return family.win if first_won else turn(family.win, family)
