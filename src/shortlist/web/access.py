"""Who is asking? The owner or one judge, by a bearer token or by the cookie that a link was exchanged for.

A cookie alone may only look: to change something a page must also send the token that was written into it, in a header
that no other site can set.
"""

import hashlib
import hmac
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException, Path, Request, Response
from fastapi.security import APIKeyCookie, HTTPBearer

from shortlist.web.limits import address
from shortlist.web.state import Service
from shortlist.web.tokens import LIFETIME, Kind, Token, find, form_token

OWNER_COOKIE = "shortlist-owner"
JUDGE_COOKIE = "shortlist-judge-"
FORM_HEADER = "x-form-token"
SAFE = ("GET", "HEAD")
ASK = "open the link you were given, or send a good token"
NAME = r"^\w[\w .\-]{0,99}$"
StudyName = Annotated[str, Path(pattern=NAME, description="The study's name.")]
QuestionId = Annotated[
    str, Path(pattern=r"^\w[\w .\-]{0,99}\.(0|[1-9][0-9]{0,11})$", description="As it was given out.")
]
bearer = HTTPBearer(auto_error=False, description="An owner's key or a judge's token.")
owner_cookie = APIKeyCookie(
    name=OWNER_COOKIE, auto_error=False, description=f"With the header {FORM_HEADER} to change something."
)


async def service(request: Request) -> Service:
    """Not a plain function: those run in threads, and this one has nothing to wait for."""
    found: Service = request.app.state.service
    return found


Here = Annotated[Service, Depends(service)]


def owner(request: Request, here: Here, key: object = Depends(bearer), cookie: object = Depends(owner_cookie)) -> Token:
    """The owner, or 401."""
    return _who(request, here, OWNER_COOKIE, Kind.owner_key, Kind.owner_session)


def study_judge(request: Request, here: Here, name: StudyName, key: object = Depends(bearer)) -> Token:
    """A judge of the study in the path, or 401."""
    return judge_of(request, here, name)


def question_judge(request: Request, here: Here, id: QuestionId, key: object = Depends(bearer)) -> Token:
    """A judge of the study that the question belongs to, or 401."""
    return judge_of(request, here, split_id(id)[0])


Owner = Annotated[Token, Depends(owner)]
StudyJudge = Annotated[Token, Depends(study_judge)]
QuestionJudge = Annotated[Token, Depends(question_judge)]


def split_id(id: str) -> tuple[str, int]:
    name, _, number = id.rpartition(".")
    return name, int(number)


def judge_of(request: Request, here: Service, name: str) -> Token:
    token = _who(request, here, judge_cookie(name), Kind.judge_link, Kind.judge_session)
    if token.study != name:
        raise wrong_token(request, here)
    return token


def session(request: Request, here: Service, cookie: str, kind: Kind) -> Token | None:
    """Who a page is shown to, if anybody."""
    text = request.cookies.get(cookie)
    return None if text is None else find(here.database, text, (kind,))


def give_cookie(request: Request, response: Response, cookie: str, kind: Kind, token: str) -> None:
    response.set_cookie(
        cookie, token, max_age=int(LIFETIME[kind]), httponly=True, samesite="lax",
        secure=request.url.scheme == "https",
    )  # fmt: skip


def judge_cookie(study: str) -> str:
    """A browser may hold links of several studies."""
    return f"{JUDGE_COOKIE}{hashlib.sha256(study.encode()).hexdigest()[:12]}"


def check_site(request: Request) -> None:
    """Refuse what another site makes a browser send."""
    origin = request.headers.get("origin")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise HTTPException(403, "this request comes from another site")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        raise HTTPException(403, "this request comes from another site")


def _who(request: Request, here: Service, cookie: str, bearer_kind: Kind, session_kind: Kind) -> Token:
    header = request.headers.get("authorization")
    text = request.cookies.get(cookie) if header is None else header.removeprefix("Bearer ").strip()
    kinds = (bearer_kind,) if header is not None else (session_kind,)
    token = None if text is None else find(here.database, text, kinds)
    if token is None or text is None:
        raise wrong_token(request, here) if text else HTTPException(401, ASK, {"www-authenticate": "Bearer"})
    if not here.tokens.take(token.id):
        raise HTTPException(429, "too many requests; wait a moment", {"retry-after": "1"})
    if header is None and request.method not in SAFE:
        check_site(request)
        sent = request.headers.get(FORM_HEADER, "").encode("utf-8", "replace")
        if not hmac.compare_digest(sent, form_token(text).encode()):
            raise HTTPException(403, "this page is out of date; reload it")
    return token


def wrong_token(request: Request, here: Service, detail: str = ASK) -> HTTPException:
    """For whoever has no good token. Those who try many are told to wait; a good token is never kept waiting."""
    if not here.failures.take(address(request.scope)):
        return HTTPException(429, "too many wrong tokens; wait a moment", {"retry-after": "5"})
    return HTTPException(401, detail, {"www-authenticate": "Bearer"})
