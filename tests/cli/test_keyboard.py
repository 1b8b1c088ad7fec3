"""Judging at the keyboard, in a real terminal."""

import pytest

from shortlist import load_study
from shortlist.cli.keyboard import shortened
from shortlist.study.sql import close_databases
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(shortlist):
    rows = "\n".join(f'{name},"{name} is a fruit\nof colour {colour}"' for name, colour in COLOURS.items())
    (shortlist.folder / "fruit.csv").write_text(f"name,content\n{rows}\n")
    return shortlist.folder


COLOURS = {"apple": "red", "banana": "yellow", "cherry": "dark red", "date": "brown"}


def the_study(folder, name="fruit"):
    close_databases()
    return load_study(name, f"sqlite:///{folder / 'shortlist.db'}")


def test_every_key(folder, shortlist):
    # with this sampling rule the seventh question is on the pair of the undone vote, and is closed with it
    shortlist("create", "fruit.csv", "--name", "fruit", "-k", 1, "--delta", 1e-6, "--sampling", "bridge")
    keys = (
        (b"1", "votes in total"), (b"\x1b[C", "votes in total"), (b"t", r"tie   \(3 votes in total"), (b"s", "skipped"),
        (b"\x1b[D", "votes in total"), (b"2", "votes in total"),
    )  # fmt: skip
    with Terminal(folder, "judge", "fruit", "--as", "ann", "--items", "fruit.csv") as terminal:
        for key, answer in keys:
            terminal.wait_for("2 →")
            terminal.wait_for("of colour")
            terminal.press(key)
            terminal.wait_for(answer)
        terminal.wait_for("of colour")
        study = the_study(folder)
        assert (study.counts["counted"], study.counts["answered"]) == (2, 3)  # saved; the last three can be taken back
        terminal.press(b"?")
        terminal.press(b"\x1b[A\x1b[1;2C\x1b[2~")  # keys that are not ours
        terminal.press(b"u")
        terminal.wait_for("choose again")  # not settled: the same question comes back
        terminal.wait_for("of colour")
        terminal.press(b"1")
        terminal.wait_for("votes in total")
        terminal.wait_for("of colour")
        the_study(folder).settle()  # as half a minute does
        terminal.press(b"u")
        terminal.wait_for("undone: ")
        terminal.wait_for("still counts against")
        terminal.wait_for("of colour")
        terminal.press(b"q")
        screen, code = terminal.finish()
    assert code == 0
    assert "4 answers saved, thank you. Run the same command again to continue." in screen
    assert "Best guess" not in screen  # judges do not see results
    study = the_study(folder)
    given = [answer.outcome for answer in study.rows]
    assert given == [1.0, 0.0, 0.5, None, 1.0, 1.0, None, None]  # the seventh was on the pair of the undone vote
    assert [answer.status for answer in study.rows[5:]] == ["undone", "lost", "pending"]
    assert study.rows[3].status != "pending"
    left = study.pending
    assert len(left) == 1
    with Terminal(folder, "judge", "fruit", "--as", "ann") as terminal:
        for side in (left[0].first, left[0].second):  # what was left is shown again
            terminal.wait_for(side)
        terminal.press(b"u")
        terminal.wait_for("nothing to undo")
        terminal.press(b"\x03")
        screen, code = terminal.finish()
    assert code == 130
    assert "0 answers saved" in screen
    assert screen.strip().endswith("shortlist: interrupted. To run it again: shortlist judge fruit --as ann")


def test_run_with_me_as_the_judge_to_the_end(folder):
    with Terminal(folder, "run", "fruit.csv", "-k", 1, "--judge", "me", "--max-votes", 3) as terminal:
        for _ in range(3):
            terminal.wait_for("2 →")
            terminal.wait_for("of colour")
            terminal.press(b"1")
            terminal.wait_for("votes in total")
        screen, code = terminal.finish()
    assert code == 3
    assert "3 answers saved, thank you. Vote budget used up after 3 votes" in screen
    assert the_study(folder).verdict.done


