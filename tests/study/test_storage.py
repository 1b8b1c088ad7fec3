"""One contract for every storage, and studies that live in one."""

import json
import pickle
import time

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from shortlist import create_study, load_study
from shortlist.core.sampling.tracking import OracleTracking
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
from shortlist.study import sync
from shortlist.study.events import (
    Asked,
    CountedVote,
    Entry,
    Imported,
    Late,
    Lost,
    Paused,
    Reopened,
    Settled,
    Shown,
    Skipped,
    TakenOver,
    Told,
    Withdrawn,
    dump,
    load,
)
from shortlist.study.schema import HEAD, connect, tables
from shortlist.study.sql import Database, close_databases, upgrade_storage
from shortlist.study.storage import AnswerKey, Snapshot
from shortlist.study.sync import decode, encode

EVENTS = [
    Asked(0, 3, 1, 0.25, "ann", "case 7", 1e9, "me"), Told(0, 1.0), Asked(1, 0, 2, -1.5), Skipped(1, "no idea"),
    Late(1, 0.5), Withdrawn((CountedVote(0, 3, 1, 1.0, 0.25),), "ann"),
    Imported((0, 1), (1, 2), (1.0, 0.5), ("bob", None), "votes.csv"),
    Paused(True), TakenOver(1, "you"), Asked(2, 0, 1, 0.5, "ann", shown=False), Shown(2, 2e9), Told(2, 0.0, 1.5e9),
    Reopened(2), Lost(2, "judge left"), Settled(0), Withdrawn((CountedVote(0, 3, 1, 1.0, 0.25, 1.0, "ann"),)),
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
        question = study.ask(judge="ann" if study._state.n_asked % 3 else "bob")
        study.tell(question, answer(question))


def as_bytes(study):
    return encode(study._state, study._sync.known)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_events_round_trip(event):
    assert load(*dump(event)) == event


def test_events_are_kept_in_order(storage):
    storage.create("a", "{}")
    storage.create("b", "{}")
    entries = [Entry(number, 100.0 + number, event) for number, event in enumerate(EVENTS)]
    with storage.writing("a") as writer:
        assert writer.since(0) == []
        head = writer.add(entries[:3], storage.origin("a"))
    with storage.writing("a") as writer:
        assert len(writer.since(1)) == 2
        writer.add(entries[3:], head)
    assert [entry[:3] for entry in storage.since("a", 0)] == [entry[:3] for entry in entries]
    assert [entry[:3] for entry in storage.since("a", 6)] == [entry[:3] for entry in entries[6:]]
    assert storage.since("b", 0) == []
    assert storage.names() == ["a", "b"]


def test_names_are_unique_and_known(storage):
    storage.create("a", '{"x": "ü"}')
    assert storage.spec("a") == '{"x": "ü"}'
    with pytest.raises(StudyExists, match="'a'"):
        storage.create("a", "{}")
    for look in (storage.spec, lambda name: storage.since(name, 0), lambda name: storage.writing(name).__enter__()):
        with pytest.raises(UnknownStudy, match="no study named 'c'; studies here: a"):
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
        writer.add([Entry(0, 1.0, EVENTS[0])], storage.origin("a"))
    assert len(storage.since("a", 0)) == 1


def test_only_a_newer_snapshot_replaces(url):
    storage = Database(url)
    storage.create("a", "{}")
    assert storage.snapshot("a") is None
    for number in (10, 30, 20):
        storage.save_snapshot("a", Snapshot(number, "", b"x%d" % number))
    assert storage.snapshot("a") == Snapshot(30, "", b"x30")
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


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stopping": "glr", "sampling": "oracle-tracking"},
        {"sampling": "track-and-stop"},
        {"sampling": "sharpen"},
        {"sampling": "learn-then-prove", "stopping": "posterior"},
        {"tolerance": 0.05},
        {"k": 3},
        {"stopping": "cuts"},
    ],
    ids=str,
)
@pytest.mark.parametrize("every", [7, 10**9], ids=["snapshots", "no snapshots"])
def test_a_resumed_study_is_the_same_bit_for_bit(sqlite_url, options, every, monkeypatch):
    monkeypatch.setattr(sync, "SNAPSHOT", every)
    study = new_study(sqlite_url, delta=1e-4, **options)
    for _ in range(4):
        play(study, 9)
        study.ask(2)
        resumed = load_study("demo", sqlite_url)
        assert as_bytes(resumed) == as_bytes(study)
        assert resumed.verdict == study.verdict
        for question in study.pending:
            study.skip(question)
        assert resumed.refresh() == study.verdict
        assert as_bytes(resumed) == as_bytes(study)
    assert resumed.ask() == load_study("demo", sqlite_url).pending[0]


