"""Processor time of a question and its answer under `edges` and under `cuts`, in turn in one process.

    python benchmarks/rounds.py -n 100 -k 5 --gap 0.1 --votes 6000 --rounds 600

Each rule has a study of its own on the same world, which is played in blocks of 1 % up to so many votes.
"""

import argparse
import time

import numpy as np

from shortlist.core import loop
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import pair_ends, pair_items
from shortlist.core.problem import Problem
from shortlist.core.sampling import DEFAULT_SAMPLING, SAMPLING_RULES
from shortlist.core.stopping import STOPPING_RULES
from shortlist.core.tally import Block, Vote

RULES = ("edges", "cuts")


def grown(problem: Problem, theta: np.ndarray, stopping: str, votes: int, rng: np.random.Generator) -> loop.State:
    """A study with that many votes."""
    state = loop.start(problem, SAMPLING_RULES[DEFAULT_SAMPLING](), STOPPING_RULES[stopping](), 1)
    while state.tally.votes < votes and not state.verdict.done:
        pairs, counts = loop.ask_block(state, max(1, int(0.01 * state.tally.votes)))
        first, second = pair_ends(problem.n, pairs)
        wins = rng.binomial(counts.astype(int), 1 / (1 + np.exp(theta[second] - theta[first])))
        often = np.stack([wins, counts - wins]).astype(float)
        outcomes = np.repeat([[1.0], [0.0]], len(first), axis=1)
        state = loop.tell_block(state, Block(first, second, np.zeros(len(first)), counts).divided(outcomes, often))
    return state


def asked_and_told(state: loop.State, theta: np.ndarray, rng: np.random.Generator) -> tuple[loop.State, float]:
    """The state after one more vote, and the milliseconds that it took."""
    began = time.process_time()
    i, j = pair_items(state.problem.n, loop.ask(state))
    bet = loop.bet(state, i, j)
    asked = time.process_time()
    vote = Vote(i, j, float(rng.random() < 1 / (1 + np.exp(theta[j] - theta[i]))), bet)
    answered = time.process_time()
    state = loop.tell(state, vote)
    return state, 1e3 * (asked - began + time.process_time() - answered)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("-n", type=int, default=100)
    options.add_argument("-k", type=int, default=5)
    options.add_argument("--gap", type=float, default=0.1)
    options.add_argument("--delta", type=float, default=0.01)
    options.add_argument("--votes", type=int, default=6000)
    options.add_argument("--rounds", type=int, default=600)
    given = options.parse_args()
    theta, problem = -given.gap * np.arange(given.n), Problem(given.n, given.k, given.delta)
    draws = {rule: np.random.default_rng(1) for rule in RULES}
    states = {rule: grown(problem, theta, rule, given.votes, draws[rule]) for rule in RULES}
    spent = {rule: np.zeros(given.rounds) for rule in RULES}
    with one_thread():
        for number in range(given.rounds):
            for rule in RULES:
                states[rule], spent[rule][number] = asked_and_told(states[rule], theta, draws[rule])
    for rule, times in spent.items():
        state = states[rule].verdict.reason or "open"
        print(f"{rule}: mean {times.mean():.3f} ms, median {np.median(times):.3f}, slowest {times.max():.1f}, {state}")
    print(f"ratio of the means {spent['cuts'].mean() / spent['edges'].mean():.2f}")


if __name__ == "__main__":
    main()
