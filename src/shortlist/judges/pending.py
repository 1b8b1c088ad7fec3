"""The questions that a judge is working on: which calls they need, how the answers become votes, and which run works on
which question.

This module knows the study and the answer cache, but not how calls are made: it returns the calls to make next.

Answers are cached, so that no call is paid for twice. An answer on a case is kept for all questions that draw this
case. Each question draws its case at random, so a cached answer to the drawn case is as good a vote as a new one.
Without cases it would be the same vote again, so the answer is kept only for its own question.

A run marks the questions it asks with its id, and renews this lease every few seconds, so that two runs with one judge
do not do the work twice. Questions of a run that ended, was killed or did not renew its lease for a while are free: the
next run of the same judge takes them over.
"""

import itertools
import json
import math
import os
import platform
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from glob import escape
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from shortlist.core.draws import digest
from shortlist.core.outcomes import flipped, outcome_of, outcome_of_share
from shortlist.errors import (
    AlreadyAnswered,
    BadOutcome,
    JudgeFailed,
    LateAnswer,
    ShortlistError,
    StorageUnavailable,
    UnknownItem,
)
from shortlist.judges.base import Call, Case, Judge, PanelJudge, Skip
from shortlist.judges.calls import StoragePatience
from shortlist.judges.cases import case_of, text_of
from shortlist.judges.run_log import RunLog, Warn
from shortlist.judges.setup import RunSetup
from shortlist.study.events import ENDED, Head
from shortlist.study.questions import Question
from shortlist.study.storage import AnswerKey, JudgeReply
from shortlist.study.study import Study

RENEW_EVERY = 10.0  # seconds
EXPIRES_AFTER = 60.0  # seconds, for a run on another machine

UNKNOWN = "?"  # the start of a process that cannot be read
KnownAnswer = Callable[[Call], float | None]  # the first item's share of the win; None if the judge has to be asked

_numbers = itertools.count()
_here: set[str] = set()  # the runs of this process


class RunLease:
    """`with RunLease(study) as lease`: one run that works on a study."""

    def __init__(self, study: Study, patience: float = 0.0) -> None:
        """patience: seconds that the run waits for its storage; its lease lasts longer than that."""
        self._study, self._lasts = study, EXPIRES_AFTER + patience
        self._last = self._beat_at = -math.inf
        self.id = f"{_machine()} {os.getpid()} {_started(os.getpid())} {next(_numbers)}"

    def __enter__(self) -> "RunLease":
        _here.add(self.id)
        self.renew()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _here.discard(self.id)
        with suppress(StorageUnavailable):  # then the lease ends by itself
            self._study.storage.leave(self._study.name, self.id)

    def renew(self) -> bool:
        """Show that this run is alive. Returns True if it was time to: then it is also time to `take_over`."""
        now = time.monotonic()
        if now < self._last + RENEW_EVERY:
            return False
        self._beat()
        self._last = now
        return True

    def keep(self) -> None:
        """Show in the middle of work that this run is alive: on a busy storage each step may wait for a minute."""
        if time.monotonic() >= self._beat_at + RENEW_EVERY:
            with suppress(ShortlistError):  # the work itself says so
                self._beat()

    def _beat(self) -> None:
        now = time.monotonic()
        self._study.storage.beat(self._study.name, self.id, self._lasts)
        self._beat_at = now

    def take_over(self, judge: str, before: Callable[[], None] = lambda: None) -> list[Question]:
        """The judge's pending questions that no run works on; from now on this run does. `before` is called when it is
        known which runs have ended: they may have left answers in a file."""
        holders = self._study.holders(judge)  # read before the leases: a run may start in between
        left = self._study.storage.beats(self._study.name)
        free = {run for run in holders if run is None or not is_working(run, left)}
        before()
        return self._study.take_over(judge, self.id, free.__contains__)


def is_working(run: str, left: dict[str, float]) -> bool:
    """Whether a run is alive, given the seconds that are left of each run's lease."""
    if run not in left:
        return False
    recent = left[run] > 0
    machine, pid, started, _ = run.split(" ")
    if machine != _machine():
        return recent
    if int(pid) == os.getpid():
        return run in _here
    return _started(int(pid)) == started and (recent or started != UNKNOWN)


