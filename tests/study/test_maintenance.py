"""Care of a storage: checks, copies between databases, backups while others write, repairs, kills in the middle."""

import os
import sqlite3
import subprocess
import sys
import threading
import time

import pytest
from sqlalchemy import create_engine, insert, select, text

from shortlist import create_study, load_study, run_study
from shortlist.errors import BadStorage, BrokenChain, StudyArchived, StudyExists, UnknownStudy
from shortlist.study import maintenance, schema, sync
from shortlist.study.events import Head
from shortlist.study.maintenance import (
    back_up,
    check_study,
    check_tables,
    copy_studies,
    copy_study,
    delete_study,
    rename_study,
    restore,
)
from shortlist.study.sql import Database, close_databases, open_database
from tests.patience import wait_until

pytestmark = pytest.mark.slow


def played(url, votes=30, name="s"):
    study = create_study(["a", "b", "c", "d"], k=1, storage=url, name=name, seed=3, load_if_exists=True)
    for turn in range(votes):
        study.tell(study.ask(judge="ann"), float(turn % 3 > 0))
    return study


def change(url, *statements):
    """What somebody with access to the database could do."""
    close_databases()
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def fill(study):
    """A row in every table that may have some of a study."""
    database = study.storage
    with database.changing() as connection:
        here = {"study": database._id(study.name)}
        judge = connection.scalar(
            insert(schema.judges).returning(schema.judges.c.id),
            {**here, "name": "Ann", "created": 1.5, "key": "judge #1", "email": "a@x", "state": "active",
             "is_open": False},
        )  # fmt: skip
        of_judge = {**here, "judge": judge}
        for table, row in (
            (schema.displays, {**here, "body": '{"cases":[],"contents":{}}', "closed": False}),
            (schema.uploads, {**here, "id": "picture", "type": "image/png", "data": b"\x00\xff", "created": 2.5}),
            (schema.invitations, {**here, "code": "c", "max_judges": 3, "max_votes": None, "approve": True}),
            (schema.conflicts, {**of_judge, "item": "a", "declared": True}),
            (schema.notes, {**of_judge, "question": 3, "text": "because", "created": 3.5}),
            (schema.tokens, {**of_judge, "id": "token", "hash": "h", "kind": "judge", "created": 1.0, "expires": None,
                             "revoked": False}),
            (schema.texts, {**here, "digest": "d", "text": "said"}),
            (schema.runs, {**here, "run": "r", "until": 1.0}),
            (schema.answers, {**here, "digest": "d", "judge": "j", "case": "1", "first": "a", "second": "b",
                              "shown": "s", "question": None, "outcome": 0.5, "at": 4.5}),
            (schema.replies, {**here, "digest": "d", "question": 1, "judge": "j", "member": "", "case": None,
                              "first": "a", "second": "b", "outcome": None, "reason": "unclear", "attempt": 1,
                              "at": 5.5, "seconds": 0.25, "request": "q", "model": "m", "text": "t", "reasoning": None,
                              "prompt_tokens": 3, "cached_tokens": 0, "completion_tokens": 2, "cost": 0.125,
                              "first_text": "d", "second_text": None, "case_text": None}),
        ):  # fmt: skip
            connection.execute(insert(table), row)


def everything(url, name):
    """What is stored of a study in every table, without the numbers that differ between storages."""
    database, found = Database(url), {}
    with database.reading() as connection:
        study = connection.scalar(select(schema.studies.c.id).where(schema.studies.c.name == name))
        for table in schema.tables.sorted_tables:
            if "study" in table.c:
                rows = connection.execute(select(table).where(table.c.study == study)).mappings().all()
                numbers = ("study", "judge", "id") if table.name.startswith("web_") else ("study",)
                kept = [{key: value for key, value in row.items() if key not in numbers} for row in rows]
                found[table.name] = sorted(kept, key=repr)
    database.close()
    return found


def test_every_table_of_a_study_is_copied_and_deleted():
    """A table that is added later must be in these lists."""
    of_studies = {table for table in schema.tables.sorted_tables if "study" in table.c}
    assert set(maintenance.OWNED) == of_studies
    copied = {*maintenance.COPIED, *maintenance.OF_JUDGES, schema.judges}
    assert of_studies - copied == {schema.snapshots, schema.runs}  # a cache, and who is at work here


