"""The judges of a study: names and pseudonyms, who may come by the open link, conflicts of interest, notes, and what
can be exported and erased.

Votes are stored under a pseudonym from the start, such as "judge #7", because events are chained by hashes and can
never be changed. The name, the e-mail address and everything a judge writes are in tables beside the events, so they
can be erased without touching a vote.
"""

import hmac
import re
import time
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from shortlist.errors import BadJudge, BadStorage
from shortlist.study.schema import conflicts, invitations, judges, notes, tokens
from shortlist.study.sql import Database

PSEUDONYM = "judge #{}"
IS_PSEUDONYM = re.compile(r"judge #\d+", re.IGNORECASE)
ACTIVE, WAITING, REFUSED = "active", "waiting", "refused"
TRIES = 20  # at a free number, if several judges come at the same moment
LETTERS = str.maketrans("0134578|!$@авекмнорстухіјѕ", "oleastblisaabekmhopctyxijs")  # that look alike


class Judge(NamedTuple):
    """A judge with a link or a session. `key` is the name that their votes are stored under."""

    id: int
    name: str
    key: str
    email: str | None
    state: str
    is_open: bool  # came by the open link
    created: float
    active: bool = True  # has a link or a session that is valid


class Invitation(NamedTuple):
    """How judges may come by the open link; None is no limit."""

    code: str | None = None
    max_judges: int | None = None
    max_votes: int | None = None  # of each judge
    approve: bool = False  # the owner lets each judge in


# --- who they are ---


def add_judge(database: Database, study_id: int, name: str, email: str | None = None) -> Judge:
    """Add a judge. Raises BadJudge if the name is taken."""
    return _added(database, study_id, lambda connection: _insert(connection, study_id, name, email, ACTIVE, False))


def join_openly(database: Database, study_id: int, name: str) -> Judge:
    """Add a judge who comes by the open link. Raises BadJudge if the name is taken or no more judges may come."""

    def insert_one(connection: Connection) -> Judge:
        here = invitations.c.study == study_id
        asked = connection.execute(select(invitations).where(here).with_for_update()).first()
        limit = None if asked is None else asked.max_judges
        came = judges.c.is_open & (judges.c.study == study_id) & (judges.c.state != REFUSED)
        if limit is not None and (connection.scalar(select(func.count()).where(came)) or 0) >= limit:
            raise BadJudge(f"all {limit} places of this link are taken; ask the organiser for a link of your own")
        state = WAITING if asked is not None and asked.approve else ACTIVE
        return _insert(connection, study_id, name, None, state, True)

    return _added(database, study_id, insert_one)


def _added(database: Database, study_id: int, insert_one: Any) -> Judge:
    for _ in range(TRIES):
        try:
            with database.changing() as connection:
                made: Judge = insert_one(connection)
                return made
        except BadStorage as reason:  # another judge took the number, or the name
            if not isinstance(reason.__cause__, IntegrityError):
                raise
    raise BadStorage("too many judges come at the same moment; try again")


def _insert(
    connection: Connection, study_id: int, name: str, email: str | None, state: str, is_open: bool
) -> Judge:  # fmt: skip
    check_name(name)
    here = judges.c.study == study_id
    if connection.scalar(select(judges.c.id).where(here & (judges.c.name == name))) is not None:
        raise BadJudge(name_taken(name))
    key = PSEUDONYM.format(1 + (connection.scalar(select(func.count()).where(here)) or 0))
    row = {
        "study": study_id, "name": name, "created": time.time(), "key": key, "email": email, "state": state,
        "is_open": is_open,
    }  # fmt: skip
    made = int(connection.execute(insert(judges).values(**row).returning(judges.c.id)).scalar_one())
    return Judge(made, name, key, email, state, is_open, float(str(row["created"])))


