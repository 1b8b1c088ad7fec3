"""CSV and its relatives: separated by commas, tabs, semicolons or bars, whichever splits the header most."""

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from shortlist.errors import BadVotes
from shortlist.io.source import BadRow, Source

DELIMITERS = {",": "CSV", "\t": "TSV", ";": "CSV with semicolons", "|": "CSV with bars"}
MAX_FIELD = 2**31 - 1  # what the csv module takes on every platform
_one_at_a_time = Lock()


def read_delimited(file: str, text: str) -> Source:
    """Rows with as many cells as the header has; the others are bad. Blank lines and blank rows do not count."""
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
    """The column names, what separates them, and the number of the line after them."""
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
    """Each record with the line it starts on. One whose quotation marks do not match costs its first line only."""
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
    """The limit belongs to the whole process, so it is raised for a moment only, by one thread at a time."""
    with _one_at_a_time:
        before = csv.field_size_limit(MAX_FIELD)
        try:
            yield
        finally:
            csv.field_size_limit(before)
