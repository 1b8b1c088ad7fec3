"""One contract for every storage, and studies that live in one."""

import json
import time

import numpy as np
import pytest
from sqlalchemy import create_engine, text

from shortlist import create_study, load_study
from shortlist.errors import (
    AlreadyAnswered,
    BadProblem,
    BadStorage,
    LateAnswer,
    StorageOutdated,
    StudyDiffers,
    StudyDone,
    StudyExists,
    StudyPaused,
    UnknownStudy,
    VoidJudge,
)
from shortlist.rules.oracle_tracking import OracleTracking
from shortlist.study import study as study_module
from shortlist.study.codec import decode, encode
from shortlist.study.records import Asked, Cast, Imported, Late, Paused, Skipped, TakenBack, Told, dump, load
from shortlist.study.sql import Database, close_databases, upgrade_storage
from shortlist.study.storage import Snapshot

RECORDS = [
    Asked(0, 3, 1, 0.25, "ann", "case 7", 1e9), Told(0, 1.0), Asked(1, 0, 2, -1.5), Skipped(1, "no idea"), Late(1, 0.5),
    TakenBack((Cast(0, 3, 1, 1.0, 0.25),), "ann"), Imported((0, 1), (1, 2), (1.0, 0.5), ("bob", None), "votes.csv"),
    Paused(True),
]  # fmt: skip
THETA = {"a": 2.0, "b": 1.0, "c": 0.0, "d": -1.0}
OPTIONS = {"k": 2, "delta": 0.05, "seed": 5}


def new_study(storage, name="demo", **options):
    return create_study(list(THETA), storage=storage, name=name, **{**OPTIONS, **options})


def answer(question):
    """The same answer to the same question, whoever asks."""
    p = 1 / (1 + np.exp(THETA[question.second] - THETA[question.first]))
    return float(np.random.default_rng(question.id).random() < p)


def play(study, votes):
    for _ in range(votes):
        if study.verdict.done:
            return
        question = study.ask(judge="ann" if study._desk.n_asked % 3 else "bob")
        study.tell(question, answer(question))


def as_bytes(study):
    return encode(study._desk, study._known)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_records_round_trip(record):
    assert load(*dump(record)) == record


def test_records_are_kept_in_order_and_found_by_question(storage):
    storage.create("a", "{}")
    storage.create("b", "{}")
    before = time.time()
    with storage.writing("a") as writer:
        assert writer.since(0) == []
        writer.add(0, RECORDS[:3])
    with storage.writing("a") as writer:
        assert len(writer.since(1)) == 2
        writer.add(3, RECORDS[3:])
    entries = storage.since("a", 0)
    assert [entry.record for entry in entries] == RECORDS
    assert [entry.number for entry in entries] == list(range(len(RECORDS)))
    assert all(before - 1 <= entry.at <= time.time() + 1 for entry in entries)
    assert [entry.record for entry in storage.of_question("a", 1)] == [RECORDS[2], RECORDS[3], RECORDS[4]]
    assert storage.since("a", 6) == entries[6:]
    assert storage.since("b", 0) == []
    assert storage.names() == ["a", "b"]


def test_names_are_unique_and_known(storage):
    storage.create("a", '{"x": "ü"}')
    assert storage.spec("a") == '{"x": "ü"}'
    with pytest.raises(StudyExists, match="'a'"):
        storage.create("a", "{}")
    for look in (storage.spec, lambda name: storage.since(name, 0), lambda name: storage.writing(name).__enter__()):
        with pytest.raises(UnknownStudy, match="no study is called 'c'; there are a"):
            look("c")


def test_a_failed_write_leaves_nothing(storage):
    storage.create("a", "{}")

    def fail():
        with storage.writing("a") as writer:
            assert writer.since(0) == []
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with storage.writing("a") as writer:
        writer.add(0, RECORDS[:1])
    assert len(storage.since("a", 0)) == 1


def test_only_a_newer_snapshot_replaces(url):
    storage = Database(url)
    storage.create("a", "{}")
    assert storage.snapshot("a") is None
    for number in (10, 30, 20):
        storage.save_snapshot("a", Snapshot(number, b"x%d" % number))
    assert storage.snapshot("a") == Snapshot(30, b"x30")
    storage.close()


