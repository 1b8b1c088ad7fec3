"""`python -m experiments`: list, run and plot the experiments of the paper and of this project."""

import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from experiments import engines
from experiments import run as runner
from experiments.errors import BadExperiment
from experiments.figures import draw, read_rows
from experiments.race_figures import markdown
from experiments.sweep import RACES, Sweep, load_sweep, sweep_names
from experiments.tables import TEXT_COLUMNS, Row
from shortlist.errors import ShortlistError

COMMAND = "python -m experiments"
LONG_RUNS = 1800.0  # seconds over which the speed is averaged: some runs take minutes

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="List, run and plot the experiments of the paper and of this project.",
)
NAME = typer.Argument(..., help="The name of an experiment, or a TOML file of your own.")
RESULTS = typer.Option(Path("experiments/results"), help="Folder of tables and figures.")
JSON = typer.Option(False, "--json", help="Print one JSON object to standard output.")


@app.command("list")
def list_experiments(
    name: str = typer.Argument(None, help="List the cells of this experiment."),
    as_json: bool = JSON,
) -> None:
    """List the experiments, or the cells of one experiment."""
    if name is not None:
        return _list_cells(load_sweep(name), as_json)
    found = [_about(load_sweep(name)) for name in sweep_names()]
    if as_json:
        return _print_json({"experiments": found})
    width = max(len(entry["name"]) for entry in found)
    for entry in found:
        size = f"{entry['cells']} cells, {entry['runs']:,} runs, about {_duration(entry['seconds'])} of one core"
        print(f"{entry['name']:<{width}}  {entry['title']}")
        print(f"{'':<{width}}  {size if entry['cells'] else 'plotted from ' + ', '.join(entry['sources'])}")


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def _about(sweep: Sweep) -> dict[str, Any]:
    work = sum(cell.runs * cell.seconds for cell in sweep.cells)
    size = {"cells": len(sweep.cells), "runs": sum(cell.runs for cell in sweep.cells), "seconds": work}
    return {"name": sweep.name, "title": sweep.title, **size, "sources": sweep.figure.get("sources", [])}


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _list_cells(sweep: Sweep, as_json: bool) -> None:
    if as_json:
        cells = [{"id": cell.id, "runs": cell.runs, **cell.parameters} for cell in sweep.cells]
        return _print_json({**_about(sweep), "cells": cells})
    for cell in sweep.cells:
        print(f"{cell.id}  {_runs(cell.runs)}")


def _runs(count: object) -> str:
    return f"{count} run" if str(count) == "1" else f"{count} runs"


@app.command()
def run(
    name: str = NAME,
    cell: str = typer.Option(None, help="Run only the cells with this id; * matches anything."),
    runs: int = typer.Option(None, min=1, help="Runs of each cell, instead of the numbers in the experiment."),
    jobs: int = typer.Option(None, min=1, help="Processes. Default: all cores. Results do not depend on it."),
    cluster: str = typer.Option(None, help="Run on the Dask cluster at this scheduler address, e.g. tcp://host:8786."),
    restart: bool = typer.Option(False, "--restart", help="Discard the finished runs of these cells first."),
    results: Path = RESULTS,
    as_json: bool = JSON,
) -> None:
    """Run an experiment. Every finished run is saved; interrupt at any time and run the command again to resume."""
    sweep = load_sweep(name)
    if not sweep.cells:
        sources = " and ".join(sweep.figure["sources"])
        raise BadExperiment(f"{name} has no runs of its own; run {sources}, then: {COMMAND} plot {name}")
    chosen = runner.choose(sweep, cell, runs)
    engine = engines.local(jobs or os.cpu_count() or 1) if cluster is None else engines.cluster(cluster)
    with _progress(name) as (progress, note):
        rows = runner.run_sweep(sweep, chosen, results, engine, restart, note)
    table = runner.table_path(sweep, results)
    new = progress.finished - progress.found
    if as_json:
        cells = [_as_numbers(row) for row in rows]
        return _print_json({"experiment": name, "table": str(table), "new_runs": new, "cells": cells})
    _show_rows(rows, sweep.measure)
    print(f"{new:,} new runs; the table is {table}. Next: {COMMAND} plot {name}")


