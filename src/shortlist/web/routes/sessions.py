"""Links and keys become sessions: POST /api/sessions, and the owner's keys."""

from fastapi import APIRouter, Request, Response

from shortlist.web.access import (
    OWNER_COOKIE,
    Here,
    Owner,
    check_site,
    give_cookie,
    judge_cookie,
    session,
    wrong_token,
)
from shortlist.web.people import add_judge
from shortlist.web.schemas import Key, SessionIn, SessionOut, problems
from shortlist.web.state import Service
from shortlist.web.tokens import Kind, Token, end, find, mint, use_up

router = APIRouter(prefix="/api", tags=["sessions"])
LINKS = (Kind.owner_link, Kind.judge_link, Kind.open_link)


@router.post("/sessions", responses=problems(401, 403, 409))
def open_session(request: Request, response: Response, here: Here, given: SessionIn) -> SessionOut:
    """Exchange the token of a link for a cookie. An owner's link is good once."""
    check_site(request)
    token = find(here.database, given.token, LINKS)
    if token is None or (token.kind is Kind.owner_link and not use_up(here.database, token)):
        raise wrong_token(request, here, "this link is no longer good; ask for a new one")
    if token.kind is Kind.owner_link:
        give_cookie(request, response, OWNER_COOKIE, Kind.owner_session, mint(here.database, Kind.owner_session))
        return SessionOut(role="owner", page="/", study=None)
    return _judge_session(request, response, here, token, given.name)


def _judge_session(
    request: Request, response: Response, here: Service, token: Token, name: str | None
) -> SessionOut:  # fmt: skip
    assert token.study is not None
    assert token.study_id is not None
    page, cookie = f"/judge/{token.study}", judge_cookie(token.study)
    judge_id = token.judge_id
    if judge_id is None:
        there = session(request, here, cookie, Kind.judge_session)
        if there is not None and there.study_id == token.study_id:
            return SessionOut(role="judge", page=page, study=token.study)
        if name is None:
            return SessionOut(role="open", page=None, study=token.study)
        judge_id = add_judge(here.database, token.study_id, name)
    made = mint(here.database, Kind.judge_session, token.study_id, judge_id)
    give_cookie(request, response, cookie, Kind.judge_session, made)
    return SessionOut(role="judge", page=page, study=token.study)


@router.delete("/sessions", status_code=204, responses=problems(401, 403))
def close_session(response: Response, here: Here, token: Owner) -> None:
    """Sign the owner out; a key ends too."""
    end(here.database, token.id)
    response.delete_cookie(OWNER_COOKIE)


@router.post("/keys", status_code=201, responses=problems(401, 403))
def make_key(here: Here, token: Owner) -> Key:
    """A key with which a program can do what the owner can."""
    return Key(key=mint(here.database, Kind.owner_key))
