"""A judge's side of a study: take questions, show, vote, skip, undo. A request that is sent twice takes effect once.

A judge holds a few questions: the one on the screen and the next. Both are pending with this judge, so nobody else gets
the same work meanwhile. A judge who reloads the page gets the questions they hold, not new ones. The lease of a
question begins when it is shown and is renewed while it is; one that needs no vote any more is replaced before that.
In a study about the public a judge holds one ballot, and sees its next questions.
"""

import json
import math
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from shortlist.core.stopping.base import Verdict
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
from shortlist.study.events import CONFLICT
from shortlist.study.questions import Question
from shortlist.web.auth import QuestionId, QuestionJudge, ServiceDep, StudyJudge, StudyName, Token, split_id
from shortlist.web.dashboard import personal_data
from shortlist.web.display import Words, is_closed
from shortlist.web.judges import ACTIVE, REFUSED, Judge, conflicts_of, declare, invitation, save_note
from shortlist.web.schemas import (
    JudgingState,
    Leave,
    PersonalData,
    QuestionOut,
    Status,
    Take,
    Turn,
    VoteIn,
    VoteOut,
    problems,
)
from shortlist.web.service import OpenStudy, Service

router = APIRouter(prefix="/api", tags=["judging"], responses=problems(401, 403, 404))
GRACE = 0.1  # of a lease, for the pair on the screen of a judge whose page was closed: it may be a reload
FIRST_BALLOTS, SOME_BALLOTS, MOST_BALLOTS = 5, 10, 20  # at once: at the start, after these, and later
BALLOT_AT_WORK = 300.0  # seconds after which an idle ballot keeps nobody waiting


class Judging(NamedTuple):
    """A judge in front of a study, with the request that they sent."""

    service: Service
    opened: OpenStudy
    token: Token
    words: Words

    @property
    def judge(self) -> str:
        """The name that the votes are stored under."""
        assert self.token.judge is not None
        return self.token.judge

    @property
    def lease(self) -> float:
        return self.opened.lease(self.service.settings.lease)

    @property
    def conflicts(self) -> frozenset[str]:
        assert self.token.judge_id is not None
        return conflicts_of(self.service.database, self.token.judge_id)

    @property
    def given(self) -> int:
        """Votes of this judge so far."""
        return sum(row.status in ("counted", "answered") for row in self.opened.study.rows_of(self.judge))

    @property
    def limit(self) -> int | None:
        """How many votes this judge may give; None is no limit."""
        assert self.token.study_id is not None
        return invitation(self.service.database, self.token.study_id).max_votes if self.token.is_open else None


def _judging(request: Request, service: Service, token: Token, study: str) -> Judging:
    return Judging(service, service.studies.open(study), token, Words(request.headers.get("accept-language")))


@router.post("/studies/{name}/questions")
def take(request: Request, service: ServiceDep, token: StudyJudge, name: StudyName, given: Take) -> Turn:
    """Get this judge's pending questions, with new ones to make `hold` of them."""
    judging = _judging(request, service, token, name)
    if not judging.opened.study.archived:
        judging.opened.check_materials()
    with judging.opened.study.transaction():
        state, questions = _held(judging, given.hold)
    return _turn(judging, state, questions)


@router.post("/questions/{id}/show", responses=problems(409))
def show(request: Request, service: ServiceDep, token: QuestionJudge, id: QuestionId, given: Take) -> Turn:
    """Say that a question is on the screen: its lease begins again, and the judge's other leases are extended. Repeat
    it while the judge looks at the question. A question that is answered or closed is refused."""
    judging, question = _asked(request, service, token, id)
    with judging.opened.study.transaction():
        if not judging.opened.study.is_pending(question.id):
            raise AlreadyAnswered(question.id)
        state, questions = _held(judging, given.hold, question.id)
    return _turn(judging, state, questions)


@router.post("/questions/{id}/vote", responses=problems(409))
def vote(request: Request, service: ServiceDep, token: QuestionJudge, id: QuestionId, given: VoteIn) -> VoteOut:
    """Answer a question and get the next. Sending the same answer again changes nothing; a different one is refused."""
    if (given.outcome is None) == (given.skip is None):
        raise BadOutcome("send either an outcome or a reason to skip")
    judging, question = _asked(request, service, token, id)
    _keep_words(judging, question, given)
    with judging.opened.study.transaction():
        if given.outcome is not None:
            status = _tell(judging, question, given.outcome)
        else:
            status = _skip(judging.opened, question, given.skip or "")
        showing = _on_screen(judging, given.showing)
        state, questions = _held(judging, given.hold, showing)
    service.metrics.votes.labels(status.value).inc()
    reason = judging.opened.study.row(question.id).reason if status is Status.late else ""
    return VoteOut(id=id, status=status, reason=reason, next=_turn(judging, state, questions))


