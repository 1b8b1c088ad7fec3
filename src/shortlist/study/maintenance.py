"""Care of a database: check its studies, copy them, back them up, rename and delete them.

A copy is one transaction, so a target that was interrupted has nothing of the study. Nothing here changes the source.
"""

import json
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, delete, func, insert, select, update

from shortlist.errors import BadProblem, BadStorage, BrokenChain, StudyExists
from shortlist.study.create import load_study
from shortlist.study.events import chain, load, origin
from shortlist.study.schema import (
    answers,
    conflicts,
    displays,
    events,
    invitations,
    judges,
    notes,
    replies,
    runs,
    shown,
    snapshots,
    sqlite_file,
    studies,
    texts,
    tokens,
    uploads,
)
from shortlist.study.sql import Database, open_database

OWNED = (
    tokens,
    conflicts,
    notes,
    invitations,
    judges,
    uploads,
    displays,
    runs,
    replies,
    texts,
    answers,
    snapshots,
    events,
)  # by a study; the first may refer to later
BEGUN = (
    "items can be added, removed and moved only before the first question. Correct names and texts of the items that "
    "are there, or create a new study, which can take over the votes"
)
COPIED = (events, answers, replies, texts, displays, uploads, invitations)
OF_JUDGES = (tokens, conflicts, notes)
PART = ".part"  # of the name of a backup that is not complete


class StudyCheck(NamedTuple):
    """What a check of one study found. `good` events are as they were written; `problem` is empty if all are."""

    name: str
    events: int
    good: int
    hash: str
    problem: str = ""


def check_study(database: Database, name: str) -> StudyCheck:
    """Check the chain of a study's events, that each can be read, and that they follow from one another."""
    spec = database.spec(name)
    with database.reading() as connection:
        study = _id_of(connection, name)
        total = connection.scalar(select(func.count()).where(events.c.study == study)) or 0
        rows = connection.execute(select(events).where(events.c.study == study).order_by(events.c.number)).all()
    good, head, problem = _good_part(name, rows, origin(spec))
    if not problem:
        try:
            load_study(name, database)
        except Exception as reason:
            problem = f"the events cannot be applied one after the other: {reason or type(reason).__name__}"
    return StudyCheck(name, total, good, head, problem)


def _good_part(name: str, rows: Sequence[Any], head: str) -> tuple[int, str, str]:
    """How many events are as they were written, the hash of the last of them, and what is wrong with the next."""
    for number, row in enumerate(rows):
        try:
            load(row.kind, row.body)
        except ValueError:
            return number, head, f"event {number:,} cannot be read"
        if (row.number, row.previous) != (number, head):
            return number, head, str(BrokenChain(name, number))
        head = chain(head, row.number, row.at, row.kind, row.body)
    return len(rows), head, ""


def copy_study(source: Database, target: Database, name: str, events_at_most: int | None = None) -> int:
    """Copy a study with its judges, answers and pictures; events and hashes stay as they are. Returns how many events
    were copied. Raises StudyExists."""
    with source.reading() as old:
        study = old.execute(select(studies).where(studies.c.name == name)).one()
        every = (*COPIED, judges, *OF_JUDGES)
        owned = {table: old.execute(_rows_of(table, study.id)).mappings().all() for table in every}
    with target.changing() as new:
        if new.scalar(select(studies.c.id).where(studies.c.name == name)) is not None:
            raise StudyExists(name)
        place = _insert(new, studies, study._mapping)
        for table in COPIED:
            kept = owned[table] if table is not events or events_at_most is None else owned[table][:events_at_most]
            if kept:
                new.execute(insert(table), [{**row, "study": place} for row in kept])
        _copy_judges(new, place, owned)
    return len(owned[events]) if events_at_most is None else events_at_most


def _rows_of(table: Table, study: int) -> Any:
    found = select(table).where(table.c.study == study)
    return found.order_by(events.c.number) if table is events else found


