"""`shortlist run` as people call it: with a program, a language model, recorded votes; stopped, resumed, refused."""

import json
import os
import re
import shlex
import signal
import sys

import pytest

from shortlist import load_study
from shortlist.errors import StorageUnavailable
from shortlist.study.study import Study
from tests.cli.terminal import Terminal
from tests.judges.server import serving

pytestmark = pytest.mark.slow

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
def folder(shortlist):
    (shortlist.folder / "fruit.txt").write_text("\n".join(STRENGTH))
    (shortlist.folder / "judge.py").write_text(PROGRAM)
    return shortlist.folder


def program(pause=0):
    return ["--judge", f"{sys.executable} judge.py {pause}", "--keep", 2]


def stored(name="fruit"):
    return load_study(name, "sqlite:///shortlist.db")


def test_a_program_judges_and_the_same_command_resumes(folder, shortlist):
    command = "run", "fruit.txt", "-k", 2, *program(), "--json"
    part = shortlist(*command, "--max-calls", 10)
    found = json.loads(part.out)
    assert not found["done"]
    assert found["votes"] == 10
    assert "new study fruit in sqlite:///shortlist.db: best 2 of 4, error at most 0.05" in part.err
    assert "note: " in part.err
    rest = shortlist(*command)
    found = json.loads(rest.out)
    assert found["done"]
    assert found["reason"] == "certified"
    assert set(found["top"]) == {"apple", "banana"}
    assert found["error_bound"] <= 0.05
    assert found["costs"]["calls"] >= found["votes"] - 10
    assert "resuming fruit" in rest.err
    again = json.loads(shortlist(*command).out)
    assert again["votes"] == found["votes"]
    assert again["costs"]["calls"] == 0
    said = shortlist(*command[:-1]).out
    assert "Top 2 of 4: " in said
    assert "Calls in this run: 0 made" in said


def test_a_language_model_judges_with_contents_and_cases(folder, shortlist, monkeypatch):
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
        done = shortlist("run", "answers", "-k", 2, *options, "--order", "both", "--json")
        found = json.loads(done.out)
        assert found["done"]
        assert set(found["top"]) == {"apple.txt", "banana.txt"}  # what comes first in the alphabet
        arrived, costs = len(endpoint.requests), found["costs"]  # a call given up at the end may not have got this far
        assert costs["calls"] - costs["skips"] <= arrived <= costs["calls"]
        assert found["flip_rate"] == 0.0
        assert all("is my answer" in request["body"]["messages"][0]["content"] for request in endpoint.requests)
        bad = shortlist.refused("run", "answers", "-k", 2, *options[:4], "--prompt", "prompt.txt", "--name", "other")
    assert "shows {case}, but the study has no cases" in bad
    assert "secret" not in done.out + done.err
    assert not any(b"secret" in file.read_bytes() for file in folder.glob("shortlist.db*"))


def test_recorded_votes_judge(folder, shortlist):
    rows = [(a, b, a) for a in STRENGTH for b in STRENGTH if STRENGTH[a] > STRENGTH[b] and a != "cherry"]
    votes = "\n".join(",".join(row) for row in 30 * rows)
    (folder / "votes.csv").write_text(f"first,second,winner\n{votes}\nkiwi,apple,kiwi\n")
    found = shortlist.json("run", "fruit.txt", "-k", 2, "--votes", "votes.csv")
    assert found["done"]
    assert set(found["top"]) == {"apple", "banana"}
    assert not any({row.first, row.second} == {"cherry", "date"} for row in stored().rows)
    assert len({row.case for row in stored().rows}) == len(stored().rows)


def test_votes_of_one_case_are_used_up_together(folder, shortlist):
    rows = [f"{a},{b},{a},case {number}" for number in range(6) for a in STRENGTH for b in STRENGTH if a < b]
    (folder / "votes.csv").write_text("\n".join(["first,second,winner,case", *rows]))
    command = ["run", "fruit.txt", "-k", 2, "--votes", "votes.csv"]
    done = shortlist(*command)
    assert "a question uses up all votes of a case, 6 units in all" in done.err
    assert "6 of 6 units were used. Not proved." in done.err
    assert "Run the same command again" not in done.out
    assert "Guarantee" not in done.out
    assert sorted(row.case for row in stored().rows) == [f"unit case {number}" for number in range(6)]
    by_row = shortlist.json(*command, "--unit", "row", "--name", "rows")
    assert by_row["votes"] > 6
    assert "has no judge column" in shortlist.refused(*command, "--unit", "judge", "--name", "judges")
    without = ["run", "fruit.txt", "-k", 2, *program(), "--unit", "row"]
    assert "--unit works only with --votes" in shortlist.refused(*without)
    assert "leave out --cases" in shortlist.refused(*command, "--cases", "fruit.txt", "--name", "both")
    assert by_row["used_up"] != by_row["done"]


