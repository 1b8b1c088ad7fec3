"""Faults of a storage, made to happen for real: damaged snapshots, locks of others, deleted and foreign files."""

import os
import threading
import time

import numpy as np
import pytest
from sqlalchemy import create_engine, insert, inspect, literal, text
from sqlalchemy.exc import IntegrityError

from shortlist import create_study, load_study
from shortlist.errors import BadStorage, BrokenChain, ForeignStorage, StudyReplaced, UnknownStudy
from shortlist.judges.pending import EXPIRES_AFTER, RunLease
from shortlist.study import schema, sync
from shortlist.study.maintenance import back_up, check_study, delete_study, rename_study
from shortlist.study.schema import events, tables
from shortlist.study.sql import Database, close_databases, open_database
from shortlist.study.sync import decode

pytestmark = pytest.mark.slow

CLEAR = (BrokenChain, BadStorage)


def played(url, votes=30, name="s"):
    study = create_study(["a", "b", "c", "d"], k=1, storage=url, name=name, seed=3, load_if_exists=True)
    for turn in range(votes):
        study.tell(study.ask(judge="ann"), float(turn % 3 > 0))
    return study


def engine_of(url):
    return create_engine(url.replace("postgresql:", "postgresql+psycopg:"))


def change(url, statement, **values):
    """What somebody with access to the database could do."""
    close_databases()
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.execute(text(statement), values)
    engine.dispose()


def test_a_damaged_snapshot_is_never_read(sqlite_url, monkeypatch):
    """Single bits, bytes cut off, and bytes exchanged: each is noticed, and the events are read instead."""
    monkeypatch.setattr(sync, "SNAPSHOT", 10)
    study = played(sqlite_url)
    data, known = study.storage.snapshot("s").data, study._sync.known
    assert decode(data, known) is not None
    rng = np.random.default_rng(1)
    for turn in range(1500):
        bad = bytearray(data)
        place = int(rng.integers(len(bad)))
        if turn % 3 == 0:
            bad[place] ^= 1 << int(rng.integers(8))
        elif turn % 3 == 1:
            bad = bad[:place]
        else:
            bad[place : place + 4] = rng.bytes(4)
        assert bytes(bad) == data or decode(bytes(bad), known) is None


def test_a_study_with_a_damaged_snapshot_is_read_from_its_events(url, monkeypatch, caplog):
    monkeypatch.setattr(sync, "SNAPSHOT", 10)
    study = played(url)
    verdict, head = study.examine(), study.head
    change(url, "UPDATE snapshots SET data = :data", data=study.storage.snapshot("s").data[:-7])
    again = load_study("s", url)
    assert (again.examine(), again.head) == (verdict, head)
    assert [record.message for record in caplog.records] == [
        "study 's': its snapshot cannot be used, so all of its events are read again"
    ]


def test_a_vote_counts_if_its_snapshot_cannot_be_saved(sqlite_url, monkeypatch, caplog):
    """As on a full disk; here a trigger refuses the row."""
    monkeypatch.setattr(sync, "SNAPSHOT", 10)
    create_study(["a", "b", "c", "d"], k=1, storage=sqlite_url, name="s", seed=3)
    refuse = "CREATE TRIGGER full BEFORE INSERT ON snapshots BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
    change(sqlite_url, refuse)
    study = played(sqlite_url)
    assert study.verdict.votes == 30
    assert not study.pending
    assert any("no snapshot was saved" in record.message for record in caplog.records)
    assert load_study("s", sqlite_url).verdict.votes == 30


def test_a_read_only_storage_can_be_read(sqlite_url):
    """Many votes, so that a snapshot would be due on loading."""
    played(sqlite_url)
    change(sqlite_url, "DELETE FROM snapshots")
    file = sqlite_url.removeprefix("sqlite:///")
    study = load_study("s", f"sqlite:///file:{file}?mode=ro&uri=true")
    assert study.verdict.votes == 30
    with pytest.raises(BadStorage, match="is read-only, so nothing can be added to it"):
        study.ask()