@cache
def _machine() -> str:
    return digest(platform.node(), uuid.getnode())


def _started(pid: int) -> str:
    """When a process of this machine started, in clock ticks; "-" if there is no such process."""
    with suppress(OSError):  # process ids are reused, so the start is compared too
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    try:
        if os.name == "posix":
            os.kill(pid, 0)
    except ProcessLookupError:
        return "-"
    except PermissionError:
        pass
    return UNKNOWN


class AnswerCache(Protocol):
    """Where answers are cached. Outcomes are seen from the key's first item. Used from one thread."""

    def find(self, key: AnswerKey) -> float | None: ...
    def add(self, key: AnswerKey, outcome: float) -> float:
        """Cache an answer, and return the one that counts: the first. Later ones change nothing."""
        ...


class MemoryCache:
    """An answer cache in memory, which several studies can share."""

    def __init__(self) -> None:
        self._answers: dict[AnswerKey, float] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def find(self, key: AnswerKey) -> float | None:
        return self._answers.get(key)

    def add(self, key: AnswerKey, outcome: float) -> float:
        return self._answers.setdefault(key, outcome)


class StoredAnswers:
    """The answer cache in a study's storage. All processes see an answer as soon as `add` returns."""

    def __init__(self, study: Study) -> None:
        self._storage, self._study = study.storage, study.name
        self._read: dict[AnswerKey, float] = {}

    def find(self, key: AnswerKey) -> float | None:
        if key not in self._read:
            known = self._storage.known_answer(self._study, key)
            if known is None:
                return None
            self._read[key] = known
        return self._read[key]

    def add(self, key: AnswerKey, outcome: float) -> float:
        self._read[key] = self._storage.keep_answer(self._study, key, outcome)
        return self._read[key]


class UnsavedAnswers:
    """Answers that were paid for and are not votes yet. While the storage does not respond they are also in a file in
    the current folder, and another run stores them (`UnsavedFiles`). `said` gives what else is to be stored: what the
    judge said, and what it cost."""

    def __init__(self, study: Study, run: str, warn: Warn, said: Callable[[], list[dict[str, Any]]] = list) -> None:
        self._study, self._run, self._warn, self._said = study, run, warn, said
        self._lines: dict[AnswerKey, dict[str, Any]] = {}
        _, pid, _, number = run.split(" ")
        self._name = f"{study.name}.unsaved-{pid}-{number}.jsonl"
        self._written: list[Path] = []  # the last one has all answers
        self._is_told = False

    @property
    def place(self) -> str:
        """How many answers there are and where, for a message."""
        is_one, said = len(self) == 1, f"{len(self):,} paid answer{'s are' if len(self) != 1 else ' is'}"
        if not self._written:
            return f"{said} lost: no file took {'it' if is_one else 'them'}"
        return f"{said} in {self._written[-1]}, and the next run stores {'it' if is_one else 'them'}"

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, key: AnswerKey, question: int, outcome: float, cached: bool) -> None:
        """An answer has arrived. `cached`: it belongs into the answer cache; else it is the vote."""
        line = {"question": question, "outcome": outcome, "cached": cached, "key": key._asdict()}
        self._lines[key] = line

    def drop(self, question: int) -> None:
        """The question has its vote."""
        self._lines = {key: line for key, line in self._lines.items() if line["question"] != question}
        self.update()

    def update(self) -> None:
        """Keep the file as it should be, if there is one."""
        if self._written:
            self.write()

    def write(self) -> None:
        """Write all answers to the file; without answers there is no file. If the current folder takes none, as on a
        full disk, the file is in the folder for temporary files."""
        lines = [*self._lines.values(), *self._said()]
        if not lines:
            for file in self._written:
                file.unlink(missing_ok=True)
            self._written = []
            return
        place = {"storage": _url(self._study), "study": self._study.name, "head": self._study.head, "run": self._run}
        content = "".join(_sealed({**place, "lines": len(lines), **line}) + "\n" for line in lines)
        failures = list[OSError]()
        for folder in _folders():
            try:
                _write_whole(folder / self._name, content)
            except OSError as reason:
                failures.append(reason)
            else:
                self._written = [*(file for file in self._written if file.parent != folder), folder / self._name]
                return
        if not self._is_told:
            self._is_told = True
            self._warn(f"paid answers are only in the memory of this run; no file can be written: {failures[0]}")


