"""Whatever a file holds, there is a report or one line; and what was read can be written."""

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shortlist.errors import ShortlistError
from shortlist.votes.formats import EXTRAS, FORMATS, ONE_HOT
from shortlist.votes.read import inspect_votes, read_votes
from shortlist.votes.table import write_votes

FUZZ = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
TITLES = sorted(
    {title for known in FORMATS for title in (known.first, known.second, *known.verdicts)}
    | {title for known in EXTRAS.values() for title in known}
    | {*ONE_HOT, "model", "baseline", "games", "other", "", " Winner ID"}
)
WORDS = [
    "x", "y", "z", "tie", "model_a", "left", "A>>B", "[[B>A]]", "1-0", "1", "0", "0.5", "2", "nan", "-inf", "1e400",
    "", " ", "\0", "\ufeff", '"', "=x", "a,b", "\r", "\n", "\u2028", "1_0", "½-½", "é",
]  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=5)
CELLS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["score", "x"]), inner, max_size=2),
    max_leaves=4,
)


def report(file):
    """What is understood of a file; None if it is refused, in one line."""
    try:
        return inspect_votes(file)
    except ShortlistError as error:
        said = str(error)
    assert said
    assert "\n" not in said
    return None


def survive(file, tmp_path):
    """A report whose numbers add up and whose votes can be written, or one line."""
    reading = report(file)
    if reading is None:
        return
    table = reading.table
    lines = {row.line for row in reading.bad_rows}
    assert len(lines) == len(reading.bad_rows)
    assert not lines & set(table.line.tolist())
    assert len(lines) + len(set(table.line.tolist())) == reading.rows
    assert all("\n" not in reason and len(reason) < 300 for _, reason in reading.bad_rows)
    assert np.all((table.outcome >= 0) & (table.outcome <= 1))
    assert np.all((table.weight >= 0) & np.isfinite(table.weight))
    if len(table):
        write_votes(tmp_path / "again.csv", table)
        again = read_votes(tmp_path / "again.csv")
        assert again.columns() == table.columns()


@FUZZ
@given(data=st.binary(max_size=300), ending=st.sampled_from(["csv", "tsv", "json", "jsonl", "parquet", "txt"]))
@example(b"PAR1" * 3, "parquet")
@example(b"\xef\xbb\xbf", "csv")
def test_bytes(tmp_path, data, ending):
    file = tmp_path / f"votes.{ending}"
    file.write_bytes(data)
    survive(file, tmp_path)


@FUZZ
@given(data=st.data(), known=st.sampled_from(FORMATS), delimiter=st.sampled_from(",;\t|"))
def test_rows_of_text(tmp_path, data, known, delimiter):
    more = data.draw(st.lists(st.sampled_from(TITLES), max_size=4))
    header = data.draw(st.permutations([known.first, known.second, *known.verdicts[:2], *more]))
    cell = st.sampled_from(WORDS) | st.text(max_size=5)
    full = st.lists(cell, min_size=len(header), max_size=len(header))
    rows = data.draw(st.lists(full | st.lists(cell, max_size=9), max_size=8))
    newline = data.draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n"]))
    text = newline.join(delimiter.join(row) for row in [header, *rows])
    file = tmp_path / "votes.csv"
    file.write_bytes(text.encode(errors="replace"))
    survive(file, tmp_path)


@FUZZ
@given(data=st.data(), known=st.sampled_from(FORMATS), ending=st.sampled_from(["jsonl", "json"]))
def test_rows_of_json(tmp_path, data, known, ending):
    titles = [known.first, known.second, *known.verdicts, "weight", "judge", "case", "model", "baseline", "games"]
    row = st.fixed_dictionaries({}, optional=dict.fromkeys(titles, CELLS))
    rows = data.draw(st.lists(row, max_size=6))
    file = tmp_path / f"votes.{ending}"
    file.write_text(json.dumps(rows, indent=1) if ending == "json" else "\n".join(map(json.dumps, rows)))
    survive(file, tmp_path)


@FUZZ
@given(flips=st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 255)), min_size=1, max_size=4))
def test_parquet_with_bytes_changed(tmp_path, flips):
    data = bytearray(PARQUET)
    for place, byte in flips:
        data[place % len(data)] = byte
    file = tmp_path / "votes.parquet"
    file.write_bytes(data)
    survive(file, tmp_path)


def _parquet():
    buffer = io.BytesIO()
    votes = {"first": ["x", "y"] * 5, "second": ["y", "z"] * 5, "outcome": [0.5, 1.0] * 5, "judge": ["j", None] * 5}
    pq.write_table(pa.table(votes), buffer)
    return buffer.getvalue()


PARQUET = _parquet()