def test_a_deleted_file_is_noticed_at_the_next_write(sqlite_url, tmp_path):
    study = played(sqlite_url)
    question = study.ask()
    (tmp_path / "studies.db").rename(tmp_path / "elsewhere.db")
    with pytest.raises(BadStorage, match="was deleted, moved or replaced"):
        study.tell(question, 1.0)
    assert not (tmp_path / "studies.db").exists()
    (tmp_path / "elsewhere.db").rename(tmp_path / "studies.db")
    assert study.tell(question, 1.0).votes == 31


def test_a_restored_backup_is_used_by_a_process_that_lives_on(sqlite_url, tmp_path):
    """A copy in the place of the file. What the process had read after the backup is not continued."""
    study = played(sqlite_url, 5)
    back_up(sqlite_url, tmp_path / "backup.db")
    study.tell(study.ask(), 1.0)
    (tmp_path / "backup.db").replace(tmp_path / "studies.db")
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"studies.db{suffix}").unlink()
    with pytest.raises(BadStorage, match="deleted, moved or replaced"):
        study.ask()
    with pytest.raises(StudyReplaced):
        study.ask()
    again = load_study("s", study.storage)
    assert again.verdict.votes == 5
    assert again.tell(again.ask(), 1.0).votes == 6
    assert check_study(Database(sqlite_url), "s").problem == ""


def test_a_relative_name_of_a_file_is_of_the_folder_it_was_opened_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = played("sqlite:///studies.db", 3)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert played("sqlite:///studies.db", 5).verdict.votes == 5
    assert study.tell(study.ask(), 1.0).votes == 4


def test_a_database_of_another_program_is_left_alone(url):
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num TEXT)"))
        connection.execute(text("CREATE TABLE songs (title TEXT)"))
    for create in (False, True):
        with pytest.raises(ForeignStorage, match="tables of another program"):
            open_database(url, create)
    assert sorted(inspect(engine).get_table_names()) == ["alembic_version", "songs"]
    engine.dispose()
    schema.upgrade(engine)  # as `shortlist storage upgrade` does
    assert played(url).verdict.votes == 30
    engine.dispose()


def test_reading_never_makes_tables(url, tmp_path):
    if url.startswith("sqlite"):
        (tmp_path / "studies.db").touch()
    with pytest.raises(BadStorage, match="has no studies"):
        open_database(url, create=False)
    engine = engine_of(url)
    assert inspect(engine).get_table_names() == []
    engine.dispose()


def test_who_waits_for_a_lock_is_told_for_whom(url, monkeypatch):
    """Another connection writes and does not finish, as a suspended process would."""
    study = played(url, 3)
    monkeypatch.setattr(schema, "NOTICE", 0.2)
    close_databases()
    study = load_study("s", url)
    engine, waited, told = engine_of(url), threading.Event(), []
    monkeypatch.setattr(schema.log, "warning", lambda form, *said: (told.append(form % said), waited.set()))
    with engine.connect() as other:
        other.execute(text("BEGIN IMMEDIATE" if url.startswith("sqlite") else "SELECT id FROM studies FOR UPDATE"))
        asking = threading.Thread(target=study.ask)
        asking.start()
        assert waited.wait(60)
        other.rollback()
    asking.join(60)
    engine.dispose()
    assert len(study.pending) == 1
    assert len(told) == 1
    holder = f"process {os.getpid()}, " if url.startswith("sqlite") else ""  # PostgreSQL: the name of the connection
    assert told[0].startswith(f"waiting up to 60 s for {holder}")


