"""Let a judge answer a study: `run_study`, `arun_study` for async code, and `find_top` to do everything in one call.

Calls are made in another thread (`calls.py`); the study and the answer cache are used only in the caller's thread. An
answer is told as soon as it arrives. When a run is interrupted, the answers that have arrived are told first. The
question that failed is skipped. Other pending questions stay pending, and the next run of the same judge answers them
first. They are not skipped, because a judge who is slow before saying "worse" would then have its losses forgotten.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, Literal, get_args

from shortlist.core.problem import whole
from shortlist.core.stopping.base import Verdict
from shortlist.errors import (
    AlreadyAnswered,
    BadCases,
    BadJudge,
    BadStorage,
    CasesUsedUp,
    JudgeFailed,
    NeedsJudges,
    NothingToAsk,
    OutOfMoney,
    SetupChanged,
    StorageUnavailable,
    StudyDone,
)
from shortlist.judges.base import (
    Call,
    CallableJudge,
    Case,
    Judge,
    PanelJudge,
    RecordedJudge,
    Reply,
    as_judge,
    start_thread,
)
from shortlist.judges.calls import (
    Arrival,
    Backoff,
    CallPool,
    DeferredInterrupt,
    RetryPolicy,
    ServerPatience,
    StoragePatience,
)
from shortlist.judges.cases import Contents, TextFunction, check_cases, check_contents, check_texts
from shortlist.judges.meter import Meter
from shortlist.judges.pending import (
    AnswerCache,
    KnownAnswer,
    PendingCalls,
    RunLease,
    StoredAnswers,
    UnsavedAnswers,
    UnsavedFiles,
)
from shortlist.judges.run_log import Progress, ReplyLog, RunLog, StudyRun, Warn
from shortlist.judges.setup import RunSetup, record_texts, set_up
from shortlist.study.create import create_study
from shortlist.study.questions import Question
from shortlist.study.study import Cases, Study

Position = Literal["random", "both"]
GRACE = 5.0  # seconds that calls under way have to end when a run ends
HEARTBEAT = 1.0  # seconds to wait for an answer before the lease and the stop event are checked again
SKIPS_IN_A_ROW = 20  # or twice the workers: then the judge is useless
FEW_CASES = 30


def run_study(
    study: Study,
    judge: Judge | Callable[..., Any],
    *,
    workers: int = 8,
    cases: Iterable[Case | str] | None = None,
    contents: Contents | None = None,
    position: Position = "random",
    cache: AnswerCache | None = None,
    retries: int = 3,
    time_limit: float | None = 300.0,
    backoff: Backoff = Backoff(),
    resume: bool = True,
    max_calls: int | None = None,
    patience: float = 600.0,
    storage_patience: float = 60.0,
    max_cost: float | None = None,
    keep_texts: bool = True,
    as_new_judge: bool = False,
    known_answer: KnownAnswer | None = None,
    progress: Progress | None = None,
    warn: Warn | None = None,
    stop: threading.Event | None = None,
) -> StudyRun:
    """Ask the judge until the answer is proved or the budget is used, with `workers` questions at a time.

    cases: what the items are compared on; each question draws one at random, with replacement. If the study's claim is
        about cases like these, each case serves one question, and the run ends when all are used. A RecordedJudge
        brings its own: each recorded vote is used at most once.
    contents: what to show for an item: texts by item, texts by item and case id, or a function (item, case), which may
        be slow. It must return the same text whenever it is given the same item and case.
    position: "random" lets a fair coin decide which item is shown first. "both" asks each question in both orders and
        tells the mean as one vote: both answers come from one judge about one case, so two votes would count one
        opinion twice. A judge who only looks at positions then ties every question.
    cache: where answers are cached; by default in the study's storage.
    retries, time_limit, backoff: for one call, with the limit in seconds. A call that stays unclear or too slow is
        skipped.
    resume: first answer the questions that an earlier run with this judge left pending, unless it is still running.
    max_calls: ask no new questions after this many calls; pending questions may need some more.
    patience: wait for a judge that does not respond (JudgeUnavailable) for so many seconds, after its retries.
    max_cost: never spend more than this on the study's calls, in all its runs. Calls under way count with the most that
        they can cost. The judge needs a price and a limit of tokens.
    keep_texts: keep what the judge says, and what it was shown. Without, only numbers and digests are kept.
    storage_patience: try to reach a storage that does not respond for so many seconds. Nothing new is asked meanwhile.
    as_new_judge: if the judge has other settings than before, let it go on under another name. Its earlier votes stay
        votes of the earlier judge.
    known_answer: a function of a call for which the judge need not be asked: it returns 1 if the first item wins, 0.5
        for a tie and 0 if the second wins, always the same, and None for all other calls. `Outputs.known_answer` is
        such a function: equal outputs are a tie.
    progress: called with the run so far after every vote and skip.
    warn: called with each warning; by default they are logged.
    stop: set this event from another thread to end the run early, as Ctrl-C does.

    Raises SetupChanged, before anything is asked, if texts, cases or the judge's settings are not those that earlier
    votes were given on. Raises JudgeFailed if the judge fails. The study keeps every answer until then. Raises
    StorageUnavailable if the storage stays away; answers that were paid for are then in a file in the current folder,
    NAME.unsaved-*.jsonl, and the next run of the study stores them.
    """
    judge, policy = as_judge(judge), RetryPolicy(retries, time_limit, backoff)
    listed = _checked_cases(study, judge, position, cases, contents)
    cases_of, once = _drawn_from(study, judge, listed)
    at_a_time = _questions_at_a_time(judge, workers, max_calls)
    meter = Meter(judge, max_cost, 0.0 if max_cost is None else study.storage.spent(study.name).cost)
    setup = set_up(study, judge, listed, contents, as_new_judge)
    log = RunLog(study, setup.judge, progress, warn)
    _warn_at_start(log, setup, listed, once)
    kept = StoredAnswers(study) if cache is None else cache
    storage = StoragePatience(storage_patience, log.warn)
    replies = ReplyLog(study, setup, keep_texts)
    texts = None if contents is None or isinstance(contents, Mapping) else TextFunction(contents)
    with DeferredInterrupt() as interrupt, RunLease(study, storage_patience) as lease:
        files = UnsavedFiles(study, kept, log.warn)
        files.take_in()
        left = deque(lease.take_over(setup.judge, files.take_in) if resume else ())
        unsaved = UnsavedAnswers(study, lease.id, log.warn, replies.lines)
        pending = PendingCalls(study, setup, 1 + (position == "both"), kept, log, unsaved, storage, known_answer, judge)
        pool = CallPool(judge, policy, texts, log.costs, meter, ServerPatience(patience))
        parts = study, judge, setup, cases_of, once, interrupt, lease, pool, pending, unsaved, files, storage, log
        _Run(*parts, replies, at_a_time, max_calls, resume, stop or threading.Event(), left).run_to_the_end()
    return log.so_far()


def _questions_at_a_time(judge: Judge, workers: int, max_calls: int | None) -> int:
    """How many questions are asked at a time. Raises what is wrong with the numbers."""
    if max_calls is not None:
        whole("max_calls", max_calls, 1)
    return min(whole("workers", workers, 1), judge.max_parallel or workers)


def _checked_cases(
    study: Study, judge: Judge, position: str, cases: Iterable[Case | str] | None, contents: Contents | None
) -> Sequence[Case] | None:
    """The cases of a run. Raises what is wrong with the arguments before anything is asked."""
    if position not in get_args(Position):
        raise BadJudge(f"position is {position!r}; choose one of {', '.join(get_args(Position))}")
    listed = listed_cases(study, judge, cases)
    if study.cases_claim == "like these" and not isinstance(judge, RecordedJudge):
        check_texts(listed or ())
    if contents is not None:
        check_contents(contents, study.items)
    if isinstance(judge, CallableJudge):
        judge.check(with_case=listed is not None)
    if (check := getattr(judge, "check_cases", None)) is not None:
        check(listed)
    if isinstance(judge, PanelJudge) and study.judges_claim == "public":
        raise BadJudge("a panel is one judge, and not drawn from a public; choose judges_claim 'each'")
    return listed


def _drawn_from(study: Study, judge: Judge, listed: Sequence[Case] | None) -> tuple[Cases, bool]:
    """The cases that questions draw from, and whether each is used once."""
    if not isinstance(judge, RecordedJudge):
        return tuple(case.id for case in listed or ()), study.cases_claim == "like these"
    if study.judges_claim == "public":
        raise BadJudge("recorded votes do not say that each judge was asked once; choose judges_claim 'each'")
    return judge.votes_on(study.items), True


def _warn_at_start(log: RunLog, setup: RunSetup, listed: Sequence[Case] | None, once: bool) -> None:
    for note in setup.notes:
        log.warn(note)
    if listed is not None and len(listed) < FEW_CASES and not once:
        log.warn(f"there are only {len(listed)} cases, so the result holds for these cases and not for others")


async def arun_study(study: Study, judge: Judge | Callable[..., Any], **options: Any) -> StudyRun:
    """`run_study` for async code such as a notebook: the event loop stays free. Options as in `run_study`.

    The run works in a thread of its own, which also calls `progress` and `warn`. Do not use the study until the run has
    ended. If the task is cancelled, the run stops as it does at Ctrl-C: answers that have arrived are told, and
    `run_study` or `arun_study` can resume it.

    >>> run = await shortlist.arun_study(study, judge)  # doctest: +SKIP
    """
    stop = threading.Event()
    ended = start_thread(partial(run_study, study, judge, stop=stop, **options))
    try:
        run, failure = await asyncio.wrap_future(ended)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([asyncio.wrap_future(ended)])
        raise
    if run is None:
        assert failure is not None
        raise failure
    return run


def find_top(
    items: Sequence[str],
    k: int,
    judge: Judge | Callable[..., Any],
    delta: float = 0.05,
    *,
    workers: int = 1,
    retries: int = 0,
    **options: Any,
) -> Verdict[str]:
    """Ask `judge(first, second)` until the best k items are proved; options as in `create_study`.

    The judge returns the better item's name, "tie", or a number as seen from the first item. It may be async, or any
    judge that `run_study` takes. `workers` questions are asked at a time. If the judge fails after that many retries,
    JudgeFailed.study has all answers until then.
    """
    whole("workers", workers, 1)
    study = create_study(items, k, delta, **options)
    return run_study(study, judge, workers=workers, retries=retries, time_limit=None, patience=0.0).verdict


def listed_cases(study: Study, judge: Judge, cases: Iterable[Case | str] | None) -> Sequence[Case] | None:
    """The cases of a run; recorded votes are cases of their own."""
    if not isinstance(judge, RecordedJudge):
        return None if cases is None else check_cases(cases)
    if cases is not None:
        raise BadCases("recorded votes were given on their own cases; leave out cases")
    return [Case(vote, vote) for vote in judge.ids(study.items)]


@dataclass(frozen=True)
class _Run:
    """The loop: ask, wait, tell."""

    study: Study
    judge: Judge
    setup: RunSetup
    cases: Cases
    once: bool
    interrupt: DeferredInterrupt
    lease: RunLease
    pool: CallPool
    pending: PendingCalls
    unsaved: UnsavedAnswers
    files: UnsavedFiles
    patience: StoragePatience
    log: RunLog
    replies: ReplyLog
    workers: int
    max_calls: int | None
    resume: bool
    stop: threading.Event
    left: deque[Question]  # by earlier runs
    held: deque[Arrival] = field(default_factory=deque)  # arrived while the storage did not respond
    said: set[str] = field(default_factory=set)  # why it ends, each reason once

    def run_to_the_end(self) -> None:
        """Ask until the end, and keep what comes while the calls are closed."""
        try:
            with self.pool:
                self.interrupt.on_signal = self.pool.wake
                self.run()
        finally:
            self.keep_last()

    def run(self) -> None:
        """Ask until the end. What has arrived by then is stored, or written to a file if the storage stays away."""
        self.patience.wait, self.patience.before = self._wait, self.lease.keep
        try:
            self._run()
        except BadStorage as failure:
            given_up = self._given_up(failure)
            if self.interrupt.noted:
                self.log.warn(str(given_up))
                raise KeyboardInterrupt from failure
            raise given_up from failure

    def _run(self) -> None:
        try:
            self._loop()
        except JudgeFailed as failure:
            self._tell_arrived(GRACE)
            failure.study, failure.run = self.study, self.log.so_far()
            raise
        finally:
            try:
                self._tell_arrived(self._grace())
            finally:  # a second Ctrl-C does not wait
                self.pending.finish()
                self._store_replies()

    def _grace(self) -> float:
        """Seconds to wait for the answers of calls under way: none, unless they are paid for."""
        was_stopped = self.interrupt.noted or self.stop.is_set()
        if not (self.pool.meter.is_counted and (was_stopped or self.study.verdict.done)):
            return 0.0
        if was_stopped and self.pool.under_way:
            calls = f"{self.pool.under_way:,} call{'s' * (self.pool.under_way > 1)} under way"
            self.log.warn(f"waiting up to {GRACE:.0f} s for {calls}, to keep the answers; Ctrl-C again does not wait")
        return GRACE

    def keep_last(self) -> None:
        """Keep what came while the calls were closed. If the storage is away, answers are in a file by now."""
        try:
            while (arrival := self.pool.next(0.0)) is not None:
                self.replies.add(arrival.call, arrival.tries)
                if isinstance(arrival.result, Reply):
                    self.pending.bank(arrival.call, arrival.result.answer)
            self._store_replies()
        except BadStorage:
            self.unsaved.write()

    def _store_replies(self) -> None:
        self.patience(self.replies.store)
        self.unsaved.update()

    def _given_up(self, failure: BadStorage) -> BadStorage:
        """Keep what was paid for in a file. Returns the error that says so."""
        until = monotonic() + GRACE
        while self.pool.under_way and (arrival := self.pool.next(until - monotonic())) is not None:
            self._hold(arrival)
        self.unsaved.write()
        if not self.unsaved:
            return failure
        failure.args = (f"{failure}. {self.unsaved.place}",)  # of any kind, with what else it has
        return failure

    def _wait(self, seconds: float) -> None:
        """While the storage does not respond, collect the answers that arrive."""
        self.unsaved.write()
        until = monotonic() + seconds
        while (left := until - monotonic()) > 0:
            self.interrupt.check()
            if self.stop.is_set():
                raise StorageUnavailable("stopped while the storage did not respond")
            arrival = self.pool.next(min(left, HEARTBEAT))
            if arrival is not None:
                self._hold(arrival)
        self.interrupt.check()

    def _hold(self, arrival: Arrival) -> None:
        self.replies.add(arrival.call, arrival.tries)
        self.held.append(arrival._replace(tries=()))
        if isinstance(arrival.result, Reply):
            self.pending.note(arrival.call, arrival.result.answer)
        self.unsaved.write()

    def _next_arrival(self, wait: float) -> Arrival | None:
        return self.held.popleft() if self.held else self.pool.next(wait)

    def _loop(self) -> None:
        outages = self.patience.outages
        while not (self.study.verdict.done or self.stop.is_set()):
            self.interrupt.check()
            if self.patience(self.lease.renew) and self.resume:
                self.left.extend(self.patience(self._take_over))
            if outages < self.patience.outages:
                outages = self.patience.outages
                self.left.extend(self._asked_unheard())
            question = self._next_question() if self.pool.arrived.empty() and not self.held else None
            if question is not None:
                self._start(self.pending.take(question))
                if len(self.pending.questions) < self.workers:
                    continue
            elif not self.pending.questions:
                break
            self._start(self._receive(self._next_arrival(HEARTBEAT)))

    def _take_over(self) -> list[Question]:
        return self.lease.take_over(self.setup.judge, self.files.take_in)

    def _asked_unheard(self) -> list[Question]:
        """Questions of this run that were stored while the connection was lost, so that nobody works on them. On a
        ballot `ask` finds them."""
        if self.study.judges_claim == "public":
            return []
        known = {*self.pending.questions, *(question.id for question in self.left)}
        found = self.patience(partial(self.study.held_by, self.lease.id))
        return [question for question in found if question.id not in known]

    def _start(self, calls: Iterable[Call]) -> None:
        for call in calls:
            (self.pool.find_texts if self.setup.needs_texts(call) else self.pool.put)(call)

    def _next_question(self) -> Question | None:
        if len(self.pending.questions) >= self.workers:
            return None
        if not self.pool.meter.has_room:
            self._warn_at_end(_out_of_money(self.pool.meter))
            return None
        if self.max_calls is not None and self.pool.calls >= self.max_calls:
            self._warn_at_end(
                f"stopped after {self.max_calls:,} calls (max_calls) without a proof; run again to continue"
            )
            return None
        while self.left:
            question = self.left.popleft()
            if question.case is not None or not self.once:
                return question
            with suppress(AlreadyAnswered):  # drawn now, its case could be drawn again
                self.patience(partial(self.study.skip, question, "asked without a case"))
        try:
            return self.patience(self._ask)
        except CasesUsedUp as reason:
            self.log.used_up = not self.pending.questions
            self._warn_at_end(_used_up(self.judge, reason))
            return None
        except NothingToAsk as reason:
            self.log.needs_judge = isinstance(reason, NeedsJudges) and not self.pending.questions
            self._warn_at_end(f"stopped without a proof: {reason}")
            return None
        except StudyDone:  # by somebody else's vote
            return None

    def _ask(self) -> Question | None:
        judge, cases, once, run = self.setup.judge, self.cases, self.once, self.lease.id
        if self.study.judges_claim == "each":
            return self.study.ask(judge=judge, cases=cases, once=once, run=run, cells=self.pending.cells)
        ballot = self.study.ask(self.study.ballot_size, judge=judge, cases=cases, once=once, run=run, shown=False)
        return next((question for question in ballot if question.id not in self.pending.questions), None)

    def _warn_at_end(self, warning: str) -> None:
        if not self.pending.questions and warning not in self.said:
            self.said.add(warning)
            self.log.warn(warning)

    def _receive(self, arrival: Arrival | None) -> list[Call]:
        while not self.pool.patience.notices.empty():
            self.log.warn(self.pool.patience.notices.get())
        if arrival is None:
            self.pool.check()
            return []
        call, result = arrival.call, arrival.result
        self.replies.add(call, arrival.tries)
        try:
            return self._take(call, result)
        finally:
            self._store_replies()

    def _take(self, call: Call, result: Reply | Call | Exception) -> list[Call]:
        if isinstance(result, OutOfMoney):
            self.pending.leave(call)
            self._warn_at_end(_out_of_money(self.pool.meter))
            return []
        if self.study.verdict.done and isinstance(result, Reply):
            self.pending.bank(call, result.answer)
            return []
        if isinstance(result, Exception):
            self.pending.skip(call, str(result))
            raise result
        if isinstance(result, Call):
            self.patience(partial(record_texts, self.study, result))
            return self.pending.add_texts(call, result)
        calls = self.pending.answer(call, result.answer)
        skips = self.pending.skips_in_a_row
        if skips >= max(SKIPS_IN_A_ROW, 2 * self.workers):
            last = list(self.log.skipped.values())[-1]
            raise JudgeFailed(f"the last {skips} questions were all skipped; reason of the last skip: {last}")
        return calls

    def _tell_arrived(self, wait: float) -> None:
        """Tell the answers that have arrived or arrive within that many seconds; make no more calls."""
        until = monotonic() + wait
        while self.held or self.pool.under_way:
            arrival = self._next_arrival(until - monotonic())
            if arrival is not None:
                with suppress(JudgeFailed, SetupChanged):  # one failure is being reported already
                    self._receive(arrival)
            elif monotonic() >= until and self.pool.arrived.empty():
                break


def _out_of_money(meter: Meter) -> str:
    return (
        f"stopped without a proof: {meter.spent:.4g} of {meter.ceiling:.4g} (max_cost) is spent, and the next call may "
        "cost more than is left. To continue, run the same command with a higher --max-cost"
    )


def _used_up(judge: Judge, reason: CasesUsedUp) -> str:
    if not isinstance(judge, RecordedJudge):
        return f"All cases are used up, each for one question: {reason.used:,} of {reason.total:,}. Not proved."
    return (
        f"All recorded votes on the pairs that a proof needs are used up: {reason.used:,} of {reason.total:,} "
        f"{judge.unit_name}s were used. Not proved."
    )
