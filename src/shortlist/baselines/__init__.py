"""Published procedures with a stopping of their own: what `simulate` measures the ways of asking against.

One file per procedure: a function of win probabilities, k, delta, a Generator and a budget. They are loaded on first
use, because compiled loops bring numba along.
"""

from importlib import import_module

import numpy as np

from shortlist.baselines.found import Found
from shortlist.baselines.limits import check_delta
from shortlist.pairs import Floats

BASELINES = {  # name: module and function
    "seeks": ("seeks", "seeks"),
    "seeks-v2": ("seeks", "seeks_v2"),
    "active-ranking": ("active_ranking", "active_ranking"),
    "active-ranking-tight": ("active_ranking", "active_ranking_tight"),
    "borda-lucb": ("borda_lucb", "borda_lucb"),
}


def run_baseline(
    name: str, wins: Floats, k: int, delta: float, rng: np.random.Generator, max_votes: int | None = None
) -> Found:
    """Play the procedure of that name where i beats j with probability wins[i, j]."""
    check_delta(name, len(wins), delta)
    module, function = BASELINES[name]
    found: Found = getattr(import_module(f"shortlist.baselines.{module}"), function)(wins, k, delta, rng, max_votes)
    return found
