"""The owner's side of a study: create, view, open, pause, close, change settings, undo and void votes."""

from typing import Annotated

from fastapi import APIRouter, Query

from shortlist.errors import BadCases, BadProblem, NotJudgedHere
from shortlist.study.create import check_take_over, create_study, take_over_votes
from shortlist.web.auth import NAME, Kind, Owner, QuestionId, ServiceDep, StudyName, Viewer, revoke, split_id
from shortlist.web.dashboard import dashboard, plain_sentence, state_of
from shortlist.web.display import make_display, save_display, set_closed
from shortlist.web.judges import copy_judges, find_judge
from shortlist.web.media import check_free, claim, copy_files
from shortlist.web.routes.questions import find_question, undo_vote
from shortlist.web.schemas import (
    Dashboard,
    JudgeIn,
    SettingsIn,
    StateIn,
    Studies,
    StudyIn,
    StudyLine,
    content_of,
    problems,
)
from shortlist.web.service import OpenStudy, Service, newest_studies, study_id

MIN_JUDGES = 2  # people judge by links, and one of them should not decide alone
MOST_LISTED = 100  # each study in the list is opened
router = APIRouter(prefix="/api", tags=["studies"], responses=problems(401))


@router.get("/studies", responses=problems(404))
def list_studies(
    service: ServiceDep, token: Owner,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50,
    before: Annotated[str | None, Query(pattern=NAME, description="`next` of the page before.")] = None,
) -> Studies:  # fmt: skip
    """List studies, newest first, page by page."""
    lines = []
    names = newest_studies(service.database, limit + 1, before)
    for name in names[:limit]:
        try:
            opened = service.studies.open(name)
        except NotJudgedHere:
            continue
        verdict = opened.study.refresh()
        lines.append(
            StudyLine(name=name, state=state_of(service.database, opened), sentence=plain_sentence(opened, verdict))
        )
    return Studies(studies=lines, next=names[limit - 1] if len(names) > limit else None)


@router.post("/studies", status_code=201, responses=problems(403, 404, 409))
def create(service: ServiceDep, token: Owner, given: StudyIn) -> Dashboard:
    """Create a study. It is open for judges at once."""
    names = [item.name for item in given.items]
    contents = {item.name: content_of(item) for item in given.items}
    display = make_display(names, contents, list(given.cases), given.instructions, given.ties, given.blind)
    older = None if given.from_study is None else service.studies.open(given.from_study)
    if older is not None:
        display = display.with_files(copy_files(service.database, display.uploaded, older.id))
    check_free(service.database, display.uploaded)
    if given.takes_over:
        if older is None:
            raise BadProblem("takes_over needs from_study, the study whose votes are taken over")
        check_take_over(older.study, names, given.judges_claim, given.cases_claim)
    if given.cases_claim == "like these" and not display.cases:
        raise BadCases("a claim about cases like these needs cases; give some")
    create_study(
        names, given.k, given.delta, storage=service.database, name=given.name, tolerance=given.tolerance,
        max_votes=given.max_votes, cases_claim=given.cases_claim, judges_claim=given.judges_claim,
        ballot_size=given.ballot_size, min_judges=given.min_judges or (1 if given.tolerance else MIN_JUDGES),
        seed=given.seed,
    )  # fmt: skip
    number = study_id(service.database, given.name)
    save_display(service.database, number, display)
    claim(service.database, display.uploaded, number)
    opened = service.studies.open(given.name)
    opened.check_materials()
    if older is not None and given.takes_over:
        copy_judges(service.database, older.id, opened.id)  # so that a person is one judge in both
        take_over_votes(older.study, opened.study)
    return _dashboard(service, opened)


@router.get("/studies/{name}", responses=problems(404))
def show(service: ServiceDep, token: Viewer, name: StudyName) -> Dashboard:
    """View the study: verdict, items, judges, pairs and the last votes."""
    return _dashboard(service, service.studies.open(name), changed=False)


@router.put("/studies/{name}/state", responses=problems(403, 404))
def set_state(service: ServiceDep, token: Owner, name: StudyName, given: StateIn) -> Dashboard:
    """Open, pause or close the study; answers to pending questions still count. An archived study can only be read,
    until it gets another state."""
    opened = service.studies.open(name)
    if given.state == "archived":
        opened.study.archive()
        return _dashboard(service, opened)
    opened.study.archive(False)
    set_closed(service.database, opened.id, given.state == "closed")
    opened.study.pause(given.state != "open")
    return _dashboard(service, opened)


@router.put("/studies/{name}/settings", responses=problems(403, 404, 409))
def change(service: ServiceDep, token: Owner, name: StudyName, given: SettingsIn) -> Dashboard:
    """Change the vote budget, delta or the number of judges that a proof needs. See the fields for what each change
    means for the proof."""
    changes = given.model_dump(exclude_unset=True)
    for setting in ("delta", "min_judges"):
        if changes.get(setting, 1) is None:
            raise BadProblem(f"{setting} is null; give a number, or leave it out")
    opened = service.studies.open(name)
    opened.study.change(**changes)
    return _dashboard(service, opened)


@router.post("/studies/{name}/void", responses=problems(403, 404, 409))
def void(service: ServiceDep, token: Owner, name: StudyName, given: JudgeIn) -> Dashboard:
    """Void a judge: ask them no more questions and take all their votes out. The votes no longer support any item;
    what they counted against an item stays, so voiding can never help an answer."""
    opened = service.studies.open(name)
    judge = find_judge(service.database, opened.id, given.judge)
    if judge is not None:
        revoke(service.database, Kind.judge_link, opened.id, judge.id)
    opened.study.void(given.judge if judge is None else judge.key)
    return _dashboard(service, opened)


@router.post("/questions/{id}/void", responses=problems(403, 404, 409))
def void_vote(service: ServiceDep, token: Owner, id: QuestionId) -> Dashboard:
    """Undo one vote of any judge."""
    name, number = split_id(id)
    opened = service.studies.open(name)
    opened.study.settle()
    undo_vote(opened, find_question(opened, number, None))
    return _dashboard(service, opened)


def _dashboard(service: Service, opened: OpenStudy, changed: bool = True) -> Dashboard:
    if changed:
        service.database.flush()
    return Dashboard(**dashboard(service.database, opened))
