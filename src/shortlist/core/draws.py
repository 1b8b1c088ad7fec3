"""Reproducible random draws: the same words give the same number. No state is kept between draws."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np

Thing = TypeVar("Thing")


class Draws(NamedTuple):
    """The randomness of one round, identified by a few numbers."""

    words: tuple[int, ...]

    def share(self) -> float:
        """One number in [0, 1); much faster than creating a generator."""
        return draw_number(1 << 53, *self.words) / (1 << 53)

    def generator(self) -> np.random.Generator:
        """For more than one number."""
        return np.random.default_rng(self.words)


def digest(*words: object) -> str:
    """A digest of these words, twelve characters long."""
    text = repr(tuple(map(str, words)))
    return hashlib.blake2b(text.encode("utf-8", "backslashreplace"), digest_size=6).hexdigest()


def draw_number(below: int, *words: object) -> int:
    """A number from 0 to below - 1, uniformly distributed over the words."""
    text = repr(tuple(map(str, words)))
    drawn = hashlib.blake2b(text.encode("utf-8", "backslashreplace"), digest_size=16).digest()
    return int.from_bytes(drawn, "big") % below


def draw_case(seed: int, question: int, cases: Sequence[Thing]) -> Thing:
    """The case of a question: a uniform draw with replacement, the same in every call."""
    return cases[draw_number(len(cases), "case", seed, question)]
