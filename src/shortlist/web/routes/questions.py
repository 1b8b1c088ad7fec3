"""A judge's side of a study: take questions, vote, skip, undo."""

import math

from fastapi import APIRouter

from shortlist.core.stopping.verdict import Verdict
from shortlist.errors import BadOutcome
from shortlist.study.questions import Question
from shortlist.web import judging
from shortlist.web.auth import QuestionId, QuestionJudge, ServiceDep, StudyJudge, StudyName, split_id
from shortlist.web.display import is_closed
from shortlist.web.judging import JudgingState
from shortlist.web.schemas import QuestionOut, Take, Turn, VoteIn, VoteOut, problems
from shortlist.web.service import Service
from shortlist.web.study_cache import OpenStudy

router = APIRouter(prefix="/api", tags=["judging"], responses=problems(401, 403, 404))
MESSAGES = {
    JudgingState.open: "",
    JudgingState.waiting: "The last questions are with other judges. Please keep this page open: there may be more.",
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
    opened.study.refresh()
    turn = _turn(service, opened, *judging.take(opened, token.judge, given.hold, service.settings.lease))
    turn.answered = sum(row.status == "counted" for row in opened.study.rows_of(token.judge))
    return turn


@router.post("/questions/{id}/vote", responses=problems(409))
def vote(service: ServiceDep, token: QuestionJudge, id: QuestionId, given: VoteIn) -> VoteOut:
    """Answer a question and get the next. Sending the same answer again changes nothing; a different one is refused."""
    assert token.judge is not None
    if (given.outcome is None) == (given.skip is None):
        raise BadOutcome("send either an outcome or a reason to skip")
    name, number = split_id(id)
    opened = service.studies.open(name)
    question = judging.find_question(opened, number, token.judge)
    with opened.study.transaction():
        if given.outcome is not None:
            status = judging.vote(opened, question, given.outcome)
        else:
            status = judging.skip(opened, question, given.skip or "")
        state, questions = judging.take(opened, token.judge, given.hold, service.settings.lease)
    service.metrics.votes.labels(status.value).inc()
    return VoteOut(id=id, status=status, next=_turn(service, opened, state, questions))


@router.post("/questions/{id}/undo", responses=problems(409))
def undo(service: ServiceDep, token: QuestionJudge, id: QuestionId, given: Take) -> VoteOut:
    """Undo an answer and get the same pair again. The vote no longer supports any item; what it counted against an
    item stays, so an undo can never help an answer."""
    assert token.judge is not None
    name, number = split_id(id)
    opened, lease = service.studies.open(name), service.settings.lease
    question = judging.find_question(opened, number, token.judge)
    status = judging.undo(opened, question)
    service.metrics.votes.labels(status.value).inc()
    again = judging.ask_again(opened, question, token.judge, lease)
    state, questions = judging.take(opened, token.judge, given.hold, lease)
    questions.sort(key=lambda other: other.id != again)  # the same pair first
    return VoteOut(id=id, status=status, next=_turn(service, opened, state, questions))


def _turn(service: Service, opened: OpenStudy, state: JudgingState, questions: list[Question]) -> Turn:
    """What the judge sees next. Everything written so far is on the disk before the judge hears of it."""
    if state is JudgingState.paused and is_closed(service.database, opened.id):
        state = JudgingState.closed
    service.database.flush()
    verdict = opened.study.verdict
    proved = state is JudgingState.done and verdict.reason == "certified"
    message = PROVED.format(opened.study.problem.k) if proved else MESSAGES[state]
    shown = [_shown(opened, question) for question in questions]
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
        id=f"{opened.study.name}.{question.id}", first=first, second=second, case=case.text if case else None
    )