def test_a_stored_study_asks_what_one_in_memory_asks(storage):
    stored, plain = new_study(storage), create_study(list(THETA), **OPTIONS)
    while not plain.verdict.done:
        questions = [study.ask() for study in (stored, plain)]
        assert questions[0] == questions[1]
        for study, question in zip((stored, plain), questions, strict=True):
            study.tell(question, answer(question))
    assert stored.verdict == plain.verdict
    with pytest.raises(StudyDone):
        stored.ask()


@pytest.mark.parametrize("options", [{}, {"rule": "glr", "method": "oracle-tracking"}, {"method": "track-and-stop"},
                                     {"tolerance": 0.05}, {"k": 3}], ids=str)  # fmt: skip
@pytest.mark.parametrize("every", [7, 10**9], ids=["snapshots", "no snapshots"])
def test_a_resumed_study_is_the_same_bit_for_bit(sqlite_url, options, every, monkeypatch):
    monkeypatch.setattr(study_module, "SNAPSHOT", every)
    study = new_study(sqlite_url, delta=1e-4, **options)
    for _ in range(4):
        play(study, 9)
        study.ask(2)
        resumed = load_study("demo", sqlite_url)
        assert as_bytes(resumed) == as_bytes(study)
        assert resumed.verdict == study.verdict
        for question in study.out:
            study.skip(question)
        assert resumed.refresh() == study.verdict
        assert as_bytes(resumed) == as_bytes(study)
    assert resumed.ask() == load_study("demo", sqlite_url).out[0]


def test_a_snapshot_that_cannot_be_read_is_left_alone(sqlite_url, monkeypatch):
    monkeypatch.setattr(study_module, "SNAPSHOT", 10)
    study = new_study(sqlite_url)
    play(study, 12)
    database = Database(sqlite_url)
    for data in (b"", b"nonsense", encode({"no": "desk"}, [])[:-20]):
        database.save_snapshot("demo", Snapshot(database.snapshot("demo").number + 1, data))
        assert decode(data, study._known) is None
        assert as_bytes(load_study("demo", database)) == as_bytes(study)
    database.close()


def test_a_snapshot_can_only_hold_records_of_this_package():
    class Evil(tuple):
        _fields = ()

    with pytest.raises(ValueError, match="no record of this package"):
        encode(Evil(), [])
    data = encode(Told(1, 2.0), [])
    assert decode(data, []) == Told(1, 2.0)
    for address in ("os:system", "shortlist.study.codec:decode"):
        nodes = [["tuple", address, [1, 2.0]]]
        assert decode(_pack(nodes), []) is None


def _pack(nodes):
    import io

    file = io.BytesIO()
    head = json.dumps({"format": 1, "root": ["node", 0], "nodes": nodes}).encode()
    np.savez_compressed(file, head=np.frombuffer(head, dtype=np.uint8))
    return file.getvalue()


def test_two_hands_on_one_study(url):
    one = new_study(url)
    two = load_study("demo", url)
    for _ in range(10):
        first, second = one.ask(), two.ask()
        assert second.id == first.id + 1
        two.tell(first, answer(first))
        one.tell(second, answer(second))
        with pytest.raises(AlreadyAnswered):
            one.tell(first, answer(first))
    assert as_bytes(load_study("demo", url)) == as_bytes(one)
    assert two.refresh() == one.verdict
    assert one.verdict.votes == 20 or one.verdict.done


def test_leases_run_out_and_late_answers_are_kept(storage):
    study = new_study(storage)
    late, kept = study.ask(lease=0.02), study.ask(lease=60)
    time.sleep(0.05)
    third = study.ask()
    assert [question.id for question in study.out] == [kept.id, third.id]
    with pytest.raises(LateAnswer, match="kept and does not count"):
        study.tell(late, 1.0)
    assert Late(late.id, 1.0) in [entry.record for entry in study.entries]
    assert study.verdict.votes == 0
    on_time = study.ask(lease=0.02)
    time.sleep(0.05)
    study.tell(on_time, 1.0)  # nobody gave it up yet
    assert study.verdict.votes == 1


