"""Read votes from a file or a data frame: `read_votes`, and `inspect_votes` for a dry run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np

from shortlist.core.families import Family, make_family
from shortlist.core.pairs import Floats
from shortlist.core.problem import shown
from shortlist.errors import BadVotes
from shortlist.votes.cells import (
    Names,
    Reasons,
    each,
    floats,
    label,
    name,
    number,
    outcomes,
    printable,
    vocabulary,
    word_notes,
)
from shortlist.votes.files import BadRow, Source, open_source
from shortlist.votes.formats import Parts, find_parts, is_whole, one_vote_per_row, unit_columns
from shortlist.votes.table import (
    MAX_VOTES,
    MAX_WEIGHT,
    UnitReport,
    Units,
    VoteTable,
    as_labels,
    make_table,
    report_units,
)

IN_ERROR, IN_REPORT = 3, 8  # how many bad rows are listed
FORMULA = ("=", "+", "-", "@")


@dataclass(frozen=True, repr=False)
class Reading:
    """How a vote file was read: its format, its columns, its votes, and the rows that could not be read.

    `columns` maps parts of a vote to column names. `bad_rows` has every row that is not in `table`; `numbered_by` is
    what their numbers count, lines or rows. `units` says which rows share a source of chance.
    """

    file: str
    kind: str
    format: str
    numbered_by: str
    columns: dict[str, str]
    columns_not_read: tuple[str, ...]
    rows: int
    bad_rows: tuple[BadRow, ...]
    ties: int
    notes: tuple[str, ...]
    table: VoteTable
    units: UnitReport

    @property
    def judges(self) -> int | None:
        """How many judges are named; None if there is no such column."""
        return _distinct(self.table.judge)

    @property
    def cases(self) -> int | None:
        """How many cases are named; None if there is no such column."""
        return _distinct(self.table.case)

    def as_dict(self) -> dict[str, Any]:
        """Everything but the votes, in types that JSON has."""
        table = self.table
        told = {part: value for part, value in vars(self).items() if part != "table"}
        told["units"] = {**self.units._asdict(), "claim": self.units.claim}
        counts = {"votes": len(table), "items": len(table.items), "judges": self.judges, "cases": self.cases}
        bad = [row._asdict() for row in self.bad_rows]
        return {**told, **counts, "weight": float(table.weight.sum()), "item_names": table.items, "bad_rows": bad}

    def __repr__(self) -> str:
        return f"<Reading of {self.file}: {self.table!r}, {count(len(self.bad_rows), 'bad row')}>"

    def __str__(self) -> str:
        lines = [f"{self.file}: {self.kind}, read as {self.format}"]
        lines += [f"  {part:<11}{printable(title)}" for part, title in self.columns.items()]
        if self.columns_not_read:
            lines.append(f"  {'not read':<11}{', '.join(map(printable, self.columns_not_read))}")
        lines += [f"  {'unit':<11}{self.units.name}", "", f"  {self._counts()}", *self._bad()]
        lines.append(f"  Units: {self.units}. {self.units.claim}.")
        return "\n".join([*lines, *(f"  Note: {note}." for note in self.notes)])

    def _counts(self) -> str:
        weight = self.table.weight
        counted = {"item": len(self.table.items), "tie": self.ties, "judge": self.judges, "case": self.cases}
        words = [count(number, word) for word, number in counted.items() if number is not None]
        sums = "" if (weight == 1).all() else f" that count as {weight.sum():,.6g}"
        return ", ".join([count(len(self.table), "vote") + sums, *words])

    def _bad(self) -> list[str]:
        bad = self.bad_rows
        if not bad:
            return [f"  All {self.rows:,} rows were read."]
        more = [f"    and {len(bad) - IN_REPORT:,} more; --json lists them all"] if len(bad) > IN_REPORT else []
        rows = [f"    {self.numbered_by} {line}: {reason}" for line, reason in bad[:IN_REPORT]]
        return [f"  {len(bad):,} of {self.rows:,} rows could not be read:", *rows, *more]


def read_votes(
    source: Any,
    family: str | Family = "bradley-terry",
    *,
    columns: Mapping[str, str] | None = None,
    skip_bad: bool = False,
    unit: str | None = None,
) -> VoteTable:
    """Read the votes of a CSV, TSV, JSON or Parquet file, or of a pandas, polars or Arrow frame.

    Common column names are recognised (docs/guides/vote-files.md). `columns` names others, as in {"first": "colA",
    "second": "colB", "winner": "colC"}; its keys are first, second, outcome, winner, loser, weight, judge, case and id.

    unit: which rows share a source of chance and so weigh at most as one vote together: "case", "judge", a column, two
    of these joined by a comma, or "row" if every row drew its case and judge afresh. Default: the case, if the file has
    such a column, else the row.

    Raises BadVotes if a row cannot be read; skip_bad=True omits such rows and lists them in `left_out`.
    """
    reading = inspect_votes(source, family, columns=columns, unit=unit)
    if reading.bad_rows and not skip_bad:
        raise BadVotes(_complaint(reading, "skip_bad=True (--skip-bad) omits them"))
    if not len(reading.table):
        raise BadVotes(_complaint(reading, "no vote is left"))
    return replace(reading.table, left_out=reading.bad_rows)


def inspect_votes(
    source: Any,
    family: str | Family = "bradley-terry",
    *,
    columns: Mapping[str, str] | None = None,
    unit: str | None = None,
) -> Reading:
    """A dry run of `read_votes`: the format, the columns, the counts, the units, and every row that could not be
    read."""
    return _read(open_source(source), make_family(family), {} if columns is None else columns, unit)


def _complaint(reading: Reading, way_out: str) -> str:
    bad = reading.bad_rows
    first = "; ".join(f"{reading.numbered_by} {line}: {reason}" for line, reason in bad[:IN_ERROR])
    more = f"; and {len(bad) - IN_ERROR:,} more" if len(bad) > IN_ERROR else ""
    return f"{reading.file}, {first}{more}. {len(bad):,} of {reading.rows:,} rows could not be read; {way_out}"


def _read(source: Source, family: Family, columns: Mapping[str, str], unit: str | None) -> Reading:
    """Raises BadVotes only if no row can be read at all."""
    straight = source if is_whole(columns) else one_vote_per_row(source)
    parts = find_parts(source.file, straight.names, columns)
    rows = len(source.lines) + len(source.bad)
    if not rows:
        raise BadVotes(f"{source.file} contains no votes")
    bad: Reasons = {}
    units = unit_columns(source.file, straight.names, parts, unit)
    table, words = _votes(straight, parts, units, family, bad)
    if table.weight.sum() > MAX_VOTES:
        raise BadVotes(f"the weights of {source.file} add up to more than {MAX_VOTES:.0e} votes")
    used = {part: straight.names[place] for part, place in parts.places().items()}
    read = {*used.values(), *straight.spent, *(straight.names[place] for place in units[1])}
    return Reading(
        file=source.file,
        kind=source.kind,
        format=parts.format,
        numbered_by=source.numbered_by,
        columns=used,
        columns_not_read=tuple(title for title in source.names if title not in read),
        rows=rows,
        bad_rows=tuple(sorted({*straight.bad, *(BadRow(straight.lines[row], why) for row, why in bad.items())})),
        ties=int(np.sum(table.outcome == family.tie)),
        notes=(*word_notes(words), *_formulas(table.items)),
        table=table,
        units=report_units(table),
    )


def _votes(
    source: Source, parts: Parts, units: tuple[str, list[int]], family: Family, bad: Reasons
) -> tuple[VoteTable, set[str | None]]:
    """The rows that are not bad, and the words that say who won."""
    ends = _items(source, parts, bad)
    verdicts = {verdict: source.column(place) for verdict, place in parts.verdicts.items()}
    known = vocabulary(source.names[parts.first], source.names[parts.second])
    outcome, words = outcomes(verdicts, parts.first_won, known, ends, family, bad)
    weight = _weights(source, parts, bad)
    judge, case, id_ = (_labels(source, parts, extra, bad) for extra in ("judge", "case", "id"))
    unit = _units(source, units[1], bad)
    if id_ is not None:
        _repeats(source.lines, list(zip(*ends, judge or repeat(None), case or repeat(None), id_, strict=False)), bad)
    good = [row for row in range(len(source.lines)) if row not in bad]

    def kept(values: Sequence[Any] | None) -> list[Any]:
        return [values[row] for row in good] if values is not None else [None] * len(good)

    first, second = map(kept, ends)
    table = make_table(first, second, outcome[good], weight[good], kept(judge), kept(case), kept(source.lines))
    return replace(table, unit_name=units[0], unit=as_labels(kept(unit)), id=as_labels(kept(id_))), words


def _repeats(lines: Sequence[int], votes: Sequence[tuple[str | None, ...]], bad: Reasons) -> None:
    """Refuse a row with the items, the judge, the case and the id of another line: it is the same vote again, as in two
    exports of one study that were put together."""
    seen: dict[tuple[str | None, ...], int] = {}
    for row, (line, (first, second, *labels)) in enumerate(zip(lines, votes, strict=True)):
        vote = (*sorted((first or "", second or "")), *labels)
        if labels[-1] is not None and seen.setdefault(vote, line) != line:
            bad.setdefault(row, f"it is the vote of line {seen[vote]} again: {shown(labels[-1])}")


def _units(source: Source, places: Sequence[int], bad: Reasons) -> Units | None:
    """The unit of each row; rows without a label may share it, so they count as sharing it. Without a column, votes
    that one row of the file holds are a unit."""
    if places:
        labels = zip(*(each(source.column(place), label, bad) for place in places), strict=True)
        named = (tuple("" if part is None else part for part in row) for row in labels)
        return tuple(row if len(row) > 1 else row[0] for row in named)
    is_shared = len(set(source.lines)) < len(source.lines)
    return tuple(str(line) for line in source.lines) if is_shared else None


def _items(source: Source, parts: Parts, bad: Reasons) -> tuple[Names, Names]:
    first, second = (each(source.column(place), name, bad) for place in (parts.first, parts.second))
    for row, (one, other) in enumerate(zip(first, second, strict=True)):
        if one is None or other is None or one == other:
            pair = f"{shown(one or '')} against {shown(other or '')}"
            bad.setdefault(row, f"{pair} is not a pair; name two different items")
    return first, second


def _weights(source: Source, parts: Parts, bad: Reasons) -> Floats:
    if "weight" not in parts.extras:
        return np.ones(len(source.lines))
    return floats(each(source.column(parts.extras["weight"]), _weight, bad))


def _weight(cell: Any) -> float:
    weight = number(cell)
    if not 0 <= weight <= MAX_WEIGHT:
        raise BadVotes(f"weight {weight:g} is not a number of votes")
    return weight


def _labels(source: Source, parts: Parts, extra: str, bad: Reasons) -> Names | None:
    return each(source.column(parts.extras[extra]), label, bad) if extra in parts.extras else None


def _formulas(items: Sequence[str]) -> list[str]:
    count = sum(item.startswith(FORMULA) for item in items)
    said = f"{count} item names begin with = + - or @: import the file as text, or a spreadsheet reads them as formulas"
    return [said] if count else []


def count(number: int, word: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _distinct(labels: Sequence[str | None] | None) -> int | None:
    return None if labels is None else len({one for one in labels if one is not None})
