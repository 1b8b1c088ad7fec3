"""Read the items of a study from a file or a folder, with the contents that judges are shown.

A text file has one item per line. CSV, TSV and JSON lines have a `name` and optionally a `content`. In a folder every
file is an item: its name is the file name, and its content is the text, or the path of a file that is not text.
Pictures can be shown to language models as data URLs.
"""

import base64
import csv
import json
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from shortlist.errors import BadProblem, BadUpload, BadVotes
from shortlist.votes.files import EXCEL, Bytes, decode, read_delimited, read_table

LARGEST_SIDE = 12_000  # pixels of a picture
MOST_PICTURE = 5_000_000  # bytes; the least that the usual servers take
NAMES, CONTENTS = ("name", "item", "id"), ("content", "text", "path")  # columns, in order of preference


TABLE_COLUMNS = {  # of a table of items, with the words that people write above them
    "name": ("name", "item", "title", "project", "team", "id"),
    "text": ("text", "content", "description", "abstract", "summary"),
    "image": ("image", "picture", "photo"),
    "audio": ("audio", "sound"),
    "video": ("video", "film"),
    "format": ("format",),
    "track": ("track",),
}


class Items(NamedTuple):
    """`contents` is None if there are only names. `files` are the items whose content is the path of a file."""

    names: tuple[str, ...]
    contents: dict[str, str] | None
    files: frozenset[str] = frozenset()


def read_items(path: Path) -> Items:
    """Read items. Raises BadProblem, with the line if there is one. `create_study` checks that the names differ."""
    try:
        rows = list(_folder(path) if path.is_dir() else _file(path))
    except (OSError, UnicodeDecodeError, csv.Error, BadProblem) as reason:
        raise BadProblem(f"cannot read {path}: {getattr(reason, 'strerror', None) or reason}") from None
    if not rows:
        raise BadProblem(f"{path} contains no items; give one per line, or a folder of files")
    shown = {name: str(content) for name, content in rows if content is not None}
    files = frozenset(name for name, content in rows if isinstance(content, Path))
    if shown and len(shown) < len({name for name, _ in rows}):
        missing = next(name for name, _ in rows if name not in shown)
        raise BadProblem(f"{path}: item {missing!r} has no content, but others do; give all of them one, or none")
    return Items(tuple(name for name, _ in rows), shown or None, files)


