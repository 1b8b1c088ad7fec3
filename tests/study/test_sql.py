"""On PostgreSQL nothing is acknowledged before it is on the disk, though commits do not wait for it."""

from sqlalchemy import text

from shortlist import create_study
from shortlist.study.sql import Database


def place(database, what):
    with database.reading() as connection:
        return connection.scalar(text(f"SELECT pg_current_wal_{what}_lsn() - '0/0'::pg_lsn"))


def test_a_flush_takes_all_before_it_to_the_disk(postgres_url):
    database = Database(postgres_url, flush_later=True)
    study = create_study(["a", "b", "c"], 1, storage=database, name="demo")
    waited = 0
    for _ in range(20):
        study.tell(study.ask(), 1.0)
        written = place(database, "insert")
        waited += place(database, "flush") < written
        database.flush()
        assert place(database, "flush") >= written
        if study.verdict.done:
            break
    assert waited  # else this test shows nothing
    database.close()


def test_without_it_every_commit_waits_for_the_disk(postgres_url):
    database = Database(postgres_url)
    with database.reading() as connection:
        assert connection.scalar(text("SHOW synchronous_commit")) == "on"
    database.flush()  # nothing to do
    database.close()
