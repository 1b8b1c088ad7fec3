"""The questions that a judge is working on: which calls they need, and how the answers become votes.

This module knows the study and the answer cache, but not how calls are made: it returns the calls to make next.

Answers are cached, so that no call is paid for twice. An answer on a case is kept for all questions that draw this
case. Each question draws its case at random, so a cached answer to the drawn case is as good a vote as a new one.
Without cases it would be the same vote again, so the answer is kept only for its own question.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from shortlist.core.outcomes import flipped, outcome_of
from shortlist.errors import AlreadyAnswered, BadOutcome, JudgeFailed, UnknownItem
from shortlist.judges.base import Call, Case, Skip
from shortlist.judges.cases import case_of
from shortlist.judges.run_log import RunLog
from shortlist.study.questions import Question
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


@dataclass
class PendingQuestion:
    """A question without a vote, and its outcomes so far: one per order, as seen from its first item."""

    question: Question
    case: Case | None
    outcomes: list[float] = field(default_factory=list)

    def next_call(self) -> Call:
        """The call for the next order."""
        first, second = self.question.first, self.question.second
        if self.outcomes:
            first, second = second, first
        return Call(self.question.id, first, second, case=self.case, turned=bool(self.outcomes))


class PendingCalls:
    """`orders` is 1, or 2 to ask every question in both orders and tell the mean."""

    def __init__(
        self, study: Study, judge: str, cases: Mapping[str, Case] | None, orders: int, cache: AnswerCache, log: RunLog
    ) -> None:
        self._study, self._judge, self._cases, self._orders = study, judge, cases, orders
        self._cache, self._log, self._family = cache, log, study.problem.family
        # A single answer without a case is told at once; the first of two orders has to wait for the second.
        self._uses_cache = cases is not None or orders > 1
        self._waiting: dict[AnswerKey, list[PendingQuestion]] = {}  # by the call that is under way
        self.questions: dict[int, PendingQuestion] = {}
        self.skips_in_a_row = 0

    def take(self, question: Question) -> list[Call]:
        """Add a question. Returns the calls to make now: none if the answer is cached."""
        case = case_of(question, self._study.seed, self._cases)
        pending = self.questions[question.id] = PendingQuestion(question, case)
        return self._advance(pending)

    def answer(self, call: Call, answer: Any) -> list[Call]:
        """Add the answer to a call. Returns the calls to make next. Raises JudgeFailed if it is not an answer."""
        if isinstance(answer, Skip):
            self.skip(call, answer.reason)
            return []
        key = self._key(call)
        try:
            outcome = outcome_of(answer, call.first, call.second, self._family)
        except (BadOutcome, UnknownItem) as reason:
            message = f"the judge answered {answer!r} on {call}: {reason}"
            self.skip(call, message)
            raise JudgeFailed(message) from None
        if self._uses_cache:  # before anything else can fail
            outcome = self._cache.add(key, outcome)
        self._log.count(call, outcome, self._family.tie)
        waiting = self._waiting.pop(key)
        self._log.costs.saved += len(waiting) - 1
        for pending in waiting:
            self._add_outcome(pending, call, outcome)
        calls: list[Call] = []
        for pending in waiting:
            calls += self._advance(pending)
        return calls

    def skip(self, call: Call, reason: str) -> None:
        """Skip the questions that wait for this call."""
        for pending in self._waiting.pop(self._key(call)):
            self._skip(pending, reason)

    def finish(self) -> None:
        """Vote where all outcomes are there. Skip the rest if the study is done, else leave it pending."""
        for pending in list(self.questions.values()):
            if len(pending.outcomes) == self._orders:  # interrupted between an answer and its vote
                self._vote(pending)
            elif self._study.verdict.done:
                self._skip(pending, "the study was done")

    def _advance(self, pending: PendingQuestion) -> list[Call]:
        """The next call that the question needs; if it needs none, vote."""
        while len(pending.outcomes) < self._orders:
            call = pending.next_call()
            key = self._key(call)
            known = self._cache.find(key) if self._uses_cache else None
            if known is None:
                waiting = self._waiting.setdefault(key, [])
                waiting.append(pending)
                return [call] if len(waiting) == 1 else []
            self._log.costs.saved += 1
            self._add_outcome(pending, call, known)
        self._vote(pending)
        return []

    def _key(self, call: Call) -> AnswerKey:
        """Calls with the same key share one answer. Without cases, each question has keys of its own."""
        case, question = (None, call.id) if call.case is None else (call.case.id, None)
        return AnswerKey(self._judge, case, call.first, call.second, question)

    def _add_outcome(self, pending: PendingQuestion, call: Call, outcome: float) -> None:
        """As seen from the question's first item, which is the second item of the call if the sides were swapped."""
        is_same = call.first == pending.question.first
        pending.outcomes.append(outcome if is_same else flipped(outcome, self._family))

    def _vote(self, pending: PendingQuestion) -> None:
        if self._orders == 2:
            one, other = pending.outcomes
            self._log.stats = self._log.stats.after_both(one, other, self._family.tie)
        self.skips_in_a_row = 0
        with suppress(AlreadyAnswered):  # closed by somebody else: the judge was voided, or the question expired
            self._study.tell(pending.question, sum(pending.outcomes) / self._orders)
        del self.questions[pending.question.id]
        self._log.show_progress()

    def _skip(self, pending: PendingQuestion, reason: str) -> None:
        self._log.costs.skips += 1
        self._log.skipped[pending.question.id] = reason
        self.skips_in_a_row += 1
        with suppress(AlreadyAnswered):
            self._study.skip(pending.question)
        del self.questions[pending.question.id]
        self._log.show_progress()
