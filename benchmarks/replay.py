"""How long it takes to load a long study from its events, without a snapshot.

    python benchmarks/replay.py [--votes 300000] [--stopping cuts] [--keep FILE]

The study has 20 items, of which the 5th and the 6th best are equal, so that no proof ends it. Eight questions are
pending at a time, and every event is in an SQLite file. Printed is processor time: for reading the events and checking
their chain, for folding them, and for folding them one by one.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sqlalchemy import delete

import shortlist
from shortlist.study.bulk import apply_many
from shortlist.study.create import load_study
from shortlist.study.events import Entry, Event, Told
from shortlist.study.schema import snapshots
from shortlist.study.sql import Database
from shortlist.study.state import StudyState, apply, next_question
from shortlist.study.sync import encode

ITEMS = [f"item {number:02}" for number in range(20)]
STRENGTH = [-0.25 * (place if place < 5 else place - 1) for place in range(20)]
PENDING = 8
JUDGES = ("ann", "bob", None)


def events_of(state: StudyState, votes: int, seed: int = 1) -> Iterator[Event]:
    """What happens in the study: questions, and answers in any order."""
    rng, open_questions, told = random.Random(seed), [], 0
    while told < votes:
        event: Event
        if len(open_questions) < PENDING:
            event = next_question(state, JUDGES[told % 3], frozenset())
            open_questions.append(event)
        else:
            asked = open_questions.pop(rng.randrange(PENDING))
            chance = 1 / (1 + np.exp(STRENGTH[asked.second] - STRENGTH[asked.first]))
            event = Told(asked.question, float(rng.random() < chance))
            told += 1
        state = apply(event, state)
        yield event


def write(url: str, votes: int, stopping: str | None) -> None:
    study = shortlist.create_study(ITEMS, k=5, delta=0.01, storage=url, name="long", seed=1, stopping=stopping)
    entries, head = [], study.head.hash
    for number, event in enumerate(events_of(study._sync.start, votes)):
        entries.append(Entry(number, 1.7e9 + 0.37 * number, event))
    with study.storage.writing("long") as writer:
        writer.add(entries, head)
    study.storage.close()


def measure(url: str) -> None:
    database = Database(url)
    with database.changing() as connection:
        connection.execute(delete(snapshots))
    began = time.process_time()
    loaded = load_study("long", database)
    whole = time.process_time() - began
    began = time.process_time()
    entries = database.since("long", 0)
    reading = time.process_time() - began
    events, start = [entry.event for entry in entries], loaded._sync.start
    began = time.process_time()
    state = apply_many(start, events)
    folding = time.process_time() - began
    began = time.process_time()
    one_by_one = start
    for event in events:
        one_by_one = apply(event, one_by_one)
    slowly = time.process_time() - began
    same = encode(state, []) == encode(one_by_one, []) == encode(loaded._state, [])
    print(f"{loaded.verdict.votes:,} votes, {len(events):,} events; processor seconds:")
    print(f"load {whole:.1f}; read and check {reading:.1f}, fold {folding:.1f}; fold one by one {slowly:.1f}")
    print("the states are the same, bit for bit" if same else "THE STATES DIFFER")
    database.close()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--votes", type=int, default=300_000)
    options.add_argument("--stopping", help="a stopping rule; by default that of a new study")
    options.add_argument("--keep", type=Path, help="the SQLite file, to be made if it does not exist")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = given.keep or Path(folder) / "studies.db"
        if not file.exists():
            write(f"sqlite:///{file}", given.votes, given.stopping)
        measure(f"sqlite:///{file}")


if __name__ == "__main__":
    main()
