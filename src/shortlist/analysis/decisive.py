"""Which votes decided the line between the top k and the rest, and what their judges said."""

import math
from typing import NamedTuple

from shortlist.study.rows import Row, counted
from shortlist.study.storage import JudgeReply
from shortlist.study.study import Study

MOST_VOTES = 12  # of which a report shows the judge's words
MOST_LETTERS = 2_000  # of a text in a report


class Words(NamedTuple):
    """One answer of a judge, and what it was shown. Long texts are cut off."""

    question: int
    judge: str
    case: str | None
    case_text: str | None
    first: str
    second: str
    first_text: str
    second_text: str
    outcome: float  # as seen from the first item, which was shown first
    text: str
    reasoning: str


def decisive_votes(study: Study) -> list[Row]:
    """The counted votes between an item inside and one outside, on the pairs that have one of the two items next to the
    line by rating, the weightiest first. The weight is what the bet on the vote gained or lost."""
    top, ratings = set(study.verdict.top), study.utilities
    inside = min(top, key=lambda item: ratings[item], default=None)
    outside = max((item for item in study.items if item not in top), key=lambda item: ratings[item], default=None)
    rows = [
        row
        for row in counted(study.rows)
        if (row.first in top) != (row.second in top) and {inside, outside} & {row.first, row.second} and row.bet
    ]
    return sorted(rows, key=_weight, reverse=True)


def decisive_words(study: Study) -> tuple[Words, ...]:
    """What judges said in the weightiest of these votes; empty if it was not kept."""
    kept: dict[int, list[JudgeReply]] = {}
    for reply in study.storage.replies(study.name):
        if reply.text is not None and reply.outcome is not None:
            kept.setdefault(reply.question, []).append(reply)
    if not kept:
        return ()
    texts = study.storage.texts(study.name)
    rows = [row.question for row in decisive_votes(study) if row.question in kept][:MOST_VOTES]
    return tuple(_words(reply, texts) for number in rows if number is not None for reply in kept[number])


def _words(reply: JudgeReply, texts: dict[str, str]) -> Words:
    assert reply.outcome is not None
    case, first, second = (
        None if digest is None else _cut(texts.get(digest, "(not kept)"))
        for digest in (reply.case_text, reply.first_text, reply.second_text)
    )
    return Words(
        reply.question, reply.member or reply.judge, reply.case, case, reply.first, reply.second, first or "",
        second or "", reply.outcome, _cut(reply.text or ""), _cut(reply.reasoning or ""),
    )  # fmt: skip


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]} … ({len(text) - MOST_LETTERS:,} more letters)"


def _weight(row: Row) -> float:
    assert row.outcome is not None
    return math.log1p(min(abs(row.bet or 0.0), 0.999) * abs(2.0 * min(max(row.outcome, 0.0), 1.0) - 1.0))
