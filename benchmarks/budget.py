"""How often is the answer right after so many votes, and how many votes does a proof take? Sampling rules compared.

    python benchmarks/budget.py [--world eq20] [--runs 100] [--votes 200 500] [--methods bridge sharpen]
    python benchmarks/budget.py --proof --runs 40 --methods bridge learn-then-prove

prints the tables of docs/results.md. All rules meet the same worlds and the same coins: the m-th vote on a pair of a
run is the same whoever asks for it, so differences are paired. `learn-then-prove:1.0` is the rule with doubt=1.0.
`--told` tells the rules that the largest number of votes is their budget.
"""

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np

from shortlist.core import loop
from shortlist.core.families import BradleyTerry
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import n_pairs, pair_items, top_k
from shortlist.core.problem import Problem
from shortlist.core.sampling import SAMPLING_RULES
from shortlist.core.sampling.base import SamplingRule
from shortlist.core.sampling.learn_then_prove import LearnThenProve
from shortlist.core.stopping import STOPPING_RULES
from shortlist.core.tally import Vote
from shortlist.simulation.worlds import Utilities, equally_spaced

WORLDS = {
    "eq20": equally_spaced(20, 5, 0.25, BradleyTerry()),
    "eq50": equally_spaced(50, 5, 0.25, BradleyTerry()),
    "near-ties": Utilities((3.0, 2.0, 1.0, 0.303, 0.3, -0.1, -0.103, -1.0, -2.0, -3.0), 5),
    "normal400": Utilities(tuple(1.5 * np.random.default_rng(400).standard_normal(400)), 10),
}


class Cell(NamedTuple):
    world: str
    method: str
    seed: int
    checkpoints: tuple[int, ...]
    delta: float
    proof: bool
    told: bool
    stopping: str


class Coins:
    """The answers of one run: the m-th vote on a pair is the same for every sampling rule."""

    def __init__(self, theta: np.ndarray, words: Sequence[int]) -> None:
        self.theta, self.words, self.asked = theta, words, dict[int, np.random.Generator]()

    def vote(self, pair: int) -> Vote:
        i, j = pair_items(len(self.theta), pair)
        rng = self.asked.setdefault(pair, np.random.default_rng((*self.words, pair)))
        return Vote(i, j, float(rng.random() < 1 / (1 + np.exp(self.theta[j] - self.theta[i]))))


def make_rule(method: str) -> SamplingRule:
    name, _, doubt = method.partition(":")
    return LearnThenProve(float(doubt)) if doubt else SAMPLING_RULES[name]()


def play(cell: Cell, run: int) -> list[float]:
    """Was the answer right at each checkpoint, 1 or 0; or the votes of a proof, and was it right."""
    world = WORLDS[cell.world]
    theta = np.random.default_rng((cell.seed, run)).permutation(world.theta)
    budget = cell.checkpoints[-1] if cell.told else None
    problem = Problem(world.n, world.k, cell.delta, max_votes=budget)
    state = loop.start(problem, make_rule(cell.method), STOPPING_RULES[cell.stopping](), cell.seed * 10**6 + run)
    coins, right = Coins(theta, (cell.seed, run, n_pairs(world.n))), list[float]()
    truth = top_k(theta, world.k)
    with one_thread():
        while not state.verdict.done and (cell.proof or len(right) < len(cell.checkpoints)):
            vote = coins.vote(loop.ask(state))
            state = loop.tell(state, vote._replace(bet=loop.bet(state, vote.first, vote.second)))
            if state.tally.votes in cell.checkpoints:
                right.append(float(np.array_equal(top_k(state.theta_hat, world.k), truth)))
    if cell.proof:
        return [state.tally.votes, float(state.verdict.top == tuple(truth.tolist()))]
    return right + right[-1:] * (len(cell.checkpoints) - len(right))


def show(values: np.ndarray, digits: int) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():,.{digits}f} ± {error:,.{digits}f}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--world", choices=WORLDS, default="eq20")
    options.add_argument("--methods", nargs="+", default=["bridge", "sharpen", "learn-then-prove"])
    options.add_argument("--runs", type=int, default=100)
    options.add_argument("--votes", type=int, nargs="+", default=[200, 500])
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--delta", type=float, default=0.01)
    options.add_argument("--stopping", choices=STOPPING_RULES, default="edges")
    options.add_argument("--proof", action="store_true", help="count the votes of a proof")
    options.add_argument("--told", action="store_true", help="the largest of --votes is max_votes")
    options.add_argument("--jobs", type=int, default=1)
    chosen = options.parse_args()
    found = {}
    with ProcessPoolExecutor(chosen.jobs, mp_context=get_context("spawn")) as pool:
        for method in chosen.methods:
            cell = Cell(
                chosen.world, method, chosen.seed, tuple(sorted(chosen.votes)), chosen.delta, chosen.proof,
                chosen.told, chosen.stopping,
            )  # fmt: skip
            found[method] = np.array(list(pool.map(play, [cell] * chosen.runs, range(chosen.runs), chunksize=5)))
    names = ["votes", "right"] if chosen.proof else [f"right after {votes:,}" for votes in sorted(chosen.votes)]
    print(f"{chosen.world}, {chosen.runs} runs, seed {chosen.seed}; in brackets: less {chosen.methods[0]}, paired")
    print("| sampling rule |", " | ".join(names), "|")
    print("|---" * (len(names) + 1) + "|")
    for method, values in found.items():
        rest = values - found[chosen.methods[0]]
        digits = [0, 3] if chosen.proof else [3] * len(names)
        cells = [f"{show(values[:, c], digits[c])} ({show(rest[:, c], digits[c])})" for c in range(len(names))]
        print(f"| `{method}` |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
