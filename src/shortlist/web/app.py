"""The service, assembled: routes, errors, and the middleware around every request. And how to run it: uvicorn with one
or more workers, and the owner's first link."""

import gc
import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.routing import Match

from shortlist import __version__, errors
from shortlist.errors import BadProblem
from shortlist.study.sql import Database
from shortlist.web.auth import Kind, create_token, has_owner
from shortlist.web.middleware import RequestMiddleware, log, log_config
from shortlist.web.routes import judges, pages, questions, studies
from shortlist.web.service import METRICS_FOLDER, Service, Settings

STATUS: dict[type[errors.ShortlistError], int] = {
    errors.UnknownStudy: 404,
    errors.UnknownQuestion: 404,
    errors.NotYours: 403,
    errors.VoidJudge: 403,
    errors.AlreadyAnswered: 409,
    errors.StudyExists: 409,
    errors.BadJudge: 409,
    errors.BadStorage: 503,
    errors.NotInstalled: 501,
    errors.BadInput: 422,
}
ROUTERS = (
    judges.sessions, studies.router, judges.router, questions.router, studies.pictures, pages.router,
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
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"))
    app.add_middleware(RequestMiddleware, service=service)
    app.add_exception_handler(errors.ShortlistError, _library_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_error)
    return app


def _shorten_waits() -> None:
    """Keep the garbage collector away from everything loaded so far, and give a thread that comes back from the
    database its turn sooner."""
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(SWITCH)


def _library_error(_: Request, error: Exception) -> Response:
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 422)
    detail = "the storage does not answer; try again" if status == 503 else str(error)
    if status == 503:
        log.error(str(error))
    return JSONResponse({"detail": detail}, status)


def _invalid_request(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "path", "query"))
    return JSONResponse({"detail": f"{where}: {first['msg']}" if where else str(first["msg"])}, 422)


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = {"allow": _allowed_methods(request)} if error.status_code == 405 else error.headers
    return JSONResponse({"detail": str(error.detail)}, error.status_code, headers)


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