def test_a_ballot_can_be_left_and_finished(folder, shortlist):
    shortlist("create", "fruit.csv", "--name", "fruit", "-k", 1, "--judges-claim", "public", "--ballot-size", 3)
    with Terminal(folder, "judge", "fruit", "--as", "ann") as terminal:
        terminal.wait_for("1 of 3")
        terminal.press(b"1")
        terminal.wait_for("2 of 3")
        terminal.press(b"s")
        terminal.wait_for("skipped; this counts as a loss for both")
        terminal.wait_for("3 of 3")
        terminal.press(b"q")
        screen, _ = terminal.finish()
    assert "1 of your pairs is left. Run the same command within an hour" in " ".join(screen.split())
    with Terminal(folder, "judge", "fruit", "--as", "ann") as terminal:
        terminal.wait_for("3 of 3")
        terminal.press(b"2")
        screen, code = terminal.finish()
    assert code == 0
    assert "ann has finished their ballot, thank you" in screen
    assert [row.status for row in the_study(folder).rows] == ["counted", "lost", "counted"]
    with Terminal(folder, "judge", "fruit", "--as", "ann") as terminal:
        screen, _ = terminal.finish()
    assert "ann has finished their ballot, thank you" in screen


def test_an_answer_outlives_a_storage_that_is_away_for_a_moment(folder, shortlist):
    shortlist("create", "fruit.csv", "--name", "fruit", "-k", 1, "--delta", 1e-6)
    close_databases()
    file = folder / "shortlist.db"
    with Terminal(folder, "judge", "fruit", "--as", "ann", "--items", "fruit.csv") as terminal:
        terminal.wait_for("of colour")
        file.rename(folder / "away.db")
        terminal.press(b"1")
        terminal.wait_for("Trying again for")
        (folder / "away.db").rename(file)
        terminal.wait_for(r"\(1 votes in total")
        terminal.wait_for("of colour")
        terminal.press(b"q")
        assert terminal.finish()[1] == 0
    assert the_study(folder).counts["counted"] == 1


def test_a_storage_that_stays_away_ends_the_sitting_with_the_command_to_resume(folder, shortlist):
    shortlist("create", "fruit.csv", "--name", "fruit", "-k", 1, "--delta", 1e-6)
    close_databases()
    command = ["judge", "fruit", "--as", "ann", "--items", "fruit.csv", "--storage-patience", "0"]
    with Terminal(folder, *command) as terminal:
        terminal.wait_for("of colour")
        (folder / "shortlist.db").rename(folder / "away.db")
        terminal.press(b"1")
        screen, code = terminal.finish()
    assert code == 4
    assert f"To resume, run: shortlist {' '.join(command)}" in " ".join(screen.split())


def test_without_a_terminal(folder, shortlist):
    shortlist("create", "fruit.csv", "--name", "fruit", "-k", 1)
    assert shortlist.refused("judge", "fruit") == (
        "shortlist: judging needs a terminal; in a script, use `shortlist ask fruit` and "
        "`shortlist tell fruit NUMBER ANSWER`\n"
    )


def test_measured_differences_need_no_keys(folder, shortlist):
    shortlist("create", "fruit.csv", "--name", "fruit", "-k", 1, "--family", "gaussian")
    assert "shortlist tell fruit NUMBER VALUE" in shortlist.refused("judge", "fruit")


def test_commands_to_the_terminal_in_a_text_are_shown_and_not_obeyed():
    """An output of a model could clear the screen, or hide what stands beside it."""
    assert shortened("a\x1b[2J\x07b\x9b2Jc\r\nd\te") == "a␛[2J␇b\ufffd2Jc\nd\te"
    assert shortened("x" * 50, 10) == "xxxxxxxxxx … and 40 more characters"
