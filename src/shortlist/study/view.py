"""What can be read from a study: the verdict, the votes, the questions that are pending. Nothing here changes it."""

from collections.abc import Collection, Sequence
from typing import Any

from shortlist.core import loop
from shortlist.core.linalg import one_thread
from shortlist.core.problem import Problem
from shortlist.core.sampling.base import SamplingRule
from shortlist.core.stopping.base import StoppingRule, Verdict, named, renamed
from shortlist.core.stopping.posterior import chances
from shortlist.core.tally import Tally, evolve
from shortlist.errors import UnknownQuestion
from shortlist.study.caveats import (
    correction_caveats,
    find_caveats,
    import_caveats,
    mixed_caveats,
    other_studies,
    table_caveats,
    withdrawal_caveats,
)
from shortlist.study.claims import (
    CasesClaim,
    JudgesClaim,
    Pools,
    claim_sentences,
    panels_of,
    price_sentence,
    with_claims,
)
from shortlist.study.events import Asked, CountedVote, Entry, Event, Head, Setups
from shortlist.study.questions import Question, advise, voiding
from shortlist.study.rows import Correction, Row, Status, as_frame, counted, study_html
from shortlist.study.state import BoundHistory, StudyState, apply_all, empty_state, pending_votes
from shortlist.study.storage import MemoryStorage, Spent, Storage
from shortlist.study.sync import Sync

VoteTuple = tuple[str, str, float, str | None]  # first, second, outcome, judge


