"""Sampling rules side by side: the same worlds and the same coins, the same estimate and the same stopping rule.

The m-th vote on a pair of a run is the same whoever asks for it, so differences between rules are paired. Every rule
answers with the top k of the ridge belief, which is what a study shows. Questions come one by one, and in blocks of the
share `growth` of the votes once that is more than one; the belief changes as often.
"""

from typing import Any, NamedTuple

import numpy as np

from experiments.peers import PEERS
from shortlist.core import loop
from shortlist.core.pairs import Floats, Ints, pair_numbers, top_k
from shortlist.core.problem import Problem
from shortlist.core.sampling import SAMPLING_RULES, default_stopping
from shortlist.core.tally import Block
from shortlist.simulation.run import advance, begin, is_right, prepare, run_seed, set_up
from shortlist.simulation.worlds import Instance, World

CHECKPOINTS = (100, 200, 500, 1000, 2000)
OURS = ("learn-then-prove", "sharpen", "bridge")
RULES = (*SAMPLING_RULES, *PEERS)


class Coins:
    """The answers of one run: the m-th vote on a pair is the same for every rule."""

    def __init__(self, world: World, *words: int) -> None:
        self._world, self._words = world, words
        self._flips = dict[int, np.random.Generator]()

    def votes(self, first: Ints, second: Ints, counts: Floats) -> Block:
        """The next votes on these pairs, so many on each."""
        pairs, chances = pair_numbers(len(self._world.expected), first, second), self._world.expected[first, second]
        wins = np.array([self._wins(*flip) for flip in zip(pairs.tolist(), counts.tolist(), chances, strict=True)])
        outcomes = np.stack([np.ones(len(pairs)), np.zeros(len(pairs))])
        return Block(first, second, wins, counts).divided(outcomes, np.stack([wins, counts - wins]))

    def _wins(self, pair: int, count: float, chance: float) -> float:
        if pair not in self._flips:
            self._flips[pair] = np.random.default_rng((*self._words, pair))
        return float((self._flips[pair].random(int(count)) < chance).sum())


class Race(NamedTuple):
    """A rule, and what all rules are tried with. `max_votes` ends a run, and no rule knows it.

    Without a stopping rule, ours have the one that a study has by default, because what they ask for a proof depends on
    it. What the others ask does not.
    """

    instance: Instance
    method: str
    delta: float
    growth: float
    max_votes: int
    stopping: str | None = None

    def prepare(self) -> Any:
        """What its runs share. Raises BadInput if the race cannot be run."""
        rule = PEERS[self.method]() if self.method in PEERS else SAMPLING_RULES[self.method]()
        problem = Problem(self.instance.n, self.instance.k, self.delta, self.instance.family)
        stops = self.stopping or (default_stopping(self.method, problem) if self.method in OURS else "edges")
        return prepare(self.instance, rule, delta=self.delta, stopping=stops, growth=self.growth)

    def start(self, seed: int, number: int) -> tuple[World, Coins, loop.State]:
        """Run `number` before its first question."""
        prepared = self.prepare()
        stage = set_up(prepared, run_seed(seed, number))
        return stage.world, Coins(stage.world, seed, number), begin(prepared, stage)

    def answer(self, state: loop.State) -> tuple[int, ...]:
        return tuple(top_k(state.evidence.kept_ledger.theta, self.instance.k).tolist())


def exact_sets(race: Race, seed: int, number: int) -> list[bool]:
    """Whether the answer is exactly the top k at each checkpoint. After a proof nothing more is asked."""
    world, coins, state = race.start(seed, number)
    found = []
    for votes in (mark for mark in CHECKPOINTS if mark <= race.max_votes):
        while round(state.tally.votes) < votes and not state.verdict.done:
            state = advance(state, coins.votes, race.growth, votes)
        found.append(race.answer(state) == world.top)
    return found


class Proof(NamedTuple):
    """The votes of a run, whether they prove the answer, and whether it is right."""

    votes: int
    proved: bool
    correct: bool


def proof(race: Race, seed: int, number: int) -> Proof:
    """The votes until the stopping rule has its proof, or as many as there may be."""
    world, coins, state = race.start(seed, number)
    while not state.verdict.done and round(state.tally.votes) < race.max_votes:
        state = advance(state, coins.votes, race.growth, race.max_votes)
    answer = state.verdict.top if state.verdict.done else race.answer(state)
    return Proof(round(state.tally.votes), state.verdict.done, is_right(world, state.problem, answer))
