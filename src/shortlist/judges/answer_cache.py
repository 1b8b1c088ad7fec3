"""Cached answers, so that no call is paid for twice.

An answer on a case is kept for all questions that draw this case. Each question draws its case at random, so a cached
answer to the drawn case is as good a vote as a new one. Without cases it would be the same vote again, so the answer is
kept only for its own question.
"""

from typing import Protocol

from shortlist.study.storage import AnswerKey
from shortlist.study.study import Study


class AnswerCache(Protocol):
    """Where answers are cached. Outcomes are seen from the key's first item. Used from one thread."""

    def find(self, key: AnswerKey) -> float | None: ...
    def add(self, key: AnswerKey, outcome: float) -> float:
        """Cache an answer, and return the one that counts: the first. Later ones change nothing."""
        ...


class MemoryCache:
    """An answer cache in memory, which several studies can share."""

    def __init__(self) -> None:
        self._answers: dict[AnswerKey, float] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def find(self, key: AnswerKey) -> float | None:
        return self._answers.get(key)

    def add(self, key: AnswerKey, outcome: float) -> float:
        return self._answers.setdefault(key, outcome)


class StudyCache:
    """The answer cache in a study's storage. All processes see an answer as soon as `add` returns."""

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
