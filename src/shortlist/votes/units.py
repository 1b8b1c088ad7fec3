"""Which rows of a vote file are one unit, and what the file can then prove."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shortlist.core.pairs import components
from shortlist.core.units import find_units
from shortlist.votes.table import Labels, VoteTable

ROW = "row"
CLAIMS = {
    "case": "A proof then holds for cases like these, judged by these judges",
    "judge": "A proof then holds for judges like these, on these cases",
    "case,judge": "A proof then holds for other cases and other judges like these",
    ROW: "A proof then holds if every row drew its case and its judge afresh",
}
OTHER = "A proof then holds for other values of {} like these, with everything else as it is here"


class UnitReport(NamedTuple):
    """The units of a file. `unused` rows never count: their unit has an earlier row on the same pair."""

    name: str
    units: int
    rows: int
    regular: bool
    unused: int

    @property
    def claim(self) -> str:
        """What the file would prove."""
        return CLAIMS.get(self.name) or OTHER.format(self.name)

    def __str__(self) -> str:
        if self.units == self.rows:
            return f"each of the {self.rows:,} votes is a unit of its own"
        if self.regular:
            return f"{self.units:,} units with the same pairs each; the rows of a unit share the weight of one vote"
        return (
            f"{self.units:,} units that do not all have the same pairs equally often; of a unit only the first pair "
            f"against each item counts, so at least {self.unused:,} rows count for nothing"
        )


def report_units(table: VoteTable) -> UnitReport:
    """The units of a table of votes."""
    if table.unit is None:
        return UnitReport(table.unit_name, len(table), len(table), True, 0)
    _, units = find_units(len(table.items), table.first, table.second, table.unit)
    unused = 0 if units.regular else int(np.count_nonzero(units.share == 0))
    return UnitReport(table.unit_name, units.size, len(table), units.regular, unused)


def joined_labels(columns: Sequence[Sequence[str | None]]) -> Labels:
    """One label per row: rows that share a label in any of the columns, directly or through other rows, are one unit.

    In each column, rows without a label may share it, so they count as sharing it.
    """
    if len(columns) == 1:
        return tuple("" if label is None else label for label in columns[0])
    numbers: dict[tuple[int, str | None], int] = {}
    nodes = [
        np.array([numbers.setdefault((place, label), len(numbers)) for label in column], dtype=np.int64)
        for place, column in enumerate(columns)
    ]
    links = np.concatenate([nodes[0]] * (len(nodes) - 1)), np.concatenate(nodes[1:])
    _, groups = components(len(numbers), *links)
    return tuple(str(group) for group in groups[nodes[0]].tolist())
