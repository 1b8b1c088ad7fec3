"""Open a vote file or a data frame as a table of named columns: CSV and its relatives, JSON, Parquet, Excel, frames.

Nothing is interpreted here: cells are strings or the types of the file's format. pandas, polars, pyarrow and openpyxl
are optional, and loaded only when they are needed. The path `-` is standard input. Files packed by gzip are unpacked.
"""

import csv
import gzip
import io
import json
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, NamedTuple, TypeVar

from shortlist.errors import BadVotes, NotInstalled, ShortlistError

T = TypeVar("T")
STANDARD_INPUT = "-"
GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
EXCEL = (".xlsx", ".xlsm")
UNSUPPORTED = {
    GZIP: "compressed twice; unpack it",
    ZIP: "an archive; unpack it",
    b"PAR1": "a Parquet file; give it as a path that ends in .parquet",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save it as .xlsx or CSV",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}
DELIMITERS = {",": "CSV", "\t": "TSV", ";": "CSV with semicolons", "|": "CSV with bars"}
MAX_FIELD = 2**31 - 1  # the largest limit that the csv module takes on every platform
BLANK = " \t\r\n"
TOO_LARGE = "it has more than a gigabyte, unpacked; split it, or leave out what is not needed"

_one_at_a_time = Lock()


class BadRow(NamedTuple):
    """A row that could not be read, and why. `line` is the line it starts on, or the row number in a frame."""

    line: int
    reason: str


@dataclass(frozen=True)
class Source:
    """A table of cells. Columns are fetched by number and only if needed: names may repeat, columns may be huge."""

    file: str
    kind: str
    numbered_by: str  # what `lines` counts: lines of a text, or rows
    names: tuple[str, ...]
    lines: Sequence[int]
    column: Callable[[int], Sequence[Any]]
    bad: tuple[BadRow, ...] = ()
    spent: tuple[str, ...] = ()  # columns that others were made of

    def picked(
        self, rows: Sequence[int], added: Mapping[str, Sequence[Any]], made_of: Sequence[int], bad: Sequence[BadRow]
    ) -> "Source":
        """These rows, in this order and possibly repeated, with columns that were made of others."""
        new = list(added.values())

        def column(number: int) -> Sequence[Any]:
            if number >= len(self.names):
                return new[number - len(self.names)]
            cells = self.column(number)
            return [cells[row] for row in rows]

        names, lines = (*self.names, *added), [self.lines[row] for row in rows]
        spent = tuple(self.names[number] for number in made_of)
        return replace(self, names=names, lines=lines, column=column, bad=(*self.bad, *bad), spent=spent)


def open_source(source: Any) -> Source:
    """The table in a file or a frame. Raises BadVotes."""
    frame = read_frame(source)
    if frame is not None:
        return frame
    if not isinstance(source, str | Path):
        raise BadVotes(f"votes are read from a path or a data frame, not from {type(source).__name__}")
    if is_parquet(source):
        return read_parquet(shown_path(source), Path(source))
    packed = read_bytes(source)
    return read_table(packed) if packed.suffix in EXCEL else _read_text(packed)


class Bytes(NamedTuple):
    """The bytes of a file, unpacked: its name as shown, its suffix without that of the packing, and the bytes."""

    file: str
    suffix: str
    data: bytes


def shown_path(path: str | Path) -> str:
    """A path as it is shown."""
    return "standard input" if str(path) == STANDARD_INPUT else os.fsencode(path).decode(errors="replace")


def is_parquet(path: str | Path) -> bool:
    """Is it a Parquet file, by its name or its first bytes? Raises BadVotes if it cannot be read."""
    if str(path) == STANDARD_INPUT:
        return False
    return Path(path).suffix.lower() in (".parquet", ".pq") or _opened(path, lambda: _begins(Path(path), b"PAR1"))


def read_bytes(path: str | Path, most: int | None = None) -> Bytes:
    """The bytes of a file or of standard input, unpacked if gzip packed them. Raises BadVotes, also if there are more
    than `most`."""
    named = Path("") if str(path) == STANDARD_INPUT else Path(path)
    if str(path) == STANDARD_INPUT:
        data = _opened(path, lambda: _limited(sys.stdin.buffer, most))
    else:
        with _opened(path, lambda: named.open("rb")) as file:
            data = _opened(path, lambda: _limited(file, most))
    if data.startswith(GZIP):
        data = _opened(path, lambda: _limited(gzip.GzipFile(fileobj=io.BytesIO(data)), most))
        named = named.with_suffix("") if named.suffix.lower() == ".gz" else named
    return Bytes(shown_path(path), named.suffix.lower(), data)


def _limited(file: BinaryIO | gzip.GzipFile, most: int | None) -> bytes:
    data = file.read() if most is None else file.read(most + 1)
    if most is not None and len(data) > most:
        raise ValueError(TOO_LARGE)
    return data


def _opened(path: str | Path, read: Callable[[], T]) -> T:
    try:
        return read()
    except (OSError, EOFError, ValueError, zlib.error) as reason:
        said = getattr(reason, "strerror", None) or reason
        raise BadVotes(f"cannot read {shown_path(path)}: {said}") from None


def load(package: str, purpose: str) -> Any:
    """Import an optional package. Raises NotInstalled, which says how to install it."""
    try:
        return import_module(package)
    except ImportError:
        raise NotInstalled(purpose, package.partition(".")[0], "frames") from None


def _begins(path: Path, mark: bytes) -> bool:
    with path.open("rb") as opened:
        return opened.read(len(mark)) == mark


def decode(file: str, data: bytes) -> str:
    """The text of a file. Raises BadVotes unless it is UTF-8."""
    for start, kind in UNSUPPORTED.items():
        if data.startswith(start):
            raise BadVotes(f"{file} is {kind}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        line = data.count(b"\n", 0, reason.start) + 1
        raise BadVotes(f"{file}, line {line}: not UTF-8 text; save it as UTF-8") from None


def _read_text(packed: Bytes) -> Source:
    """The first character tells JSON from CSV; the suffix decides where it could be both."""
    file, suffix, text = packed.file, packed.suffix, decode(packed.file, packed.data)
    begins = text.lstrip()[:1]
    if suffix not in (".csv", ".tsv") and begins in ("{", "["):
        return read_json(file, text)
    if suffix in (".json", ".jsonl", ".ndjson") and begins:
        raise BadVotes(f"{file} does not begin like JSON")
    return read_delimited(file, text)


# --- CSV and its relatives: separated by whichever of DELIMITERS splits the header most ---


def read_delimited(file: str, text: str) -> Source:
    """Rows with as many cells as the header are good, others are bad. Blank lines and blank rows are ignored."""
    lines = list(io.StringIO(text, newline=""))
    begin = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    with _any_field_size():
        header, delimiter, after = _header(file, lines, begin)
        rows, starts, bad = [], [], []
        for start, cells in _records(lines, after, delimiter, len(header)):
            if isinstance(cells, str):
                bad.append(BadRow(start, cells))
            elif len(cells) == len(header) and any(cells):
                rows.append(cells)
                starts.append(start)
            elif any(cells):
                sizes = f"({len(cells)}, not {len(header)})"
                bad.append(BadRow(start, f"the row has more or fewer fields than the header {sizes}"))
    return Source(
        file, DELIMITERS[delimiter], "line", tuple(header), starts, lambda i: [row[i] for row in rows], tuple(bad)
    )


def _header(file: str, lines: list[str], begin: int) -> tuple[list[str], str, int]:
    """The column names, the delimiter, and the number of the line after the header."""
    found: tuple[list[str], str, int] = [], ",", begin
    if begin == len(lines):
        return found
    for delimiter in DELIMITERS:
        reader = _reader(lines, begin, delimiter)
        try:
            cells = next(reader)
        except csv.Error:
            continue
        if len(cells) > len(found[0]):
            found = [cell.strip() for cell in cells], delimiter, begin + reader.line_num
    if not found[0]:
        raise BadVotes(f"{file}, line {begin + 1}: the quotation marks of the header do not match")
    return found


def _records(lines: list[str], begin: int, delimiter: str, width: int) -> Iterator[tuple[int, list[str] | str]]:
    """Each record with the line it starts on. If its quotation marks do not match, only its first line is lost."""
    start = begin
    while start < len(lines):
        reader, offset = _reader(lines, start, delimiter), start
        try:
            for cells in reader:
                after = offset + reader.line_num
                if after > start + 1 and len(cells) != width:
                    raise csv.Error
                yield start + 1, cells
                start = after
        except csv.Error:
            yield start + 1, "the quotation marks of the row do not match"
            start += 1


def _reader(lines: list[str], begin: int, delimiter: str) -> Any:
    rest = (lines[number] for number in range(begin, len(lines)))
    return csv.reader(rest, delimiter=delimiter, skipinitialspace=True, strict=True)


@contextmanager
def _any_field_size() -> Iterator[None]:
    """Raise the csv module's field limit. It belongs to the whole process, so one thread at a time does this."""
    with _one_at_a_time:
        before = csv.field_size_limit(MAX_FIELD)
        try:
            yield
        finally:
            csv.field_size_limit(before)


# --- JSON: one object per line, or one array of objects ---


def read_json(file: str, text: str) -> Source:
    """Each key is a column; a row without the key has an empty cell there."""
    is_array = text.lstrip(BLANK).startswith("[")
    rows, lines, bad = json_array(file, text) if is_array else json_lines(text)
    names = tuple(dict.fromkeys(key for row in rows for key in row))
    if not all(map(_is_text, names)):
        raise BadVotes(f"{file} has a key that is not text")
    if not names and bad and not is_array:
        raise BadVotes(
            f"{file}, line {bad[0].line}: {bad[0].reason}; a JSON vote file has one object per line, or one array"
        )
    kind = "JSON array" if is_array else "JSON lines"
    return Source(file, kind, "line", names, lines, lambda i: [row.get(names[i]) for row in rows], tuple(bad))


def json_lines(text: str) -> tuple[list[dict[str, Any]], list[int], list[BadRow]]:
    """The objects of JSON lines, the line of each, and the lines that are none."""
    rows, lines, bad = [], [], []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip(BLANK):
            continue
        try:
            rows.append(_object(DECODER.decode(line)))
            lines.append(number)
        except (ValueError, RecursionError) as reason:
            bad.append(BadRow(number, _why(reason)))
    return rows, lines, bad


def json_array(file: str, text: str) -> tuple[list[dict[str, Any]], list[int], list[BadRow]]:
    """Decode entry by entry, to know their lines. What follows broken JSON is unreliable, so the file is refused."""
    rows, lines, bad = [], [], []
    place, line, counted = text.index("[") + 1, 1, 0
    try:
        while (place := _skip(text, place)) < len(text) and text[place] != "]":
            line, counted = line + text.count("\n", counted, place), place
            entry, place = DECODER.raw_decode(text, place)
            try:
                rows.append(_object(entry))
                lines.append(line)
            except ValueError as reason:
                bad.append(BadRow(line, _why(reason)))
            place = _skip(text, place)
            if text[place : place + 1] not in (",", "]"):
                raise ValueError("a comma or the end of the array is missing")
            place += text[place] == ","
        if text[place:].strip(BLANK) != "]":
            raise ValueError("the array does not end")
    except (ValueError, RecursionError) as reason:
        raise BadVotes(f"{file}, line {line}: {_why(reason)}") from None
    return rows, lines, bad


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in BLANK:
        place += 1
    return place


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entry = dict(pairs)
    if len(entry) < len(pairs):
        raise ValueError("a key occurs twice in one object")
    return entry


def _is_text(key: str) -> bool:
    """JSON can contain half a surrogate pair, which cannot be printed."""
    return key == key.encode(errors="replace").decode()


def _object(entry: Any) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise ValueError(f"{type(entry).__name__} is not an object with a key for each column")
    return entry


def _why(reason: Exception) -> str:
    if isinstance(reason, RecursionError):
        return "not JSON: nested too deeply"
    return f"not JSON: {reason.msg}" if isinstance(reason, json.JSONDecodeError) else str(reason)


DECODER = json.JSONDecoder(object_pairs_hook=_unique)


# --- Excel workbooks ---


def read_table(packed: Bytes) -> Source:
    """The one sheet of a workbook that has cells. Its first row with cells is the header."""
    file, opener = packed.file, load("openpyxl", "an Excel file")
    book = _foreign(file, lambda: opener.load_workbook(io.BytesIO(packed.data), read_only=True, data_only=True))
    sheets = {sheet.title: _foreign(file, partial(_sheet_rows, sheet)) for sheet in book.worksheets}
    filled = {title: rows for title, rows in sheets.items() if rows}
    if len(filled) != 1:
        raise BadVotes(f"{file} has {len(filled)} sheets with cells; save the one that is meant as CSV")
    (rows,) = filled.values()
    names = tuple("" if cell is None else str(cell).strip() for cell in rows[0][1])
    cells = [(*row, *[None] * len(names))[: len(names)] for _, row in rows[1:]]
    return Source(file, "Excel", "row", names, [line for line, _ in rows[1:]], lambda i: [row[i] for row in cells])


def _sheet_rows(sheet: Any) -> list[tuple[int, tuple[Any, ...]]]:
    """The rows that have cells, with their numbers."""
    rows = enumerate(sheet.iter_rows(values_only=True), 1)
    return [(line, row) for line, row in rows if any(cell is not None for cell in row)]


# --- Parquet files and data frames ---


def read_parquet(file: str, path: Path) -> Source:
    """Only the columns that are needed are read; others, such as whole conversations, may be large."""
    parquet = load("pyarrow.parquet", "a Parquet file")
    opened = _foreign(file, lambda: parquet.ParquetFile(path))
    names = _foreign(file, lambda: tuple(opened.schema_arrow.names))

    def column(number: int) -> list[Any]:
        cells: list[Any] = _foreign(file, lambda: opened.read(columns=[names[number]]).column(0).to_pylist())
        if len(cells) != rows:
            raise BadVotes(f"cannot read {file}: it is damaged, its columns have different lengths")
        return cells

    rows = opened.metadata.num_rows
    return Source(file, "Parquet", "row", names, range(1, rows + 1), column)


def read_frame(frame: Any) -> Source | None:
    """A pandas, polars or Arrow frame, whose package its owner has loaded already. None for anything else."""
    pandas, polars, arrow = (sys.modules.get(package) for package in ("pandas", "polars", "pyarrow"))
    if pandas and isinstance(frame, pandas.DataFrame):
        return _frame(frame, "pandas", lambda number: _pandas_cells(frame.iloc[:, number]))
    if polars and isinstance(frame, polars.DataFrame):
        return _frame(frame, "polars", lambda number: frame.to_series(number).to_list())
    if arrow and isinstance(frame, arrow.Table):
        return _frame(frame, "Arrow", lambda number: frame.column(number).to_pylist(), frame.column_names)
    return None


def _frame(frame: Any, kind: str, column: Callable[[int], list[Any]], names: list[Any] | None = None) -> Source:
    titles = tuple(str(name) for name in (frame.columns if names is None else names))
    file = f"the {kind} frame"
    return Source(file, kind, "row", titles, range(1, len(frame) + 1), lambda i: _foreign(file, lambda: column(i)))


def _pandas_cells(series: Any) -> list[Any]:
    """Missing cells, which pandas writes in four ways, as None."""
    cells: list[Any] = series.astype(object).where(series.notna(), None).tolist()
    return cells


def _foreign(file: str, call: Callable[[], T]) -> T:
    """Turn any error that another package raises on broken data into one line."""
    try:
        return call()
    except ShortlistError:
        raise
    except Exception as reason:
        said = " ".join(str(reason).split())
        raise BadVotes(f"cannot read {file}: {said[:200] or type(reason).__name__}") from None
