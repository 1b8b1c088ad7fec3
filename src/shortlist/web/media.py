"""Pictures, sound and films of items: checked, made safe, and stored.

A picture is decoded and written again, so nothing but its pixels is kept: no place, no camera, no hidden file. SVG is
refused because it can hold scripts. Sound and films are stored as they are; their kind is read from their bytes.
"""

import io
import re
import secrets
import time
import warnings
from functools import lru_cache
from typing import NamedTuple

from PIL import Image, ImageOps, UnidentifiedImageError
from sqlalchemy import insert, select, update

from shortlist.errors import BadUpload
from shortlist.study.schema import uploads
from shortlist.study.sql import Database

LARGEST_SIDE = 12_000  # pixels
MOST_PIXELS = 60_000_000  # of all frames together
KEPT_SIDE = 2_400  # pixels; a larger picture is made smaller
THUMBNAIL_SIDE = 640
QUALITY = 88
NOT_KNOWN = (
    "this file is not a PNG, JPEG, GIF, WebP or HEIC picture, nor an MP3, WAV, Ogg, MP4 or WebM recording; convert it "
    "first"
)
HEIC_BRANDS = (b"heic", b"heix", b"hevc", b"mif1", b"msf1", b"heim", b"heis")
FORMATS = {"PNG": "png", "JPEG": "jpeg", "GIF": "gif", "WEBP": "webp", "HEIF": "jpeg", "MPO": "jpeg"}


class Upload(NamedTuple):
    type: str
    data: bytes
    study: int | None = None


def prepare(data: bytes) -> Upload:
    """The file as it may be shown. Raises BadUpload."""
    recording = recording_type(data)
    return Upload(recording, data) if recording else _prepare_picture(data)


def recording_type(data: bytes) -> str | None:
    """audio/... or video/... by its first bytes; None if it is no sound and no film."""
    if data[4:8] == b"ftyp" and data[8:12] not in HEIC_BRANDS and data[8:12] not in (b"avif", b"avis"):
        return "audio/mp4" if data[8:11] == b"M4A" else "video/mp4"
    if data.startswith(b"\x1aE\xdf\xa3"):
        return "video/webm"
    if data.startswith(b"OggS"):
        return "video/ogg" if b"theora" in data[:200] else "audio/ogg"
    if data.startswith(b"RIFF") and data[8:12] == b"WAVE":
        return "audio/wav"
    if data.startswith(b"ID3") or re.match(rb"\xff[\xfb\xf3\xf2\xfa]", data):
        return "audio/mpeg"
    return "audio/flac" if data.startswith(b"fLaC") else None


def _prepare_picture(data: bytes) -> Upload:
    """Decoded and written again: turned as its camera said, without anything but pixels, and not too large."""
    Image.init()
    if data[4:8] == b"ftyp":
        _read_heic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=[known for known in FORMATS if known in Image.OPEN]) as picture:
                _check_size(picture)
                kind = FORMATS[str(picture.format)]
                if getattr(picture, "n_frames", 1) > 1 and kind in ("gif", "webp"):
                    return Upload(f"image/{kind}", _moving(picture, kind))
                return Upload(f"image/{kind}", _still(ImageOps.exif_transpose(picture), kind, KEPT_SIDE))
    except UnidentifiedImageError:
        raise BadUpload(NOT_KNOWN) from None
    except BadUpload:
        raise
    except Exception:  # a decoder may raise anything for a damaged file
        raise BadUpload("this picture is damaged; save it again with another program") from None


def _read_heic() -> None:
    """Pictures of phones. The library is part of the extra `web`, and loaded when the first such picture comes."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        raise BadUpload("HEIC pictures need pillow-heif: pip install 'shortlist[web]'; or send a JPEG") from None
    register_heif_opener()


def _check_size(picture: Image.Image) -> None:
    """Before anything is decoded."""
    frames = getattr(picture, "n_frames", 1) if picture.format in ("GIF", "WEBP") else 1
    if not 0 < max(picture.size) <= LARGEST_SIDE or picture.width * picture.height * frames > MOST_PIXELS:
        raise BadUpload(
            f"this picture is too large; the limit is {LARGEST_SIDE:,} pixels a side and {MOST_PIXELS // 10**6} "
            "megapixels"
        )


def _still(picture: Image.Image, kind: str, side: int) -> bytes:
    made = (
        picture.convert("RGB") if kind == "jpeg" else picture.convert("RGBA") if picture.mode == "P" else picture.copy()
    )
    made.thumbnail((side, side))
    made.info.clear()
    return _written(made, kind)


def _moving(picture: Image.Image, kind: str) -> bytes:
    frames, durations = [], []
    for number in range(getattr(picture, "n_frames", 1)):
        picture.seek(number)
        durations.append(picture.info.get("duration", 100) or 100)
        frames.append(picture.convert("RGBA"))
        frames[-1].info.clear()
    return _written(frames[0], kind, save_all=True, append_images=frames[1:], duration=durations, loop=0)


def _written(picture: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    quality = {"quality": QUALITY} if kind in ("jpeg", "webp") else {}
    picture.save(file, kind, **quality, **options)
    return file.getvalue()


# --- in the database ---


def keep(database: Database, data: bytes) -> str:
    """Store a file and return its id."""
    made = prepare(data)
    row = {"id": secrets.token_hex(12), "study": None, "type": made.type, "data": made.data, "created": time.time()}
    with database.changing() as connection:
        connection.execute(insert(uploads), row)
    return str(row["id"])


def fetch(database: Database, name: str) -> Upload | None:
    with database.reading() as connection:
        row = connection.execute(select(uploads).where(uploads.c.id == name)).first()
    return None if row is None else Upload(row.type, row.data, row.study)


@lru_cache(maxsize=500)
def thumbnail(database: Database, name: str) -> bytes:
    """A stored picture, made small enough for a card."""
    found = fetch(database, name)
    if found is None or not found.type.startswith("image/"):
        raise BadUpload("there is no such picture")
    with Image.open(io.BytesIO(found.data)) as picture:
        if max(picture.size) <= THUMBNAIL_SIDE or getattr(picture, "n_frames", 1) > 1:
            return found.data
        return _still(picture, found.type.removeprefix("image/"), THUMBNAIL_SIDE)


def check_free(database: Database, names: list[str], study: int | None = None) -> None:
    """Raise BadUpload unless all of these were uploaded and belong to no study yet, or to this one."""
    with database.reading() as connection:
        free = uploads.c.id.in_(names) & (uploads.c.study.is_(None) | (uploads.c.study == study))
        found = set(connection.scalars(select(uploads.c.id).where(free)))
    if found != set(names):
        raise BadUpload("a file was not uploaded here or belongs to another study; upload it again")


def copy_files(database: Database, names: list[str], study: int) -> dict[str, str]:
    """Copies of those of these files that belong to this study: their new ids, by the old ones."""
    with database.changing() as connection:
        rows = connection.execute(select(uploads).where(uploads.c.id.in_(names) & (uploads.c.study == study))).all()
        copies = {row.id: secrets.token_hex(12) for row in rows}
        if rows:
            made = [{**row._mapping, "id": copies[row.id], "study": None, "created": time.time()} for row in rows]
            connection.execute(insert(uploads), made)
    return copies


def claim(database: Database, names: list[str], study: int) -> None:
    """Give these files to a study: its judges may then see them."""
    with database.changing() as connection:
        connection.execute(update(uploads).where(uploads.c.id.in_(names)).values(study=study))
