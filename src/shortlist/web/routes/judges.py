"""Letting judges in: a link each, or one open link; each can be ended."""

from fastapi import APIRouter, HTTPException, Request
from starlette.datastructures import URL

from shortlist.errors import UnknownStudy
from shortlist.web.access import Here, Owner, StudyName
from shortlist.web.people import add_judge, find_judge, study_id
from shortlist.web.schemas import JudgeIn, JudgesIn, Link, Links, Revoked, problems
from shortlist.web.state import Service
from shortlist.web.tokens import Kind, mint, revoke

router = APIRouter(prefix="/api/studies/{name}", tags=["judges"], responses=problems(401, 403, 404))


@router.post("/judges", status_code=201, responses=problems(409))
def add(request: Request, here: Here, token: Owner, name: StudyName, given: JudgesIn) -> Links:
    """New judges, with a link each."""
    study = _study(here, name)
    if len(set(given.names)) < len(given.names):
        raise HTTPException(422, "a judge is named twice; every judge needs a name of their own")
    taken = [judge for judge in given.names if find_judge(here.database, study, judge) is not None]
    if taken:
        raise HTTPException(409, f"there is a judge called {taken[0]!r} already; choose another name")
    links = []
    for judge in given.names:
        made = mint(here.database, Kind.judge_link, study, add_judge(here.database, study, judge))
        links.append(Link(judge=judge, link=_address(request, made)))
    return Links(links=links)


@router.post("/judges/link", status_code=201)
def renew(request: Request, here: Here, token: Owner, name: StudyName, given: JudgeIn) -> Link:
    """A new link for a judge; the old one and its sessions end."""
    study = _study(here, name)
    judge = _judge(here, study, given.judge)
    revoke(here.database, Kind.judge_link, study, judge)
    made = mint(here.database, Kind.judge_link, study, judge)
    return Link(judge=given.judge, link=_address(request, made))


@router.post("/judges/revoke")
def end_links(here: Here, token: Owner, name: StudyName, given: JudgeIn) -> Revoked:
    """End a judge's link and sessions. Their votes stay."""
    study = _study(here, name)
    judge = _judge(here, study, given.judge)
    return Revoked(revoked=revoke(here.database, Kind.judge_link, study, judge))


@router.post("/open-link", status_code=201)
def open_link(request: Request, here: Here, token: Owner, name: StudyName) -> Link:
    """One link for everybody: who opens it says their name. The old one ends."""
    study = _study(here, name)
    revoke(here.database, Kind.open_link, study)
    return Link(judge=None, link=_address(request, mint(here.database, Kind.open_link, study)))


@router.delete("/open-link")
def end_open_link(here: Here, token: Owner, name: StudyName) -> Revoked:
    """Nobody new comes in by it; judges who did stay."""
    return Revoked(revoked=revoke(here.database, Kind.open_link, _study(here, name)))


def _study(here: Service, name: str) -> int:
    found = study_id(here.database, name)
    if found is None:
        raise UnknownStudy(name)
    return found


def _judge(here: Service, study: int, name: str) -> int:
    found = find_judge(here.database, study, name)
    if found is None:
        raise HTTPException(404, f"no judge with a link is called {name!r}")
    return found


def _address(request: Request, token: str) -> str:
    """The secret is behind the #, which browsers never send: it gets into no log."""
    base: URL = request.base_url
    return f"{base}join#{token}"