def test_there_and_back_again_everything_is_the_same(sqlite_url, postgres_url, tmp_path):
    """From SQLite to PostgreSQL and back: events, answers, replies, texts, pictures, judges, links, notes."""
    study, back = played(sqlite_url), f"sqlite:///{tmp_path / 'back.db'}"
    fill(study)
    before = everything(sqlite_url, "s")
    assert all(before[table.name] for table in schema.tables.sorted_tables if table.name in before
               and table is not schema.snapshots)  # fmt: skip
    copy_study(study.storage, open_database(postgres_url), "s")
    copy_study(open_database(postgres_url), open_database(back), "s")
    before["runs"], before["snapshots"] = [], []
    assert everything(postgres_url, "s") == everything(back, "s") == before
    assert load_study("s", back).head == study.head


def test_a_deleted_study_leaves_nothing(url, tmp_path):
    """Not even in the free pages of a SQLite file, or in the log beside it."""
    study = played(url, 100)
    fill(study)
    delete_study(study.storage, "s")
    assert not any(everything(url, "s").values())
    with study.storage.reading() as connection:
        for table in schema.tables.sorted_tables:
            assert connection.execute(select(table)).all() == []
    if url.startswith("sqlite"):
        left = b"".join(file.read_bytes() for file in tmp_path.glob("studies.db*"))
        assert b"because" not in left
        assert b'"outcome"' not in left


def test_copies_of_several_studies_are_made_together_or_not_at_all(url, tmp_path):
    for name in ("s", "t"):
        played(url, 3, name)
    target = open_database(f"sqlite:///{tmp_path / 'copy.db'}")
    create_study(["x", "y"], k=1, storage=target, name="t")
    with pytest.raises(StudyExists):
        copy_studies(open_database(url), target, ["s", "t"])
    assert target.names() == ["t"]


def test_a_study_is_copied_under_another_name(url, tmp_path):
    study = played(url)
    copy_study(study.storage, study.storage, "s", new="t")
    assert load_study("t", url).head == study.head
    fill(study)
    with pytest.raises(BadStorage, match="links or pictures of 's' already"):  # an id is of one study
        copy_study(study.storage, study.storage, "s", new="u")
    assert study.storage.names() == ["s", "t"]


TWICE = (
    "CREATE TABLE kept AS SELECT * FROM events", "DROP TABLE events", "ALTER TABLE kept RENAME TO events",
    "INSERT INTO events SELECT * FROM events WHERE number = 41",
)  # fmt: skip


@pytest.mark.parametrize(
    ("damage", "good", "problem"),
    [
        (("DELETE FROM events WHERE number = 41",), 41, "event 41 is missing"),
        (("UPDATE events SET number = -1 WHERE number = 41",), 41, "event 41 is missing"),
        (TWICE, 42, "event 41 is there twice"),
        (("UPDATE events SET body = replace(body, '1.0', '0.5') WHERE number = 41",), 41,
         "event 41 was changed"),
        (("UPDATE events SET at = at + 1 WHERE number = 41",), 41, "event 41 was changed"),
        (("UPDATE events SET previous = 'x' WHERE number = 41",), 41, "event 41 was changed"),
        (("UPDATE events SET body = substr(body, 1, 9) WHERE number = 41",), 41, "event 41 cannot be read"),
        (("UPDATE events SET kind = 'song' WHERE number = 41",), 41, "event 41 cannot be read"),
        (("UPDATE studies SET spec = replace(spec, '0.05', '0.5')",), 0, "settings of the study or event 0"),
    ],
)  # fmt: skip
def test_a_check_names_the_damaged_event_and_a_repair_saves_those_before(url, tmp_path, damage, good, problem):
    entries = played(url).entries
    change(url, *damage)
    source, target = open_database(url), open_database(f"sqlite:///{tmp_path / 'saved.db'}")
    found = check_study(source, "s")
    assert found.good == good
    assert problem in found.problem
    with pytest.raises(BrokenChain):
        load_study("s", source)
    if good:
        copy_study(source, target, "s", found.good)
        assert check_study(target, "s")[1:] == (good, good, found.hash, "")
        assert load_study("s", target).entries == entries[:good]
    assert check_study(source, "s") == found


