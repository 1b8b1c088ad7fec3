"""One line of JSON per request and event, on standard error. Routes are written, never addresses' tails: no token, no
cookie, no name and no text ever gets here."""

import json
import logging
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shortlist.web.metrics import Metrics

log = logging.getLogger("shortlist.web")
QUIET = {"/healthz", "/metrics"}


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "worker": record.process,
            "event": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_config(level: str) -> dict[str, Any]:
    """For uvicorn, which sets up logging in every worker."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "shortlist.web.log.JsonLines"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "loggers": {
            "uvicorn": {"handlers": ["stderr"], "level": level.upper(), "propagate": False},
            "shortlist": {"handlers": ["stderr"], "level": level.upper(), "propagate": False},
        },
    }


class RequestLog:
    """Middleware: what was asked for, what was answered, how long it took."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        begin, status = time.perf_counter(), 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, sending)
        finally:
            self._note(scope, status, time.perf_counter() - begin)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "static" if scope["path"].startswith("/static/") else "unknown")
        self.metrics.request(scope["method"], route, status, seconds)
        level = logging.ERROR if status >= 500 else logging.DEBUG if route in QUIET else logging.INFO
        facts = {"method": scope["method"], "route": route, "status": status, "ms": round(1e3 * seconds, 1)}
        log.log(level, "request", extra={"facts": facts})
