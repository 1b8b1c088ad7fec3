"""Write votes with the columns first, second, outcome, weight, judge, case and unit, so that they read back the same.

Names are written unchanged. A spreadsheet reads a name that begins with = + - or @ as a formula, but a prefix would
change the name; docs/guides/vote-files.md says how to open such a file.
"""

import csv
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shortlist.core.problem import shown
from shortlist.errors import BadVotes, ShortlistError
from shortlist.votes.cells import EXACT, name
from shortlist.votes.files import load
from shortlist.votes.table import MAX_VOTES, MAX_WEIGHT, VoteTable


def write_votes(path: str | Path, table: VoteTable) -> None:
    """Write votes as .csv, .tsv, .jsonl, .json or .parquet.

    Raises BadVotes, and writes nothing, if they would not read back the same.
    """
    file = Path(path)
    render = WRITERS.get(file.suffix.lower())
    if render is None:
        raise BadVotes(f"{file} has an unknown suffix; choose one of {', '.join(WRITERS)}")
    columns = table.columns()
    _check(columns)
    data = render(columns)
    try:
        file.write_bytes(data)
    except OSError as reason:
        raise BadVotes(f"cannot write {file}: {reason.strerror or reason}") from None


def _check(columns: dict[str, list[Any]]) -> None:
    for part in ("first", "second", "judge", "case", "unit"):
        for cell in set(columns.get(part, ())):
            if cell is None and part in ("judge", "case", "unit"):
                continue
            if not isinstance(cell, str) or not cell or _name(cell) != cell:
                raise BadVotes(
                    f"{part} {shown(cell)} would not read back; remove blanks around it and control characters"
                )
    for one, other in zip(columns["first"], columns["second"], strict=True):
        if one == other:
            raise BadVotes(f"{shown(one)} against itself is not a pair; name two different items")
    for outcome, weight in zip(columns["outcome"], columns["weight"], strict=True):
        if not math.isfinite(outcome) or not 0 <= weight <= MAX_WEIGHT:
            raise BadVotes(f"outcome {outcome:g} with weight {weight:g} would not read back")
    if sum(columns["weight"]) > MAX_VOTES:
        raise BadVotes(f"the weights add up to more than {MAX_VOTES:.0e} votes; they would not read back")


def _name(cell: str) -> str | None:
    try:
        return name(cell)
    except ShortlistError:
        return None


def _delimited(delimiter: str) -> Callable[[dict[str, list[Any]]], bytes]:
    def render(columns: dict[str, list[Any]]) -> bytes:
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=delimiter)
        writer.writerow(columns)
        numbers = {part: list(map(_short, columns[part])) for part in ("outcome", "weight")}
        writer.writerows(zip(*{**columns, **numbers}.values(), strict=True))
        return text.getvalue().encode()

    return render


def _short(value: float) -> float | int:
    """1 rather than 1.0, where it is the same number."""
    return int(value) if value.is_integer() and abs(value) < EXACT else value


def _entries(columns: dict[str, list[Any]]) -> list[str]:
    rows = zip(*columns.values(), strict=True)
    return [json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) for row in rows]


def _json_lines(columns: dict[str, list[Any]]) -> bytes:
    return "".join(entry + "\n" for entry in _entries(columns)).encode()


def _json_array(columns: dict[str, list[Any]]) -> bytes:
    return ("[\n" + ",\n".join(_entries(columns)) + "\n]\n").encode()


def _parquet(columns: dict[str, list[Any]]) -> bytes:
    arrow = load("pyarrow", "a Parquet file")
    types = {part: arrow.float64() if part in ("outcome", "weight") else arrow.string() for part in columns}
    buffer = io.BytesIO()
    load("pyarrow.parquet", "a Parquet file").write_table(arrow.table(columns, schema=arrow.schema(types)), buffer)
    return buffer.getvalue()


WRITERS = {
    ".csv": _delimited(","),
    ".tsv": _delimited("\t"),
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json_array,
    ".parquet": _parquet,
    ".pq": _parquet,
}