def test_a_study_with_cuts_is_the_same_bit_for_bit_up_to_its_proof(sqlite_url, monkeypatch):
    """Marks, and the set that keeps the answer from being proved, are part of the state."""
    monkeypatch.setattr(sync, "SNAPSHOT", 7)
    study, has_marks, has_set = new_study(sqlite_url, stopping="cuts"), False, False
    while not study.verdict.done:
        question = study.ask()
        study.tell(question, answer(question))
        ahead = study._state.ahead
        has_marks |= len(ahead.evidence.kept_ledger.proved.source) > 0
        has_set |= ahead.stopping_memory.standing is not None
        if study.verdict.done or question.id % 20 == 0:
            resumed = load_study("demo", sqlite_url)
            assert as_bytes(resumed) == as_bytes(study)
            assert resumed.verdict == study.verdict
    assert has_marks
    assert has_set
    assert "cut theorem" in study.verdict.guarantee


def test_a_snapshot_that_cannot_be_read_is_left_alone(sqlite_url, monkeypatch):
    monkeypatch.setattr(sync, "SNAPSHOT", 10)
    study = new_study(sqlite_url)
    play(study, 12)
    database = Database(sqlite_url)
    for data in (b"", b"nonsense", encode({"no": "state"}, [])[:-20]):
        database.save_snapshot("demo", Snapshot(database.snapshot("demo").number + 1, study.head.hash, data))
        assert decode(data, study._sync.known) is None
        assert as_bytes(load_study("demo", database)) == as_bytes(study)
    database.close()


def test_a_snapshot_can_only_hold_records_of_this_package():
    class Evil(tuple):
        _fields = ()

    with pytest.raises(ValueError, match="not a record of this package"):
        encode(Evil(), [])
    data = encode(Told(1, 2.0), [])
    assert decode(data, []) == Told(1, 2.0)
    for address in ("os:system", "shortlist.study.sync:decode"):
        nodes = [["tuple", address, [1, 2.0]]]
        assert decode(_pack(nodes), []) is None


def test_a_set_is_written_the_same_however_it_grew():
    one, other = frozenset({0}) | {8}, frozenset({8}) | {0}
    assert list(one) != list(other)
    assert encode(one, []) == encode(other, [])


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
    assert [question.id for question in study.pending] == [kept.id, third.id]
    with pytest.raises(LateAnswer, match="stored but does not count"):
        study.tell(late, 1.0)
    assert Late(late.id, 1.0) in [entry.event for entry in study.entries]
    assert study.verdict.votes == 0
    on_time = study.ask(lease=0.02)
    time.sleep(0.05)
    study.tell(on_time, 1.0)  # nobody gave it up yet
    assert study.verdict.votes == 1


def test_a_lease_that_runs_out_can_end_a_study(monkeypatch):
    """While it was out, that question was all that stood in the way of the verdict."""
    study = create_study(["a", "b"], 1, 0.05)
    for _ in range(4):
        study.tell(study.ask(), winner="a")
    lost, twin = study.ask(lease=60, shown=False), None  # with a bet on it
    while twin is None or not twin.verdict.done:
        study.tell(study.ask(), winner="a")
        twin = pickle.loads(pickle.dumps(study))
        twin.skip(lost)
    assert not study.verdict.done
    later = time.time() + 3600
    monkeypatch.setattr("shortlist.study.storage.time.time", lambda: later)
    with pytest.raises(StudyDone):
        study.ask()
    assert study.verdict == twin.verdict
    assert not study.pending


def test_what_is_done_at_once_is_one_write(storage):
    study, other = new_study(storage), load_study("demo", storage)
    first = study.ask()
    with study.transaction():
        study.tell(first, 1.0)
        second = study.ask()
        other.refresh()
        assert other.entries[-1].event.question == first.id  # nobody sees half of it
        assert len(other.entries) == 1
    other.refresh()
    assert [type(entry.event) for entry in other.entries] == [Asked, Told, Asked]
    before = as_bytes(study)
    with pytest.raises(AlreadyAnswered), study.transaction():
        [study.tell(second, outcome) for outcome in (0.0, 1.0)]
    assert as_bytes(study) == before
    other.refresh()
    assert len(other.entries) == 3
    study.tell(second, 0.0)
    assert as_bytes(load_study("demo", storage)) == as_bytes(study)