@contextmanager
def _progress(name: str) -> Iterator[tuple[runner.Progress, Callable[[runner.Progress], None]]]:
    """The progress of a sweep, also as a bar; an interruption says how much is saved and how to resume."""
    progress = runner.Progress(0, 0.0)
    with _killed_as_interrupted(), _work_bar(name) as show:

        def note(now: runner.Progress) -> None:
            vars(progress).update(vars(now))
            show(now)

        try:
            yield progress, note
        except KeyboardInterrupt:
            again = shlex.join(word for word in sys.argv[1:] if word != "--restart")
            saved = f"{progress.finished} of {progress.runs} runs are saved"
            print(f"{saved}; resume with: {COMMAND} {again}", file=sys.stderr)
            raise


@contextmanager
def _killed_as_interrupted() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C. Later ones are ignored: `timeout` sends it to the process and to its group."""

    def stop(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is stop:
            signal.signal(signal.SIGTERM, before)


@contextmanager
def _work_bar(title: str) -> Iterator[Callable[[runner.Progress], None]]:
    """A bar on standard error, in proportion to the expected time of runs rather than to their number."""
    count = TextColumn("{task.fields[finished]:,} of {task.fields[runs]:,} runs")
    columns = TextColumn("{task.description}"), BarColumn(), count, TimeElapsedColumn(), TimeRemainingColumn()
    screen = Console(stderr=True)
    with Bar(
        *columns, console=screen, transient=True, disable=not screen.is_terminal, speed_estimate_period=LONG_RUNS
    ) as bar:
        task = bar.add_task(title, total=None, finished=0, runs=0)
        yield lambda now: bar.update(
            task, total=now.work, completed=now.work_done, finished=now.finished, runs=now.runs
        )


def _as_numbers(row: Row) -> dict[str, Any]:
    return {name: value if name in TEXT_COLUMNS else json.loads(value or "null") for name, value in row.items()}


def _show_rows(rows: list[Row], measure: str) -> None:
    if measure in ("shares", "exact"):
        return
    width = max(len(row["id"]) for row in rows)
    for row in rows:
        spread = f" ± {float(row['standard_error']):,.3g}" if row["standard_error"] else ""
        right = f", {row['correct']} correct" if row["correct"] else ""
        mean = float(row["mean"])
        shown = f"{mean:,.0f}" if mean >= 100 else f"{mean:.3g}"
        unit = "votes" if measure == "proofs" else measure
        print(f"{row['id']:<{width}}  {shown:>12} {unit}{spread}, {_runs(row['runs'])}{_proved(row)}{right}")


def _proved(row: Row) -> str:
    return f", {row['proved']} proved" if "proved" in row else ""


@app.command()
def plot(name: str = NAME, results: Path = RESULTS, as_json: bool = JSON) -> None:
    """Draw an experiment's figure from its table, as PNG and PDF."""
    files = [str(path) for path in draw(load_sweep(name), results)]
    if as_json:
        return _print_json({"experiment": name, "files": files})
    print(f"Figures: {', '.join(files)}")


@app.command()
def table(name: str = NAME, results: Path = RESULTS) -> None:
    """Print the tables of the documentation, in Markdown, from the table of an experiment that compares rules."""
    sweep = load_sweep(name)
    if sweep.measure not in RACES:
        raise BadExperiment(f"{name} compares no sampling rules; see {runner.table_path(sweep, results)}")
    for line in markdown(read_rows(sweep, results), sweep.measure, sweep.figure["reference"]):
        print(line)


def main() -> None:
    """Run the command. An error is one line on standard error and exit code 2; an interruption is exit code 130."""
    try:
        code = app(standalone_mode=False)
    except ShortlistError as error:
        _fail(str(error), 2)
    except (typer.Abort, KeyboardInterrupt):
        _fail("interrupted", 130)
    except Exception as error:
        message = getattr(error, "format_message", None)  # of typer's errors about wrong calls
        if message is None:
            raise
        said = message().replace("\n", " ").strip()
        _fail(said, 2) if said else sys.exit(2)  # without a command, typer prints the help
    if code == 130:  # typer turns Ctrl-C into this exit code
        _fail("interrupted", 130)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> None:
    print(f"experiments: {message}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
