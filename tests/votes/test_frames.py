"""Frames and Parquet, and what happens without their packages."""

import datetime
import decimal
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shortlist.errors import BadVotes, NotInstalled
from shortlist.votes.read import inspect_votes, read_votes
from shortlist.votes.table import make_table, write_votes

COLUMNS = {
    "model_a": ["x", "y", "x"], "model_b": ["y", "x", "z"], "winner": ["model_a", "model_b", "tie"],
    "judge": [1.0, None, 2.0], "prompt": [[{"role": "user"}], [{"role": "other"}], [{"role": "user"}]],
}  # fmt: skip


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames(make):
    reading = inspect_votes(make(COLUMNS))
    assert (reading.format, reading.numbered_by, reading.cases) == ("lmarena", "row", 2)
    table = reading.table
    assert (table.items, table.outcome.tolist()) == (("x", "y", "z"), [1, 0, 0.5])
    assert table.judge == ("1", None, "2")
    assert table.line.tolist() == [1, 2, 3]


def test_a_parquet_file_is_the_same(tmp_path):
    file = tmp_path / "votes.parquet"
    pq.write_table(pa.table(COLUMNS), file, row_group_size=2)
    assert read_votes(file).judge == ("1", None, "2")
    assert inspect_votes(file).kind == "Parquet"
    unlabelled = tmp_path / "votes"
    unlabelled.write_bytes(file.read_bytes())
    assert len(read_votes(unlabelled)) == 3


def test_games_in_a_parquet_file(tmp_path):
    row = {"uid": "q", "judge": "j", "model": "new", "baseline": "old", "games": [{"score": "A>B"}, {"score": "B>A"}]}
    frame = pl.DataFrame([row])
    frame.write_parquet(tmp_path / "games.parquet")
    for source in (frame, frame.to_pandas(), frame.to_arrow(), tmp_path / "games.parquet"):
        assert read_votes(source).outcome.tolist() == [0.75, 0.25]


def test_pandas_types():
    frame = pd.DataFrame({
        "first": pd.Categorical(["x", "y", None]), "second": pd.array(["y", "x", "x"], dtype="string"),
        "outcome": pd.array([1, 0, 1], dtype="Int64"), "weight": np.array([1, 2, 3], np.float32),
        "judge": pd.array([1, None, 3], dtype="Int64"), "case": pd.to_datetime(["2026-01-01", None, "2026-01-02"]),
    })  # fmt: skip
    reading = inspect_votes(frame)
    assert reading.table.judge == ("1", None)
    assert reading.table.case == ("2026-01-01 00:00:00", None)
    assert [row.line for row in reading.bad_rows] == [3]
    twins = pd.DataFrame([["x", "y", 1, 2]], columns=["first", "second", "outcome", "outcome"])
    with pytest.raises(BadVotes, match="2 columns called"):
        read_votes(twins)
    with pytest.raises(BadVotes, match="columns 0, 1"):
        read_votes(pd.DataFrame([["x", "y"]]))
    with pytest.raises(BadVotes, match="the pandas frame contains no votes"):
        read_votes(pd.DataFrame({"winner": [], "loser": []}))


def test_cells_of_any_type():
    odd = [True, b"1", datetime.date(2026, 1, 1), {"a": 1}, np.array([1]), 1j, None, "x", object()]
    frame = pd.DataFrame(
        {"first": "x", "second": "y", "outcome": pd.Series([*odd, decimal.Decimal("0.5"), np.int8(1)], dtype=object)}
    )
    reading = inspect_votes(frame)
    assert [row.line for row in reading.bad_rows] == list(range(1, len(odd) + 1))
    assert reading.table.outcome.tolist() == [0.5, 1]
    names = pl.DataFrame({"first": [b"x", b"\xff"], "second": ["y", "y"], "outcome": [1, 1]})
    assert [row.reason for row in inspect_votes(names).bad_rows] == ["b'\\xff' is not text"]


def test_a_lazy_frame_is_no_frame_yet():
    with pytest.raises(BadVotes, match="LazyFrame"):
        read_votes(pl.LazyFrame({"winner": ["x"], "loser": ["y"]}))


def test_a_parquet_file_cut_anywhere(tmp_path):
    file = tmp_path / "votes.parquet"
    pq.write_table(pa.table(COLUMNS), file)
    data = file.read_bytes()
    for end in range(0, len(data), 97):
        file.write_bytes(data[:end])
        with pytest.raises(BadVotes, match="cannot read") as error:
            read_votes(file)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_without_the_packages_there_is_a_way_out(tmp_path, monkeypatch, package):
    table = make_table(["x"], ["y"], [1])
    file = tmp_path / "votes.parquet"
    write_votes(file, table)
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    calls = {"pandas": [table.to_pandas], "polars": [table.to_polars]}.get(
        package, [lambda: read_votes(file), lambda: write_votes(file, table)]
    )
    for call in calls:
        with pytest.raises(NotInstalled, match=rf"needs {package}: pip install 'shortlist\[frames\]'"):
            call()


def test_reading_text_loads_no_frames(tmp_path):
    file = tmp_path / "votes.csv"
    write_votes(file, make_table(["x"], ["y"], [1]))
    code = "assert not {'pandas', 'polars', 'pyarrow'} & set(sys.modules)"
    code = f"import sys, shortlist; shortlist.read_votes({str(file)!r}); {code}"
    subprocess.run([sys.executable, "-c", code], check=True)
