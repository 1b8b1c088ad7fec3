"""A study in memory: ask, tell, verdict.

Answers may come in any order, and how long one takes must not bias the verdict. The `edges` certificate takes every
answer as it comes and counts what is still out as lost. Others need the votes in the order asked: then `_settled` has
folded every question up to the oldest one still out, and it alone decides; `_ahead` also has the answers that came out
of turn, and only chooses what to ask next.
"""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import numpy as np

from shortlist import loop
from shortlist.certificates.posterior import chances
from shortlist.certificates.verdict import Verdict, named
from shortlist.checks import whole
from shortlist.errors import (
    AlreadyAnswered,
    BadOutcome,
    BadProblem,
    NothingToAsk,
    StudyDone,
    UnknownItem,
    UnknownQuestion,
    VoidJudge,
)
from shortlist.facts import Questions
from shortlist.pairs import pair_items, pair_number
from shortlist.problem import Problem
from shortlist.rules.bridge import Bridge
from shortlist.rules.rule import Rule
from shortlist.tally import Vote
from shortlist.threads import one_thread

Pairs = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class Question:
    """Which of these two is better? `first` was put first by a fair coin."""

    id: int
    first: str
    second: str
    judge: str | None = None
    bet: float = 0.0  # what the certificate bet on `first` when it was asked


@dataclass(frozen=True)
class Answer:
    """A question with its outcome as seen from its first item; None while it is out or if it was skipped."""

    question: Question
    outcome: float | None = None
    closed: bool = False
    undone: bool = False


