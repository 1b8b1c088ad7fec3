"""The service, assembled: routes, errors, and the middleware around every request. And how to run it: uvicorn with one
or more workers, and the owner's first link."""

import gc
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Match

from shortlist import __version__, errors
from shortlist.errors import BadProblem
from shortlist.study.sql import Database
from shortlist.web.auth import Kind, create_token, has_owner
from shortlist.web.middleware import PROBLEM, RequestMiddleware, log, log_config, plain_words, problem
from shortlist.web.routes import judges, pages, questions, results, studies
from shortlist.web.service import METRICS_FOLDER, Service, Settings

STATUS: dict[type[errors.ShortlistError], int] = {
    errors.UnknownStudy: 404,
    errors.UnknownQuestion: 404,
    errors.NotYours: 403,
    errors.VoidJudge: 403,
    errors.AlreadyAnswered: 409,
    errors.StudyArchived: 409,
    errors.StudyExists: 409,
    errors.StudyReplaced: 409,
    errors.BadJudge: 409,
    errors.BadStorage: 503,
    errors.NotInstalled: 501,
    errors.BadInput: 422,
}
ROUTERS = (
    judges.sessions, studies.router, studies.items_router, results.router, judges.router, questions.router,
    studies.uploads, pages.router,
)  # fmt: skip
SWITCH = 0.0005  # seconds; Python's default is 5 ms
GRACE = 10  # seconds for running requests when the service is stopped
UNRESPONSIVE = 120  # seconds until a silent worker is replaced; on a busy machine a start takes longer than uvicorn's 5
ABOUT = "Find the best k of n items with as few noisy pairwise comparisons as possible. All pages use only this API."


def create_app(settings: Settings | None = None) -> FastAPI:
    """The application. Uvicorn calls this in every worker."""
    service = Service(settings or Settings.from_environment())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        _shorten_waits()
        _notice_stop(service)
        log.info("worker started")
        yield
        service.database.close()
        log.info("worker stopped")

    app = FastAPI(
        title="shortlist", version=__version__, description=ABOUT, docs_url=None, redoc_url=None, lifespan=lifespan
    )
    app.state.service = service
    for router in ROUTERS:
        app.include_router(router)
    files = StaticFiles(directory=Path(__file__).parent / "static")
    app.mount("/static", GZipMiddleware(files, minimum_size=500, compresslevel=6))  # nothing secret is in them
    app.add_middleware(RequestMiddleware, service=service)
    app.add_exception_handler(errors.ShortlistError, _library_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_error)
    _document_problems(app)
    return app


def _document_problems(app: FastAPI) -> None:
    """Say in the contract which type error answers have; FastAPI gives all answers that of the good one."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        contract = made()
        answers = [
            answer
            for methods in contract["paths"].values()
            for entry in methods.values()
            for code, answer in entry["responses"].items()
            if code[0] in "45"
        ]
        for answer in answers:
            kinds = list(answer.get("content", {}).values())
            answer["content"] = {PROBLEM: kinds[0]} if kinds else {}
        return contract

    app.openapi = openapi  # type: ignore[method-assign]


def _notice_stop(service: Service) -> None:
    """Let streams end when the service is told to stop; uvicorn would wait for them."""

    def noticed(handler: Any) -> Any:
        def stop(number: int, frame: Any) -> None:
            service.stopping = True
            handler(number, frame)

        return stop

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if callable(handler):
                signal.signal(number, noticed(handler))


def _shorten_waits() -> None:
    """Keep the garbage collector away from everything loaded so far, and give a thread that comes back from the
    database its turn sooner."""
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(SWITCH)


def _library_error(request: Request, error: Exception) -> Response:
    if isinstance(error, errors.StudyReplaced):
        request.app.state.service.studies.clear()  # the next request reads it again
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 422)
    detail = "the storage does not answer; try again" if status == 503 else str(error)
    if status == 503:
        log.error(str(error))
    return _said(request, status, detail)


def _invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return _said(request, 422, plain_words(error.errors()[0]))


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = {"allow": _allowed_methods(request)} if error.status_code == 405 else error.headers
    return _said(request, error.status_code, str(error.detail), headers)


def _said(request: Request, status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """A page for people who opened an address in a browser, else a problem document."""
    is_page = request.method == "GET" and not request.url.path.startswith(("/api/", "/static/", "/uploads/"))
    if is_page and "text/html" in request.headers.get("accept", ""):
        return pages.problem_page(request, status, detail)
    return problem(status, detail, headers)


def _allowed_methods(request: Request) -> str:
    """All methods of this address; Starlette names only those of the first matching route."""
    routes = [route for router in ROUTERS for route in router.routes]
    matching = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return ", ".join(sorted({method for route in matching for method in getattr(route, "methods", None) or ()}))


def owner_link(storage: str, base: str) -> str:
    """A new link. The first person who opens it becomes the owner."""
    database = Database(storage)
    try:
        return f"{base}/join#{create_token(database, Kind.owner_link)}"
    finally:
        database.close()


def first_link(storage: str, base: str) -> str | None:
    """A link for the owner if nobody has ever signed in as the owner."""
    database = Database(storage)
    try:
        return None if has_owner(database) else f"{base}/join#{create_token(database, Kind.owner_link)}"
    finally:
        database.close()


def check_address(host: str, port: int) -> None:
    """Raise BadProblem if the service cannot listen there: one line instead of a traceback."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as reason:
            raise BadProblem(f"cannot listen on {host}:{port}: {getattr(reason, 'strerror', None) or reason}") from None


def check_public_address(address: str) -> str:
    """The URL under which people reach the service, without a slash at its end. Raises BadProblem."""
    try:
        parts = urlsplit(address)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
        is_good = is_good and not parts.query and not parts.fragment and parts.path in ("", "/") and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good:
        raise BadProblem(f"{address!r} is not an address such as https://judging.example.org; give one without a path")
    return address.rstrip("/")


def own_addresses() -> list[str]:
    """The addresses of this machine in its networks, without those that work only here."""
    found = []
    for family, probe in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as one:
            one.connect((probe, 9))  # sends nothing; it only chooses the way there
            found.append(str(one.getsockname()[0]))
    with suppress(OSError):
        found += [str(one[4][0]) for one in socket.getaddrinfo(socket.gethostname(), None)]
    real = [address for address in found if not address.startswith(("127.", "::1", "fe80:", "0.", "::"))]
    return list(dict.fromkeys(real))


def in_url(host: str) -> str:
    """A host as it is written in a URL."""
    return f"[{host}]" if ":" in host else host


def run(settings: Settings, host: str, port: int, workers: int, level: str) -> None:
    """Serve until stopped. Running requests are answered first."""
    settings.tell_workers()
    with tempfile.TemporaryDirectory(prefix="shortlist-metrics-") as folder:
        if workers > 1:
            os.environ[METRICS_FOLDER] = folder  # workers read it when they start
        uvicorn.run(
            "shortlist.web.app:create_app", factory=True, host=host, port=port, workers=workers, access_log=False,
            log_config=log_config(level), timeout_graceful_shutdown=GRACE, server_header=False, proxy_headers=True,
            timeout_worker_healthcheck=UNRESPONSIVE,
        )  # fmt: skip
