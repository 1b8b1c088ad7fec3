"""The error bound as it fell: written down now and then, so that the dashboard need not replay a study."""

from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from shortlist.errors import BadStorage
from shortlist.study.sql import Database
from shortlist.web.shelf import Opened
from shortlist.web.tables import marks

GROWTH = 1.03  # write again when the votes grew by this factor
MOST = 400  # points to draw


def mark(database: Database, opened: Opened) -> None:
    """Write down where the study stands, if it is time to."""
    verdict = opened.study.verdict
    due = verdict.votes >= max(GROWTH * opened.last_mark, opened.last_mark + 1)
    if not due and not (verdict.done and verdict.votes > opened.last_mark):
        return
    opened.last_mark = verdict.votes
    row = {"study": opened.id, "votes": verdict.votes, "error_bound": float(verdict.error_bound)}
    try:
        with database.changing() as connection:
            connection.execute(insert(marks), row)
    except BadStorage as reason:
        if not isinstance(reason.__cause__, IntegrityError):  # another worker wrote it
            raise


def past(database: Database, study: int) -> list[tuple[int, float]]:
    """Votes and the error bound then, in order."""
    query = select(marks.c.votes, marks.c.error_bound).where(marks.c.study == study).order_by(marks.c.votes)
    with database.reading() as connection:
        rows = [(row.votes, row.error_bound) for row in connection.execute(query)]
    return rows[:: 1 + len(rows) // MOST]
