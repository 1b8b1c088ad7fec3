"""Check that arguments are numbers of the right kind. Each error is one sentence."""

import math
import operator
from typing import Any

from shortlist.errors import BadProblem


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least `least`; True is not one, numpy's integers are."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < least:
        raise BadProblem(f"{name} is {value!r}; it must be a whole number, {least} or more")
    return number


def real(name: str, value: Any) -> float:
    """A finite number; True is not one, numpy's numbers are."""
    try:
        number = math.nan if isinstance(value, bool | str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise BadProblem(f"{name} is {value!r}; it must be a finite number")
    return number


def shown(value: Any, limit: int = 60) -> str:
    """The value for an error message: on one line, and never long."""
    text = repr(value[: limit + 1] if isinstance(value, str | bytes) else value)
    return text if len(text) <= limit + 2 else text[:limit] + "…"
