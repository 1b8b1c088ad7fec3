"""`shortlist experiment`: list, run and plot the paper's experiments and ours."""

import json
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import typer

from shortlist.cli.options import JSON
from shortlist.cli.output import console, print_json, work_bar
from shortlist.errors import BadExperiment

app = typer.Typer(no_args_is_help=True, help="List, run and plot experiments: the paper's and ours.")
NAME = typer.Argument(..., help="An experiment from the list, or a TOML file of your own.")
RESULTS = typer.Option(Path("experiments/results"), help="Folder of tables and figures.")


@app.command("list")
def list_experiments(
    name: str = typer.Argument(None, help="Name its cells instead."),
    as_json: bool = JSON,
) -> None:
    """The experiments, or the cells of one."""
    from shortlist.experiments.sweep import load_sweep, sweep_names

    if name is not None:
        return _list_cells(load_sweep(name), as_json)
    found = [_about(load_sweep(name)) for name in sweep_names()]
    if as_json:
        return print_json({"experiments": found})
    width = max(len(entry["name"]) for entry in found)
    for entry in found:
        size = f"{entry['cells']} cells, {entry['runs']:,} runs, about {_duration(entry['seconds'])} of one core"
        console().print(f"{entry['name']:<{width}}  {entry['title']}")
        console().print(f"{'':<{width}}  {size if entry['cells'] else 'plotted from ' + ', '.join(entry['sources'])}")


def _about(sweep: Any) -> dict[str, Any]:
    work = sum(cell.runs * cell.seconds for cell in sweep.cells)
    size = {"cells": len(sweep.cells), "runs": sum(cell.runs for cell in sweep.cells), "seconds": work}
    return {"name": sweep.name, "title": sweep.title, **size, "sources": sweep.figure.get("sources", [])}


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _list_cells(sweep: Any, as_json: bool) -> None:
    if as_json:
        cells = [{"id": cell.id, "runs": cell.runs, **cell.parameters} for cell in sweep.cells]
        return print_json({**_about(sweep), "cells": cells})
    for cell in sweep.cells:
        console().print(f"{cell.id}  {_runs(cell.runs)}")


def _runs(count: object) -> str:
    return f"{count} run" if str(count) == "1" else f"{count} runs"


@app.command()
def run(
    name: str = NAME,
    cell: str = typer.Option(None, help="Only cells with this id; * matches anything."),
    runs: int = typer.Option(None, min=1, help="Runs of each cell, instead of the experiment's own numbers."),
    jobs: int = typer.Option(None, min=1, help="Processes; all cores if left out. Results do not depend on it."),
    cluster: str = typer.Option(None, help="Address of a Dask scheduler to play on, e.g. tcp://host:8786."),
    restart: bool = typer.Option(False, "--restart", help="Forget the finished runs of these cells first."),
    results: Path = RESULTS,
    as_json: bool = JSON,
) -> None:
    """Play an experiment. It can be stopped at any time; the same command goes on where it was."""
    from shortlist.experiments import run as runner
    from shortlist.experiments.cluster import cluster as workers
    from shortlist.experiments.engines import local
    from shortlist.experiments.sweep import load_sweep

    sweep = load_sweep(name)
    if not sweep.cells:
        sources = " and ".join(sweep.figure["sources"])
        raise BadExperiment(f"{name} has no runs of its own; run {sources}, then: shortlist experiment plot {name}")
    chosen = runner.choose(sweep, cell, runs)
    engine = local(jobs or os.cpu_count() or 1) if cluster is None else workers(cluster)
    standing = runner.Standing(0, 0.0)
    signal.signal(signal.SIGTERM, _stop)
    try:
        with work_bar(name) as show:

            def note(now: runner.Standing) -> None:
                nonlocal standing
                standing = now
                show(now.work, now.work_done, now.runs, now.finished)

            rows = runner.run_sweep(sweep, chosen, results, engine, restart, note)
    except KeyboardInterrupt:
        again = shlex.join(["shortlist", *(word for word in sys.argv[1:] if word != "--restart")])
        print(f"{standing.finished} of {standing.runs} runs are saved; go on with: {again}", file=sys.stderr)
        raise
    table = runner.table_path(sweep, results)
    played = standing.finished - standing.found
    if as_json:
        cells = [_as_numbers(row) for row in rows]
        return print_json({"experiment": name, "table": str(table), "played": played, "cells": cells})
    _show_rows(rows, sweep.measure)
    console().print(f"{played:,} runs played; the table is {table}. Next: shortlist experiment plot {name}")


def _stop(*_: object) -> None:
    """A kill is as good as Ctrl-C; whoever kills a group of processes may say it twice."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _as_numbers(row: dict[str, str]) -> dict[str, Any]:
    from shortlist.experiments.results import WORDS

    return {name: value if name in WORDS else json.loads(value or "null") for name, value in row.items()}


def _show_rows(rows: list[dict[str, str]], measure: str) -> None:
    if measure == "shares":
        return
    width = max(len(row["id"]) for row in rows)
    for row in rows:
        spread = f" ± {float(row['standard_error']):,.3g}" if row["standard_error"] else ""
        right = f", {row['correct']} correct" if row["correct"] else ""
        mean = float(row["mean"])
        shown = f"{mean:,.0f}" if mean >= 100 else f"{mean:.3g}"
        console().print(f"{row['id']:<{width}}  {shown:>12} {measure}{spread}, {_runs(row['runs'])}{right}")


@app.command()
def plot(name: str = NAME, results: Path = RESULTS, as_json: bool = JSON) -> None:
    """Draw an experiment's figure from its table, as PNG and PDF."""
    from shortlist.experiments.figures import draw
    from shortlist.experiments.sweep import load_sweep

    files = [str(path) for path in draw(load_sweep(name), results)]
    if as_json:
        return print_json({"experiment": name, "files": files})
    console().print(f"Drawn: {', '.join(files)}")