@pytest.mark.parametrize("votes", [0, 5])
def test_nothing_is_written_to_a_study_that_took_the_place_of_a_deleted_one(url, votes):
    """Another program deletes the study and creates one of the same name, while this process has the old one open."""
    study, other = played(url, votes), Database(url)
    delete_study(other, "s")
    with pytest.raises(StudyReplaced, match="deleted, replaced or changed"):
        study.ask() if votes else study.import_votes(["a"], ["b"], [1.0])
    new = create_study(["a", "b", "c"], k=1, storage=other, name="s")
    new.tell(new.ask(), 1.0)
    for attempt in (study.ask, lambda: study.import_votes(["a"], ["b"], [1.0]), study.close_due):
        with pytest.raises(StudyReplaced):
            attempt()
    assert (check_study(other, "s").events, check_study(other, "s").problem) == (2, "")
    assert load_study("s", study.storage).verdict.votes == 1
    other.close()


def test_the_number_of_a_deleted_study_is_not_used_again(url):
    """Else what a run that has the deleted study open keeps about its judge would be kept in the new one."""
    study, other = played(url, 1), Database(url)
    delete_study(other, "s")
    played(url, 1, "t")
    with pytest.raises(BadStorage, match="deleted by another program"):
        study.storage.beat("s", "run", 60.0)
    assert other.beats("t") == {}
    other.close()


def test_a_name_that_was_given_to_another_study_means_that_one(url):
    study, other = played(url, 5), Database(url)
    rename_study(other, "s", "t")
    assert study.tell(study.ask(), 1.0).votes == 6  # who has it open goes on
    with pytest.raises(UnknownStudy):
        load_study("s", study.storage)
    played(url, 2)
    assert load_study("s", study.storage).verdict.votes == 2
    assert load_study("t", study.storage).verdict.votes == 6
    other.close()


def test_who_waits_is_told_of_the_process_that_holds_this_study(postgres_url, monkeypatch):
    """Others hold other studies, and for longer."""
    study = played(postgres_url, 1)
    played(postgres_url, 1, "t")
    monkeypatch.setattr(schema, "NOTICE", 0.2)
    close_databases()
    study, told, waited = load_study("s", postgres_url), [], threading.Event()
    monkeypatch.setattr(schema.log, "warning", lambda form, *said: (told.append(form % said), waited.set()))
    one, two = (engine_of(f"{postgres_url}&application_name={name}") for name in ("other", "holder"))
    with one.connect() as first, two.connect() as second:
        first.execute(text("SELECT id FROM studies WHERE name = 't' FOR UPDATE"))
        second.execute(text("SELECT id FROM studies WHERE name = 's' FOR UPDATE"))
        asking = threading.Thread(target=study.ask)
        asking.start()
        assert waited.wait(60)
        second.rollback()
        asking.join(60)
        first.rollback()
    one.dispose()
    two.dispose()
    assert told[0].startswith("waiting up to 60 s for holder, which is writing to ")


def test_waiting_for_a_lock_ends(url, monkeypatch):
    monkeypatch.setattr(schema, "NOTICE", 0.1)
    monkeypatch.setattr(schema, "PATIENCE", 0.3)
    study = played(url, 3)
    close_databases()
    study = load_study("s", url)
    engine = engine_of(url)
    with engine.connect() as other:
        other.execute(text("BEGIN IMMEDIATE" if url.startswith("sqlite") else "SELECT id FROM studies FOR UPDATE"))
        with pytest.raises(BadStorage, match="lock"):
            study.ask()
        other.rollback()
    engine.dispose()
    assert study.ask().id == 3


def test_the_clock_of_the_database_decides(postgres_url, monkeypatch):
    """One machine's clock is 2 hours ahead, the other's is right: no lease ends early, or late."""
    real = time.time
    study = played(postgres_url, 3)
    monkeypatch.setattr(time, "time", lambda: real() + 7200)
    ahead = study.ask(judge="ann", lease=3600)
    monkeypatch.setattr(time, "time", real)
    other = load_study("s", postgres_url)
    right = other.ask(judge="bob", lease=3600)
    monkeypatch.setattr(time, "time", lambda: real() + 7200)
    study.close_due()
    assert [question.id for question in study.pending] == [ahead.id, right.id]
    over = study.ask(judge="cem", lease=-1.0)
    monkeypatch.setattr(time, "time", lambda: real() - 7200)
    other.close_due()
    assert over.id not in [question.id for question in other.pending]
    assert all(abs(entry.at - real()) < 600 for entry in other.entries)


