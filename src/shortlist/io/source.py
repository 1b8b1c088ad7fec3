"""What every kind of vote file is turned into before anything is understood: named columns of cells."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple


class BadRow(NamedTuple):
    """A row that was not understood: the line it starts on (the row's number where there are no lines), and why."""

    line: int
    reason: str


@dataclass(frozen=True)
class Source:
    """Columns are fetched by number, and only those that are needed: names may occur twice, columns may be huge."""

    file: str
    kind: str
    unit: str  # what `lines` counts: lines of a text, or rows
    names: tuple[str, ...]
    lines: Sequence[int]
    column: Callable[[int], Sequence[Any]]
    bad: tuple[BadRow, ...] = ()
    spent: tuple[str, ...] = ()  # columns that others were made of

    def picked(
        self, rows: Sequence[int], added: Mapping[str, Sequence[Any]], made_of: Sequence[int], bad: Sequence[BadRow]
    ) -> "Source":
        """These rows, in this order and perhaps more than once, with columns that were made of others."""
        new = list(added.values())

        def column(number: int) -> Sequence[Any]:
            if number >= len(self.names):
                return new[number - len(self.names)]
            cells = self.column(number)
            return [cells[row] for row in rows]

        names, lines = (*self.names, *added), [self.lines[row] for row in rows]
        spent = tuple(self.names[number] for number in made_of)
        return replace(self, names=names, lines=lines, column=column, bad=(*self.bad, *bad), spent=spent)
