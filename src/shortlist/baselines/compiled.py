"""Loops over single comparisons, compiled by numba on their first call and kept on disk after.

The copy on disk is renewed when the function's own file changes. So compiled code calls compiled code of the same
file only.
"""

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """The same function, in machine code."""
    try:
        made = njit(cache=True)(function)
    except RuntimeError:  # nowhere to write: compile anew in each process
        made = njit(function)
    return cast(Function, made)