def test_a_higher_vote_budget_continues_and_other_limits_name_the_way(folder, shortlist):
    command = ["run", "fruit.txt", "-k", 2, *program()]
    assert shortlist.json(*command, "--max-votes", 5)["reason"] == "budget"
    found = shortlist.json(*command, "--max-votes", 9)
    assert (found["reason"], found["votes"]) == ("budget", 9)
    assert shortlist.json(*command, "--max-votes", 5)["votes"] == 9  # the command that it was created with
    for options in (["--max-votes", 7], [], ["--max-votes", 9, "--delta", 0.01]):
        said = shortlist.refused(*command, *options)
        assert "change it with shortlist set fruit" in said
        assert "max_votes is 9 there" in said or "delta is 0.05 there and 0.01 here" in said
    assert "change it" not in shortlist.refused("run", "fruit.txt", "-k", 1, *program(), "--max-votes", 12)
    assert stored().problem.max_votes == 9
    shortlist("set", "fruit", "--max-votes", "none", "--delta", 0.04)
    rest = shortlist(*command, "--max-votes", 5, "--json")
    assert json.loads(rest.out)["reason"] == "certified"
    assert "error at most 0.05" in rest.err


def test_claims_about_cases(folder, shortlist):
    (folder / "cases.txt").write_text("\n".join(f"case {number}" for number in range(200)))
    command = ["run", "fruit.txt", "-k", 2, *program(), "--cases", "cases.txt"]
    these = shortlist(*command, "--name", "these").out
    assert "on average over these 200 cases." in these
    alike = shortlist.json(*command, "--cases-claim", "like-these")
    assert alike["guarantee"].endswith("cases like these (each of the 200 cases was used at most once)")
    cases = [row.case for row in stored().rows]
    assert len(set(cases)) == len(cases)
    assert "give --cases FILE" in shortlist.refused(*command[:-2], "--cases-claim", "like-these", "--name", "none")
    assert "cases_claim is like these there and these here" in shortlist.refused(*command)
    (folder / "cases.txt").write_text("one\ntwo\nthree")
    short = shortlist(*command, "--cases-claim", "like-these", "--name", "short")
    assert "All cases are used up, each for one question: 3 of 3. Not proved." in short.err
    assert "Guarantee" not in short.out
    assert short.out.count("Caveat") == short.out.count("Caveat: 3 studies of these items") == 1
    few = shortlist(*command, "--name", "few", "--max-votes", 10).out.splitlines()
    assert re.fullmatch(r"  Caveat: The votes are about [23] cases\. The result holds for these, .*", few[1])


