"""Who is asking, and what they may do.

A token is `id.secret`. Only a hash of the secret is stored, so a stolen database does not let anybody in. Links are
opened in a browser and exchanged for a session cookie; owner keys and judge links also work as bearer tokens.

A cookie alone may only read. To change something, a page also sends the form token that was written into it, in a
header that no other site can set.
"""

import hashlib
import hmac
import re
import secrets
import time
from enum import StrEnum
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException, Path, Request, Response
from fastapi.security import APIKeyCookie, HTTPBearer
from sqlalchemy import bindparam, insert, select, update

from shortlist.study.schema import judges, studies, tokens
from shortlist.study.sql import Database
from shortlist.web.service import Service, client_address

DAY = 86_400.0
NO_HASH = "0" * 64
OWNER_COOKIE = "shortlist-owner"
JUDGE_COOKIE = "shortlist-judge-"
VIEWER_COOKIE = "shortlist-viewer-"
FORM_HEADER = "x-form-token"
SAFE_METHODS = ("GET", "HEAD")
SIGN_IN = "open the link you were given, or send a valid token"
OTHER_SITE = (
    "this request comes from {}, and the service is at {}. If that is how people reach it, start it with --address, or "
    "let the proxy pass on the Host header"
)
NAME = r"^\w[\w .\-]{0,99}$"


class Kind(StrEnum):
    """Kinds of tokens. An owner link works once. Judges who come by an open link enter their name. A viewer sees one
    study's dashboard and changes nothing."""

    owner_link = "owner link"
    owner_session = "owner session"
    owner_key = "owner key"
    viewer_link = "viewer link"
    viewer_session = "viewer session"
    open_link = "open link"
    judge_link = "judge link"
    judge_session = "judge session"


LIFETIME = {
    Kind.owner_link: 7 * DAY, Kind.owner_session: 30 * DAY, Kind.viewer_session: 30 * DAY,
    Kind.judge_session: 90 * DAY,
}  # fmt: skip


class Token(NamedTuple):
    """A valid token, and who owns it."""

    id: str
    kind: Kind
    study: str | None
    judge: str | None  # the pseudonym that votes are stored under
    judge_id: int | None
    study_id: int | None
    name: str | None = None  # of the judge
    state: str = "active"  # of the judge: active, waiting or refused
    is_open: bool = False  # the judge came by the open link
    email: str | None = None
    joined: float = 0.0  # when the judge came, in seconds since 1970


# --- tokens in the database ---

_BY_ID = (  # read at every request
    select(
        tokens,
        studies.c.name.label("study_name"),
        judges.c.name.label("judge_name"),
        judges.c.key,
        judges.c.state,
        judges.c.is_open,
        judges.c.email,
        judges.c.created.label("joined"),
    )
    .select_from(
        tokens.outerjoin(studies, tokens.c.study == studies.c.id).outerjoin(judges, tokens.c.judge == judges.c.id)
    )
    .where(tokens.c.id == bindparam("token"))
)


def create_token(database: Database, kind: Kind, study_id: int | None = None, judge_id: int | None = None) -> str:
    """A new token with its secret, which is not stored and cannot be shown again."""
    name, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    now = time.time()
    row = {
        "id": name, "hash": _hash(secret), "kind": kind.value, "study": study_id, "judge": judge_id, "created": now,
        "expires": now + LIFETIME[kind] if kind in LIFETIME else None, "revoked": False,
    }  # fmt: skip
    with database.changing() as connection:
        connection.execute(insert(tokens), row)
    return f"{name}.{secret}"


def find_token(database: Database, text: str, *kinds: Kind) -> Token | None:
    """The token, if it is valid and of one of these kinds."""
    parts = re.fullmatch(r"([0-9a-f]{16})\.([\w-]{20,60})", text, re.ASCII)
    if parts is None:
        return None
    with database.reading() as connection:
        row = connection.execute(_BY_ID, {"token": parts[1]}).first()
    same = hmac.compare_digest(_hash(parts[2]), NO_HASH if row is None else row.hash)
    if row is None or not same or row.revoked or row.kind not in kinds:
        return None
    if row.expires is not None and row.expires < time.time():
        return None
    who = row.judge_name, row.state or "active", bool(row.is_open), row.email, row.joined or 0.0
    return Token(row.id, Kind(row.kind), row.study_name, row.key, row.judge, row.study, *who)


