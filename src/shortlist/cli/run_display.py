"""What `shortlist run` shows while it runs."""

import time
from collections.abc import Iterator, Sequence
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from shortlist.cli.options import FAR
from shortlist.core.stopping.base import Verdict
from shortlist.judges.estimate import Estimate
from shortlist.judges.run_log import StudyRun
from shortlist.study.study import Study

PERIOD = 2.0  # seconds between updates of the error bound
SHARE = 0.1  # of the time that may go into computing it
MANY = 12  # names in a line


class RunDisplay:
    """`with RunDisplay(study, title) as display`; give `display.show` to the run as its progress."""

    def __init__(self, study: Study, title: str) -> None:
        self._study, self._title = study, title
        self._console = Console(stderr=True, highlight=False, markup=False)
        self._live = Live(self._lines(None), console=self._console, transient=True, refresh_per_second=4)
        self._verdict, self._next_update, self._filled = study.verdict, 0.0, 0.0
        self._began, self._first = time.monotonic(), study.verdict.votes

    def __enter__(self) -> "RunDisplay":
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.stop()

    def show(self, so_far: StudyRun) -> None:
        """Called after every vote."""
        if self._live.is_started:
            self._live.update(self._lines(so_far))

    def warn(self, text: str) -> None:
        """Print a line that stays."""
        self._console.print(f"note: {text}", soft_wrap=True)

    def _examined(self, now: float) -> Verdict[str]:
        """The verdict in full, which can take seconds: not too often."""
        if now >= self._next_update:
            self._verdict = self._study.examine()
            shares = self._study.filled.values()
            self._filled = sum(shares) / len(shares)
            took = time.monotonic() - now
            self._next_update = now + took + max(PERIOD, took / SHARE)
        return self._verdict

    def _lines(self, so_far: StudyRun | None) -> Table:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim")
        table.add_column(overflow="fold")
        table.add_row(Text("study"), Text(self._title))
        if so_far is None:
            return table
        now = time.monotonic()
        known, votes = self._examined(now), so_far.verdict.votes
        speed = (votes - self._first) / max(now - self._began, 0.1)
        table.add_row("votes", f"{votes:,}{_left(so_far.verdict.votes_left)}, {speed:,.1f} per second")
        table.add_row("error bound", f"{known.error_bound:.2g}" if known.error_bound < 1 else "none yet")
        table.add_row("proof", f"{self._filled:.0%} filled")
        table.add_row("proved in", Text(_listed(known.certainly_in)))
        table.add_row("proved out", Text(_listed(known.certainly_out)))
        table.add_row("undecided", Text(_listed(known.undecided)))
        table.add_row("calls", calls_made(so_far))
        if so_far.costs.cost:
            table.add_row("cost", _cost(so_far, votes - self._first))
        return table


def calls_made(run: StudyRun) -> str:
    """What the run cost, in words."""
    costs = run.costs
    tokens = costs.prompt_tokens + costs.completion_tokens
    parts = f"{costs.calls:,} made, {costs.saved:,} saved, {costs.retries:,} retries, {costs.skips:,} skipped"
    parts += f", {tokens:,} tokens" if tokens else ""
    return parts + (f", cost {costs.cost:.4g}" if costs.cost else "")


def _cost(run: StudyRun, votes: int) -> str:
    """What this run cost, and what is still to come if votes go on costing as much."""
    left = run.verdict.votes_left
    to_come = "" if left is None or left >= FAR or votes < 1 else f", about {run.costs.cost / votes * left:.4g} to come"
    return f"{run.costs.cost:.4g} in this run{to_come}"


def estimate_lines(found: Estimate, max_calls: int | None, max_cost: float | None) -> Iterator[str]:
    """What a run will need, in words. Ceilings are named if the run may reach them."""
    known = f"{found.known_votes:,} votes so far" if found.known_votes else "a prior, as nothing is known yet"
    yield f"By {found.simulations} simulations from {known}; nothing was asked."
    more = " or more" if found.cut_off else ""
    yield f"Calls: {found.calls.low:,.0f} to {found.calls.high:,.0f}{more}, in the middle {found.calls.middle:,.0f}."
    if found.cost is None:
        yield "Cost: not known without a price."
    else:
        low, middle, high = found.cost
        so_far = f", and {found.spent:.4g} is spent" if found.spent else ""
        yield f"Cost: {low:.2g} to {high:.2g}{more}, in the middle {middle:.2g}{so_far}."
    if found.proved < found.simulations:
        yield f"{found.simulations - found.proved} of the simulations ended without a proof."
    if max_calls is not None and found.calls.high > max_calls:
        yield f"The run may reach --max-calls {max_calls:,}."
    if max_cost is not None and found.cost is not None and found.spent + found.cost.high > max_cost:
        yield f"The run may reach --max-cost {max_cost:g}."


def _left(votes: float | None) -> str:
    return f", about {votes:,.0f} to go" if votes is not None and votes < FAR else ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MANY} more" if len(names) > MANY else ""
    return f"{len(names)}: {', '.join(names[:MANY])}{more}" if names else "-"
