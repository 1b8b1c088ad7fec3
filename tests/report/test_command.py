"""`shortlist report`, and the demo's report."""

import json
import subprocess
import sys

import pytest

import shortlist
from shortlist.io.write import write_votes
from tests.findings.studies import ITEMS, table
from tests.report.html import check


def run(*arguments, folder):
    command = [sys.executable, "-m", "shortlist", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A stored study of a few votes, and a file of votes."""
    here = tmp_path_factory.mktemp("reports")
    study = shortlist.create_study(ITEMS, 2, storage=f"sqlite:///{here}/shortlist.db", name="trees")
    for _ in range(12):
        study.tell(study.ask(judge="ann"), 1.0)
    write_votes(here / "votes.csv", table(200))
    return here


def test_a_stored_study(folder):
    done = run("report", "trees", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "Report written to report.html" in done.stdout
    assert "trees" in check((folder / "report.html").read_text(encoding="utf-8")).words


def test_json_alone_and_with_a_file(folder):
    done = run("report", "trees", "--json", "--out", "both.html", folder=folder)
    found = json.loads(done.stdout)
    assert found["verdict"]["votes"] == 12
    assert [place["item"] for place in found["standing"]["places"]]
    assert (folder / "both.html").exists()


def test_a_file_of_votes(folder):
    done = run("report", "--votes", "votes.csv", "-k", 2, "--json", folder=folder)
    assert json.loads(done.stdout)["name"] == "votes.csv"
    assert not (folder / "votes.html").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["report"], "name a study"),
        (["report", "trees", "--votes", "votes.csv"], "one of the two"),
        (["report", "--votes", "votes.csv"], "give -k"),
        (["report", "nothing"], "no study is called"),
        (["report", "trees", "--out", "."], "is a folder"),
        (["report", "trees", "--out", "no/such/report.html"], "no folder"),
        (["demo", "--out", "no/such/report.html"], "no folder"),
    ],
)
def test_wrong_input_is_one_line(folder, arguments, said):
    done = run(*arguments, folder=folder)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout


def test_the_demo_writes_its_report(tmp_path):
    done = run("demo", "--delta", "0.3", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "report.html" in done.stdout
    page = check((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "Proved: the top 3 of 12" in page.words
    assert "fewer votes" in page.words


def test_the_demo_without_a_report(tmp_path):
    done = run("demo", "--delta", "0.3", "--no-report", folder=tmp_path)
    assert "report" not in done.stdout
    assert not list(tmp_path.iterdir())
    assert json.loads(run("demo", "--delta", "0.3", "--json", folder=tmp_path).stdout)["done"]
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_there_is_a_clear_word(tmp_path, folder):
    (tmp_path / "matplotlib.py").write_text("raise ImportError('not here')\n")
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from shortlist.cli import main; main()"

    def bare(*arguments):
        command = [sys.executable, "-c", code, str(tmp_path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder)

    done = bare("report", "trees", "--out", "bare.html")
    assert done.returncode == 2
    assert done.stderr == "shortlist: a report needs matplotlib: pip install 'shortlist[plots]'\n"
    assert not (folder / "bare.html").exists()
    done = bare("demo", "--delta", "0.3", "--out", "bare.html")
    assert done.returncode == 0
    assert "No report: a report needs matplotlib" in done.stdout
