"""The owner's side of a study: create, view, open, pause, close, undo votes, export, report."""

import threading

from fastapi import APIRouter, Response

from shortlist.errors import BadCases, BadProblem, BadVotes, NotJudgedHere
from shortlist.report.page import POLICY, make_report
from shortlist.study.create import create_study
from shortlist.votes.table import make_table
from shortlist.votes.write import WRITERS
from shortlist.web.auth import Kind, Owner, QuestionId, ServiceDep, StudyName, find_judge, revoke, split_id
from shortlist.web.dashboard import dashboard, state_of
from shortlist.web.display import Content, make_display, save_display, set_closed
from shortlist.web.routes.questions import find_question, undo_vote
from shortlist.web.routes.uploads import check_free, claim
from shortlist.web.schemas import Dashboard, JudgeIn, SettingsIn, StateIn, Studies, StudyIn, StudyLine, problems
from shortlist.web.service import OpenStudy, Service, newest_studies, study_id

MIN_JUDGES = 2  # people judge by links, and one of them should not decide alone
MOST_LISTED = 100  # each study in the list is opened
router = APIRouter(prefix="/api", tags=["studies"], responses=problems(401))
_drawing = threading.Lock()  # matplotlib draws one figure at a time


@router.get("/studies")
def list_studies(service: ServiceDep, token: Owner) -> Studies:
    """List the newest studies, newest first."""
    lines = []
    for name in newest_studies(service.database, MOST_LISTED):
        try:
            opened = service.studies.open(name)
        except NotJudgedHere:
            continue
        verdict = opened.study.refresh()
        lines.append(StudyLine(name=name, state=state_of(service.database, opened), sentence=str(verdict)))
    return Studies(studies=lines)


@router.post("/studies", status_code=201, responses=problems(403, 409))
def create(service: ServiceDep, token: Owner, given: StudyIn) -> Dashboard:
    """Create a study. It is open for judges at once."""
    names = [item.name for item in given.items]
    contents = {
        item.name: Content(item.text, item.format, item.image or None, dict(item.answers)) for item in given.items
    }
    display = make_display(names, contents, list(given.cases), given.instructions, given.ties, given.blind)
    check_free(service.database, display.uploaded)
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
    return _dashboard(service, opened)


@router.get("/studies/{name}", responses=problems(404))
def show(service: ServiceDep, token: Owner, name: StudyName) -> Dashboard:
    """View the study: verdict, items, judges, pairs and the last votes."""
    return _dashboard(service, service.studies.open(name), changed=False)


@router.put("/studies/{name}/state", responses=problems(403, 404))
def set_state(service: ServiceDep, token: Owner, name: StudyName, given: StateIn) -> Dashboard:
    """Open, pause or close the study. Answers to pending questions still count."""
    opened = service.studies.open(name)
    set_closed(service.database, opened.id, given.state == "closed")
    opened.study.pause(given.state != "open")
    return _dashboard(service, opened)


@router.put("/studies/{name}/settings", responses=problems(403, 404))
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
        revoke(service.database, Kind.judge_link, opened.id, judge)
    opened.study.void(given.judge)
    return _dashboard(service, opened)


@router.post("/questions/{id}/void", responses=problems(403, 404, 409))
def void_vote(service: ServiceDep, token: Owner, id: QuestionId) -> Dashboard:
    """Undo one vote of any judge."""
    name, number = split_id(id)
    opened = service.studies.open(name)
    opened.study.settle()
    undo_vote(opened, find_question(opened, number, None))
    return _dashboard(service, opened)


@router.get(
    "/studies/{name}/votes.csv",
    response_class=Response,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}, **problems(404)},
)
def export(service: ServiceDep, token: Owner, name: StudyName) -> Response:
    """Download all votes that count, in the order they were given. Undone and voided votes are left out."""
    study = service.studies.open(name).study
    study.settle()
    rows = study.votes
    if not rows:
        raise BadVotes(f"the study {name!r} has no votes yet")
    first, second, outcome, judge = zip(*rows, strict=True)
    data = WRITERS[".csv"](make_table(first, second, outcome, judge=judge).columns())
    return Response(data, media_type="text/csv", headers={"content-disposition": 'attachment; filename="votes.csv"'})


@router.get(
    "/studies/{name}/report.html",
    response_class=Response,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}, **problems(404, 501)},
)
def report(service: ServiceDep, token: Owner, name: StudyName) -> Response:
    """Download the report as one HTML file that loads nothing else. Making it takes some seconds."""
    study = service.studies.open(name).study
    study.settle()
    with _drawing:
        page = make_report(study)
    return Response(page, media_type="text/html", headers={"content-security-policy": POLICY})


def _dashboard(service: Service, opened: OpenStudy, changed: bool = True) -> Dashboard:
    if changed:
        service.database.flush()
    return Dashboard(**dashboard(service.database, opened))