@router.post("/questions/{id}/undo", responses=problems(409))
def undo(request: Request, service: ServiceDep, token: QuestionJudge, id: QuestionId, given: Take) -> VoteOut:
    """Undo an answer and get the same pair again. Until the answer is settled (30 seconds, unless the service was
    started with another time, or three more answers) this is free: the same question is open again, and a skip of it
    then counts as a loss for both items. After that the vote no longer supports any item; what it counted against an
    item stays, so an undo can never help an answer, and the pair is asked again with no weight in the proof, or, on a
    ballot, not again."""
    judging, question = _asked(request, service, token, id)
    with judging.opened.study.transaction():
        status = undo_vote(judging.opened, question)
        again = question.id if status is Status.reopened else _ask_again(judging, question)
        state, questions = _held(judging, given.hold, again)
    service.metrics.votes.labels(status.value).inc()
    return VoteOut(id=id, status=status, next=_turn(judging, state, questions))


@router.post("/studies/{name}/leave", status_code=204)
def leave(request: Request, service: ServiceDep, token: StudyJudge, name: StudyName, given: Leave) -> None:
    """The judge's page was closed: the lease of the pair on its screen ends soon, unless the page comes back. A ballot
    keeps its time."""
    judging = _judging(request, service, token, name)
    study = judging.opened.study
    judging.opened.seen.pop(judging.judge, None)
    if study.judges_claim == "public" or study.archived:
        return
    with study.transaction():
        showing = _on_screen(judging, given.showing)
        if showing is not None and study.is_shown(showing):
            study.show(showing, GRACE * judging.lease)
    service.database.flush()


@router.get("/studies/{name}/me", response_model=PersonalData)
def own_data(request: Request, service: ServiceDep, token: StudyJudge, name: StudyName) -> Response:
    """Everything that is stored about this judge: their answers, and what became of each. In a blind study the items
    have no names here either."""
    judging = _judging(request, service, token, name)
    judging.opened.study.close_due()
    assert token.judge_id is not None
    who = Judge(token.judge_id, token.name or "", judging.judge, token.email, token.state, token.is_open, token.joined)
    found = PersonalData(**personal_data(service.database, judging.opened, who))
    for answer in found.answers:
        answer.first, answer.second = (_title(judging.opened, item) for item in (answer.first, answer.second))
    headers = {"content-disposition": 'attachment; filename="my-data.json"'}
    data = json.dumps(found.model_dump(mode="json"), ensure_ascii=False, indent=1)
    return Response(data, media_type="application/json", headers=headers)


def _title(opened: OpenStudy, item: str) -> str:
    return opened.card(item, None).title or "…"


def _asked(request: Request, service: Service, token: Token, id: str) -> tuple[Judging, Question]:
    """A judge, and a question of theirs."""
    name, number = split_id(id)
    judging = _judging(request, service, token, name)
    return judging, find_question(judging.opened, number, judging.judge)


def _keep_words(judging: Judging, question: Question, given: VoteIn) -> None:
    """Keep what the judge wrote, and in which items they have an interest, beside the events."""
    database, token = judging.service.database, judging.token
    assert token.study_id is not None
    assert token.judge_id is not None
    if given.note.strip():
        save_note(database, token.study_id, token.judge_id, question.id, given.note.strip())
    if given.conflict:
        declare(database, token.study_id, token.judge_id, [getattr(question, side) for side in given.conflict])


def _held(judging: Judging, hold: int, showing: int | None = None) -> tuple[JudgingState, list[Question]]:
    """The judge's pending questions, with new ones to make `hold` of them; none if `hold` is 0. The one on the screen
    comes first and its lease begins: `showing`, or the oldest."""
    study = judging.opened.study
    if study.archived:
        return JudgingState.closed, []
    if showing is not None:
        study.show(showing, judging.lease)
    if not hold:
        return (JudgingState.done if study.verdict.done else JudgingState.open), []
    study.drop_useless(judging.judge)
    state, held = _filled(judging, hold, showing)
    held.sort(key=lambda question: question.id != showing)
    if held and held[0].id != showing:
        study.show(held[0].id, judging.lease)
    return state, held


def _filled(judging: Judging, hold: int, showing: int | None) -> tuple[JudgingState, list[Question]]:
    opened, study, judge = judging.opened, judging.opened.study, judging.judge
    if judging.token.state != ACTIVE:
        return (JudgingState.refused if judging.token.state == REFUSED else JudgingState.approval), []
    conflicts = judging.conflicts
    held = _without(judging, conflicts, showing)
    is_public = study.judges_claim == "public"
    if is_public and _must_wait(judging):
        return JudgingState.entry, []
    if not held and (limit := judging.limit) is not None and judging.given >= limit:
        study.settle(judge)
        return (JudgingState.done if study.verdict.done else JudgingState.finished), []
    avoid = [(item, other) for item in conflicts for other in study.items if other != item]
    wanted = hold if is_public else min(hold - len(held), _votes_left(judging, len(held)))
    try:
        if wanted > 0:
            asked = study.ask(wanted, judge=judge, lease=judging.lease, cases=opened.case_ids, avoid=avoid, shown=False)
            held = asked if is_public else held + asked
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


