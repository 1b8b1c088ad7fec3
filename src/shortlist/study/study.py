"""A study: ask, tell, verdict. Every change is an event (events.py) in a storage. The fold of the events is
the state (state.py), and the table of all questions and votes (rows.py). Several processes may work on one study:
each reads what the others added before it adds its own events (sync.py).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Literal, overload

from shortlist.core import loop
from shortlist.core.linalg import one_thread
from shortlist.core.outcomes import outcome_told
from shortlist.core.problem import Problem, whole
from shortlist.core.sampling.base import SamplingRule
from shortlist.core.stopping.base import StoppingRule
from shortlist.core.stopping.posterior import chances
from shortlist.core.stopping.verdict import Verdict, named, renamed
from shortlist.core.tally import Tally, evolve
from shortlist.errors import (
    AlreadyAnswered,
    BadOutcome,
    BadProblem,
    BadVotes,
    LateAnswer,
    NothingToAsk,
    NothingToUndo,
    StudyDone,
    UnknownQuestion,
    VoidJudge,
)
from shortlist.study.caveats import find_caveats, import_caveats
from shortlist.study.claims import NO_CASES, CasePool, CasesClaim, Pools, with_claim
from shortlist.study.events import (
    DROPPED,
    EXPIRED,
    VOIDED,
    Asked,
    CountedVote,
    Entry,
    Event,
    Head,
    JudgeSetup,
    Late,
    Materials,
    Paused,
    Reopened,
    Shown,
    TakenOver,
    TextShown,
    Told,
    Withdrawn,
)
from shortlist.study.importing import ImportRows, make_import
from shortlist.study.questions import Pair, Pairs, Question, advise, as_outcomes, check_pairs, number_of_pair
from shortlist.study.rows import Row, Status, as_frame, counted, study_html
from shortlist.study.settling import (
    SETTLES_AFTER,
    all_answers,
    answers_of,
    closing,
    due,
    leaving,
    skipping,
    useless,
)
from shortlist.study.setups import Setups
from shortlist.study.state import (
    BoundHistory,
    StudyState,
    apply,
    apply_all,
    check_open,
    empty_state,
    next_question,
    pending_votes,
)
from shortlist.study.storage import MemoryStorage, Storage
from shortlist.study.sync import Sync

VoteTuple = tuple[str, str, float, str | None]  # first, second, outcome, judge
Cases = Sequence[str] | Mapping[Pair, Sequence[str]]  # ids, for all pairs or by pair


class Study:
    """A search for the best k items. `create_study` and `load_study` return one."""

    def __init__(
        self,
        items: Sequence[str],
        problem: Problem,
        sampling: SamplingRule,
        stopping: StoppingRule,
        seed: int,
        name: str = "study",
        storage: Storage | None = None,
        cases_claim: CasesClaim = "these",
    ) -> None:
        """The study of that name in the storage. Without a storage: a new study in memory."""
        self.items = tuple(items)
        self.problem, self.seed, self.name, self.cases_claim = problem, seed, name, cases_claim
        self._number = {item: number for number, item in enumerate(self.items)}
        if storage is None:
            storage = MemoryStorage()
            storage.create(name, "")
        start = empty_state(loop.start(problem, sampling, stopping, seed))
        self._sync = Sync(storage, name, self.items, start, [problem, problem.family, sampling, stopping])
        self._named: tuple[Verdict[int], Verdict[str], Pools] | None = None

    def __repr__(self) -> str:
        return f"<Study of {len(self.items)} items, {len(self._state.pending)} questions pending. {self.verdict}>"

    def _repr_html_(self) -> str:
        return study_html(self)

    @overload
    def ask(
        self, count: None = None, *, judge: str | None = None, avoid: Pairs = (), pair: Pair | None = None,
        lease: float | None = None, cases: Cases = (), once: bool = False, run: str | None = None, shown: bool = True,
    ) -> Question: ...  # fmt: skip
    @overload
    def ask(
        self, count: int, *, judge: str | None = None, avoid: Pairs = (), pair: Pair | None = None,
        lease: float | None = None, cases: Cases = (), once: bool = False, run: str | None = None, shown: bool = True,
    ) -> list[Question]: ...  # fmt: skip
    def ask(
        self, count: int | None = None, *, judge: str | None = None, avoid: Pairs = (), pair: Pair | None = None,
        lease: float | None = None, cases: Cases = (), once: bool = False, run: str | None = None, shown: bool = True,
    ) -> Question | list[Question]:  # fmt: skip
        """The next question for a judge. With a count: a list of questions to answer in parallel.

        avoid: pairs of items that this judge must not be shown, such as their own work.
        pair: ask about these two items, as after an undo.
        lease: seconds after which an unanswered question is closed. It then counts as lost by both items for good,
            because the judge may be silent for what the answer would have been. See `show`.
        cases: ids of the cases to compare on, or a mapping from each pair to its cases. Each question draws one at
            random, with replacement.
        once: draw only from cases that no earlier question of the study had, whoever was asked about whatever pair.
            Always so if the claim of the study is about cases like these.
        run: the id of the run that works on it, see `take_over`.
        shown: False prefetches: the judge does not see the question until `show`. If it is never shown, it is
            dropped when the lease ends, without effect.

        Raises StudyDone when there is a verdict, NothingToAsk when pending questions use up the vote budget, and
        CasesUsedUp when no case is left. A list is shorter where the budget or the cases end.
        """
        avoided = frozenset(check_pairs(self.items, avoid)) if avoid else frozenset[int]()
        wanted = 1 if count is None else whole("count", count, 1)
        chosen = None if pair is None else self._allowed(check_pairs(self.items, [pair])[0])
        asked: list[Asked] = []
        with self._sync.transaction():
            now = time.time()
            closed = due(self._sync.state, now)
            state = apply_all(self._sync.state, closed) if closed else self._sync.state
            if not (closed and state.settled.verdict.done):  # else only what was due delayed the verdict
                check_open(state, judge, self.name)
                pool = self._pool(cases, once)
                until = None if lease is None else now + lease
                while len(asked) < wanted:
                    try:
                        event = next_question(state, judge, avoided, chosen, pool, until, run, shown)
                    except NothingToAsk:
                        if not asked:
                            raise
                        break
                    asked.append(event)
                    state = apply(event, state)
            self._sync.add([*closed, *asked], state)
        if not asked:
            raise StudyDone(str(self.verdict.reason))
        questions = [self._question(event) for event in asked]
        return questions[0] if count is None else questions

    def holders(self, judge: str) -> set[str | None]:
        """The runs that hold the judge's pending questions; None stands for no run."""
        self.refresh()
        return {asked.run for asked in self._state.pending if asked.judge == judge}

    def take_over(self, judge: str, run: str, is_free: Callable[[str | None], bool]) -> list[Question]:
        """Give this run the judge's pending questions that no other run works on any more.
        `is_free` is given the run that had a question last, or None."""
        with self._sync.transaction():
            taken = [asked for asked in self._state.pending if asked.judge == judge and is_free(asked.run)]
            self._add(*(TakenOver(asked.question, run) for asked in taken))
        return [self._question(asked) for asked in taken]

    def show(self, question: Question | int, lease: float | None = None) -> None:
        """The judge sees a pending question now: its lease, in seconds, begins again. Call it when a prefetched
        question appears on the screen, and from time to time while it stays there. It also extends the judge's other
        leases."""
        with self._sync.transaction():
            asked = self._checked(question)
            if not self._state.is_pending(asked.id):
                raise AlreadyAnswered(asked.id)
            self._add(Shown(asked.id, None if lease is None else time.time() + lease))

    def drop_useless(self, judge: str) -> None:
        """Drop questions that were prefetched for this judge and not shown, if their pair needs no more votes."""
        self._close(lambda state: useless(state, judge))

    def tell(
        self, question: Question | int, outcome: float | Literal["tie"] | None = None, *, winner: str | None = None,
        settle: bool = True,
    ) -> Verdict[str]:  # fmt: skip
        """Answer a question: tell(q, winner=q.first), tell(q, "tie"), or tell(q, 0.75) as seen from its first item.

        A pending question counts as a loss for both items, so answer or skip every question.

        settle: False lets a person take the answer back with `undo` at no cost, until they answer another question, 30
            seconds are over, or `settle` is called. Until then the question counts as pending.
        """
        with self._sync.transaction():
            asked = self._checked(question)
            value = outcome_told(outcome, winner, asked.first, asked.second, self.problem.family)
            state = self._sync.state
            if not state.is_pending(asked.id):
                self._add(self._late(asked.id, value))
            else:
                told = Told(asked.id, value, None if settle else time.time() + SETTLES_AFTER)
                self._add(*answers_of(state, asked.judge), told)
        if not state.is_pending(asked.id):
            raise LateAnswer(asked.id)
        return self.verdict

    def settle(self, judge: str | None = None) -> Verdict[str]:
        """Make answers final. Without a judge: all of them, as before a final result. With a judge, who has left:
        theirs; what they took back and did not answer again is lost, and what they were not shown is dropped."""
        return self._close(all_answers if judge is None else lambda state: leaving(state, judge))

    def close_due(self) -> Verdict[str]:
        """Read what other processes have added, settle answers older than 30 seconds, and close questions whose lease
        has ended. `ask` and `undo` do so too."""
        now = time.time()
        return self._close(lambda state: due(state, now))

    def skip(self, question: Question | int, reason: str = "") -> Verdict[str]:
        """Close a question without a vote. Its pair counts as asked. Skip only for reasons that do not depend on what
        the answer would have been. A question whose answer was taken back is lost by both items instead."""
        with self._sync.transaction():
            asked = self._checked(question)
            if not self._state.is_pending(asked.id):
                raise AlreadyAnswered(asked.id)
            self._add(*answers_of(self._state, asked.judge), skipping(self._state, asked.id, reason))
        return self.verdict

    def undo(self, question: Question | int) -> Verdict[str]:
        """Take an answer back; the row's status is then "pending" or "undone".

        Before the answer is settled (see `tell`) this is free: the question is pending again, and can only be answered
        or lost. After that the vote is withdrawn: its support is removed and its opposition stays, so an undo after a
        look at the results cannot help an item, and later votes of this judge on this pair have bet 0. A verdict
        reached before does not change."""
        with self._sync.transaction():
            self._add(*due(self._state, time.time()))
            row = self.row(self._checked(question).id)
            if row.question is None or row.status not in ("answered", "counted"):
                raise NothingToUndo(row.question)
            self._check_undo()
            is_free = row.status == "answered"
            self._add(Reopened(row.question) if is_free else Withdrawn((self._counted_vote(row),)))
        return self.verdict

    def void(self, judge: str) -> Verdict[str]:
        """Stop asking this judge, and withdraw all their votes as `undo` does, imported ones too. Their pending
        questions count as lost by both items, or as skipped where votes count in order. A verdict reached
        before does not change."""
        with self._sync.transaction():
            answered = answers_of(self._state, judge)
            if answered:
                self._check_undo()
                self._add(*answered)
            rows = [row for row in self._sync.table.of_judge(judge) if row.status == "counted"]
            if rows:
                self._check_undo()
            open_ones = [question for question in self._state.unsettled.values() if question.is_pending]
            pending = [closing(self._state, found, VOIDED) for found in open_ones if found.asked.judge == judge]
            self._add(Withdrawn(tuple(map(self._counted_vote, rows)), judge), *pending)
        return self.verdict

    def import_votes(
        self, first: Sequence[str], second: Sequence[str], outcome: Sequence[float], judge: Sequence[str | None] = (),
        source: str = "", unit: Sequence[str | None] = (), id: Sequence[str | None] = (),
    ) -> Verdict[str]:  # fmt: skip
        """Add votes from elsewhere, in the order in which they were cast: not sorted by winner or by pair. The votes
        on each pair must be complete, not selected by outcome.

        unit: a label per vote; votes with the same label share a source of chance, such as the case they are about, and
        weigh at most as one vote together. A unit of an earlier import counts no more. None is a unit of its own.
        id: what tells votes apart that are otherwise equal.

        A row that was imported before is left out. `caveats` of the verdict says what does not count, and why.
        """
        rows = self._as_import(first, second, outcome, judge, unit, id)
        if self.cases_claim == "like these":
            raise BadProblem(
                "imported votes do not say that each case was used once; import them into a study whose "
                "cases_claim is 'these'"
            )
        with self._sync.transaction():
            for voided in self._state.voided.intersection(name for name in rows.judge if name is not None):
                raise VoidJudge(voided)
            if self._state.unsettled and not self._state.any_order:
                raise BadProblem("votes count in the order asked, and questions are pending; answer or skip them first")
            self._add(make_import(rows, source, self._state, self._sync.table, self.items))
        return replace(self.verdict, caveats=import_caveats(self._sync.table))

    def pause(self, paused: bool = True) -> None:
        """Stop asking questions; answers to pending ones still count. pause(False) resumes."""
        with self._sync.transaction():
            if paused != self._state.paused:
                self._add(Paused(paused))

    def record(self, events: Sequence[Materials | TextShown | JudgeSetup]) -> None:
        """Record what judges are shown and how they answer. It is not compared with `setups` here."""
        with self._sync.transaction():
            self._add(*events)

    @property
    def setups(self) -> Setups:
        """What the votes were given on: digests of texts and cases, and of the settings of every judge that ran."""
        return self._state.setups

    @property
    def storage(self) -> Storage:
        """The storage of its events."""
        return self._sync.storage

    @property
    def sampling(self) -> SamplingRule:
        """The sampling rule, which chooses the next pair."""
        return self._state.ahead.sampling

    @property
    def stopping(self) -> StoppingRule:
        """The stopping rule, which decides when the answer is proved."""
        return self._state.ahead.stopping

    @property
    def paused(self) -> bool:
        return self._state.paused

    def refresh(self) -> Verdict[str]:
        """Read what other processes have added."""
        self._sync.refresh()
        return self.verdict

    @property
    def verdict(self) -> Verdict[str]:
        """The verdict so far; cheap. Its error bound may be some votes old: see `examine`."""
        state, pools, last = self._sync.state.settled, self._sync.state.pools, self._named
        if last is None or last[0] is not state.verdict or last[2] is not pools:
            again = None if last is None or last[2] is not pools else renamed(state.verdict, *last[:2])
            last = state.verdict, again or self._in_words(state.verdict, state.verdict.done), pools
            self._named = last
        return last[1]

    def _in_words(self, verdict: Verdict[int], with_caveats: bool) -> Verdict[str]:
        """The verdict with names, the claim about cases, and what its votes say against the assumptions."""
        state = self._state
        found = named(verdict, self.items, state.settled.theta_hat)
        caveats = self._caveats() if with_caveats else ()
        return evolve(found, guarantee=with_claim(found.guarantee, state.pools), caveats=caveats)

    def _caveats(self) -> tuple[str, ...]:
        table, once = self._sync.table, self._state.pools.is_once
        return find_caveats(counted(table.rows), self.problem.family, once) + import_caveats(table)

    def examine(self) -> Verdict[str]:
        """The full verdict: the current error bound, which items are proved in or out, and caveats. Slow for many
        items."""
        with one_thread():
            return self._in_words(loop.examine(self._state.settled, pending_votes(self._state)), True)

    @property
    def bound_history(self) -> BoundHistory:
        """The error bound over time: points with votes, error_bound and votes_left, oldest first."""
        return self._state.bound_history

    @property
    def advice(self) -> str | None:
        """A hint for the owner: a tie that never resolves, or pairs that block a proof."""
        return advise(self._state.ahead, self.items)

    @property
    def utilities(self) -> dict[str, float]:
        """The ratings estimated from all answers so far: maximum likelihood, or the planning estimate."""
        return dict(zip(self.items, map(float, self._state.ahead.theta_hat), strict=True))

    @property
    def tally(self) -> Tally:
        """The votes behind the verdict, by pair."""
        return self._state.ahead.tally

    def chances(self, scale: float = 1.5) -> dict[str, float]:
        """Each item's probability of being in the top k under a N(0, scale^2) prior: an estimate, not a proof."""
        with one_thread():
            found = chances(self.problem, self.tally, scale)
        return dict(zip(self.items, map(float, found), strict=True))

    @property
    def rows(self) -> list[Row]:
        """Every question asked and every vote imported, with its status."""
        return list(self._sync.table.rows)

    def row(self, number: int) -> Row:
        """The row of a question, with its status."""
        if not 0 <= number < self._state.n_asked:
            raise UnknownQuestion(number)
        return self._sync.table.of_question(number)

    @property
    def counts(self) -> dict[Status, int]:
        """How many rows have each status: counted, answered (and not settled), pending, skipped, lost, late, undone,
        voided."""
        return self._sync.table.counts

    def rows_of(self, judge: str) -> list[Row]:
        """The rows of one judge."""
        return self._sync.table.of_judge(judge)

    @property
    def voided(self) -> frozenset[str]:
        """The judges that were voided."""
        return self._state.voided

    @property
    def votes(self) -> list[VoteTuple]:
        """The votes that count, also imported ones and those after the verdict: first, second, outcome, judge, in the
        order in which they arrived."""
        return [
            (row.first, row.second, row.outcome, row.judge)
            for row in counted(self._sync.table.rows)
            if row.outcome is not None
        ]

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        return as_frame(self._sync.table.rows)

    def question(self, number: int) -> Question:
        """The question with this id."""
        found = self._sync.state.unsettled.get(number)
        return self._question(found.asked) if found is not None else _question_of(self.row(number))

    @property
    def pending(self) -> list[Question]:
        """Questions without an answer, oldest first."""
        return [self._question(asked) for asked in self._state.pending]

    def is_pending(self, number: int) -> bool:
        """Whether it was asked and is neither answered nor skipped."""
        return self._state.is_pending(number)

    def is_shown(self, number: int) -> bool:
        """Whether a pending question was shown to its judge; False if it was only prefetched."""
        found = self._state.unsettled.get(number)
        return found is not None and found.asked.shown

    def is_reopened(self, number: int) -> bool:
        """Whether a pending question had an answer that the judge took back."""
        found = self._state.unsettled.get(number)
        return found is not None and found.is_pending and found.reopened

    def pending_of(self, judge: str | None) -> list[Question]:
        """The judge's pending questions, oldest first."""
        return [self._question(asked) for asked in self._state.pending if asked.judge == judge]

    @property
    def head(self) -> Head:
        """How many events the study has, and the hash of the last one, which covers all of them. Publish it, and anyone
        can check later that the record was not changed."""
        return self._sync.head

    @property
    def entries(self) -> list[Entry]:
        """All events, with the times at which they were added."""
        return self._sync.entries

    def transaction(self) -> AbstractContextManager[None]:
        """Questions and answers inside are one write to the storage, with its lock held: all of it happens or
        nothing. Keep it short, and open no other transaction inside."""
        return self._sync.transaction()

    @property
    def _state(self) -> StudyState:
        return self._sync.state

    def _add(self, *events: Event) -> None:
        self._sync.add(events, apply_all(self._state, events))

    def _close(self, found: Callable[[StudyState], list[Event]]) -> Verdict[str]:
        """Add what is found to be closed, and write only if there is something."""
        self._sync.refresh()
        if found(self._state):
            with self._sync.transaction():
                self._add(*found(self._state))
        return self.verdict

    def _allowed(self, pair: int) -> int:
        if self.problem.allowed is not None and pair not in self.problem.allowed:
            raise BadProblem("this pair is not among the allowed pairs of the study; ask about another")
        return pair

    def _pool(self, cases: Cases, once: bool) -> CasePool:
        """The cases to draw from, in a transaction."""
        if not cases and self.cases_claim == "like these":
            raise BadProblem("this study is about cases like the given ones; pass the cases to draw from")
        if not cases and not isinstance(cases, Mapping):
            if once:
                raise BadProblem("once=True draws a case that was not used before; pass the cases to draw from")
            return NO_CASES
        used = self._sync.table.used_cases if once or self.cases_claim == "like these" else None
        if isinstance(cases, Mapping):
            return CasePool({number_of_pair(self._number, *pair): ids for pair, ids in cases.items()}, used)
        return CasePool(cases, used)

    def _check_undo(self) -> None:
        if not self._state.any_order:
            raise BadProblem("votes can be withdrawn only with stopping='edges' and wins, ties or grades")

    def _late(self, number: int, outcome: float) -> Event:
        """Store an answer that came after the lease expired; refuse a second answer."""
        row = self.row(number)
        if row.reason not in (EXPIRED, DROPPED) or row.status not in ("skipped", "lost", "late"):
            raise AlreadyAnswered(number)
        return Late(number, outcome)

    def _checked(self, question: Question | int) -> Question:
        """The question as it was asked. The given question must equal it."""
        number = question.id if isinstance(question, Question) else question
        if not isinstance(number, int) or isinstance(number, bool):
            raise UnknownQuestion(number)
        asked = self.question(number)
        if isinstance(question, Question) and question != asked:
            raise UnknownQuestion(number)
        return asked

    def _counted_vote(self, row: Row) -> CountedVote:
        assert row.outcome is not None
        assert row.bet is not None
        first, second = self._number[row.first], self._number[row.second]
        return CountedVote(row.question, first, second, row.outcome, row.bet, row.weight, row.judge)

    def _question(self, asked: Asked) -> Question:
        first, second = self.items[asked.first], self.items[asked.second]
        return Question(asked.question, first, second, asked.judge, asked.bet, asked.case)

    def _as_import(
        self, first: Sequence[str], second: Sequence[str], outcome: Sequence[float], *labels: Sequence[str | None]
    ) -> ImportRows:
        ones, others = self._item_numbers(first), self._item_numbers(second)
        values, extras = as_outcomes(outcome), [tuple(label) if label else (None,) * len(outcome) for label in labels]
        if len({len(column) for column in (ones, others, values, *extras)}) > 1:
            raise BadOutcome("first, second, outcome, judge, unit and id must have the same length")
        if any(i == j for i, j in zip(ones, others, strict=True)):
            raise BadOutcome("a vote compares an item with itself; remove it")
        self.problem.family.check(values)
        return ImportRows(ones, others, tuple(values.tolist()), *extras)

    def _item_numbers(self, names: Sequence[str]) -> tuple[int, ...]:
        for name in names:
            if not isinstance(name, str) or name not in self._number:
                raise BadVotes(f"{name!r} is not an item of this study; remove its votes")
        return tuple(self._number[name] for name in names)


def _question_of(row: Row) -> Question:
    assert row.question is not None
    return Question(row.question, row.first, row.second, row.judge, row.bet or 0.0, row.case)