def copy_judges(database: Database, older: int, study_id: int) -> None:
    """Give a new study the judges of an older one, with their pseudonyms. They need new links."""
    with database.changing() as connection:
        rows = connection.execute(select(judges).where(judges.c.study == older).order_by(judges.c.id)).mappings().all()
        copies = [{**row, "study": study_id} for row in rows]
        for copy in copies:
            del copy["id"]
        if copies:
            connection.execute(insert(judges), copies)


def check_name(name: str) -> None:
    """Raise BadJudge for a name that looks like a pseudonym of another judge."""
    if IS_PSEUDONYM.fullmatch(name):
        raise BadJudge(f"{name!r} is how votes of a judge without a name are shown; choose another name")


def name_taken(name: str) -> str:
    return f"there is already a judge called {name!r}; choose another name"


def find_judge(database: Database, study_id: int, name: str) -> Judge | None:
    """The judge with this name."""
    with database.reading() as connection:
        row = connection.execute(
            select(judges).where((judges.c.study == study_id) & (judges.c.name == name))
        ).first()  # fmt: skip
    return None if row is None else _judge(row)


def list_judges(database: Database, study_id: int) -> list[Judge]:
    """All judges of the study, in the order they were added."""
    valid = ~tokens.c.revoked & (tokens.c.expires.is_(None) | (tokens.c.expires > time.time()))
    n_tokens = select(func.count(tokens.c.id)).where((tokens.c.judge == judges.c.id) & valid).scalar_subquery()
    query = select(judges, n_tokens.label("n_tokens")).where(judges.c.study == study_id).order_by(judges.c.id)
    with database.reading() as connection:
        return [_judge(row)._replace(active=row.n_tokens > 0) for row in connection.execute(query)]


def _judge(row: Row[Any]) -> Judge:
    return Judge(row.id, row.name, row.key, row.email, row.state, row.is_open, row.created)


def names_by_key(database: Database, study_id: int) -> dict[str, str]:
    """The names of judges by the pseudonyms that their votes are stored under."""
    query = select(judges.c.key, judges.c.name).where(judges.c.study == study_id)
    with database.reading() as connection:
        return {row.key: row.name for row in connection.execute(query)}


def with_names(text: str, names: dict[str, str]) -> str:
    """A sentence of the study with the judges' names instead of their pseudonyms."""
    return re.sub(r"judge #\d+", lambda found: names.get(found[0], found[0]), text)


def set_state(database: Database, ids: Sequence[int], state: str) -> None:
    """Let judges in, or turn them away."""
    with database.changing() as connection:
        connection.execute(update(judges).where(judges.c.id.in_(ids)).values(state=state))


# --- the open link ---


def invitation(database: Database, study_id: int) -> Invitation:
    with database.reading() as connection:
        row = connection.execute(select(invitations).where(invitations.c.study == study_id)).first()
    return Invitation() if row is None else Invitation(row.code, row.max_judges, row.max_votes, row.approve)


def save_invitation(database: Database, study_id: int, given: Invitation) -> None:
    with database.changing() as connection:
        connection.execute(delete(invitations).where(invitations.c.study == study_id))
        connection.execute(insert(invitations), {"study": study_id, **given._asdict()})


def is_code(given: str | None, code: str | None) -> bool:
    """Whether somebody typed the code; capitals and spaces do not matter."""
    plain = ["".join((text or "").casefold().split()).encode() for text in (given, code)]
    return code is None or hmac.compare_digest(*plain)


# --- conflicts of interest ---


def conflicts_of(database: Database, judge: int) -> frozenset[str]:
    """The items that a judge must not be shown."""
    with database.reading() as connection:
        return frozenset(connection.scalars(select(conflicts.c.item).where(conflicts.c.judge == judge)))


def list_conflicts(database: Database, study_id: int) -> list[tuple[int, str, bool]]:
    """Judge, item, and whether the judge declared it."""
    query = select(conflicts).where(conflicts.c.study == study_id).order_by(conflicts.c.id)
    with database.reading() as connection:
        return [(row.judge, row.item, row.declared) for row in connection.execute(query)]


