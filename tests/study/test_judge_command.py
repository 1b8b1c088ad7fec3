"""Judging at the keyboard, in a real terminal."""

import subprocess
import sys

import pytest

from shortlist import load_study
from shortlist.study.sql import close_databases
from tests.study.terminal import Terminal


@pytest.fixture
def folder(tmp_path):
    rows = "\n".join(f'{name},"{name} is a fruit\nof colour {colour}"' for name, colour in COLOURS.items())
    (tmp_path / "fruit.csv").write_text(f"name,content\n{rows}\n")
    return tmp_path


COLOURS = {"apple": "red", "banana": "yellow", "cherry": "dark red", "date": "brown"}


def the_study(folder, name="fruit"):
    close_databases()
    return load_study(name, f"sqlite:///{folder / 'shortlist.db'}")


def test_every_key(folder):
    create = ["create", "fruit.csv", "--name", "fruit", "-k", "1", "--delta", "1e-6"]
    subprocess.run([sys.executable, "-m", "shortlist", *create], cwd=folder, check=True, capture_output=True)
    keys = (
        (b"1", "votes in all"), (b"\x1b[C", "votes in all"), (b"t", "tie   (3 votes in all)"), (b"s", "skipped"),
        (b"\x1b[D", "votes in all"), (b"2", "votes in all"),
    )  # fmt: skip
    with Terminal(folder, "judge", "fruit", "--as", "ann", "--items", "fruit.csv") as terminal:
        for key, answer in keys:
            terminal.wait_for("2 →")
            terminal.wait_for("of colour")
            terminal.press(key)
            terminal.wait_for(answer)
        terminal.wait_for("of colour")
        assert len(the_study(folder).votes) == 5  # saved at each key
        terminal.press(b"?")
        terminal.press(b"\x1b[A\x1b[1;2C\x1b[2~")  # keys that are not ours
        terminal.press(b"u")
        terminal.wait_for("taken back")
        terminal.press(b"q")
        screen, code = terminal.finish()
    assert code == 0
    assert "4 answers saved, thank you. The same command goes on." in screen
    assert "Best guess" not in screen  # who judges sees no results
    study = the_study(folder)
    given = [answer.outcome for answer in study.history]
    assert given == [1.0, 0.0, 0.5, None, 1.0, 0.0, None]
    assert [answer.undone for answer in study.history] == [False] * 5 + [True, False]
    assert study.history[3].closed
    left = study.out
    assert len(left) == 1
    with Terminal(folder, "judge", "fruit", "--as", "ann") as terminal:
        for side in (left[0].first, left[0].second):  # what was left is shown again
            terminal.wait_for(side)
        terminal.press(b"u")
        terminal.wait_for("nothing to take back")
        terminal.press(b"\x03")
        screen, code = terminal.finish()
    assert code == 0
    assert "0 answers saved" in screen


def test_run_with_me_as_the_judge_to_the_end(folder):
    with Terminal(folder, "run", "fruit.csv", "-k", 1, "--judge", "me", "--max-votes", 3) as terminal:
        for _ in range(3):
            terminal.wait_for("2 →")
            terminal.wait_for("of colour")
            terminal.press(b"1")
            terminal.wait_for("votes in all")
        screen, code = terminal.finish()
    assert code == 0
    assert "3 answers saved, thank you. Vote budget used up after 3 votes" in screen
    assert the_study(folder).verdict.done


def test_without_a_terminal(folder):
    for arguments in (["create", "fruit.csv", "--name", "fruit", "-k", "1"], ["judge", "fruit"]):
        command = [sys.executable, "-m", "shortlist", *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert done.stderr == (
        "shortlist: this needs a terminal to show questions and read keys; in a script use "
        "`shortlist ask fruit` and `shortlist tell fruit NUMBER ANSWER`\n"
    )
