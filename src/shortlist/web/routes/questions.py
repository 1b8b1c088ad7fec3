"""A judge's side of a study: take questions, show, vote, skip, undo. A request that is sent twice takes effect once.

A judge holds a few questions: the one on the screen and the next. Both are pending with this judge, so nobody else gets
the same work meanwhile. A judge who reloads the page gets the questions they hold, not new ones. The lease of a
question begins when it is shown and is renewed while it is; one that needs no vote any more is replaced before that.
In a study about the public a judge holds one ballot, and sees its next questions.
"""

import math

from fastapi import APIRouter

from shortlist.core.stopping.verdict import Verdict
from shortlist.errors import (
    AlreadyAnswered,
    BadOutcome,
    BallotDone,
    CasesUsedUp,
    LateAnswer,
    NeedsJudges,
    NothingToAsk,
    NotYours,
    StudyDone,
    StudyPaused,
    UnknownQuestion,
)
from shortlist.study.questions import Question
from shortlist.web.auth import QuestionId, QuestionJudge, ServiceDep, StudyJudge, StudyName, split_id
from shortlist.web.display import is_closed
from shortlist.web.schemas import JudgingState, QuestionOut, Status, Take, Turn, VoteIn, VoteOut, problems
from shortlist.web.service import OpenStudy, Service

router = APIRouter(prefix="/api", tags=["judging"], responses=problems(401, 403, 404))
MESSAGES = {
    JudgingState.open: "",
    JudgingState.waiting: "The last questions are with other judges. Please keep this page open: there may be more.",
    JudgingState.finished: "That was your last pair. Thank you! Each judge is asked once, so you are done.",
    JudgingState.others: "Thank you! The result now needs answers of other judges. Please keep this page open, or come "
    "back later: there may be more.",
    JudgingState.paused: "The study is paused. This page continues by itself when the study is open again.",
    JudgingState.closed: "The study is closed. Thank you for your answers.",
    JudgingState.done: "All planned answers are in. Thank you.",
}
PROVED = "The top {} is proved. Thank you for your answers."


@router.post("/studies/{name}/questions")
def take(service: ServiceDep, token: StudyJudge, name: StudyName, given: Take) -> Turn:
    """Get this judge's pending questions, with new ones to make `hold` of them."""
    assert token.judge is not None
    opened = service.studies.open(name)
    opened.check_materials()
    with opened.study.transaction():
        state, questions = _held(opened, token.judge, given.hold, opened.lease(service.settings.lease))
    turn = _turn(service, opened, token.judge, state, questions)
    turn.answered = sum(row.status in ("counted", "answered") for row in opened.study.rows_of(token.judge))
    return turn


@router.post("/questions/{id}/show", responses=problems(409))
def show(service: ServiceDep, token: QuestionJudge, id: QuestionId, given: Take) -> Turn:
    """Say that a question is on the screen: its lease begins again, and the judge's other leases are extended. Repeat
    it while the judge looks at the question. A question that is answered or closed is refused."""
    assert token.judge is not None
    name, number = split_id(id)
    opened = service.studies.open(name)
    question = find_question(opened, number, token.judge)
    with opened.study.transaction():
        if not opened.study.is_pending(question.id):
            raise AlreadyAnswered(question.id)
        state, questions = _held(opened, token.judge, given.hold, opened.lease(service.settings.lease), question.id)
    return _turn(service, opened, token.judge, state, questions)


@router.post("/questions/{id}/vote", responses=problems(409))
def vote(service: ServiceDep, token: QuestionJudge, id: QuestionId, given: VoteIn) -> VoteOut:
    """Answer a question and get the next. Sending the same answer again changes nothing; a different one is refused."""
    assert token.judge is not None
    if (given.outcome is None) == (given.skip is None):
        raise BadOutcome("send either an outcome or a reason to skip")
    name, number = split_id(id)
    opened = service.studies.open(name)
    question = find_question(opened, number, token.judge)
    with opened.study.transaction():
        if given.outcome is not None:
            status = _tell(opened, question, given.outcome)
        else:
            status = _skip(opened, question, given.skip or "")
        showing = _on_screen(opened, token.judge, given.showing)
        state, questions = _held(opened, token.judge, given.hold, opened.lease(service.settings.lease), showing)
    service.metrics.votes.labels(status.value).inc()
    return VoteOut(id=id, status=status, next=_turn(service, opened, token.judge, state, questions))


@router.post("/questions/{id}/undo", responses=problems(409))
def undo(service: ServiceDep, token: QuestionJudge, id: QuestionId, given: Take) -> VoteOut:
    """Undo an answer and get the same pair again. Until the answer is settled (30 seconds, or the next answer) this is
    free: the same question is open again, and a skip of it then counts as a loss for both items. After that the vote no
    longer supports any item; what it counted against an item stays, so an undo can never help an answer, and the pair
    is asked again with no weight in the proof, or, on a ballot, not again."""
    assert token.judge is not None
    name, number = split_id(id)
    opened = service.studies.open(name)
    lease, question = opened.lease(service.settings.lease), find_question(opened, number, token.judge)
    with opened.study.transaction():
        status = undo_vote(opened, question)
        again = question.id if status is Status.reopened else _ask_again(opened, question, token.judge, lease)
        state, questions = _held(opened, token.judge, given.hold, lease, again)
    service.metrics.votes.labels(status.value).inc()
    return VoteOut(id=id, status=status, next=_turn(service, opened, token.judge, state, questions))


