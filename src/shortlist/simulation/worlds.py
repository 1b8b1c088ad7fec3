"""Worlds with a known top k. Items come best first; `simulate` shuffles them.

Paper: Section 7. An instance draws a world; for fixed ones every draw is the same.
"""

import csv
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from shortlist.core.estimate import fit
from shortlist.core.families import BradleyTerry, Family
from shortlist.core.pairs import TINY_GAP, Floats, Ints, n_pairs, pair_ends, pair_numbers, top_k
from shortlist.core.problem import whole
from shortlist.core.tally import Block, tally_votes
from shortlist.errors import BadInstance, TieAtCutoff

MAX_DRAWS = 100_000  # of worlds without a clear cutoff, before giving up
INSTANCES = (
    "equally-spaced", "random-utilities", "normal:SPREAD", "near-ties", "sst", "constant", "utilities:FILE",
    "matrix:FILE",
)  # fmt: skip
NEAR_TIES = (3.0, 2.0, 1.0, 0.303, 0.3, -0.1, -0.103, -1.0, -2.0, -3.0)  # on both sides of the cutoff, for k = 5
BRADLEY_TERRY_ONLY = ("sst", "constant", "matrix")


class Recording(NamedTuple):
    """Recorded outcomes seen from the lower item, pair after pair; the p-th has those from ends[p-1] to ends[p]."""

    pairs: Ints
    ends: Ints
    outcomes: Floats

    def votes(self, rng: np.random.Generator, numbers: Ints, first: Ints, second: Ints, counts: Floats) -> Block:
        """Recorded votes drawn with replacement."""
        often = counts.astype(np.int64)
        slots = np.repeat(np.searchsorted(self.pairs, numbers), often)
        begin = np.concatenate([[0], self.ends])[slots]
        drawn = self.outcomes[begin + (rng.random(len(slots)) * (self.ends[slots] - begin)).astype(np.int64)]
        return Block(np.repeat(first, often), np.repeat(second, often), drawn, np.ones(len(drawn)))


class World(NamedTuple):
    """expected[i, j] is E[outcome] of i against j; theta is None where no utilities explain it."""

    expected: Floats
    top: tuple[int, ...]
    theta: Floats | None
    recording: Recording | None = None

    def votes(self, rng: np.random.Generator, family: Family, first: Ints, second: Ints, counts: Floats) -> Block:
        """That many fresh votes on each pair, first < second; recorded ones are drawn with replacement."""
        if self.recording is None:
            return _drawn(rng, family, first, second, self.expected[first, second], counts)
        numbers = pair_numbers(len(self.expected), first, second)
        known = np.isin(numbers, self.recording.pairs)
        played = self.recording.votes(rng, numbers[known], first[known], second[known], counts[known])
        if known.all():
            return played
        gaps = ~known
        means = self.expected[first[gaps], second[gaps]]
        return played.joined(_drawn(rng, family, first[gaps], second[gaps], means, counts[gaps]))


def _drawn(rng: np.random.Generator, family: Family, first: Ints, second: Ints, means: Floats, counts: Floats) -> Block:
    sums = family.draw(rng, means, counts)
    return Block(first, second, sums, counts).divided(*family.split(counts, sums))


class Instance(Protocol):
    """A recipe for worlds."""

    @property
    def name(self) -> str: ...
    @property
    def n(self) -> int: ...
    @property
    def k(self) -> int: ...
    @property
    def family(self) -> Family: ...
    @property
    def fixed(self) -> bool:
        """Whether every draw is the same world."""
        ...

    def draw(self, rng: np.random.Generator) -> World: ...


def world_of(theta: Floats, k: int, family: Family) -> World:
    """The world in which utilities theta hold."""
    theta = theta - theta.mean()
    ordered = np.sort(theta)[::-1]
    if ordered[k - 1] - ordered[k] < TINY_GAP:
        raise TieAtCutoff(k)
    top = tuple(map(int, top_k(theta, k)))
    return World(family.expect(np.subtract.outer(theta, theta)), top, theta)


@dataclass(frozen=True)
class Utilities:
    """Utilities given one by one."""

    theta: tuple[float, ...]
    k: int
    family: Family = field(default_factory=BradleyTerry)
    name: str = "utilities"
    fixed: bool = True

    def __post_init__(self) -> None:
        if not all(abs(value) <= self.family.max_bound * 2 for value in self.theta):  # False for NaN
            raise BadInstance(f"a utility is not a number, or larger than {2 * self.family.max_bound:g}")
        check_size(self.n, self.k)

    @property
    def n(self) -> int:
        return len(self.theta)

    def draw(self, rng: np.random.Generator) -> World:
        return world_of(np.array(self.theta), self.k, self.family)


