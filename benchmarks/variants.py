"""What each choice inside the bridge is worth: the same studies with one choice changed at a time.

    python benchmarks/variants.py [--scale 0.25]

prints the table of docs/results.md. Seeds are fresh, not those the constants were chosen on.
"""

import argparse
import math
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from shortlist.core import betting, ridge
from shortlist.core.evidence import Evidence
from shortlist.core.families import BradleyTerry
from shortlist.core.pairs import top_k
from shortlist.core.sampling import plan
from shortlist.core.stopping import edges
from shortlist.core.stopping.chains import absorb, each_alone, grid_accounts, grid_level, starts
from shortlist.core.tally import Block
from shortlist.simulation.run import simulate
from shortlist.simulation.worlds import NEAR_TIES, Instance, Sst, Utilities, equally_spaced

SEED = 2026
INSTANCES: dict[str, tuple[Instance, int]] = {
    "n = 20": (equally_spaced(20, 5, 0.25, BradleyTerry()), 40),
    "n = 50": (equally_spaced(50, 5, 0.25, BradleyTerry()), 20),
    "near ties": (Utilities(NEAR_TIES, 5), 80),
    "sst, median": (Sst(20, 5), 40),
}
GRID = "a fixed grid of bets, each account by itself"
Change = tuple[Any, str, Any]
VARIANTS: dict[str, list[Change]] = {
    "as it is": [],
    GRID: [],
    "evidence of an account is not kept when it falls back": [(betting.Ledger, "_mark", lambda ledger, *_: ledger)],
    "bets from the belief alone": [(betting, "PRIOR_VOTES", 1e9)],
    "bets mostly from the pair's own votes": [(betting, "PRIOR_VOTES", 15.0)],
    "half of each account in cash": [(betting, "LOG_CASH", math.log(0.5)), (betting, "LOG_STAKE", math.log(0.5))],
    "hardly any cash": [(betting, "LOG_CASH", math.log(1e-3)), (betting, "LOG_STAKE", math.log1p(-1e-3))],
    "belief and plan refreshed at 5 % more votes": [(betting, "REFRESH", 0.05)],
    "a fixed ridge": [(ridge, "RIDGES", (1.0, 1.0))],
    "no doubt about near ties": [(plan, "DOUBT", 0.0)],
    "pairs asked in proportion to what they need": [(plan, "POWER", 1.0)],
    "all pairs of the plan asked alike": [(plan, "POWER", 0.0)],
}


@dataclass(frozen=True)
class Grid(edges.Edges):
    """The certificate that needs no order of votes, looked at when the votes grew by 1 %."""

    every: float = 0.01

    def check(self, memory: Any, problem: Any, evidence: Evidence, pending: Block | None = None) -> Any:
        ledger, n = evidence.kept_ledger, problem.n
        if len(ledger.pairs):
            (first, second), weight, won = ledger.ends, ledger.table[:, betting.WEIGHT], ledger.table[:, betting.SUM]
            outcomes, counts = np.repeat([1.0, 0.0], len(first)), np.concatenate([won, weight - won])
            accounts = grid_accounts(problem, Block(np.tile(first, 2), np.tile(second, 2), outcomes, counts))
            top = top_k(ledger.belief.theta, ledger.k)
            absorbed = absorb([each_alone(n, accounts, grid_level(problem, problem.delta))], starts(n, top))
            if np.delete(absorbed, top, axis=0).all():
                answer = tuple(sorted(top.tolist()))
                done = replace(memory.verdict, done=True, reason="certified", top=answer, votes=round(ledger.votes))
                return memory, done
        return memory, memory.verdict


@contextmanager
def changed(changes: list[Change]) -> Iterator[None]:
    before = [(place, name, getattr(place, name)) for place, name, _ in changes]
    for place, name, value in changes:
        setattr(place, name, value)
    yield
    for place, name, value in before:
        setattr(place, name, value)


def play(variant: str, name: str, runs: int) -> np.ndarray:
    """The comparisons of every run, by one process."""
    changes = VARIANTS[variant]
    rule = Grid() if variant == GRID else None
    with changed(changes):
        result = simulate(INSTANCES[name][0], "bridge", runs, SEED, delta=0.01, growth=0.01, stopping=rule)
    assert result.correct == runs, f"{variant}, {name}: {result.correct} of {runs} right"
    return result.comparisons


def show(name: str, counts: np.ndarray) -> str:
    if "median" in name:
        return f"{np.median(counts):,.0f}"
    return f"{counts.mean():,.0f} ± {counts.std(ddof=1) / np.sqrt(len(counts)):,.0f}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scale", type=float, default=1.0, help="share of the runs to play")
    scale = options.parse_args().scale
    runs = {name: max(2, round(scale * full)) for name, (_, full) in INSTANCES.items()}
    cells = [(variant, name) for variant in VARIANTS for name in INSTANCES]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(play, variant, name, runs[name]) for variant, name in cells]
        found = {cell: future.result() for cell, future in zip(track(cells), waiting, strict=True)}
    out = Console(width=200)
    out.print("| choice |", " | ".join(f"{name} ({runs[name]} runs)" for name in INSTANCES), "|")
    out.print("|---|" + "---|" * len(INSTANCES))
    for variant in VARIANTS:
        out.print(f"| {variant} |", " | ".join(show(name, found[variant, name]) for name in INSTANCES), "|")


if __name__ == "__main__":
    main()
