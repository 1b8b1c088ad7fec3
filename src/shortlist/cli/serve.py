"""`shortlist serve`: judging on the web."""

from contextlib import suppress
from importlib.util import find_spec

import typer

from shortlist.cli.options import STORAGE
from shortlist.cli.output import console
from shortlist.errors import BadProblem, NotInstalled


def serve(
    storage: str = STORAGE,
    host: str = typer.Option("127.0.0.1", help="Address to listen on; 0.0.0.0 lets other machines in."),
    port: int = typer.Option(8000, min=1, max=65535, help="Port to listen on."),
    workers: int = typer.Option(1, min=1, max=64, help="Processes; more than one needs PostgreSQL."),
    lease: float = typer.Option(600.0, min=10.0, help="Seconds a judge may take over a question."),
    address: str = typer.Option(None, help="How judges reach it, for the owner's link; left out, http://HOST:PORT."),
    owner_link: bool = typer.Option(False, "--owner-link", help="Print a new link for the owner and end."),
    log_level: str = typer.Option("info", help="debug, info, warning or error."),
) -> None:
    """Let judges vote in their browsers: one page for the owner, a link for each judge."""
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise NotInstalled("the web service", "fastapi and uvicorn", "web")
    if workers > 1 and storage.startswith("sqlite"):
        raise BadProblem("SQLite lets one process write at a time; use --workers 1, or a postgresql:// storage")
    if log_level not in ("debug", "info", "warning", "error"):
        raise BadProblem(f"log level {log_level!r} is unknown; choose debug, info, warning or error")
    from shortlist.web import serve as web
    from shortlist.web.settings import Settings

    base = (address or f"http://{'localhost' if host in ('0.0.0.0', '::') else host}:{port}").rstrip("/")
    out = console()
    if owner_link:
        return out.print(web.owner_link(storage, base))
    web.check_place(host, port)
    link = web.first_link(storage, base)
    out.print(f"shortlist on {base}, studies in {web.shown(storage)}. Ctrl-C stops it; nothing is lost.")
    if link is not None:
        out.print(f"\n  Open this once to become the owner:\n  {link}\n")
    else:
        out.print("A new link for the owner: shortlist serve --owner-link, with the same storage and address.")
    with suppress(KeyboardInterrupt):  # uvicorn has stopped in good order before it passes this on
        web.run(Settings(storage=storage, lease=lease), host, port, workers, log_level)
    out.print("stopped; all votes are saved")
