"""The service, put together: routes, errors, and what stands around every request."""

import gc
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.routing import Match

from shortlist import __version__, errors
from shortlist.study.sql import Database
from shortlist.web.headers import SecurityHeaders
from shortlist.web.limits import Limits
from shortlist.web.log import RequestLog, log
from shortlist.web.metrics import Metrics
from shortlist.web.routes import health, judges, pages, questions, reports, sessions, studies, uploads
from shortlist.web.settings import Settings, told
from shortlist.web.state import Service

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
PARTS = (sessions, studies, reports, judges, questions, uploads, health, pages)
SWITCH = 0.0005  # seconds; 5 ms is usual
ABOUT = "Find the best k of n items from as few noisy pairwise comparisons as possible. Every page uses only this."


def create_app(settings: Settings | None = None) -> FastAPI:
    """Uvicorn calls this in every worker."""
    settings = settings or told()
    metrics = Metrics()
    service = Service(settings, Database(settings.storage, flush_later=True), metrics)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        _settle()
        log.info("worker started")
        yield
        service.database.close()
        log.info("worker stopped")

    app = FastAPI(
        title="shortlist", version=__version__, description=ABOUT, docs_url=None, redoc_url=None, lifespan=life
    )
    app.state.service = service
    for part in PARTS:
        app.include_router(part.router)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"))
    app.add_middleware(Limits, settings=settings)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(RequestLog, metrics=metrics)
    app.add_exception_handler(errors.ShortlistError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _answered)
    return app


def _settle() -> None:
    """Shorter waits under load: what was loaded at the start is never looked at for garbage, and a thread that comes
    back from the database gets its turn soon."""
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(SWITCH)


def _refused(_: Request, error: Exception) -> Response:
    """What the library refuses, it explains."""
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 422)
    detail = "the storage does not answer; try again" if status == 503 else str(error)
    if status == 503:
        log.error(str(error))
    return JSONResponse({"detail": detail}, status)


def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "path", "query"))
    return JSONResponse({"detail": f"{where}: {first['msg']}" if where else str(first["msg"])}, 422)


def _answered(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = {"allow": _allowed(request)} if error.status_code == 405 else error.headers
    return JSONResponse({"detail": str(error.detail)}, error.status_code, headers)


def _allowed(request: Request) -> str:
    """All methods of an address; starlette names those of the first route alone."""
    routes = [route for part in PARTS for route in part.router.routes]
    matching = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return ", ".join(sorted({method for route in matching for method in getattr(route, "methods", None) or ()}))
