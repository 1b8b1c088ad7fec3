"""A study in memory: ask, tell, verdict.

Answers may come in any order; votes are folded in the order *asked*. `_settled` has folded every question up to the
oldest one still out, and it alone decides: how long an answer takes then cannot bias the verdict. `_current` has
folded all answers there are, and it only chooses what to ask next.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from shortlist import loop
from shortlist.certificates.verdict import Verdict, named
from shortlist.errors import AlreadyAnswered, BadOutcome, BadProblem, StudyDone, UnknownItem, UnknownQuestion
from shortlist.pairs import pair_ends, pair_number
from shortlist.problem import Problem
from shortlist.rules.rule import Rule
from shortlist.tally import Vote
from shortlist.threads import one_thread


@dataclass(frozen=True)
class Question:
    """Which of these two is better? `first` was put first by a fair coin."""

    id: int
    first: str
    second: str


@dataclass(frozen=True)
class Answer:
    """A question with its outcome as seen from its first item; None while it is out or if it was skipped."""

    question: Question
    outcome: float | None = None
    closed: bool = False


class Study:
    """Made by `create_study`."""

    def __init__(
        self, items: Sequence[str], problem: Problem, rule: Rule, certificate: loop.Certificate, seed: int
    ) -> None:
        self.items = _check_items(items)
        self.problem = problem
        self.seed = seed
        self._number = {item: number for number, item in enumerate(self.items)}
        self._settled = self._current = loop.start(problem, rule, certificate, seed)
        self._history: list[Answer] = []
        self._n_settled = 0
        self._named: tuple[Verdict[int], Verdict[str]] | None = None

    def ask(self) -> Question:
        """The question to put to a judge next. Raises StudyDone when there is a verdict."""
        if self._settled.verdict.done:
            raise StudyDone(str(self._settled.verdict.reason))
        out = [pair_number(self.problem.n, *self._ends(question)) for question in self.out]
        pair = loop.ask(self._current, out)
        i, j = (int(end) for end in pair_ends(self.problem.n, np.asarray(pair)))
        number = len(self._history)
        swap = np.random.default_rng((self.seed, number, 1)).random() < 0.5
        first, second = (self.items[j], self.items[i]) if swap else (self.items[i], self.items[j])
        self._history.append(Answer(Question(number, first, second)))
        return self._history[-1].question

    def ask_many(self, count: int) -> list[Question]:
        """Several questions to have out at once."""
        return [self.ask() for _ in range(count)]

    def tell(
        self, question: Question | int, outcome: float | Literal["tie"] | None = None, *, winner: str | None = None
    ) -> Verdict[str]:
        """Answer a question: tell(q, winner=q.first), tell(q, "tie") or tell(q, 0.75) from its first item's side."""
        answer = self._open_question(question)
        value = self._outcome(answer.question, outcome, winner)
        return self._close(replace(answer, outcome=value, closed=True))

    def skip(self, question: Question | int) -> Verdict[str]:
        """Close a question without a vote."""
        return self._close(replace(self._open_question(question), closed=True))

    @property
    def verdict(self) -> Verdict[str]:
        """The verdict by the stopping rule; cheap."""
        state = self._settled
        if self._named is None or self._named[0] is not state.verdict:
            self._named = state.verdict, named(state.verdict, self.items, state.theta_hat)
        return self._named[1]

    def examine(self) -> Verdict[str]:
        """The verdict in full: error bound now, who is certainly in or out. May take a while for many items."""
        with one_thread():
            return named(loop.examine(self._settled), self.items, self._settled.theta_hat)

    @property
    def utilities(self) -> dict[str, float]:
        """The estimate from all answers so far."""
        return dict(zip(self.items, map(float, self._current.theta_hat), strict=True))

    @property
    def out(self) -> list[Question]:
        """Questions asked and not closed, oldest first."""
        return [answer.question for answer in self._history[self._n_settled :] if not answer.closed]

    @property
    def answers(self) -> list[Answer]:
        """All questions in the order asked, with what became of them."""
        return list(self._history)

    def _close(self, answer: Answer) -> Verdict[str]:
        self._history[answer.question.id] = answer
        with one_thread():
            self._refold()
        return self.verdict

    def _refold(self) -> None:
        while self._n_settled < len(self._history) and self._history[self._n_settled].closed:
            self._settled = self._fold(self._settled, self._history[self._n_settled])
            self._n_settled += 1
        self._current = self._settled
        for later in self._history[self._n_settled :]:
            self._current = self._fold(self._current, later)

    def _fold(self, state: loop.State, answer: Answer) -> loop.State:
        if answer.outcome is None:
            return state
        return loop.tell(state, Vote(*self._ends(answer.question), answer.outcome))

    def _ends(self, question: Question) -> tuple[int, int]:
        return self._number[question.first], self._number[question.second]

    def _open_question(self, question: Question | int) -> Answer:
        number = question.id if isinstance(question, Question) else question
        if not (isinstance(number, int) and 0 <= number < len(self._history)):
            raise UnknownQuestion(number)
        answer = self._history[number]
        if isinstance(question, Question) and question != answer.question:
            raise UnknownQuestion(number)
        if answer.closed:
            raise AlreadyAnswered(number)
        return answer

    def _outcome(self, question: Question, outcome: float | str | None, winner: str | None) -> float:
        family = self.problem.family
        if (outcome is None) == (winner is None):
            raise BadOutcome("give either an outcome or winner=, not both and not neither")
        if winner is not None:
            if winner not in (question.first, question.second):
                raise UnknownItem(winner)
            if family.win is None:
                raise BadOutcome(f"the {family.name} family needs the measured difference, not a winner")
            return family.win if winner == question.first else float(family.flip(np.asarray(family.win)))
        value = family.tie if outcome == "tie" else outcome
        try:
            number = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise BadOutcome(f"outcome {outcome!r} is no number; give one, 'tie', or winner=") from None
        if number.ndim != 0:
            raise BadOutcome(f"outcome {outcome!r} is not a single number; answer one question at a time")
        family.check(number.reshape(1))
        return float(number)


def _check_items(items: Sequence[str]) -> tuple[str, ...]:
    if isinstance(items, str):
        raise BadProblem("items is one string; give a list of item names")
    names = tuple(items)
    if not all(isinstance(name, str) and name for name in names):
        raise BadProblem("every item needs a name: a string that is not empty")
    doubled = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if doubled:
        raise BadProblem(f"items must differ; given more than once: {', '.join(doubled[:5])}")
    if "tie" in names:
        raise BadProblem("an item cannot be called 'tie': judges say that when they see no difference")
    return names
