"""A study: ask, tell, verdict. Every change is an event (events.py) in a storage. The fold of the events is
the state (state.py), and the table of all questions and votes (rows.py). Several processes may work on one study:
each reads what the others added before it adds its own events (sync.py).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Literal, overload

from shortlist.core.outcomes import outcome_told
from shortlist.core.problem import whole
from shortlist.core.stopping.base import Verdict
from shortlist.errors import (
    AlreadyAnswered,
    BadCases,
    BadOutcome,
    BadProblem,
    BadVotes,
    BallotDone,
    LateAnswer,
    NothingToAsk,
    NothingToUndo,
    StudyDone,
    UnknownQuestion,
    VoidJudge,
)
from shortlist.study.caveats import import_caveats
from shortlist.study.claims import NO_CASES, CasePool, check_change, check_min_judges
from shortlist.study.events import (
    DROPPED,
    EXPIRED,
    Archived,
    Asked,
    Changed,
    Configured,
    Corrected,
    Event,
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
from shortlist.study.questions import (
    SETTLES_AFTER,
    Pair,
    Pairs,
    Question,
    all_answers,
    also_asked,
    answers_of,
    as_outcomes,
    check_pairs,
    due,
    is_fresh,
    leaving,
    number_of_pair,
    open_ballot,
    skipping,
    still_free,
    struck_out,
    useless,
)
from shortlist.study.state import (
    StudyState,
    apply,
    apply_all,
    check_open,
    next_question,
)
from shortlist.study.view import StudyView

Cases = Sequence[str] | Mapping[Pair, Sequence[str]]  # ids, for all pairs or by pair

BOTH_WAYS = (
    "a recorded vote that is drawn and also imported would count twice, so a study takes recorded votes in one of the "
    "two ways; use another study"
)


class Study(StudyView):
    """A search for the best k items. `create_study` and `load_study` return one."""

    @overload
    def ask(
        self, count: None = None, *, judge: str | None = None, avoid: Pairs = (), pair: Pair | None = None,
        lease: float | None = None, cases: Cases = (), once: bool = False, run: str | None = None, shown: bool = True,
        cells: int = 0,
    ) -> Question: ...  # fmt: skip
    @overload
    def ask(
        self, count: int, *, judge: str | None = None, avoid: Pairs = (), pair: Pair | None = None,
        lease: float | None = None, cases: Cases = (), once: bool = False, run: str | None = None, shown: bool = True,
        cells: int = 0,
    ) -> list[Question]: ...  # fmt: skip
    def ask(
        self, count: int | None = None, *, judge: str | None = None, avoid: Pairs = (), pair: Pair | None = None,
        lease: float | None = None, cases: Cases = (), once: bool = False, run: str | None = None, shown: bool = True,
        cells: int = 0,
    ) -> Question | list[Question]:  # fmt: skip
        """The next question for a judge. With a count: a list of questions to answer in parallel.

        avoid: pairs of items that this judge must not be shown, such as their own work.
        pair: ask about these two items, as after an undo.
        lease: seconds after which an unanswered question is closed. It then counts as lost by both items for good,
            because the judge may be silent for what the answer would have been. See `show`.
        cases: ids of the cases to compare on. Each question draws one at random, with replacement, from the same list
            in the whole study. With once=True also a mapping from each pair to its cases.
        once: draw only from cases that no earlier question of the study had, whoever was asked about whatever pair.
            Always so if the claim of the study is about cases like these.
        run: the id of the run that works on it, see `take_over`.
        shown: False prefetches: the judge does not see the question until `show`. If it is never shown, it is
            dropped when the lease ends, without effect.
        cells: 1 if the judge's answer to a pair, a case and an order of showing is stored and never changes, as in
            `run_study`; 2 if the answer told will be the mean of both orders. Where the known answers decide a pair
            over all cases, it is then proved without more votes (docs/guarantee.md, Known answers). 0 if the judge may
            answer differently when asked again.

        In a study about the public the next questions are those of the judge's ballot, see `ballot`.

        Raises StudyDone when there is a verdict, NothingToAsk when pending questions use up the vote budget, and
        CasesUsedUp when no case is left. A list is shorter where the budget or the cases end.
        """
        wanted = 1 if count is None else whole("count", count, 1)
        if self.judges_claim == "public":
            if pair is not None:
                raise BadProblem("a ballot is drawn as a whole, so no pair can be chosen; leave pair= out")
            listed = self._on_ballot(judge, avoid, lease, cases, once, run, shown)[:wanted]
            return listed[0] if count is None else listed
        avoided = frozenset(check_pairs(self.items, avoid)) if avoid else frozenset[int]()
        chosen = None if pair is None else self._allowed(check_pairs(self.items, [pair])[0])
        whole("cells", cells, 0)
        asked: list[Asked] = []
        recorded: list[Event] = []
        with self._sync.transaction():
            now = self._sync.now()
            closed = due(self._sync.state, now)
            state = apply_all(self._sync.state, closed) if closed else self._sync.state
            if not (closed and state.settled.verdict.done):  # else only what was due delayed the verdict
                check_open(state, judge, self.name)
                pool, recorded = self._pool(cases, once)
                state = apply_all(state, recorded)
                until = None if lease is None else now + lease
                while len(asked) < wanted:
                    try:
                        event = next_question(state, judge, avoided, chosen, pool, until, run, shown, cells)
                    except NothingToAsk:
                        if not asked:
                            raise
                        break
                    asked.append(event)
                    state = apply(event, state)
            self._sync.add([*closed, *recorded, *asked], state)
        if not asked:
            raise StudyDone(str(self.verdict.reason))
        questions = [self._question(event) for event in asked]
        return questions[0] if count is None else questions

    def ballot(
        self, judge: str, *, lease: float | None = None, avoid: Pairs = (), cases: Cases = (), once: bool = False
    ) -> list[Question]:
        """The questions of a judge's ballot that wait for an answer, in the order to ask them.

        For a study about the public (`judges_claim="public"`). The ballot is drawn when the judge first asks, and never
        changes. Each judge gets one. What is not answered counts as lost by both items for good: after a skip, when the
        lease ends, or when the judge leaves (`settle`).

        lease: seconds after which what is not answered is lost; `show` begins it again. Without a lease the ballot
            stays open until every question is answered or skipped, or `settle(judge)` is called. An open ballot may
            hold up all others, so give a lease to judges who may not come back.
        avoid: pairs that this judge must not be shown. They are struck out when the ballot is opened, and not replaced:
            a list that depends on who the judge is would prove nothing about the public.
        cases, once: as in `ask`.

        Raises BallotDone when the judge has had a ballot, and BallotsOpen while open ballots may complete the proof:
        come back later.
        """
        if self.judges_claim != "public":
            raise BadProblem("only a study about the public has ballots; create it with judges_claim='public'")
        return self._on_ballot(judge, avoid, lease, cases, once, None, False)

    def _on_ballot(
        self, judge: str | None, avoid: Pairs, lease: float | None, cases: Cases, once: bool, run: str | None,
        shown: bool,
    ) -> list[Question]:  # fmt: skip
        """The pending questions of the judge's ballot, which is opened if there is none. `shown`: the judge sees the
        first of them now."""
        if judge is None:
            raise BadProblem(
                "a study about the public asks each judge once; give the judge's name (judge=, or --judge)"
            )
        avoided = frozenset(check_pairs(self.items, avoid)) if avoid else frozenset[int]()
        with self._sync.transaction():
            now = self._sync.now()
            until = None if lease is None else now + lease
            self._add(*due(self._state, now))
            held = [asked for asked in self._state.pending if asked.judge == judge]
            if self._state.settled.verdict.done or judge in self._state.voided:
                held = []
            elif not held and not self._state.ballots.had(judge) and not self._state.paused:
                pool, recorded = self._pool(cases, once)
                self._add(*recorded)
                opened = open_ballot(self._state, judge, self.ballot_size, pool, until, run)
                struck = struck_out(self.problem.n, opened, avoided)
                self._add(*opened, *struck)
                held = [asked for asked in opened if self._state.is_pending(asked.question)]
            if held and shown and not held[0].shown:
                self._add(Shown(held[0].question, until))
        if not held:
            self._refuse_ballot(judge)
        return [self._question(asked) for asked in held]

    def _refuse_ballot(self, judge: str) -> None:
        state = self._state
        if state.ballots.had(judge) and not state.settled.verdict.done and judge not in state.voided:
            raise BallotDone(judge)
        check_open(state, judge, self.name)

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
        leases. Nothing is written while less than a tenth of the lease is used up."""
        with self._sync.transaction():
            asked = self._checked(question)
            if not self._state.is_pending(asked.id):
                raise AlreadyAnswered(asked.id)
            until = None if lease is None else self._sync.now() + lease
            if not is_fresh(self._state, asked.id, lease, until):
                self._add(Shown(asked.id, until))

    def drop_useless(self, judge: str) -> None:
        """Drop questions that were prefetched for this judge and not shown, if their pair needs no more votes."""
        self._close(lambda state: useless(state, judge))

    def tell(
        self, question: Question | int, outcome: float | Literal["tie"] | None = None, *, winner: str | None = None,
        settle: bool = True, undo_seconds: float = SETTLES_AFTER,
    ) -> Verdict[str]:  # fmt: skip
        """Answer a question: tell(q, winner=q.first), tell(q, "tie"), or tell(q, 0.75) as seen from its first item.

        A pending question counts as a loss for both items, so answer or skip every question.

        settle: False lets a person take the answer back with `undo` at no cost, until they have given three more,
            `undo_seconds` are over, or `settle` is called. Until then the question counts as pending.
        """
        with self._sync.transaction():
            asked = self._checked(question)
            value = outcome_told(outcome, winner, asked.first, asked.second, self.problem.family)
            state = self._sync.state
            if not state.is_pending(asked.id):
                self._add(self._late(asked.id, value))
            else:
                told = Told(asked.id, value, None if settle else self._sync.now() + undo_seconds)
                self._add(*answers_of(state, asked.judge, 0 if settle else still_free(state)), told)
        if not state.is_pending(asked.id):
            raise LateAnswer(asked.id)
        return self.verdict

    def settle(self, judge: str | None = None) -> Verdict[str]:
        """Make answers final. Without a judge: all of them, as before a final result. With a judge, who has left:
        theirs; what they took back and did not answer again is lost, the rest of their ballot too, and other questions
        that they were not shown are dropped."""
        return self._close(all_answers if judge is None else lambda state: leaving(state, judge))

    def close_due(self) -> Verdict[str]:
        """Read what other processes have added, settle answers older than 30 seconds, and close questions whose lease
        has ended. `ask` and `undo` do so too."""
        now = self._sync.now()
        return self._close(lambda state: due(state, now))

    def skip(self, question: Question | int, reason: str = "") -> Verdict[str]:
        """Close a question without a vote. Its pair counts as asked. Skip only for reasons that do not depend on what
        the answer would have been. A question of a ballot, or one whose answer was taken back, is lost by both items
        instead."""
        with self._sync.transaction():
            asked = self._checked(question)
            if not self._state.is_pending(asked.id):
                raise AlreadyAnswered(asked.id)
            settled = answers_of(self._state, asked.judge, still_free(self._state))
            self._add(*settled, skipping(self._state, asked.id, reason))
        return self.verdict

    def undo(self, question: Question | int) -> Verdict[str]:
        """Take an answer back; the row's status is then "pending" or "undone".

        Before the answer is settled (see `tell`) this is free: the question is pending again, and can only be answered
        or lost. After that the vote is withdrawn: its support is removed and its opposition stays, so an undo after a
        look at the results cannot help an item, and later votes of this judge on this pair have bet 0. Other questions
        about the pair that the judge holds are closed: lost if they were shown, else dropped. A verdict reached before
        does not change."""
        with self._sync.transaction():
            self._add(*due(self._state, self._sync.now()))
            row = self.row(self._checked(question).id)
            if row.question is None or row.status not in ("answered", "counted"):
                raise NothingToUndo(row.question)
            self._check_undo()
            if row.status == "answered":
                self._add(Reopened(row.question))
            else:
                vote = self._counted_vote(row)
                self._add(Withdrawn((vote,)), *also_asked(self._state, vote))
        return self.verdict

    def void(self, judge: str) -> Verdict[str]:
        """Stop asking this judge, and withdraw all their votes as `undo` does, imported ones too. Their pending
        questions count as lost by both items, or as skipped where votes count in order. A verdict reached
        before does not change."""
        with self._sync.transaction():
            events = self._voiding(self._state, judge)
            if any(event.votes for event in events if isinstance(event, Withdrawn)):
                self._check_undo()
            self._add(*events)
        return self.verdict

    def import_votes(
        self, first: Sequence[str], second: Sequence[str], outcome: Sequence[float], judge: Sequence[str | None] = (),
        source: str = "", unit: Sequence[str | tuple[str, ...] | None] = (), id: Sequence[str | None] = (),
    ) -> Verdict[str]:  # fmt: skip
        """Add votes from elsewhere, in the order in which they were cast: not sorted by winner or by pair. The votes
        on each pair must be complete, not selected by outcome.

        unit: a label per vote; votes with the same label share a source of chance, such as the case they are about, and
        weigh at most as one vote together. A unit of an earlier import counts no more. None is a unit of its own. A
        tuple is several labels, such as a case and a judge: votes that share any of them are one unit.
        id: what tells votes apart that have the same items, judge and unit. Without it the first vote on a pair is
        taken as the first one on that pair of an earlier import, and so on. Give ids from the first import on if new
        votes will follow: to give them only to votes that are refused would count new votes by their outcome.

        A row that was imported before is left out; one with another outcome raises BadVotes. The study's own votes are
        left out too: exports write ids by which it knows them. `caveats` of the verdict says what does not count, and
        why.
        """
        rows = self._as_import(first, second, outcome, judge, unit, id)
        if self.judges_claim == "public":
            raise BadProblem(
                "imported votes do not say that each judge was asked once, with a ballot; import them into a study "
                "whose judges_claim is 'each'"
            )
        if self.cases_claim == "like these":
            raise BadProblem(
                "imported votes do not say that each case was used once; import them into a study whose "
                "cases_claim is 'these'"
            )
        if self.problem.withdrawn:
            raise BadProblem(
                "items were withdrawn from this study, and its proof does not cover imported votes; create a new study"
            )
        with self._sync.transaction():
            for voided in self._state.voided.intersection(name for name in rows.judge if name is not None):
                raise VoidJudge(voided)
            if self._state.pools.recorded:
                raise BadProblem(BOTH_WAYS)
            if self._state.unsettled and not self._state.any_order:
                raise BadProblem("votes count in the order asked, and questions are pending; answer or skip them first")
            self._add(make_import(rows, source, self._state, self._sync.table, self.items))
        return replace(self.verdict, caveats=import_caveats(self._sync.table))

    def pause(self, paused: bool = True) -> None:
        """Stop asking questions; answers to pending ones still count. pause(False) resumes."""
        with self._sync.transaction():
            if paused != self._state.paused:
                self._add(Paused(paused))

    def archive(self, archived: bool = True) -> None:
        """Make the study read-only. Answers become final first; questions that are pending stay so.
        archive(False) takes it out of the archive."""
        with self._sync.transaction():
            if archived != self._state.archived:
                self._add(*(all_answers(self._state) if archived else ()))
                self._add(Archived(archived))

    def change(
        self, /, *, max_votes: int | Literal["unchanged"] | None = "unchanged",
        delta: float | Literal["unchanged"] = "unchanged", min_judges: int | Literal["unchanged"] = "unchanged",
        **others: object,
    ) -> Verdict[str]:  # fmt: skip
        """Change the vote budget, delta or the number of judges of a study that may have votes already.

        max_votes: None is no limit. A study whose budget was used up goes on with the same proof, and all answers that
            came after its end count. A budget of no more than the votes so far ends the study. A proved study stays
            proved.
        delta: can only be made smaller. Everything that was proved with the larger delta is worked out again, so a
            proved study may be open again. What is proved is still the error of the largest delta that was in force
            since the first question, and the guarantee says so.
        min_judges: on how many judges a proof must rest at least. When it rises, everything is worked out again, so a
            proved study may be open again; when it falls, what is proved stays. A study that was created with 1 does
            not keep what each judge gave, so there it can rise only before the first question.

        Other settings cannot be changed, and the error says why: create a new study.
        """
        settings = {"max_votes": max_votes, "delta": delta, "min_judges": min_judges}
        given = {name: value for name, value in settings.items() if value != "unchanged"}
        with self._sync.transaction():
            self._add(*due(self._state, self._sync.now()))
            if changes := check_change(self.problem, {**others, **given}):
                if "min_judges" in changes:
                    self._check_min_judges(changes["min_judges"])
                self._add(Changed(changes))
        return self.verdict

    def withdraw_item(self, item: str) -> Verdict[str]:
        """Withdraw an item after the first question: the answer is then the best k of the other items. Nothing new is
        asked about it. Its votes stay in the record; what it lost still counts, and what it won proves nothing.

        The price: a proved answer is then wrong with probability at most delta (1 + j/k) after j items were withdrawn
        (delta (1 + j) if k is more than half of the items), and the guarantee says so. It needs a top k, k+1, ..., k+j
        (docs/guarantee.md). It does not matter why or when the item is withdrawn. It cannot be taken back.

        Raises BadProblem before the first question, with other stopping rules than edges and cuts, with a tolerance,
        with imported votes or known answers, and if no more than k items would be left.
        """
        with self._sync.transaction():
            self._add(*due(self._state, self._sync.now()))
            if item not in self._number:
                raise BadProblem(f"{item!r} is not an item of this study")
            gone = (*self.problem.withdrawn, self._number[item])
            self._check_withdrawal()
            replace(self.problem, withdrawn=gone)  # which checks them
            self._add(Changed({"withdrawn": gone}))
        return self.verdict

    def _check_withdrawal(self) -> None:
        if not self._state.n_asked:
            raise BadProblem(
                "nothing was asked yet: create the study without the item, or remove it from the items on the web"
            )
        if self.stopping.name not in ("edges", "cuts"):
            raise BadProblem(
                f"proofs by {self.stopping.name} do not cover withdrawn items. Create a new study of the other items; "
                "with the default stopping rule, items can be withdrawn from it"
            )
        if any(row.question is None for row in self._sync.table.rows) or self._state.table.pairs:
            raise BadProblem(
                "an item cannot be withdrawn from a study with imported votes or stored answers to a list of cases; "
                "create a new study with the other items"
            )

    def _check_min_judges(self, number: int) -> None:
        """Raise BadProblem if proofs of this study cannot rest on so many judges."""
        if number > 1 and self.stopping.name == "cuts":
            raise BadProblem(
                "this study rejects whole sets of items (the stopping rule cuts), which does not tell judges apart, "
                f"and its rule is fixed. Create a new study with min_judges={number} and stopping='edges'"
            )
        check_min_judges(number, self.stopping)
        is_begun = self._state.n_asked > 0 or bool(self._sync.table.rows)
        if number > 1 and is_begun and self._state.ahead.evidence.kept_ledger.by_judge is None:
            raise BadProblem(
                "this study was created with min_judges 1 and does not keep what each judge gave, so the number can "
                "rise only before the first question. Create a new study"
            )

    def record(self, events: Sequence[Materials | TextShown | JudgeSetup | Corrected | Configured]) -> None:
        """Record what judges are shown and how they answer. It is not compared with `setups` here."""
        with self._sync.transaction():
            self._add(*events)

    def transaction(self) -> AbstractContextManager[None]:
        """Questions and answers inside are one write to the storage, with its lock held: all of it happens or
        nothing. Keep it short, and open no other transaction inside."""
        return self._sync.transaction()

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
        if pair in self.problem.withdrawn_pairs:
            raise BadProblem("an item of this pair was withdrawn; ask about another")
        return pair

    def _pool(self, cases: Cases, once: bool) -> tuple[CasePool, list[Event]]:
        """The cases to draw from, in a transaction, and what to record of them."""
        if not cases and self.cases_claim == "like these":
            raise BadProblem("this study is about cases like the given ones; pass the cases to draw from")
        if not cases and not isinstance(cases, Mapping):
            if once:
                raise BadProblem("once=True draws a case that was not used before; pass the cases to draw from")
            if self._state.pools.replaced or self._state.pools.once:
                raise BadCases(
                    "the questions so far were about cases; pass the cases to draw from, or create a new study"
                )
            return NO_CASES, []
        used = self._sync.table.seen_units if once or self.cases_claim == "like these" else None
        if isinstance(cases, Mapping):
            if used is None:
                raise BadProblem("cases by pair are recorded votes, and each of them is used once; pass once=True")
            if self._sync.table.digests:
                raise BadProblem(BOTH_WAYS)
            return CasePool({number_of_pair(self._number, *pair): ids for pair, ids in cases.items()}, used), []
        if self._state.n_asked and not any(self._state.pools):
            raise BadCases("the questions so far were asked without cases; ask without cases, or create a new study")
        return CasePool(cases, used), [] if used is not None else self._listing(cases)

    def _listing(self, cases: Sequence[str]) -> list[Event]:
        """What to record of the list that questions draw from, with replacement. It is one list for the whole study:
        questions that draw from another are about another mean."""
        known, given = self._state.setups.cases, set(cases)
        if len(given) < len(cases):
            raise BadCases("a case is listed twice, so it would be drawn twice as often; list each case once")
        if known and self._state.pools.replaced and known.keys() != given:
            raise BadCases(
                f"the questions so far drew from a list of {len(known):,} cases, and this is another list. A proof is "
                "about one list: pass the same cases, or create a new study"
            )
        return [] if known and known.keys() == given else [Materials(None, dict.fromkeys(cases, ""))]

    def _check_undo(self) -> None:
        if not self._state.any_order:
            raise BadProblem("votes can be withdrawn only with stopping='edges' or 'cuts' and wins, ties or grades")

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

    def _as_import(
        self, first: Sequence[str], second: Sequence[str], outcome: Sequence[float], *labels: Sequence[Any]
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
