"""Links for judges, one for each judge or one open link for everybody, and signing in: the token of a link becomes a
session cookie. Links can be ended. Keys let programs act for the owner."""

from fastapi import APIRouter, HTTPException, Request, Response

from shortlist.web.auth import (
    OWNER_COOKIE,
    Kind,
    Owner,
    ServiceDep,
    StudyName,
    Token,
    add_judge,
    check_site,
    create_token,
    find_judge,
    find_token,
    give_cookie,
    judge_cookie,
    name_taken,
    revoke,
    session,
    sign_out,
    use_once,
    wrong_token,
)
from shortlist.web.schemas import JudgeIn, JudgesIn, Key, Link, Links, Revoked, SessionIn, SessionOut, problems
from shortlist.web.service import Service, study_id

sessions = APIRouter(prefix="/api", tags=["sessions"])
router = APIRouter(prefix="/api/studies/{name}", tags=["judges"], responses=problems(401, 403, 404))


@sessions.post("/sessions", responses=problems(401, 403, 409))
def open_session(request: Request, response: Response, service: ServiceDep, given: SessionIn) -> SessionOut:
    """Exchange the token of a link for a cookie. An owner link works once."""
    check_site(request)
    token = find_token(service.database, given.token, Kind.owner_link, Kind.judge_link, Kind.open_link)
    if token is None or (token.kind is Kind.owner_link and not use_once(service.database, token)):
        raise wrong_token(request, service, "this link no longer works; ask for a new one")
    if token.kind is Kind.owner_link:
        made = create_token(service.database, Kind.owner_session)
        give_cookie(request, response, OWNER_COOKIE, Kind.owner_session, made)
        return SessionOut(role="owner", page="/", study=None)
    return _judge_session(request, response, service, token, given.name)


def _judge_session(
    request: Request, response: Response, service: Service, token: Token, name: str | None
) -> SessionOut:  # fmt: skip
    assert token.study is not None
    assert token.study_id is not None
    page, cookie = f"/judge/{token.study}", judge_cookie(token.study)
    judge_id = token.judge_id
    if judge_id is None:
        known = session(request, service, cookie, Kind.judge_session)
        if known is not None and known.study_id == token.study_id:
            return SessionOut(role="judge", page=page, study=token.study)
        if name is None:
            return SessionOut(role="open", page=None, study=token.study)
        judge_id = add_judge(service.database, token.study_id, name)
    made = create_token(service.database, Kind.judge_session, token.study_id, judge_id)
    give_cookie(request, response, cookie, Kind.judge_session, made)
    return SessionOut(role="judge", page=page, study=token.study)


@sessions.delete("/sessions", status_code=204, responses=problems(401, 403))
def close_session(response: Response, service: ServiceDep, token: Owner) -> None:
    """Sign out. If the request was sent with a key, the key stops working."""
    sign_out(service.database, token)
    response.delete_cookie(OWNER_COOKIE)


@sessions.post("/keys", status_code=201, responses=problems(401, 403))
def create_key(service: ServiceDep, token: Owner) -> Key:
    """Create a key for a program. It may do everything the owner may do."""
    return Key(key=create_token(service.database, Kind.owner_key))


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
