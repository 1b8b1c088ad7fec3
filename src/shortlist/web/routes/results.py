"""What comes out of a study: live news for the dashboard, results for everybody once they are published, downloads,
and a backup of everything."""

import asyncio
import csv
import io
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, StreamingResponse
from starlette.background import BackgroundTask

from shortlist.errors import BadVotes
from shortlist.report.page import POLICY, make_report
from shortlist.study.maintenance import back_up
from shortlist.study.proof import make_proof
from shortlist.study.rows import Row, counted
from shortlist.web.auth import OWNER_COOKIE, Kind, Owner, ServiceDep, StudyName, Viewer, find_token, session, viewer
from shortlist.web.dashboard import results_of, state_of
from shortlist.web.display import load_display, set_published
from shortlist.web.judges import list_judges
from shortlist.web.schemas import Published, PublishedIn, Results, VoteOfPage, VotePage, problems
from shortlist.web.service import OpenStudy, Service

EVERY = 1.0  # seconds between two looks for news
ALIVE = 10.0  # seconds after which the page is told that there are none
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for the start of a formula
COLUMNS = ("id", "first", "second", "outcome", "judge", "case", "status", "reason", "asked", "answered")
router = APIRouter(prefix="/api", tags=["results"], responses=problems(401))
_drawing = threading.Lock()  # matplotlib draws one figure at a time


@router.get(
    "/studies/{name}/news",
    response_class=Response,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}, **problems(404)},
)
def news(request: Request, service: ServiceDep, token: Viewer, name: StudyName) -> Response:
    """Server-sent events: `changed` when there is something new to see, and `alive` every ten seconds if not."""
    opened = service.studies.open(name)
    return StreamingResponse(_news(request, service, opened), media_type="text/event-stream")


async def _news(request: Request, service: Service, opened: OpenStudy) -> AsyncIterator[str]:
    last, told = None, 0.0
    while not service.stopping and not await request.is_disconnected():
        now = await run_in_threadpool(_newest, service, opened)
        if now != last:
            last, told = now, time.monotonic()
            yield f"event: changed\ndata: {now[0]}\n\n"
        elif time.monotonic() - told >= ALIVE:
            told = time.monotonic()
            yield "event: alive\ndata:\n\n"
        await asyncio.sleep(EVERY)


def _newest(service: Service, opened: OpenStudy) -> tuple[Any, ...]:
    """What changes when there is something new. Answers that are due are settled, since nobody else may do it."""
    opened.study.close_due()
    judges = tuple(list_judges(service.database, opened.id))
    return opened.study.head.events, state_of(service.database, opened), judges


@router.put("/studies/{name}/published", responses=problems(403, 404))
def publish(service: ServiceDep, token: Owner, name: StudyName, given: PublishedIn) -> Published:
    """Publish the results at /results/NAME for everybody who has the address, or take them back."""
    opened = service.studies.open(name)
    set_published(service.database, opened.id, given.published)
    return Published(published=given.published, page=f"/results/{name}" if given.published else None)


@router.get("/studies/{name}/results", responses=problems(404))
def results(request: Request, service: ServiceDep, name: StudyName) -> Results:
    """The results, for everybody if the owner has published them, else for the owner alone."""
    return Results(**results_of(service.database, published(request, service, name)))


def published(request: Request, service: Service, name: str) -> OpenStudy:
    """The study, if its results may be seen by who asks. Raises 404: nobody is told that there is such a study."""
    try:
        opened = service.studies.open(name)
        may_see = load_display(service.database, opened.id).published
    except Exception as reason:
        raise HTTPException(404, "there are no published results under this name") from reason
    if not (may_see or _is_owner(request, service) or viewer(request, service, name)):
        raise HTTPException(404, "there are no published results under this name")
    return opened


def _is_owner(request: Request, service: Service) -> bool:
    key = request.headers.get("authorization", "").removeprefix("Bearer ")
    if key:
        return find_token(service.database, key, Kind.owner_key) is not None
    return session(request, service, OWNER_COOKIE, Kind.owner_session) is not None


