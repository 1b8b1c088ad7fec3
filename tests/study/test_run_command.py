"""`shortlist run` as people call it: with a program, a language model, recorded votes; stopped, resumed, refused."""

import json
import signal
import subprocess
import sys
import time

import pytest

from shortlist import load_study
from shortlist.cli.app import main
from shortlist.study.sql import close_databases
from tests.judges.server import serving
from tests.study.terminal import Terminal

STRENGTH = {"apple": 4, "banana": 3, "cherry": 1, "date": 0}
PROGRAM = """
import json, random, sys, time
strength = {"apple": 4, "banana": 3, "cherry": 1, "date": 0}
for line in sys.stdin:
    asked = json.loads(line)
    time.sleep(float(sys.argv[1]))
    gap = strength[asked["first"]] - strength[asked["second"]]
    first = random.Random(asked["id"]).random() < 1 / (1 + 2.718**-gap)
    print(json.dumps({"id": asked["id"], "winner": "first" if first else "second"}), flush=True)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "fruit.txt").write_text("\n".join(STRENGTH))
    (tmp_path / "judge.py").write_text(PROGRAM)
    return tmp_path


def program(pause=0):
    return ["--judge", f"{sys.executable} judge.py {pause}", "--keep", "2"]


def run(folder, *arguments, code=0):
    command = [sys.executable, "-m", "shortlist", "run", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture
def refused(folder, monkeypatch, capsys):
    """The one line with which a call is refused; in this process, which is quicker."""

    def call(*arguments):
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["shortlist", "run", *map(str, arguments)])
        with pytest.raises(SystemExit, match="2"):
            main()
        close_databases()
        said = capsys.readouterr().err
        assert said.startswith("shortlist: ")
        assert said.count("\n") == 1
        return said

    return call


def test_a_program_judges_and_the_same_command_goes_on(folder):
    command = "fruit.txt", "-k", 2, *program(), "--json"
    part = run(folder, *command, "--max-calls", 10)
    found = json.loads(part.stdout)
    assert not found["done"]
    assert found["votes"] == 10
    assert "new study fruit in sqlite:///shortlist.db: best 2 of 4, error at most 0.05" in part.stderr
    assert "at most" in part.stderr
    rest = run(folder, *command)
    found = json.loads(rest.stdout)
    assert found["done"]
    assert found["reason"] == "certified"
    assert set(found["top"]) == {"apple", "banana"}
    assert found["error_bound"] <= 0.05
    assert found["costs"]["calls"] >= found["votes"] - 10
    assert "going on with fruit" in rest.stderr
    again = json.loads(run(folder, *command).stdout)
    assert again["votes"] == found["votes"]
    assert again["costs"]["calls"] == 0


def test_a_language_model_judges_with_contents_and_cases(folder, refused, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-this-is-the-secret-42")
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    answers = folder / "answers"
    answers.mkdir()
    for number, name in enumerate(STRENGTH):
        (answers / f"{name}.txt").write_text(f"{number} is my answer")
    (folder / "cases.txt").write_text("\n".join(f"case {number}" for number in range(40)))
    (folder / "prompt.txt").write_text("On {case}:\n[Answer A]\n{first}\n[End]\n[Answer B]\n{second}\n[End]")
    with serving() as endpoint:
        options = ["--judge-url", endpoint.url, "--model", "tiny", "--cases", "cases.txt", "--prompt", "prompt.txt"]
        done = run(folder, "answers", "-k", 2, *options, "--order", "both", "--json")
        found = json.loads(done.stdout)
        assert found["done"]
        assert set(found["top"]) == {"apple.txt", "banana.txt"}  # what comes first in the alphabet
        arrived, costs = len(endpoint.requests), found["costs"]  # a call given up at the end may not have got this far
        assert costs["calls"] - costs["skips"] <= arrived <= costs["calls"]
        assert found["flip_rate"] == 0.0
        assert all("is my answer" in request["body"]["messages"][0]["content"] for request in endpoint.requests)
        bad = refused("answers", "-k", 2, *options[:4], "--prompt", "prompt.txt", "--name", "other")
    assert "shows {case}, but the study has no cases" in bad
    assert "secret" not in done.stdout + done.stderr
    assert not any(b"secret" in file.read_bytes() for file in folder.glob("shortlist.db*"))


def test_recorded_votes_judge(folder):
    rows = [(a, b, a) for a in STRENGTH for b in STRENGTH if STRENGTH[a] > STRENGTH[b] and a != "cherry"]
    votes = "\n".join(",".join(row) for row in 30 * rows)
    (folder / "votes.csv").write_text(f"first,second,winner\n{votes}\nkiwi,apple,kiwi\n")
    found = json.loads(run(folder, "fruit.txt", "-k", 2, "--votes", "votes.csv", "--json").stdout)
    assert found["done"]
    assert set(found["top"]) == {"apple", "banana"}
    study = load_study("fruit", f"sqlite:///{folder / 'shortlist.db'}")
    assert not any({a.question.first, a.question.second} == {"cherry", "date"} for a in study.history)


def test_ctrl_c_saves_all_and_says_how_to_go_on(folder):
    arguments = ["fruit.txt", "-k", "2", "--delta", "1e-9", *program(0.01)]
    command = [sys.executable, "-m", "shortlist", "run", *arguments]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    database = folder / "shortlist.db"
    until = time.monotonic() + 60
    while not (database.exists() and _votes(database) >= 5):
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "votes are saved. To go on:" in said
    assert said.splitlines()[-1] == "  shortlist run " + " ".join(
        f"'{word}'" if " " in word else word for word in arguments
    )
    assert _votes(database) >= 5


def _votes(database):
    try:
        return load_study("fruit", f"sqlite:///{database}").verdict.votes
    except Exception:  # it is being made
        return 0


def test_the_live_lines(folder):
    with Terminal(folder, "run", "fruit.txt", "-k", 2, *program(0.01)) as terminal:
        screen, code = terminal.finish()
    assert code == 0
    for words in ("to go", "a second", "error bound", "undecided", "4: apple, banana, cherry, date", "made, 0 saved"):
        assert words in screen
    assert "Top 2 of 4: " in screen


def test_what_cannot_be_run_is_refused_and_nothing_is_written(folder, refused):
    (folder / "bad.csv").write_text("colour\nred\n")
    (folder / "half.jsonl").write_text('{"name": "a", "content": "x"}\n{"name": "b"}\n')
    (folder / "empty.txt").write_text("\n")
    for arguments, said in (
        (["fruit.txt", "-k", 2], "who judges?"),
        (["fruit.txt", "-k", 2, "--judge", "x", "--votes", "y"], "who judges?"),
        (["fruit.txt", "-k", 2, "--judge", "no-such-program"], "there is no program 'no-such-program'"),
        (["fruit.txt", "-k", 2, "--judge-url", "http://127.0.0.1:9/v1"], "needs a model"),
        (["fruit.txt", "-k", 2, *program(), "--model", "x"], "--model is for another kind of judge"),
        (["fruit.txt", "-k", 9, *program()], "must lie in 1..3"),
        (["fruit.txt", "-k", 2, *program(), "--cases", "none.txt"], "cannot read none.txt"),
        (["none.txt", "-k", 2, *program()], "cannot read none.txt"),
        (["bad.csv", "-k", 2, *program()], "line 2 has no name"),
        (["half.jsonl", "-k", 1, *program()], "item 'b' has no content"),
        (["empty.txt", "-k", 1, *program()], "holds no items"),
        (["fruit.txt", "-k", 2, "--judge", "me", "--json"], "has no --json"),
    ):
        assert said in refused(*arguments)
    assert not list(folder.glob("*.db"))


def test_another_study_of_that_name_is_refused_in_words_for_the_command_line(folder, refused):
    run(folder, "fruit.txt", "-k", 2, *program(), "--max-calls", 3)
    for change, said in (
        (["-k", 1], "k is 2 there and 1 here"),
        (["-k", 2, "--delta", 0.01], "delta is 0.05 there and 0.01 here"),
    ):
        answer = refused("fruit.txt", *change, *program())
        assert said in answer
        assert "another --name" in answer
    (folder / "fruit.txt").write_text("apple\nkiwi\nfig\n")
    answer = refused("fruit.txt", "-k", 2, *program())
    assert "items is ['apple', 'banana', 'cherry', 'date'] there" in answer
    assert "load_if_exists" not in answer


def test_a_judge_that_fails_leaves_all_that_it_said(folder):
    count = folder / "count"
    (folder / "tired.py").write_text(
        "import json, pathlib, sys\n"
        f"count = pathlib.Path({str(count)!r})\n"
        "asked = json.loads(sys.stdin.read())\n"
        "with count.open('a') as file: file.write('x')\n"
        "sys.exit(1) if len(count.read_text()) > 5 else print(json.dumps({'winner': 'first'}))\n"
    )
    tired = ["--judge", f"{sys.executable} tired.py", "--workers", 1, "--retries", 0]
    said = run(folder, "fruit.txt", "-k", 2, "--delta", 1e-9, *tired, code=2).stderr
    assert "ended with status 1" in said
    assert "All 5 votes are saved; the same command goes on" in said
    assert _votes(folder / "shortlist.db") == 5


def test_every_command_can_speak_json():
    from typer.main import get_command

    from shortlist.cli.app import app

    excepted = {
        "judge": "a person at a terminal",
        "serve": "runs until it is stopped and prints where",
    }

    def walk(command, path=()):
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*path, name))
        if not hasattr(command, "commands"):
            yield " ".join(path), {word for option in command.params for word in option.opts}

    commands = dict(walk(get_command(app)))
    assert len(commands) >= 18
    without = {name for name, options in commands.items() if "--json" not in options}
    assert without <= set(excepted), "give it --json, or say why not"
