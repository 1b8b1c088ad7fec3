"""`shortlist audit`: people answer what a judge has answered, in a real terminal or from a file."""

import json
import re

import httpx
import pytest

from shortlist import load_study
from shortlist.study.sql import close_databases
from tests.cli.terminal import Terminal

JUDGE = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    winner = "first" if len(asked["first_text"]) > len(asked["second_text"]) else "second"
    print(json.dumps({"id": asked["id"], "winner": winner}), flush=True)
"""
WORDS = {"short": 2, "middle": 6, "long": 20}


@pytest.fixture
def folder(shortlist):
    rows = [
        {"item": item, "case": f"c{case}", "text": f"Question {case}?", "output": " ".join([f"word{case}"] * size)}
        for case in range(12)
        for item, size in WORDS.items()
    ]
    (shortlist.folder / "answers.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (shortlist.folder / "judge.py").write_text(JUDGE)
    shortlist("run", "answers.jsonl", "-k", 1, "--judge", "python judge.py", "--keep", 1)
    return shortlist.folder


def answers(folder):
    return [json.loads(line) for line in (folder / "answers.audit.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_a_person_at_the_keyboard(folder, shortlist):
    with Terminal(folder, "audit", "answers", "--as", "ann") as terminal:
        for key in (b"1", b"t", b"s"):
            terminal.wait_for("2 →")
            terminal.wait_for("word")
            terminal.press(key)
        terminal.wait_for("2 →")
        terminal.press(b"u")
        terminal.wait_for("choose again")
        terminal.wait_for("2 →")
        terminal.press(b"2")
        terminal.wait_for("2 →")
        terminal.press(b"q")
        screen, code = terminal.finish()
    assert code == 0
    assert "3 answers saved in answers.audit.jsonl." in screen
    assert not any(
        item in screen.split("answers saved")[0] for item in WORDS
    )  # nobody sees what the judge said, or who
    first = answers(folder)
    assert [entry.get("share") for entry in first][1:3] == [0.5, None]
    with Terminal(folder, "audit", "answers", "--as", "ann", "--answers", "4") as terminal:  # it goes on
        terminal.wait_for("2 →")
        terminal.press(b"\x1b[C")
        screen, code = terminal.finish()
    assert "4 answers saved" in screen
    assert answers(folder)[: len(first)] == first
    close_databases()
    study = load_study("answers", f"sqlite:///{folder / 'shortlist.db'}")
    assert "ann" not in {row.judge for row in study.rows}


@pytest.mark.slow
def test_people_answer_on_a_page(folder, shortlist):
    """Blind, each under their name, and it goes on where they stopped. Nobody without the link sees anything."""
    with (
        Terminal(folder, "audit", "answers", "--as", "ann", "--browser", "--answers", "3") as terminal,
        httpx.Client(trust_env=False, follow_redirects=True) as browser,
    ):
        terminal.wait_for(r"http://127\.0\.0\.1:\d+/[\w-]+\?as=ann")
        link = re.search(r"http://[^\s?]+", terminal.screen)[0]

        def press(person, key, number):
            return browser.post(link, params={"as": person}, data={"number": number, "key": key})

        page = browser.get(link, params={"as": "ann"})
        assert "word" in page.text
        assert not any(item in page.text for item in WORDS)
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        assert "Your name" in browser.get(link).text
        assert browser.get(link[:-3]).status_code == 404
        assert "1 of 3 answered" in press("ann", "1", 0).text
        assert "1 of 3 answered" in press("ann", "2", 0).text  # sent twice: the first counts
        assert "0 of 3 answered" in press("ann", "u", 1).text
        assert "1 of 3 answered" in press("ben <b>", "2", 0).text
        press("ann", "nonsense", 0)
        terminal.press(b"\x03")
        screen, code = terminal.finish()
    assert (code, "1 answer of 1 person" in screen) == (0, True)
    assert [entry["person"] for entry in answers(folder)] == ["ann", "ann", "ben <b>"]
    close_databases()
    study = load_study("answers", f"sqlite:///{folder / 'shortlist.db'}")
    assert {row.judge for row in study.rows} == {"python judge.py"}


def test_votes_of_people_from_a_file(folder, shortlist):
    """People prefer the short answer, the judge the long one."""
    pairs = [("short", "long"), ("middle", "long"), ("short", "middle")]
    rows = [f"{one},{other},{one},ann,c{case}" for case in range(12) for one, other in pairs]
    (folder / "people.csv").write_text("\n".join(["first,second,winner,judge,case", *rows, "other,thing,other,ann,c1"]))
    told = shortlist("audit", "answers", "--people", "people.csv").out
    assert told.startswith("Do not rely on this judge without reading its answers.")
    found = json.loads(shortlist("audit", "answers", "--people", "people.csv", "--json").out)
    assert found["agreement"] == 0.0
    assert any("longer answer" in accusation for accusation in found["accusations"])
    assert len(found["disagreements"]) == found["answers"] > 5


def test_what_cannot_be_compared(folder, shortlist):
    (folder / "people.csv").write_text("first,second,winner\nred,blue,red\n")
    assert "no vote on a pair and case" in shortlist("audit", "answers", "--people", "people.csv", code=2).err
    (folder / "answers.audit.jsonl").write_text("{}\n")
    assert "line 1: not an answer of an audit" in shortlist("audit", "answers", code=2).err
    (folder / "answers.audit.jsonl").unlink()
    assert "Too few answers to tell: 0 so far." in shortlist("audit", "answers").out
    assert shortlist.json("audit", "answers", "answers.jsonl")["answers"] == 0  # the texts of the run, given again
    (folder / "colours.txt").write_text("red\nblue\n")
    shortlist("create", "colours.txt", "--name", "empty", "-k", 1)
    assert "nothing to audit" in shortlist("audit", "empty", code=2).err