class Study:
    """Made by `create_study`."""

    def __init__(
        self, items: Sequence[str], problem: Problem, rule: Rule, certificate: loop.Certificate, seed: int
    ) -> None:
        self.items = check_items(items)
        self.problem = problem
        self.seed = seed
        self._number = {item: number for number, item in enumerate(self.items)}
        self._settled = self._ahead = loop.start(problem, rule, certificate, seed)
        self._history: list[Answer] = []
        self._n_settled = 0
        self._n_out: dict[int, None] = {}  # numbers of open questions, in the order asked
        self._any_order = certificate.any_order(problem)
        self._voided: set[str | None] = set()
        self._skipped: list[int] = []
        self._named: tuple[Verdict[int], Verdict[str]] | None = None

    def __repr__(self) -> str:
        return f"<Study of {len(self.items)} items, {len(self.out)} questions out. {self.verdict}>"

    @overload
    def ask(self, count: None = None, *, judge: str | None = None, avoid: Pairs = ()) -> Question: ...
    @overload
    def ask(self, count: int, *, judge: str | None = None, avoid: Pairs = ()) -> list[Question]: ...
    def ask(
        self, count: int | None = None, *, judge: str | None = None, avoid: Pairs = ()
    ) -> Question | list[Question]:
        """The question to put to a judge next; with a count, a list of several to have out at once.

        `avoid` are pairs of items that this judge must not be shown, such as their own work.

        Raises StudyDone when there is a verdict, NothingToAsk when the vote budget is all asked for; a list is
        shorter where the budget ends.
        """
        shunned = self._pair_numbers(avoid)
        if judge in self._voided:
            raise VoidJudge(str(judge))
        if count is None:
            return self._ask_one(judge, shunned)
        questions = [self._ask_one(judge, shunned)] if whole("count", count, 1) else []
        while len(questions) < count:
            try:
                questions.append(self._ask_one(judge, shunned))
            except NothingToAsk:
                break
        return questions

    def _ask_one(self, judge: str | None, avoid: frozenset[int]) -> Question:
        if self._settled.verdict.done:
            raise StudyDone(str(self._settled.verdict.reason))
        budget = self.problem.max_votes
        if budget is not None and len(self._n_out) + round(self._ahead.tally.votes) >= budget:
            raise NothingToAsk(f"all {budget} votes of the budget are asked for; answer or skip what is out")
        out = [pair_number(self.problem.n, *self._ends(question)) for question in self.out]
        pair = loop.ask(self._ahead, out + self._skipped, avoid)
        i, j = pair_items(self.problem.n, pair)
        number = len(self._history)
        if hashlib.blake2b(f"{self.seed} {number}".encode(), digest_size=1).digest()[0] % 2:  # a fair coin
            i, j = j, i
        bet = float(loop.bets(self._ahead, np.array([i]), np.array([j]))[0])
        self._history.append(Answer(Question(number, self.items[i], self.items[j], judge, bet)))
        self._n_out[number] = None
        return self._history[-1].question

    def tell(
        self, question: Question | int, outcome: float | Literal["tie"] | None = None, *, winner: str | None = None
    ) -> Verdict[str]:
        """Answer a question: tell(q, winner=q.first), tell(q, "tie") or tell(q, 0.75) from its first item's side.

        While questions are out the verdict is careful: tell or skip every question that was asked.
        """
        answer = self._open_question(question)
        value = self._outcome(answer.question, outcome, winner)
        return self._close(replace(answer, outcome=value, closed=True))

    def undo(self, question: Question | int) -> Verdict[str]:
        """Take an answer back. What it proved is gone, what it spoke against stays: an undo after a look at the
        results can then never help an answer along. The pair may be asked again."""
        number = question.id if isinstance(question, Question) else question
        answer = self._known(number)
        if answer.outcome is None or answer.undone:
            raise UnknownQuestion(number)
        return self._take_back([answer])

    def void(self, judge: str) -> Verdict[str]:
        """Ask this judge nothing more, and take all their answers back as `undo` does."""
        self._voided.add(judge)
        theirs = [answer for answer in self._history if answer.question.judge == judge]
        self._take_back([answer for answer in theirs if answer.outcome is not None and not answer.undone])
        for answer in theirs:  # only now: what is out no longer counts as lost then
            if not answer.closed:
                self.skip(answer.question)
        return self.verdict

    def _take_back(self, answers: Sequence[Answer]) -> Verdict[str]:
        if not answers:
            return self.verdict
        if not self._any_order:
            raise BadProblem(f"the {self._ahead.certificate.name} certificate cannot take votes back; rule='edges' can")
        with one_thread():
            state = loop.withdraw(self._ahead, [self._vote(answer) for answer in answers], self._waiting())
        for answer in answers:
            self._history[answer.question.id] = replace(answer, undone=True)
        self._settled = self._ahead = state
        return self.verdict

    def skip(self, question: Question | int) -> Verdict[str]:
        """Close a question without a vote; its pair counts as asked. Only for reasons that do not depend on what the
        answer would have been."""
        answer = self._open_question(question)
        verdict = self._close(replace(answer, closed=True))
        self._skipped.append(pair_number(self.problem.n, *self._ends(answer.question)))
        return verdict

    @property
    def verdict(self) -> Verdict[str]:
        """The verdict by the stopping rule; cheap. Its error bound may be some votes old: see `examine`."""
        state = self._settled
        if self._named is None or not state.verdict.says_the_same(self._named[0]):
            self._named = state.verdict, named(state.verdict, self.items, state.theta_hat)
        elif self._named[0] is not state.verdict:
            self._named = state.verdict, self._named[1].after(state.verdict.votes, state.verdict.votes_left)
        return self._named[1]

    def examine(self) -> Verdict[str]:
        """The verdict in full: error bound now, who is certainly in or out. May take a while for many items."""
        with one_thread():
            return named(loop.examine(self._settled, self._waiting()), self.items, self._settled.theta_hat)

    @property
    def advice(self) -> str | None:
        """What the owner should know: a tie that will never end, or pairs that block a proof."""
        state, problem = self._ahead, self.problem
        if state.verdict.done or not isinstance(state.rule, Bridge):
            return None
        if state.memory.plan is not None and state.memory.plan.blocked:
            u, v = (self.items[i] for i in state.memory.plan.blocked[0])
            return f"{u} and {v} cannot be told apart by the allowed pairs; allow more or nothing will be proved"
        hint = state.rule.hint(state.memory, state.facts)
        if hint is not None:
            u, v = (self.items[i] for i in hint.line)
            return (
                f"{u} and {v} look tied at the line; a tolerance of {hint.tolerance:g} would end in about "
                f"{round(hint.votes, -2 if hint.votes > 1000 else -1):,.0f} votes"
            )
        if problem.tolerance == 0 and problem.max_votes is None and state.verdict.votes == 0:
            return "no tolerance and no vote budget: if two items tie at the line, this study never ends by itself"
        return None

    @property
    def utilities(self) -> dict[str, float]:
        """The estimate from all answers so far: maximum likelihood, or the planner's own where none is kept."""
        return dict(zip(self.items, map(float, self._ahead.theta_hat), strict=True))

    def chances(self, scale: float = 1.5) -> dict[str, float]:
        """Each item's probability of being in the top k if utilities are N(0, scale^2): to look at, not a proof."""
        with one_thread():
            found = chances(self.problem, self._ahead.tally, scale)
        return dict(zip(self.items, map(float, found), strict=True))

    @property
    def out(self) -> list[Question]:
        """Questions asked and not closed, oldest first."""
        return [self._history[number].question for number in self._n_out]

    @property
    def history(self) -> list[Answer]:
        """All questions in the order asked, with what became of them."""
        return list(self._history)

    def _close(self, answer: Answer) -> Verdict[str]:
        """Fold what can be folded; the study changes only once everything is computed."""
        if self._any_order:
            return self._close_now(answer)
        number, settled, n_settled = answer.question.id, self._settled, self._n_settled
        unsettled = self._history[n_settled:]
        unsettled[number - n_settled] = answer
        with one_thread():
            while unsettled and unsettled[0].closed:
                settled, n_settled = self._fold(settled, unsettled.pop(0)), n_settled + 1
            ahead = loop.look_ahead(settled, [vote for later in unsettled for vote in self._votes(later)])
        self._history[number] = answer
        del self._n_out[number]
        self._settled, self._n_settled, self._ahead = settled, n_settled, ahead
        return self.verdict

    def _close_now(self, answer: Answer) -> Verdict[str]:
        number = answer.question.id
        waiting = self._waiting(but=number)
        with nullcontext() if self._ahead.facts.mle is None else one_thread():
            if answer.outcome is None:
                state = loop.check(self._ahead, waiting)
            else:
                state = loop.tell(self._ahead, self._vote(answer), waiting)
        self._history[number] = answer
        del self._n_out[number]
        self._settled = self._ahead = state
        return self.verdict

    def _waiting(self, but: int | None = None) -> Questions | None:
        """What is out, for a certificate that counts it as lost."""
        if not self._any_order:
            return None
        return loop.questions_out([self._vote(self._history[number]) for number in self._n_out if number != but])

    def _vote(self, answer: Answer) -> Vote:
        return Vote(*self._ends(answer.question), answer.outcome or 0.0, answer.question.bet)

    def _pair_numbers(self, pairs: Pairs) -> frozenset[int]:
        return frozenset(check_pairs(self.items, pairs)) if pairs else frozenset()

    def _fold(self, state: loop.State, answer: Answer) -> loop.State:
        for vote in self._votes(answer):
            state = loop.tell(state, vote)
        return state

    def _votes(self, answer: Answer) -> list[Vote]:
        return [] if answer.outcome is None else [self._vote(answer)]

    def _ends(self, question: Question) -> tuple[int, int]:
        return self._number[question.first], self._number[question.second]

    def _open_question(self, question: Question | int) -> Answer:
        answer = self._known(question.id if isinstance(question, Question) else question)
        if isinstance(question, Question) and question != answer.question:
            raise UnknownQuestion(question.id)
        if answer.closed:
            raise AlreadyAnswered(answer.question.id)
        return answer

    def _known(self, number: int) -> Answer:
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(self._history):
            raise UnknownQuestion(number)
        return self._history[number]

    def _outcome(self, question: Question, outcome: Any, winner: str | None) -> float:
        if (outcome is None) == (winner is None):
            raise BadOutcome("give either an outcome or winner=, and one of them")
        family = self.problem.family
        if winner is not None:
            return self._win(question, winner)
        if isinstance(outcome, str | bytes):
            if outcome == "tie":
                return family.tie
            raise BadOutcome(f"outcome {outcome!r} is no number; for a name say winner={outcome!r}, else give 'tie'")
        try:
            number = np.asarray(outcome, dtype=np.float64)
        except (TypeError, ValueError):
            raise BadOutcome(f"outcome {outcome!r} is no number; give one, 'tie', or winner=") from None
        if number.ndim != 0:
            raise BadOutcome(f"outcome {outcome!r} is not a single number; answer one question at a time")
        family.check(number.reshape(1))
        return float(number)

    def _win(self, question: Question, winner: str) -> float:
        family = self.problem.family
        if not isinstance(winner, str) or winner not in (question.first, question.second):
            raise UnknownItem(winner)
        if family.win is None:
            raise BadOutcome(f"the {family.name} family needs the measured difference, not a winner")
        return family.win if winner == question.first else float(family.flip(np.asarray(family.win)))


def check_items(items: Any) -> tuple[str, ...]:
    """Distinct names in an order of their own."""
    if isinstance(items, str | bytes | set | frozenset) or not hasattr(items, "__iter__"):
        raise BadProblem(f"items is a {type(items).__name__}; give a list of item names")
    names = tuple(items)
    for name in names:
        if not isinstance(name, str) or not name:
            raise BadProblem(f"item {name!r} is no name; every item needs a string that is not empty")
    doubled = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if doubled:
        raise BadProblem(f"items must differ; given more than once: {', '.join(doubled[:5])}")
    if "tie" in names:
        raise BadProblem("an item cannot be called 'tie': judges say that when they see no difference")
    return names


def check_pairs(items: Sequence[str], pairs: Pairs) -> tuple[int, ...]:
    """The numbers of pairs of items, in increasing order."""
    number = {item: place for place, item in enumerate(items)}
    found = set()
    for first, second in pairs:
        if first not in number or second not in number or first == second:
            raise BadProblem(f"({first!r}, {second!r}) is no pair of two different items of this study")
        found.add(pair_number(len(items), number[first], number[second]))
    return tuple(sorted(found))