@pytest.mark.parametrize("order", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_an_interrupted_run_saves_all_and_says_how_to_resume(folder, order):
    arguments = ["run", "fruit.txt", "-k", "2", "--delta", "1e-9", *map(str, program(0.01))]
    with Terminal(folder, *arguments) as terminal:
        terminal.wait_for(r"votes +([5-9]|[1-9]\d)")
        terminal.press(b"\x03") if order == signal.SIGINT else os.kill(terminal.pid, order)
        screen, code = terminal.finish()
    assert code == 130
    said = f"shortlist: interrupted; {stored().verdict.votes} votes saved. To resume, run: "
    assert said + shlex.join(["shortlist", *arguments]) in screen
    assert stored().verdict.votes >= 5


def test_the_live_lines(folder):
    with Terminal(folder, "run", "fruit.txt", "-k", 2, *program(0.01)) as terminal:
        screen, code = terminal.finish()
    assert code == 0
    for words in ("to go", "per second", "error bound", "undecided", "4: apple, banana, cherry, date", "made, 0 saved"):
        assert words in screen
    assert "Top 2 of 4: " in screen


def test_what_cannot_be_run_is_refused_and_nothing_is_written(folder, shortlist):
    (folder / "bad.csv").write_text("colour\nred\n")
    (folder / "half.jsonl").write_text('{"name": "a", "content": "x"}\n{"name": "b"}\n')
    (folder / "empty.txt").write_text("\n")
    for arguments, said in (
        (["fruit.txt", "-k", 2], "give exactly one judge"),
        (["fruit.txt", "-k", 2, "--judge", "x", "--votes", "y"], "give exactly one judge"),
        (["fruit.txt", "-k", 2, "--judge", "no-such-program"], "there is no program 'no-such-program'"),
        (["fruit.txt", "-k", 2, "--judge-url", "http://127.0.0.1:9/v1"], "needs a model"),
        (["fruit.txt", "-k", 2, *program(), "--model", "x"], "--model works only with --judge-url"),
        (["fruit.txt", "-k", 9, *program()], "must be from 1 to 3"),
        (["fruit.txt", "-k", 2, *program(), "--cases", "none.txt"], "cannot read none.txt"),
        (["none.txt", "-k", 2, *program()], "cannot read none.txt"),
        (["bad.csv", "-k", 2, *program()], "line 2 has no name"),
        (["half.jsonl", "-k", 1, *program()], "item 'b' has no content"),
        (["empty.txt", "-k", 1, *program()], "contains no items"),
        (["fruit.txt", "-k", 2, "--judge", "me", "--json"], "leave out --json"),
    ):
        assert said in shortlist.refused("run", *arguments)
    assert not list(folder.glob("*.db"))


def test_another_study_of_that_name_is_refused_in_words_for_the_command_line(folder, shortlist):
    shortlist("run", "fruit.txt", "-k", 2, *program(), "--max-calls", 3)
    for change, said in (
        (["-k", 1], "k is 2 there and 1 here"),
        (["-k", 2, "--delta", 0.01], "delta is 0.05 there and 0.01 here"),
    ):
        answer = shortlist.refused("run", "fruit.txt", *change, *program())
        assert said in answer
        assert "another --name" in answer
    (folder / "fruit.txt").write_text("apple\nkiwi\nfig\n")
    answer = shortlist.refused("run", "fruit.txt", "-k", 2, *program())
    assert "items is ['apple', 'banana', 'cherry', 'date'] there" in answer
    assert "load_if_exists" not in answer


def test_a_judge_that_fails_leaves_all_that_it_said(folder, shortlist):
    count = folder / "count"
    (folder / "tired.py").write_text(
        "import json, pathlib, sys\n"
        f"count = pathlib.Path({str(count)!r})\n"
        "asked = json.loads(sys.stdin.read())\n"
        "with count.open('a') as file: file.write('x')\n"
        "sys.exit(1) if len(count.read_text()) > 5 else print(json.dumps({'winner': 'first'}))\n"
    )
    tired = ["--judge", f"{sys.executable} tired.py", "--workers", 1, "--retries", 0]
    said = shortlist("run", "fruit.txt", "-k", 2, "--delta", 1e-9, *tired, code=4).err
    assert "ended with status 1" in said
    assert said.endswith(f"5 votes saved. To resume, run: {shlex.join(['shortlist', *sys.argv[1:]])}\n")
    assert stored().verdict.votes == 5


def test_a_connection_that_is_lost_after_the_last_vote_does_not_hide_the_result(folder, shortlist, monkeypatch):
    close_due, failures = Study.close_due, [StorageUnavailable("the connection was closed")]

    def lost_once(study):
        if study.verdict.done and failures:
            raise failures.pop()
        return close_due(study)

    monkeypatch.setattr(Study, "close_due", lost_once)
    said = shortlist("run", "fruit.txt", "-k", 2, *program(), code=0)
    assert not failures
    assert "Top 2 of" in said.out
    assert "the storage responds again" in said.err


def test_questions_that_are_pending_with_another_judge_are_named(folder, shortlist):
    shortlist("create", "fruit.txt", "--name", "fruit", "-k", 2)
    shortlist("ask", "fruit", "--judge", "ann")
    said = shortlist("run", "fruit.txt", "-k", 2, *program(), "--max-calls", 1, code=3).err
    assert "pending with ann" in said
    assert "shortlist tell fruit NUMBER skip" in said


def test_exit_codes(folder, shortlist):
    """As docs/guides/storage.md lists them; 130 is tested where Ctrl-C is."""
    shortlist("run", "fruit.txt", "-k", 2, *program(), code=0)
    assert stored().verdict.reason == "certified"
    shortlist("run", "fruit.txt", "-k", 2, *program(), "--name", "short", "--max-votes", 3, code=3)
    shortlist("run", "fruit.txt", "-k", 2, *program(), "--name", "stopped", "--max-calls", 3, code=3)
    shortlist("run", "fruit.txt", "-k", 9, *program(), code=2)
    shortlist("run", "fruit.txt", "-k", 2, *program(), "--storage", "postgresql://u@127.0.0.1:1/d", code=4)
    shortlist("status", "fruit", "--storage", "postgresql://u@127.0.0.1:1/d", code=4)
    shortlist("status", "short", code=0)
