"""Finished runs on disk: a log with one JSON line per run, and the table that is computed from it.

The log is only appended to, so a kill loses at most the runs in progress; an incomplete last line is dropped. Tables
and figures are replaced atomically. A table contains no times and does not depend on the order in which runs finish:
the same runs give the same bytes. A cell is summarized by its runs 0 to m - 1 without a gap, because short runs
finish first and would bias the mean.
"""

import csv
import io
import json
import math
import os
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import numpy as np

from experiments.errors import BadExperiment, RunsFailed
from experiments.races import CHECKPOINTS
from experiments.sweep import LOWER_BOUND, PARAMETERS, RACE_PARAMETERS, WORLD, Cell, Sweep, parameters_of
from shortlist.core.pairs import all_pairs

Record = dict[str, Any]  # cell, run, definition, result, seconds, version, commit
Row = dict[str, str]
SHAPE = {"cell": str, "run": int, "definition": dict, "result": dict, "version": str, "commit": str}
TEXT_COLUMNS = ("id", "instance", "method", "stopping", "version", "commit")  # the other columns are numbers
FIXED = ("equally-spaced",)  # instances whose world is always the same: they need one lower bound
SPREAD = ("mean", "standard_error", "median", "quartile_1", "quartile_3", "min", "max")
PROVENANCE = ("version", "commit")
SUMMARY = ("id", *PARAMETERS, "runs", *SPREAD, "correct", "times_bound", "times_bound_error", *PROVENANCE)
NOTHING: Mapping[str, float] = MappingProxyType({})
DIFFERENCE = ("difference", "difference_error")  # from the sweep's reference, run by run
EXACT = ("id", *RACE_PARAMETERS, "runs", "votes", "mean", "standard_error", *DIFFERENCE, *PROVENANCE)
PROOFS = ("id", *RACE_PARAMETERS, "runs", *SPREAD, "proved", "correct", *DIFFERENCE, *PROVENANCE)
BY_PAIR = ("id", *PARAMETERS, "runs", "first", "second", "mean", "standard_error", *PROVENANCE)


class Log:
    """The finished runs by cell and number. `add` and `forget` also write to the file."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path, self._file = path, file
        self.records: dict[tuple[str, int], Record] = {}
        text = file.read()
        whole = text.rfind(b"\n") + 1
        file.truncate(whole)
        for place, line in enumerate(text[:whole].splitlines(), 1):
            self._take(_parsed(path, place, line))

    def add(self, record: Record) -> None:
        self._write(record)

    def forget(self, cells: Iterable[str]) -> None:
        """Remove all runs of these cells."""
        gone = {cell for cell, _ in self.records} & set(cells)
        if gone:
            self._write({"forget": sorted(gone)})

    def of(self, cell: str) -> dict[int, Record]:
        """The finished runs of a cell, by number."""
        return {run: record for (name, run), record in self.records.items() if name == cell}

    def _write(self, line: Record) -> None:
        data = json.dumps(line).encode() + b"\n"
        try:
            written = self._file.write(data)
        except OSError as reason:
            raise RunsFailed(f"cannot write {self.path}: {reason.strerror}; the runs in it are safe") from None
        if written != len(data):
            raise RunsFailed(f"cannot write all of a line to {self.path}: is the disk full? The runs in it are safe")
        self._take(line)

    def _take(self, line: Record) -> None:
        if "forget" in line:
            self.records = {key: value for key, value in self.records.items() if key[0] not in line["forget"]}
        else:
            self.records[line["cell"], line["run"]] = line


def _parsed(path: Path, place: int, line: bytes) -> Record:
    with suppress(ValueError, TypeError, AttributeError):
        record: Record = json.loads(line, parse_constant=_no_number)
        shape = {"forget": list} if "forget" in record else SHAPE
        if all(isinstance(record.get(name), kind) for name, kind in shape.items()) and record.get("result") != {}:
            return record
    raise BadExperiment(f"line {place} of {path} is not a finished run; move the file away, or repair it")


def _no_number(constant: str) -> float:
    raise ValueError(constant)  # NaN and Infinity, which are never a result


@contextmanager
def open_log(path: Path) -> Iterator[Log]:
    """Open the log with an exclusive lock."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b", buffering=0)  # a failed write must not be tried again when the file is closed
    except OSError as reason:
        raise BadExperiment(f"cannot write {path}: {reason.strerror}; choose another folder with --results") from None
    with file:
        _hold(path, file)
        file.seek(0)
        yield Log(path, file)


def _hold(path: Path, file: IO[bytes]) -> None:
    with suppress(ImportError):  # not on Windows
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadExperiment(f"{path} is in use: this experiment is running; wait until it ends") from None


