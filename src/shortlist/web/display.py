"""What the judges of a study see: instructions, cases, and a card for each item. Fixed when the study is created.

Texts become HTML that cannot do harm: raw HTML is shown as text, and links lead to http, https or mail addresses only.
"""

import html
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from pydantic import Field
from sqlalchemy import insert, select, update

from shortlist.errors import BadProblem
from shortlist.judges.base import Case
from shortlist.judges.cases import Contents, check_cases
from shortlist.study.schema import displays
from shortlist.study.sql import Database

UPLOADS = "/uploads/"
SITE = re.compile(r"([a-z0-9]([a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:[0-9]+)?", re.I)


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
