"""Time the report of a large study: `python benchmarks/report.py --items 200 --votes 100000`.

Prints seconds of one core for each part, and the size of the page. The votes are imported.
"""

import argparse
import time

import numpy as np

import shortlist
from shortlist.analysis.analysis import PARTS, analyse_study
from shortlist.report.page import make_report

SPREAD, JUDGES = 2.0, 50


def make(n: int, votes: int) -> shortlist.Study:
    """Utilities from -2 to 2, pairs at random."""
    rng, theta = np.random.default_rng(1), np.linspace(SPREAD, -SPREAD, n)
    first = rng.integers(0, n, votes)
    second = (first + rng.integers(1, n, votes)) % n
    outcome = (rng.random(votes) < 1 / (1 + np.exp(theta[second] - theta[first]))).astype(float)
    study = shortlist.create_study([f"item {i}" for i in range(n)], max(1, n // 10), 1e-6)
    names = ([f"item {i}" for i in side.tolist()] for side in (first, second))
    study.import_votes(*names, outcome.tolist(), [f"judge {i % JUDGES}" for i in range(votes)])
    return study


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--votes", type=int, default=100_000)
    given = parser.parse_args()
    study = make(given.items, given.votes)
    began = last = time.process_time()
    analysis = analyse_study(study)
    for part in ("votes", *PARTS, "page"):
        text = make_report(analysis) if part == "page" else ""
        getattr(analysis, part, None)
        now = time.process_time()
        print(f"{part:<14}{now - last:6.2f} s")
        last = now
    print(f"{'all':<14}{last - began:6.2f} s, {len(text) / 1000:,.0f} kB")


if __name__ == "__main__":
    main()
