"""Run the service: uvicorn with one or more workers, and the owner's first link."""

import os
import socket
import tempfile

import uvicorn
from sqlalchemy import make_url

from shortlist.errors import BadProblem
from shortlist.study.sql import Database
from shortlist.web.auth import Kind, create_token, has_owner
from shortlist.web.middleware import log_config
from shortlist.web.service import METRICS_FOLDER, Settings

GRACE = 10  # seconds for running requests when the service is stopped
UNRESPONSIVE = 120  # seconds until a silent worker is replaced; on a busy machine a start takes longer than uvicorn's 5


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


def shown(storage: str) -> str:
    """The storage without its password."""
    return make_url(storage).render_as_string(hide_password=True)


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
