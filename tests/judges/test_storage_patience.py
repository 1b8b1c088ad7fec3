"""A storage goes away during a run: the file is really moved. Nothing that was paid for is lost or paid again."""

import json
from collections import Counter
from pathlib import Path

import pytest

import shortlist
from shortlist.errors import BadJudge, StorageUnavailable
from shortlist.study.sql import close_databases
from tests.judges.world import new_study

WAYS = [
    {},
    {"position": "both"},
    {"cases": [f"case {number}" for number in range(200)]},
    {"cases": [f"case {number}" for number in range(200)], "position": "both", "cache": shortlist.MemoryCache},
    {"contents": lambda item, case: f"text of {item}"},
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    close_databases()


class World:
    """A study in a file, and a judge that lets the file vanish at the seventh call."""

    def __init__(self, **options):
        self.url, self.calls, self.warnings = "sqlite:///studies.db", Counter(), []
        self.file, self.away = Path("studies.db"), Path("studies.away")
        self.study = new_study(storage=self.url, name="demo", max_votes=20, delta=1e-9)
        self.options = {**options, **({"cache": options["cache"]()} if "cache" in options else {})}

    def judge(self, call):
        case = None if call.case is None else call.case.id
        self.calls[call.id if case is None else case, call.first, call.second] += 1
        if self.calls.total() == 7 and self.file.exists():
            self.file.rename(self.away)
        return "first"

    def come_back(self):
        self.away.rename(self.file)

    def run(self, **options):
        judge = shortlist.CallableJudge(self.judge, name="judge", takes_call=True)
        self.options.setdefault("warn", self.warnings.append)
        return shortlist.run_study(self.study, judge, workers=3, **{**self.options, **options})

    def check(self):
        study = shortlist.load_study("demo", self.url)
        assert study.verdict.votes == 20
        assert not study.pending
        assert max(self.calls.values()) == 1
        assert not list(Path().glob("*unsaved*"))


@pytest.mark.parametrize("options", WAYS, ids=["plain", "both orders", "cases", "own cache", "texts"])
def test_a_run_goes_on_when_its_storage_comes_back(options):
    world = World(**options)

    def warn(text):
        world.warnings.append(text)
        if "Trying again" in text:
            world.come_back()

    world.run(warn=warn)
    assert any(text.startswith("the storage responds again") for text in world.warnings)
    world.check()


@pytest.mark.parametrize("options", WAYS, ids=["plain", "both orders", "cases", "own cache", "texts"])
def test_what_was_paid_is_stored_by_the_next_run(options):
    world = World(**options)
    with pytest.raises(StorageUnavailable, match=r"deleted, moved or replaced.* and the next run stores them"):
        world.run(storage_patience=0.0)
    (file,) = Path().glob("demo.unsaved-*.jsonl")
    assert file.read_text()
    world.come_back()
    close_databases()
    world.study = shortlist.load_study("demo", world.url)
    world.run()
    assert sum("of an interrupted run stored" in text for text in world.warnings) == 1
    world.check()


def test_answers_for_another_study_are_left_alone():
    """Of the same name: the file was deleted, and a new study begun. Its questions are other questions."""
    world = World()
    with pytest.raises(StorageUnavailable):
        world.run(storage_patience=0.0)
    (file,) = Path().glob("demo.unsaved-*.jsonl")
    kept = file.read_text()
    close_databases()
    world.study = new_study(storage=world.url, name="demo", max_votes=20, delta=1e-9)
    world.run(max_calls=5)
    assert any("another study" in text for text in world.warnings)
    assert file.read_text() == kept


def test_a_file_that_cannot_be_read_is_left_alone():
    world = World()
    Path("demo.unsaved-1-0.jsonl").write_text('{"run": "a b c d", "stud')
    world.run(max_calls=5)
    assert any("cannot be read" in text for text in world.warnings)
    assert Path("demo.unsaved-1-0.jsonl").exists()


def test_the_lines_of_a_file_name_question_and_answer():
    world = World()
    with pytest.raises(StorageUnavailable):
        world.run(storage_patience=0.0)
    (file,) = Path().glob("demo.unsaved-*.jsonl")
    for line in map(json.loads, file.read_text().splitlines()):
        question = world.study.question(line["question"])
        assert (line["key"]["first"], line["key"]["second"], line["outcome"]) == (question.first, question.second, 1.0)


def test_patience_is_a_number_of_seconds():
    with pytest.raises(BadJudge, match="storage_patience"):
        World().run(storage_patience=-1.0)