def equally_spaced(n: int, k: int, gap: float, family: Family) -> Utilities:
    """theta_i = (n + 1 - 2i) gap / 2."""
    if not (math.isfinite(gap) and gap > 0):
        raise BadInstance(f"gap is {gap}; the step between utilities must be a positive number")
    theta = (n + 1 - 2 * np.arange(1, n + 1)) * gap / 2
    return Utilities(tuple(theta.tolist()), k, family, "equally-spaced")


@dataclass(frozen=True)
class RandomUtilities:
    """theta uniform on [-5, 5], or normal with the standard deviation `spread`; drawn again until the gap at the cutoff
    is at least `line_gap`."""

    n: int
    k: int
    line_gap: float = 0.02
    family: Family = field(default_factory=BradleyTerry)
    name: str = "random-utilities"
    fixed: bool = False
    spread: float | None = None

    def __post_init__(self) -> None:
        check_size(self.n, self.k)

    def draw(self, rng: np.random.Generator) -> World:
        for _ in range(MAX_DRAWS):
            drawn = rng.uniform(-5, 5, self.n) if self.spread is None else rng.normal(0, self.spread, self.n)
            theta = np.sort(drawn)[::-1]
            if theta[self.k - 1] - theta[self.k] >= self.line_gap:
                return world_of(theta, self.k, self.family)
        raise BadInstance(f"no draw of {self.n} utilities had a gap of {self.line_gap} at the cutoff; lower it")


@dataclass(frozen=True)
class Matrix:
    """Win probabilities given pair by pair; the top k must beat everyone else."""

    wins: tuple[tuple[float, ...], ...]
    k: int
    name: str = "matrix"
    family: Family = field(default_factory=BradleyTerry)
    fixed: bool = True

    def __post_init__(self) -> None:
        check_size(self.n, self.k)
        wins = np.array(self.wins) if all(len(row) == self.n for row in self.wins) else np.empty((0, 0))
        if wins.shape != (self.n, self.n) or not np.all((wins >= 0) & (wins <= 1)):
            raise BadInstance("a win matrix is square, with probabilities from 0 to 1")
        off = ~np.eye(self.n, dtype=bool)
        if not np.allclose((wins + wins.T)[off], 1.0, atol=1e-9):
            raise BadInstance("a win matrix must have wins[i][j] + wins[j][i] = 1 for every pair")

    @property
    def n(self) -> int:
        return len(self.wins)

    def draw(self, rng: np.random.Generator) -> World:
        wins = np.array(self.wins)
        np.fill_diagonal(wins, 0.5)
        top = np.sort(np.argsort(-(wins > 0.5).sum(axis=1), kind="stable")[: self.k])
        rest = np.setdiff1d(np.arange(self.n), top)
        if np.any(wins[np.ix_(top, rest)] <= 0.5):
            raise BadInstance(f"no {self.k} items each beat all others in this matrix, so there is no top {self.k}")
        return World(wins, tuple(map(int, top)), None)


def constant(n: int, k: int, p: float) -> Matrix:
    """Every better item wins with probability p."""
    if not 0.5 < p < 1:
        raise BadInstance(f"p is {p}; a better item must win with a probability between 0.5 and 1")
    better = np.triu(np.full((n, n), p), 1)
    wins = better + np.tril(np.full((n, n), 1 - p), -1) + 0.5 * np.eye(n)
    return Matrix(tuple(map(tuple, wins.tolist())), k, "constant")


@dataclass(frozen=True)
class Sst:
    """Independent bands: strong stochastic transitivity without utilities. Drawn again until p_{k,k+1} >= `line`."""

    n: int
    k: int
    band: float = 0.05
    line: float = 0.51
    name: str = "sst"
    family: Family = field(default_factory=BradleyTerry)
    fixed: bool = False

    def __post_init__(self) -> None:
        check_size(self.n, self.k)

    def draw(self, rng: np.random.Generator) -> World:
        for _ in range(MAX_DRAWS):
            wins = self._bands(rng)
            if wins[self.k - 1, self.k] >= self.line:
                return World(wins, tuple(range(self.k)), None)
        raise BadInstance(f"no draw reached {self.line} at the cutoff; lower it")

    def _bands(self, rng: np.random.Generator) -> Floats:
        wins = np.full((self.n, self.n), 0.5)
        for width in range(1, self.n):
            i = np.arange(self.n - width)
            low = np.maximum(wins[i, i + width - 1], wins[i + 1, i + width])
            wins[i, i + width] = rng.uniform(low, np.minimum(low + self.band, 1.0))
            wins[i + width, i] = 1 - wins[i, i + width]
        return wins