def test_a_run_is_not_robbed_by_a_machine_whose_clock_is_ahead(postgres_url, monkeypatch):
    real, study, away = time.time, played(postgres_url, 3), "elsewhere 1 1 0"
    study.storage.beat("s", away, EXPIRES_AFTER)
    question = study.ask(judge="ann", run=away)
    monkeypatch.setattr(time, "time", lambda: real() + 7200)
    with RunLease(study) as lease:
        assert lease.take_over("ann") == []
        study.storage.beat("s", away, -1.0)
        assert lease.take_over("ann") == [question]


def test_without_the_clock_of_the_database_a_live_run_is_robbed(postgres_url, monkeypatch):
    """The same, with the safeguard off."""
    monkeypatch.setattr(Database, "_time", property(lambda self: literal(time.time())))
    real, study, away = time.time, played(postgres_url, 3), "elsewhere 1 1 0"
    study.storage.beat("s", away, EXPIRES_AFTER)
    question = study.ask(judge="ann", run=away)
    monkeypatch.setattr(time, "time", lambda: real() + 7200)
    with RunLease(study) as lease:
        assert lease.take_over("ann") == [question]


def test_limits_and_the_name_of_a_connection(postgres_url):
    with open_database(postgres_url).reading() as connection:
        shown = [connection.scalar(text(f"SHOW {name}")) for name in ("lock_timeout", "statement_timeout")]
        assert shown == ["2s", "1min"]
        assert str(os.getpid()) in connection.scalar(text("SHOW application_name"))
    other = postgres_url + "&application_name=mine&connect_timeout=3"  # the URL's own settings are kept
    with open_database(other).reading() as connection:
        assert connection.scalar(text("SHOW application_name")) == "mine"


def test_a_long_study_says_how_far_it_is_read(url, monkeypatch, caplog):
    monkeypatch.setattr(sync, "SNAPSHOT", 10**9)
    study = played(url)
    monkeypatch.setattr(sync, "BLOCK", 25)
    monkeypatch.setattr(sync, "NOTICE", -1.0)
    monkeypatch.setattr(sync, "PERIOD", -1.0)
    again = load_study("s", url)
    assert (again.head, again.examine()) == (study.head, study.examine())
    assert [record.message for record in caplog.records] == [
        f"study 's': read {number} of 60 events" for number in (25, 50, 60)
    ]


def test_damaged_settings_are_named(url):
    played(url, 3)
    change(url, "UPDATE studies SET spec = substr(spec, 1, 40)")
    with pytest.raises(BadStorage, match="settings of study 's' are damaged"):
        load_study("s", url)


VALUES = (None, "", b"\xff\xfe", "5", "[]", "{}", '{"a":1}', "null", -1, 0, 3.5, 1e308, "nan", "x" * 50, '"s"', 2**62)


def any_value(old, rng):
    """Something else: one byte of it changed, or something of another kind."""
    if rng.random() < 0.5 or not isinstance(old, str | bytes) or not old:
        return VALUES[int(rng.integers(len(VALUES)))]
    bad = bytearray(old.encode() if isinstance(old, str) else old)
    bad[int(rng.integers(len(bad)))] = int(rng.integers(256))
    return bytes(bad).decode("latin1") if isinstance(old, str) else bytes(bad)


