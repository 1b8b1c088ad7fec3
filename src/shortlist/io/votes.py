"""Read votes from a file or a frame: whole, or not at all."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from shortlist.errors import BadVotes
from shortlist.families import Family, make_family
from shortlist.io.delimited import read_delimited
from shortlist.io.frames import read_frame, read_parquet
from shortlist.io.json_text import read_json
from shortlist.io.reading import understand
from shortlist.io.report import Reading
from shortlist.io.source import Source
from shortlist.io.table import VoteTable

SHOWN = 3  # bad rows in an error message
FOREIGN = {
    b"\x1f\x8b": "compressed; unpack it",
    b"PK\x03\x04": "an Excel workbook or an archive; save it as CSV",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}


def read_votes(
    source: Any,
    family: str | Family = "bradley-terry",
    *,
    columns: Mapping[str, str] | None = None,
    skip_bad: bool = False,
) -> VoteTable:
    """The votes of a CSV, TSV, JSON or Parquet file, or of a pandas, polars or Arrow frame.

    Known columns are recognised (docs/vote-files.md). `columns` names the others, as in {"first": "colA",
    "second": "colB", "winner": "colC"}; targets are first, second, outcome, winner, loser, weight, judge, case.

    Raises BadVotes if any row was not understood; skip_bad=True leaves those rows out and lists them in `left_out`.
    """
    reading = inspect_votes(source, family, columns=columns)
    if reading.bad_rows and not skip_bad:
        raise BadVotes(_complaint(reading, "skip_bad=True (--skip-bad) leaves them out"))
    if not len(reading.table):
        raise BadVotes(_complaint(reading, "no vote is left"))
    return replace(reading.table, left_out=reading.bad_rows)


def inspect_votes(
    source: Any, family: str | Family = "bradley-terry", *, columns: Mapping[str, str] | None = None
) -> Reading:
    """A dry run of `read_votes`: the format, the columns, the counts, and every row that was not understood."""
    return understand(_open(source), make_family(family), {} if columns is None else columns)


def _complaint(reading: Reading, way_out: str) -> str:
    bad = reading.bad_rows
    first = "; ".join(f"{reading.unit} {line}: {reason}" for line, reason in bad[:SHOWN])
    more = f"; and {len(bad) - SHOWN:,} more" if len(bad) > SHOWN else ""
    return f"{reading.file}, {first}{more}. {len(bad):,} of {reading.rows:,} rows not understood; {way_out}"


def _open(source: Any) -> Source:
    frame = read_frame(source)
    if frame is not None:
        return frame
    if not isinstance(source, str | Path):
        raise BadVotes(f"votes come from a path or a data frame, not from {type(source).__name__}")
    path, file = Path(source), os.fsencode(source).decode(errors="replace")
    try:
        if path.suffix.lower() in (".parquet", ".pq") or _begins(path, b"PAR1"):
            return read_parquet(file, path)
        data = path.read_bytes()
    except (OSError, ValueError) as reason:
        raise BadVotes(f"cannot read {file}: {getattr(reason, 'strerror', None) or reason}") from None
    return _read_text(file, path.suffix.lower(), _decode(file, data))


def _begins(path: Path, mark: bytes) -> bool:
    with path.open("rb") as opened:
        return opened.read(len(mark)) == mark


def _decode(file: str, data: bytes) -> str:
    for start, kind in FOREIGN.items():
        if data.startswith(start):
            raise BadVotes(f"{file} is {kind}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        line = data.count(b"\n", 0, reason.start) + 1
        raise BadVotes(f"{file}, line {line}: not UTF-8 text; save it as UTF-8") from None


def _read_text(file: str, suffix: str, text: str) -> Source:
    """By how the text begins; the suffix settles what could be both."""
    begins = text.lstrip()[:1]
    if suffix not in (".csv", ".tsv") and begins in ("{", "["):
        return read_json(file, text)
    if suffix in (".json", ".jsonl", ".ndjson") and begins:
        raise BadVotes(f"{file} does not begin like JSON")
    return read_delimited(file, text)
