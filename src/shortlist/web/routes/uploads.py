"""Pictures of items: the owner uploads them, the study's judges see them."""

import secrets
import struct
import time
from typing import Annotated, NamedTuple

from fastapi import APIRouter, HTTPException, Path, Request, Response, UploadFile
from sqlalchemy import insert, select, update

from shortlist.errors import BadUpload
from shortlist.study.schema import uploads
from shortlist.study.sql import Database
from shortlist.web.auth import JUDGE_COOKIE, OWNER_COOKIE, Kind, Owner, ServiceDep, session
from shortlist.web.schemas import Upload, problems
from shortlist.web.service import Service

router = APIRouter(tags=["pictures"])
PictureId = Annotated[str, Path(pattern="^[0-9a-f]{24}$")]
LARGEST_SIDE = 12_000  # pixels
NOTHING_ALLOWED = "default-src 'none'; sandbox"


@router.post("/api/uploads", status_code=201, responses=problems(401, 403))
def upload(service: ServiceDep, token: Owner, file: UploadFile) -> Upload:
    """Upload a PNG, JPEG, GIF or WebP picture. Its type is read from its bytes."""
    limit = service.settings.upload_bytes
    data = file.file.read(limit + 1)
    if len(data) > limit:
        raise HTTPException(413, f"this picture is too large; the limit is {limit:,} bytes")
    return Upload(image=f"/uploads/{keep(service.database, data)}")


@router.get("/uploads/{id}", include_in_schema=False)
def picture(request: Request, service: ServiceDep, id: PictureId) -> Response:
    """For the owner, and for judges of the study that the picture belongs to."""
    found = fetch(service.database, id)
    if found is None or not (_is_owner(request, service) or _is_judge(request, service, found.study)):
        raise HTTPException(404, "there is no such picture, or you may not see it")
    headers = {"content-security-policy": NOTHING_ALLOWED, "cache-control": "private, max-age=86400, immutable"}
    return Response(found.data, media_type=found.type, headers=headers)


def _is_owner(request: Request, service: Service) -> bool:
    return session(request, service, OWNER_COOKIE, Kind.owner_session) is not None


def _is_judge(request: Request, service: Service, study: int | None) -> bool:
    names = [name for name in request.cookies if name.startswith(JUDGE_COOKIE)]
    found = (session(request, service, name, Kind.judge_session) for name in names)
    return study is not None and any(token is not None and token.study_id == study for token in found)


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