def test_removed_last_events_are_noticed_by_who_knows_of_them(url, monkeypatch):
    """A snapshot of them, an earlier head, or a process that has the study open."""
    monkeypatch.setattr(sync, "SNAPSHOT", 50)
    study = played(url)
    head = study.head
    assert check_study(study.storage, "s", head).problem == ""
    change(url, "DELETE FROM events WHERE number > 30")
    with pytest.raises(BrokenChain, match=r"event 31 and later ones are missing; there were \d+ events once"):
        load_study("s", url)
    found = check_study(open_database(url), "s")
    assert (found.good, found.problem[:20]) == (31, "event 31 and later o")
    change(url, "DELETE FROM snapshots")
    assert check_study(open_database(url), "s").problem == ""
    assert "does not go on from the head 60:" in check_study(open_database(url), "s", head).problem
    assert "does not go on" in check_study(open_database(url), "s", Head(20, "0" * 8)).problem


@pytest.mark.parametrize("part", [0.4, 0.7, 0.95])
def test_of_a_cut_file_is_saved_what_can_be_read(sqlite_url, tmp_path, part):
    """The end of the file is gone, as after a copy that was interrupted."""
    entries = played(sqlite_url, 300).entries
    change(sqlite_url, "PRAGMA wal_checkpoint(TRUNCATE)")
    file = tmp_path / "studies.db"
    size = file.stat().st_size
    os.truncate(file, int(size * part))
    before = file.read_bytes()
    words = [sys.executable, "-m", "shortlist", "storage"]
    said = subprocess.run([*words, "check", sqlite_url], capture_output=True, text=True, check=False)
    assert said.returncode == 2
    assert "damaged" in said.stdout + said.stderr
    assert "Traceback" not in said.stderr
    target = f"sqlite:///{tmp_path / 'saved.db'}"
    again = subprocess.run([*words, "repair", sqlite_url, target, "s"], capture_output=True, text=True, check=False)
    assert "Traceback" not in again.stderr
    if again.returncode == 0:
        saved = load_study("s", target).entries
        assert saved == entries[: len(saved)]
        assert check_study(open_database(target), "s").problem == ""
    assert file.read_bytes() == before


def test_rows_of_no_study_are_found(sqlite_url):
    played(sqlite_url, 3)
    assert check_tables(open_database(sqlite_url)) == ""
    change(sqlite_url, "PRAGMA foreign_keys = OFF", "UPDATE studies SET id = 77")
    assert "rows of no study in events" in check_tables(open_database(sqlite_url))


def test_a_backup_needs_studies_and_a_place(sqlite_url, tmp_path):
    with pytest.raises(BadStorage, match="there is no storage"):
        back_up(sqlite_url, tmp_path / "backup.db")
    with sqlite3.connect(tmp_path / "songs.db") as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()
    with pytest.raises(BadStorage, match="has no studies"):
        back_up(f"sqlite:///{tmp_path / 'songs.db'}", tmp_path / "backup.db")
    (tmp_path / "notes.db").write_text("not a database, but a text of some length\n" * 50)
    with pytest.raises(BadStorage, match=r"the storage .*notes.db cannot be read"):
        back_up(f"sqlite:///{tmp_path / 'notes.db'}", tmp_path / "backup.db")
    (tmp_path / "notes.db").unlink()
    with pytest.raises(BadStorage, match="is not a storage; give"):
        back_up("songs.db", tmp_path / "backup.db")
    with pytest.raises(BadStorage, match="pg_dump"):
        back_up("postgresql://u@127.0.0.1:1/d", tmp_path / "backup.db")
    played(sqlite_url, 3)
    with pytest.raises(BadStorage, match="cannot be written"):
        back_up(sqlite_url, tmp_path / "no" / "backup.db")
    assert sorted(file.name for file in tmp_path.glob("*") if file.suffix == ".db") == ["songs.db", "studies.db"]


def test_a_restored_backup_and_a_database_of_others_stay_as_they_are(sqlite_url, tmp_path):
    played(sqlite_url)
    file = tmp_path / "my backup #1.db"
    back_up(sqlite_url, file)
    before = file.read_bytes()
    assert restore(file, f"sqlite:///{tmp_path / 'new.db'}") == ["s"]
    assert check_study(open_database(f"sqlite:///{file}"), "s").problem == ""
    close_databases()
    assert file.read_bytes() == before


def test_a_copy_has_the_same_events_hashes_and_verdict(url, tmp_path):
    study, target = played(url), f"sqlite:///{tmp_path / 'copy.db'}"
    assert copy_study(study.storage, open_database(target), "s") == study.head.events
    again = load_study("s", target)
    assert (again.head, again.examine(), again.entries) == (study.head, study.examine(), study.entries)
    assert again.tell(again.ask(), 1.0).votes == 31
    with pytest.raises(StudyExists):
        copy_study(study.storage, open_database(target), "s")


