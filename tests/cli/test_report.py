"""`shortlist report`, and the demo with its report."""

import subprocess
import sys

import pytest

import shortlist as package
from shortlist.votes.table import write_votes
from tests.analysis.studies import ITEMS, table
from tests.report.html import check

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(shortlist):
    """A stored study of a few votes, and a file of votes."""
    study = package.create_study(ITEMS, 2, storage="sqlite:///shortlist.db", name="trees")
    for _ in range(12):
        study.tell(study.ask(judge="ann"), 1.0)
    write_votes(shortlist.folder / "votes.csv", table(200))
    return shortlist.folder


def test_a_stored_study(folder, shortlist):
    assert "Report written to report.html" in shortlist("report", "trees").out
    assert "trees" in check((folder / "report.html").read_text(encoding="utf-8")).words


def test_json_alone_and_with_a_file(folder, shortlist):
    found = shortlist.json("report", "trees", "--out", "both.html")
    assert found["votes"] == 12
    assert found["top"]
    assert (folder / "both.html").exists()
    assert shortlist.json("report", "trees")["sentence"] == found["sentence"]
    assert not (folder / "report.html").exists()


def test_a_file_of_votes(folder, shortlist):
    assert shortlist.json("report", "--votes", "votes.csv", "-k", 2)["name"] == "votes.csv"
    assert not (folder / "votes.html").exists()


def test_wrong_input_is_one_line(folder, shortlist):
    for arguments, said in (
        (["report"], "give either the name of a study, or --votes"),
        (["report", "trees", "--votes", "votes.csv"], "give either"),
        (["report", "--votes", "votes.csv"], "give -k"),
        (["report", "--votes", "votes.csv", "-k", 2, "--stopping", "magic"], "unknown stopping rule"),
        (["report", "nothing"], "there is no study named 'nothing'"),
        (["report", "trees", "--out", "."], "is a folder"),
        (["report", "trees", "--out", "no/such/report.html"], "there is no folder"),
        (["demo", "--out", "no/such/report.html"], "there is no folder"),
    ):
        assert said in shortlist.refused(*arguments)
    assert not (folder / "report.html").exists()


def test_the_demo_ends_in_a_verdict_and_a_report(shortlist):
    said = shortlist("demo").out
    assert "this one is right" in said
    assert "report.html" in said
    page = check((shortlist.folder / "report.html").read_text(encoding="utf-8"))
    assert "Proved: the top 3 of 12" in page.words
    assert "fewer votes" in page.words


def test_the_demo_without_a_report(shortlist):
    assert "report" not in shortlist("demo", "--delta", 0.3, "--no-report").out
    found = shortlist.json("demo")
    assert found["done"] is True
    assert set(found["top"]) == {"reason then check", "three examples", "step by step"}
    assert not list(shortlist.folder.iterdir())


def test_the_demo_needs_no_extra(tmp_path):
    """In a process of its own, where the packages of all extras are missing."""
    extras = "fastapi uvicorn httpx psycopg pandas polars pyarrow numba dask distributed"
    for name in extras.split():
        (tmp_path / f"{name}.py").write_text("raise ImportError('not here')\n")
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from shortlist.cli import main; main()"
    command = [sys.executable, "-c", code, tmp_path, "demo", "--delta", "0.3", "--out", tmp_path / "report.html"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").exists()