def use_once(database: Database, token: Token) -> bool:
    """Revoke a token that works once; False if it was used already."""
    with database.changing() as connection:
        used = update(tokens).where((tokens.c.id == token.id) & ~tokens.c.revoked).values(revoked=True)
        return connection.execute(used).rowcount == 1


def revoke(database: Database, kind: Kind, study_id: int, judge_id: int | None = None) -> int:
    """Revoke the study's tokens of that kind, or all tokens of one judge; returns how many."""
    here = (tokens.c.study == study_id) & ~tokens.c.revoked
    here &= tokens.c.kind == kind.value if judge_id is None else tokens.c.judge == judge_id
    with database.changing() as connection:
        return connection.execute(update(tokens).where(here).values(revoked=True)).rowcount


def sign_out(database: Database, token: Token) -> None:
    """Revoke this token."""
    with database.changing() as connection:
        connection.execute(update(tokens).where(tokens.c.id == token.id).values(revoked=True))


def has_owner(database: Database) -> bool:
    """Has anybody ever signed in as the owner?"""
    signed_in = tokens.c.kind.in_([Kind.owner_session.value, Kind.owner_key.value])
    with database.reading() as connection:
        return connection.execute(select(tokens.c.id).where(signed_in).limit(1)).first() is not None


def has_link(database: Database, study_id: int, kind: Kind) -> bool:
    """Has the study a link of this kind that is not revoked?"""
    here = (tokens.c.study == study_id) & (tokens.c.kind == kind.value) & ~tokens.c.revoked
    with database.reading() as connection:
        return connection.execute(select(tokens.c.id).where(here).limit(1)).first() is not None


def _hash(secret: str) -> str:
    """A plain hash is enough: the secret has 256 random bits and cannot be guessed."""
    return hashlib.sha256(secret.encode()).hexdigest()


# --- who sends a request ---


async def get_service(request: Request) -> Service:
    """Async, because FastAPI runs plain functions in a thread and this one waits for nothing."""
    found: Service = request.app.state.service
    return found


ServiceDep = Annotated[Service, Depends(get_service)]
StudyName = Annotated[str, Path(pattern=NAME, description="The name of the study.")]
QuestionId = Annotated[
    str, Path(pattern=r"^\w[\w .\-]{0,99}\.(0|[1-9][0-9]{0,11})$", description="The id of the question.")
]
bearer = HTTPBearer(auto_error=False, description="An owner key or the token of a judge link.")
owner_cookie = APIKeyCookie(
    name=OWNER_COOKIE, auto_error=False, description=f"Send the header {FORM_HEADER} too to change something."
)


def require_owner(
    request: Request, service: ServiceDep, key: object = Depends(bearer), cookie: object = Depends(owner_cookie)
) -> Token:
    """The owner's token, or 401."""
    return _authenticate(request, service, OWNER_COOKIE, Kind.owner_key, Kind.owner_session)


def require_study_judge(
    request: Request, service: ServiceDep, name: StudyName, key: object = Depends(bearer)
) -> Token:  # fmt: skip
    """The token of a judge of the study in the path, or 401."""
    return _require_judge(request, service, name)


def require_question_judge(
    request: Request, service: ServiceDep, id: QuestionId, key: object = Depends(bearer)
) -> Token:  # fmt: skip
    """The token of a judge of the study that the question belongs to, or 401."""
    return _require_judge(request, service, split_id(id)[0])


def require_viewer(
    request: Request, service: ServiceDep, name: StudyName, key: object = Depends(bearer),
    cookie: object = Depends(owner_cookie),
) -> Token:  # fmt: skip
    """The token of the owner, or of a viewer of the study in the path, or 401. Only for what changes nothing."""
    assert request.method in SAFE_METHODS
    seen = viewer(request, service, name)
    if seen is None:
        return require_owner(request, service)
    if not service.tokens.allow(seen.id):
        raise too_many()
    return seen


