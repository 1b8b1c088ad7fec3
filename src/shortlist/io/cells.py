"""What one cell of a vote file says: a name, a label, a number. What it cannot say is one short reason."""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from shortlist.errors import BadVotes

NESTED = (dict, list, tuple, set, np.ndarray)
T = TypeVar("T")
Reasons = dict[int, str]  # row number -> why it was not understood
EXACT = 2**53  # whole floats below it are exact


def shown(value: Any, limit: int = 60) -> str:
    """The value for a message: on one line, and never long."""
    text = repr(value[: limit + 1] if isinstance(value, str | bytes) else value)
    return text if len(text) <= limit + 2 else text[:limit] + "…"


def printable(text: str, limit: int = 60) -> str:
    """The text without what a terminal would act on, shortened."""
    return shown(text, limit).strip("'\"") if len(text) > limit or not text.isprintable() else text


def name(cell: Any) -> str | None:
    """The name in a cell, without the blanks around it; None if the cell is empty."""
    try:
        text = (cell if isinstance(cell, str) else _written(cell)).strip()
        text.encode()  # half a surrogate pair can be read from JSON, and written nowhere
    except ValueError:
        raise BadVotes(f"{shown(cell)} is not text") from None
    if "\0" in text:
        raise BadVotes(f"{shown(text)} holds a NUL character")
    return text or None


def _written(cell: Any) -> str:
    """What is no text as text: a missing cell is empty, and 5.0 is the name 5."""
    if cell is None or (isinstance(cell, float | np.floating) and math.isnan(cell)):
        return ""
    if isinstance(cell, NESTED):
        raise BadVotes(f"{shown(cell)} is no name")
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < EXACT:
        return str(int(cell))
    return cell.decode() if isinstance(cell, bytes) else str(cell)


def label(cell: Any) -> str | None:
    """Like a name, for judges and cases: lists and objects are told apart by what they hold."""
    if isinstance(cell, NESTED):
        plain = cell.tolist() if isinstance(cell, np.ndarray) else cell
        return name(json.dumps(plain, default=str, ensure_ascii=False))
    return name(cell)


def number(cell: Any) -> float:
    """The number in a cell; True is not one."""
    if isinstance(cell, bool | np.bool_ | bytes) or (isinstance(cell, str) and "_" in cell):
        raise BadVotes(f"{shown(cell)} is not a number")
    try:
        return float(cell) + 0.0  # no -0.0
    except (TypeError, ValueError, OverflowError):
        hint = "; write it with a decimal point" if isinstance(cell, str) and "," in cell else ""
        raise BadVotes(f"{shown(cell)} is not a number{hint}") from None


def each(
    cells: Sequence[Any], parse: Callable[[Any], T | None], bad: Reasons, hashable: bool = False
) -> list[T | None]:
    """Every cell parsed, each distinct one once; None where that failed, with the row's reason in `bad`."""
    keys = cells if hashable else [cell if cell.__class__ is str else (cell.__class__, repr(cell)) for cell in cells]
    values: dict[Any, T | None] = {}
    reasons: dict[Any, str] = {}
    for key, cell in dict(zip(keys, cells, strict=True)).items():
        try:
            values[key] = parse(cell)
        except BadVotes as reason:
            values[key], reasons[key] = None, str(reason)
    if reasons:
        for row, key in enumerate(keys):
            if key in reasons:
                bad.setdefault(row, reasons[key])
    return [values[key] for key in keys]
