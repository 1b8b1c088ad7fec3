"""Run the missing runs of a sweep and write its table. A finished run is never repeated."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from pathlib import Path

from experiments.engines import Engine, Task
from experiments.errors import BadExperiment
from experiments.measures import check_cell
from experiments.provenance import provenance
from experiments.sweep import Cell, Sweep
from experiments.tables import Log, Row, cell_rows, columns, definition_columns, open_log, read_table, write_table

OnProgress = Callable[["Progress"], None]


@dataclass
class Progress:
    """How far a sweep is. Work is counted in the seconds that the sweep's file expects."""

    runs: int
    work: float
    found: int = 0  # finished by an earlier call
    finished: int = 0
    work_done: float = 0.0


def table_path(sweep: Sweep, folder: Path) -> Path:
    return folder / f"{sweep.name}.csv"


def choose(sweep: Sweep, pattern: str | None, runs: int | None) -> tuple[Cell, ...]:
    """The cells to run, each with `runs` runs if given. Raises BadInput if this version cannot run one of them."""
    chosen = sweep.select(pattern)
    for cell in chosen:
        check_cell(cell)
    return chosen if runs is None else tuple(replace(cell, runs=runs) for cell in chosen)


def run_sweep(
    sweep: Sweep,
    chosen: Sequence[Cell],
    folder: Path,
    engines: AbstractContextManager[Engine],
    restart: bool = False,
    on_progress: OnProgress = lambda progress: None,
) -> list[Row]:
    """Run the missing runs of the chosen cells, write the table and return its rows for these cells."""
    table = table_path(sweep, folder)
    with engines as engine, open_log(table.with_suffix(".jsonl")) as log:
        others = {cell.id: _with_all_runs(cell, log) for cell in sweep.cells}
        sweep = replace(sweep, cells=tuple({**others, **_by_id(chosen)}.values()))
        again = {cell.id for cell in chosen} if restart else set()
        _check_log([cell for cell in sweep.cells if cell.id not in again], log)
        old = _kept_rows(sweep, chosen, log, table)
        log.forget(again)
        _run_missing(chosen, log, engine, on_progress)
        bounds = {row["id"]: float(row["mean"]) for rows in old.values() for row in rows}
        rows = {cell.id: cell_rows(sweep, cell, log, bounds) or old.get(cell.id, []) for cell in sweep.cells}
        write_table(table, columns(sweep), (row for cell in rows.values() for row in cell))
    return [row for cell in chosen for row in rows[cell.id]]


def _with_all_runs(cell: Cell, log: Log) -> Cell:
    """A cell that is not chosen keeps all its runs, even if it has more than the sweep asks for."""
    return replace(cell, runs=max(cell.runs, len(log.of(cell.id))))


def _by_id(cells: Sequence[Cell]) -> dict[str, Cell]:
    return {cell.id: cell for cell in cells}


def _run_missing(chosen: Sequence[Cell], log: Log, engine: Engine, on_progress: OnProgress) -> None:
    tasks = [Task(cell, number) for cell in chosen for number in range(cell.runs)]
    missing = [task for task in tasks if (task.cell.id, task.number) not in log.records]
    missing.sort(key=lambda task: -task.cell.seconds)  # the longest first, so that all workers end together
    found = len(tasks) - len(missing)
    progress = Progress(len(tasks), sum(task.cell.seconds for task in missing), found, found)
    on_progress(progress)
    if not missing:
        return
    with closing(engine(missing)) as finished:
        for task, played in finished:
            log.add({"cell": task.cell.id, "run": task.number, "definition": task.cell.definition, **played})
            progress.finished += 1
            progress.work_done += task.cell.seconds
            on_progress(progress)


def _check_log(cells: Sequence[Cell], log: Log) -> None:
    for cell in cells:
        for record in log.of(cell.id).values():
            if record["version"] != provenance().version:
                _refuse(log.path, cell, f"of shortlist {record['version']}, and this is {provenance().version}")
            if cell.measure not in record["result"]:
                _refuse(log.path, cell, f"without {cell.measure}")
            if record["definition"] != cell.definition:
                _refuse(log.path, cell, f"with {_difference(record['definition'], cell.definition)}")


def _difference(old: dict[str, object], new: dict[str, object]) -> str:
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return ", ".join(f"{name} {old.get(name)}, which is now {new.get(name)}" for name in changed)


def _kept_rows(sweep: Sweep, chosen: Sequence[Cell], log: Log, table: Path) -> dict[str, list[Row]]:
    """Rows of the earlier table for cells that are neither chosen nor in the log, if they are still valid."""
    others = {cell.id: cell for cell in sweep.cells if cell.id not in _by_id(chosen) and not log.of(cell.id)}
    kept: dict[str, list[Row]] = {}
    for row in read_table(table, columns(sweep)):
        if row["id"] not in _by_id(sweep.cells):
            raise BadExperiment(
                f"{table} has cell {row['id']}, which is not in {sweep.given} and would be lost; "
                "move the table away, or use another folder with --results DIR"
            )
        cell = others.get(row["id"])
        if cell is None:
            continue
        if row["version"] != provenance().version:
            _refuse(table, cell, f"of shortlist {row['version']}, and this is {provenance().version}")
        if any(row[name] != value for name, value in definition_columns(cell).items()):
            _refuse(table, cell, "with other parameters")
        kept.setdefault(cell.id, []).append(row)
    return kept


def _refuse(path: Path, cell: Cell, why: str) -> None:
    raise BadExperiment(
        f"{path} has cell {cell.id} {why}; repeat it with --restart, or use another folder with --results DIR"
    )
