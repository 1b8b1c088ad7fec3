"""Votes as people gave them: who was shown first, what came out, who said it. Read once, from a study or a file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from shortlist.families import Family
from shortlist.io.table import VoteTable
from shortlist.pairs import Floats, Ints, pair_numbers
from shortlist.study.records import Asked, Imported, Late, Skipped, TakenBack, Told
from shortlist.study.storage import Entry
from shortlist.tally import Block, Tally, tally_votes

Labels = Sequence[str | None]


@dataclass(frozen=True, eq=False)
class Ballots:
    """A row stands for `weight` votes of one outcome, seen from the item that was shown first."""

    n: int
    family: Family
    first: Ints
    second: Ints
    outcome: Floats
    weight: Floats
    judge: Ints  # a place in `judges`, -1 where nobody is named
    judges: tuple[str, ...]
    case: Ints  # a number for each case, -1 where none is named

    @cached_property
    def tally(self) -> Tally:
        return tally_votes(self.family, self.first, self.second, self.outcome, self.weight, self.n)

    @cached_property
    def votes(self) -> float:
        return float(self.weight.sum())

    @cached_property
    def lean(self) -> Floats:
        """1 if the first was preferred, -1 if the second, 0 for a tie."""
        return np.sign(self.outcome - self.family.tie)

    @cached_property
    def pair(self) -> Ints:
        return pair_numbers(self.n, self.first, self.second)

    @cached_property
    def low_first(self) -> Floats:
        """1 if the pair's lower item was shown first, else -1."""
        return np.where(self.first < self.second, 1.0, -1.0)

    def where(self, rows: Any) -> "Ballots":
        """Some of the rows."""
        return Ballots(
            self.n, self.family, self.first[rows], self.second[rows], self.outcome[rows], self.weight[rows],
            self.judge[rows], self.judges, self.case[rows],
        )  # fmt: skip


class Events(NamedTuple):
    """What happened besides votes."""

    asked: int = 0
    out: int = 0
    skipped: int = 0
    late: int = 0
    taken_back: int = 0
    imported: int = 0
    voided: tuple[str, ...] = ()
    began: float | None = None  # seconds since 1970
    ended: float | None = None


class _Row(NamedTuple):
    first: int
    second: int
    outcome: float
    judge: str | None
    case: str | None


def study_ballots(n: int, family: Family, entries: Sequence[Entry]) -> tuple[Ballots, Events]:
    """All votes that count, in the order they came in, and what else happened."""
    asked: dict[int, Asked] = {}
    rows: dict[int | tuple[int, int], _Row] = {}  # by question; imported ones by record and place
    answered = skipped = late = taken_back = imported = 0
    voided: list[str] = []
    for number, _, record in entries:
        match record:
            case Asked():
                asked[record.question] = record
            case Told(question, outcome):
                answered += 1
                there = asked[question]
                rows[question] = _Row(there.first, there.second, outcome, there.judge, there.case)
            case Skipped():
                skipped += 1
            case Late():
                late += 1
            case TakenBack(votes, judge):
                taken_back += len(votes)
                voided += [] if judge is None else [judge]
                for cast in votes:
                    if cast.question is not None:
                        rows.pop(cast.question, None)
                if judge is not None:  # with all that was imported of theirs
                    rows = {key: row for key, row in rows.items() if row.judge != judge}
            case Imported():
                imported += len(record.first)
                columns = zip(record.first, record.second, record.outcome, record.judge, strict=True)
                rows |= {(number, place): _Row(*row, None) for place, row in enumerate(columns)}
    out = len(asked) - skipped - answered
    began, ended = (entries[0].at, entries[-1].at) if entries else (None, None)
    events = Events(
        len(asked), out, skipped, late, taken_back, imported, tuple(dict.fromkeys(voided)), began, ended
    )  # fmt: skip
    return _ballots(n, family, rows.values()), events


def _ballots(n: int, family: Family, rows: Iterable[_Row]) -> Ballots:
    columns = list(zip(*rows, strict=True)) or [()] * len(_Row._fields)
    judge, judges = _numbered(columns[3])
    return Ballots(
        n, family, np.array(columns[0], np.int64), np.array(columns[1], np.int64), np.array(columns[2], np.float64),
        np.ones(len(columns[0])), judge, judges, _numbered(columns[4])[0],
    )  # fmt: skip


def table_ballots(family: Family, table: VoteTable) -> Ballots:
    """The votes of a file. A row that stands for w votes with mean y counts as y w wins and (1-y) w losses."""
    nobody: Labels = (None,) * len(table)
    judge, judges = _numbered(table.judge or nobody)
    case = _numbered(table.case or nobody)[0]
    block = Block(table.first, table.second, table.outcome, table.weight)
    if bool(np.any(table.weight != 1)):
        block = block.divided(*family.split(table.weight, table.weight * table.outcome))
        copies = len(block.first) // len(table)
        judge, case = np.tile(judge, copies), np.tile(case, copies)
    rows = Ballots(len(table.items), family, *block, judge, judges, case)
    return rows.where(block.counts > 0)


def _numbered(labels: Labels) -> tuple[Ints, tuple[str, ...]]:
    names = tuple(dict.fromkeys(label for label in labels if label is not None))
    number: dict[str | None, int] = {name: place for place, name in enumerate(names)} | {None: -1}
    return np.array([number[label] for label in labels], dtype=np.int64), names