def picture_url(path: str | Path) -> str:
    """A PNG, JPEG, GIF or WebP file as a data URL, which a language model is shown as a picture. Raises BadUpload."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_PICTURE + 1)
    except OSError as reason:
        raise BadUpload(f"cannot read {path}: {reason.strerror}") from None
    if len(data) > MOST_PICTURE:
        raise BadUpload(f"{path} is too large for a language model; the limit is {MOST_PICTURE:,} bytes")
    try:
        kind = picture_type(data)
    except BadUpload as reason:
        raise BadUpload(f"{path} cannot be shown to a language model: {reason}") from None
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def picture_type(data: bytes) -> str:
    """image/png, jpeg, gif or webp; raises BadUpload for anything else. SVG is refused because it can hold scripts."""
    kind, size = _kind(data)
    if kind is None:
        raise BadUpload("this file is not a PNG, JPEG, GIF or WebP picture; convert it first")
    if size is not None and not 0 < max(size) <= LARGEST_SIDE:
        raise BadUpload(f"this picture is too large; the limit is {LARGEST_SIDE:,} pixels a side")
    return f"image/{kind}"


def _kind(data: bytes) -> tuple[str | None, tuple[int, int] | None]:
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR" and len(data) > 33:
        return "png", struct.unpack(">II", data[16:24])
    if data.startswith((b"GIF87a", b"GIF89a")) and len(data) > 13:
        return "gif", struct.unpack("<HH", data[6:10])
    if data.startswith(b"\xff\xd8\xff") and len(data) > 20:
        return "jpeg", None
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP" and len(data) > 20:
        return "webp", None
    return None, None


Row = tuple[str, str | Path | None]
TOO_LONG = "has more cells than the first line, so a text may be cut off; put texts with the separator in double quotes"


def _file(path: Path) -> Iterator[Row]:
    readers = {".csv": _csv_rows, ".tsv": _tsv_rows, ".jsonl": _json_lines}
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from readers.get(path.suffix.lower(), _text_lines)(file)


def _folder(path: Path) -> Iterator[Row]:
    for file in sorted(path.iterdir()):
        if file.name.startswith(".") or not file.is_file():
            continue
        with file.open("rb") as opened:
            data = opened.read(64)
        try:
            yield file.name, file if _kind(data)[0] else file.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            yield file.name, file


def _text_lines(file: Iterable[str]) -> Iterator[Row]:
    return ((line.strip(), None) for line in file if line.strip())


def _csv_rows(file: Iterable[str]) -> Iterator[Row]:
    return _table(file, ",")


def _tsv_rows(file: Iterable[str]) -> Iterator[Row]:
    return _table(file, "\t")


def _table(file: Iterable[str], delimiter: str) -> Iterator[Row]:
    reader = csv.DictReader(file, delimiter=delimiter, skipinitialspace=True)
    for row in reader:
        if any(row.get(None) or ()):
            raise BadProblem(f"line {reader.line_num} {TOO_LONG}")
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
    is_path = content is not None and content == row.get("path") and not {"content", "text"} & row.keys()
    if not isinstance(name, str) or not name.strip():
        raise BadProblem(f"line {line} has no name; give a column or member `name`, and optionally `content`")
    if content is not None and not isinstance(content, str):
        raise BadProblem(f"line {line} has a content that is not text")
    return name.strip(), Path(content) if is_path and content is not None else content


def _first(row: dict[str, Any], columns: tuple[str, ...]) -> Any:
    return next((row[column] for column in columns if row.get(column) is not None), None)


def read_item_table(file: str, data: bytes) -> tuple[list[dict[str, Any]], list[str]]:
    """Items from the bytes of a CSV, Excel, JSON or text file: their parts by name (see TABLE_COLUMNS), and notes on
    how the file was read. Raises BadProblem."""
    suffix = Path(file).suffix.lower()
    try:
        if suffix in EXCEL:
            found = read_table(Bytes(file, suffix, data))
        else:
            text = decode(file, data)
            if suffix in (".json", ".jsonl", ".ndjson"):
                return _json_items(file, text), []
            if suffix not in (".csv", ".tsv"):
                return [{"name": name} for name, _ in _text_lines(text.splitlines())], []
            found = read_delimited(file, text)
    except BadVotes as reason:
        raise BadProblem(str(reason)) from None
    rows = [list(row) for row in zip(*(found.column(i) for i in range(len(found.names))), strict=True)]
    notes = [f"line {bad.line} was left out: {bad.reason}" for bad in found.bad]
    return _from_cells(list(found.names), rows, notes)


def _from_cells(names: list[str], rows: list[list[Any]], notes: list[str]) -> tuple[list[dict[str, Any]], list[str]]:
    known = {part: _column(names, words) for part, words in TABLE_COLUMNS.items()}
    places = {part: place for part, place in known.items() if place is not None}
    if "name" not in places:
        if places:
            raise BadProblem(f"no column is called name; the columns are {', '.join(map(repr, names))}")
        rows, places = [list(names), *rows], dict(zip(("name", "text"), range(len(names)), strict=False))
        notes = [
            "the first line does not name the columns, so it is an item too: first its name, then its text",
            *notes,
        ]
    unused = [name for place, name in enumerate(names) if place not in places.values()]
    if unused:
        notes = [*notes, f"not used: {', '.join(map(repr, unused))}"]
    items = [{part: cell for part, place in places.items() if (cell := _cell(row[place]))} for row in rows]
    return [item for item in items if item], notes


def _column(names: list[str], words: tuple[str, ...]) -> int | None:
    plain = [name.strip().lower() for name in names]
    return next((plain.index(word) for word in words if word in plain), None)


def _cell(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value).strip()


def _json_items(file: str, text: str) -> list[dict[str, Any]]:
    """A list of names or of objects, or one on each line."""
    try:
        if text.lstrip().startswith("["):
            listed = json.loads(text)
        else:
            listed = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        raise BadProblem(f"{file} is not valid JSON") from None
    return [entry if isinstance(entry, dict) else {"name": str(entry)} for entry in listed]
