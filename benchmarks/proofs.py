"""How many votes does a proof take? Sampling and stopping rules compared on the same worlds and coins, to a file.

    python benchmarks/proofs.py --worlds n20 near-ties --rules bridge+edges learn-then-prove+cuts --csv proofs.csv
    python benchmarks/proofs.py --worlds votes:FILE:3 --runs 20 --csv proofs.csv
    python benchmarks/proofs.py --show --csv proofs.csv

One line per run; the same command again goes on where it was interrupted. The m-th vote on a pair of a run is the same
whoever asks for it, so differences are paired. The constants were chosen on the first six worlds; the others are held
back. `votes:FILE:K` draws from recorded votes with replacement. `--change betting.CLEAR=0` changes a constant, and is
named in the file.
"""

import argparse
import csv
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from shortlist import read_votes
from shortlist.core import betting, loop
from shortlist.core.families import BradleyTerry
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import pair_ends, pair_items, pair_number
from shortlist.core.problem import Problem
from shortlist.core.sampling import SAMPLING_RULES, plan
from shortlist.core.stopping import STOPPING_RULES
from shortlist.core.tally import Block, Vote
from shortlist.simulation.worlds import (
    NEAR_TIES,
    Instance,
    Matrix,
    RandomUtilities,
    Recorded,
    Sst,
    Utilities,
    World,
    equally_spaced,
)

FAMILY, MOST = BradleyTerry(), 100_000
MODULES = {"betting": betting, "plan": plan}


def thurstone(n: int, k: int, gap: float) -> Matrix:
    """Equally spaced items whose differences are normal: another link than the model's."""
    from scipy.special import ndtr

    theta = gap * np.arange(n)[::-1]
    return Matrix(tuple(map(tuple, ndtr(np.subtract.outer(theta, theta)).tolist())), k, "thurstone")


TUNED: dict[str, tuple[Instance, float]] = {
    "n20": (equally_spaced(20, 5, 0.25, FAMILY), 0.01),
    "near-ties": (Utilities(NEAR_TIES, 5), 0.01),
    "n50": (equally_spaced(50, 5, 0.25, FAMILY), 0.01),
    "n40": (equally_spaced(40, 10, 0.25, FAMILY), 0.01),
    "n100": (equally_spaced(100, 5, 0.1, FAMILY), 0.01),
    "sst": (Sst(20, 5), 0.01),
}
HELD_BACK: dict[str, tuple[Instance, float]] = {
    "n6-k2": (equally_spaced(6, 2, 0.4, FAMILY), 0.05),
    "n8-k1": (equally_spaced(8, 1, 0.5, FAMILY), 0.01),
    "n12-k8": (equally_spaced(12, 8, 0.3, FAMILY), 0.01),
    "n15-k7": (equally_spaced(15, 7, 0.3, FAMILY), 0.01),
    "n25-k3-delta-0.1": (equally_spaced(25, 3, 0.2, FAMILY), 0.1),
    "n35-k12": (equally_spaced(35, 12, 0.4, FAMILY), 0.01),
    "normal-n30-k3": (RandomUtilities(30, 3, 0.2, spread=1.0), 0.01),
    "uniform-n20-k4": (RandomUtilities(20, 4, 0.2), 0.01),
    "thurstone-n20-k5": (thurstone(20, 5, 0.15), 0.01),
    "sst-n12-k3": (Sst(12, 3, 0.08, 0.54), 0.05),
    "normal-n150-k8": (RandomUtilities(150, 8, 0.15, spread=1.5), 0.05),
}
WORLDS = TUNED | HELD_BACK


class Answers:
    """The answers of one run: the m-th vote on a pair is the same for every rule."""

    def __init__(self, world: World, order: np.ndarray, seed: int, run: int) -> None:
        self.world, self.order, self.words = world, order, (seed, run)
        self.asked = dict[int, np.random.Generator]()

    def draw(self, pair: int) -> float:
        i, j = (int(self.order[item]) for item in pair_items(len(self.order), pair))
        rng = self.asked.setdefault(pair, np.random.default_rng((*self.words, pair)))
        recording, number = self.world.recording, pair_number(len(self.order), min(i, j), max(i, j))
        if recording is not None and number in recording.pairs:
            place = int(np.searchsorted(recording.pairs, number))
            begin, end = (int(ends) for ends in np.append(0, recording.ends)[place : place + 2])
            outcome = float(recording.outcomes[begin + int(rng.random() * (end - begin))])
            return outcome if i < j else 1.0 - outcome
        return float(rng.random() < self.world.expected[i, j])


def find_world(name: str) -> tuple[Instance, float]:
    if not name.startswith("votes:"):
        return WORLDS[name]
    _, file, k = name.split(":")
    table = read_votes(file)
    return Recorded(table.first, table.second, table.outcome, len(table.items), int(k)), 0.05