def test_a_repair_saves_what_comes_before_the_damage(url, tmp_path):
    head = played(url).head
    close_databases()
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM events WHERE number = 41"))
    engine.dispose()
    source, target = open_database(url), open_database(f"sqlite:///{tmp_path / 'saved.db'}")
    found = check_study(source, "s")
    assert (found.events, found.good) == (head.events - 1, 41)
    assert "event 41 " in found.problem
    copy_study(source, target, "s", found.good)
    saved = check_study(target, "s")
    assert (saved.events, saved.good, saved.problem) == (41, 41, "")
    assert load_study("s", target).verdict.votes == 20
    assert check_study(source, "s") == found


def test_a_backup_is_whole_while_others_write(sqlite_url, tmp_path):
    study, over = played(sqlite_url), threading.Event()

    def write():
        while not over.is_set():
            study.tell(study.ask(), 1.0)

    writer = threading.Thread(target=write)
    create_study(["x", "y"], k=1, storage=sqlite_url, name="other")
    writer.start()
    back_up(sqlite_url, tmp_path / "backup.db")
    over.set()
    writer.join()
    with pytest.raises(BadStorage, match="choose another name"):
        back_up(sqlite_url, tmp_path / "backup.db")
    place = f"sqlite:///{tmp_path / 'new.db'}"
    assert restore(tmp_path / "backup.db", place) == ["other", "s"]
    events = study.entries
    assert load_study("s", place).entries == events[: load_study("s", place).head.events]
    assert len(events) >= load_study("s", place).head.events >= 60
    with pytest.raises(BadStorage, match="empty storage"):
        restore(tmp_path / "backup.db", place)
    with pytest.raises(BadStorage, match="not completed"):
        restore(tmp_path / "backup.db.part", place)


def test_names_change_and_studies_go(url):
    study = played(url)
    rename_study(study.storage, "s", "t")
    assert load_study("t", url).head == study.head
    create_study(["x", "y"], k=1, storage=url, name="other")
    with pytest.raises(StudyExists):
        rename_study(study.storage, "t", "other")
    delete_study(study.storage, "t")
    assert open_database(url).names() == ["other"]
    with pytest.raises(UnknownStudy):
        load_study("t", url)
    assert played(url, 3, "t").verdict.votes == 3


def test_an_archived_study_can_only_be_read(url, tmp_path):
    study, other = played(url), create_study(["x", "y"], k=1, storage=url, name="other")
    unsettled = study.ask(judge="cem")
    study.tell(unsettled, 1.0, settle=False)
    pending = study.ask(judge="bob", lease=-1.0)
    study.archive()
    assert (study.archived, study.verdict.votes, study.storage.archived()) == (True, 31, ["s"])
    elsewhere = load_study("s", url)
    for attempt in (
        lambda: elsewhere.ask(), lambda: elsewhere.tell(pending, 1.0), lambda: elsewhere.skip(pending),
        lambda: elsewhere.undo(unsettled), lambda: elsewhere.void("ann"), lambda: elsewhere.change(max_votes=99),
        lambda: elsewhere.import_votes(["a"], ["b"], [1.0]), lambda: elsewhere.pause(),
        lambda: run_study(elsewhere, lambda first, second: first),
    ):  # fmt: skip
        with pytest.raises(StudyArchived, match="shortlist unarchive 's'"):
            attempt()
    assert elsewhere.close_due() == study.verdict  # a lease that ended stays as it is
    assert elsewhere.head == study.head
    copy_study(study.storage, open_database(f"sqlite:///{tmp_path / 'copy.db'}"), "s")
    assert open_database(f"sqlite:///{tmp_path / 'copy.db'}").archived() == ["s"]
    elsewhere.archive(False)
    assert other.storage.archived() == []
    assert study.ask().id == 32


