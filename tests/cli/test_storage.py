"""The commands that care for a storage, as a person calls them."""

import sqlite3

import pytest

from shortlist import create_study
from shortlist.study.sql import close_databases

HERE = "sqlite:///shortlist.db"


@pytest.fixture
def stored(shortlist):
    """The commands, beside a study with votes."""
    study = create_study(["a", "b", "c"], k=1, storage=HERE, name="fruit")
    for _ in range(5):
        study.tell(study.ask(), 1.0)
    return shortlist


def test_check_copy_and_repair(stored):
    assert "fruit: all 10 events are in order" in stored("storage", "check", HERE).out
    assert "Copied fruit: 10 events" in stored("storage", "copy", HERE, "sqlite:///other.db").out
    assert "already" in stored.refused("storage", "copy", HERE, "sqlite:///other.db")
    close_databases()
    with sqlite3.connect(stored.folder / "shortlist.db") as connection:
        connection.execute("UPDATE events SET body = 'x' WHERE number = 6")
    connection.close()
    said = stored("storage", "check", HERE, code=2).out
    assert "event 6 cannot be read. 6 of 10 events are in order" in said
    assert "event 6 is missing" in stored.refused("status", "fruit")
    assert "4 events after them are missing" in stored("storage", "repair", HERE, "sqlite:///saved.db", "fruit").out
    assert stored.json("status", "fruit", "--storage", "sqlite:///saved.db")["votes"] == 3


def test_a_check_against_an_earlier_head(stored):
    head = stored.json("storage", "check", HERE)["studies"][0]
    known = f"{head['events']}:{head['hash'][:16]}"
    assert "in order" in stored("storage", "check", HERE, "fruit", "--head", known).out
    close_databases()
    with sqlite3.connect(stored.folder / "shortlist.db") as connection:
        connection.execute("DELETE FROM events WHERE number = 9")
    connection.close()
    assert "in order" in stored("storage", "check", HERE).out
    assert (
        f"does not go on from the head {known}"
        in stored("storage", "check", HERE, "fruit", "--head", known, code=2).out
    )
    assert "studies here: fruit" in stored.refused("storage", "check", HERE, "plums")
    assert "looks like 120:" in stored.refused("storage", "check", HERE, "fruit", "--head", "9")


def test_a_copy_under_another_name(stored):
    assert "Copied plums: 10 events." in stored("storage", "copy", HERE, HERE, "fruit", "--as", "plums").out
    assert "same storage" in stored.refused("storage", "copy", HERE, HERE, "fruit")
    assert stored.json("storage", "list")["studies"] == ["fruit", "plums"]


def test_backup_and_restore(stored):
    assert "Backup written to b.db" in stored("storage", "backup", "b.db").out
    assert "Restored 1 study" in stored("storage", "restore", "b.db", "--storage", "sqlite:///new.db").out
    assert stored.json("status", "fruit", "--storage", "sqlite:///new.db")["votes"] == 5
    assert "empty storage" in stored.refused("storage", "restore", "b.db")
    assert "pg_dump" in stored.refused("storage", "backup", "c.db", "--storage", "postgresql://x@localhost/y")


def test_rename_and_delete(stored):
    stored("storage", "rename", "fruit", "plums")
    assert stored.json("storage", "list") == {"studies": ["plums"], "archived": []}
    stored("delete", "plums", "--yes")
    assert stored.json("storage", "list") == {"studies": [], "archived": []}
    assert "no study" in stored.refused("delete", "plums", "--yes")


def test_files_of_a_study_are_not_forgotten(stored):
    """Paid answers that wait for the next run have the study's name; people's answers to an audit are a file too."""
    (stored.folder / "fruit.unsaved-1-0.jsonl").touch()
    (stored.folder / "fruit.audit.jsonl").touch()
    assert "paid answers of fruit wait in fruit.unsaved-1-0.jsonl" in stored.refused(
        "storage", "rename", "fruit", "plums"
    )
    (stored.folder / "fruit.unsaved-1-0.jsonl").unlink()
    assert "shortlist audit plums --file fruit.audit.jsonl" in stored("storage", "rename", "fruit", "plums").out
    (stored.folder / "fruit.audit.jsonl").rename(stored.folder / "plums.audit.jsonl")
    assert "still there: plums.audit.jsonl" in stored("delete", "plums", "--yes").out


def test_status_on_a_database_of_something_else_changes_nothing(stored):
    with sqlite3.connect(stored.folder / "songs.db") as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()
    before = (stored.folder / "songs.db").read_bytes()
    assert "another program" in stored.refused("status", "fruit", "--storage", "sqlite:///songs.db")
    assert (stored.folder / "songs.db").read_bytes() == before