def _without(judging: Judging, conflicts: frozenset[str], showing: int | None) -> list[Question]:
    """The judge's pending questions. One that was not shown yet and is about an item in which the judge has an interest
    is closed: it is dropped, or on a ballot lost."""
    study = judging.opened.study
    for question in study.pending_of(judging.judge):
        is_seen = question.id == showing or (question.place is None and study.is_shown(question.id))
        if not is_seen and conflicts & {question.first, question.second}:
            study.skip(question.id, CONFLICT)
    return study.pending_of(judging.judge)


def _must_wait(judging: Judging) -> bool:
    """Whether a judge without a ballot waits for others. Lists that are drawn at the same moment cannot learn from each
    other: if all start at once, nothing is proved. Who waits does not depend on any answer."""
    study, judge = judging.opened.study, judging.judge
    if study.had_ballot(judge) or study.verdict.done or study.paused:
        return False
    at_work = judging.opened.at_work(judge, BALLOT_AT_WORK)
    closed = study.closed_ballots
    most = FIRST_BALLOTS if closed < FIRST_BALLOTS else SOME_BALLOTS if closed < SOME_BALLOTS else MOST_BALLOTS
    return sum(name in at_work for name in study.open_ballots) >= most


def _votes_left(judging: Judging, held: int) -> int:
    """How many more questions this judge may get, with those that they hold."""
    limit = judging.limit
    return 1_000_000 if limit is None else limit - judging.given - held


def _on_screen(judging: Judging, id: str | None) -> int | None:
    """The number of the question that is on the screen, if the judge holds it."""
    study = judging.opened.study
    held = (question.id for question in study.pending_of(judging.judge))
    return next((number for number in held if f"{study.name}.{number}" == id), None)


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


def _tell(judging: Judging, question: Question, outcome: float) -> Status:
    """Store an answer. The same answer again is fine; a different one raises AlreadyAnswered."""
    study = judging.opened.study
    if not judging.opened.display.ties and outcome not in (0.0, 1.0):
        raise BadOutcome("this study has no ties and no grades; send 1 if the first is better, 0 if the second is")
    if not study.is_pending(question.id) and study.row(question.id).status == "late":
        return Status.late
    try:
        study.tell(question.id, outcome, settle=False, undo_seconds=judging.service.settings.undo)
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


def _ask_again(judging: Judging, question: Question) -> int | None:
    """Ask about the same pair, unless it is pending with this judge already; None if nothing more is asked. A ballot
    has each pair once."""
    study = judging.opened.study
    if study.judges_claim == "public":
        return None
    pair = question.first, question.second
    for other in study.pending_of(judging.judge):
        if {other.first, other.second} == set(pair):
            return other.id
    try:
        return study.ask(judge=judging.judge, lease=judging.lease, cases=judging.opened.case_ids, pair=pair).id
    except (StudyDone, StudyPaused, NothingToAsk):
        return None


def _turn(judging: Judging, state: JudgingState, questions: list[Question]) -> Turn:
    """What the judge sees next. Everything written so far is on the disk before the judge hears of it."""
    opened, study, judge = judging.opened, judging.opened.study, judging.judge
    if state is JudgingState.paused and is_closed(judging.service.database, opened.id):
        state = JudgingState.closed
    judging.service.database.flush()
    verdict = study.verdict
    proved = state is JudgingState.done and verdict.reason == "certified"
    message = "" if state is JudgingState.open else judging.words(f"judge.state.{state}")
    turn = Turn(
        state=state, message=judging.words("judge.state.proved", k=study.problem.k) if proved else message,
        questions=[_shown(opened, question) for question in questions], answered=judging.given,
        undo=[f"{study.name}.{question.id}" for question in study.answered_of(judge)],
        progress=_progress(verdict), needed=_needed(verdict),
    )  # fmt: skip
    if study.judges_claim == "public":
        rows = study.rows_of(judge)
        turn.ballot, turn.left = len(rows) or None, sum(row.status == "pending" for row in rows)
        turn.progress = 1.0 if not rows else 1 - turn.left / len(rows)
    elif turn.needed is not None:
        turn.left = math.ceil(turn.needed / len(opened.at_work(judge)))
        if (limit := judging.limit) is not None:
            turn.left = min(turn.left, limit - turn.answered)
    return turn


def _needed(verdict: Verdict[str]) -> int | None:
    """About how many more votes the study needs; it does not show who leads."""
    left = verdict.votes_left
    return None if verdict.done or left is None or not math.isfinite(left) else math.ceil(left)


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
