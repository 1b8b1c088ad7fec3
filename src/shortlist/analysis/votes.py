"""Votes as columns of numbers (who was shown first, what the outcome was, who judged), and which of them decided the
line between the top k and the rest.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from shortlist.core.families import Family
from shortlist.core.pairs import Floats, Ints, pair_numbers
from shortlist.core.tally import Block, Tally, tally_votes
from shortlist.core.units import unit_numbers
from shortlist.study.rows import Row, counted, labels_of
from shortlist.study.storage import JudgeReply
from shortlist.study.study import Study
from shortlist.votes.table import VoteTable, make_table

Labels = Sequence[str | None]
MOST_VOTES = 12  # of which a report shows the judge's words
MOST_LETTERS = 2_000  # of a text in a report


@dataclass(frozen=True, eq=False)
class Votes:
    """The votes that count. A row is `weight` votes of one outcome, seen from the item that was shown first."""

    n: int
    family: Family
    first: Ints
    second: Ints
    outcome: Floats
    weight: Floats
    judge: Ints  # an index into `judges`, -1 where no judge is named
    judges: tuple[str, ...]
    case: Ints  # a number for each case, -1 where no case is named

    @cached_property
    def tally(self) -> Tally:
        """The votes by pair."""
        return tally_votes(self.family, self.first, self.second, self.outcome, self.weight, self.n)

    @cached_property
    def total(self) -> float:
        """The number of votes."""
        return float(self.weight.sum())

    @cached_property
    def preference(self) -> Floats:
        """1 if the first item was preferred, -1 if the second, 0 for a tie."""
        return np.sign(self.outcome - self.family.tie)

    @cached_property
    def pair(self) -> Ints:
        """The number of each row's pair."""
        return pair_numbers(self.n, self.first, self.second)

    @cached_property
    def low_first(self) -> Floats:
        """1 if the pair's lower item was shown first, else -1."""
        return np.where(self.first < self.second, 1.0, -1.0)

    def select(self, rows: Any) -> "Votes":
        """Some of the rows."""
        return Votes(
            self.n, self.family, self.first[rows], self.second[rows], self.outcome[rows], self.weight[rows],
            self.judge[rows], self.judges, self.case[rows],
        )  # fmt: skip


class VoteCounts(NamedTuple):
    """How many votes and questions have each status, and when the study began and changed last."""

    counted: int = 0
    answered: int = 0  # answered, but the judge may still take it back; not counted yet
    pending: int = 0  # asked and not answered
    skipped: int = 0
    lost: int = 0  # shown and never answered; counts as a loss for both items
    late: int = 0  # answered after the question had expired; not counted
    undone: int = 0
    voided: int = 0  # votes of a voided judge
    imported: int = 0  # of the counted ones
    voided_judges: tuple[str, ...] = ()
    first_at: float | None = None  # seconds since 1970
    last_at: float | None = None


def study_votes(study: Study) -> tuple[Votes, VoteCounts]:
    """The votes of a study that count, in the order they came in, and the counts by status."""
    rows = study.rows
    votes = counted(rows)
    times = [at for row in rows for at in (row.asked_at, row.closed_at) if at is not None]
    counts = VoteCounts(
        **study.counts, imported=sum(row.question is None for row in votes),
        voided_judges=tuple(sorted(study.voided)), first_at=min(times, default=None), last_at=max(times, default=None),
    )  # fmt: skip
    return row_votes(study.problem.family, study.items, votes), counts


def row_votes(family: Family, items: Sequence[str], rows: Sequence[Row]) -> Votes:
    """Rows of a study as columns; every row must have an outcome."""
    number = {item: place for place, item in enumerate(items)}
    first, second = (np.array([number[getattr(row, side)] for row in rows], np.int64) for side in ("first", "second"))
    outcome = np.array([row.outcome for row in rows], np.float64)
    judge, judges = _numbered([row.judge for row in rows])
    case = _numbered([row.case for row in rows])[0]
    return Votes(len(items), family, first, second, outcome, np.ones(len(rows)), judge, judges, case)


