"""Methods on the worlds that all of them met: comparisons over those of one method, cell by cell.

    shortlist experiment run against-n
    python benchmarks/same_worlds.py experiments/results/against-n.jsonl [--over oracle-tracking]

reads the log that playing a sweep leaves, and prints what docs/reproduce.md says of random worlds.
"""

import argparse
from collections import defaultdict
from pathlib import Path

from shortlist.experiments.results import open_log
from shortlist.experiments.sweep import LOWER_BOUND


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("log", type=Path)
    options.add_argument("--over", default="oracle-tracking", help="the method that the others are divided by")
    chosen = options.parse_args()
    if not chosen.log.exists():
        options.error(f"there is no {chosen.log}; play the sweep first")
    cells: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    with open_log(chosen.log) as log:
        for (cell, run), record in log.records.items():
            world, _, method = cell.rpartition("/")
            cells[world][method][run] = record["result"]["comparisons"]
    for world, methods in cells.items():
        methods.pop(LOWER_BOUND, None)
        if chosen.over not in methods:
            continue
        met = set(methods[chosen.over])
        sums = {method: sum(runs[run] for run in met) for method, runs in methods.items() if met <= set(runs)}
        ratios = ", ".join(f"{method} {total / sums[chosen.over]:.3g}" for method, total in sums.items())
        print(f"{world}, {len(met)} worlds: {ratios}")


if __name__ == "__main__":
    main()