class StudyView:
    """A study, to read."""

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
        judges_claim: JudgesClaim = "each",
        ballot_size: int = 10,
    ) -> None:
        """The study of that name in the storage. Without a storage: a new study in memory."""
        self.items = tuple(items)
        self.seed, self.name, self.cases_claim = seed, name, cases_claim
        self.judges_claim, self.ballot_size = judges_claim, ballot_size
        self._number = {item: number for number, item in enumerate(self.items)}
        if storage is None:
            storage = MemoryStorage()
            storage.create(name, "")
        start = empty_state(loop.start(problem, sampling, stopping, seed))
        self._sync = Sync(storage, name, self.items, start, [problem, problem.family, sampling, stopping])
        self._named: tuple[Verdict[int], Verdict[str], Pools, frozenset[str | None]] | None = None

    def __repr__(self) -> str:
        return f"<Study of {len(self.items)} items, {len(self._state.pending)} questions pending. {self.verdict}>"

    def _repr_html_(self) -> str:
        return study_html(self)

    def holders(self, judge: str) -> set[str | None]:
        """The runs that hold the judge's pending questions; None stands for no run."""
        self.refresh()
        return {asked.run for asked in self._state.pending if asked.judge == judge}

    def held_by(self, run: str) -> list[Question]:
        """The pending questions that this run works on."""
        self.refresh()
        return [self._question(asked) for asked in self._state.pending if asked.run == run]

    def had(self, head: Head) -> bool:
        """Whether the stored events go on from this head: False if they were replaced, or end before it."""
        return self._sync.had(head)

    @property
    def problem(self) -> Problem:
        """What is to be proved, with the settings in force."""
        return self._state.settled.problem

    @property
    def setups(self) -> Setups:
        """What the votes were given on: digests of texts and cases, and of the settings of every judge that ran."""
        return self._state.setups

    @property
    def storage(self) -> Storage:
        """The storage of its events."""
        return self._sync.storage

    @property
    def spent(self) -> Spent:
        """What the answers of programs and language models cost, in all runs."""
        return self.storage.spent(self.name)

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

    @property
    def archived(self) -> bool:
        """Whether the study can only be read."""
        return self._state.archived

    def refresh(self) -> Verdict[str]:
        """Read what other processes have added."""
        self._sync.refresh()
        return self.verdict

    @property
    def verdict(self) -> Verdict[str]:
        """The verdict so far; cheap. Its error bound may be some votes old: see `examine`."""
        now, last = self._sync.state, self._named
        verdict = now.settled.verdict
        if last is not None and (last[2] is not now.pools or last[3] is not now.judges):
            last = None  # it is about something else now
        if last is None or last[0] is not verdict:
            again = None if last is None else renamed(verdict, *last[:2])
            last = verdict, again or self._in_words(verdict, verdict.done), now.pools, now.judges
            self._named = last
        return last[1]

    @property
    def claims(self) -> tuple[str, ...]:
        """What a proof of this study is about, one sentence for each claim that it makes, and which error it states if
        delta was lowered."""
        state, price = self._state, price_sentence(self.problem)
        found = claim_sentences(self.judges_claim, self.cases_claim, state.judges, state.pools, panels_of(state.setups))
        return (*found, price) if price else found

    def _in_words(self, verdict: Verdict[int], with_caveats: bool) -> Verdict[str]:
        """The verdict with names, the claim about cases, and what its votes say against the assumptions."""
        state = self._state
        found = named(verdict, self.items, state.settled.theta_hat)
        caveats = verdict.caveats + (self._caveats(found.top) if with_caveats else ())
        about = state.judges, state.pools, panels_of(state.setups), bool(state.facts)
        guarantee = with_claims(found.guarantee, self.judges_claim, *about)
        return evolve(found, guarantee=guarantee, caveats=caveats)

    def _caveats(self, top: Collection[str]) -> tuple[str, ...]:
        table, state, public = self._sync.table, self._state, self.judges_claim == "public"
        votes, listed = counted(table.rows), None if state.pools.is_once else state.pools.replaced
        found = find_caveats(votes, self.problem.family, listed, public, self.problem.min_judges) + import_caveats(
            table
        )
        found += mixed_caveats(table, any(state.pools))
        found += correction_caveats(table.corrections) + withdrawal_caveats(table.withdrawals, self.problem)
        return found + (
            table_caveats(state.table, state.facts, self.items, self.problem.k, top) if state.table.pairs else ()
        )

    @property
    def corrections(self) -> list[Correction]:
        """What the owner corrected of what judges are shown."""
        return list(self._sync.table.corrections)

    @property
    def withdrawn(self) -> tuple[str, ...]:
        """The items that were withdrawn. The answer is among the others."""
        return tuple(self.items[item] for item in self.problem.withdrawn)

    def examine(self) -> Verdict[str]:
        """The full verdict: the current error bound, which items are proved in or out, and caveats, also about other
        studies of these items in the storage. Slow for many items."""
        with one_thread():
            found = self._in_words(loop.examine(self._state.settled, pending_votes(self._state)), True)
        return evolve(found, caveats=found.caveats + other_studies(self.storage.studies_of(self.items)))

    def if_voided(self, judges: Sequence[str]) -> Verdict[str]:
        """What `examine` would say if these judges were voided, without the caveats. Changes nothing."""
        self.refresh()
        state = self._state
        for judge in judges:
            if judge not in state.voided:
                state = apply_all(state, self._voiding(state, judge))
        with one_thread():
            found = loop.examine(state.settled, pending_votes(state))
        return named(found, self.items, state.settled.theta_hat)

    def _voiding(self, state: StudyState, judge: str) -> list[Event]:
        rows = [row for row in self._sync.table.of_judge(judge) if row.status in ("counted", "answered")]
        return voiding(state, tuple(map(self._counted_vote, rows)), judge)

    def _counted_vote(self, row: Row) -> CountedVote:
        assert row.outcome is not None
        assert row.bet is not None
        first, second = self._number[row.first], self._number[row.second]
        return CountedVote(row.question, first, second, row.outcome, row.bet, row.weight, row.judge)

    @property
    def bound_history(self) -> BoundHistory:
        """The error bound over time: points with votes, error_bound and votes_left, oldest first."""
        return self._state.bound_history

    @property
    def filled(self) -> dict[str, float]:
        """How much of the proof about each item that is left is there, from 0 to 1. All are 1 when it is proved."""
        with one_thread():
            shares = loop.filled(self._state.settled, pending_votes(self._state))
        found = dict(zip(self.items, map(float, shares), strict=True))
        return {item: share for item, share in found.items() if item not in self.withdrawn}

    @property
    def advice(self) -> str | None:
        """A hint for the owner: a tie that never resolves, pairs that block a proof, or a judge that is missing."""
        state = self._state
        judges = [number for judge, number in state.numbers.items() if judge not in state.voided]
        return advise(state.ahead, self.items, judges if self.judges_claim == "each" else ())

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

    def cells_of(self, number: int) -> int:
        """Of how many cells of a table the answer to a pending question is the mean, see `ask`; 0 if of none."""
        found = self._state.unsettled.get(number)
        return 0 if found is None else found.asked.cells

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

    def answered_of(self, judge: str | None) -> list[Question]:
        """The judge's answers that are not settled, oldest first. An undo of these is free."""
        found = [one for one in self._state.unsettled.values() if one.is_answered and one.asked.judge == judge]
        return [self._question(one.asked) for one in sorted(found, key=lambda one: one.settles or 0.0)]

    @property
    def open_ballots(self) -> list[str]:
        """The judges whose ballots are open."""
        return list(self._state.ballots.open)

    @property
    def closed_ballots(self) -> int:
        """How many ballots are closed."""
        return len(self._state.ballots.closed)

    def had_ballot(self, judge: str) -> bool:
        """Whether this judge has, or had, a ballot."""
        return self._state.ballots.had(judge)

    @property
    def head(self) -> Head:
        """How many events the study has, and the hash of the last one, which covers all of them. Publish it, and anyone
        can check later that the record was not changed."""
        return self._sync.head

    @property
    def entries(self) -> list[Entry]:
        """All events, with the times at which they were added."""
        return self._sync.entries

    @property
    def start(self) -> StudyState:
        """The state before the first event."""
        return self._sync.start

    @property
    def _state(self) -> StudyState:
        return self._sync.state

    def _question(self, asked: Asked) -> Question:
        first, second = self.items[asked.first], self.items[asked.second]
        return Question(asked.question, first, second, asked.judge, asked.bet, asked.case, asked.place)


def _question_of(row: Row) -> Question:
    assert row.question is not None
    return Question(row.question, row.first, row.second, row.judge, row.bet or 0.0, row.case, row.place)