def advance(state: loop.State, answers: Answers, growth: float) -> loop.State:
    """The state after one more vote, or after a block of the share `growth` of the votes."""
    n, size = state.problem.n, int(growth * state.tally.votes)
    if size <= 1:
        pair = loop.ask(state)
        i, j = pair_items(n, pair)
        return loop.tell(state, Vote(i, j, answers.draw(pair), loop.bet(state, i, j)))
    pairs, counts = loop.ask_block(state, size)
    drawn = [answers.draw(pair) for pair, count in zip(pairs.tolist(), counts, strict=True) for _ in range(int(count))]
    first, second = (np.repeat(end, counts.astype(np.int64)) for end in pair_ends(n, pairs))
    return loop.tell_block(state, Block(first, second, np.array(drawn), np.ones(len(drawn))))


def play(name: str, rules: str, seed: int, run: int, growth: float) -> tuple[float, bool, float]:
    """Votes, whether the answer is right, and processor seconds."""
    (instance, delta), rng = find_world(name), np.random.default_rng((seed, run))
    world = instance.draw(rng)
    order = np.arange(instance.n) if world.recording else rng.permutation(instance.n)
    truth = tuple(np.flatnonzero(np.isin(order, world.top)).tolist())
    sampling, stopping = rules.split("+")
    allowed = getattr(instance, "allowed", None)
    problem = Problem(instance.n, instance.k, delta, max_votes=MOST, allowed=allowed)
    state = loop.start(problem, SAMPLING_RULES[sampling](), STOPPING_RULES[stopping](), seed * 10**6 + run)
    answers, began = Answers(world, order, seed, run), time.process_time()
    with one_thread():
        while not state.verdict.done:
            state = advance(state, answers, growth)
    is_right = state.verdict.reason == "certified" and state.verdict.top == truth
    return state.tally.votes, is_right, time.process_time() - began


def read(file: Path) -> dict[tuple[str, str], dict[int, list[float]]]:
    found: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(dict)
    if file.exists():
        with file.open() as lines:
            for world, rules, run, *values in csv.reader(lines):
                found[world, rules][int(run)] = [float(value) for value in values]
    return found


def work(options: argparse.Namespace, changes: str) -> Iterator[list[Any]]:
    for name, rules in product(options.worlds, options.rules):
        done = read(options.csv)[name, rules + changes]
        for run in range(options.runs):
            if run not in done:
                votes, is_right, seconds = play(name, rules, options.seed, run, options.growth)
                yield [name, rules + changes, run, round(votes), int(is_right), round(seconds, 3)]


def show(file: Path, first: str) -> None:
    """Means, medians, paired differences to the first rules, and the mean over worlds of the ratio to them."""
    found, order = read(file), list(WORLDS)
    print(
        f"| world | rules | runs | votes | median | right | less {first} | ratio |\n|---|---|--:|--:|--:|--:|--:|--:|"
    )
    ratios = defaultdict(list)
    for world, rules in sorted(found, key=lambda cell: order.index(cell[0]) if cell[0] in order else len(order)):
        runs, base = found[world, rules], found.get((world, first), {})
        votes, right = (np.array([values[place] for values in runs.values()]) for place in (0, 1))
        pairs = np.array([(values[0], base[run][0]) for run, values in runs.items() if run in base]).reshape(-1, 2)
        less, ratio = "", ""
        if rules != first and len(pairs) > 1:
            value, error = ratio_and_error(*pairs.T)
            less, ratio = mean_and_error(pairs[:, 0] - pairs[:, 1], "+,.0f"), f"{value:.3f} ± {error:.3f}"
            ratios[rules, "tuned on" if world in TUNED else "held back"].append((value, error))
        means = f"{mean_and_error(votes, ',.0f')} | {np.median(votes):,.0f} | {right.sum():.0f}"
        print(f"| {world} | {rules} | {len(runs)} | {means} | {less} | {ratio} |")
    for (rules, kind), values in ratios.items():
        value, error = np.array(values).T
        mean, width = value.mean(), np.sqrt((error**2).sum()) / len(value)
        print(f"{rules}, {kind}, {len(value)} worlds: mean ratio {mean:.3f} ± {width:.3f}")


def mean_and_error(values: np.ndarray, form: str) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():{form}} ± {error:,.0f}"


def ratio_and_error(above: np.ndarray, below: np.ndarray) -> tuple[float, float]:
    """The ratio of two means, and its standard error by linear approximation."""
    ratio = above.mean() / below.mean()
    return ratio, (above - ratio * below).std(ddof=1) / np.sqrt(len(above)) / below.mean()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--worlds", nargs="+", default=list(TUNED))
    options.add_argument("--rules", nargs="+", default=["bridge+edges", "learn-then-prove+cuts"])
    options.add_argument("--runs", type=int, default=30)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument(
        "--growth", type=float, default=0.0, help="votes in blocks of this share of them, which is faster"
    )
    options.add_argument("--csv", type=Path, required=True)
    options.add_argument("--change", nargs="+", default=[], metavar="MODULE.NAME=VALUE")
    options.add_argument("--show", action="store_true", help="print the table of what is in the file")
    chosen = options.parse_args()
    if chosen.show:
        return show(chosen.csv, chosen.rules[0])
    for change in chosen.change:
        place, value = change.split("=")
        module, name = place.split(".")
        setattr(MODULES[module], name, float(value))
    for row in work(chosen, "".join(f" {change}" for change in chosen.change)):
        with chosen.csv.open("a", newline="") as file:
            csv.writer(file).writerow(row)
    return None


if __name__ == "__main__":
    main()
