"""Votes as arrays, with the names behind the numbers; `write_votes` writes them to a file so that they read back the
same.

The columns are first, second, outcome, weight, judge, case and unit. Names are written unchanged. A spreadsheet reads a
name that begins with = + - or @ as a formula, but a prefix would change the name; docs/guides/vote-files.md says how to
open such a file.
"""

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shortlist.core.pairs import Floats, Ints
from shortlist.core.problem import shown
from shortlist.core.units import find_units
from shortlist.errors import BadVotes, ShortlistError
from shortlist.votes.cells import EXACT, name
from shortlist.votes.files import BadRow, load

Labels = tuple[str | None, ...]
Units = tuple[str | tuple[str, ...] | None, ...]  # a tuple: rows that share one of its labels are one unit
MAX_WEIGHT, MAX_VOTES = 1e12, 1e15  # above these, floats no longer count single votes
ROW = "row"
CLAIMS = {
    "case": "A proof then holds for cases like these, judged by these judges",
    "judge": "A proof then holds for judges like these, on these cases",
    "case,judge": "A proof then holds for other cases and other judges like these",
    ROW: "A proof then holds if every row drew its case and its judge afresh",
}
OTHER = "A proof then holds for other values of {} like these, with everything else as it is here"


@dataclass(frozen=True, eq=False, repr=False)
class VoteTable:
    """One vote per row, in file order; items are numbered in order of first appearance.

    `outcome` is seen from the first item, `weight` is the number of votes that a row counts for. `judge` and `case` are
    None if the file does not name them. Rows with the same `unit` share a source of chance, named by `unit_name`, and
    weigh at most as one vote together; None is a unit of its own. `id` tells votes apart. `line` is where a row came
    from; `left_out` has the rows that skip_bad=True omitted.
    """

    items: tuple[str, ...]
    first: Ints
    second: Ints
    outcome: Floats
    weight: Floats
    judge: Labels | None
    case: Labels | None
    line: Ints
    left_out: tuple[BadRow, ...] = ()
    unit: Units | None = None
    unit_name: str = "row"
    id: Labels | None = None

    def __repr__(self) -> str:
        return f"<VoteTable of {len(self):,} votes on {len(self.items):,} items>"

    def __len__(self) -> int:
        return len(self.first)

    def columns(self) -> dict[str, list[Any]]:
        """The plain columns that are written to files and frames, with item names. There is a column for units if they
        have one of their own, and one for ids if there are any."""
        nothing = [None] * len(self)
        units = {"unit": list(self.unit)} if self.unit is not None and self.unit_name == "unit" else {}
        ids = {} if self.id is None else {"vote_id": list(self.id)}
        return {
            "first": [self.items[number] for number in self.first.tolist()],
            "second": [self.items[number] for number in self.second.tolist()],
            "outcome": self.outcome.tolist(),
            "weight": self.weight.tolist(),
            "judge": nothing if self.judge is None else list(self.judge),
            "case": nothing if self.case is None else list(self.case),
            **units,
            **ids,
        }

    def to_pandas(self) -> Any:
        """A pandas frame with the plain columns."""
        return load("pandas", "to_pandas()").DataFrame(self.columns())

    def to_polars(self) -> Any:
        """A polars frame with the plain columns."""
        polars = load("polars", "to_polars()")
        types = dict.fromkeys(("first", "second", "judge", "case"), polars.String)
        return polars.DataFrame(self.columns(), schema_overrides=types)


def make_table(
    first: Sequence[str],
    second: Sequence[str],
    outcome: Sequence[float] | Floats,
    weight: Sequence[float] | Floats | None = None,
    judge: Sequence[str | None] | None = None,
    case: Sequence[str | None] | None = None,
    line: Sequence[int] | Ints | None = None,
    left_out: Sequence[BadRow] = (),
) -> VoteTable:
    """A table from lists of item names, one vote per row. Judges or cases that are all None are omitted."""
    given = {"second": second, "outcome": outcome, "weight": weight, "judge": judge, "case": case, "line": line}
    for part, values in given.items():
        if values is not None and len(values) != len(first):
            raise BadVotes(f"first has {len(first)} rows and {part} has {len(values)}; give one value per vote")
    items = tuple(dict.fromkeys(chain.from_iterable(zip(first, second, strict=True))))
    numbers = {item: number for number, item in enumerate(items)}
    count = len(first)
    return VoteTable(
        items=items,
        first=np.array([numbers[item] for item in first], dtype=np.int64),
        second=np.array([numbers[item] for item in second], dtype=np.int64),
        outcome=np.array(outcome, dtype=np.float64),
        weight=np.ones(count) if weight is None else np.array(weight, dtype=np.float64),
        judge=as_labels(judge),
        case=as_labels(case),
        line=np.arange(1, count + 1) if line is None else np.array(line, dtype=np.int64),
        left_out=tuple(left_out),
    )


def as_labels(labels: Sequence[str | None] | None) -> Labels | None:
    """None if no row has a label."""
    return None if labels is None or all(one is None for one in labels) else tuple(labels)


class UnitReport(NamedTuple):
    """The units of a file. `unused` rows never count: their unit has an earlier row on the same pair."""

    name: str
    units: int
    rows: int
    regular: bool
    unused: int

    @property
    def claim(self) -> str:
        """What the file would prove."""
        return CLAIMS.get(self.name) or OTHER.format(self.name)

    def __str__(self) -> str:
        if self.units == self.rows:
            return f"each of the {self.rows:,} votes is a unit of its own"
        if self.regular:
            return f"{self.units:,} units with the same pairs each; the rows of a unit share the weight of one vote"
        return (
            f"{self.units:,} units that do not all have the same pairs equally often; of a unit only the first pair "
            f"against each item counts, so at least {self.unused:,} rows count for nothing"
        )


def report_units(table: VoteTable) -> UnitReport:
    """The units of a table of votes."""
    if table.unit is None:
        return UnitReport(table.unit_name, len(table), len(table), True, 0)
    _, units = find_units(len(table.items), table.first, table.second, table.unit)
    unused = 0 if units.regular else int(np.count_nonzero(units.share == 0))
    return UnitReport(table.unit_name, units.size, len(table), units.regular, unused)


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
