"""How much one token or address may ask for, and how big a request may be.

Rates are counted in each worker: with w workers a client may get w times as much. Tokens have 256 random bits, so
guessing is hopeless with or without a limit. Nobody with a good token waits because a neighbour guesses.
"""

import json
import threading
import time
from collections.abc import Callable

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shortlist.web.settings import Settings

BURST = 3.0  # seconds' worth that may come at once
KEPT = 20_000  # clients remembered
UPLOAD_PATH = "/api/uploads"
ENVELOPE = 10_000  # bytes around an uploaded file


class Rate:
    """A bucket per client that fills by `rate` a second and holds BURST seconds' worth, at least 10."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.full, self.clock = rate, max(BURST * rate, 10.0), clock
        self._lock = threading.Lock()
        self._levels: dict[str, tuple[float, float]] = {}

    def take(self, client: str) -> bool:
        """May this client do one more thing now?"""
        with self._lock:
            level = self._level(client) - 1.0
            if level >= 0:
                self._put(client, level)
            return level >= 0

    def _level(self, client: str) -> float:
        level, then = self._levels.get(client, (self.full, 0.0))
        return min(self.full, level + (self.clock() - then) * self.rate)

    def _put(self, client: str, level: float) -> None:
        if len(self._levels) >= KEPT:
            self._levels.clear()  # whoever floods us with addresses is not slowed down by a list of them
        self._levels[client] = level, self.clock()


class Limits:
    """Middleware: big bodies and quick addresses are turned away before anything is done for them."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings, self.addresses = app, settings, Rate(settings.address_rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        if not self.addresses.take(address(scope)):
            return await refuse(send, 429, "too many requests; wait a moment")
        limit = self._limit(scope["path"])
        said = dict(scope["headers"]).get(b"content-length", b"0")
        if not said.isdigit() or int(said) > limit:
            return await refuse(send, 413, f"a request may have at most {limit:,} bytes here")
        await self.app(scope, _counted(receive, limit), send)

    def _limit(self, path: str) -> int:
        return self.settings.upload_bytes + ENVELOPE if path == UPLOAD_PATH else self.settings.body_bytes


def address(scope: Scope) -> str:
    return str(scope["client"][0]) if scope.get("client") else "unknown"


def _counted(receive: Receive, limit: int) -> Receive:
    seen = 0

    async def counting() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise HTTPException(413, f"a request may have at most {limit:,} bytes here")
        return message

    return counting


async def refuse(send: Send, status: int, detail: str) -> None:
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    if status == 429:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"detail": detail}).encode()})
