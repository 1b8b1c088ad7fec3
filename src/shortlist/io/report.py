"""What was understood of a file of votes, for people and for machines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shortlist.io.cells import printable
from shortlist.io.source import BadRow
from shortlist.io.table import VoteTable

SHOWN = 8  # bad rows in the text


@dataclass(frozen=True, repr=False)
class Reading:
    """What was understood of a file: its format, its columns by the part they play, its votes; and what was not.

    `bad_rows` has every row that is missing in `table`. `unit` is what their numbers count, lines or rows.
    """

    file: str
    kind: str
    format: str
    unit: str
    columns: dict[str, str]
    columns_not_read: tuple[str, ...]
    rows: int
    bad_rows: tuple[BadRow, ...]
    ties: int
    notes: tuple[str, ...]
    table: VoteTable

    @property
    def judges(self) -> int | None:
        """How many judges are named; None if there is no such column."""
        return _distinct(self.table.judge)

    @property
    def cases(self) -> int | None:
        """How many cases are named; None if there is no such column."""
        return _distinct(self.table.case)

    def as_dict(self) -> dict[str, Any]:
        """All but the votes themselves, in types that JSON has."""
        table = self.table
        told = {part: value for part, value in vars(self).items() if part != "table"}
        counts = {"votes": len(table), "items": len(table.items), "judges": self.judges, "cases": self.cases}
        bad = [row._asdict() for row in self.bad_rows]
        return {**told, **counts, "weight": float(table.weight.sum()), "item_names": table.items, "bad_rows": bad}

    def __repr__(self) -> str:
        return f"<Reading of {self.file}: {self.table!r}, {_count(len(self.bad_rows), 'bad row')}>"

    def __str__(self) -> str:
        lines = [f"{self.file}: {self.kind}, read as {self.format}"]
        lines += [f"  {part:<11}{printable(title)}" for part, title in self.columns.items()]
        if self.columns_not_read:
            lines.append(f"  {'not read':<11}{', '.join(map(printable, self.columns_not_read))}")
        lines += ["", f"  {self._counts()}", *self._bad()]
        return "\n".join([*lines, *(f"  Note: {note}." for note in self.notes)])

    def _counts(self) -> str:
        weight = self.table.weight
        counted = {"item": len(self.table.items), "tie": self.ties, "judge": self.judges, "case": self.cases}
        words = [_count(number, word) for word, number in counted.items() if number is not None]
        sums = "" if (weight == 1).all() else f" that stand for {weight.sum():,.6g}"
        return ", ".join([_count(len(self.table), "vote") + sums, *words])

    def _bad(self) -> list[str]:
        bad = self.bad_rows
        if not bad:
            return [f"  All {self.rows:,} rows were understood."]
        more = [f"    and {len(bad) - SHOWN:,} more; --json lists them all"] if len(bad) > SHOWN else []
        rows = [f"    {self.unit} {line}: {reason}" for line, reason in bad[:SHOWN]]
        return [f"  {len(bad):,} of {self.rows:,} rows were not understood:", *rows, *more]


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _distinct(labels: Sequence[str | None] | None) -> int | None:
    return None if labels is None else len({one for one in labels if one is not None})
