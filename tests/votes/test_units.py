"""Which rows of a file are a unit, and what the dry run says about it."""

import json
import sys

import pytest

from shortlist import create_study, inspect_votes, load_study, read_votes
from shortlist.cli.app import main
from shortlist.core.units import unit_numbers
from shortlist.errors import BadVotes

ROWS = [
    "x,y,x,q1,ann,1",
    "x,y,y,q1,bob,2",
    "y,z,y,q2,bob,3",
    "z,x,x,q3,cat,4",
    "x,y,x,,cat,5",
    "x,y,x,,dan,6",
    "x,y,x,,fay,7",
]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(["first,second,winner,case,judge,batch", *ROWS]))
    return path


def groups(path, unit):
    """The numbers of the rows in each unit."""
    labels = read_votes(path, unit=unit).unit
    found = {}
    for row, number in enumerate(unit_numbers(labels or range(len(ROWS)))):
        found.setdefault(number, []).append(row)
    return sorted(found.values())


def test_rows_in_a_unit(file):
    assert groups(file, "case") == groups(file, None) == [[0, 1], [2], [3], [4, 5, 6]]  # unknown cases may be one
    assert groups(file, "judge") == [[0], [1, 2], [3, 4], [5], [6]]
    assert groups(file, "case,judge") == groups(file, "judge, case") == [[0, 1, 2], [3, 4, 5, 6]]
    assert groups(file, "Batch") == groups(file, "row") == [[row] for row in range(7)]
    assert read_votes(file, columns={"case": ""}).unit is None


def test_a_column_that_is_not_there(file):
    with pytest.raises(BadVotes, match="no column 'rater' for the unit; its columns are first"):
        read_votes(file, unit="rater")
    with pytest.raises(BadVotes, match="--map judge=COLUMN"):
        read_votes(write(file, "first,second,winner", "x,y,x"), unit="judge")


def write(file, *lines):
    file.write_text("\n".join(lines))
    return file


def test_the_dry_run(file):
    found = inspect_votes(file).units
    assert (found.name, found.units, found.rows, found.regular, found.unused) == ("case", 4, 7, False, 3)
    assert "at least 3 rows count for nothing" in str(inspect_votes(file))
    assert "cases like these, judged by these judges" in found.claim
    regular = write(file, "first,second,winner,case", "x,y,x,q1", "y,x,x,q1", "x,y,y,q2", "y,x,y,q2")
    found = inspect_votes(regular).units
    assert (found.units, found.regular, found.unused) == (2, True, 0)
    assert inspect_votes(regular).as_dict()["units"]["claim"] == found.claim


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["shortlist", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


def test_certify_prints_what_was_left_out(file, monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, "certify", str(file), "-k", "1")
    assert code == 3  # not proved
    assert "3 of 7 votes count for nothing" in out
    assert "Unit: case." in out
    code, _, err = run(monkeypatch, capsys, "certify", str(file), "-k", "1", "--stopping", "posterior")
    assert code == 2
    assert "--unit row" in err


def test_import_a_file_and_then_a_grown_one(file, tmp_path, monkeypatch, capsys):
    url = f"sqlite:///{tmp_path}/studies.db"
    create_study(["x", "y", "z"], 1, storage=url, name="demo")
    command = ("import", "demo", str(file), "--storage", url)
    code, out, _ = run(monkeypatch, capsys, *command)
    assert not code
    write(file, "first,second,winner,case,judge,batch", *ROWS, "x,y,x,q1,eve,8", "x,z,x,q9,eve,9")
    code, out, _ = run(monkeypatch, capsys, *command, "--json")
    assert any("7 imported rows were counted before" in caveat for caveat in json.loads(out)["caveats"])
    rows = load_study("demo", url).rows
    assert [(row.unit, row.weight) for row in rows[7:]] == [("q1", 0.0), ("q9", 1.0)]
    code, out, _ = run(monkeypatch, capsys, *command, "--map", "id=batch", "--unit", "row", "--json")
    assert len(load_study("demo", url).rows) == 18  # said to be other votes
