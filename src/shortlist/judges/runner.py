"""Let a judge answer a study: `run_study`, and `find_top` for the whole thing in one call.

Calls run elsewhere (`crew.py`); the study and the answer book are touched only in the caller's thread. An answer is
told as soon as it arrives. When a run breaks off, what has arrived is told first; the question that broke it is
skipped, the others that are out stay out and are answered first by the next run of the same judge. They are not
skipped, because a judge who is slow when about to say "worse" would then get its losses forgiven.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Literal, get_args

from shortlist.certificates.verdict import Verdict
from shortlist.checks import whole
from shortlist.errors import BadJudge, JudgeFailed, NothingToAsk, StudyDone
from shortlist.judges.book import AnswerBook, StudyBook
from shortlist.judges.callables import CallableJudge, as_judge
from shortlist.judges.cases import case_of, check_cases
from shortlist.judges.contents import Contents, check_contents
from shortlist.judges.crew import Arrival, Crew
from shortlist.judges.judge import Asked, Case, Judge
from shortlist.judges.patience import Backoff, Patience
from shortlist.judges.record import Progress, Record, StudyRun, Warn
from shortlist.judges.shift import Shift
from shortlist.judges.tray import Tray
from shortlist.study.create import create_study
from shortlist.study.questions import Question
from shortlist.study.study import Study

Position = Literal["random", "both"]
GRACE = 5.0  # seconds that calls under way have to arrive after a judge has failed
SKIPS_IN_A_ROW = 20  # or twice the workers: then nothing will come of it
FEW_CASES = 30


def run_study(
    study: Study,
    judge: Judge | Callable[..., Any],
    *,
    workers: int = 8,
    cases: Iterable[Case | str] | None = None,
    contents: Contents | None = None,
    position: Position = "random",
    book: AnswerBook | None = None,
    retries: int = 3,
    time_limit: float | None = 300.0,
    backoff: Backoff = Backoff(),
    resume: bool = True,
    max_calls: int | None = None,
    progress: Progress | None = None,
    warn: Warn | None = None,
) -> StudyRun:
    """Keep `workers` questions out with the judge until there is a verdict or the budget is used.

    cases: what the items are compared on; each question draws one at random, with replacement.
    contents: what to show for an item: texts by item, texts by item and case id, or a function (item, case).
    position: "random" shows the sides by the study's fair coin. "both" asks each question in both orders and tells the
        mean as one vote: the two answers come from one judge about one case, so counting both would count an opinion
        twice. A judge who only looks at positions then ties every question.
    book: where known answers are found and kept; left out, in the study's storage.
    retries, time_limit, backoff: for one call, the limit in seconds. What stays unclear or too slow is skipped.
    resume: first answer the questions that an earlier run with this judge left out, unless it is still at work.
    max_calls: ask nothing new after so many calls; what is out may still take some more.
    progress: called with the run so far after every vote and skip.
    warn: called with each warning; left out, they are logged.

    Raises JudgeFailed if the judge fails for good; the study has every answer until then.
    """
    if position not in get_args(Position):
        raise BadJudge(f"position is {position!r}; choose one of {', '.join(get_args(Position))}")
    judge, patience = as_judge(judge), Patience(retries, time_limit, backoff)
    listed = None if cases is None else check_cases(cases)
    if contents is not None:
        check_contents(contents, study.items)
    if isinstance(judge, CallableJudge):
        judge.check(with_case=listed is not None)
    record = Record(study, judge.name, progress, warn)
    if listed is not None and len(listed) < FEW_CASES:
        record.warn(f"there are only {len(listed)} cases; the verdict speaks of these and of no others")
    known = None if listed is None else {case.id: case for case in listed}
    kept = StudyBook(study) if book is None else book
    tray = Tray(study, judge.name, known, 2 if position == "both" else 1, kept, record)
    at_once = min(whole("workers", workers, 1), judge.at_once or workers)
    if max_calls is not None:
        whole("max_calls", max_calls, 1)
    with Shift(study) as shift:
        left_out = shift.take_over(judge.name) if resume else []
        for question in left_out:
            case_of(question, study.seed, known)
        with Crew(judge, patience, contents, record.costs) as crew:
            parts = shift, crew, tray, record
            _Run(study, judge.name, tuple(known or ()), *parts, at_once, max_calls, resume).go(left_out)
    return record.so_far()


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
    """Ask `judge(first, second)` until the best k are certain; options as in `create_study`.

    The judge returns the better item's name, "tie", or a number from the first item's side. It may be async, or any
    judge that `run_study` takes; `workers` questions are out at once. If it fails after that many retries,
    JudgeFailed.study holds all answers until then.
    """
    whole("workers", workers, 1)
    study = create_study(items, k, delta, **options)
    return run_study(study, judge, workers=workers, retries=retries, time_limit=None).verdict


class _Run:
    """The loop: ask, wait, tell."""

    def __init__(
        self,
        study: Study,
        judge: str,
        cases: Sequence[str],
        shift: Shift,
        crew: Crew,
        tray: Tray,
        record: Record,
        workers: int,
        max_calls: int | None,
        resume: bool,
    ) -> None:
        self._max_calls, self._resume = max_calls, resume
        self._study, self._judge, self._cases, self._shift = study, judge, cases, shift
        self._crew, self._tray, self._record, self._workers = crew, tray, record, workers
        self._left_out: deque[Question] = deque()

    def go(self, left_out: Iterable[Question]) -> None:
        self._left_out.extend(left_out)
        try:
            self._loop()
        except JudgeFailed as failure:
            self._take_in(GRACE)
            failure.study, failure.run = self._study, self._record.so_far()
            raise
        finally:
            self._take_in(0.0)
            self._tray.clear()

    def _loop(self) -> None:
        while not self._study.verdict.done:
            self._look_around()
            arrival = self._crew.poll()
            if arrival is None:
                question = self._next_question() if len(self._tray) < self._workers else None
                if question is not None:
                    self._call(self._tray.take(question))
                    continue
                if not len(self._tray):
                    break
                arrival = self._crew.next(self._look_around)
            self._call(self._receive(arrival))

    def _look_around(self) -> None:
        """Now and then: take over what a run that has ended meanwhile left out."""
        if self._shift.beat() and self._resume:
            self._left_out.extend(self._shift.take_over(self._judge))

    def _next_question(self) -> Question | None:
        if self._max_calls is not None and self._crew.calls >= self._max_calls:
            if not len(self._tray):
                self._record.warn(f"the run ended without a verdict: it was to make {self._max_calls:,} calls at most")
            return None
        if self._left_out:
            return self._left_out.popleft()
        try:
            return self._study.ask(judge=self._judge, cases=self._cases, run=self._shift.sign)
        except NothingToAsk as reason:
            if not len(self._tray):
                self._record.warn(f"the run ended without a verdict: {reason}")
            return None
        except StudyDone:  # by somebody else's vote
            return None

    def _call(self, calls: list[Asked]) -> None:
        for asked in calls:
            self._crew.put(asked)

    def _receive(self, arrival: Arrival) -> list[Asked]:
        asked, reply, failure = arrival
        if failure is not None or reply is None:
            self._tray.give_up(asked, str(failure))
            raise failure or JudgeFailed(f"the judge gave no reply on {asked}")
        calls = self._tray.answer(asked, reply.answer)
        if self._tray.skips_in_a_row >= max(SKIPS_IN_A_ROW, 2 * self._workers):
            last = list(self._record.skipped.values())[-1]
            raise JudgeFailed(f"the last {self._tray.skips_in_a_row} questions were all skipped, last because: {last}")
        return calls

    def _take_in(self, wait: float) -> None:
        """Tell what has arrived, and what arrives while we wait; ask nothing more."""
        until = monotonic() + wait
        while self._crew.under_way:
            arrival = self._crew.poll(until - monotonic())
            if arrival is None:
                break
            with suppress(JudgeFailed):  # one failure is being reported already
                self._receive(arrival)