def write_table(path: Path, columns: Iterable[str], rows: Iterable[Row]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with whole_file(path) as draft:
        draft.write_text(text.getvalue(), encoding="utf-8")


def read_table(path: Path, columns: Iterable[str]) -> list[Row]:
    """The rows of a table with these columns; none if the file does not exist."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = csv.reader(file)
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as reason:
        raise BadExperiment(f"cannot read {path}: {reason}") from None
    if header != list(columns):
        raise BadExperiment(f"{path} does not have the columns of this experiment's table; move it away")
    for place, row in enumerate(rows, 2):
        if len(row) != len(header) or not all(map(_fits, header, row)):
            raise BadExperiment(f"line {place} of {path} is not a row of this table; move the file away, or repair it")
    return [dict(zip(header, row, strict=True)) for row in rows]


def _fits(column: str, value: str) -> bool:
    """Numbers may be missing, except the mean."""
    if column in TEXT_COLUMNS or (not value and column != "mean"):
        return True
    with suppress(ValueError):
        return math.isfinite(float(value))
    return False


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A draft to write to. It replaces the file when the block ends without an error."""
    draft = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield draft
        os.replace(draft, path)
    except OSError as reason:
        raise BadExperiment(f"cannot write {path}: {reason.strerror}") from None
    finally:
        draft.unlink(missing_ok=True)


def columns(sweep: Sweep) -> tuple[str, ...]:
    return {"shares": BY_PAIR, "exact": EXACT, "proofs": PROOFS}.get(sweep.measure, SUMMARY)


def cell_rows(sweep: Sweep, cell: Cell, log: Log, kept: Mapping[str, float] = NOTHING) -> list[Row]:
    """The rows of a cell: one, or one per pair for shares and per number of votes for exact; none before its first run
    is finished.

    `kept` has the means of cells that are only in an earlier table.
    """
    records = prefix(log.of(cell.id), cell.runs)
    if not records:
        return []
    values = [record["result"][sweep.measure] for record in records]
    shared = {**definition_columns(cell), "runs": len(records), **_provenance(records)}
    if sweep.measure == "shares":
        return [_text({**shared, **row}) for row in _pair_rows(cell, values)]
    if sweep.measure == "exact":
        return [_text({**shared, **row}) for row in _vote_rows(values, _reference(sweep, cell, log))]
    if sweep.measure == "proofs":
        proofs = [record["result"] for record in records if record["result"]["proved"]]
        ends = {"proved": len(proofs), "correct": sum(proof["correct"] for proof in proofs)}
        apart = _difference(values, _reference(sweep, cell, log))
        return [_text({**shared, **_spread(values), **ends, **apart})]
    bounds = [_bound(sweep, cell, log, kept, number) for number in range(len(records))]
    correct = [record["result"].get("correct") for record in records]
    right = None if None in correct else sum(correct)
    return [_text({**shared, **_spread(values), "correct": right, **_times(values, bounds)})]


def _reference(sweep: Sweep, cell: Cell, log: Log) -> list[Any]:
    """What the sweep's reference measured in the same worlds; nothing for itself."""
    same = (*WORLD, "stopping")
    for other in sweep.cells:
        if other["method"] == sweep.figure["reference"] and all(other[name] == cell[name] for name in same):
            runs = [] if other.id == cell.id else prefix(log.of(other.id), other.runs)
            return [record["result"][sweep.measure] for record in runs]
    return []


def _vote_rows(values: Sequence[Sequence[bool]], reference: Sequence[Sequence[bool]]) -> Iterable[dict[str, Any]]:
    for place, votes in enumerate(CHECKPOINTS[: len(values[0])]):
        right, other = ([float(run[place]) for run in runs] for runs in (values, reference))
        spread = {"mean": statistics.fmean(right), "standard_error": _standard_error(right)}
        yield {"votes": votes, **spread, **_difference(right, other)}


def _difference(values: Sequence[float], reference: Sequence[float]) -> dict[str, Any]:
    """How far the values are above the reference's, in the runs that both have."""
    apart = [float(value - other) for value, other in zip(values, reference, strict=False)]
    return dict(zip(DIFFERENCE, (statistics.fmean(apart), _standard_error(apart)), strict=True)) if apart else {}


def prefix(records: dict[int, Record], most: int) -> list[Record]:
    """Runs 0, 1, … until the first that is not finished."""
    found: list[Record] = []
    while len(found) < most and len(found) in records:
        found.append(records[len(found)])
    return found


def definition_columns(cell: Cell) -> Row:
    return _text({"id": cell.id, **{name: cell[name] for name in parameters_of(cell.measure)}})


def _spread(values: Sequence[float]) -> dict[str, Any]:
    low, middle, high = np.percentile(values, [25, 50, 75]).tolist()
    told = statistics.fmean(values), _standard_error(values), middle, low, high, min(values), max(values)
    return dict(zip(SPREAD, told, strict=True))


def _standard_error(values: Sequence[float]) -> float | None:
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None


def _times(values: Sequence[float], bounds: Sequence[float | None]) -> dict[str, Any]:
    """Comparisons divided by the lower bound of the same world, run by run."""
    ratios = [value / bound for value, bound in zip(values, bounds, strict=True) if bound is not None]
    if len(ratios) < len(values):
        return {}
    return {"times_bound": statistics.fmean(ratios), "times_bound_error": _standard_error(ratios)}


def _bound(sweep: Sweep, cell: Cell, log: Log, kept: Mapping[str, float], number: int) -> float | None:
    for other in sweep.cells:
        if other["method"] == LOWER_BOUND and all(other[name] == cell[name] for name in WORLD):
            always = cell["instance"] in FIXED
            record = log.records.get((other.id, 0 if always else number))
            if record is not None:
                return float(record["result"]["comparisons"])
            return kept.get(other.id) if always else None
    return None


def _pair_rows(cell: Cell, values: Sequence[Sequence[float]]) -> Iterable[dict[str, Any]]:
    for first, second, shares in zip(*all_pairs(cell["n"]), zip(*values, strict=True), strict=True):
        spread = {"mean": statistics.fmean(shares), "standard_error": _standard_error(shares)}
        yield {"first": int(first), "second": int(second), **spread}


def _provenance(records: Sequence[Record]) -> dict[str, str]:
    return {name: " ".join(sorted({record[name] for record in records})) for name in PROVENANCE}


def _text(row: dict[str, Any]) -> Row:
    return {key: _shown(value) for key, value in row.items()}


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.10g}" if isinstance(value, float) else str(value)
