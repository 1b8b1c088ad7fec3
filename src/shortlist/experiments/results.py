"""Finished runs on disk: a line of JSON each while a sweep is played, and the table that is made of them.

The log is only ever appended to, so that a kill loses no more than the runs under way; a torn last line is dropped.
Files that others read are written whole or not at all.
"""

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from shortlist.errors import BadExperiment, RunsFailed

Record = dict[str, Any]  # cell, run, definition, result, seconds, version, commit
Row = dict[str, str]
SHAPE = {"cell": str, "run": int, "definition": dict, "result": dict, "version": str, "commit": str}
WORDS = ("id", "instance", "method", "rule", "version", "commit")  # the other columns of a table are numbers


class Log:
    """The finished runs, by cell and number; `add` and `forget` also write it down."""

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
        """Their runs count as never played."""
        gone = {cell for cell, _ in self.records} & set(cells)
        if gone:
            self._write({"forget": sorted(gone)})

    def of(self, cell: str) -> dict[int, Record]:
        """A cell's finished runs."""
        return {run: record for (name, run), record in self.records.items() if name == cell}

    def _write(self, line: Record) -> None:
        data = json.dumps(line).encode() + b"\n"
        try:
            written = self._file.write(data)
        except OSError as reason:
            raise RunsFailed(f"cannot write {self.path}: {reason.strerror}; what is in it is safe") from None
        if written != len(data):
            raise RunsFailed(f"cannot write all of a line to {self.path}: is the disk full? What is in it is safe")
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
    raise BadExperiment(f"line {place} of {path} is no finished run; move the file away, or mend it")


def _no_number(constant: str) -> float:
    raise ValueError(constant)  # NaN and Infinity, which no run yields


@contextmanager
def open_log(path: Path) -> Iterator[Log]:
    """The log, held by this process alone."""
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
            raise BadExperiment(f"{path} is in use: this experiment is being run; wait for it to end") from None


def write_table(path: Path, columns: Iterable[str], rows: Iterable[Row]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with whole_file(path) as draft:
        draft.write_text(text.getvalue(), encoding="utf-8")


def read_table(path: Path, columns: Iterable[str]) -> list[Row]:
    """The rows of a table with these columns; none if there is no such file."""
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
            raise BadExperiment(f"line {place} of {path} is no row of this table; move the file away, or mend it")
    return [dict(zip(header, row, strict=True)) for row in rows]


def _fits(column: str, value: str) -> bool:
    """Numbers may be missing, but for the mean."""
    if column in WORDS or (not value and column != "mean"):
        return True
    with suppress(ValueError):
        return math.isfinite(float(value))
    return False


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A draft to write to; it takes the file's place when it is complete."""
    draft = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield draft
        os.replace(draft, path)
    except OSError as reason:
        raise BadExperiment(f"cannot write {path}: {reason.strerror}") from None
    finally:
        draft.unlink(missing_ok=True)