# --- downloads ---


@router.get("/studies/{name}/votes", responses=problems(404))
def votes(
    service: ServiceDep, token: Viewer, name: StudyName,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[int, Query(ge=0, le=10**12, description="`next` of the page before.")] = 0,
) -> VotePage:  # fmt: skip
    """List all questions and votes page by page, oldest first, with what became of each."""
    study = service.studies.open(name).study
    study.close_due()
    rows = study.rows
    page = rows[after : after + limit]
    further = after + limit if after + limit < len(rows) else None
    return VotePage(votes=[VoteOfPage(**_row(study.name, row)) for row in page], next=further, total=len(rows))


@router.get(
    "/studies/{name}/votes.csv",
    response_class=Response,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}, **problems(404)},
)
def export(
    service: ServiceDep, token: Viewer, name: StudyName,
    all: Annotated[bool, Query(description="Also what does not count: pending, skipped, undone and so on.")] = False,
) -> Response:  # fmt: skip
    """Download the votes that count, in the order they were given, for a spreadsheet: a text that it would take for a
    formula begins with an apostrophe. `shortlist export` writes every text as it is."""
    study = service.studies.open(name).study
    study.settle()
    rows = study.rows if all else counted(study.rows)
    if not rows:
        raise BadVotes(f"the study {name!r} has no votes yet")
    data = _csv(COLUMNS, ({**_row(study.name, row), "id": row.id}.values() for row in rows))
    return Response(data, media_type="text/csv", headers=_as_file("votes.csv"))


def _row(study: str, row: Row) -> dict[str, Any]:
    return {
        "id": None if row.question is None else f"{study}.{row.question}", "first": row.first, "second": row.second,
        "outcome": row.outcome, "judge": row.judge, "case": row.case, "status": row.status, "reason": row.reason,
        "asked": _time(row.asked_at), "answered": _time(row.closed_at),
    }  # fmt: skip


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _csv(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


@router.get(
    "/studies/{name}/proof.jsonl",
    response_class=Response,
    responses={200: {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}, **problems(404)},
)
def proof(service: ServiceDep, token: Viewer, name: StudyName) -> Response:
    """Download the proof file, which anyone can check with `shortlist verify` or verify.py. It has pseudonyms."""
    study = service.studies.open(name).study
    study.settle()
    return Response(make_proof(study), media_type="application/x-ndjson", headers=_as_file("proof.jsonl"))


@router.get(
    "/studies/{name}/report.html",
    response_class=Response,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}, **problems(404, 501)},
)
def report(service: ServiceDep, token: Viewer, name: StudyName) -> Response:
    """Download the report as one HTML file that loads nothing else. Making it takes some seconds."""
    study = service.studies.open(name).study
    study.settle()
    with _drawing:
        page = make_report(study)
    return Response(page, media_type="text/html", headers={"content-security-policy": POLICY})


@router.get(
    "/backup.db",
    response_class=Response,
    responses={200: {"content": {"application/vnd.sqlite3": {"schema": {"type": "string"}}}}, **problems(403)},
)
def backup(service: ServiceDep, token: Owner) -> Response:
    """Download a backup of all studies, for a SQLite storage. `shortlist storage restore` reads it. PostgreSQL has a
    tool of its own, pg_dump."""
    service.database.flush()
    folder = tempfile.TemporaryDirectory(prefix="shortlist-backup-")
    file = Path(folder.name) / "backup.db"
    try:
        back_up(service.settings.storage, file)
    except Exception:
        folder.cleanup()
        raise
    name = time.strftime("shortlist-%Y-%m-%d-%H%M.db", time.gmtime())
    return FileResponse(
        file, media_type="application/vnd.sqlite3", filename=name, background=BackgroundTask(folder.cleanup)
    )


def _as_file(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}
