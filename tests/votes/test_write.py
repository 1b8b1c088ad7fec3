"""What is written reads back the same; what would not is refused."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shortlist
from shortlist.errors import BadVotes
from shortlist.votes.read import read_votes
from shortlist.votes.table import WRITERS, make_table, write_votes

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(
    lambda name: name == name.strip()
)
HARD = st.sampled_from(
    ["=1+1", "+x", "-x", "@x", "a,b", 'a"b', '"', "a\nb", "a\rb", "tie", "first", "0", "1.0", "nan", "[", "{"]
)
LABELS = st.none() | NAMES | HARD


@st.composite
def tables(draw):
    items = draw(st.lists(NAMES | HARD, min_size=2, max_size=6, unique=True))
    pairs = st.lists(st.sampled_from(items), min_size=2, max_size=2, unique=True)
    row = st.tuples(pairs, st.floats(0, 1), st.floats(0, 1e12), LABELS, LABELS)
    rows = draw(st.lists(row, min_size=1, max_size=8))
    ends, outcome, weight, judge, case = zip(*rows, strict=True)
    return make_table([a for a, _ in ends], [b for _, b in ends], outcome, weight, judge, case)


def assert_same(table, back):
    assert back.items == table.items
    for part in ("first", "second", "outcome", "weight"):
        np.testing.assert_array_equal(getattr(back, part), getattr(table, part))
    assert (back.judge, back.case, back.left_out) == (table.judge, table.case, ())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=tables())
def test_what_is_written_reads_back_the_same(tmp_path, table):
    for ending in WRITERS:
        file = tmp_path / f"votes{ending}"
        write_votes(file, table)
        assert_same(table, read_votes(file))
    assert_same(table, read_votes(table.to_pandas()))
    assert_same(table, read_votes(table.to_polars()))


def test_measured_differences_too(tmp_path):
    table = make_table(["x", "y"], ["y", "x"], [-1e-300, 12345.678])
    for ending in WRITERS:
        write_votes(tmp_path / f"votes{ending}", table)
        back = read_votes(tmp_path / f"votes{ending}", "gaussian")
        assert back.outcome.tolist() == [-1e-300, 12345.678]


def test_the_plain_columns(tmp_path):
    table = make_table(["=x"], ["y"], [1.0], [0.1], ["ann"], [None])
    write_votes(tmp_path / "votes.csv", table)
    assert (tmp_path / "votes.csv").read_bytes() == b"first,second,outcome,weight,judge,case\r\n=x,y,1,0.1,ann,\r\n"
    write_votes(str(tmp_path / "votes.jsonl"), table)
    line = '{"first": "=x", "second": "y", "outcome": 1.0, "weight": 0.1, "judge": "ann", "case": null}\n'
    assert (tmp_path / "votes.jsonl").read_text() == line


@pytest.mark.parametrize("name", ["", " x", "x\n", "a\0b", "\ud800", None, 3])
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_what_would_not_read_back_is_refused_and_nothing_is_written(tmp_path, name, ending):
    file = tmp_path / f"votes{ending}"
    with pytest.raises(BadVotes, match="would not read back"):
        write_votes(file, make_table(["x"], [name], [1]))
    if name is not None:
        with pytest.raises(BadVotes, match="would not read back"):
            write_votes(file, make_table(["x"], ["y"], [1], judge=[name]))
    assert not file.exists()


def test_other_things_that_cannot_be_written(tmp_path):
    table = make_table(["x"], ["y"], [1])
    for outcome, weight in ((math.nan, 1), (math.inf, 1), (1, math.inf), (1, math.nan), (1, -1), (1, 1e13)):
        with pytest.raises(BadVotes, match="would not read back"):
            write_votes(tmp_path / "votes.csv", make_table(["x"], ["y"], [outcome], [weight]))
    with pytest.raises(BadVotes, match="'x' against itself"):
        write_votes(tmp_path / "votes.csv", make_table(["x"], ["x"], [1]))
    with pytest.raises(BadVotes, match="first has 1 rows and judge has 2"):
        make_table(["x"], ["y"], [1], judge=["a", "b"])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(BadVotes, match="unknown suffix"):
        write_votes(tmp_path / "votes.xlsx", table)
    with pytest.raises(BadVotes, match="cannot write"):
        write_votes(tmp_path / "nowhere" / "votes.csv", table)


def test_the_package_has_the_same_names():
    assert shortlist.read_votes is read_votes
    assert shortlist.write_votes is write_votes
