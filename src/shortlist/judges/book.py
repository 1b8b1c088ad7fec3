"""Answers that are known already, so that nobody pays for them twice.

Only answers on a case are kept. A case is drawn anew for every question, so a known answer to the drawn case is as
good a vote as a new one; without cases it would be the same vote again.
"""

from typing import NamedTuple, Protocol


class AnswerKey(NamedTuple):
    """Who was asked about what, in which order."""

    judge: str
    case: str  # its id
    first: str
    second: str


class AnswerBook(Protocol):
    """Where known answers are kept; outcomes are seen from the key's first item. Used from one thread."""

    def find(self, key: AnswerKey) -> float | None: ...
    def add(self, key: AnswerKey, outcome: float) -> None:
        """Keep an answer. The first one stays: a second one to the same key changes nothing."""
        ...


class MemoryBook:
    """An answer book for as long as the program runs."""

    def __init__(self) -> None:
        self._answers: dict[AnswerKey, float] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def find(self, key: AnswerKey) -> float | None:
        return self._answers.get(key)

    def add(self, key: AnswerKey, outcome: float) -> None:
        self._answers.setdefault(key, outcome)
