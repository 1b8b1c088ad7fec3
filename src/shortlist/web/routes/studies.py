"""The owner's side of a study: create, view, open, pause, close, undo votes, export, report. And pictures of items: the
owner uploads them, the study's judges see them."""

import secrets
import struct
import threading
import time
from typing import Annotated, NamedTuple

from fastapi import APIRouter, HTTPException, Path, Request, Response, UploadFile
from sqlalchemy import insert, select, update

from shortlist.errors import BadCases, BadProblem, BadUpload, BadVotes, NotJudgedHere
from shortlist.report.page import POLICY, make_report
from shortlist.study.create import create_study
from shortlist.study.schema import uploads
from shortlist.study.sql import Database
from shortlist.votes.table import make_table
from shortlist.votes.write import WRITERS
from shortlist.web.auth import (
    JUDGE_COOKIE,
    OWNER_COOKIE,
    Kind,
    Owner,
    QuestionId,
    ServiceDep,
    StudyName,
    find_judge,
    revoke,
    session,
    split_id,
)
from shortlist.web.dashboard import dashboard, state_of
from shortlist.web.display import Content, make_display, save_display, set_closed
from shortlist.web.routes.questions import find_question, undo_vote
from shortlist.web.schemas import Dashboard, JudgeIn, SettingsIn, StateIn, Studies, StudyIn, StudyLine, Upload, problems
from shortlist.web.service import OpenStudy, Service, newest_studies, study_id

MIN_JUDGES = 2  # people judge by links, and one of them should not decide alone
MOST_LISTED = 100  # each study in the list is opened
LARGEST_SIDE = 12_000  # pixels of a picture
NOTHING_ALLOWED = "default-src 'none'; sandbox"
PictureId = Annotated[str, Path(pattern="^[0-9a-f]{24}$")]
router = APIRouter(prefix="/api", tags=["studies"], responses=problems(401))
pictures = APIRouter(tags=["pictures"])
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


@pictures.post("/api/uploads", status_code=201, responses=problems(401, 403))
def upload(service: ServiceDep, token: Owner, file: UploadFile) -> Upload:
    """Upload a PNG, JPEG, GIF or WebP picture. Its type is read from its bytes."""
    limit = service.settings.upload_bytes
    data = file.file.read(limit + 1)
    if len(data) > limit:
        raise HTTPException(413, f"this picture is too large; the limit is {limit:,} bytes")
    return Upload(image=f"/uploads/{keep(service.database, data)}")


@pictures.get("/uploads/{id}", include_in_schema=False)
def picture(request: Request, service: ServiceDep, id: PictureId) -> Response:
    """For the owner, and for judges of the study that the picture belongs to."""
    found = fetch(service.database, id)
    if found is None or not (_is_owner(request, service) or _is_judge(request, service, found.study)):
        raise HTTPException(404, "there is no such picture, or you may not see it")
    headers = {"content-security-policy": NOTHING_ALLOWED, "cache-control": "private, max-age=86400, immutable"}
    return Response(found.data, media_type=found.type, headers=headers)


def _is_owner(request: Request, service: Service) -> bool:
    return session(request, service, OWNER_COOKIE, Kind.owner_session) is not None


def _is_judge(request: Request, service: Service, study: int | None) -> bool:
    names = [name for name in request.cookies if name.startswith(JUDGE_COOKIE)]
    found = (session(request, service, name, Kind.judge_session) for name in names)
    return study is not None and any(token is not None and token.study_id == study for token in found)


class Picture(NamedTuple):
    type: str
    data: bytes
    study: int | None


def picture_type(data: bytes) -> str:
    """image/png, jpeg, gif or webp; raises BadUpload for anything else. SVG is refused because it can hold scripts."""
    kind, size = _kind(data)
    if kind is None:
        raise BadUpload("this file is not a PNG, JPEG, GIF or WebP picture; convert it first")
    if size is not None and not 0 < max(size) <= LARGEST_SIDE:
        raise BadUpload(f"this picture is too large; the limit is {LARGEST_SIDE:,} pixels a side")
    return f"image/{kind}"


def _kind(data: bytes) -> tuple[str | None, tuple[int, int] | None]:
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR" and len(data) > 33:
        return "png", struct.unpack(">II", data[16:24])
    if data.startswith((b"GIF87a", b"GIF89a")) and len(data) > 13:
        return "gif", struct.unpack("<HH", data[6:10])
    if data.startswith(b"\xff\xd8\xff") and len(data) > 20:
        return "jpeg", None
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP" and len(data) > 20:
        return "webp", None
    return None, None


def keep(database: Database, data: bytes) -> str:
    """Store a picture and return its id."""
    row = {"id": secrets.token_hex(12), "study": None, "type": picture_type(data), "data": data, "created": time.time()}
    with database.changing() as connection:
        connection.execute(insert(uploads), row)
    return str(row["id"])


def fetch(database: Database, name: str) -> Picture | None:
    with database.reading() as connection:
        row = connection.execute(
            select(uploads.c.type, uploads.c.data, uploads.c.study).where(uploads.c.id == name)
        ).first()
    return None if row is None else Picture(row.type, row.data, row.study)


def check_free(database: Database, names: list[str]) -> None:
    """Raise BadUpload unless all of these were uploaded and belong to no study yet."""
    with database.reading() as connection:
        free = uploads.c.id.in_(names) & uploads.c.study.is_(None)
        found = set(connection.scalars(select(uploads.c.id).where(free)))
    if found != set(names):
        raise BadUpload("a picture was not uploaded here or belongs to another study; upload it again")


def claim(database: Database, names: list[str], study: int) -> None:
    """Give these pictures to a study: its judges may then see them."""
    with database.changing() as connection:
        connection.execute(update(uploads).where(uploads.c.id.in_(names)).values(study=study))
