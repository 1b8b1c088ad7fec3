"""What judges of a study are shown: instructions, cases, and the contents of its items. Fixed when it is created."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import insert, select, update

from shortlist.errors import BadProblem
from shortlist.judges.cases import check_cases
from shortlist.judges.judge import Case
from shortlist.study.sql import Database
from shortlist.web.markup import check_image, markdown, origin, plain
from shortlist.web.tables import sheets

UPLOADS = "/uploads/"


@dataclass(frozen=True)
class Content:
    """What stands on an item's card. `answers` are its texts by case id, shown instead of `text`."""

    text: str = ""
    format: str = "text"  # or markdown
    image: str | None = None
    answers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Card:
    title: str | None
    html: str
    image: str | None


@dataclass(frozen=True)
class Sheet:
    instructions: str = ""
    ties: bool = True
    blind: bool = False
    cases: tuple[Case, ...] = ()
    contents: dict[str, Content] = field(default_factory=dict)

    def card(self, item: str, case: Case | None) -> Card:
        """An item as a judge sees it; a blind study hides names, unless there is nothing else to show."""
        content = self.contents.get(item, Content())
        text = content.text if case is None else content.answers.get(case.id, content.text)
        shown = text or content.image
        body = markdown(text) if content.format == "markdown" else plain(text)
        return Card(None if self.blind and shown else item, body, content.image)

    @property
    def image_sites(self) -> list[str]:
        """Sites that the judges' page may load pictures from."""
        sites = {origin(content.image) for content in self.contents.values() if content.image}
        return sorted(site for site in sites if site is not None)

    @property
    def uploaded(self) -> list[str]:
        images = (content.image or "" for content in self.contents.values())
        return [image.removeprefix(UPLOADS) for image in images if image.startswith(UPLOADS)]


def make_sheet(
    items: list[str], contents: dict[str, Content], cases: list[str], instructions: str, ties: bool, blind: bool
) -> Sheet:
    """Checked: whatever it holds can be shown."""
    drawn = check_cases(cases) if cases else ()
    known = {case.id: case for case in drawn} | {case.text: case for case in drawn}
    made = {}
    for item in items:
        content = contents.get(item, Content())
        if content.image is not None:
            check_image(content.image)
        strange = sorted(set(content.answers) - set(known))
        if strange:
            raise BadProblem(f"{item!r} has a text for {strange[0][:60]!r}, which is none of the cases")
        answers = {known[name].id: text for name, text in content.answers.items()}
        made[item] = Content(content.text, content.format, content.image, answers)
    return Sheet(instructions, ties, blind, drawn, made)


def save_sheet(database: Database, study_id: int, sheet: Sheet) -> None:
    with database.changing() as connection:
        row = {"study": study_id, "body": json.dumps(asdict(sheet)), "closed": False}
        connection.execute(insert(sheets), row)


def load_sheet(database: Database, study_id: int) -> Sheet:
    """A study that was created elsewhere shows its items' names."""
    with database.reading() as connection:
        body = connection.scalar(select(sheets.c.body).where(sheets.c.study == study_id))
    return Sheet() if body is None else _parse(json.loads(body))


def is_closed(database: Database, study_id: int) -> bool:
    with database.reading() as connection:
        return bool(connection.scalar(select(sheets.c.closed).where(sheets.c.study == study_id)))


def set_closed(database: Database, study_id: int, closed: bool) -> None:
    with database.changing() as connection:
        here = update(sheets).where(sheets.c.study == study_id).values(closed=closed)
        if connection.execute(here).rowcount == 0 and closed:
            row = {"study": study_id, "body": json.dumps(asdict(Sheet())), "closed": True}
            connection.execute(insert(sheets), row)


def _parse(parts: dict[str, Any]) -> Sheet:
    cases = tuple(Case(**case) for case in parts.pop("cases"))
    contents = {item: Content(**content) for item, content in parts.pop("contents").items()}
    return Sheet(cases=cases, contents=contents, **parts)