@dataclass(frozen=True)
class Recorded:
    """A file of votes as a world: asking a pair draws one of its recorded votes. `top` is the top k by all of them.

    With `fill`, a pair that has no votes is answered by the utilities fitted to the file; else it may not be asked."""

    first: Ints
    second: Ints
    outcome: Floats
    n: int
    k: int
    family: Family = field(default_factory=BradleyTerry)
    fill: bool = True
    name: str = "recorded"
    fixed: bool = True

    def __post_init__(self) -> None:
        check_size(self.n, self.k)

    @property
    def recorded_pairs(self) -> tuple[int, ...]:
        """The pairs that have votes."""
        return tuple(np.unique(pair_numbers(self.n, self.first, self.second)).tolist())

    @property
    def allowed(self) -> tuple[int, ...] | None:
        """The pairs that may be asked; None is all."""
        return None if self.fill or len(self.recorded_pairs) == n_pairs(self.n) else self.recorded_pairs

    def draw(self, rng: np.random.Generator) -> World:
        numbers = pair_numbers(self.n, self.first, self.second)
        seen = np.where(self.first < self.second, self.outcome, self.family.flip(self.outcome))
        order = np.argsort(numbers, kind="stable")
        pairs, counts = np.unique(numbers, return_counts=True)
        theta = fit(self.family, tally_votes(self.family, self.first, self.second, self.outcome, n=self.n), 10.0)
        expected = self.family.expect(np.subtract.outer(theta, theta))
        low, high = pair_ends(self.n, pairs)
        means = np.add.reduceat(seen[order], np.concatenate([[0], counts.cumsum()[:-1]])) / counts
        expected[low, high], expected[high, low] = means, self.family.flip(means)
        recording = Recording(pairs, counts.cumsum(), seen[order])
        return World(expected, tuple(map(int, top_k(theta, self.k))), None, recording)


def check_size(n: int, k: int) -> None:
    """Raise BadInstance unless 1 <= k < n."""
    if whole("n", n, 0) < 2 or not 1 <= whole("k", k, 0) <= n - 1:
        raise BadInstance(f"n is {n} and k is {k}; an instance needs at least two items, and k from 1 to n - 1")


def make_instance(
    name: str, k: int, n: int | None = None, gap: float = 0.1, p: float = 0.6, family: Family | None = None
) -> Instance:
    """An instance by its name on the command line. `utilities:FILE` and `matrix:FILE` read numbers from a file,
    `normal:1.5` draws utilities with that standard deviation."""
    model = BradleyTerry() if family is None else family
    kind, _, file = name.partition(":")
    if kind in BRADLEY_TERRY_ONLY and model.is_measured:
        raise BadInstance(f"instance {name!r} is made of win probabilities; it needs the bradley-terry family")
    if kind == "utilities" and file:
        return Utilities(tuple(value for row in _numbers(file) for value in row), k, model)
    if kind == "matrix" and file:
        return Matrix(tuple(map(tuple, _numbers(file))), k)
    if name == "near-ties":
        return Utilities(NEAR_TIES, k, model, name)
    if n is None:
        raise BadInstance(f"instance {name!r} needs n, the number of items")
    check_size(n, k)
    if kind == "normal":
        return RandomUtilities(n, k, family=model, name=name, spread=_spread(file))
    if name == "equally-spaced":
        return equally_spaced(n, k, gap, model)
    if name == "random-utilities":
        return RandomUtilities(n, k, family=model)
    if name == "sst":
        return Sst(n, k)
    if name == "constant":
        return constant(n, k, p)
    raise BadInstance(f"unknown instance {name!r}; choose one of {', '.join(INSTANCES)}")


def _spread(text: str) -> float:
    try:
        spread = float(text)
    except ValueError:
        spread = math.nan
    if not 0 < spread <= 5:
        raise BadInstance(f"{text!r} is not the spread of utilities; give a number from 0 to 5, as in normal:1.5")
    return spread


def _numbers(file: str) -> list[list[float]]:
    """Rows of numbers, separated by commas or blanks; lines that start with # are comments."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as reason:
        raise BadInstance(f"cannot read {file}: {getattr(reason, 'strerror', None) or reason}") from None
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    try:
        rows = [[float(cell) for cell in " ".join(row).split()] for row in csv.reader(lines)]
    except ValueError as reason:
        raise BadInstance(f"{file} contains something that is not a number: {reason}") from None
    if not rows:
        raise BadInstance(f"{file} contains no numbers")
    return rows
