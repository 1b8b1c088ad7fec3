"""What the baselines share: how a run ends, its budget, and loops compiled by numba (extra `bench`)."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast

from shortlist.errors import NotInstalled

try:
    from numba import njit
except ImportError:
    raise NotInstalled("a baseline", "numba", "bench") from None

ENDLESS = 2**63 - 1  # compiled loops count in 64 bits
Function = TypeVar("Function", bound=Callable[..., object])


class Result(NamedTuple):
    """The result of a run. `certified` is False when the budget ran out; `top` is then the best answer so far."""

    top: tuple[int, ...]
    comparisons: int
    certified: bool


def budget(max_votes: int | None) -> int:
    """The budget as a number; None means practically unlimited."""
    return ENDLESS if max_votes is None else min(max_votes, ENDLESS)


def compiled(function: Function) -> Function:
    """The same function in machine code, compiled on its first call and cached on disk.

    The copy on disk is renewed when the function's own file changes, so compiled code calls only compiled code of the
    same file.
    """
    try:
        made = njit(cache=True)(function)
    except RuntimeError:  # no folder to write to: compile again in each process
        made = njit(function)
    return cast(Function, made)
