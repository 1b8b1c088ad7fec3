"""What the judges of a study see: instructions, cases, a card for each item with its pictures, sound and films, and the
words of the pages in their language. What is shown of items is fixed when the study is created.

Texts become HTML that cannot do harm: raw HTML is shown as text, and links lead to http, https or mail addresses only.

A picture is decoded and written again, so nothing but its pixels is kept: no place, no camera, no hidden file. SVG is
refused because it can hold scripts. Sound and films are stored as they are; their kind is read from their bytes.

`words/en.json` has every text of the pages, by page; the other files translate it. The browser says which languages its
reader prefers, and what a language lacks is shown in English. To add a language, copy en.json and translate it. A text
may have {places} for values. A text with a number `n` may have two forms, "one" and "other".
"""

import html
import io
import json
import re
import secrets
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from PIL import Image, ImageOps, UnidentifiedImageError
from pydantic import Field
from sqlalchemy import insert, select, update

from shortlist.errors import BadProblem, BadUpload
from shortlist.judges.base import Case
from shortlist.judges.cases import Contents, check_cases
from shortlist.study.schema import displays, studies, uploads
from shortlist.study.sql import Database

UPLOADS = "/uploads/"
SITE = re.compile(r"([a-z0-9]([a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:[0-9]+)?", re.I)
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
FOLDER = Path(__file__).parent / "words"
FIRST = "en"
Text = str | dict[str, str]


@dataclass(frozen=True)
class Content:
    """What an item shows. `answers` are texts by case id; on that case they are shown instead of `text`. `title` is a
    name that was corrected after the first question."""

    text: str = ""
    format: str = "text"  # or markdown
    image: str | None = None
    answers: dict[str, str] = field(default_factory=dict)
    audio: str | None = None
    video: str | None = None
    title: str | None = None


@dataclass(frozen=True)
class Card:
    """An item as a judge sees it."""

    title: str | None
    html: Annotated[str, Field(description="Safe to show: made by the service from the item's text.")]
    image: str | None
    thumbnail: Annotated[str | None, Field(description="A small version of the picture; show `image` to zoom.")] = None
    alt: Annotated[str | None, Field(description="What to say about the picture to who cannot see it.")] = None
    audio: str | None = None
    video: str | None = None


@dataclass(frozen=True)
class Display:
    instructions: str = ""
    ties: bool = True
    blind: bool = False
    cases: tuple[Case, ...] = ()
    contents: dict[str, Content] = field(default_factory=dict)
    published: bool = False  # whether everybody may see the results
    event: str | None = None  # that the study is a track of
    track: str | None = None

    def card(self, item: str, case: Case | None) -> Card:
        """The item's card. A blind study hides its name, unless there is nothing else to show."""
        content = self.contents.get(item, Content())
        text = content.text if case is None else content.answers.get(case.id, content.text)
        body = render_markdown(text) if content.format == "markdown" else html.escape(text)
        has_more = text or content.image or content.audio or content.video
        title = None if self.blind and has_more else self.title(item)
        small = f"{content.image}?size=small" if content.image and content.image.startswith(UPLOADS) else content.image
        alt = None if content.image is None else "Picture of this item" if title is None else f"Picture of {title}"
        return Card(title, body, content.image, small, alt, content.audio, content.video)

    def title(self, item: str) -> str:
        """The name of an item as it is shown."""
        return self.contents.get(item, Content()).title or item

    def texts(self, items: Iterable[str]) -> Contents:
        """What items are shown by, to be compared with what other judges of a study are shown."""
        return {item: self._texts(item) for item in items}

    def _texts(self, item: str) -> Any:
        """A text, or texts by case. An item without a text is shown by its name, and a picture is part of what is
        shown."""
        content, name = self.contents.get(item, Content()), self.title(item)
        media = "".join(f"\n{address}" for address in (content.image, content.audio, content.video) if address)
        if not content.answers:
            return (content.text or name) + media
        return {case.id: (content.answers.get(case.id, content.text) or name) + media for case in self.cases}

    @property
    def image_sites(self) -> list[str]:
        """Sites that the judges' page may load pictures from."""
        return _sites(content.image for content in self.contents.values())

    @property
    def media_sites(self) -> list[str]:
        """Sites that the judges' page may load sound and films from."""
        return _sites(address for content in self.contents.values() for address in (content.audio, content.video))

    def with_files(self, renamed: Mapping[str, str]) -> "Display":
        """With other ids of uploaded files."""

        def moved(address: str | None) -> str | None:
            new = renamed.get((address or "").removeprefix(UPLOADS))
            return address if new is None else f"{UPLOADS}{new}"

        contents = {
            item: replace(part, image=moved(part.image), audio=moved(part.audio), video=moved(part.video))
            for item, part in self.contents.items()
        }
        return replace(self, contents=contents)

    @property
    def uploaded(self) -> list[str]:
        """Ids of the uploaded files."""
        parts = (part for content in self.contents.values() for part in (content.image, content.audio, content.video))
        return [part.removeprefix(UPLOADS) for part in parts if part and part.startswith(UPLOADS)]