def test_the_owner_can_close_and_open(storage):
    study = new_study(storage)
    question = study.ask()
    study.pause()
    assert study.paused
    with pytest.raises(StudyPaused, match="'demo' is closed for now"):
        study.ask()
    study.tell(question, 1.0)
    study.pause(False)
    study.ask()


def test_undo_and_void_in_a_storage(storage):
    study = new_study(storage)
    play(study, 12)
    mine = [a.question for a in study.history if a.question.judge == "ann" and a.closed]
    study.undo(mine[0])
    waiting = study.ask(judge="ann")
    study.void("ann")
    assert waiting not in study.out
    with pytest.raises(VoidJudge):
        study.ask(judge="ann")
    assert all(a.undone for a in study.history if a.question.judge == "ann" and a.outcome is not None)
    assert study.verdict.votes == sum(a.outcome is not None and not a.undone for a in study.history)


def test_imported_votes_count(storage):
    study = new_study(storage, delta=0.2)
    rng = np.random.default_rng(3)
    names = list(THETA)
    ends = [rng.choice(4, 2, replace=False) for _ in range(1500)]
    first, second = ([names[pair[side]] for pair in ends] for side in (0, 1))
    outcome = [float(THETA[a] > THETA[b]) for a, b in zip(first, second, strict=True)]
    open_question = study.ask()
    verdict = study.import_votes(first, second, outcome, source="votes.csv")
    assert verdict.done
    assert set(verdict.top) == {"a", "b"}
    assert verdict.votes < 1500
    assert open_question in study.out
    assert sum(isinstance(entry.record, Imported) for entry in study.entries) == 2


def test_a_study_of_the_same_name_must_be_the_same(url):
    study = new_study(url)
    play(study, 3)
    with pytest.raises(StudyExists):
        new_study(url)
    assert new_study(url, load_if_exists=True).verdict == study.verdict
    with pytest.raises(StudyDiffers, match=r"k is 2 there and 3 here; delta is 0.05 there and 0.1 here"):
        new_study(url, k=3, delta=0.1, load_if_exists=True)
    with pytest.raises(StudyDiffers, match=r"items is \['a', 'b', 'c', 'd'\] there and \['a', 'b', 'c', 'e'\] here"):
        create_study(list("abce"), storage=url, name="demo", load_if_exists=True, **OPTIONS)


def test_options_of_rules_come_back(sqlite_url):
    study = new_study(sqlite_url, method=OracleTracking(alpha=0.3))
    assert load_study("demo", sqlite_url)._desk.ahead.rule == study._desk.ahead.rule == OracleTracking(alpha=0.3)


def test_what_cannot_be_stored_is_refused(sqlite_url, tmp_path):
    with pytest.raises(BadProblem, match="needs a name"):
        create_study(list(THETA), storage=sqlite_url, **OPTIONS)
    for name in ("", "a/b", "x" * 101, "\n"):
        with pytest.raises(BadProblem, match="no name for a study"):
            new_study(sqlite_url, name=name)

    class Mine(OracleTracking):
        pass

    with pytest.raises(BadProblem, match="of your own cannot be stored"):
        new_study(sqlite_url, method=Mine())
    for bad, said in (
        ("nonsense", "is no storage"),
        ("mysql://u:secret@h/d", "neither sqlite"),
        ("sqlite://", "needs a file"),
        (f"sqlite:///{tmp_path}/none/x.db", "is no folder"),
        ("postgresql://u:secret@127.0.0.1:1/d", "does not answer"),
    ):
        with pytest.raises(BadStorage, match=said) as caught:
            new_study(bad)
        assert "secret" not in str(caught.value)


def test_a_database_of_another_version_is_refused_until_upgraded(url):
    new_study(url)
    close_databases()
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0000'"))
    with pytest.raises(StorageOutdated, match="shortlist storage upgrade"):
        load_study("demo", url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0003'"))
    engine.dispose()
    assert upgrade_storage(url) == ("0003", "0003")
    load_study("demo", url)
