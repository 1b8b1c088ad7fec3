"""A run, then something of what the judge is shown or asked with is changed, then the same command again."""

import json
import sys

import pytest

from shortlist import load_study
from tests.cli.terminal import Terminal
from tests.judges.server import serving

pytestmark = pytest.mark.slow

TEXTS = {"apple": "a crisp answer", "banana": "a soft answer", "cherry": "b sour answer", "date": "b sweet answer"}
CASES = {f"c{number}": f"case {number}" for number in range(40)}
PROMPT = "On {case}:\n[Answer A]\n{first}\n[End]\n[Answer B]\n{second}\n[End]"


class Folder:
    """The files of a study with a language model as judge, and the command that runs it."""

    def __init__(self, shortlist, endpoint):
        self.shortlist, self.endpoint, self.path = shortlist, endpoint, shortlist.folder
        self.write_items(TEXTS)
        self.write_cases(CASES)
        (self.path / "prompt.txt").write_text(PROMPT)

    def write_items(self, texts):
        rows = "".join(f"{name},{text}\n" for name, text in texts.items())
        (self.path / "fruit.csv").write_text(f"name,content\n{rows}")

    def write_cases(self, cases):
        rows = "".join(f"{name},{text}\n" for name, text in cases.items())
        (self.path / "cases.csv").write_text(f"id,text\n{rows}")

    def options(self, *more, temperature=0.0, model="tiny"):
        judge = ["--judge-url", self.endpoint.url, "--model", model, "--temperature", temperature]
        return [
            "run", "fruit.csv", "-k", 2, "--delta", 1e-9, "--max-votes", 60, *judge, "--cases", "cases.csv",
            "--prompt", "prompt.txt", *more,
        ]  # fmt: skip

    def run(self, *more, **changed):
        return json.loads(self.shortlist(*self.options(*more, **changed), "--json").out)

    def refused(self, *more, **changed):
        """The refusal, after which nothing was asked and nothing counted."""
        before, events = len(self.endpoint.requests), self.study().entries
        said = self.shortlist.refused(*self.options(*more, **changed))
        assert len(self.endpoint.requests) == before
        assert self.study().entries == events
        return said

    def study(self):
        return load_study("fruit", "sqlite:///shortlist.db")


@pytest.fixture
def folder(shortlist, monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving() as endpoint:
        yield Folder(shortlist, endpoint)


NAMES = pytest.mark.parametrize("name", [[], ["--judge-name", "tiny"]], ids=["default name", "own name"])


@NAMES
def test_an_edited_text_is_refused_and_the_old_text_resumes(folder, name):
    folder.run("--max-calls", 20, *name)
    for texts, said in (
        ({**TEXTS, "cherry": "a new answer"}, "the text of 'cherry' is"),
        ({**TEXTS, "cherry": "a new answer", "date": "another"}, "the texts of 'cherry' and 'date' are"),
    ):
        folder.write_items(texts)
        answer = folder.refused(*name)
        assert said in answer
        assert "an edited text is another item" in answer
        assert "--name" in answer
        assert "apple" not in answer
    folder.write_items(TEXTS)
    done = folder.run(*name)
    assert done["votes"] == 60
    prompts = [request["body"]["messages"][0]["content"] for request in folder.endpoint.requests]
    assert len(prompts) == len(set(prompts))  # temperature 0 and the same prompt: paid for once


@NAMES
@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ({**CASES, "c7": "another text"}, "the text of case 'c7'"),
        ({**CASES, "c40": "case 40"}, "case 'c40' is new"),
        ({case: text for case, text in CASES.items() if case != "c3"}, "case 'c3' is gone"),
    ],
)
def test_other_cases_are_refused(folder, cases, said, name):
    folder.run("--max-calls", 20, *name)
    folder.write_cases(cases)
    answer = folder.refused(*name)
    assert said in answer
    assert "other cases are another question" in answer
    folder.write_cases(CASES)
    assert folder.run(*name)["votes"] == 60


@NAMES
def test_another_prompt_temperature_or_model_is_refused(folder, name):
    folder.run("--max-calls", 20, *name)
    (folder.path / "prompt.txt").write_text(f"Be strict. {PROMPT}")
    answer = folder.refused(*name)
    assert "another prompt than" in answer
    assert "--as-new-judge" in answer
    (folder.path / "prompt.txt").write_text(PROMPT)
    assert "another temperature than" in folder.refused(*name, temperature=0.7)
    assert "another model and temperature than" in folder.refused(*name, temperature=0.7, model="large")
    assert folder.run(*name)["votes"] == 60
    prompts = [request["body"]["messages"][0]["content"] for request in folder.endpoint.requests]
    assert len(prompts) == len(set(prompts))