def replace_anything(url, table, columns, times, seed):
    """Change one field of one row, load the study, put the row back."""
    study, rng = load_study("s", url), np.random.default_rng(seed)
    found, database = (study.examine(), study.utilities), study.storage
    with engine_of(url).connect() as connection:
        key = "number" if table == "events" else "rowid"
        rows = connection.execute(text(f"SELECT rowid AS row, * FROM {table}")).mappings().all()
        for _ in range(times):
            row, column = rows[int(rng.integers(len(rows)))], columns[int(rng.integers(len(columns)))]
            value = any_value(row[column], rng)
            try:
                connection.execute(text(f"UPDATE {table} SET {column} = :value WHERE {key} = :key"),
                                   {"value": value, "key": row["number" if key == "number" else "row"]})  # fmt: skip
            except IntegrityError:  # the database refuses it
                connection.rollback()
                continue
            connection.commit()
            checked = check_study(database, "s")
            try:
                again = load_study("s", database)
                last = table == "events" and row["number"] == len(rows) - 1  # the end of a chain is seen by its head
                assert last or (again.examine(), again.utilities) == found, (column, value)
            except BadStorage:
                assert table != "snapshots"  # the events are enough
                assert checked.problem, (column, value)
            else:
                assert last or not checked.problem, (column, value)
                assert not checked.problem or checked.good == row["number"], (column, value)
            connection.execute(text(f"DELETE FROM {table}"))
            whole = [{name: value for name, value in row.items() if name != "row"} for row in rows]
            connection.execute(insert(tables.tables[table]), whole)
            connection.commit()


FIELDS = {"events": ("number", "kind", "body", "at", "previous"), "snapshots": ("number", "head", "data")}


@pytest.mark.parametrize("table", FIELDS)
def test_anything_in_a_table_is_read_rightly_or_refused(sqlite_url, table, monkeypatch):
    """SQLite takes any value for any column."""
    monkeypatch.setattr(sync, "SNAPSHOT", 10 if table == "snapshots" else 10**9)
    played(sqlite_url, 20)
    replace_anything(sqlite_url, table, FIELDS[table], 100, 1)


@pytest.mark.sweep
@pytest.mark.parametrize("table", FIELDS)
def test_anything_in_a_table_is_read_rightly_or_refused_1500_times(sqlite_url, table, monkeypatch):
    monkeypatch.setattr(sync, "SNAPSHOT", 10 if table == "snapshots" else 10**9)
    played(sqlite_url, 20)
    replace_anything(sqlite_url, table, FIELDS[table], 1500, 2)


@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_record_is_read_rightly_or_refused(sqlite_url, seed, monkeypatch):
    """Any field of any event: nothing is loaded as if it were the whole."""
    monkeypatch.setattr(sync, "SNAPSHOT", 10**9)
    study = played(sqlite_url, 20)
    verdict = study.examine()
    engine = engine_of(sqlite_url)
    rng = np.random.default_rng(seed)
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT study, number, kind, body, at, previous FROM events ORDER BY 2")).all()
        for _ in range(100):
            number = int(rng.integers(len(rows)))
            damage = DAMAGES[int(rng.integers(len(DAMAGES)))](rows[number], rng)
            connection.execute(text(damage), {"number": number})
            connection.commit()
            database = Database(sqlite_url)
            try:
                found = load_study("s", database).examine()
                assert number == len(rows) - 1 or found == verdict, damage  # the end of a chain is seen by its head
            except CLEAR as reason:
                assert "event" in str(reason)  # noqa: PT017 - either is right
            database.close()
            connection.execute(text("DELETE FROM events"))
            connection.execute(insert(events), [row._asdict() for row in rows])
            connection.commit()
    engine.dispose()


DAMAGES = (
    lambda row, rng: "DELETE FROM events WHERE number = :number",
    lambda row, rng: "UPDATE events SET kind = 'songs' WHERE number = :number",
    lambda row, rng: "UPDATE events SET kind = 'paused' WHERE number = :number",
    lambda row, rng: f"UPDATE events SET body = substr(body, 1, {rng.integers(len(row.body))}) WHERE number = :number",
    lambda row, rng: "UPDATE events SET body = replace(body, '1', '2') WHERE number = :number",
    lambda row, rng: "UPDATE events SET at = at + 1 WHERE number = :number",
    lambda row, rng: "UPDATE events SET previous = kind WHERE number = :number",
    lambda row, rng: "UPDATE events SET number = 1000 + number WHERE number = :number",
)