def _sealed(line: dict[str, Any]) -> str:
    """A line of the file, with a checksum."""
    return json.dumps({**line, "check": digest(json.dumps(line))})


def _unsealed(text: bytes) -> dict[str, Any]:
    """What a line says; empty if it is damaged."""
    with suppress(ValueError, LookupError, TypeError, AttributeError, RecursionError):
        line = json.loads(text)
        if line.pop("check") == digest(json.dumps(line)):
            return dict(line)
    return {}


def _folders() -> tuple[Path, Path]:
    """Where files of unsaved answers are."""
    return Path(), Path(tempfile.gettempdir())


def _write_whole(file: Path, content: str) -> None:
    part = file.with_suffix(".part")
    try:
        with part.open("w") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        part.replace(file)
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


class UnsavedFiles:
    """The files of answers that other runs could not store."""

    def __init__(self, study: Study, cache: AnswerCache, warn: Warn) -> None:
        self._study, self._cache, self._warn = study, cache, warn
        self._left_alone: set[Path] = set()

    def take_in(self) -> None:
        """Store the answers of runs that have ended, and delete their files."""
        pattern = f"{escape(self._study.name)}.unsaved-*.jsonl"
        for file in [file for folder in _folders() for file in sorted(folder.glob(pattern))]:
            if file in self._left_alone:
                continue
            try:
                if file.parent != Path() and file.stat().st_uid != os.getuid():  # everybody may write to that folder
                    continue
                self._take(file, file.read_bytes().splitlines())
            except FileNotFoundError:  # another run took it in
                continue
            except (OSError, ValueError, LookupError, TypeError) as reason:
                self._leave(file, f"cannot be read, so it is left as it is: {reason!r}")

    def _take(self, file: Path, texts: Sequence[bytes]) -> None:
        study = self._study
        lines = [line for text in dict.fromkeys(texts) if (line := _unsealed(text))]
        if not lines:
            return self._leave(file, "is damaged, so it is left as it is")
        if any(is_working(line["run"], study.storage.beats(study.name)) for line in lines):
            return
        if not all(_is_about(line, study) for line in lines):
            return self._leave(file, "has answers for another study or storage, so it is left as it is")
        for line in lines:
            if "reply" in line:
                study.storage.add_replies(study.name, [JudgeReply(**line["reply"])], line["texts"])
            else:
                _store(line, study, self._cache)
        answers = sum("reply" not in line for line in lines)
        if damaged := lines[0]["lines"] - len(lines):
            said = f"{answers:,} paid answer{'s' * (answers != 1)} of it stored, and"
            return self._leave(file, f"is damaged: {said} {damaged:,} of {lines[0]['lines']:,} lines cannot be read")
        file.unlink(missing_ok=True)
        self._warn(f"{answers:,} paid answer{'s' * (answers != 1)} of an interrupted run stored, from {file}")

    def _leave(self, file: Path, why: str) -> None:
        self._left_alone.add(file)
        self._warn(f"{file} {why}")


def _is_about(line: Mapping[str, Any], study: Study) -> bool:
    place = line["storage"], line["study"]
    return place == (_url(study), study.name) and study.had(Head(*line["head"]))


def _store(line: Mapping[str, Any], study: Study, cache: AnswerCache) -> None:
    key = AnswerKey(**line["key"])
    if line["cached"]:
        cache.add(key, study.storage.keep_answer(study.name, key, line["outcome"]))  # the caller's may be in memory
        return
    question = study.question(line["question"])
    if (question.first, question.second) != (key.first, key.second):
        raise ValueError(f"question {question.id} has other items")
    with suppress(AlreadyAnswered, LateAnswer):
        study.tell(question, line["outcome"])


def _url(study: Study) -> str:
    return str(getattr(study.storage, "url", ""))


