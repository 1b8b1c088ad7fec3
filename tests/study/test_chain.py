"""The chain of events in a real database: whatever is changed in it is noticed, and the record is named."""

import hashlib

import pytest
from sqlalchemy import create_engine

from shortlist import create_study, load_study
from shortlist.errors import BrokenChain
from shortlist.study import sync
from shortlist.study.events import dump
from shortlist.study.sql import close_databases


@pytest.fixture(params=["sqlite", "postgres"])
def url(request):
    return request.getfixturevalue(f"{request.param}_url")


def played(url, votes=8):
    study = create_study(["a", "b", "c"], k=1, storage=url, name="s", seed=3)
    for turn in range(votes):
        question = study.ask(judge="ann")
        study.tell(question, float(turn % 3 > 0))
    return study


def change(url, statement):
    """What somebody with access to the database could do."""
    close_databases()
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        assert connection.exec_driver_sql(statement).rowcount == 1
    engine.dispose()


def test_the_head_is_a_hash_over_all_that_happened(url):
    """Computed here with nothing but hashlib, from the settings and the events as they are written."""
    study = played(url)
    last = hashlib.sha256(study.storage.spec("s").encode()).hexdigest()
    for number, at, event, previous, found in study.entries:
        kind, body = dump(event)
        assert previous == last
        last = hashlib.sha256(f"{last}\n{number}\n{at!r}\n{kind}\n{body}".encode()).hexdigest()
        assert found == last
    assert study.head == (16, last)
    assert load_study("s", url).head == study.head


@pytest.mark.parametrize(
    ("damage", "number"),
    [
        ('UPDATE events SET body = \'{"question":2,"outcome":0.0}\' WHERE number = 5', 6),
        ("UPDATE events SET at = at + 1 WHERE number = 7", 8),
        ("DELETE FROM events WHERE number = 4", 4),
        ("DELETE FROM events WHERE number = 0", 0),
        ("UPDATE events SET number = 99 WHERE number = 9", 9),
        ("UPDATE events SET previous = 'x' WHERE number = 3", 3),
        ("UPDATE studies SET spec = replace(spec, '\"delta\": 0.05', '\"delta\": 0.5')", 0),
    ],
)
def test_a_changed_record_is_an_error_that_names_the_event(url, damage, number):
    played(url)
    change(url, damage)
    with pytest.raises(BrokenChain, match=f"event {number} "):
        load_study("s", url)


def test_the_last_event_removed_is_seen_by_whoever_knows_the_head(url):
    head = played(url).head
    change(url, "DELETE FROM events WHERE number = 15")
    shorter = load_study("s", url).head
    assert shorter.events == head.events - 1
    assert shorter != head


def test_a_snapshot_of_other_events_is_not_used(url, monkeypatch):
    monkeypatch.setattr(sync, "SNAPSHOT", 5)
    study = played(url)
    verdict, head = study.verdict, study.head
    change(url, "UPDATE snapshots SET head = 'x'")
    assert load_study("s", url).head == head
    assert load_study("s", url).verdict == verdict


def test_a_process_at_work_notices_that_events_were_replaced(url):
    study = played(url, 4)
    other = load_study("s", url)
    other.tell(other.ask(), 1.0)
    change(url, "UPDATE events SET previous = 'x' WHERE number = 8")
    with pytest.raises(BrokenChain, match="event 8 "):
        study.ask()
    study.storage.close()


def test_a_study_in_memory_has_a_head_too():
    studies = [create_study(["a", "b", "c"], k=1, seed=3) for _ in range(2)]
    assert studies[0].head == studies[1].head
    studies[0].tell(studies[0].ask(), 1.0)
    assert studies[0].head.events == 2
    assert studies[0].head.hash != studies[1].head.hash