def _sites(addresses: Iterable[str | None]) -> list[str]:
    parts = [urlsplit(address) for address in addresses if address]
    return sorted({f"{part.scheme}://{part.netloc}" for part in parts if part.netloc})


def make_display(
    items: list[str], contents: dict[str, Content], cases: list[str], instructions: str, ties: bool, blind: bool
) -> Display:
    """Check what is to be shown. Raises BadProblem or BadCases."""
    checked = check_cases(cases) if cases else ()
    known = {case.id: case.id for case in checked} | {case.text: case.id for case in checked}
    made = {item: _check_content(item, contents.get(item, Content()), known) for item in items}
    return Display(instructions, ties, blind, checked, made)


def _check_content(item: str, content: Content, case_ids: dict[str, str]) -> Content:
    for address in (content.image, content.audio, content.video):
        if address is not None:
            check_address(address)
    unknown = sorted(set(content.answers) - set(case_ids))
    if unknown:
        raise BadProblem(f"{item!r} has a text for the case {unknown[0][:60]!r}, which is not a case of this study")
    answers = {case_ids[case]: text for case, text in content.answers.items()}
    return replace(content, answers=answers)


# --- in the database ---


def save_display(database: Database, study_id: int, display: Display) -> None:
    with database.changing() as connection:
        row = {"study": study_id, "body": json.dumps(asdict(display)), "closed": False}
        connection.execute(insert(displays), row)


def load_display(database: Database, study_id: int) -> Display:
    """A study that was not created on the web shows the names of its items."""
    with database.reading() as connection:
        body = connection.scalar(select(displays.c.body).where(displays.c.study == study_id))
    return Display() if body is None else _parse(json.loads(body))


def replace_display(database: Database, study_id: int, display: Display) -> None:
    """Show something else from now on."""
    with database.changing() as connection:
        body = json.dumps(asdict(display))
        if connection.execute(update(displays).where(displays.c.study == study_id).values(body=body)).rowcount == 0:
            connection.execute(insert(displays), {"study": study_id, "body": body, "closed": False})


def tracks_of(database: Database, event: str) -> list[str]:
    """The studies that are the tracks of an event, in the order of their creation."""
    here = displays.c.body.contains(json.dumps({"event": event})[1:-1], autoescape=True)
    query = select(studies.c.name).join(displays, displays.c.study == studies.c.id).where(here).order_by(studies.c.id)
    with database.reading() as connection:
        return list(connection.scalars(query))


def set_published(database: Database, study_id: int, published: bool) -> None:
    replace_display(database, study_id, replace(load_display(database, study_id), published=published))


def is_closed(database: Database, study_id: int) -> bool:
    with database.reading() as connection:
        return bool(connection.scalar(select(displays.c.closed).where(displays.c.study == study_id)))