@dataclass
class PendingQuestion:
    """A question without a vote, and its outcomes so far: one per judge of a panel and order, as seen from its first
    item."""

    question: Question
    case: Case | None
    orders: int = 1
    members: Sequence[int | None] = (None,)  # the judges of a panel that are asked
    texts: tuple[str | None, str | None] = (None, None)  # of its first and second item
    outcomes: list[float] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        return len(self.outcomes) == self.orders * len(self.members)

    def next_call(self) -> Call:
        """The call for the next judge and order."""
        place, order = divmod(len(self.outcomes), self.orders)
        (first, first_text), (second, second_text) = self._sides[::-1] if order else self._sides
        return Call(
            self.question.id, first, second, first_text, second_text, self.case, bool(order), self.members[place]
        )

    @property
    def _sides(self) -> tuple[tuple[str, str | None], tuple[str, str | None]]:
        return (self.question.first, self.texts[0]), (self.question.second, self.texts[1])


class PendingCalls:
    """`orders` is 1, or 2 to ask every question in both orders and tell the mean. `known` answers calls that need no
    judge. A panel says which of its judges a question goes to."""

    def __init__(
        self, study: Study, setup: RunSetup, orders: int, cache: AnswerCache, log: RunLog, unsaved: UnsavedAnswers,
        patience: StoragePatience, known: KnownAnswer | None = None, judge: Judge | None = None,
    ) -> None:  # fmt: skip
        self._study, self._setup, self._orders, self._unsaved, self._patience = study, setup, orders, unsaved, patience
        self._known, self._panel = known, judge if isinstance(judge, PanelJudge) else None
        self._cache, self._log, self._family = cache, log, study.problem.family
        # A single answer without a case is told at once; the first of several has to wait for the others.
        self._uses_cache = (
            setup.cases is not None or orders > 1 or (self._panel is not None and self._panel.how == "mean")
        )
        self._waiting: dict[AnswerKey, list[PendingQuestion]] = {}  # by the call that is under way
        self.questions: dict[int, PendingQuestion] = {}
        self.skips_in_a_row = 0

    @property
    def cells(self) -> int:
        """Of how many answers that never change a vote is the mean, see `Study.ask`: none without cases, or if another
        judge of a panel may answer the next time."""
        is_drawn = self._panel is not None and self._panel.how == "random"
        return 0 if self._setup.cases is None or is_drawn else self._orders

    def take(self, question: Question) -> list[Call]:
        """Add a question. Returns the calls to make now: none if the answer is cached. If texts come from a function,
        it is a call without texts, to be given to `add_texts` when they are found."""
        case = case_of(question, self._study.seed, self._setup.cases)
        orders = self._study.cells_of(question.id) or self._orders  # as it was asked, by this run or another
        members = (None,) if self._panel is None else self._panel.asked(self._study.seed, question.id)
        pending = self.questions[question.id] = PendingQuestion(question, case, orders, members)
        call = pending.next_call()
        if self._setup.needs_texts(call):
            self._waiting[self._setup.key(call)] = [pending]
            return [call]
        pending.texts = self._text(question.first, case), self._text(question.second, case)
        return self._advance(pending)

    def add_texts(self, without: Call, call: Call) -> list[Call]:
        """The texts of a call were found. Returns the calls to make now."""
        (pending,) = self._waiting.pop(self._setup.key(without))
        pending.texts = call.first_text, call.second_text
        return self._advance(pending)

    def answer(self, call: Call, answer: Any) -> list[Call]:
        """Add the answer to a call. Returns the calls to make next. Raises JudgeFailed if it is not an answer."""
        if isinstance(answer, Skip):
            self.skip(call, answer.reason)
            return []
        key = self._setup.key(call)
        try:
            outcome = outcome_of(answer, call.first, call.second, self._family)
        except (BadOutcome, UnknownItem) as reason:
            message = f"the judge answered {answer!r} on {call}: {reason}"
            self.skip(call, message)
            raise JudgeFailed(message) from None
        self._unsaved.add(key, call.id, outcome, self._uses_cache)  # before anything else can fail
        if self._uses_cache:
            outcome = self._patience(partial(self._cache.add, key, outcome))
        self._log.count(call, outcome, self._family.tie)
        waiting = self._waiting.pop(key)
        self._log.costs.saved += len(waiting) - 1
        for pending in waiting:
            self._add_outcome(pending, call, outcome)
        calls: list[Call] = []
        for pending in waiting:
            calls += self._advance(pending)
        if call.id not in self.questions:
            self._unsaved.drop(call.id)
        return calls

    def note(self, call: Call, answer: Any) -> None:
        """Keep an answer that cannot be stored now."""
        with suppress(BadOutcome, UnknownItem):
            if not isinstance(answer, Skip):
                outcome = outcome_of(answer, call.first, call.second, self._family)
                self._unsaved.add(self._setup.key(call), call.id, outcome, self._uses_cache)

    def bank(self, call: Call, answer: Any) -> None:
        """Keep an answer that comes too late for its question, so that it is not paid for again."""
        with suppress(BadOutcome, UnknownItem):
            if not isinstance(answer, Skip) and self._uses_cache:
                outcome = outcome_of(answer, call.first, call.second, self._family)
                self._patience(partial(self._cache.add, self._setup.key(call), outcome))

    def leave(self, call: Call) -> None:
        """Leave the questions that wait for this call pending, for the next run."""
        for pending in self._waiting.pop(self._setup.key(call)):
            del self.questions[pending.question.id]

    def skip(self, call: Call, reason: str) -> None:
        """Skip the questions that wait for this call."""
        for pending in self._waiting.pop(self._setup.key(call)):
            self._skip(pending, reason)

    def finish(self) -> None:
        """Vote where all outcomes are there. Close the rest if the study is done, else leave it pending."""
        for pending in list(self.questions.values()):
            if pending.is_complete:  # interrupted between an answer and its vote
                self._vote(pending)
            elif self._study.verdict.done:
                self._skip(pending, ENDED)

    def _advance(self, pending: PendingQuestion) -> list[Call]:
        """The next call that the question needs; if it needs none, vote."""
        while not pending.is_complete:
            call = pending.next_call()
            key = self._setup.key(call)
            known = self._known_outcome(call)
            if known is None and self._uses_cache:
                known = self._patience(partial(self._cache.find, key))
            if known is None:
                waiting = self._waiting.setdefault(key, [])
                waiting.append(pending)
                return [call] if len(waiting) == 1 else []
            self._log.costs.saved += 1
            self._add_outcome(pending, call, known)
        self._vote(pending)
        return []

    def _known_outcome(self, call: Call) -> float | None:
        share = None if self._known is None else self._known(call)
        return None if share is None else outcome_of_share(share, self._family)

    def _text(self, item: str, case: Case | None) -> str | None:
        return text_of(self._setup.contents, item, case)

    def _add_outcome(self, pending: PendingQuestion, call: Call, outcome: float) -> None:
        """As seen from the question's first item, which is the second item of the call if the sides were swapped."""
        is_same = call.first == pending.question.first
        pending.outcomes.append(outcome if is_same else flipped(outcome, self._family))

    def _vote(self, pending: PendingQuestion) -> None:
        if pending.orders == 2:
            for one, other in zip(pending.outcomes[::2], pending.outcomes[1::2], strict=True):
                self._log.stats = self._log.stats.after_both(one, other, self._family.tie)
        self.skips_in_a_row = 0
        with suppress(AlreadyAnswered):  # closed by somebody else: the judge was voided, or the question expired
            self._patience(partial(self._study.tell, pending.question, sum(pending.outcomes) / len(pending.outcomes)))
        del self.questions[pending.question.id]
        self._log.show_progress()

    def _skip(self, pending: PendingQuestion, reason: str) -> None:
        self._log.costs.skips += 1
        self._log.skipped[pending.question.id] = reason
        self.skips_in_a_row += 1
        with suppress(AlreadyAnswered):
            self._patience(partial(self._study.skip, pending.question, ENDED if reason == ENDED else ""))
        del self.questions[pending.question.id]
        self._log.show_progress()
