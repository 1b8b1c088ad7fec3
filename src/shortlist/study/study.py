"""A study: ask, tell, verdict. Whatever happens becomes a record (records.py) in a storage, and where the study stands
is the fold of its records (desk.py). Several processes may work on one study: each reads what the others added before
it adds something itself (journal.py).
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Literal, overload

from shortlist import loop
from shortlist.certificates.posterior import chances
from shortlist.certificates.verdict import Verdict, named
from shortlist.checks import whole
from shortlist.dice import draw_case
from shortlist.errors import (
    AlreadyAnswered,
    BadOutcome,
    BadProblem,
    BadVotes,
    LateAnswer,
    NothingToAsk,
    NothingToUndo,
    StudyDone,
    StudyPaused,
    UnknownQuestion,
    VoidJudge,
)
from shortlist.problem import Problem
from shortlist.rules.rule import Rule
from shortlist.study.advice import advise
from shortlist.study.desk import Desk, apply, apply_all, empty_desk, imported_casts, next_question, waiting
from shortlist.study.history import Row, answers, casts, question_of, votes_that_count
from shortlist.study.journal import Journal
from shortlist.study.questions import Answer, Pair, Pairs, Question, as_outcomes, check_pairs, outcome_told, question_id
from shortlist.study.records import (
    EXPIRED,
    VOIDED,
    Asked,
    Cast,
    Imported,
    Late,
    Paused,
    Record,
    Skipped,
    TakenBack,
    TakenOver,
    Told,
)
from shortlist.study.storage import Entry, Memory, Storage
from shortlist.tally import Tally
from shortlist.threads import one_thread

IMPORT = 1000  # votes in one record


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
        self.items = tuple(items)
        self.problem, self.seed, self.name = problem, seed, name
        self._number = {item: number for number, item in enumerate(self.items)}
        if storage is None:
            storage = Memory()
            storage.create(name, "")
        start = empty_desk(loop.start(problem, rule, certificate, seed))
        self._journal = Journal(storage, name, start, [problem, problem.family, rule, certificate])
        self._named: tuple[Verdict[int], Verdict[str]] | None = None

    def __repr__(self) -> str:
        return f"<Study of {len(self.items)} items, {len(self.out)} questions out. {self.verdict}>"

    @overload
    def ask(
        self, count: None = None, *, judge: str | None = None, avoid: Pairs = (), pair: Pair | None = None,
        lease: float | None = None, cases: Sequence[str] = (), run: str | None = None,
    ) -> Question: ...  # fmt: skip
    @overload
    def ask(
        self, count: int, *, judge: str | None = None, avoid: Pairs = (), pair: Pair | None = None,
        lease: float | None = None, cases: Sequence[str] = (), run: str | None = None,
    ) -> list[Question]: ...  # fmt: skip
    def ask(
        self, count: int | None = None, *, judge: str | None = None, avoid: Pairs = (), pair: Pair | None = None,
        lease: float | None = None, cases: Sequence[str] = (), run: str | None = None,
    ) -> Question | list[Question]:  # fmt: skip
        """The question to put to a judge next; with a count, a list of several to have out at once.

        `avoid` are pairs of items that this judge must not be shown, such as their own work; `pair` asks about these
        two, as after an undo. After `lease` seconds without an answer the question is closed as skipped. `cases` are
        ids of what the items can be compared on: each question draws one at random, with replacement. `run` is who
        works on it, see `take_over`.

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
            if expired and desk.settled.verdict.done:  # nothing else stood in the way of a verdict
                return expired, desk
            self._check_open(desk, judge)
            for _ in range(wanted):
                try:
                    record = next_question(desk, judge, shunned, None if lease is None else now + lease, chosen)
                    asked.append(self._prepared(record, cases, run) if cases or run else record)
                except NothingToAsk:
                    if not asked:
                        raise
                    break
                desk = apply(asked[-1], desk)
            return [*expired, *asked], desk

        self._journal.write(decide)
        if not asked:
            raise StudyDone(str(self.verdict.reason))
        questions = [self._question(record) for record in asked]
        return questions[0] if count is None else questions

    def holders(self, judge: str) -> set[str | None]:
        """The runs that the judge's open questions are with; None is nobody."""
        self.refresh()
        return {asked.run for asked in self._desk.out if asked.judge == judge}

    def take_over(self, judge: str, run: str, is_free: Callable[[str | None], bool]) -> list[Question]:
        """The judge's questions that are out with nobody at work on them any more, now this run's: no other gets them.
        `is_free` is given the run that had a question last, or None."""
        taken: list[Asked] = []

        def decide() -> list[Record]:
            taken[:] = [asked for asked in self._desk.out if asked.judge == judge and is_free(asked.run)]
            return [TakenOver(asked.question, run) for asked in taken]

        self._journal.add(decide)
        return [self._question(asked) for asked in taken]

    def tell(
        self, question: Question | int, outcome: float | Literal["tie"] | None = None, *, winner: str | None = None
    ) -> Verdict[str]:
        """Answer a question: tell(q, winner=q.first), tell(q, "tie") or tell(q, 0.75) from its first item's side.

        While questions are out the verdict is careful: tell or skip every question that was asked.
        """
        number = question_id(question)

        def decide() -> list[Record]:
            there = self._question(self._asked(question))
            value = outcome_told(self.problem.family, there, outcome, winner)
            return [Told(number, value)] if self.is_out(number) else [self._late(number, value)]

        if isinstance(self._journal.add(decide)[0], Late):
            raise LateAnswer(number)
        return self.verdict

    def skip(self, question: Question | int, reason: str = "") -> Verdict[str]:
        """Close a question without a vote; its pair counts as asked. Only for reasons that do not depend on what the
        answer would have been."""
        number = question_id(question)

        def decide() -> list[Record]:
            self._asked(question)
            if not self.is_out(number):
                raise AlreadyAnswered(number)
            return [Skipped(number, reason)]

        self._journal.add(decide)
        return self.verdict

    def undo(self, question: Question | int) -> Verdict[str]:
        """Take an answer back. What it proved is gone, what it spoke against stays: an undo after a look at the
        results can then never help an answer along. The pair may be asked again. A verdict reached before stands."""
        number = question_id(question)

        def decide() -> list[Record]:
            cast = self._cast(self._asked(question))
            if cast is None:
                raise NothingToUndo(number)
            self._check_undo()
            return [TakenBack((cast,))]

        self._journal.add(decide)
        return self.verdict

    def void(self, judge: str) -> Verdict[str]:
        """Ask this judge nothing more, and take all their votes back as `undo` does, imported ones too. Questions that
        they have not answered count as lost by both items, or as skips where votes count in order. A verdict that was
        reached before stands."""

        def decide() -> list[Record]:
            records = self._journal.records
            told = [cast for cast in casts(records, judge).values() if cast is not None]
            imported = () if judge in self._desk.voided else imported_casts(self._journal.start, records, judge)
            if told or imported:
                self._check_undo()
            open_ones = [Skipped(asked.question, VOIDED) for asked in self._desk.out if asked.judge == judge]
            return [TakenBack((*told, *imported), judge), *open_ones]

        self._journal.add(decide)
        return self.verdict

    def import_votes(
        self, first: Sequence[str], second: Sequence[str], outcome: Sequence[float], judge: Sequence[str | None] = (),
        source: str = "",
    ) -> Verdict[str]:  # fmt: skip
        """Count votes from elsewhere, in the order in which they were cast: not sorted by winner or by pair. For each
        pair they must be complete: not picked by outcome."""
        ones, others = self._item_numbers(first), self._item_numbers(second)
        values, judges = as_outcomes(outcome), tuple(judge) if judge else (None,) * len(outcome)
        if not len(ones) == len(others) == len(values) == len(judges):
            raise BadOutcome("first, second, outcome and judge must be of one length")
        if any(i == j for i, j in zip(ones, others, strict=True)):
            raise BadOutcome("a vote is between an item and itself; leave it out")
        self.problem.family.check(values)
        votes = Imported(ones, others, tuple(values.tolist()), judges, source)

        def decide() -> list[Record]:
            for voided in self._desk.voided.intersection(name for name in judges if name is not None):
                raise VoidJudge(voided)
            if self._desk.turns and not self._desk.any_order:
                raise BadProblem("questions are out, and this study counts votes in order; answer or skip them first")
            return [votes.part(begin, begin + IMPORT) for begin in range(0, len(values), IMPORT)]

        self._journal.add(decide)
        return self.verdict

    def pause(self, paused: bool = True) -> None:
        """Give out no more questions; answers to those that are out still count. pause(False) opens it again."""
        self._journal.add(lambda: [Paused(paused)] if paused != self._desk.paused else [])

    @property
    def storage(self) -> Storage:
        """Where its records are."""
        return self._journal.storage

    @property
    def method(self) -> Rule:
        """How it asks."""
        return self._desk.ahead.rule

    @property
    def rule(self) -> loop.Certificate:
        """When it stops."""
        return self._desk.ahead.certificate

    @property
    def paused(self) -> bool:
        return self._desk.paused

    def refresh(self) -> Verdict[str]:
        """Read what other processes have added."""
        self._journal.refresh()
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
        return advise(self._desk.ahead, self.items)

    @property
    def utilities(self) -> dict[str, float]:
        """The estimate from all answers so far: maximum likelihood, or the planner's own where none is kept."""
        return dict(zip(self.items, map(float, self._desk.ahead.theta_hat), strict=True))

    @property
    def tally(self) -> Tally:
        """The votes that the verdict rests on, by pair."""
        return self._desk.ahead.tally

    def chances(self, scale: float = 1.5) -> dict[str, float]:
        """Each item's probability of being in the top k if utilities are N(0, scale^2): to look at, not a proof."""
        with one_thread():
            found = chances(self.problem, self.tally, scale)
        return dict(zip(self.items, map(float, found), strict=True))

    def question(self, number: int) -> Question:
        """A question that was asked, by its id."""
        return self._question(self._asked(number))

    @property
    def votes(self) -> list[Row]:
        """All votes that were not taken back, imported ones and those after the verdict too: first, second, outcome and
        judge, in the order they came in."""
        return votes_that_count(self._journal.records, self.items)

    @property
    def n_taken_back(self) -> int:
        """How many votes are not among `votes` because they were taken back."""
        return sum(len(record.votes) for record in self._journal.records if isinstance(record, TakenBack))

    @property
    def out(self) -> list[Question]:
        """Questions asked and not closed, oldest first."""
        return [self._question(asked) for asked in self._desk.out]

    def is_out(self, number: int) -> bool:
        """Was it asked, and is it not closed?"""
        turn = self._desk.turns.get(number)
        return turn is not None and not turn.closed

    def held_by(self, judge: str | None) -> list[Question]:
        """The judge's questions that are out, oldest first."""
        return [self._question(asked) for asked in self._desk.out if asked.judge == judge]

    @property
    def entries(self) -> list[Entry]:
        """All records, with the times they were added."""
        return self._journal.entries

    @property
    def history(self) -> list[Answer]:
        """All questions in the order asked, with what became of them."""
        return answers(self._journal.records, self.items)

    def at_once(self) -> AbstractContextManager[None]:
        """What is asked and told inside is one write to the storage, with its lock held: all of it happens or
        nothing. Keep it short, and open no other transaction inside."""
        return self._journal.at_once()

    @property
    def _desk(self) -> Desk:
        return self._journal.desk

    def _prepared(self, asked: Asked, cases: Sequence[str], run: str | None) -> Asked:
        case = draw_case(self.seed, asked.question, cases) if cases else None
        return asked._replace(case=case, run=run)

    def _check_open(self, desk: Desk, judge: str | None) -> None:
        if judge in desk.voided:
            raise VoidJudge(str(judge))
        if desk.settled.verdict.done:
            raise StudyDone(str(desk.settled.verdict.reason))
        if desk.paused:
            raise StudyPaused(self.name)

    def _allowed(self, pair: int) -> int:
        if self.problem.allowed is not None and pair not in self.problem.allowed:
            raise BadProblem("this pair is not among the allowed ones of the study; ask about another")
        return pair

    def _check_undo(self) -> None:
        if not self._desk.any_order:
            raise BadProblem(
                "only rule='edges' with wins, losses and grades can take votes back, and this study is another"
            )

    def _expired(self, now: float) -> list[Record]:
        leased = [turn.asked for turn in self._desk.turns.values() if turn.asked.lease is not None and not turn.closed]
        return [Skipped(asked.question, EXPIRED) for asked in leased if asked.lease is not None and asked.lease < now]

    def _late(self, number: int, outcome: float) -> Record:
        """An answer after the lease ran out is kept; a second answer is refused."""
        records = self._journal.records_of(number)
        if not any(isinstance(record, Skipped) and record.reason == EXPIRED for record in records):
            raise AlreadyAnswered(number)
        return Late(number, outcome)

    def _asked(self, question: Question | int) -> Asked:
        """The record of a question, which must be the one that was asked."""
        number = question_id(question)
        turn = self._desk.turns.get(number)
        if turn is not None:
            asked = turn.asked
        elif 0 <= number < self._desk.n_asked:
            found = self._journal.records_of(number)[0]
            assert isinstance(found, Asked)
            asked = found
        else:
            raise UnknownQuestion(number)
        if isinstance(question, Question) and question != self._question(asked):
            raise UnknownQuestion(number)
        return asked

    def _cast(self, asked: Asked) -> Cast | None:
        """The vote that answers this question, unless it was taken back."""
        records = self._journal.records_of(asked.question)
        return None if asked.judge in self._desk.voided else casts(records, asked.judge).get(asked.question)

    def _question(self, asked: Asked) -> Question:
        return question_of(asked, self.items)

    def _item_numbers(self, names: Sequence[str]) -> tuple[int, ...]:
        for name in names:
            if not isinstance(name, str) or name not in self._number:
                raise BadVotes(f"{name!r} is not an item of this study; leave its votes out")
        return tuple(self._number[name] for name in names)