def _held(
    opened: OpenStudy, judge: str, hold: int, lease: float, showing: int | None = None
) -> tuple[JudgingState, list[Question]]:
    """The judge's pending questions, with new ones to make `hold` of them; none if `hold` is 0. The one on the screen
    comes first and its lease begins: `showing`, or the oldest."""
    study = opened.study
    if showing is not None:
        study.show(showing, lease)
    if not hold:
        return (JudgingState.done if study.verdict.done else JudgingState.open), []
    study.drop_useless(judge)
    state, held = _filled(opened, judge, hold, lease)
    held.sort(key=lambda question: question.id != showing)
    if held and held[0].id != showing:
        study.show(held[0].id, lease)
    return state, held


def _filled(opened: OpenStudy, judge: str, hold: int, lease: float) -> tuple[JudgingState, list[Question]]:
    study = opened.study
    held = [] if study.judges_claim == "public" else study.pending_of(judge)
    try:
        if len(held) < hold:
            held += study.ask(hold - len(held), judge=judge, lease=lease, cases=opened.case_ids, shown=False)
    except StudyDone:
        study.settle(judge)
        return JudgingState.done, []
    except StudyPaused:
        return JudgingState.paused, []
    except BallotDone:
        study.settle(judge)
        return (JudgingState.done if study.verdict.done else JudgingState.finished), []
    except NothingToAsk as reason:
        if held:
            return JudgingState.open, held
        study.settle(judge)  # there is no other question at which the judge's last answer could settle
        is_over = study.verdict.done or isinstance(reason, CasesUsedUp)
        waits = JudgingState.others if isinstance(reason, NeedsJudges) else JudgingState.waiting
        return (JudgingState.done if is_over else waits), []
    return (JudgingState.done, []) if study.verdict.done else (JudgingState.open, held)


def _on_screen(opened: OpenStudy, judge: str, id: str | None) -> int | None:
    """The number of the question that is on the screen, if the judge holds it."""
    held = (question.id for question in opened.study.pending_of(judge))
    return next((number for number in held if f"{opened.study.name}.{number}" == id), None)


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


def _tell(opened: OpenStudy, question: Question, outcome: float) -> Status:
    """Store an answer. The same answer again is fine; a different one raises AlreadyAnswered."""
    study = opened.study
    if not opened.display.ties and outcome not in (0.0, 1.0):
        raise BadOutcome("this study has no ties and no grades; send 1 if the first is better, 0 if the second is")
    if not study.is_pending(question.id) and study.row(question.id).status == "late":
        return Status.late
    try:
        study.tell(question.id, outcome, settle=False)
    except LateAnswer:
        return Status.late
    except AlreadyAnswered:
        row = study.row(question.id)
        if row.outcome != outcome or row.status not in ("answered", "counted"):
            raise
    return Status(study.row(question.id).status)


def _skip(opened: OpenStudy, question: Question, reason: str) -> Status:
    """Close a question without an answer. Skipping it again is fine."""
    try:
        opened.study.skip(question.id, reason)
    except AlreadyAnswered:
        if opened.study.row(question.id).status not in ("skipped", "lost", "late"):
            raise
    return Status.lost if opened.study.row(question.id).status == "lost" else Status.skipped


def undo_vote(opened: OpenStudy, question: Question) -> Status:
    """Undo a vote, free if it is not settled. A question without a vote stays as it is, with its status; a pending one
    that was not reopened raises UnknownQuestion."""
    study = opened.study
    study.close_due()
    status = study.row(question.id).status
    if status == "pending" and not study.is_reopened(question.id):
        raise UnknownQuestion(question.id)
    if status in ("answered", "counted"):
        study.undo(question.id)
    status = study.row(question.id).status
    if status == "pending":
        return Status.reopened
    return Status(status) if status in ("skipped", "lost", "late") else Status.undone


def _ask_again(opened: OpenStudy, question: Question, judge: str, lease: float) -> int | None:
    """Ask about the same pair, unless it is pending with this judge already; None if nothing more is asked. A ballot
    has each pair once."""
    if opened.study.judges_claim == "public":
        return None
    pair = question.first, question.second
    for other in opened.study.pending_of(judge):
        if {other.first, other.second} == set(pair):
            return other.id
    try:
        return opened.study.ask(judge=judge, lease=lease, cases=opened.case_ids, pair=pair).id
    except (StudyDone, StudyPaused, NothingToAsk):
        return None


def _turn(service: Service, opened: OpenStudy, judge: str, state: JudgingState, questions: list[Question]) -> Turn:
    """What the judge sees next. Everything written so far is on the disk before the judge hears of it."""
    if state is JudgingState.paused and is_closed(service.database, opened.id):
        state = JudgingState.closed
    service.database.flush()
    verdict = opened.study.verdict
    proved = state is JudgingState.done and verdict.reason == "certified"
    message = PROVED.format(opened.study.problem.k) if proved else MESSAGES[state]
    shown = [_shown(opened, question) for question in questions]
    if opened.study.judges_claim == "public":
        rows = opened.study.rows_of(judge)
        part = 1.0 if not rows else sum(row.status != "pending" for row in rows) / len(rows)
        return Turn(state=state, message=message, questions=shown, progress=part, ballot=len(rows) or None)
    return Turn(state=state, message=message, questions=shown, progress=_progress(verdict))


def _progress(verdict: Verdict[str]) -> float | None:
    """The share of votes that are in; it does not show who leads."""
    if verdict.done:
        return 1.0
    left = verdict.votes_left
    return None if left is None or not math.isfinite(left) else verdict.votes / max(verdict.votes + left, 1.0)


def _shown(opened: OpenStudy, question: Question) -> QuestionOut:
    case = None if question.case is None else opened.cases[question.case]
    first, second = opened.card(question.first, case), opened.card(question.second, case)
    return QuestionOut(
        id=f"{opened.study.name}.{question.id}", first=first, second=second, case=case.text if case else None,
        place=question.place,
    )  # fmt: skip
