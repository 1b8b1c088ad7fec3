"""The pages: each is a template and a module of the same name in static/, which talks to the API."""

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.templating import Jinja2Templates

from shortlist.web.access import OWNER_COOKIE, Here, StudyName, judge_cookie, session
from shortlist.web.headers import policy
from shortlist.web.tokens import Kind, form_token

router = APIRouter(include_in_schema=False)
templates = Jinja2Templates(Path(__file__).parent.parent / "templates")


@router.get("/")
def home(request: Request, here: Here) -> Response:
    """The owner's studies."""
    return _owners(request, here, "home")


@router.get("/new")
def new(request: Request, here: Here) -> Response:
    return _owners(request, here, "new")


@router.get("/studies/{name}")
def study(request: Request, here: Here, name: StudyName) -> Response:
    opened = here.shelf.open(name)
    return _owners(request, here, "study", study=opened.study.name)


@router.get("/join")
def join(request: Request) -> Response:
    """Where every link leads; its token is behind the # and never reaches us in an address."""
    return _page(request, "join", None)


@router.get("/judge/{name}")
def judge(request: Request, here: Here, name: StudyName) -> Response:
    cookie = judge_cookie(name)
    token = session(request, here, cookie, Kind.judge_session)
    if token is None or token.study != name:
        return _page(request, "stranger", None, status=401)
    sheet = here.shelf.open(name).sheet
    shown: dict[str, Any] = {
        "study": name,
        "judge": token.judge,
        "ties": sheet.ties,
        "instructions": sheet.instructions,
    }
    page = _page(request, "judge", request.cookies[cookie], **shown)
    page.headers["content-security-policy"] = policy(sheet.image_sites)
    return page


@router.get("/docs")
def docs(request: Request) -> Response:
    """The API, from /openapi.json."""
    return _page(request, "docs", None)


def _owners(request: Request, here: Here, page: str, **shown: Any) -> Response:
    if session(request, here, OWNER_COOKIE, Kind.owner_session) is None:
        return _page(request, "stranger", None, status=401)
    return _page(request, page, request.cookies[OWNER_COOKIE], **shown)


def _page(request: Request, page: str, cookie: str | None, status: int = 200, **shown: Any) -> Response:
    shown["form_token"] = None if cookie is None else form_token(cookie)
    return templates.TemplateResponse(request, f"{page}.html", {"page": page, **shown}, status_code=status)
