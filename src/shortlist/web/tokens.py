"""Who may do what. A token is `id.secret`; only a hash of the secret is kept, so the database opens no door.

kinds: owner link (once), owner session, owner key; open link (judges name themselves), judge link, judge session.
Links are opened in a browser and give a session in a cookie; owner keys and judge links also work as bearer tokens.
"""

import hashlib
import hmac
import re
import secrets
import time
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy import bindparam, insert, select, update

from shortlist.study.schema import studies
from shortlist.study.sql import Database
from shortlist.web.tables import judges, tokens

DAY = 86_400.0
NOBODY = "0" * 64


class Kind(StrEnum):
    owner_link = "owner link"
    owner_session = "owner session"
    owner_key = "owner key"
    open_link = "open link"
    judge_link = "judge link"
    judge_session = "judge session"


LIFETIME = {Kind.owner_link: 7 * DAY, Kind.owner_session: 30 * DAY, Kind.judge_session: 90 * DAY}


class Token(NamedTuple):
    """A token that was found good, and whom it stands for."""

    id: str
    kind: Kind
    study: str | None
    judge: str | None
    judge_id: int | None
    study_id: int | None


def mint(database: Database, kind: Kind, study_id: int | None = None, judge_id: int | None = None) -> str:
    """A new token. This is the only time its secret is seen."""
    name, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    now = time.time()
    row = {
        "id": name, "hash": _hash(secret), "kind": kind.value, "study": study_id, "judge": judge_id, "created": now,
        "expires": now + LIFETIME[kind] if kind in LIFETIME else None, "revoked": False,
    }  # fmt: skip
    with database.changing() as connection:
        connection.execute(insert(tokens), row)
    return f"{name}.{secret}"


def find(database: Database, text: str, kinds: tuple[Kind, ...]) -> Token | None:
    """The token, if it is good and of one of these kinds."""
    parts = re.fullmatch(r"([0-9a-f]{16})\.([\w-]{20,60})", text, re.ASCII)
    if parts is None:
        return None
    with database.reading() as connection:
        row = connection.execute(_BY_ID, {"token": parts[1]}).first()
    same = hmac.compare_digest(_hash(parts[2]), NOBODY if row is None else row.hash)
    if row is None or not same or row.revoked or row.kind not in kinds:
        return None
    if row.expires is not None and row.expires < time.time():
        return None
    return Token(row.id, Kind(row.kind), row.study_name, row.judge_name, row.judge, row.study)


def use_up(database: Database, token: Token) -> bool:
    """Spend a token that is good once; False if somebody was quicker."""
    with database.changing() as connection:
        spent = update(tokens).where((tokens.c.id == token.id) & ~tokens.c.revoked).values(revoked=True)
        return connection.execute(spent).rowcount == 1


def revoke(database: Database, kind: Kind, study_id: int, judge_id: int | None = None) -> int:
    """End the study's tokens of that kind, or all tokens of one judge; says how many."""
    here = (tokens.c.study == study_id) & ~tokens.c.revoked
    here &= tokens.c.kind == kind.value if judge_id is None else tokens.c.judge == judge_id
    with database.changing() as connection:
        return connection.execute(update(tokens).where(here).values(revoked=True)).rowcount


def end(database: Database, token_id: str) -> None:
    """Sign out."""
    with database.changing() as connection:
        connection.execute(update(tokens).where(tokens.c.id == token_id).values(revoked=True))


def has_owner(database: Database) -> bool:
    """Did anybody ever come in as the owner?"""
    with database.reading() as connection:
        here = select(tokens.c.id).where(tokens.c.kind.in_([Kind.owner_session.value, Kind.owner_key.value])).limit(1)
        return connection.execute(here).first() is not None


_BY_ID = (  # asked for at every request
    select(tokens, studies.c.name.label("study_name"), judges.c.name.label("judge_name"))
    .select_from(
        tokens.outerjoin(studies, tokens.c.study == studies.c.id).outerjoin(judges, tokens.c.judge == judges.c.id)
    )
    .where(tokens.c.id == bindparam("token"))
)


def form_token(session: str) -> str:
    """What a page must send along with a session's cookie, so that other sites cannot act in its name."""
    return hmac.new(session.encode(), b"form", hashlib.sha256).hexdigest()


def _hash(secret: str) -> str:
    """The secret has 256 random bits, so a plain hash cannot be searched."""
    return hashlib.sha256(secret.encode()).hexdigest()
