"""The pages, and two addresses for monitoring.

Each page is a template and a module of the same name in static/, which talks to the API.
"""

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.templating import Jinja2Templates
from prometheus_client import CONTENT_TYPE_LATEST

from shortlist import __version__
from shortlist.study.claims import SENTENCES
from shortlist.web.auth import (
    OWNER_COOKIE,
    Kind,
    ServiceDep,
    StudyName,
    form_token,
    judge_cookie,
    require_owner,
    session,
    viewer,
)
from shortlist.web.display import Words
from shortlist.web.middleware import content_policy, is_local
from shortlist.web.routes.results import published
from shortlist.web.schemas import Health, problems

router = APIRouter()
page = APIRouter(include_in_schema=False)
templates = Jinja2Templates(Path(__file__).parent.parent / "templates")


@page.get("/")
def home(request: Request, service: ServiceDep) -> Response:
    """The owner's studies."""
    return owner_page(request, service, "home")


@page.get("/new")
def new(request: Request, service: ServiceDep) -> Response:
    """The form for a new study."""
    return owner_page(request, service, "new", claims=SENTENCES)


@page.get("/studies/{name}")
def study(request: Request, service: ServiceDep, name: StudyName) -> Response:
    """The dashboard of a study, for its owner and its viewers."""
    seen = viewer(request, service, name)
    opened = service.studies.open(name)
    shown: dict[str, Any] = {"study": opened.study.name, "is_viewer": seen is not None}
    return owner_page(request, service, "study", **shown) if seen is None else _page(request, "study", None, **shown)


@page.get("/events/{name}")
def event(request: Request, service: ServiceDep, name: StudyName) -> Response:
    """All tracks of an event."""
    return owner_page(request, service, "event", event=name)


@page.get("/studies/{name}/judges")
def judges(request: Request, service: ServiceDep, name: StudyName) -> Response:
    """The judges of a study: links, limits, conflicts of interest, what to look at."""
    return owner_page(request, service, "judges", study=service.studies.open(name).study.name)


@page.get("/results/{name}")
def results(request: Request, service: ServiceDep, name: StudyName) -> Response:
    """The results, once the owner has published them."""
    opened = published(request, service, name)
    made = _page(request, "results", None, study=opened.study.name)
    made.headers["content-security-policy"] = content_policy(opened.display.image_sites)
    return made


@page.get("/present/{name}")
def present(request: Request, service: ServiceDep, name: StudyName) -> Response:
    """The top k one by one, for the big screen."""
    opened = service.studies.open(name)
    made = owner_page(request, service, "present", study=opened.study.name)
    made.headers["content-security-policy"] = content_policy(opened.display.image_sites)
    return made


@page.get("/join")
def join(request: Request) -> Response:
    """Every link leads here. Its token is behind the #, which browsers do not send."""
    return _page(request, "join", None)


@page.get("/judge/{name}")
def judge(request: Request, service: ServiceDep, name: StudyName) -> Response:
    """Where a judge answers questions."""
    cookie = judge_cookie(name)
    token = session(request, service, cookie, Kind.judge_session)
    if token is None or token.study != name:
        return _page(request, "stranger", None, status=401)
    opened = service.studies.open(name)
    display = opened.display
    shown: dict[str, Any] = {
        "study": name,
        "judge": token.name,
        "key": token.judge,
        "ties": display.ties,
        "instructions": display.instructions,
        "lease": service.settings.lease,
        "undo": service.settings.undo,
        "has_ballot": opened.study.judges_claim == "public",
    }
    made = _page(request, "judge", request.cookies[cookie], **shown)
    made.headers["content-security-policy"] = content_policy(display.image_sites, display.media_sites)
    return made


@page.get("/docs")
def docs(request: Request) -> Response:
    """The API, drawn from /openapi.json."""
    return _page(request, "docs", None)


def problem_page(request: Request, status: int, detail: str) -> Response:
    """What somebody sees who opens a page that is not there, such as results before they are published."""
    title = "problem.missing" if status == 404 else "problem.refused"
    sentence = detail[0].upper() + detail[1:].rstrip(".") + "."
    return _page(request, "problem", None, status, title=title, detail=sentence)


def owner_page(request: Request, service: ServiceDep, name: str, **shown: Any) -> Response:
    if session(request, service, OWNER_COOKIE, Kind.owner_session) is None:
        return _page(request, "stranger", None, status=401)
    return _page(request, name, request.cookies[OWNER_COOKIE], **shown)


def _page(request: Request, name: str, cookie: str | None, status: int = 200, **shown: Any) -> Response:
    shown["form_token"] = None if cookie is None else form_token(cookie)
    shown["t"] = words = Words(request.headers.get("accept-language"))
    shown["words"] = words.for_script("common", name)
    return templates.TemplateResponse(request, f"{name}.html", {"page": name, **shown}, status_code=status)


@router.get("/healthz", tags=["monitoring"], responses=problems())
def healthz(service: ServiceDep) -> Health:
    """Answers if the service runs and its storage answers."""
    service.database.ping()
    return Health(status="ok", version=__version__)


@router.get(
    "/metrics",
    tags=["monitoring"],
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **problems(401)},
)
def metrics(request: Request, service: ServiceDep) -> Response:
    """Counts and times of all workers, for Prometheus: without a key from this machine alone, else with an owner
    key."""
    if not is_local(request.scope):
        require_owner(request, service)
    return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)


router.include_router(page)
