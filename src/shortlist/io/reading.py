"""From columns of cells to votes: every row is understood, or it is known why not."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shortlist.errors import BadVotes
from shortlist.families import Family
from shortlist.io import words
from shortlist.io.cells import Reasons, each, label, name, number, shown
from shortlist.io.formats import Parts, find_parts, is_whole
from shortlist.io.report import Reading
from shortlist.io.shapes import straighten
from shortlist.io.source import BadRow, Source
from shortlist.io.table import MAX_VOTES, MAX_WEIGHT, VoteTable, make_table
from shortlist.io.verdicts import Names, floats, outcomes
from shortlist.pairs import Floats


def understand(source: Source, family: Family, columns: Mapping[str, str]) -> Reading:
    """All that a source says. Raises BadVotes only if nothing can be said of any row."""
    straight = source if is_whole(columns) else straighten(source)
    parts = find_parts(source.file, straight.names, columns)
    rows = len(source.lines) + len(source.bad)
    if not rows:
        raise BadVotes(f"{source.file} holds no votes")
    bad: Reasons = {}
    table, met = _votes(straight, parts, family, bad)
    if table.weight.sum() > MAX_VOTES:
        raise BadVotes(f"the weights of {source.file} add up to more than {MAX_VOTES:.0e} votes")
    used = {part: straight.names[place] for part, place in parts.places().items()}
    return Reading(
        file=source.file,
        kind=source.kind,
        format=parts.format,
        unit=source.unit,
        columns=used,
        columns_not_read=tuple(title for title in source.names if title not in {*used.values(), *straight.spent}),
        rows=rows,
        bad_rows=tuple(sorted({*straight.bad, *(BadRow(straight.lines[row], why) for row, why in bad.items())})),
        ties=int(np.sum(table.outcome == family.tie)),
        notes=(*words.notes(met), *_formulas(table.items)),
        table=table,
    )


def _votes(source: Source, parts: Parts, family: Family, bad: Reasons) -> tuple[VoteTable, set[str | None]]:
    """The rows that are not bad, and the words that were met."""
    ends = _items(source, parts, bad)
    outcome, met = outcomes(source, parts, family, ends, bad)
    weight = _weights(source, parts, bad)
    judge, case = (_labels(source, parts, extra, bad) for extra in ("judge", "case"))
    good = [row for row in range(len(source.lines)) if row not in bad]

    def kept(values: Sequence[Any]) -> list[Any]:
        return [values[row] for row in good]

    first, second = map(kept, ends)
    judges, cases = (None if values is None else kept(values) for values in (judge, case))
    return make_table(first, second, outcome[good], weight[good], judges, cases, kept(source.lines)), met


def _items(source: Source, parts: Parts, bad: Reasons) -> tuple[Names, Names]:
    first, second = (each(source.column(place), name, bad) for place in (parts.first, parts.second))
    for row, (one, other) in enumerate(zip(first, second, strict=True)):
        if one is None or other is None or one == other:
            bad.setdefault(row, f"{shown(one or '')} against {shown(other or '')} is no pair; name two different items")
    return first, second


def _weights(source: Source, parts: Parts, bad: Reasons) -> Floats:
    if "weight" not in parts.extras:
        return np.ones(len(source.lines))
    return floats(each(source.column(parts.extras["weight"]), _weight, bad))


def _weight(cell: Any) -> float:
    weight = number(cell)
    if not 0 <= weight <= MAX_WEIGHT:
        raise BadVotes(f"weight {weight:g} is not the number of votes that the row stands for")
    return weight


def _labels(source: Source, parts: Parts, extra: str, bad: Reasons) -> Names | None:
    return each(source.column(parts.extras[extra]), label, bad) if extra in parts.extras else None


def _formulas(items: Sequence[str]) -> list[str]:
    count = sum(item.startswith(words.FORMULA) for item in items)
    said = (
        f"{count} item names begin with = + - or @: import the file as text, or a spreadsheet takes them for formulas"
    )
    return [said] if count else []
