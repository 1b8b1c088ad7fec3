"""Every pair equally often: the yardstick."""

from dataclasses import dataclass

import numpy as np

from shortlist.dice import Dice
from shortlist.facts import Facts
from shortlist.pairs import Floats, Ints, n_pairs
from shortlist.problem import Problem
from shortlist.tracking import deficits, hand_out


@dataclass(frozen=True)
class Uniform:
    """Ask the pair with the fewest votes."""

    name: str = "uniform"
    wants: frozenset[str] = frozenset()

    def start(self, problem: Problem) -> None:
        return None

    def questions(self, memory: None, facts: Facts, out: Ints, size: int, dice: Dice) -> tuple[Ints, Floats]:
        return hand_out(deficits(np.zeros(n_pairs(facts.tally.n)), facts.tally, out), size)

    def learn(self, memory: None, problem: Problem, facts: Facts, rounds: int, dice: Dice) -> None:
        return None

    def votes_left(self, memory: None, facts: Facts) -> None:
        return None