@NAMES
def test_as_new_judge_asks_again_and_the_next_run_finds_it(folder, name):
    folder.run("--max-calls", 20, *name)
    first = len(folder.endpoint.requests)
    old = {row.judge for row in folder.study().rows}
    (folder.path / "prompt.txt").write_text(f"Be strict. {PROMPT}")
    part = folder.run("--as-new-judge", "--max-calls", 10, *name)
    asked = folder.endpoint.requests[first:]
    assert len(asked) == 10
    assert all(request["body"]["messages"][0]["content"].startswith("Be strict") for request in asked)
    assert any(f"votes were given by judge {old.copy().pop()!r} with another prompt" in one for one in part["warnings"])
    new = {row.judge for row in folder.study().rows} - old
    assert len(new) == 1
    assert not name or new == {"tiny#2"}
    assert folder.run(*name)["votes"] == 60  # without the option: this judge is known now
    assert {row.judge for row in folder.study().rows} == old | new
    (folder.path / "prompt.txt").write_text(f"Be mild. {PROMPT}")
    assert "another prompt than" in folder.refused(*name)


def test_another_name_for_the_judge_or_the_study_is_a_way_out(folder):
    folder.run("--max-calls", 20)
    folder.write_items({**TEXTS, "cherry": "a new answer"})
    folder.refused()
    assert folder.run("--name", "second")["votes"] == 60
    folder.write_items(TEXTS)
    (folder.path / "prompt.txt").write_text(f"Be strict. {PROMPT}")
    folder.refused()
    assert folder.run("--judge-name", "strict")["votes"] == 60
    assert len({row.judge for row in folder.study().rows}) == 2


def test_what_gave_no_answer_may_still_change(folder):
    """A wrong model, refused by the server at the first call: the corrected command just runs."""
    from tests.judges.server import fail

    folder.endpoint.script = [fail(404)] * 8
    assert "404" in folder.shortlist(*folder.options(model="tyni"), code=4).err
    folder.endpoint.script.clear()
    folder.write_items({**TEXTS, "cherry": "a new answer"})
    assert folder.run()["votes"] == 60


def test_an_edited_program_is_noticed(shortlist):
    program = "import json, sys\njson.load(sys.stdin)\nprint(json.dumps({'winner': 'first'}))\n"
    (shortlist.folder / "judge.py").write_text(program)
    (shortlist.folder / "rubric.txt").write_text("short is better")
    (shortlist.folder / "fruit.txt").write_text("\n".join(TEXTS))
    options = ["-k", 2, "--judge", f"{sys.executable} judge.py --rubric=rubric.txt"]
    command = ["run", "fruit.txt", *options, "--max-votes", 30, "--delta", 1e-9]
    shortlist(*command, "--max-calls", 10)
    (shortlist.folder / "judge.py").write_text(program.replace("first", "second"))
    said = shortlist.refused(*command)
    assert "another program judge.py than" in said
    (shortlist.folder / "judge.py").write_text(program)
    (shortlist.folder / "rubric.txt").write_text("long is better")
    assert "another file rubric.txt than" in shortlist.refused(*command)
    (shortlist.folder / "rubric.txt").write_text("short is better")
    assert json.loads(shortlist(*command, "--json").out)["votes"] == 30


def test_people_in_a_terminal_see_what_the_votes_are_about(folder):
    with Terminal(folder.path, "run", "fruit.csv", "-k", 1, "--judge", "me", "--cases", "cases.csv") as terminal:
        terminal.wait_for("2 →")
        terminal.press(b"1")
        terminal.wait_for("votes in total")
        terminal.press(b"q")
        assert terminal.finish()[1] == 3
    folder.write_items({**TEXTS, "date": "changed"})
    judge = ["judge", "fruit", "--as", "ann"]
    for options, said in (
        (["--items", "fruit.csv", "--cases", "cases.csv"], "the text of 'date' is"),
        ([], "no cases are given"),
    ):
        with Terminal(folder.path, *judge, *options) as terminal:
            screen, code = terminal.finish()
        assert code == 2
        assert said in " ".join(screen.split())
    with Terminal(folder.path, *judge, "--cases", "cases.csv") as terminal:  # shows names alone
        terminal.wait_for("2 →")
        terminal.press(b"q")
        assert terminal.finish()[1] == 0
