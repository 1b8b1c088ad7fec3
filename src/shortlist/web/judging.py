"""A judge's work: take questions, answer, skip, take back. Whatever is sent twice is done once.

A judge holds a few questions: the one on the screen and the next. Both are out with this judge, so nobody else is given
the same work while they wait. Who reloads the page gets the questions they hold, not new ones.
"""

from enum import StrEnum

from shortlist.errors import (
    AlreadyAnswered,
    BadOutcome,
    LateAnswer,
    NothingToAsk,
    NotYours,
    StudyDone,
    StudyPaused,
    UnknownQuestion,
)
from shortlist.study.questions import Question
from shortlist.study.records import Late, Record, Skipped, TakenBack, Told
from shortlist.study.sql import Database
from shortlist.web.shelf import Opened


class State(StrEnum):
    open = "open"
    waiting = "waiting"  # every vote of the budget is asked for; some judges have not answered yet
    paused = "paused"
    closed = "closed"
    done = "done"


class Status(StrEnum):
    counted = "counted"
    skipped = "skipped"
    undone = "undone"
    late = "late"  # kept, but it does not count: the question had been given up


def take(opened: Opened, judge: str, hold: int, lease: float) -> tuple[State, list[Question]]:
    """The questions this judge has, topped up to `hold` with new ones; none if `hold` is 0."""
    study = opened.study
    if not hold:
        return (State.done if study.verdict.done else State.open), []
    here = study.held_by(judge)
    try:
        if len(here) < hold:
            here += study.ask(hold - len(here), judge=judge, lease=lease, cases=opened.case_ids)
    except StudyDone:
        return State.done, []
    except StudyPaused:
        return State.paused, []
    except NothingToAsk:
        return (State.open, here) if here else (State.waiting, [])
    return (State.done, []) if study.verdict.done else (State.open, here)


def question_of(opened: Opened, number: int, judge: str | None) -> Question:
    """A question that this judge was given; with None as judge, any."""
    try:
        question = opened.study.question(number)
    except UnknownQuestion:
        opened.study.refresh()  # another worker may have asked it
        question = opened.study.question(number)
    if judge is not None and question.judge != judge:
        raise NotYours(number)
    return question


def vote(database: Database, opened: Opened, question: Question, outcome: float) -> Status:
    if not opened.sheet.ties and outcome not in (0.0, 1.0):
        raise BadOutcome("this study takes no ties and no grades; say 1 if the first is better, 0 if the second is")
    if not opened.study.is_out(question.id) and _has(database, opened, question, Late):
        return Status.late
    try:
        opened.study.tell(question.id, outcome)
    except LateAnswer:
        return Status.late
    except AlreadyAnswered:
        _only_again(_records(database, opened, question), question, Told(question.id, outcome))
    return Status.counted


def skip(database: Database, opened: Opened, question: Question, reason: str) -> Status:
    try:
        opened.study.skip(question.id, reason)
    except AlreadyAnswered:
        if not _has(database, opened, question, Skipped):
            raise
    return Status.skipped


def undo(database: Database, opened: Opened, question: Question) -> Status:
    """Take a vote back; a skipped question has nothing to take back. Twice is once."""
    if _has(database, opened, question, TakenBack):
        return Status.undone
    if _has(database, opened, question, Told):
        opened.study.undo(question.id)
    elif not _has(database, opened, question, Skipped):
        raise UnknownQuestion(question.id)
    return Status.undone


def ask_again(opened: Opened, question: Question, judge: str, lease: float) -> int | None:
    """The same pair once more, unless this judge has it already; None if there is nothing more to ask."""
    pair = question.first, question.second
    for other in opened.study.held_by(judge):
        if {other.first, other.second} == set(pair):
            return other.id
    try:
        return opened.study.ask(judge=judge, lease=lease, cases=opened.case_ids, pair=pair).id
    except (StudyDone, StudyPaused, NothingToAsk):
        return None


def _records(database: Database, opened: Opened, question: Question) -> list[Record]:
    return [entry.record for entry in database.of_question(opened.study.name, question.id)]


def _has(database: Database, opened: Opened, question: Question, kind: type[Record]) -> bool:
    return any(isinstance(record, kind) for record in _records(database, opened, question))


def _only_again(records: list[Record], question: Question, told: Told) -> None:
    """The same answer again changes nothing; another one is refused."""
    if told not in records or any(isinstance(record, TakenBack) for record in records):
        raise AlreadyAnswered(question.id)
