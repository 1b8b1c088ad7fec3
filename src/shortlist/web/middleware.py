"""What happens around every request: size and rate limits, security headers, one log line and the metrics.

The log has one JSON object a line on standard error. It names routes, not addresses, so no token, cookie, name or text
gets into it.
"""

import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shortlist.web.service import Service, client_address

log = logging.getLogger("shortlist.web")
QUIET = {"/healthz", "/metrics"}  # routes that are logged at level debug
UPLOAD_PATH = "/api/uploads"
ENVELOPE = 10_000  # bytes around an uploaded file
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src {images}; media-src {media}; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "x-frame-options": "DENY",
}


def content_policy(image_sites: Sequence[str] = (), media_sites: Sequence[str] = ()) -> str:
    """What a page may load: the service's own files, and pictures, sound and films from these sites."""
    images, media = (" ".join(["'self'", *sites]) for sites in (image_sites, media_sites))
    return POLICY.format(images=images, media=media)


OWN_FILES = content_policy()
PROBLEM = "application/problem+json"
WORDS = {  # of the validator, by the type of the error; {0} is the field
    "missing": "{0} is missing",
    "extra_forbidden": "{0} is not a setting that is known here",
    "too_short": "{0}: give at least {min_length}",
    "too_long": "{0}: give at most {max_length}",
    "string_too_short": "{0} is empty; write something",
    "string_too_long": "{0} is too long; use at most {max_length} characters",
    "string_pattern_mismatch": "{0} has characters that are not allowed there; use letters, digits, spaces, . - _",
    "greater_than": "{0} must be greater than {gt}",
    "greater_than_equal": "{0} must be {ge} or more",
    "less_than": "{0} must be less than {lt}",
    "less_than_equal": "{0} must be {le} or less",
    "int_parsing": "{0} must be a whole number",
    "int_type": "{0} must be a whole number",
    "int_from_float": "{0} must be a whole number",
    "float_parsing": "{0} must be a number",
    "float_type": "{0} must be a number",
    "finite_number": "{0} must be a number",
    "bool_type": "{0} must be true or false",
    "bool_parsing": "{0} must be true or false",
    "string_type": "{0} must be a text",
    "list_type": "{0} must be a list",
    "literal_error": "{0} must be {expected}",
    "json_invalid": "the request is not valid JSON",
}
FORWARDED = (b"x-forwarded-for", b"forwarded", b"x-real-ip")


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error answer in the form of RFC 9457."""
    return JSONResponse(_problem_body(status, detail), status, headers, media_type=PROBLEM)


def _problem_body(status: int, detail: str) -> dict[str, Any]:
    return {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}


def plain_words(found: Mapping[str, Any]) -> str:
    """What the validator found, as a person would say it."""
    where, facts = _field(found["loc"]), found.get("ctx", {})
    kind = f"string_{found['type']}" if isinstance(found.get("input"), str) else str(found["type"])
    words = WORDS.get(kind) or WORDS.get(str(found["type"]))
    if words is None:
        return f"{where}: {str(found['msg']).removeprefix('Value error, ')}"
    return words.format(where, **facts)


def _field(place: Sequence[str | int]) -> str:
    """The field that a message is about: `name of item 3` for items.2.name."""
    parts = [part for part in place if part not in ("body", "path", "query", "header")]
    if len(parts) > 1 and isinstance(parts[1], int):
        one = f"{str(parts[0]).removesuffix('s')} {parts[1] + 1}"
        return one if len(parts) == 2 else f"{parts[2]} of {one}"
    return str(parts[0]) if parts else "the request"


def is_local(scope: Scope) -> bool:
    """Whether a request comes from this machine itself, and not through a proxy on it."""
    try:
        is_loopback = ip_address(client_address(scope)).is_loopback
    except ValueError:
        return False
    return is_loopback and not any(name in FORWARDED for name, _ in scope["headers"])


class RequestMiddleware:
    """Refuses requests that are too large or too frequent. A route that sets a security header keeps its own value."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        begin, status = time.perf_counter(), 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _add_headers(scope, MutableHeaders(scope=message))
            await send(message)

        try:
            limit = self._size_limit(scope["path"])
            refusal = self._refusal(scope, limit)
            if refusal is None:
                tagged = _tagged(scope, send_with_headers) if scope["method"] == "GET" else send_with_headers
                await self.app(scope, _limited(receive, limit), tagged)
            else:
                await _refuse(send_with_headers, *refusal)
        finally:
            self._record(scope, status, time.perf_counter() - begin)

    def _size_limit(self, path: str) -> int:
        settings = self.service.settings
        return settings.upload_bytes + ENVELOPE if path == UPLOAD_PATH else settings.body_bytes

    def _refusal(self, scope: Scope, limit: int) -> tuple[int, str] | None:
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if not self.service.addresses.allow(client_address(scope)):
            return 429, "too many requests; wait a moment"
        return None if length.isdigit() and int(length) <= limit else (413, _too_large(limit))

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "static" if scope["path"].startswith("/static/") else "unknown")
        self.service.metrics.request(scope["method"], route, status, seconds)
        level = logging.ERROR if status >= 500 else logging.DEBUG if route in QUIET else logging.INFO
        facts = {"method": scope["method"], "route": route, "status": status, "ms": round(1e3 * seconds, 1)}
        log.log(level, "request", extra={"facts": facts})


def _add_headers(scope: Scope, headers: MutableHeaders) -> None:
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    headers.setdefault("content-security-policy", OWN_FILES)
    headers.setdefault("cache-control", "no-cache" if scope["path"].startswith("/static/") else "no-store")
    if scope["scheme"] == "https":
        headers.setdefault("strict-transport-security", "max-age=31536000")


def _limited(receive: Receive, limit: int) -> Receive:
    """Read a body that does not say its length, up to the limit."""
    seen = 0

    async def limited() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise HTTPException(413, _too_large(limit))
        return message

    return limited


def _too_large(limit: int) -> str:
    return f"this request is too large; the limit is {limit:,} bytes"


def _tagged(scope: Scope, send: Send) -> Send:
    """Give every answer of the API an ETag, and answer 304 to who has it already. Streams pass as they are."""
    start: Message | None = None

    async def tagged(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start" and message["status"] == 200 and scope["path"].startswith("/api/"):
            start = message
            return
        if start is not None:
            held, start = start, None
            body = message.get("body", b"")
            if not message.get("more_body"):
                tag = f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'
                MutableHeaders(scope=held)["etag"] = tag
                if _is_known(scope, tag):
                    held = {**held, "status": 304}
                    message = {**message, "body": b""}
                    del MutableHeaders(scope=held)["content-length"]
            await send(held)
        await send(message)

    return tagged


def _is_known(scope: Scope, tag: str) -> bool:
    given = dict(scope["headers"]).get(b"if-none-match", b"").decode("latin-1")
    return tag in (part.strip().removeprefix("W/") for part in given.split(","))


async def _refuse(send: Send, status: int, detail: str) -> None:
    headers = [(b"content-type", PROBLEM.encode()), (b"connection", b"close")]
    if status == 429:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(_problem_body(status, detail)).encode()})


class JsonLines(logging.Formatter):
    """One JSON object a line."""

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
        "formatters": {"json": {"()": "shortlist.web.middleware.JsonLines"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "loggers": {
            "uvicorn": {"handlers": ["stderr"], "level": level.upper(), "propagate": False},
            "shortlist": {"handlers": ["stderr"], "level": level.upper(), "propagate": False},
        },
    }
