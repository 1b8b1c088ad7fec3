"""Care of a database: check its studies, copy them, back them up, rename and delete them.

A copy is one transaction, so a target that was interrupted has nothing of the study. Nothing here changes the source.
"""

import json
import logging
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from sqlalchemy import URL, Connection, Table, delete, func, insert, select, update
from sqlalchemy.exc import DatabaseError

from shortlist.errors import BadProblem, BadStorage, BrokenChain, StorageUnavailable, StudyExists, StudyReplaced
from shortlist.study.create import load_study
from shortlist.study.events import Head, chain, load, origin
from shortlist.study.schema import (
    VERSION,
    answers,
    check_file,
    conflicts,
    connect,
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
from shortlist.study.sql import Database, add_study, lock_study, open_database

log = logging.getLogger("shortlist")
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


def check_study(database: Database, name: str, head: Head | None = None) -> StudyCheck:
    """Check the chain of a study's events, that each can be read, and that they follow from one another. With an
    earlier `head`, which may have only the first digits of its hash: also that the study goes on from there."""
    first = origin(database.spec(name))
    with database.reading() as connection:
        study = _id_of(connection, name)
        rows, unreadable = _rows_until_damage(connection, study)
        counted = _count(connection, study)
    total = len(rows) + bool(unreadable) if counted is None else counted
    good, hashes, problem = _good_part(rows, first)
    if not problem and unreadable:
        problem = f"event {good:,} cannot be read: {unreadable}"
    if not problem and total > len(rows):
        problem = f"event {good:,} is missing, and there are events without a number"
    if not problem:
        good, problem = _apply_all(database, name, good)
    if not problem and head is not None and not (good >= head.events and hashes[head.events].startswith(head.hash)):
        problem = f"it does not go on from the head {head.events}:{head.hash}; events were removed or changed since"
    return StudyCheck(name, total, good, hashes[good], problem)


def _count(connection: Connection, study: int) -> int | None:
    try:
        return connection.scalar(select(func.count()).where(events.c.study == study))
    except DatabaseError:
        return None


def _rows_until_damage(connection: Connection, study: int) -> tuple[list[Any], str]:
    """The events of a study until a part of the file cannot be read, and why it cannot."""
    rows = list[Any]()
    try:
        here = (events.c.study == study) & (events.c.number >= 0)
        for row in connection.execute(select(events).where(here).order_by(events.c.number)):
            rows.append(row)
    except DatabaseError as reason:
        return rows, str(reason.orig)
    return rows, ""


def _good_part(rows: Sequence[Any], head: str) -> tuple[int, list[str], str]:
    """How many events are as they were written, the hashes before each of them and after the last, and what is wrong
    with the next."""
    hashes = [head]
    for number, row in enumerate(rows):
        if row.number != number:
            known = number > 0 and row.number == number - 1
            said = f"event {row.number:,} is there twice" if known else f"event {number:,} is missing"
            return number, hashes, said
        if row.previous != hashes[-1]:
            if number == 0:
                return 0, hashes, "the settings of the study or event 0 were changed"
            wanted = rows[number + 1].previous if number + 1 < len(rows) else None
            if wanted is not None and wanted == _hash_of(row, hashes[-1]):  # only what it says of the one before
                return number, hashes, f"event {number:,} was changed"
            return number - 1, hashes[:-1], f"event {number - 1:,} was changed"
        if not (found := _hash_of(row)):
            return number, hashes, f"event {number:,} cannot be read"
        hashes.append(found)
    return len(rows), hashes, ""


def _hash_of(row: Any, previous: str | None = None) -> str:
    """The hash of an event as it is stored, or after another one; empty if it cannot be read."""
    try:
        load(row.kind, row.body)
        return chain(row.previous if previous is None else previous, row.number, row.at, row.kind, row.body)
    except (ValueError, TypeError, AttributeError):
        return ""


class _FromEvents:
    """A database whose snapshots are not read, so that every event is applied."""

    keeps_snapshots = False

    def __init__(self, database: Database) -> None:
        self._database = database

    def snapshot(self, name: str) -> None:
        return None

    def __getattr__(self, part: str) -> Any:
        return getattr(self._database, part)


def _apply_all(database: Database, name: str, events: int) -> tuple[int, str]:
    """How many events can be applied, and what is wrong with the next. The snapshot may know of more."""
    storage: Any = _FromEvents(database)
    try:
        load_study(name, storage)
        load_study(name, database)
    except BrokenChain as reason:
        return reason.number, reason.why
    except StorageUnavailable:
        raise
    except Exception as reason:
        return 0, f"the events cannot be applied one after the other: {reason or type(reason).__name__}"
    return events, ""


def check_tables(database: Database) -> str:
    """What is wrong with the file of a SQLite storage as a whole; empty if nothing is. PostgreSQL looks after that."""
    with database.reading() as connection:
        if connection.dialect.name != "sqlite":
            return ""
        try:
            found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
        except DatabaseError as reason:
            found = str(reason.orig)
        if found != "ok":
            return f"the file is damaged: {' '.join(str(found).split())}"
        strays = {row[0] for row in connection.exec_driver_sql("PRAGMA foreign_key_check")}
        return f"there are rows of no study in {', '.join(sorted(strays))}" if strays else ""


def copy_study(source: Database, target: Database, name: str, events_at_most: int | None = None, new: str = "") -> int:
    """Copy a study with its judges, answers and pictures; events and hashes stay as they are. Returns how many events
    were copied. `new` is its name in the target. Raises StudyExists."""
    with target.changing() as connection:
        return _copy(source, target.url, connection, name, events_at_most, new or name)


def copy_studies(source: Database, target: Database, names: Sequence[str]) -> dict[str, int]:
    """Copy studies, all of them or none. Returns how many events each has."""
    with target.changing() as connection:
        return {name: _copy(source, target.url, connection, name, None, name) for name in names}


def _copy(source: Database, place: str, target: Connection, name: str, events_at_most: int | None, new: str) -> int:
    if target.scalar(select(studies.c.id).where(studies.c.name == new)) is not None:
        raise StudyExists(new)
    with source.at_one_moment() as old:
        study = old.execute(select(studies).where(studies.c.id == _id_of(old, name))).one()
        every = (*COPIED, judges, *OF_JUDGES)
        owned = {table: _owned_rows(old, table, study.id, events_at_most) for table in every}
    for table in (tokens, uploads):
        ids = [row["id"] for row in owned[table]]
        if ids and target.scalar(select(table.c.id).where(table.c.id.in_(ids)).limit(1)) is not None:
            raise BadStorage(
                f"{place} has links or pictures of {name!r} already, from an earlier copy under another name; delete "
                "that one first, or choose another storage"
            )
    number = add_study(target, {"name": new, "spec": study.spec, "created": study.created})
    for table in COPIED:
        if owned[table]:
            target.execute(insert(table), [{**row, "study": number} for row in owned[table]])
    _copy_judges(target, number, owned)
    return len(owned[events])


def _owned_rows(old: Connection, table: Table, study: int, events_at_most: int | None) -> Sequence[Any]:
    """The rows of a study in a table; of the events only so many. If a file is damaged, what can be read of it."""
    found = select(table).where(table.c.study == study)
    if table is events:
        found = found.order_by(events.c.number)
    if table is events and events_at_most is not None:
        found = found.where(events.c.number >= 0).limit(events_at_most)
    if events_at_most is None:
        return old.execute(found).mappings().all()
    rows = list[Any]()
    try:
        for row in old.execute(found).mappings():
            rows.append(row)
    except DatabaseError as reason:
        log.warning("%s cannot be read to its end, so some of it is missing: %s", table.name, reason.orig)
    return rows


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
    if url.startswith("postgresql"):
        raise BadStorage("back up a PostgreSQL storage with its own tool: pg_dump --format=custom DATABASE")
    check_file(url)
    connect(url).dispose()  # raises what is wrong with the URL
    if file.exists():
        raise BadStorage(f"{file} exists; choose another name for the backup")
    part = file.with_name(file.name + PART)
    try:
        for old in (part, part.with_name(part.name + "-journal")):
            old.unlink(missing_ok=True)
        _copy_pages(sqlite_file(url), part, shown(url))
        os.replace(part, file)
    except (OSError, sqlite3.Error) as reason:
        raise BadStorage(f"the backup {file} cannot be written: {reason}") from reason


def _copy_pages(file: Path, part: Path, place: str) -> None:
    with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=rw", uri=True)) as source:
        try:
            has_studies = source.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (VERSION,)).fetchone()
        except sqlite3.Error as reason:
            raise BadStorage(f"the storage {place} cannot be read: {reason}") from reason
        if not has_studies:
            raise BadStorage(f"{place} has no studies; there is nothing to back up")
        with closing(sqlite3.connect(part)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode=DELETE").close()
            found = target.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise BadStorage(f"{place} is damaged, so no backup was made: {' '.join(found.split())}")


def _read_only(file: Path) -> str:
    """The URL of a SQLite file that is only read."""
    query = {"mode": "ro", "uri": "true"}
    return URL.create("sqlite", database=f"file:{quote(str(file.absolute()))}", query=query).render_as_string()


def restore(file: Path, url: str) -> list[str]:
    """Copy all studies of a backup into a storage that has none, all of them or none. Returns their names."""
    if file.suffix == PART:
        raise BadStorage(f"{file} is a backup that was not completed; take another backup")
    source = open_database(_read_only(file), create=False)
    if problem := check_tables(source):
        raise BadStorage(f"the backup {file} is damaged or was not completed: {problem}. Restore another one")
    target, names = open_database(url), source.names()
    if target.names():
        raise BadStorage(f"{shown(url)} has studies already; restore into an empty storage")
    for name in names:
        found = check_study(source, name)
        if found.problem:
            raise BadStorage(f"the backup is damaged: {found.problem}. Nothing after event {found.good:,} can be used")
    copy_studies(source, target, names)
    return names


def rename_study(database: Database, old: str, new: str) -> None:
    with database.changing() as connection:
        study = _locked(database, connection, old)
        if connection.scalar(select(studies.c.id).where(studies.c.name == new)) is not None:
            raise StudyExists(new)
        connection.execute(update(studies).where(studies.c.id == study).values(name=new))
    database.forget(old)


def delete_study(database: Database, name: str) -> None:
    """Delete a study with everything that belongs to it. This cannot be undone."""
    with database.changing() as connection:
        study = _locked(database, connection, name)
        for table in OWNED:
            connection.execute(delete(table).where(table.c.study == study))
        connection.execute(delete(studies).where(studies.c.id == study))
    database.forget(name)
    database.overwrite_deleted()


def _locked(database: Database, connection: Connection, name: str) -> int:
    """The number of a study, with its lock held: nobody adds an event meanwhile."""
    study = _id_of(connection, name)
    if lock_study(connection, study, database.url) is None:
        raise StudyReplaced(name)
    return study


def redefine_study(database: Database, name: str, spec: str) -> None:
    """Let a study begin again with other settings, if nothing was asked or imported yet. Judges, links and what judges
    see stay; the record begins again. Raises BadProblem."""
    with database.changing() as connection:
        old = _locked(database, connection, name)
        begun = select(events.c.number).where((events.c.study == old) & events.c.kind.in_(("asked", "imported")))
        if connection.execute(begun.limit(1)).first() is not None:
            raise BadProblem(BEGUN)
        draft = {"name": f"{name} (being changed)", "spec": spec, "created": time.time()}
        new = add_study(connection, draft)
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
