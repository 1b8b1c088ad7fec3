"""What judges are shown, kept with a study: texts and cases. `shortlist serve` and `shortlist audit` show the same to
people. It is stored as the service stores what it shows (web/display.py)."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import insert, select

from shortlist.judges.base import Case
from shortlist.study.schema import displays, studies
from shortlist.study.sql import Database
from shortlist.study.study import Study


def save_texts(study: Study, contents: Mapping[str, Any] | None, cases: Sequence[Case] | None) -> None:
    """Keep what judges are shown, unless something is kept already or the study is in memory. People will not see the
    names of items that have a text."""
    database = study.storage
    if not isinstance(database, Database) or (contents is None and cases is None):
        return
    shown = {item: _content((contents or {}).get(item, "")) for item in study.items}
    body = {
        "instructions": "", "ties": True, "blind": True, "cases": [_case(case) for case in cases or ()],
        "contents": shown,
    }  # fmt: skip
    with database.changing() as connection:
        number = connection.scalar(select(studies.c.id).where(studies.c.name == study.name))
        if connection.scalar(select(displays.c.study).where(displays.c.study == number)) is None:
            connection.execute(insert(displays), {"study": number, "body": json.dumps(body), "closed": False})


def _case(case: Case) -> dict[str, str]:
    return {"id": case.id, "text": case.text, "reference": case.reference}


def _content(content: str | Mapping[str, str]) -> dict[str, Any]:
    by_case = dict(content) if isinstance(content, Mapping) else {}
    text = content if isinstance(content, str) else ""
    return {"text": text, "format": "text", "image": None, "answers": by_case}


def load_texts(study: Study) -> tuple[dict[str, Any] | None, tuple[Case, ...] | None]:
    """The texts of items, by case if they differ, and the cases that are kept with a study; None where there are
    none."""
    database, body = study.storage, None
    if isinstance(database, Database):
        with database.reading() as connection:
            found = select(displays.c.body).join(studies, studies.c.id == displays.c.study)
            body = connection.scalar(found.where(studies.c.name == study.name))
    if body is None:
        return None, None
    kept = json.loads(body)
    texts = {item: one["answers"] or one["text"] for item, one in kept["contents"].items()}
    cases = tuple(Case(**case) for case in kept["cases"])
    return (texts if any(texts.values()) else None), (cases or None)
