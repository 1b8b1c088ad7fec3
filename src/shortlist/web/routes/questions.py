"""A judge's side of a study: take questions, vote, skip, undo."""

from fastapi import APIRouter

from shortlist.errors import BadOutcome
from shortlist.study.questions import Question
from shortlist.web import judging
from shortlist.web.access import Here, QuestionId, QuestionJudge, StudyJudge, StudyName, split_id
from shortlist.web.marks import mark
from shortlist.web.schemas import CardOut, QuestionOut, Take, Turn, VoteIn, VoteOut, problems
from shortlist.web.sheet import is_closed
from shortlist.web.shelf import Opened
from shortlist.web.state import Service

router = APIRouter(prefix="/api", tags=["judging"], responses=problems(401, 403, 404))
THANKS = {
    judging.State.open: "",
    judging.State.waiting: "Every question is out with a judge. Please wait a moment.",
    judging.State.paused: "The study is paused. This page goes on by itself.",
    judging.State.closed: "The study is closed. Thank you.",
    judging.State.done: "Thank you.",
}


@router.post("/studies/{name}/questions")
def take(here: Here, token: StudyJudge, name: StudyName, given: Take) -> Turn:
    """The questions on this judge's table: those they hold, topped up to `hold`."""
    assert token.judge is not None
    opened = here.shelf.open(name)
    opened.study.refresh()
    turn = _turn(here, opened, *judging.take(opened, token.judge, given.hold, here.settings.lease))
    with opened.watch.lock:
        opened.watch.fold(here.database.since(name, opened.watch.read))
        tab = opened.watch.tabs.get(token.judge)
    return turn.model_copy(update={"answered": tab.votes if tab else 0})


@router.post("/questions/{id}/vote", responses=problems(409))
def vote(here: Here, token: QuestionJudge, id: QuestionId, given: VoteIn) -> VoteOut:
    """Answer a question, and get the next. The same answer again changes nothing; another one is refused."""
    assert token.judge is not None
    if (given.outcome is None) == (given.skip is None):
        raise BadOutcome("give either an outcome or a reason to skip, and one of them")
    name, number = split_id(id)
    opened = here.shelf.open(name)
    question = judging.question_of(opened, number, token.judge)
    with opened.study.at_once():
        if given.outcome is not None:
            status = judging.vote(here.database, opened, question, given.outcome)
        else:
            status = judging.skip(here.database, opened, question, given.skip or "")
        taken = judging.take(opened, token.judge, given.hold, here.settings.lease)
    mark(here.database, opened)
    here.metrics.vote(status.value)
    return VoteOut(id=id, status=status, next=_turn(here, opened, *taken))


@router.post("/questions/{id}/undo", responses=problems(409))
def undo(here: Here, token: QuestionJudge, id: QuestionId, given: Take) -> VoteOut:
    """Take an answer back and get the same pair again. What the vote proved is gone, what it spoke against stays."""
    assert token.judge is not None
    name, number = split_id(id)
    opened = here.shelf.open(name)
    question = judging.question_of(opened, number, token.judge)
    status = judging.undo(here.database, opened, question)
    here.metrics.vote(status.value)
    again = judging.ask_again(opened, question, token.judge, here.settings.lease)
    turn = _turn(here, opened, *judging.take(opened, token.judge, given.hold, here.settings.lease))
    questions = sorted(turn.questions, key=lambda shown: shown.id != f"{name}.{again}")  # the same pair first
    return VoteOut(id=id, status=status, next=turn.model_copy(update={"questions": questions}))


def _turn(here: Service, opened: Opened, state: judging.State, questions: list[Question]) -> Turn:
    if state is judging.State.paused and is_closed(here.database, opened.id):
        state = judging.State.closed
    here.database.flush()  # before anything is acknowledged
    shown = [_shown(opened, question) for question in questions]
    return Turn(state=state, message=_message(opened, state), questions=shown, progress=_progress(opened))


def _message(opened: Opened, state: judging.State) -> str:
    verdict = opened.study.verdict
    if state is judging.State.done and verdict.reason == "certified":
        return f"The top {opened.study.problem.k} is certain. Thank you."
    return "All votes are in. Thank you." if state is judging.State.done else THANKS[state]


def _progress(opened: Opened) -> float | None:
    """How far: never who leads."""
    verdict = opened.study.verdict
    if verdict.done:
        return 1.0
    left = verdict.votes_left
    return None if left is None or not left < float("inf") else verdict.votes / max(verdict.votes + left, 1.0)


def _shown(opened: Opened, question: Question) -> QuestionOut:
    case = opened.case(question)
    first, second = (opened.card(item, case) for item in (question.first, question.second))
    return QuestionOut(
        id=f"{opened.study.name}.{question.id}",
        first=CardOut(title=first.title, html=first.html, image=first.image),
        second=CardOut(title=second.title, html=second.html, image=second.image),
        case=case.text if case else None,
    )
