"""The dry run says what was understood, and exactly which rows were not."""

import numpy as np
import pytest

from shortlist.errors import BadVotes
from shortlist.io.source import BadRow
from shortlist.io.votes import inspect_votes, read_votes

BROKEN = ["x,y", "x,x,tie,j,1", "x,y,maybe,j,1", ",y,tie,j,1", 'x,"y,tie,j,1', "x,y,tie,j,1,more", "x,y,,j,1"]


def broken_file(tmp_path, rows, share):
    """A file with a share of broken rows at random places, and the lines they are on."""
    rng = np.random.default_rng(7)
    lines = [f"i{a},i{a + b},{w},j{a},c{b}" for a, b, w in zip(
        rng.integers(0, 9, rows), rng.integers(1, 9, rows), rng.choice(["model_a", "model_b", "tie"], rows), strict=True
    )]  # fmt: skip
    wrong = sorted(rng.choice(rows, int(rows * share), replace=False).tolist())
    for number, row in enumerate(wrong):
        lines[row] = BROKEN[number % len(BROKEN)]
    file = tmp_path / "votes.csv"
    file.write_text("\n".join(["model_a,model_b,winner,judge,question", *lines]))
    return file, [row + 2 for row in wrong]


def test_one_percent_of_broken_rows_are_reported_and_no_others(tmp_path):
    file, wrong = broken_file(tmp_path, 3000, 0.01)
    reading = inspect_votes(file)
    assert [row.line for row in reading.bad_rows] == wrong
    assert len(reading.table) == 3000 - len(wrong)
    assert set(reading.table.line.tolist()) == set(range(2, 3002)) - set(wrong)
    with pytest.raises(
        BadVotes, match=f"line {wrong[0]}: .*line {wrong[2]}: .* and 27 more. 30 of 3,000 rows not understood"
    ):
        read_votes(file)
    table = read_votes(file, skip_bad=True)
    assert table.left_out == reading.bad_rows
    np.testing.assert_array_equal(table.line, reading.table.line)


def test_counts(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text(
        "id,model_a,model_b,winner,judge,prompt\n1,x,y,tie,ann,p\n2,x,z,both_bad,bob,p\n3,y,z,z,ann,q\n4,y,z,,ann,\n"
    )
    reading = inspect_votes(file)
    assert (reading.kind, reading.format, reading.unit) == ("CSV", "lmarena", "line")
    assert reading.columns == {
        "first": "model_a", "second": "model_b", "winner": "winner", "judge": "judge", "case": "prompt",
    }  # fmt: skip
    assert reading.columns_not_read == ("id",)
    assert (reading.rows, reading.ties, reading.judges, reading.cases) == (4, 2, 2, 2)
    assert reading.bad_rows == (BadRow(5, "there is no winner; a skipped question is not a vote"),)
    assert reading.notes == ("both bad is read as a tie",)


def test_a_file_without_a_single_good_row_still_has_a_report(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text("first,second,outcome\nx,x,1\n\n1\n")
    reading = inspect_votes(file)
    assert [row.line for row in reading.bad_rows] == [2, 4]
    assert (len(reading.table), reading.table.items) == (0, ())
    with pytest.raises(BadVotes, match="no vote is left"):
        read_votes(file, skip_bad=True)


def test_names_that_are_formulas_to_a_spreadsheet_are_noted(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text("first,second,outcome\n=1+1,-y,1\n")
    assert "2 item names begin with" in inspect_votes(file).notes[0]


def test_the_report_can_be_read_aloud(tmp_path):
    file, wrong = broken_file(tmp_path, 1000, 0.01)
    text = str(inspect_votes(file))
    assert f"{file}: CSV, read as lmarena" in text
    assert "  case       question" in text
    assert "990 votes, 17 items, " in text
    assert "10 of 1,000 rows were not understood:" in text
    assert f"line {wrong[7]}:" in text
    assert f"line {wrong[8]}:" not in text
    assert "and 2 more; --json lists them all" in text
    assert repr(inspect_votes(file)) == f"<Reading of {file}: <VoteTable of 990 votes on 17 items>, 10 bad rows>"