def set_conflicts(database: Database, study_id: int, pairs: Iterable[tuple[int, str]]) -> None:
    """Replace the conflicts that the owner set; those that judges declared stay."""
    with database.changing() as connection:
        here = conflicts.c.study == study_id
        connection.execute(delete(conflicts).where(here & ~conflicts.c.declared))
        rows = [{"study": study_id, "judge": judge, "item": item, "declared": False} for judge, item in pairs]
        if rows:
            connection.execute(insert(conflicts), rows)


def declare(database: Database, study_id: int, judge: int, items: Iterable[str]) -> None:
    """A judge says that they have an interest in these items."""
    with database.changing() as connection:
        known = set(connection.scalars(select(conflicts.c.item).where(conflicts.c.judge == judge)))
        rows = [{"study": study_id, "judge": judge, "item": item, "declared": True} for item in set(items) - known]
        if rows:
            connection.execute(insert(conflicts), rows)


# --- notes ---


def save_note(database: Database, study_id: int, judge: int, question: int, text: str) -> None:
    """What a judge wrote about a question; the last one stays."""
    with database.changing() as connection:
        here = (notes.c.study == study_id) & (notes.c.question == question) & (notes.c.judge == judge)
        connection.execute(delete(notes).where(here))
        row = {"study": study_id, "judge": judge, "question": question, "text": text, "created": time.time()}
        connection.execute(insert(notes), row)


def notes_of(database: Database, study_id: int, judge: int | None = None) -> dict[int, str]:
    """Notes by question, of one judge or of all."""
    query = select(notes.c.question, notes.c.text).where(notes.c.study == study_id).order_by(notes.c.id)
    if judge is not None:
        query = query.where(notes.c.judge == judge)
    with database.reading() as connection:
        return {row.question: row.text for row in connection.execute(query)}


# --- personal data ---


def erase(database: Database, judge: Judge) -> str:
    """Erase a judge's name, address and notes, and end their links. Votes stay under the pseudonym that is returned."""
    with database.changing() as connection:
        here = judges.c.id == judge.id
        connection.execute(update(judges).where(here).values(name=judge.key, email=None))
        connection.execute(delete(notes).where(notes.c.judge == judge.id))
        connection.execute(update(tokens).where(tokens.c.judge == judge.id).values(revoked=True))
    database.overwrite_deleted()
    return judge.key


# --- names that look alike ---


def plain_name(name: str) -> str:
    """The name without what is easy to overlook: accents, capitals, spaces, signs, letters of other alphabets that look
    the same, and numbers at the end."""
    bare = unicodedata.normalize("NFKD", name).casefold()
    bare = "".join(letter for letter in bare if not unicodedata.combining(letter))
    bare = re.sub(r"[\W_]+", "", bare)
    return re.sub(r"\d+$", "", bare).translate(LETTERS) or bare


def look_alikes(names: Iterable[str]) -> list[list[str]]:
    """Groups of names that look alike: equal when plain, or different in one letter of at least five."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[plain_name(name)].append(name)
    found: list[list[str]] = []
    seen: dict[str, int] = {}
    for plain in sorted(groups):
        near = next((seen[other] for other in _near(plain) if other in seen), None)
        if near is None:
            near = len(found)
            found.append([])
        found[near] += groups[plain]
        for other in _near(plain):
            seen.setdefault(other, near)
    return [sorted(group) for group in found if len(group) > 1]


def _near(plain: str) -> list[str]:
    """Patterns that two names share exactly if one letter differs, or one has a letter more."""
    if len(plain) < 5:
        return [plain]
    holes = [f"{plain[:place]}*{plain[place + 1 :]}" for place in range(len(plain))]
    more = [f"{plain[:place]}*{plain[place:]}" for place in range(len(plain) + 1)]
    return [plain, *holes, *more]
