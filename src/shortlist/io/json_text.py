"""JSON: one object a line, or one array of objects."""

import json
from typing import Any

from shortlist.errors import BadVotes
from shortlist.io.source import BadRow, Source

BLANK = " \t\r\n"


def read_json(file: str, text: str) -> Source:
    """A key is a column; a row without it has an empty cell there."""
    is_array = text.lstrip(BLANK).startswith("[")
    rows, lines, bad = _array(file, text) if is_array else _lines(text)
    names = tuple(dict.fromkeys(key for row in rows for key in row))
    if not all(map(_is_text, names)):
        raise BadVotes(f"{file} has a key that is not text")
    if not names and bad and not is_array:
        raise BadVotes(
            f"{file}, line {bad[0].line}: {bad[0].reason}; a JSON file of votes is an object a line, or one array"
        )
    return Source(
        file,
        "JSON array" if is_array else "JSON lines",
        "line",
        names,
        lines,
        lambda i: [row.get(names[i]) for row in rows],
        tuple(bad),
    )


def _lines(text: str) -> tuple[list[dict[str, Any]], list[int], list[BadRow]]:
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


def _array(file: str, text: str) -> tuple[list[dict[str, Any]], list[int], list[BadRow]]:
    """Entry by entry, to know their lines. What comes after broken JSON cannot be trusted, so that is no file."""
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
                raise ValueError("the array does not go on")
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
    """Half a surrogate pair can be read from JSON, and printed nowhere."""
    return key == key.encode(errors="replace").decode()


def _object(entry: Any) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise ValueError(f"{type(entry).__name__} is no object with a key for each column")
    return entry


def _why(reason: Exception) -> str:
    if isinstance(reason, RecursionError):
        return "not JSON: nested too deeply"
    return f"not JSON: {reason.msg}" if isinstance(reason, json.JSONDecodeError) else str(reason)


DECODER = json.JSONDecoder(object_pairs_hook=_unique)
