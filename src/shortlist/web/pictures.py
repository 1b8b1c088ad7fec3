"""Uploaded pictures. Their type is read from their bytes, never from what the sender says."""

import secrets
import struct
import time
from typing import NamedTuple

from sqlalchemy import insert, select, update

from shortlist.errors import BadUpload
from shortlist.study.schema import uploads
from shortlist.study.sql import Database

LARGEST_SIDE = 12_000  # pixels


class Picture(NamedTuple):
    type: str
    data: bytes
    study: int | None


def picture_type(data: bytes) -> str:
    """image/png, jpeg, gif or webp; raises BadUpload for anything else. SVG is refused because it can hold scripts."""
    kind, size = _kind(data)
    if kind is None:
        raise BadUpload("this file is not a PNG, JPEG, GIF or WebP picture; convert it first")
    if size is not None and not 0 < max(size) <= LARGEST_SIDE:
        raise BadUpload(f"this picture is too large; the limit is {LARGEST_SIDE:,} pixels a side")
    return f"image/{kind}"


def _kind(data: bytes) -> tuple[str | None, tuple[int, int] | None]:
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR" and len(data) > 33:
        return "png", struct.unpack(">II", data[16:24])
    if data.startswith((b"GIF87a", b"GIF89a")) and len(data) > 13:
        return "gif", struct.unpack("<HH", data[6:10])
    if data.startswith(b"\xff\xd8\xff") and len(data) > 20:
        return "jpeg", None
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP" and len(data) > 20:
        return "webp", None
    return None, None


def keep(database: Database, data: bytes) -> str:
    """Store a picture and return its id."""
    row = {"id": secrets.token_hex(12), "study": None, "type": picture_type(data), "data": data, "created": time.time()}
    with database.changing() as connection:
        connection.execute(insert(uploads), row)
    return str(row["id"])


def fetch(database: Database, name: str) -> Picture | None:
    with database.reading() as connection:
        row = connection.execute(
            select(uploads.c.type, uploads.c.data, uploads.c.study).where(uploads.c.id == name)
        ).first()
    return None if row is None else Picture(row.type, row.data, row.study)


def check_free(database: Database, names: list[str]) -> None:
    """Raise BadUpload unless all of these were uploaded and belong to no study yet."""
    with database.reading() as connection:
        free = uploads.c.id.in_(names) & uploads.c.study.is_(None)
        found = set(connection.scalars(select(uploads.c.id).where(free)))
    if found != set(names):
        raise BadUpload("a picture was not uploaded here or belongs to another study; upload it again")


def claim(database: Database, names: list[str], study_id: int) -> None:
    """Give these pictures to a study: its judges may then see them."""
    with database.changing() as connection:
        connection.execute(update(uploads).where(uploads.c.id.in_(names)).values(study=study_id))
