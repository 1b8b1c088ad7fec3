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

from shortlist import belief, ledger
from shortlist.certificates import edges
from shortlist.certificates.closure import absorb, certified, starts
from shortlist.certificates.grid import grid_accounts, grid_level
from shortlist.facts import Facts, Questions
from shortlist.families import BradleyTerry
from shortlist.instances import Instance, Sst, Utilities, equally_spaced
from shortlist.pairs import top_k
from shortlist.rules import bridge, plan
from shortlist.simulation import simulate
from shortlist.tally import Block

SEED = 2026
NEAR_TIES = (3.0, 2.0, 1.0, 0.303, 0.3, -0.1, -0.103, -1.0, -2.0, -3.0)
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
    "evidence of an account is not kept when it falls back": [(ledger.Ledger, "_mark", lambda *_: None)],
    "bets from the belief alone": [(ledger, "PRIOR_VOTES", 1e9)],
    "bets mostly from the pair's own votes": [(ledger, "PRIOR_VOTES", 15.0)],
    "half of each account in cash": [(ledger, "LOG_CASH", math.log(0.5)), (ledger, "LOG_STAKE", math.log(0.5))],
    "hardly any cash": [(ledger, "LOG_CASH", math.log(1e-3)), (ledger, "LOG_STAKE", math.log1p(-1e-3))],
    "belief and plan refreshed at 5 % more votes": [(ledger, "REFRESH", 0.05)],
    "a fixed ridge": [(belief, "RIDGES", (1.0, 1.0))],
    "no doubt about near ties": [(plan, "DOUBT", 0.0)],
    "pairs asked in proportion to what they need": [(bridge, "POWER", 1.0)],
    "all pairs of the plan asked alike": [(bridge, "POWER", 0.0)],
}


@dataclass(frozen=True)
class Grid(edges.Edges):
    """The certificate that needs no order of votes, looked at when the votes grew by 1 %."""

    every: float = 0.01

    def check(self, evidence: Any, problem: Any, facts: Facts, out: Questions | None = None) -> Any:
        book, n = facts.book, problem.n
        if len(book.pairs):
            (first, second), weight, won = book.ends, book.table[:, ledger.WEIGHT], book.table[:, ledger.SUM]
            outcomes, counts = np.repeat([1.0, 0.0], len(first)), np.concatenate([won, weight - won])
            accounts = grid_accounts(problem, Block(np.tile(first, 2), np.tile(second, 2), outcomes, counts))
            top = top_k(book.belief.theta, book.k)
            absorbed = absorb([certified(n, accounts, grid_level(problem, problem.delta))], starts(n, top))
            if np.delete(absorbed, top, axis=0).all():
                answer = tuple(sorted(top.tolist()))
                done = replace(evidence.verdict, done=True, reason="certified", top=answer, votes=round(book.votes))
                return evidence, done
        return evidence, evidence.verdict


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
        result = simulate(INSTANCES[name][0], "bridge", runs, SEED, delta=0.01, growth=0.01, rule=rule)
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
