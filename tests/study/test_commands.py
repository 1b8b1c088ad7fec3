"""The commands on stored studies, as a person or a script would call them."""

import csv
import json
import subprocess
import sys

import pytest

from shortlist import load_study
from shortlist.study.schema import HEAD


@pytest.fixture
def shortlist(tmp_path):
    """Runs the command in an empty folder: (*arguments) -> what it printed; fail=True wants exit code 2."""
    (tmp_path / "items.txt").write_text("apple\nbanana\n\ncherry \ndate\n")

    def run(*arguments, fail=False):
        command = [sys.executable, "-m", "shortlist", *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == (2 if fail else 0), done.stderr
        if fail:
            assert done.stderr.startswith("shortlist: ")
            assert done.stderr.count("\n") == 1
        return done.stderr if fail else done.stdout

    return run


def test_a_study_from_the_first_question_to_an_export(shortlist, tmp_path):
    assert "Top 1" not in shortlist("create", "items.txt", "--name", "fruit", "-k", 1, "--delta", 0.2)
    order = "banana", "apple", "cherry", "date"
    for _ in range(3):
        (question,) = json.loads(shortlist("ask", "fruit", "--judge", "ann", "--json"))["questions"]
        better = min(question["first"], question["second"], key=order.index)
        told = json.loads(shortlist("tell", "fruit", question["id"], better, "--json"))
    assert told["votes"] == 3
    question = json.loads(shortlist("ask", "fruit", "--json"))["questions"][0]
    shortlist("tell", "fruit", question["id"], "first")
    assert "closed already" in shortlist("tell", "fruit", question["id"], "first", fail=True)
    shortlist("export", "fruit", "votes.csv")
    rows = list(csv.DictReader((tmp_path / "votes.csv").read_text().splitlines()))
    assert [row["judge"] for row in rows] == ["ann"] * 3 + [""]
    load_study("fruit", f"sqlite:///{tmp_path}/shortlist.db").undo(question["id"])
    assert "Not in it: 1 taken back" in shortlist("export", "fruit", "votes.csv")
    many = "\n".join(f"{a},{b},{a}" for a, b in 20 * [("banana", "apple"), ("banana", "cherry"), ("banana", "date")])
    (tmp_path / "more.csv").write_text(f"first,second,winner\n{many}\n")
    assert "Top 1 of 4: banana" in shortlist("import", "fruit", "more.csv")
    status = json.loads(shortlist("status", "fruit", "--json"))
    assert status["done"]
    assert status["top"] == ["banana"]
    assert status["advice"] is None
    assert json.loads(shortlist("storage", "list", "--json")) == {"studies": ["fruit"]}
    assert f"{HEAD} -> {HEAD}" in shortlist("storage", "upgrade", "sqlite:///shortlist.db")


def test_wrong_calls_end_in_one_line_and_write_nothing(shortlist, tmp_path):
    assert "no storage" in shortlist("status", "fruit", fail=True)
    assert "cannot read" in shortlist("create", "nothing.txt", "--name", "fruit", "-k", 1, fail=True)
    assert "must lie in 1..3" in shortlist("create", "items.txt", "--name", "fruit", "-k", 7, fail=True)
    assert not (tmp_path / "shortlist.db").exists()
    shortlist("create", "items.txt", "--name", "fruit", "-k", 1)
    assert "already" in shortlist("create", "items.txt", "--name", "fruit", "-k", 1, fail=True)
    assert "no study is called 'frut'; there are fruit" in shortlist("status", "frut", fail=True)
    assert "never asked" in shortlist("tell", "fruit", 3, "tie", fail=True)
    shortlist("ask", "fruit")
    assert "no answer" in shortlist("tell", "fruit", 0, "perhaps", fail=True)
    assert "no votes yet" in shortlist("export", "fruit", "votes.csv", fail=True)
    (tmp_path / "bad.csv").write_text("first,second,winner\napple,kiwi,apple\n")
    assert "'kiwi'" in shortlist("import", "fruit", "bad.csv", fail=True)
    assert json.loads(shortlist("status", "fruit", "--json"))["votes"] == 0
