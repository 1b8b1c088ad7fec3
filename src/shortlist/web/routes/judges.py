"""Links for judges: one for each judge, or one open link for everybody. Each can be ended."""

from fastapi import APIRouter, HTTPException, Request

from shortlist.web.auth import (
    Kind,
    Owner,
    ServiceDep,
    StudyName,
    add_judge,
    create_token,
    find_judge,
    name_taken,
    revoke,
)
from shortlist.web.schemas import JudgeIn, JudgesIn, Link, Links, Revoked, problems
from shortlist.web.service import Service, study_id

router = APIRouter(prefix="/api/studies/{name}", tags=["judges"], responses=problems(401, 403, 404))


@router.post("/judges", status_code=201, responses=problems(409))
def add(request: Request, service: ServiceDep, token: Owner, name: StudyName, given: JudgesIn) -> Links:
    """Add judges and get a link for each."""
    study = study_id(service.database, name)
    if len(set(given.names)) < len(given.names):
        raise HTTPException(422, "a name appears twice; every judge needs a different name")
    taken = [judge for judge in given.names if find_judge(service.database, study, judge) is not None]
    if taken:
        raise HTTPException(409, name_taken(taken[0]))
    links = []
    for judge in given.names:
        made = create_token(service.database, Kind.judge_link, study, add_judge(service.database, study, judge))
        links.append(Link(judge=judge, link=_address(request, made)))
    return Links(links=links)


@router.post("/judges/link", status_code=201)
def renew(request: Request, service: ServiceDep, token: Owner, name: StudyName, given: JudgeIn) -> Link:
    """Get a new link for a judge. The old link and its sessions stop working."""
    study = study_id(service.database, name)
    judge = _judge(service, study, given.judge)
    revoke(service.database, Kind.judge_link, study, judge)
    made = create_token(service.database, Kind.judge_link, study, judge)
    return Link(judge=given.judge, link=_address(request, made))


@router.post("/judges/revoke")
def end_links(service: ServiceDep, token: Owner, name: StudyName, given: JudgeIn) -> Revoked:
    """End a judge's link and sessions. Their votes still count."""
    study = study_id(service.database, name)
    judge = _judge(service, study, given.judge)
    return Revoked(revoked=revoke(service.database, Kind.judge_link, study, judge))


@router.post("/open-link", status_code=201)
def open_link(request: Request, service: ServiceDep, token: Owner, name: StudyName) -> Link:
    """Get one link for everybody: each judge who opens it enters their name. The old open link stops working."""
    study = study_id(service.database, name)
    revoke(service.database, Kind.open_link, study)
    return Link(judge=None, link=_address(request, create_token(service.database, Kind.open_link, study)))


@router.delete("/open-link")
def end_open_link(service: ServiceDep, token: Owner, name: StudyName) -> Revoked:
    """End the open link. Judges who have used it can continue."""
    return Revoked(revoked=revoke(service.database, Kind.open_link, study_id(service.database, name)))


def _judge(service: Service, study: int, name: str) -> int:
    found = find_judge(service.database, study, name)
    if found is None:
        raise HTTPException(404, f"no judge with a link is called {name!r}")
    return found


def _address(request: Request, token: str) -> str:
    """Browsers do not send what is behind the #, so the secret gets into no log."""
    return f"{request.base_url}join#{token}"
