"""Run the service: uvicorn with one worker or several, and the owner's first link."""

import socket

from sqlalchemy import make_url

from shortlist.errors import BadProblem
from shortlist.study.sql import Database
from shortlist.web.log import log_config
from shortlist.web.settings import Settings
from shortlist.web.tokens import Kind, has_owner, mint

GRACE = 10  # seconds for requests under way when the service is stopped


def owner_link(storage: str, base: str) -> str:
    """A new link that makes whoever opens it first the owner."""
    database = Database(storage)
    try:
        return f"{base}/join#{mint(database, Kind.owner_link)}"
    finally:
        database.close()


def first_link(storage: str, base: str) -> str | None:
    """The same for a storage that never had an owner."""
    database = Database(storage)
    try:
        return None if has_owner(database) else f"{base}/join#{mint(database, Kind.owner_link)}"
    finally:
        database.close()


def shown(storage: str) -> str:
    """The storage without its password."""
    return make_url(storage).render_as_string(hide_password=True)


def check_place(host: str, port: int) -> None:
    """Can we listen there? Asked first, so that a wrong port is one line and not a traceback."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as reason:
            raise BadProblem(f"cannot listen on {host}:{port}: {getattr(reason, 'strerror', None) or reason}") from None


def run(settings: Settings, host: str, port: int, workers: int, level: str) -> None:
    """Until it is stopped; requests under way are answered first."""
    import uvicorn

    settings.tell_workers()
    uvicorn.run(
        "shortlist.web.app:create_app", factory=True, host=host, port=port, workers=workers, access_log=False,
        log_config=log_config(level), timeout_graceful_shutdown=GRACE, server_header=False, proxy_headers=True,
    )  # fmt: skip