@pytest.mark.parametrize("action", ["copy", "repair", "backup"])
def test_a_command_that_is_killed_leaves_the_original_as_it_was(sqlite_url, tmp_path, action):
    """Killed as soon as its target appears on the disk. The same command then works, or says what is there."""
    played(sqlite_url, 300)
    close_databases()
    if action == "repair":
        engine = create_engine(sqlite_url)
        with engine.begin() as connection:
            connection.execute(text("UPDATE events SET kind = 'x' WHERE number = 599"))
        engine.dispose()
    before = check_study(open_database(sqlite_url), "s")
    target = tmp_path / ("copy.db.part" if action == "backup" else "copy.db")
    words = {
        "copy": [sqlite_url, f"sqlite:///{target}", "s"],
        "repair": [sqlite_url, f"sqlite:///{target}", "s"],
        "backup": [str(tmp_path / "copy.db"), "--storage", sqlite_url],
    }[action]
    command = [sys.executable, "-m", "shortlist", "storage", action, *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: target.exists() or process.poll() is not None, 0.0001)
        process.kill()
    assert check_study(open_database(sqlite_url), "s") == before
    close_databases()
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 0 or "already exists" in again.stderr or "exists; choose" in again.stderr, again.stderr
    found = check_study(open_database(f"sqlite:///{tmp_path / 'copy.db'}", create=False), "s")
    assert (found.events, found.problem) == (before.good, "")


def test_a_backup_that_is_killed_in_the_middle_is_never_restored(sqlite_url, tmp_path):
    """Nor if its file is given another name."""
    played(sqlite_url, 300)
    close_databases()
    part, before = tmp_path / "backup.db.part", (tmp_path / "studies.db").read_bytes()
    script = (
        "import os, sqlite3\n"
        f"source, target = sqlite3.connect({str(tmp_path / 'studies.db')!r}), sqlite3.connect({str(part)!r})\n"
        "target.execute('PRAGMA cache_size = 5')\n"  # so that pages are written before the end
        "kill = lambda status, left, total: left < total / 2 and os.kill(os.getpid(), 9)\n"
        "source.backup(target, pages=8, progress=kill)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    assert part.stat().st_size > 0
    with pytest.raises(BadStorage, match="not completed"):
        restore(part, f"sqlite:///{tmp_path / 'new.db'}")
    with pytest.raises(BadStorage):
        restore(part.rename(tmp_path / "backup.db"), f"sqlite:///{tmp_path / 'new.db'}")
    assert open_database(f"sqlite:///{tmp_path / 'new.db'}").names() == []
    assert (tmp_path / "studies.db").read_bytes() == before


@pytest.mark.parametrize("wait", [0.0, 0.1, 0.4])
def test_a_restore_that_is_killed_leaves_all_studies_or_none(sqlite_url, postgres_url, tmp_path, wait):
    for name in ("s", "t", "u"):
        played(sqlite_url, 100, name)
    back_up(sqlite_url, tmp_path / "backup.db")
    open_database(postgres_url)
    script = (
        "from pathlib import Path\nfrom shortlist.study import maintenance\n"
        "done, checked = maintenance.copy_studies, maintenance.check_study\n"
        "def copy(*arguments):\n    print('ready', flush=True)\n    return done(*arguments)\n"
        "maintenance.copy_studies = copy\n"
        f"maintenance.restore(Path({str(tmp_path / 'backup.db')!r}), {postgres_url!r})\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(wait)  # whatever it has done by then
        process.kill()
    wait_until(lambda: not _others(postgres_url))
    assert open_database(postgres_url).names() in ([], ["s", "t", "u"])
    if not open_database(postgres_url).names():
        assert restore(tmp_path / "backup.db", postgres_url) == ["s", "t", "u"]
    assert not any(check_study(open_database(postgres_url), name).problem for name in ("s", "t", "u"))


def _others(url):
    """Other connections to a PostgreSQL database: those of a killed process end a moment later."""
    with open_database(url).reading() as connection:
        return connection.scalar(
            text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
        )


@pytest.mark.parametrize("wait", [0.0, 0.02, 0.1, 0.3])
def test_a_copy_that_is_killed_leaves_nothing_half_made(sqlite_url, tmp_path, wait):
    study = played(sqlite_url, 200)
    target = f"sqlite:///{tmp_path / 'copy.db'}"
    open_database(target)
    close_databases()
    script = (
        "from shortlist.study.maintenance import copy_study\nfrom shortlist.study.sql import open_database\n"
        f"source, target = open_database({sqlite_url!r}), open_database({target!r})\n"
        "print('ready', flush=True)\ncopy_study(source, target, 's')\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(wait)  # whatever it has done by then
        process.kill()
    names = open_database(target).names()
    if "s" in names:
        assert check_study(open_database(target), "s")[1:4] == (study.head.events, study.head.events, study.head.hash)
    else:
        assert names == []
    assert check_study(open_database(sqlite_url), "s").problem == ""
