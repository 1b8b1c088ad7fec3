"""Care of a storage: checks, copies between databases, backups while others write, repairs, kills in the middle."""

import subprocess
import sys
import threading
import time

import pytest
from sqlalchemy import create_engine, text

from shortlist import create_study, load_study, run_study
from shortlist.errors import BadStorage, StudyArchived, StudyExists, UnknownStudy
from shortlist.study.maintenance import back_up, check_study, copy_study, delete_study, rename_study, restore
from shortlist.study.sql import close_databases, open_database
from tests.patience import wait_until

pytestmark = pytest.mark.slow


def played(url, votes=30, name="s"):
    study = create_study(["a", "b", "c", "d"], k=1, storage=url, name=name, seed=3, load_if_exists=True)
    for turn in range(votes):
        study.tell(study.ask(judge="ann"), float(turn % 3 > 0))
    return study


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
