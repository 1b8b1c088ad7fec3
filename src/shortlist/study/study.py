"""A study: ask, tell, verdict. Whatever happens becomes a record (records.py) in a storage, and where the study stands
is the fold of its records (desk.py). Several processes may work on one study: each reads what the others added before
it adds something itself.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
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
    LateAnswer,
    NothingToAsk,
    StudyDone,
    StudyPaused,
    UnknownItem,
    UnknownQuestion,
    VoidJudge,
)
from shortlist.pairs import pair_number
from shortlist.problem import Problem
from shortlist.rules.bridge import Bridge
from shortlist.rules.rule import Rule
from shortlist.study.codec import decode, encode
from shortlist.study.desk import Desk, apply, apply_all, empty_desk, next_question, waiting
from shortlist.study.records import Asked, Cast, Imported, Late, Paused, Record, Skipped, TakenBack, Told
from shortlist.study.storage import Entry, Memory, Snapshot, Storage
from shortlist.threads import one_thread

Pairs = Iterable[tuple[str, str]]
SNAPSHOT = 1000  # records and votes to fold before a snapshot pays
IMPORT = 1000  # votes in one record
EXPIRED = "lease ran out"


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
    """Made by `create_study` and `load_study`."""

    def __init__(
        self,
        items: Sequence[str],
        problem: Problem,
        rule: Rule,
        certificate: loop.Certificate,
        seed: int,
        name: str = "study",
        storage: Storage | None = None,
    ) -> None:
        """The study of that name in the storage; left out, a new one in memory."""
        self.items = check_items(items)
        self.problem, self.seed, self.name = problem, seed, name
        self._number = {item: number for number, item in enumerate(self.items)}
        if storage is None:
            storage = Memory()
            storage.create(name, "")
        self._storage: Storage = storage
        self._desk, self._read = empty_desk(loop.start(problem, rule, certificate, seed)), 0
        self._known = [problem, problem.family, rule, certificate]
        self._named: tuple[Verdict[int], Verdict[str]] | None = None
        self._saved = 0
        self._lock = threading.RLock()  # one thread of this process at a time; the storage's lock is for all
        self._resume()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    def __repr__(self) -> str:
        return f"<Study of {len(self.items)} items, {len(self.out)} questions out. {self.verdict}>"

    @overload
    def ask(
        self, count: None = None, *, judge: str | None = None, avoid: Pairs = (), lease: float | None = None,
        pair: tuple[str, str] | None = None,
    ) -> Question: ...  # fmt: skip
    @overload
    def ask(
        self, count: int, *, judge: str | None = None, avoid: Pairs = (), lease: float | None = None,
        pair: tuple[str, str] | None = None,
    ) -> list[Question]: ...  # fmt: skip
    def ask(
        self, count: int | None = None, *, judge: str | None = None, avoid: Pairs = (), lease: float | None = None,
        pair: tuple[str, str] | None = None,
    ) -> Question | list[Question]:  # fmt: skip
        """The question to put to a judge next; with a count, a list of several to have out at once.

        `avoid` are pairs of items that this judge must not be shown, such as their own work. After `lease` seconds
        without an answer the question is closed as skipped. `pair` asks about these two items, as after an undo.

        Raises StudyDone when there is a verdict, NothingToAsk when the vote budget is all asked for; a list is
        shorter where the budget ends.
        """
        shunned = frozenset(check_pairs(self.items, avoid)) if avoid else frozenset[int]()
        wanted = 1 if count is None else whole("count", count, 1)
        chosen = None if pair is None else self._allowed(check_pairs(self.items, [pair])[0])
        asked: list[Asked] = []

        def decide(desk: Desk) -> tuple[Sequence[Record], Desk]:
            now = time.time()
            expired = self._expired(now)
            desk = apply_all(desk, expired)
            self._check_open(judge)
            for _ in range(wanted):
                try:
                    asked.append(next_question(desk, judge, shunned, None if lease is None else now + lease, chosen))
                except NothingToAsk:
                    if not asked:
                        raise
                    break
                desk = apply(asked[-1], desk)
            return [*expired, *asked], desk

        self._write(decide)
        questions = [self._question(record) for record in asked]
        return questions[0] if count is None else questions

    def tell(
        self, question: Question | int, outcome: float | Literal["tie"] | None = None, *, winner: str | None = None
    ) -> Verdict[str]:
        """Answer a question: tell(q, winner=q.first), tell(q, "tie") or tell(q, 0.75) from its first item's side.

        While questions are out the verdict is careful: tell or skip every question that was asked.
        """
        number = _id(question)

        def decide() -> list[Record]:
            value = self._outcome(self._question(self._asked(question)), outcome, winner)
            return [Told(number, value)] if self._is_out(number) else [self._late(number, value)]

        if isinstance(self._add(decide)[0], Late):
            raise LateAnswer(number)
        return self.verdict

    def skip(self, question: Question | int, reason: str = "") -> Verdict[str]:
        """Close a question without a vote; its pair counts as asked. Only for reasons that do not depend on what the
        answer would have been."""
        number = _id(question)

        def decide() -> list[Record]:
            self._asked(question)
            if not self._is_out(number):
                raise AlreadyAnswered(number)
            return [Skipped(number, reason)]

        self._add(decide)
        return self.verdict

    def undo(self, question: Question | int) -> Verdict[str]:
        """Take an answer back. What it proved is gone, what it spoke against stays: an undo after a look at the
        results can then never help an answer along. The pair may be asked again."""
        number = _id(question)

        def decide() -> list[Record]:
            cast = self._cast(self._asked(question))
            if cast is None:
                raise UnknownQuestion(number)
            self._check_undo()
            return [TakenBack((cast,))]

        self._add(decide)
        return self.verdict

    def void(self, judge: str) -> Verdict[str]:
        """Ask this judge nothing more, and take all their answers back as `undo` does."""

        def decide() -> list[Record]:
            records = [entry.record for entry in self._storage.since(self.name, 0)]
            casts = [cast for cast in _casts(records, judge).values() if cast is not None]
            if casts:
                self._check_undo()
            open_ones = [Skipped(asked.question, "judge voided") for asked in self._desk.out if asked.judge == judge]
            return [TakenBack(tuple(casts), judge), *open_ones]  # in this order: what is out counts as lost until then

        self._add(decide)
        return self.verdict

    def import_votes(
        self, first: Sequence[str], second: Sequence[str], outcome: Sequence[float], judge: Sequence[str | None] = (),
        source: str = "",
    ) -> Verdict[str]:  # fmt: skip
        """Count votes from elsewhere, in their order. For each pair they must be complete: not picked by outcome."""
        numbers = [[self._item_number(name) for name in side] for side in (first, second)]
        values = np.asarray(outcome, dtype=np.float64)
        judges = tuple(judge) if judge else (None,) * len(values)
        if not len(numbers[0]) == len(numbers[1]) == len(values) == len(judges):
            raise BadOutcome("first, second, outcome and judge must be of one length")
        self.problem.family.check(values)
        votes = Imported(tuple(numbers[0]), tuple(numbers[1]), tuple(values.tolist()), judges, source)
        self._add(lambda: [votes.part(begin, begin + IMPORT) for begin in range(0, len(values), IMPORT)])
        return self.verdict

    def pause(self, paused: bool = True) -> None:
        """Give out no more questions; answers to those that are out still count. pause(False) opens it again."""
        self._add(lambda: [Paused(paused)] if paused != self._desk.paused else [])

    @property
    def paused(self) -> bool:
        return self._desk.paused

    def refresh(self) -> Verdict[str]:
        """Read what other processes have added."""
        with self._lock:
            self._fold(self._storage.since(self.name, self._read))
        return self.verdict

    @property
    def verdict(self) -> Verdict[str]:
        """The verdict by the stopping rule; cheap. Its error bound may be some votes old: see `examine`."""
        state = self._desk.settled
        if self._named is None or not state.verdict.says_the_same(self._named[0]):
            self._named = state.verdict, named(state.verdict, self.items, state.theta_hat)
        elif self._named[0] is not state.verdict:
            self._named = state.verdict, self._named[1].after(state.verdict.votes, state.verdict.votes_left)
        return self._named[1]

    def examine(self) -> Verdict[str]:
        """The verdict in full: error bound now, who is certainly in or out. May take a while for many items."""
        state = self._desk.settled
        with one_thread():
            return named(loop.examine(state, waiting(self._desk)), self.items, state.theta_hat)

    @property
    def advice(self) -> str | None:
        """What the owner should know: a tie that will never end, or pairs that block a proof."""
        state, problem = self._desk.ahead, self.problem
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
        return dict(zip(self.items, map(float, self._desk.ahead.theta_hat), strict=True))

    def chances(self, scale: float = 1.5) -> dict[str, float]:
        """Each item's probability of being in the top k if utilities are N(0, scale^2): to look at, not a proof."""
        with one_thread():
            found = chances(self.problem, self._desk.ahead.tally, scale)
        return dict(zip(self.items, map(float, found), strict=True))

    def question(self, number: int) -> Question:
        """A question that was asked, by its id."""
        return self._question(self._asked(number))

    @property
    def votes(self) -> list[tuple[str, str, float, str | None]]:
        """All votes that count, imported ones too: first, second, outcome and judge, in the order they came in."""
        gone = {answer.question.id for answer in self.history if answer.undone}
        asked: dict[int, Question] = {}
        votes: list[tuple[str, str, float, str | None]] = []
        for entry in self.entries:
            match entry.record:
                case Asked() as record:
                    asked[record.question] = self._question(record)
                case Told(number, outcome) if number not in gone:
                    votes.append((asked[number].first, asked[number].second, outcome, asked[number].judge))
                case Imported() as record:
                    names = ([self.items[i] for i in side] for side in (record.first, record.second))
                    votes += zip(*names, record.outcome, record.judge, strict=True)
        return votes

    @property
    def out(self) -> list[Question]:
        """Questions asked and not closed, oldest first."""
        return [self._question(asked) for asked in self._desk.out]

    @property
    def entries(self) -> list[Entry]:
        """All records, with the times they were added."""
        return self._storage.since(self.name, 0)

    @property
    def history(self) -> list[Answer]:
        """All questions in the order asked, with what became of them."""
        answers: dict[int, Answer] = {}
        for entry in self.entries:
            match entry.record:
                case Asked() as asked:
                    answers[asked.question] = Answer(self._question(asked))
                case Told(question, outcome):
                    answers[question] = Answer(answers[question].question, outcome, True)
                case Skipped(question, _):
                    answers[question] = Answer(answers[question].question, None, True)
                case TakenBack(votes, _):
                    for cast in votes:
                        answers[cast.question] = Answer(answers[cast.question].question, cast.outcome, True, True)
        return list(answers.values())

    def _write(self, decide: Callable[[Desk], tuple[Sequence[Record], Desk]]) -> Sequence[Record]:
        """Under the study's lock: read what is new, decide what to add, add it. What cannot be folded is not added."""
        with self._lock:
            with self._storage.writing(self.name) as writer:
                self._fold(writer.since(self._read))
                records, desk = decide(self._desk)
                writer.add(self._read, records)
            self._desk, self._read = desk, self._read + len(records)
            self._save_snapshot()
        return records

    def _add(self, decide: Callable[[], Sequence[Record]]) -> Sequence[Record]:
        """Write records that are folded in the usual way."""

        def fold(desk: Desk) -> tuple[Sequence[Record], Desk]:
            records = decide()
            return records, apply_all(desk, records)

        return self._write(fold)

    def _fold(self, entries: Sequence[Entry]) -> None:
        self._desk = apply_all(self._desk, (entry.record for entry in entries))
        self._read += len(entries)

    def _resume(self) -> None:
        snapshot = self._storage.snapshot(self.name)
        desk = None if snapshot is None else decode(snapshot.data, self._known)
        if snapshot is not None and desk is not None:
            self._desk, self._read = desk, snapshot.number
        self._saved = self._effort
        self.refresh()
        self._save_snapshot()

    @property
    def _effort(self) -> int:
        return self._read + round(self._desk.settled.tally.votes)

    def _save_snapshot(self) -> None:
        if self._storage.keeps_snapshots and self._effort >= self._saved + SNAPSHOT:
            self._storage.save_snapshot(self.name, Snapshot(self._read, encode(self._desk, self._known)))
            self._saved = self._effort

    def _check_open(self, judge: str | None) -> None:
        if judge in self._desk.voided:
            raise VoidJudge(str(judge))
        if self._desk.settled.verdict.done:
            raise StudyDone(str(self._desk.settled.verdict.reason))
        if self._desk.paused:
            raise StudyPaused(self.name)

    def _allowed(self, pair: int) -> int:
        if self.problem.allowed is not None and pair not in self.problem.allowed:
            raise BadProblem("this pair is not among the allowed ones of the study; ask about another")
        return pair

    def _check_undo(self) -> None:
        if not self._desk.any_order:
            name = self._desk.ahead.certificate.name
            raise BadProblem(f"the {name} certificate cannot take votes back; rule='edges' can")

    def _expired(self, now: float) -> list[Record]:
        leased = [turn.asked for turn in self._desk.turns.values() if turn.asked.lease is not None and not turn.closed]
        return [Skipped(asked.question, EXPIRED) for asked in leased if asked.lease is not None and asked.lease < now]

    def _is_out(self, number: int) -> bool:
        turn = self._desk.turns.get(number)
        return turn is not None and not turn.closed

    def _late(self, number: int, outcome: float) -> Record:
        """An answer after the lease ran out is kept; a second answer is refused."""
        records = self._records_of(number)
        if not any(isinstance(record, Skipped) and record.reason == EXPIRED for record in records):
            raise AlreadyAnswered(number)
        return Late(number, outcome)

    def _asked(self, question: Question | int) -> Asked:
        """The record of a question, which must be the one that was asked."""
        number = _id(question)
        turn = self._desk.turns.get(number)
        if turn is not None:
            asked = turn.asked
        elif 0 <= number < self._desk.n_asked:
            found = self._records_of(number)[0]
            assert isinstance(found, Asked)
            asked = found
        else:
            raise UnknownQuestion(number)
        if isinstance(question, Question) and question != self._question(asked):
            raise UnknownQuestion(number)
        return asked

    def _cast(self, asked: Asked) -> Cast | None:
        """The vote that answers this question, unless it was taken back."""
        records = self._records_of(asked.question)
        return None if asked.judge in self._desk.voided else _casts(records, asked.judge).get(asked.question)

    def _records_of(self, number: int) -> list[Record]:
        return [entry.record for entry in self._storage.of_question(self.name, number)]

    def _question(self, asked: Asked) -> Question:
        return Question(asked.question, self.items[asked.first], self.items[asked.second], asked.judge, asked.bet)

    def _item_number(self, name: str) -> int:
        if name not in self._number:
            raise UnknownItem(name)
        return self._number[name]

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


def _id(question: Question | int) -> int:
    number = question.id if isinstance(question, Question) else question
    if not isinstance(number, int) or isinstance(number, bool):
        raise UnknownQuestion(number)
    return number


def _casts(records: Sequence[Record], judge: str | None) -> dict[int, Cast | None]:
    """The vote on each question that this judge answered, None if it was taken back."""
    asked: dict[int, Asked] = {}
    casts: dict[int, Cast | None] = {}
    for record in records:
        match record:
            case Asked() if record.judge == judge:
                asked[record.question] = record
            case Told(question, outcome) if question in asked:
                there = asked[question]
                casts[question] = Cast(question, there.first, there.second, outcome, there.bet)
            case TakenBack(votes, _):
                casts |= {cast.question: None for cast in votes if cast.question in casts}
    return casts


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
