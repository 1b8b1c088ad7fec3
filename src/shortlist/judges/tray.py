"""The questions that are out with a judge: which calls they need, and what becomes of them.

Knows the study and the answer book, but not how calls are made: it says which to make next.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shortlist.errors import AlreadyAnswered, BadOutcome, JudgeFailed, UnknownItem
from shortlist.judges.book import AnswerBook
from shortlist.judges.cases import case_of
from shortlist.judges.freshness import Freshness
from shortlist.judges.judge import Asked, Case, Skip, outcome_of, turn
from shortlist.judges.record import Record
from shortlist.study.questions import Question
from shortlist.study.storage import AnswerKey
from shortlist.study.study import Study


@dataclass
class Pending:
    """A question that is out, and its outcomes so far, one per order, seen from its first item."""

    question: Question
    case: Case | None
    outcomes: list[float] = field(default_factory=list)

    def next_call(self) -> Asked:
        """The next order to ask in."""
        first, second = self.question.first, self.question.second
        if self.outcomes:
            first, second = second, first
        return Asked(self.question.id, first, second, case=self.case, turned=bool(self.outcomes))


class Tray:
    """`orders` is 1, or 2 to ask every question in both orders and tell the mean."""

    def __init__(
        self,
        study: Study,
        judge: str,
        cases: Mapping[str, Case] | None,
        orders: int,
        book: AnswerBook,
        record: Record,
    ) -> None:
        self._study, self._judge, self._cases, self._orders = study, judge, cases, orders
        self._book, self._record, self._family = book, record, study.problem.family
        self._freshness = Freshness(judge, len(study.items))
        self._open: dict[int, Pending] = {}
        self._waiting: dict[AnswerKey, list[Pending]] = {}  # for a call that is under way
        self.skips_in_a_row = 0

    def __len__(self) -> int:
        return len(self._open)

    def take(self, question: Question) -> list[Asked]:
        """Take a question in; returns the calls to make now, none if its answer is known."""
        pending = self._open[question.id] = Pending(question, case_of(question, self._study.seed, self._cases))
        return self._go_on(pending)

    def answer(self, asked: Asked, answer: Any) -> list[Asked]:
        """Take an answer in; returns the calls to make next. Raises JudgeFailed if it makes no sense."""
        if isinstance(answer, Skip):
            self.give_up(asked, answer.reason)
            return []
        try:
            outcome = outcome_of(asked, answer, self._family)
        except (BadOutcome, UnknownItem) as reason:
            message = f"the judge answered {answer!r} on {asked}: {reason}"
            self.give_up(asked, message)
            raise JudgeFailed(message) from None
        outcome = self._learn(asked, outcome)
        waiting = self._waiting.pop(self._key(asked))
        self._record.costs.saved += len(waiting) - 1
        for pending in waiting:
            self._note(pending, asked, outcome)
        return [call for pending in waiting for call in self._go_on(pending)]

    def give_up(self, asked: Asked, reason: str) -> None:
        """Skip the questions that wait for this call."""
        for pending in self._waiting.pop(self._key(asked)):
            self._skip(pending, reason)

    def clear(self) -> None:
        """Vote where all outcomes are there; skip the rest if the study is done, else leave it out."""
        for pending in list(self._open.values()):
            if len(pending.outcomes) == self._orders:  # Ctrl-C fell between an answer and its vote
                self._vote(pending)
            elif self._study.verdict.done:
                self._skip(pending, "the study was done")

    def _go_on(self, pending: Pending) -> list[Asked]:
        while len(pending.outcomes) < self._orders:
            asked = pending.next_call()
            key = self._key(asked)
            known = self._book.find(key) if self._keeps(key) else None
            if known is None:
                self._waiting.setdefault(key, []).append(pending)
                return [asked] if len(self._waiting[key]) == 1 else []
            self._record.costs.saved += 1
            self._note(pending, asked, known)
        self._vote(pending)
        return []

    def _key(self, asked: Asked) -> AnswerKey:
        """Calls with the same key get the same answer: without cases, never those of two questions."""
        case, question = (None, asked.id) if asked.case is None else (asked.case.id, None)
        return AnswerKey(self._judge, case, asked.first, asked.second, question)

    def _keeps(self, key: AnswerKey) -> bool:
        """One answer to a question without a case is told at once; the first of two has to wait for the other."""
        return key.case is not None or self._orders > 1

    def _learn(self, asked: Asked, outcome: float) -> float:
        """Write the answer down before anything else can go wrong; returns the one that stands."""
        key = self._key(asked)
        if self._keeps(key):
            outcome = self._book.add(key, outcome)
        self._record.stats = self._record.stats.after(outcome, self._family.tie)
        warning = self._freshness.note(asked, outcome) if asked.case is None else None
        if warning is not None:
            self._record.warn(warning)
        return outcome

    def _note(self, pending: Pending, asked: Asked, outcome: float) -> None:
        """Seen from the question's first item, which another question that waits for this call may have second."""
        pending.outcomes.append(outcome if asked.first == pending.question.first else turn(outcome, self._family))

    def _vote(self, pending: Pending) -> None:
        if self._orders == 2:
            one, other = pending.outcomes
            self._record.stats = self._record.stats.after_both(one, other, self._family.tie)
        self.skips_in_a_row = 0
        self._close(pending, sum(pending.outcomes) / self._orders)

    def _skip(self, pending: Pending, reason: str) -> None:
        self._record.costs.skips += 1
        self._record.skipped[pending.question.id] = reason
        self.skips_in_a_row += 1
        self._close(pending, None)

    def _close(self, pending: Pending, outcome: float | None) -> None:
        try:
            if outcome is None:
                self._study.skip(pending.question)
            else:
                self._study.tell(pending.question, outcome)
        except AlreadyAnswered:  # somebody else closed it meanwhile: a voided judge, an expired question
            pass
        del self._open[pending.question.id]
        self._record.show()