def _copy_judges(new: Connection, place: int, owned: Mapping[Table, Sequence[Any]]) -> None:
    numbers = {row["id"]: _insert(new, judges, {**row, "study": place}) for row in owned[judges]}
    for table in OF_JUDGES:
        rows = [{**row, "study": place, "judge": numbers.get(row["judge"])} for row in owned[table]]
        for row in rows:
            if table is not tokens:
                del row["id"]  # a number of its own in the new storage
        if rows:
            new.execute(insert(table), rows)


def _insert(new: Connection, table: Table, row: Mapping[Any, Any]) -> int:
    """Insert a row with an id of its own, and return the id."""
    made = {str(name): value for name, value in row.items() if name != "id"}
    return int(new.scalars(insert(table).returning(table.c.id), made).one())


def back_up(url: str, file: Path) -> None:
    """Copy a SQLite storage to a file while others write to it. The file appears when it is complete."""
    if not url.startswith("sqlite"):
        raise BadStorage("back up a PostgreSQL storage with its own tool: pg_dump --format=custom DATABASE")
    if file.exists():
        raise BadStorage(f"{file} exists; choose another name for the backup")
    part = file.with_name(file.name + PART)
    part.unlink(missing_ok=True)
    with closing(sqlite3.connect(sqlite_file(url))) as source, closing(sqlite3.connect(part)) as target:
        source.backup(target)
        target.execute("PRAGMA journal_mode=DELETE").close()
    os.replace(part, file)


def restore(file: Path, url: str) -> list[str]:
    """Copy all studies of a backup into a storage that has none. Returns their names."""
    if file.suffix == PART:
        raise BadStorage(f"{file} is a backup that was not completed; take another backup")
    source, target = open_database(f"sqlite:///{file}", create=False), open_database(url)
    if target.names():
        raise BadStorage(f"{shown(url)} has studies already; restore into an empty storage")
    names = source.names()
    for name in names:
        found = check_study(source, name)
        if found.problem:
            raise BadStorage(f"the backup is damaged: {found.problem}. Nothing after event {found.good:,} can be used")
    for name in names:
        copy_study(source, target, name)
    return names


def rename_study(database: Database, old: str, new: str) -> None:
    with database.changing() as connection:
        study = _id_of(connection, old)
        if connection.scalar(select(studies.c.id).where(studies.c.name == new)) is not None:
            raise StudyExists(new)
        connection.execute(update(studies).where(studies.c.id == study).values(name=new))
    database.forget(old)


def delete_study(database: Database, name: str) -> None:
    """Delete a study with everything that belongs to it. This cannot be undone."""
    with database.changing() as connection:
        study = _id_of(connection, name)
        for table in OWNED:
            connection.execute(delete(table).where(table.c.study == study))
        connection.execute(delete(studies).where(studies.c.id == study))
    database.forget(name)


def redefine_study(database: Database, name: str, spec: str) -> None:
    """Let a study begin again with other settings, if nothing was asked or imported yet. Judges, links and what judges
    see stay; the record begins again. Raises BadProblem."""
    with database.changing() as connection:
        old = _id_of(connection, name)
        connection.execute(select(studies.c.id).where(studies.c.id == old).with_for_update())
        begun = select(events.c.number).where((events.c.study == old) & events.c.kind.in_(("asked", "imported")))
        if connection.execute(begun.limit(1)).first() is not None:
            raise BadProblem(BEGUN)
        draft = {"name": f"{name} (being changed)", "spec": spec, "created": time.time()}
        new = _insert(connection, studies, draft)
        for table in OWNED:
            here = table.c.study == old
            if table in (runs, answers, snapshots, events):
                connection.execute(delete(table).where(here))
            else:
                connection.execute(update(table).where(here).values(study=new))
        gone = (conflicts.c.study == new) & conflicts.c.item.not_in(json.loads(spec)["items"])
        connection.execute(delete(conflicts).where(gone))
        connection.execute(delete(studies).where(studies.c.id == old))
        connection.execute(update(studies).where(studies.c.id == new).values(name=name))
    database.forget(name)


def _id_of(connection: Connection, name: str) -> int:
    found: int | None = connection.scalar(select(studies.c.id).where(studies.c.name == name))
    if found is None:
        raise BadStorage(f"there is no study {name!r} in this storage")
    return found
