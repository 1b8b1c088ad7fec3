"""Answers that are known already, so that nobody pays for them twice.

An answer on a case is kept for all questions that draw it. A case is drawn anew for every question, so a known answer
to the drawn case is as good a vote as a new one; without cases it would be the same vote again, and is kept only for
the question it answers.
"""

from typing import Protocol

from shortlist.study.storage import AnswerKey
from shortlist.study.study import Study


class AnswerBook(Protocol):
    """Where known answers are kept; outcomes are seen from the key's first item. Used from one thread."""

    def find(self, key: AnswerKey) -> float | None: ...
    def add(self, key: AnswerKey, outcome: float) -> float:
        """Keep an answer, and give back the one that stands: the first. A second one changes nothing."""
        ...


class MemoryBook:
    """An answer book for as long as the program runs, which studies may share."""

    def __init__(self) -> None:
        self._answers: dict[AnswerKey, float] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def find(self, key: AnswerKey) -> float | None:
        return self._answers.get(key)

    def add(self, key: AnswerKey, outcome: float) -> float:
        return self._answers.setdefault(key, outcome)


class StudyBook:
    """The answer book in a study's storage. An answer stands there for all processes as soon as `add` returns."""

    def __init__(self, study: Study) -> None:
        self._storage, self._study = study.storage, study.name
        self._read: dict[AnswerKey, float] = {}

    def find(self, key: AnswerKey) -> float | None:
        if key not in self._read:
            known = self._storage.known_answer(self._study, key)
            if known is None:
                return None
            self._read[key] = known
        return self._read[key]

    def add(self, key: AnswerKey, outcome: float) -> float:
        self._read[key] = self._storage.keep_answer(self._study, key, outcome)
        return self._read[key]
