"""Read votes; the dry run reports what was read, exactly which rows were not, and whether the file looks sorted."""

import sys

import numpy as np
import pytest

from shortlist.cli import main
from shortlist.core import units
from shortlist.core.families import BradleyTerry, Gaussian
from shortlist.errors import BadVotes
from shortlist.votes.files import BadRow
from shortlist.votes.read import inspect_votes, read_votes
from shortlist.votes.table import make_table, write_votes


def write(tmp_path, text):
    file = tmp_path / "votes.csv"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "text",
    [
        "first,second,outcome\nx,y,1\ny,x,0\nx,z,0.5\n",
        "model_a,model_b,winner\nx,y,model_a\ny,x,model_b\nx,z,tie\n",
        "left,right,winner\nx,y,left\ny,x,right\nx,z,tie\n",
        "judge,A,B,Winner\nann,x,y,x\nann,y,x,x\nann,x,z,Tie\n",
    ],
)
def test_formats(tmp_path, text):
    table = read_votes(write(tmp_path, text))
    assert table.items == ("x", "y", "z")
    assert list(zip(table.first, table.second, strict=True)) == [(0, 1), (1, 0), (0, 2)]
    np.testing.assert_array_equal(table.outcome, [1, 0, 0.5])


def test_weights_and_a_byte_order_mark(tmp_path):
    table = read_votes(write(tmp_path, "\ufefffirst,second,outcome,weight\nx,y,0.75,20\n"))
    assert table.weight.tolist() == [20]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "columns none"),
        ("first,second,outcome\n", "contains no votes"),
        ("who,whom,outcome\nx,y,1\n", "two item columns"),
        ("first,second,outcome\nx,y,1\nx,y,maybe\n", "line 3: 'maybe' is not a number"),
        ("first,second,winner\nx,y,z\n", "line 2: winner 'z'"),
        ("first,second,outcome\nx,x,1\n", "line 2: 'x' against 'x'"),
        ("first,second,outcome\nx\n", "line 2: the row has more or fewer"),
        ("first,second,outcome\nx,y,1,9\n", "line 2: the row has more or fewer"),
        ("first,second,outcome\n\n\nx,y,1\nx,y,zz\n", "line 5"),
        ("first,second,outcome\nx,y,7\n", "line 2: outcome 7.0"),
        ("first,second,outcome,weight\nx,y,1,-1\n", "line 2: weight"),
    ],
)
def test_bad_files_name_the_line(tmp_path, text, message):
    with pytest.raises(BadVotes, match=message):
        read_votes(write(tmp_path, text))


def test_a_winner_is_no_measured_difference(tmp_path):
    with pytest.raises(BadVotes, match="needs an outcome column"):
        read_votes(write(tmp_path, "first,second,winner\nx,y,x\n"), Gaussian())
    assert read_votes(write(tmp_path, "first,second,outcome\nx,y,-3.5\n"), Gaussian()).outcome.tolist() == [-3.5]


# --- what the dry run reports ---

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
        BadVotes, match=f"line {wrong[0]}: .*line {wrong[2]}: .* and 27 more. 30 of 3,000 rows could not be read"
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
    assert (reading.kind, reading.format, reading.numbered_by) == ("CSV", "lmarena", "line")
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
    assert "10 of 1,000 rows could not be read:" in text
    assert f"line {wrong[7]}:" in text
    assert f"line {wrong[8]}:" not in text
    assert "and 2 more; --json lists them all" in text
    assert repr(inspect_votes(file)) == f"<Reading of {file}: <VoteTable of 990 votes on 17 items>, 10 bad rows>"


# --- files sorted by winner ---


def looks_sorted(table, family):
    return units.looks_sorted(family, table.first, table.second, table.outcome)


def cast(seed, how, votes=400, n=3, ties=0.2):
    """Votes on pairs at random; 300 sets of five votes that are mostly alike, if `how` is "in groups"."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n, votes)
    second = (first + rng.integers(1, n, votes)) % n
    outcome = np.where(rng.random(votes) < ties, 0.5, (rng.random(votes) < 0.55).astype(float))
    if how == "in groups":
        first, second, outcome = (np.repeat(column, 5) for column in (first, second, outcome))
        outcome = np.where(rng.random(5 * votes) < 0.3, 1 - outcome, outcome)
    if how == "by winner":
        winner = np.where(outcome > 0.5, first, np.where(outcome < 0.5, second, n))
        order = np.argsort(winner, kind="stable")
        first, second, outcome = first[order], second[order], outcome[order]
    if how == "by pair":
        order = np.lexsort((np.maximum(first, second), np.minimum(first, second)))
        first, second, outcome = first[order], second[order], outcome[order]
    return make_table(first.astype(str).tolist(), second.astype(str).tolist(), outcome.tolist())


@pytest.mark.parametrize(
    ("how", "expected"), [("as cast", False), ("in groups", False), ("by pair", False), ("by winner", True)]
)
def test_only_a_file_sorted_by_winner_looks_so(how, expected):
    found = [looks_sorted(cast(seed, how), BradleyTerry()) for seed in range(20)]
    assert found == [expected] * 20


def test_a_few_votes_say_nothing():
    assert not looks_sorted(cast(1, "by winner", votes=30), BradleyTerry())
    assert not looks_sorted(make_table(["a"], ["b"], [1.0]), BradleyTerry())
    one_sided = make_table(["a"] * 200, ["b"] * 200, [1.0] * 200)
    assert not looks_sorted(one_sided, BradleyTerry())


def test_measured_differences():
    values = np.random.default_rng(1).normal(size=300)
    for drawn, expected in ((values, False), (np.sort(values), True)):
        assert looks_sorted(make_table(["a"] * 300, ["b"] * 300, drawn.tolist()), Gaussian(1.0)) is expected


def test_certify_says_so(tmp_path, monkeypatch, capsys):
    for how, said in (("by winner", True), ("as cast", False)):
        path = tmp_path / "votes.csv"
        write_votes(path, cast(3, how))
        monkeypatch.setattr(sys, "argv", ["shortlist", "certify", str(path), "-k", "1"])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 3
        assert ("look sorted by winner" in capsys.readouterr().out) is said
