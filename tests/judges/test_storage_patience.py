"""A storage goes away during a run: the file is really moved. Nothing that was paid for is lost or paid again."""

import json
import random
import tempfile
from collections import Counter
from pathlib import Path

import pytest

import shortlist
from shortlist.errors import BadJudge, StorageUnavailable, StudyReplaced
from shortlist.judges.pending import UnsavedAnswers, UnsavedFiles
from shortlist.study.maintenance import back_up
from shortlist.study.sql import close_databases
from shortlist.study.storage import AnswerKey
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
    with pytest.raises(StorageUnavailable, match=r"deleted, moved or replaced.* and the next run stores (it|them)"):
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


@pytest.mark.parametrize("content", [b"", b'{"run": "a b c d", "stud', b"5\n[]\nnull", b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_left_alone(content):
    world, file = World(), Path("demo.unsaved-1-0.jsonl")
    file.write_bytes(content)
    world.run(max_calls=5)
    assert f"{file} is damaged, so it is left as it is" in world.warnings
    assert file.read_bytes() == content


def unsaved():
    """A study, and a file with answers to three of its questions that a run left; returns both and what it warns."""
    study = new_study(storage="sqlite:///studies.db", name="demo", delta=1e-9)
    warned = []
    left = UnsavedAnswers(study, "elsewhere 1 2 3", warned.append)
    for question in [study.ask(judge="judge") for _ in range(3)]:
        left.add(AnswerKey("judge", None, question.first, question.second, "", question.id), question.id, 1.0, False)
    left.write()
    return study, Path("demo.unsaved-1-3.jsonl"), UnsavedFiles(study, shortlist.MemoryCache(), warned.append), warned


def answered(study):
    return [row.outcome for row in study.rows]


def test_of_a_damaged_file_every_whole_line_is_stored_and_no_other():
    """Any bit of a line, at random; and a line that is missing. No changed answer becomes a vote."""
    study, file, _, warned = unsaved()
    *whole, last = file.read_bytes().splitlines(keepends=True)
    rng = random.Random(1)
    damaged = [b"", *(bytearray(last) for _ in range(200))]
    for bad in damaged[1:]:
        bad[rng.randrange(len(bad) - 1)] ^= 1 << rng.randrange(8)
    for bad in damaged:
        file.write_bytes(b"".join([*whole, bad]))
        UnsavedFiles(study, shortlist.MemoryCache(), warned.append).take_in()
        assert warned.pop() == f"{file} is damaged: 2 paid answers of it stored, and 1 of 3 lines cannot be read"
        assert file.exists()
    assert answered(study) == [1.0, 1.0, None]


def test_a_file_is_taken_in_twice_as_if_it_were_once():
    """Somebody puts a copy of it back."""
    study, file, files, warned = unsaved()
    content = file.read_bytes()
    for _ in range(2):
        file.write_bytes(content + content)
        files.take_in()
        assert not file.exists()
    assert answered(study) == [1.0, 1.0, 1.0]
    assert warned == [f"3 paid answers of an interrupted run stored, from {file}"] * 2


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


@pytest.mark.parametrize("spare", [True, False])
def test_answers_are_kept_elsewhere_if_the_folder_takes_no_file(tmp_path, monkeypatch, spare):
    """The current folder is deleted, as full as the disk, or read-only. Without a spare folder the run says so."""
    for name in ("gone", "temp"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("temp" if spare else "none")))
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    study = new_study(storage=url, name="s", max_votes=12, delta=1e-9)
    paid, file, away, warned = [], tmp_path / "studies.db", tmp_path / "away.db", []

    def answer(call):
        paid.append(call.id)
        if len(paid) == 4:
            file.rename(away)
        return "first"

    judge = shortlist.CallableJudge(answer, name="judge", takes_call=True)
    with pytest.raises(StorageUnavailable, match="the next run stores it" if spare else "lost: no file"):
        shortlist.run_study(study, judge, workers=1, storage_patience=0.3, warn=warned.append)
    assert spare or any("only in the memory of this run" in said for said in warned)
    away.rename(file)
    monkeypatch.chdir(tmp_path)
    shortlist.run_study(shortlist.load_study("s", url), judge, workers=1, warn=warned.append)
    assert len(paid) == (12 if spare else 13)
    assert not list((tmp_path / "temp").iterdir())
    assert shortlist.load_study("s", url).verdict.votes == 12


def test_a_run_whose_storage_became_an_older_backup_ends_and_keeps_what_was_paid(tmp_path):
    """Nothing of the run is added to the record that took the place of its own."""
    study, file = new_study(storage="sqlite:///studies.db", name="s", max_votes=30, delta=1e-9), Path("studies.db")
    paid = []

    def answer(call):
        paid.append(call.id)
        if len(paid) == 3:
            back_up("sqlite:///studies.db", Path("old.db"))
        if len(paid) == 8:
            for suffix in ("-wal", "-shm"):
                Path(f"studies.db{suffix}").unlink()
            Path("old.db").replace(file)
        return "first"

    judge = shortlist.CallableJudge(answer, name="judge", takes_call=True)
    with pytest.raises(StudyReplaced, match=r"load it again. 1 paid answer is in s\.unsaved-"):
        shortlist.run_study(study, judge, workers=1, warn=lambda _: None)
    close_databases()
    again = shortlist.load_study("s", "sqlite:///studies.db")
    assert again.verdict.votes == 2
    shortlist.run_study(again, judge, workers=1, warn=lambda _: None)
    assert shortlist.load_study("s", "sqlite:///studies.db").verdict.votes == 30
