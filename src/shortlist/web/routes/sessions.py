"""Signing in: the token of a link becomes a session cookie. Keys let programs act for the owner."""

from fastapi import APIRouter, Request, Response

from shortlist.web.auth import (
    OWNER_COOKIE,
    Kind,
    Owner,
    ServiceDep,
    Token,
    add_judge,
    check_site,
    create_token,
    find_token,
    give_cookie,
    judge_cookie,
    session,
    sign_out,
    use_once,
    wrong_token,
)
from shortlist.web.schemas import Key, SessionIn, SessionOut, problems
from shortlist.web.service import Service

router = APIRouter(prefix="/api", tags=["sessions"])


@router.post("/sessions", responses=problems(401, 403, 409))
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


@router.delete("/sessions", status_code=204, responses=problems(401, 403))
def close_session(response: Response, service: ServiceDep, token: Owner) -> None:
    """Sign out. If the request was sent with a key, the key stops working."""
    sign_out(service.database, token)
    response.delete_cookie(OWNER_COOKIE)


@router.post("/keys", status_code=201, responses=problems(401, 403))
def create_key(service: ServiceDep, token: Owner) -> Key:
    """Create a key for a program. It may do everything the owner may do."""
    return Key(key=create_token(service.database, Kind.owner_key))
