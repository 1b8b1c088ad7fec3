"""Compare methods on the worlds that all of them met: comparisons divided by those of one method, cell by cell.

    python -m experiments run against-n
    python benchmarks/same_worlds.py experiments/results/against-n.jsonl [--over oracle-tracking]

Reads the log of a sweep and prints the numbers about random worlds in docs/guides/reproduce.md.
"""

import argparse
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from experiments.sweep import LOWER_BOUND
from experiments.tables import open_log


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("log", type=Path)
    options.add_argument("--over", default="oracle-tracking", help="divide by the comparisons of this method")
    chosen = options.parse_args()
    if not chosen.log.exists():
        options.error(f"{chosen.log} does not exist; run the sweep first")
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