def set_closed(database: Database, study_id: int, closed: bool) -> None:
    with database.changing() as connection:
        here = update(displays).where(displays.c.study == study_id).values(closed=closed)
        if connection.execute(here).rowcount == 0 and closed:
            row = {"study": study_id, "body": json.dumps(asdict(Display())), "closed": True}
            connection.execute(insert(displays), row)


def _parse(parts: dict[str, Any]) -> Display:
    cases = tuple(Case(**case) for case in parts.pop("cases"))
    contents = {item: Content(**content) for item, content in parts.pop("contents").items()}
    return Display(cases=cases, contents=contents, **parts)


# --- texts and addresses that people give ---


class _HarmlessLinks(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        return urlsplit(url.strip()).scheme.lower() in ("http", "https", "mailto")


def _link_open(self: Any, tokens: Any, place: int, options: Any, env: Any) -> str:
    tokens[place].attrSet("rel", "noopener noreferrer nofollow")
    tokens[place].attrSet("target", "_blank")
    rendered: str = self.renderToken(tokens, place, options, env)
    return rendered


_MARKDOWN = _HarmlessLinks("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
_MARKDOWN.disable("image")  # an item has one picture of its own
_MARKDOWN.add_render_rule("link_open", _link_open)


def render_markdown(text: str) -> str:
    """CommonMark with tables as HTML. Raw HTML is shown as text, and pictures are left out."""
    rendered: str = _MARKDOWN.render(text)
    return rendered


def check_address(address: str) -> str:
    """The address of a picture, sound or film: http(s), or one that was uploaded here. Raises BadProblem. Its site gets
    into the content policy of the judges' page, so it must be one site: * would be all of them."""
    if address.startswith(UPLOADS):
        return address
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise BadProblem(f"{address[:80]!r} is not the address of a file; give https://... or upload the file")
    if set(address) & set(" \"'<>;,\\\n\r\t") or not address.isascii() or (port is not None and port == 0):
        raise BadProblem(f"the address {address[:80]!r} has characters that must be percent-encoded")
    if not SITE.fullmatch(parts.netloc):
        raise BadProblem(f"{parts.netloc[:80]!r} is not the name of one site; write it out, without *")
    return address


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


@lru_cache
def languages() -> tuple[str, ...]:
    """The languages that there are words in."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.json")))


@lru_cache
def load(language: str) -> Mapping[str, Mapping[str, Text]]:
    """All texts by page and name; English where the language lacks one."""
    first = json.loads((FOLDER / f"{FIRST}.json").read_text("utf-8"))
    own = json.loads((FOLDER / f"{language}.json").read_text("utf-8"))
    return {page: {**texts, **own.get(page, {})} for page, texts in first.items()}


def choose_language(accepted: str | None) -> str:
    """The best language for an Accept-Language header such as `de-CH, de;q=0.9, en;q=0.8`."""
    wanted = []
    for place, part in enumerate((accepted or "").split(",")[:50]):
        tag, _, quality = part.strip().partition(";q=")
        try:
            weight = float(quality or 1)
        except ValueError:
            weight = 0.0
        if weight > 0 and (known := tag.strip().lower().partition("-")[0]) in languages():
            wanted.append((-weight, place, known))
    return min(wanted)[2] if wanted else FIRST


class Words:
    """The texts of one language: `words("judge.skip")`, `words("judge.answers", n=3)`."""

    def __init__(self, accepted: str | None) -> None:
        self.language = choose_language(accepted)
        self._texts = load(self.language)

    def __call__(self, name: str, **values: Any) -> str:
        page, _, rest = name.partition(".")
        found = self._texts[page][rest]
        text = found if isinstance(found, str) else found["one" if values.get("n") == 1 else "other"]
        return text.format(**values) if values else text

    def has(self, name: str) -> bool:
        page, _, rest = name.partition(".")
        return rest in self._texts.get(page, {})

    def for_script(self, *pages: str) -> str:
        """The texts of these pages as JSON, for the page's script."""
        found = {f"{page}.{name}": text for page in pages for name, text in self._texts.get(page, {}).items()}
        return json.dumps(found, ensure_ascii=False, separators=(",", ":"))