def table_votes(family: Family, table: VoteTable) -> Votes:
    """The votes of a file. A row of w votes with mean y counts as y w wins and (1-y) w losses."""
    nobody: Labels = (None,) * len(table)
    judge, judges = _numbered(table.judge or nobody)
    case = _numbered(table.case or nobody)[0]
    block = Block(table.first, table.second, table.outcome, table.weight)
    if bool(np.any(table.weight != 1)):
        block = block.divided(*family.split(table.weight, table.weight * table.outcome))
        copies = len(block.first) // len(table)
        judge, case = np.tile(judge, copies), np.tile(case, copies)
    rows = Votes(len(table.items), family, *block[:4], judge, judges, case)
    return rows.select(block.counts > 0)


def _numbered(labels: Labels) -> tuple[Ints, tuple[str, ...]]:
    names = tuple(dict.fromkeys(label for label in labels if label is not None))
    number: dict[str | None, int] = {name: place for place, name in enumerate(names)} | {None: -1}
    return np.array([number[label] for label in labels], dtype=np.int64), names


def as_table(rows: Sequence[Row]) -> VoteTable:
    """Votes of a study as they are written to a file, with ids by which the study knows them again."""
    first, second, outcome = ([getattr(row, part) for row in rows] for part in ("first", "second", "outcome"))
    judges, cases, units = ([getattr(row, part) for row in rows] for part in ("judge", "case", "unit"))
    table = make_table(first, second, outcome, judge=judges, case=cases)
    ids = tuple(row.id for row in rows)
    return replace(table, unit=_unit_names(units, ids) if any(units) else None, unit_name="unit", id=ids)


def _unit_names(units: Sequence[str | tuple[str, ...] | None], ids: Sequence[str]) -> tuple[str, ...]:
    """A label per row. In a file rows without one would share a unit, so they get their ids. A unit with several labels
    is called by those of its first row."""
    names: dict[int, str] = {}
    for number, unit, id in zip(unit_numbers(units).tolist(), units, ids, strict=True):
        names.setdefault(number, id if unit is None else ", ".join(labels_of(unit)))
    return tuple(names[number] for number in unit_numbers(units).tolist())


class DecisiveAnswer(NamedTuple):
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


def decisive_words(study: Study) -> tuple[DecisiveAnswer, ...]:
    """What judges said in the weightiest of these votes; empty if it was not kept."""
    replies = study.storage.replies(study.name)
    kept = [reply for reply in replies if reply.text is not None and reply.outcome is not None]
    if not kept:
        return ()
    texts, groups = study.storage.texts(study.name), replies_to(decisive_votes(study), kept)
    return tuple(_words(reply, texts) for group in list(groups)[:MOST_VOTES] for reply in group)


def replies_to(rows: Iterable[Row], replies: Sequence[JudgeReply]) -> Iterator[list[JudgeReply]]:
    """What judges said in these votes, in their order, and each once. A vote that was answered from the stored answers
    has the reply of the question that was asked first."""
    asked: dict[int, list[JudgeReply]] = {}
    stored: dict[tuple[str | None, ...], list[JudgeReply]] = {}
    for reply in replies:
        asked.setdefault(reply.question, []).append(reply)
        if reply.outcome is not None:
            stored.setdefault((reply.judge, reply.case, reply.first, reply.second), []).append(reply)
    seen = set[JudgeReply]()
    for row in rows:
        found = [] if row.question is None else asked.get(row.question, [])
        found = found or stored.get((row.judge, row.case, row.first, row.second), [])
        if found and found[0] not in seen:
            seen |= {*found}
            yield found


def _words(reply: JudgeReply, texts: dict[str, str]) -> DecisiveAnswer:
    assert reply.outcome is not None
    case, first, second = (
        None if digest is None else _cut(texts.get(digest, "(not kept)"))
        for digest in (reply.case_text, reply.first_text, reply.second_text)
    )
    return DecisiveAnswer(
        reply.question, reply.member or reply.judge, reply.case, case, reply.first, reply.second, first or "",
        second or "", reply.outcome, _cut(reply.text or ""), _cut(reply.reasoning or ""),
    )  # fmt: skip


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]} … ({len(text) - MOST_LETTERS:,} more letters)"


def _weight(row: Row) -> float:
    assert row.outcome is not None
    return math.log1p(min(abs(row.bet or 0.0), 0.999) * abs(2.0 * min(max(row.outcome, 0.0), 1.0) - 1.0))
