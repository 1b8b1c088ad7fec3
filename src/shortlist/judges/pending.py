"""The questions that a judge is working on: which calls they need, and how the answers become votes.

This module knows the study and the answer cache, but not how calls are made: it returns the calls to make next.

Answers are cached, so that no call is paid for twice. An answer on a case is kept for all questions that draw this
case. Each question draws its case at random, so a cached answer to the drawn case is as good a vote as a new one.
Without cases it would be the same vote again, so the answer is kept only for its own question.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from glob import escape
from pathlib import Path
from typing import Any, Protocol

from shortlist.core.outcomes import flipped, outcome_of, outcome_of_share
from shortlist.errors import AlreadyAnswered, BadOutcome, JudgeFailed, LateAnswer, UnknownItem
from shortlist.judges.base import Call, Case, Skip
from shortlist.judges.cases import case_of, text_of
from shortlist.judges.panel import PanelJudge
from shortlist.judges.retry import StoragePatience
from shortlist.judges.run_lease import is_working
from shortlist.judges.run_log import RunLog, Warn
from shortlist.judges.setup import RunSetup
from shortlist.study.events import Head
from shortlist.study.questions import Question
from shortlist.study.storage import AnswerKey, JudgeReply
from shortlist.study.study import Study

KnownAnswer = Callable[[Call], float | None]  # the first item's share of the win; None if the judge has to be asked


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


class StudyCache:
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

    def __init__(self, study: Study, run: str, said: Callable[[], list[dict[str, Any]]] = list) -> None:
        self._study, self._run, self._said = study, run, said
        self._lines: dict[AnswerKey, dict[str, Any]] = {}
        _, pid, _, number = run.split(" ")
        self.file = Path(f"{study.name}.unsaved-{pid}-{number}.jsonl")
        self._is_written = False

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
        if self._is_written:
            self.write()

    def write(self) -> None:
        """Write all answers to the file; without answers there is no file."""
        lines = [*self._lines.values(), *self._said()]
        if not lines:
            self.file.unlink(missing_ok=True)
            self._is_written = False
            return
        place = {"storage": _url(self._study), "study": self._study.name, "head": self._study.head, "run": self._run}
        part = self.file.with_suffix(".part")
        with part.open("w") as file:
            file.writelines(json.dumps({**place, **line}) + "\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.file)
        self._is_written = True


class UnsavedFiles:
    """The files of answers that other runs could not store."""

    def __init__(self, study: Study, cache: AnswerCache, warn: Warn) -> None:
        self._study, self._cache, self._warn = study, cache, warn
        self._left_alone: set[Path] = set()

    def take_in(self) -> None:
        """Store the answers of runs that have ended, and delete their files."""
        for file in sorted(Path().glob(f"{escape(self._study.name)}.unsaved-*.jsonl")):
            if file in self._left_alone:
                continue
            try:
                lines = [json.loads(line) for line in file.read_text().splitlines()]
                self._take(file, lines)
            except FileNotFoundError:  # another run took it in
                continue
            except (OSError, ValueError, LookupError, TypeError) as reason:
                self._leave(file, f"cannot be read, so it is left as it is: {reason!r}")

    def _take(self, file: Path, lines: Sequence[Mapping[str, Any]]) -> None:
        study = self._study
        if any(is_working(line["run"], study.storage.beats(study.name)) for line in lines):
            return
        if not all(_is_about(line, study) for line in lines):
            return self._leave(file, "has answers for another study or storage, so it is left as it is")
        answers = 0
        for line in lines:
            if "reply" in line:
                study.storage.add_replies(study.name, [JudgeReply(**line["reply"])], line["texts"])
            else:
                _store(line, study, self._cache)
                answers += 1
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
    judge. A `panel` says which of its judges a question goes to."""

    def __init__(
        self, study: Study, setup: RunSetup, orders: int, cache: AnswerCache, log: RunLog, unsaved: UnsavedAnswers,
        patience: StoragePatience, known: KnownAnswer | None = None, panel: PanelJudge | None = None,
    ) -> None:  # fmt: skip
        self._study, self._setup, self._orders, self._unsaved, self._patience = study, setup, orders, unsaved, patience
        self._known, self._panel = known, panel
        self._cache, self._log, self._family = cache, log, study.problem.family
        # A single answer without a case is told at once; the first of several has to wait for the others.
        self._uses_cache = setup.cases is not None or orders > 1 or (panel is not None and panel.how == "mean")
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
        """Vote where all outcomes are there. Skip the rest if the study is done, else leave it pending."""
        for pending in list(self.questions.values()):
            if pending.is_complete:  # interrupted between an answer and its vote
                self._vote(pending)
            elif self._study.verdict.done:
                self._skip(pending, "the study was done")

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
            self._patience(partial(self._study.skip, pending.question))
        del self.questions[pending.question.id]
        self._log.show_progress()
