"""The judges of a study: a name, which is what their votes are stored under, and the links that let them in."""

import time
from typing import NamedTuple

from sqlalchemy import func, insert, select
from sqlalchemy.exc import IntegrityError

from shortlist.errors import BadJudge, BadStorage
from shortlist.study.schema import studies
from shortlist.study.sql import Database
from shortlist.web.tables import judges, tokens
from shortlist.web.tokens import Kind


class Person(NamedTuple):
    id: int
    name: str
    active: bool  # has a link or a session that is good


def study_id(database: Database, name: str) -> int | None:
    with database.reading() as connection:
        found: int | None = connection.scalar(select(studies.c.id).where(studies.c.name == name))
    return found


def newest_studies(database: Database, most: int) -> list[str]:
    with database.reading() as connection:
        return list(connection.scalars(select(studies.c.name).order_by(studies.c.id.desc()).limit(most)))


def add_judge(database: Database, study: int, name: str) -> int:
    """A new judge's id; a name belongs to one judge for ever, so that no vote is taken for another's."""
    row = {"study": study, "name": name, "created": time.time()}
    try:
        with database.changing() as connection:
            return int(connection.execute(insert(judges).values(**row).returning(judges.c.id)).scalar_one())
    except BadStorage as reason:
        if not isinstance(reason.__cause__, IntegrityError):
            raise
        raise BadJudge(f"there is a judge called {name!r} already; choose another name") from None


def find_judge(database: Database, study: int, name: str) -> int | None:
    with database.reading() as connection:
        here = (judges.c.study == study) & (judges.c.name == name)
        found: int | None = connection.scalar(select(judges.c.id).where(here))
    return found


def all_judges(database: Database, study: int) -> list[Person]:
    good = ~tokens.c.revoked & (tokens.c.expires.is_(None) | (tokens.c.expires > time.time()))
    doors = func.count(tokens.c.id).label("doors")
    query = (
        select(judges.c.id, judges.c.name, doors)
        .select_from(judges.outerjoin(tokens, (tokens.c.judge == judges.c.id) & good))
        .where(judges.c.study == study)
        .group_by(judges.c.id, judges.c.name)
        .order_by(judges.c.id)
    )
    with database.reading() as connection:
        return [Person(row.id, row.name, row.doors > 0) for row in connection.execute(query)]


def has_open_link(database: Database, study: int) -> bool:
    here = (tokens.c.study == study) & (tokens.c.kind == Kind.open_link.value) & ~tokens.c.revoked
    with database.reading() as connection:
        return connection.execute(select(tokens.c.id).where(here).limit(1)).first() is not None
