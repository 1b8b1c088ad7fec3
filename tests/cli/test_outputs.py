"""`shortlist outputs`, and `shortlist run` on outputs: a program judges texts that other tools have written."""

import json
import sys

import pytest

from shortlist import load_study
from shortlist.cli.outputs import holds_outputs
from tests.cli.terminal import Terminal
from tests.judges.server import serving
from tests.outputs.samples import ASKED, SAMPLES, write

PROGRAM = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    with open("calls.jsonl", "a") as file:
        file.write(line)
    first, second = len(asked["first_text"]), len(asked["second_text"])
    print(json.dumps({"id": asked["id"], "winner": "first" if first > second else "second"}), flush=True)
"""
LENGTHS = {"alpha": 30, "beta": 20, "gamma": 10}


def rows(cases=20):
    """Outputs whose order by length is alpha, beta, gamma on every case."""
    return [
        {"item": item, "case": f"c{case}", "text": f"Task {case}", "output": f"{case} ".ljust(length, "x")}
        for case in range(cases)
        for item, length in LENGTHS.items()
    ]


@pytest.fixture
def folder(shortlist):
    (shortlist.folder / "judge.py").write_text(PROGRAM)
    write(shortlist.folder / "outputs.jsonl", *rows())
    return shortlist.folder


def program():
    return ["--judge", f"{sys.executable} judge.py", "--keep", 1]


def calls(folder):
    file = folder / "calls.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_a_program_judges_outputs_and_the_same_command_resumes(folder, shortlist):
    command = ["run", "outputs.jsonl", "-k", 1, *program()]
    part = shortlist(*command, "--max-calls", 5, "--json")
    assert not json.loads(part.out)["done"]
    found = shortlist.json(*command)
    assert (found["done"], found["top"]) == (True, ["alpha"])
    shown = {(one["case"]["id"], one["case"]["text"], one["first"], one["first_text"]) for one in calls(folder)}
    known = {(one["case"], one["text"], one["item"], one["output"]) for one in rows()}
    assert shown <= known
    assert load_study("outputs", "sqlite:///shortlist.db").items == tuple(LENGTHS)


def test_every_cell_is_checked_before_the_first_call(folder, shortlist):
    write(folder / "holes.jsonl", *rows()[:-1])
    said = shortlist.refused("run", "holes.jsonl", "-k", 1, *program())
    assert "gamma has no output on case 'c19'" in said
    assert "--missing drop" in said
    assert calls(folder) == []
    assert not (folder / "shortlist.db").exists()
    dropped = shortlist("run", "holes.jsonl", "-k", 1, *program(), "--missing", "drop", "--json")
    assert json.loads(dropped.out)["top"] == ["alpha"]
    assert "about the outputs: dropped" in dropped.err
    assert not any(one["case"]["id"] == "c19" for one in calls(folder))


def test_a_missing_output_loses_and_equal_outputs_tie_without_a_call(folder, shortlist):
    found = [one for one in rows() if one["item"] != "gamma"]
    for number, one in enumerate(one for one in rows() if one["item"] == "beta"):
        found.append({**one, "item": "gamma", "output": one["output"] if number % 2 else ""})
    write(folder / "some.jsonl", *found)
    done = shortlist.json("run", "some.jsonl", "-k", 1, *program(), "--missing", "lose")
    assert done["top"] == ["alpha"]
    texts = [(one["first_text"], one["second_text"]) for one in calls(folder)]
    assert not any("" in pair or pair[0] == pair[1] for pair in texts)
    study = load_study("some", "sqlite:///shortlist.db")
    votes = [(row, {row.first, row.second}) for row in study.rows if row.status == "counted"]
    outcomes = {row.outcome for row, pair in votes if pair == {"beta", "gamma"}}
    assert outcomes <= {0.0, 0.5, 1.0}
    assert done["costs"]["saved"] > 0
    for row, pair in votes:
        if pair == {"beta", "gamma"} and row.outcome != 0.5:
            assert (row.first if row.outcome == 1 else row.second) == "beta"


def test_outputs_that_were_changed_are_refused(folder, shortlist):
    command = ["run", "outputs.jsonl", "-k", 1, *program()]
    shortlist(*command, "--max-calls", 3)
    changed = rows()
    changed[0]["output"] += "!"
    write(folder / "outputs.jsonl", *changed)
    assert "the text of 'alpha' is not the same" in shortlist.refused(*command)


def test_files_of_items_are_read_as_before(folder, shortlist):
    (folder / "slogans.csv").write_text("name,content,answer\na,one\x20word,1\nb,two words here,2\n")
    assert shortlist.json("run", "slogans.csv", "-k", 1, *program())["top"] == ["b"]
    assert {one["case"] and one["case"]["id"] for one in calls(folder)} == {None}
    items = folder / "answers"
    items.mkdir()
    for name, text in {"a.txt": "short", "b.txt": "much longer"}.items():
        (items / name).write_text(text)
    assert shortlist.json("run", "answers", "-k", 1, *program())["top"] == ["b.txt"]


def test_what_is_items_and_what_is_outputs(tmp_path):
    def is_outputs(text, name="f.csv"):
        (tmp_path / name).write_text(text)
        return holds_outputs([tmp_path / name])

    assert not is_outputs("name,content\na,x\n")
    assert not is_outputs("name,content,answer\na,x,y\na,x,z\n")
    assert not is_outputs("name,text,answer\na,x,y\nb,x,z\n")
    assert is_outputs("name,text,answer\na,x,y\nb,x,z\na,w,y\nb,w,z\n")
    assert is_outputs("item,case,output\na,c,y\nb,c,z\n")
    assert not is_outputs("a\nb\n", "f.txt")
    assert not is_outputs('{"name": "a", "content": "x"}\n', "f.jsonl")
    assert is_outputs("[]", "f.json")
    assert holds_outputs([tmp_path, tmp_path])


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in ("wide", "DSPy")])
def test_every_format_runs(shortlist, name):
    (shortlist.folder / "judge.py").write_text(PROGRAM)
    make, _, _, named, _ = SAMPLES[name]
    inside = shortlist.folder / "mine"
    inside.mkdir()
    found = shortlist.json("run", *make(inside), "-k", 1, *program())
    assert found["top"] in ([named.format("north")], [named.format("south")])
    assert {one["case"]["text"].rpartition(": ")[2] for one in calls(shortlist.folder)} <= set(ASKED.values())


def test_a_language_model_judges_outputs(folder, shortlist, monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving() as endpoint:
        options = ["--judge-url", endpoint.url, "--model", "tiny", "--order", "both", "--max-calls", 40]
        shortlist("run", "outputs.jsonl", "-k", 1, *options)
        prompts = [request["body"]["messages"][0]["content"] for request in endpoint.requests]
    assert prompts
    assert all("Task " in prompt and "xxx" in prompt for prompt in prompts)


def test_options_that_do_not_fit(folder, shortlist):
    command = ["run", "outputs.jsonl", "-k", 1, *program()]
    (folder / "cases.txt").write_text("one\n")
    assert "leave out --cases" in shortlist.refused(*command, "--cases", "cases.txt")
    like = ["--cases-claim", "like-these", "--repeat", "all"]
    assert "repeats of a case are not cases drawn afresh" in shortlist.refused(*command, *like)
    gaussian = ["--missing", "lose", "--family", "gaussian"]
    assert "has no measured difference" in shortlist.refused(*command, *gaussian)
    assert "map 'model=x' is not TARGET=COLUMN" in shortlist.refused(*command, "--map", "model=x")
    assert "there is no item 'delta'" in shortlist.refused(*command, "--only", "delta,alpha")
    votes = [{"model_1": "a", "model_2": "b", "g1_winner": "tie", "g2_winner": "tie"}]
    write(folder / "votes.jsonl", *votes)
    assert "These are votes, not outputs" in shortlist.refused("run", "votes.jsonl", "-k", 1, *program())


def test_several_files_a_map_and_some_items(folder, shortlist):
    for item in LENGTHS:
        found = [{"q": one["text"], "said": {"text": one["output"]}} for one in rows() if one["item"] == item]
        write(folder / "runs" / f"{item}.json", found)
    files = [folder / "runs" / f"{item}.json" for item in LENGTHS]
    told = ["--map", "item=@file,text=q,output=said.text", "--only", "beta,gamma"]
    found = shortlist.json("run", *files, "-k", 1, *program(), *told)
    assert (found["top"], found["name"]) == (["beta"], "runs")


def test_the_dry_run(folder, shortlist):
    said = shortlist("outputs", "outputs.jsonl").out
    assert "outputs.jsonl: JSON lines, read as long: 60 rows, 3 items, 20 cases" in said
    assert "ready for `shortlist run`" in said
    found = shortlist.json("outputs", "outputs.jsonl")
    assert (found["items"], found["cells"], found["ready"]) == (list(LENGTHS), 60, True)
    assert found["lengths"]["beta"]["c3"] == 20
    write(folder / "holes.jsonl", *(one for one in rows() if (one["item"], one["case"] > "c5") != ("gamma", True)))
    said = shortlist("outputs", "holes.jsonl").out
    assert "problem: missing, 4 places" in said
    assert "gamma, case c6: gamma has no output on case 'c6'" in said
    assert "and 1 more; --json lists them all" in said
    assert "Not ready for `shortlist run`: 4 of these problems" in said
    found = shortlist.json("outputs", "holes.jsonl")
    assert [one["case"] for one in found["problems"]] == ["c6", "c7", "c8", "c9"]
    assert {(one["name"], one["weight"]) for one in found["problems"]} == {("missing", "no output")}
    assert not (folder / "shortlist.db").exists()


def test_a_person_sees_the_output_on_the_case(folder, shortlist):
    write(folder / "two.jsonl", *({"item": i, "case": "c", "text": "Say it", "output": f"{i} said so"} for i in "ab"))
    with Terminal(folder, "run", "two.jsonl", "-k", 1, "--judge", "me") as terminal:
        terminal.wait_for("Say it")
        terminal.wait_for("said so")
        terminal.press(b"q")
        _, code = terminal.finish()
    assert code == 3
