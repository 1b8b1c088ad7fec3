"""A judge's work: take questions, answer, skip, undo. A request that is sent twice takes effect once.

A judge holds a few questions: the one on the screen and the next. Both are pending with this judge, so nobody else gets
the same work meanwhile. A judge who reloads the page gets the questions they hold, not new ones.
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
from shortlist.web.study_cache import OpenStudy


class JudgingState(StrEnum):
    open = "open"
    waiting = "waiting"  # all votes of the limit are asked for; some judges have not answered yet
    paused = "paused"
    closed = "closed"
    done = "done"


class Status(StrEnum):
    """What became of an answer."""

    counted = "counted"
    skipped = "skipped"
    undone = "undone"
    late = "late"  # stored but not counted: the judge's time for this question was over


def take(opened: OpenStudy, judge: str, hold: int, lease: float) -> tuple[JudgingState, list[Question]]:
    """The judge's pending questions, with new ones to make `hold` of them; none if `hold` is 0."""
    study = opened.study
    if not hold:
        return (JudgingState.done if study.verdict.done else JudgingState.open), []
    held = study.pending_of(judge)
    try:
        if len(held) < hold:
            held += study.ask(hold - len(held), judge=judge, lease=lease, cases=opened.case_ids)
    except StudyDone:
        return JudgingState.done, []
    except StudyPaused:
        return JudgingState.paused, []
    except NothingToAsk:
        return (JudgingState.open, held) if held else (JudgingState.waiting, [])
    return (JudgingState.done, []) if study.verdict.done else (JudgingState.open, held)


def find_question(opened: OpenStudy, number: int, judge: str | None) -> Question:
    """A question that this judge was asked; None as the judge finds anybody's. Raises UnknownQuestion or NotYours."""
    try:
        question = opened.study.question(number)
    except UnknownQuestion:
        opened.study.refresh()  # another worker may have asked it
        question = opened.study.question(number)
    if judge is not None and question.judge != judge:
        raise NotYours(number)
    return question


def vote(opened: OpenStudy, question: Question, outcome: float) -> Status:
    """Store an answer. The same answer again is fine; a different one raises AlreadyAnswered."""
    study = opened.study
    if not opened.display.ties and outcome not in (0.0, 1.0):
        raise BadOutcome("this study has no ties and no grades; send 1 if the first is better, 0 if the second is")
    if not study.is_pending(question.id) and study.row(question.id).status == "late":
        return Status.late
    try:
        study.tell(question.id, outcome)
    except LateAnswer:
        return Status.late
    except AlreadyAnswered:
        row = study.row(question.id)
        if (row.status, row.outcome) != ("counted", outcome):
            raise
    return Status.counted


def skip(opened: OpenStudy, question: Question, reason: str) -> Status:
    """Close a question without an answer. Skipping it again is fine."""
    try:
        opened.study.skip(question.id, reason)
    except AlreadyAnswered:
        if opened.study.row(question.id).status not in ("skipped", "late"):
            raise
    return Status.skipped


def undo(opened: OpenStudy, question: Question) -> Status:
    """Undo a vote. A question without a vote that counts stays as it is; a pending one raises UnknownQuestion."""
    opened.study.refresh()
    status = opened.study.row(question.id).status
    if status == "pending":
        raise UnknownQuestion(question.id)
    if status == "counted":
        opened.study.undo(question.id)
    return Status.undone


def ask_again(opened: OpenStudy, question: Question, judge: str, lease: float) -> int | None:
    """Ask about the same pair, unless it is pending with this judge already; None if nothing more is asked."""
    pair = question.first, question.second
    for other in opened.study.pending_of(judge):
        if {other.first, other.second} == set(pair):
            return other.id
    try:
        return opened.study.ask(judge=judge, lease=lease, cases=opened.case_ids, pair=pair).id
    except (StudyDone, StudyPaused, NothingToAsk):
        return None
