"""The owner's side of a study: create, look, open, pause, close, take votes back, export."""

from fastapi import APIRouter, Response

from shortlist.errors import BadVotes, NotJudgedHere
from shortlist.io.table import make_table
from shortlist.io.write import WRITERS
from shortlist.study.create import create_study
from shortlist.web.access import Here, Owner, QuestionId, StudyName, split_id
from shortlist.web.dashboard import dashboard, state_of
from shortlist.web.judging import question_of, undo
from shortlist.web.people import find_judge, newest_studies, study_id
from shortlist.web.pictures import check_free, claim
from shortlist.web.schemas import Dashboard, JudgeIn, StateIn, Studies, StudyIn, problems
from shortlist.web.schemas import StudyName as StudyLine
from shortlist.web.sheet import Content, make_sheet, save_sheet, set_closed
from shortlist.web.shelf import Opened
from shortlist.web.state import Service
from shortlist.web.tokens import Kind, revoke

MOST = 100  # studies in the list: each is looked at
router = APIRouter(prefix="/api", tags=["studies"], responses=problems(401))


@router.get("/studies")
def list_studies(here: Here, token: Owner) -> Studies:
    """The newest studies of this storage, newest first."""
    lines = []
    for name in newest_studies(here.database, MOST):
        try:
            opened = here.shelf.open(name)
        except NotJudgedHere:
            continue
        verdict = opened.study.refresh()
        lines.append(StudyLine(name=name, state=state_of(here.database, opened), sentence=str(verdict)))
    return Studies(studies=lines)


@router.post("/studies", status_code=201, responses=problems(403, 409))
def create(here: Here, token: Owner, given: StudyIn) -> Dashboard:
    """A new study, open for judges."""
    names = [item.name for item in given.items]
    contents = {
        item.name: Content(item.text, item.format, item.image or None, dict(item.answers)) for item in given.items
    }
    sheet = make_sheet(names, contents, list(given.cases), given.instructions, given.ties, given.blind)
    check_free(here.database, sheet.uploaded)
    create_study(
        names, given.k, given.delta, storage=here.database, name=given.name, tolerance=given.tolerance,
        max_votes=given.max_votes, seed=given.seed,
    )  # fmt: skip
    number = study_id(here.database, given.name)
    assert number is not None
    save_sheet(here.database, number, sheet)
    claim(here.database, sheet.uploaded, number)
    return _shown(here, here.shelf.open(given.name))


@router.get("/studies/{name}", responses=problems(404))
def show(here: Here, token: Owner, name: StudyName) -> Dashboard:
    """Where the study stands."""
    return _shown(here, here.shelf.open(name), changed=False)


@router.put("/studies/{name}/state", responses=problems(403, 404))
def set_state(here: Here, token: Owner, name: StudyName, given: StateIn) -> Dashboard:
    """Open, pause or close it. Answers to questions that are out still count."""
    opened = here.shelf.open(name)
    set_closed(here.database, opened.id, given.state == "closed")
    opened.study.pause(given.state != "open")
    return _shown(here, opened)


@router.post("/studies/{name}/void", responses=problems(403, 404, 409))
def void(here: Here, token: Owner, name: StudyName, given: JudgeIn) -> Dashboard:
    """Ask this judge nothing more and take their votes back: what they proved is gone, what they opposed stays."""
    opened = here.shelf.open(name)
    judge = find_judge(here.database, opened.id, given.judge)
    if judge is not None:
        revoke(here.database, Kind.judge_link, opened.id, judge)
    opened.study.void(given.judge)
    return _shown(here, opened)


@router.post("/questions/{id}/void", responses=problems(403, 404, 409))
def void_vote(here: Here, token: Owner, id: QuestionId) -> Dashboard:
    """Take one vote back, whoever gave it."""
    name, number = split_id(id)
    opened = here.shelf.open(name)
    undo(here.database, opened, question_of(opened, number, None))
    return _shown(here, opened)


@router.get(
    "/studies/{name}/votes.csv",
    response_class=Response,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}, **problems(404)},
)
def export(here: Here, token: Owner, name: StudyName) -> Response:
    """All votes that were not taken back, in the order they were given."""
    study = here.shelf.open(name).study
    study.refresh()
    rows = study.votes
    if not rows:
        raise BadVotes(f"the study {name!r} has no votes yet")
    first, second, outcome, judge = zip(*rows, strict=True)
    data = WRITERS[".csv"](make_table(first, second, outcome, judge=judge).columns())
    return Response(data, media_type="text/csv", headers={"content-disposition": 'attachment; filename="votes.csv"'})


def _shown(here: Service, opened: Opened, changed: bool = True) -> Dashboard:
    if changed:
        here.database.flush()
    return Dashboard(**dashboard(here.database, opened))
