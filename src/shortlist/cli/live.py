"""What a run looks like while it goes on: a few lines on standard error that renew themselves."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

LOOK = 2.0  # seconds between looks at the error bound
SHARE = 0.1  # of the time may go into looking
MANY = 12  # names in a line


class RunDisplay:
    """`with RunDisplay(study, title) as display`, and `display.show` as the run's progress."""

    def __init__(self, study: Any, title: str) -> None:
        self._study, self._title = study, title
        self._console = Console(stderr=True, highlight=False, markup=False)
        self._live = Live(self._lines(None), console=self._console, transient=True, refresh_per_second=4)
        self._verdict, self._next_look = study.verdict, 0.0
        self._began, self._first = time.monotonic(), study.verdict.votes

    def __enter__(self) -> "RunDisplay":
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.stop()

    def show(self, so_far: Any) -> None:
        """Called after every vote."""
        if self._live.is_started:
            self._live.update(self._lines(so_far))

    def warn(self, text: str) -> None:
        """A line that stays."""
        self._console.print(f"note: {text}", soft_wrap=True)

    def _look(self, now: float) -> Any:
        """The verdict in full, which may take a while: not too often."""
        if now >= self._next_look:
            self._verdict = self._study.examine()
            took = time.monotonic() - now
            self._next_look = now + took + max(LOOK, took / SHARE)
        return self._verdict

    def _lines(self, so_far: Any) -> Table:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim")
        table.add_column(overflow="fold")
        table.add_row(Text("study"), Text(self._title))
        if so_far is None:
            return table
        now = time.monotonic()
        known, votes = self._look(now), so_far.verdict.votes
        speed = (votes - self._first) / max(now - self._began, 0.1)
        table.add_row("votes", f"{votes:,}{_left(so_far.verdict.votes_left)}, {speed:,.1f} a second")
        table.add_row("error bound", f"{known.error_bound:.2g}" if known.error_bound < 1 else "nothing proved yet")
        for word, names in (("in", known.certainly_in), ("undecided", known.undecided), ("out", known.certainly_out)):
            table.add_row(word, Text(_listed(names)))
        costs = so_far.costs
        spent = f"{costs.calls:,} made, {costs.saved:,} saved, {costs.retries:,} retries, {costs.skips:,} skipped"
        tokens = costs.prompt_tokens + costs.completion_tokens
        table.add_row("calls", spent + (f", {tokens:,} tokens" if tokens else ""))
        return table


def _left(votes: float | None) -> str:
    return f", about {votes:,.0f} to go" if votes is not None and votes < 1e7 else ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MANY} more" if len(names) > MANY else ""
    return f"{len(names)}: {', '.join(names[:MANY])}{more}" if names else "-"
