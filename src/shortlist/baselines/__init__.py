"""Published procedures with a stopping rule of their own: what `simulate` compares the sampling rules with.

Each procedure is a function of win probabilities, k, delta, a Generator and a budget. Their loops are compiled by
numba, which comes with the extra `bench`; so they are loaded when the first one is played.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple, TypeVar, cast

import numpy as np

from shortlist.core.pairs import Floats
from shortlist.errors import BadProblem, NotInstalled

BASELINES = {  # name: module and function
    "seeks": ("seeks", "seeks"),
    "seeks-v2": ("seeks", "seeks_v2"),
    "active-ranking": ("borda", "active_ranking"),
    "active-ranking-tight": ("borda", "active_ranking_tight"),
    "borda-lucb": ("borda", "borda_lucb"),
}
ENDLESS = 2**63 - 1  # compiled loops count in 64 bits
MAX_DELTA = 0.5  # of SEEKS
MAX_SHARE = 0.1  # of delta per item, for Borda scores; from about 0.23 on, the radius after one vote is not a number
Function = TypeVar("Function", bound=Callable[..., object])


class Result(NamedTuple):
    """The result of a run. `certified` is False when the budget ran out; `top` is then the best answer so far."""

    top: tuple[int, ...]
    comparisons: int
    certified: bool


def check_baseline(name: str, n: int, delta: float) -> None:
    """Raise BadProblem unless the baseline is proved for this error, and NotInstalled if it cannot be played."""
    if name.startswith("seeks"):
        if not delta < MAX_DELTA:
            raise BadProblem(f"delta is {delta}; the guarantee of SEEKS needs a delta below {MAX_DELTA}")
    elif not delta / n <= MAX_SHARE:
        raise BadProblem(f"delta is {delta}; for {n} items this method needs {MAX_SHARE * n:g} or less")
    if find_spec("numba") is None:
        raise NotInstalled(f"the baseline {name}", "numba", "bench")


def run_baseline(
    name: str, wins: Floats, k: int, delta: float, rng: np.random.Generator, max_votes: int | None = None
) -> Result:
    """Play the procedure of that name where i beats j with probability wins[i, j]."""
    check_baseline(name, len(wins), delta)
    module, function = BASELINES[name]
    result: Result = getattr(import_module(f"shortlist.baselines.{module}"), function)(wins, k, delta, rng, max_votes)
    return result


def budget(max_votes: int | None) -> int:
    """The budget as a number; None means practically unlimited."""
    return ENDLESS if max_votes is None else min(max_votes, ENDLESS)


def compiled(function: Function) -> Function:
    """The same function in machine code, compiled on its first call and cached on disk.

    The copy on disk is renewed when the function's own file changes, so compiled code calls only compiled code of the
    same file.
    """
    try:
        from numba import njit  # only when a baseline is played
    except ImportError:
        raise NotInstalled("a baseline", "numba", "bench") from None
    try:
        made = njit(cache=True)(function)
    except RuntimeError:  # no folder to write to: compile again in each process
        made = njit(function)
    return cast(Function, made)
