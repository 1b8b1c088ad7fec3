"""`shortlist serve`: people judge in their browsers."""

from contextlib import suppress

import typer
from rich.console import Console

from shortlist.cli.options import STORAGE, console
from shortlist.errors import BadProblem
from shortlist.study.schema import shown
from shortlist.web import app as web
from shortlist.web.service import Settings

LOG_LEVELS = ("debug", "info", "warning", "error")


def serve(
    storage: str = STORAGE,
    host: str = typer.Option(
        "127.0.0.1", help="Address to listen on. 0.0.0.0 accepts connections from other machines."
    ),
    port: int = typer.Option(8000, min=1, max=65535, help="Port to listen on."),
    workers: int = typer.Option(1, min=1, max=64, help="Number of server processes. More than one needs PostgreSQL."),
    lease: float = typer.Option(600.0, min=10.0, help="Seconds a question is kept for a judge whose page is closed."),
    undo: float = typer.Option(30.0, min=0.0, help="Seconds in which a judge can take an answer back at no cost."),
    address: str | None = typer.Option(
        None, help="URL under which people reach the service, used in every link. Default: the one in your browser."
    ),
    owner_link: bool = typer.Option(False, "--owner-link", help="Print a new sign-in link for the owner, and exit."),
    log_level: str = typer.Option("info", help=f"Log level: {', '.join(LOG_LEVELS)}."),
) -> None:
    """Start the web service, where people judge pairs in their browsers.

    The owner creates studies on a web page and sends each judge a link. Every vote is saved at once; stop the service
    with Ctrl-C.
    """
    if workers > 1 and storage.startswith("sqlite"):
        raise BadProblem("SQLite allows only one server process; use --workers 1, or a postgresql:// storage")
    if log_level not in LOG_LEVELS:
        raise BadProblem(f"unknown log level {log_level!r}; choose one of {', '.join(LOG_LEVELS)}")
    address = None if address is None else web.check_public_address(address)
    base = address or f"http://{'localhost' if host in ('0.0.0.0', '::') else web.in_url(host)}:{port}"
    out = console()
    if owner_link:
        return out.print(web.owner_link(storage, base))
    web.check_address(host, port)
    link = web.first_link(storage, base)
    out.print(f"shortlist runs on {base}, with studies in {shown(storage)}. Press Ctrl-C to stop it.")
    if link is not None:
        out.print(f"\n  Open this link once to sign in as the owner:\n  {link}\n")
    else:
        out.print("For a new owner link, run: shortlist serve --owner-link, with the same storage and address.")
    if address is None and host in ("0.0.0.0", "::"):
        _offer_addresses(out, port)
    with suppress(KeyboardInterrupt):  # uvicorn shuts down cleanly before it raises
        web.run(Settings(storage, address, lease, undo), host, port, workers, log_level)
    out.print("Stopped. All votes are saved.")


def _offer_addresses(out: Console, port: int) -> None:
    """Judges' links have the address under which the owner opened the page, so localhost would work for nobody else."""
    found = web.own_addresses()
    if not found:
        return
    out.print("Other machines in this network reach it at:")
    for address in found:
        out.print(f"  http://{web.in_url(address)}:{port}")
    out.print(
        f"Judges' links use the address that you open the page with. To fix it: --address "
        f"http://{web.in_url(found[0])}:{port}"
    )