def viewer(request: Request, service: Service, study: str) -> Token | None:
    """The session of a viewer of this study, if the request has one and not the owner's."""
    if "authorization" in request.headers:
        return None
    token = session(request, service, viewer_cookie(study), Kind.viewer_session)
    if token is None or token.study != study:
        return None
    return None if session(request, service, OWNER_COOKIE, Kind.owner_session) else token


Owner = Annotated[Token, Depends(require_owner)]
Viewer = Annotated[Token, Depends(require_viewer)]
StudyJudge = Annotated[Token, Depends(require_study_judge)]
QuestionJudge = Annotated[Token, Depends(require_question_judge)]


def split_id(id: str) -> tuple[str, int]:
    """The study and the number of a question's id, such as demo.12."""
    name, _, number = id.rpartition(".")
    return name, int(number)


def session(request: Request, service: Service, cookie: str, kind: Kind) -> Token | None:
    """The token in this cookie; None if there is none or it is not valid."""
    text = request.cookies.get(cookie)
    return None if text is None else find_token(service.database, text, kind)


def give_cookie(request: Request, response: Response, cookie: str, kind: Kind, token: str) -> None:
    response.set_cookie(
        cookie, token, max_age=int(LIFETIME[kind]), httponly=True, samesite="lax",
        secure=request.url.scheme == "https",
    )  # fmt: skip


def judge_cookie(study: str) -> str:
    """The name of the cookie for this study: a browser may hold links of several studies."""
    return f"{JUDGE_COOKIE}{_short(study)}"


def viewer_cookie(study: str) -> str:
    """The name of the cookie of a viewer of this study."""
    return f"{VIEWER_COOKIE}{_short(study)}"


def _short(study: str) -> str:
    return hashlib.sha256(study.encode()).hexdigest()[:12]


def form_token(session: str) -> str:
    """What a page must send with the session's cookie to change something."""
    return hmac.new(session.encode(), b"form", hashlib.sha256).hexdigest()


def check_site(request: Request, service: Service) -> None:
    """Raise 403 for a request that another site made the browser send."""
    origin, host = request.headers.get("origin"), request.headers.get("host")
    known = {host, urlsplit(service.settings.address or "").netloc or host}
    is_other = origin is not None and urlsplit(origin).netloc not in known
    if is_other or request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise HTTPException(403, OTHER_SITE.format(origin or "another site", host))


def link_address(request: Request, service: Service, token: str) -> str:
    """A link with this token. Browsers do not send what is behind the #, so the secret gets into no log."""
    base = (service.settings.address or str(request.base_url)).rstrip("/")
    return f"{base}/join#{token}"


def wrong_token(request: Request, service: Service, detail: str = SIGN_IN) -> HTTPException:
    """401; or 429 for an address that tries many wrong tokens. A valid token never waits because of its neighbours."""
    if not service.failures.allow(client_address(request.scope)):
        return HTTPException(429, "too many wrong tokens; wait a moment", {"retry-after": "5"})
    return HTTPException(401, detail, {"www-authenticate": "Bearer"})


def too_many() -> HTTPException:
    return HTTPException(429, "too many requests; wait a moment", {"retry-after": "1"})


def _require_judge(request: Request, service: Service, study: str) -> Token:
    token = _authenticate(request, service, judge_cookie(study), Kind.judge_link, Kind.judge_session)
    if token.study != study:
        raise wrong_token(request, service)
    return token


def _authenticate(request: Request, service: Service, cookie: str, bearer_kind: Kind, session_kind: Kind) -> Token:
    header = request.headers.get("authorization")
    text = request.cookies.get(cookie) if header is None else header.removeprefix("Bearer ").strip()
    if not text:
        raise HTTPException(401, SIGN_IN, {"www-authenticate": "Bearer"})
    token = find_token(service.database, text, session_kind if header is None else bearer_kind)
    if token is None:
        raise wrong_token(request, service)
    if not service.tokens.allow(token.id):
        raise too_many()
    if header is None and request.method not in SAFE_METHODS:
        check_site(request, service)
        _check_form_token(request, text)
    return token


def _check_form_token(request: Request, session: str) -> None:
    sent = request.headers.get(FORM_HEADER, "").encode("utf-8", "replace")
    if not hmac.compare_digest(sent, form_token(session).encode()):
        raise HTTPException(403, "this page is out of date; reload it")