def test_a_refusal_at_once_keeps_what_others_wrote(storage):
    study, other = new_study(storage, max_votes=1), load_study("demo", storage)
    question = other.ask()
    other.tell(question, 1.0)
    with study.transaction(), pytest.raises(StudyDone):
        study.ask()
    assert study.verdict.reason == "budget"


def test_a_connection_that_was_lost_is_replaced(postgres_url, monkeypatch):
    study = new_study(postgres_url)
    play(study, 3)
    others = "pid <> pg_backend_pid() AND datname = current_database()"
    engine = connect(postgres_url)
    with engine.connect() as connection:
        connection.execute(text(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}"))
    engine.dispose()
    monkeypatch.setattr("shortlist.study.schema.IDLE", -1.0)
    play(study, 3)
    assert study.verdict.votes == 6


def test_the_owner_can_close_and_open(storage):
    study = new_study(storage)
    question = study.ask()
    study.pause()
    assert study.paused
    with pytest.raises(StudyPaused, match="'demo' is paused"):
        study.ask()
    study.tell(question, 1.0)
    study.pause(False)
    study.ask()


def test_undo_and_void_in_a_storage(storage):
    study = new_study(storage)
    play(study, 12)
    mine = [a.question for a in study.rows if a.judge == "ann" and a.status != "pending"]
    study.undo(mine[0])
    waiting = study.ask(judge="ann")
    study.void("ann")
    assert waiting not in study.pending
    with pytest.raises(VoidJudge):
        study.ask(judge="ann")
    assert all(a.status in ("undone", "voided") for a in study.rows if a.judge == "ann" and a.outcome is not None)
    assert (study.counts["undone"], study.counts["voided"]) == (1, len(mine) - 1)
    assert study.verdict.votes == sum(
        a.outcome is not None and a.status not in ("undone", "voided") for a in study.rows
    )


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
    assert verdict.votes == 1500  # an import counts as a whole
    assert open_question in study.pending
    assert sum(isinstance(entry.event, Imported) for entry in study.entries) == 1


def test_voiding_a_judge_takes_back_their_imported_votes(storage):
    """Judge x votes for a and against d, y the other way round. Without x, what x proved is gone and what x spoke
    against stays."""
    study = new_study(storage, delta=1e-9)
    play(study, 5)
    sides = {"x": ("a", "d"), "y": ("d", "a")}
    judges = ["x" if number % 3 else "y" for number in range(2500)]
    first, second = zip(*(sides[judge] for judge in judges), strict=True)
    study.import_votes(first, second, [1.0] * len(judges), judges)
    play(study, 5)
    before = study._state.ahead.evidence.ledger.accounts()
    assert study.verdict.votes == 2510
    study.void("x")
    assert study.verdict.votes == 2510 - judges.count("x")
    after = study._state.ahead.evidence.ledger.accounts()
    assert np.all(after.wealth <= before.wealth + 1e-9)
    pro = (after.source == 0) & (after.target == 3)
    assert before.wealth[pro] > 100
    assert after.wealth[pro] < 0
    assert {row[3] for row in study.votes} == {"y", "ann", "bob"}
    assert len(study.votes) == study.verdict.votes
    with pytest.raises(VoidJudge, match="do not import"):
        study.import_votes(["a"], ["b"], [1.0], ["x"])
    study.void("x")
    assert study.verdict.votes == len(study.votes)


def test_a_judge_voided_elsewhere_is_not_imported(url):
    study, other = new_study(url), load_study("demo", url)
    other.void("x")
    with pytest.raises(VoidJudge):
        study.import_votes(["a"], ["b"], [1.0], ["x"])


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
    study = new_study(sqlite_url, sampling=OracleTracking(alpha=0.3))
    assert (
        load_study("demo", sqlite_url)._state.ahead.sampling == study._state.ahead.sampling == OracleTracking(alpha=0.3)
    )


def test_what_cannot_be_stored_is_refused(sqlite_url, tmp_path):
    with pytest.raises(BadProblem, match="needs a name"):
        create_study(list(THETA), storage=sqlite_url, **OPTIONS)
    for name in ("", "a/b", "x" * 101, "\n"):
        with pytest.raises(BadProblem, match="cannot name a study"):
            new_study(sqlite_url, name=name)

    class Mine(OracleTracking):
        pass

    with pytest.raises(BadProblem, match=r"your own .* cannot be stored"):
        new_study(sqlite_url, sampling=Mine())
    for bad, said in (
        ("nonsense", "is not a storage"),
        ("mysql://u:secret@h/d", "neither sqlite"),
        ("sqlite://", "needs a file"),
        (f"sqlite:///{tmp_path}/none/x.db", "there is no folder"),
        ("postgresql://u:secret@127.0.0.1:1/d", "does not respond"),
    ):
        with pytest.raises(BadStorage, match=said) as caught:
            new_study(bad)
        assert "secret" not in str(caught.value)


def test_the_first_answer_stays(storage):
    storage.create("a", "{}")
    storage.create("b", "{}")
    key = AnswerKey("j" * 5000, "c" * 5000, "x" * 5000, "y", "f" * 32)
    others = [
        key._replace(judge="k"), key._replace(case=None, question=3), key._replace(first="y", second="x" * 5000),
        key._replace(shown="e" * 32),
    ]  # fmt: skip
    assert storage.known_answer("a", key) is None
    assert storage.keep_answer("a", key, 0.25) == 0.25
    assert storage.keep_answer("a", key, 0.75) == 0.25
    assert storage.known_answer("a", key) == 0.25
    assert storage.known_answer("b", key) is None
    assert [storage.known_answer("a", other) for other in others] == [None] * 4
    for place, other in enumerate(others):
        assert storage.keep_answer("a", other, place) == place
    with pytest.raises(UnknownStudy):
        storage.keep_answer("c", key, 1.0)


def test_runs_show_that_they_are_at_work(storage):
    storage.create("a", "{}")
    storage.create("b", "{}")
    storage.beat("a", "one", 1e6)
    storage.beat("a", "two", 2e6)
    storage.beat("a", "one", 3e6)
    left = storage.beats("a")
    assert list(left) == ["one", "two"]
    assert 2e6 < left["one"] <= 3e6
    assert 1e6 < left["two"] <= 2e6
    storage.beat("a", "two", -5.0)
    assert storage.beats("a")["two"] <= -5.0
    storage.leave("a", "one")
    storage.leave("a", "nobody")
    assert list(storage.beats("a")) == ["two"]
    assert storage.beats("b") == {}


def test_a_question_keeps_its_case_and_can_be_taken_over(storage):
    study = new_study(storage)
    cases = ["c1", "c2", "c3"]
    questions = study.ask(30, judge="ann", cases=cases, run="one")
    assert {question.case for question in questions} == set(cases)
    if storage.keeps_snapshots:
        study = load_study("demo", storage)
    assert study.pending == questions
    assert study.take_over("bob", "two", lambda run: True) == []
    assert study.take_over("ann", "two", lambda run: run != "one") == []
    assert study.take_over("ann", "two", lambda run: run == "one") == questions
    assert study.take_over("ann", "three", lambda run: run == "one") == []
    study.tell(questions[0], 1.0)
    assert study.question(0) == questions[0]


def test_a_database_of_another_version_is_refused(url, tmp_path):
    study = new_study(url)
    play(study, 5)
    assert upgrade_storage(url) == (HEAD, HEAD)
    engine = connect(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE shortlist_version SET version_num = '0000'"))
    close_databases()
    with pytest.raises(StorageOutdated, match=r"has schema 0000, and .* run: shortlist storage upgrade"):
        load_study("demo", url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE shortlist_version SET version_num = '0009'"))
    engine.dispose()
    close_databases()
    for use in (lambda: load_study("demo", url), lambda: upgrade_storage(url)):
        with pytest.raises(StorageOutdated, match="a newer version of shortlist wrote it"):
            use()
    with pytest.raises(BadStorage, match="there is no storage"):
        upgrade_storage(f"sqlite:///{tmp_path / 'nothing.db'}")


def test_the_migrations_make_the_tables_that_are_used(url):
    Database(url).close()
    engine = connect(url)
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), tables)
    engine.dispose()
    assert [what for what in differences if what[0] not in ("remove_table", "remove_index")] == []
