"""Read the items of a study from a file or a folder, with the contents that judges are shown.

A text file has one item per line. CSV, TSV and JSON lines have a `name` and optionally a `content`. In a folder every
file is an item: its name is the file name, and its content is the text, or the path of a file that is not text.
"""

import csv
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from shortlist.errors import BadProblem

NAMES, CONTENTS = ("name", "item", "id"), ("content", "text", "path")  # columns, in order of preference


class Items(NamedTuple):
    """`contents` is None if there are only names."""

    names: tuple[str, ...]
    contents: dict[str, str] | None


def read_items(path: Path) -> Items:
    """Read items. Raises BadProblem, with the line if there is one. `create_study` checks that the names differ."""
    try:
        rows = list(_folder(path) if path.is_dir() else _file(path))
    except (OSError, UnicodeDecodeError, csv.Error, BadProblem) as reason:
        raise BadProblem(f"cannot read {path}: {getattr(reason, 'strerror', None) or reason}") from None
    if not rows:
        raise BadProblem(f"{path} contains no items; give one per line, or a folder of files")
    shown = {name: content for name, content in rows if content is not None}
    if shown and len(shown) < len({name for name, _ in rows}):
        missing = next(name for name, _ in rows if name not in shown)
        raise BadProblem(f"{path}: item {missing!r} has no content, but others do; give all of them one, or none")
    return Items(tuple(name for name, _ in rows), shown or None)


Row = tuple[str, str | None]


def _file(path: Path) -> Iterator[Row]:
    readers = {".csv": _csv_rows, ".tsv": _tsv_rows, ".jsonl": _json_lines}
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from readers.get(path.suffix.lower(), _text_lines)(file)


def _folder(path: Path) -> Iterator[Row]:
    for file in sorted(path.iterdir()):
        if file.name.startswith(".") or not file.is_file():
            continue
        try:
            yield file.name, file.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            yield file.name, str(file)


def _text_lines(file: Iterable[str]) -> Iterator[Row]:
    return ((line.strip(), None) for line in file if line.strip())


def _csv_rows(file: Iterable[str]) -> Iterator[Row]:
    return _table(file, ",")


def _tsv_rows(file: Iterable[str]) -> Iterator[Row]:
    return _table(file, "\t")


def _table(file: Iterable[str], delimiter: str) -> Iterator[Row]:
    reader = csv.DictReader(file, delimiter=delimiter, skipinitialspace=True)
    for row in reader:
        yield _row(row, reader.line_num)


def _json_lines(file: Iterable[str]) -> Iterator[Row]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            yield _row(json.loads(line), number)
        except (ValueError, RecursionError):
            raise BadProblem(f"line {number} is not JSON") from None


def _row(row: Any, line: int) -> Row:
    row = row if isinstance(row, dict) else {}
    name, content = (_first(row, columns) for columns in (NAMES, CONTENTS))
    if not isinstance(name, str) or not name.strip():
        raise BadProblem(f"line {line} has no name; give a column or member `name`, and optionally `content`")
    if content is not None and not isinstance(content, str):
        raise BadProblem(f"line {line} has a content that is not text")
    return name.strip(), content


def _first(row: dict[str, Any], columns: tuple[str, ...]) -> Any:
    return next((row[column] for column in columns if row.get(column) is not None), None)
