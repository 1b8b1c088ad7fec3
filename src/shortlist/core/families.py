"""The distribution of one vote: exponential families with natural parameter eta = theta_i - theta_j.

A family is one small frozen class with the members of `Family`; add it to `FAMILIES` and it works everywhere.
Paper: Section 3.1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from shortlist.core.pairs import Floats
from shortlist.errors import BadFamily, BadOutcome

Number = TypeVar("Number", float, Floats)
MAX_DIFFERENCE = 1e12  # in units of sigma; beyond it sums of squares lose all precision


class Moments(NamedTuple):
    """A, A' and A'' at eta, computed together because they share their exponentials."""

    log_partition: Floats
    mean: Floats
    variance: Floats


class Family(Protocol):
    """p(y | eta) = exp(eta T(y) - A(eta) + B(y)), with A'' bounded by `variance_bound`."""

    @property
    def name(self) -> str: ...
    @property
    def variance_bound(self) -> float: ...
    @property
    def max_bound(self) -> float:
        """The largest bound on utilities for which floating-point arithmetic is accurate."""
        ...

    @property
    def max_tolerance(self) -> float:
        """Tolerances must be smaller than this."""
        ...

    @property
    def tolerance_unit(self) -> float:
        """A tolerance that is large for this family; suggested tolerances are shares of it."""
        ...

    @property
    def is_measured(self) -> bool:
        """Whether a vote is a measured difference. Otherwise it is a win, a loss, or a grade between."""
        ...

    @property
    def win(self) -> float:
        """The outcome when the first item wins; raises BadOutcome if votes are measured."""
        ...

    @property
    def tie(self) -> float:
        """The outcome when neither is better."""
        ...

    def log_partition(self, eta: Floats) -> Floats: ...
    def mean(self, eta: Floats) -> Floats: ...
    def moments(self, eta: Floats) -> Moments: ...
    def residual(self, moments: Moments, counts: Floats, sums: Floats) -> Floats:
        """counts A'(eta) - sums, accurate even where the outcome of a vote is nearly certain."""
        ...

    def divergence(self, eta: Floats, eta_alt: Floats) -> Floats:
        """d(eta, eta_alt), without cancellation for small steps or in the tails."""
        ...

    def statistic(self, outcome: Number) -> Number:
        """T(y); linear, so T of a sum of outcomes is the sum of their T."""
        ...

    def flip(self, outcome: Number) -> Number:
        """The same outcome from the other item's side: flip(0) - outcome."""
        ...

    def check(self, outcome: Floats) -> None:
        """Raise BadOutcome unless every outcome is allowed."""
        ...

    def margin(self, tolerance: float) -> float:
        """The difference of utilities that corresponds to a tolerance."""
        ...

    def draw(self, rng: np.random.Generator, mean: Floats, counts: Floats) -> Floats:
        """Sums of `counts` fresh outcomes with expectation `mean` each."""
        ...

    def expect(self, eta: Floats) -> Floats:
        """E[Y] at eta."""
        ...

    def natural(self, mean: Floats) -> Floats:
        """eta with A'(eta) = mean."""
        ...

    def damp(self, eta: Floats, variance: Floats) -> Floats:
        """The eta that predicts the next vote when eta is known only with this variance."""
        ...

    def log_factor(self, eta: Floats, eta_null: float, outcome: Floats) -> Floats:
        """Log of the factor of a bet on eta, whose mean is at most 1 if E[Y] <= expect(eta_null)."""
        ...

    def decisive(self, outcome: Floats) -> tuple[Floats, Floats]:
        """The weight of a vote as evidence for either item, and its statistic. A tie has weight 0."""
        ...

    def split(self, counts: Floats, sums: Floats) -> tuple[Floats, Floats]:
        """Outcomes and their numbers, along a new first axis, for rows of `counts` votes that add up to `sums`."""
        ...


@dataclass(frozen=True)
class BradleyTerry:
    """First item wins with probability 1/(1 + e^-eta). Ties and grades in [0,1] are allowed:
    with E[Y] = A'(eta) every likelihood ratio stays a supermartingale (docs/guarantee.md)."""

    name: str = "bradley-terry"
    variance_bound: float = 0.25
    max_bound: float = 15.0  # there a vote is certain to 13 digits, the limit of doubles
    max_tolerance: float = 0.5
    tolerance_unit: float = 0.5
    is_measured: bool = False
    win: float = 1.0
    tie: float = 0.5

    def log_partition(self, eta: Floats) -> Floats:
        return eta + np.log1p(np.exp(-eta))  # safe: utilities are bounded

    def mean(self, eta: Floats) -> Floats:
        return 1.0 / (1.0 + np.exp(-eta))

    def moments(self, eta: Floats) -> Moments:
        decay = np.exp(-eta)
        mean = 1.0 / (1.0 + decay)
        return Moments(eta + np.log1p(decay), mean, decay * mean * mean)

    def residual(self, moments: Moments, counts: Floats, sums: Floats) -> Floats:
        mean = moments.mean
        return (counts - sums) * mean - sums * (moments.variance / mean)  # A'' / A' = 1 - A', without cancellation

    def divergence(self, eta: Floats, eta_alt: Floats) -> Floats:
        """d = log(1 + p (e^s - 1)) - p s for the side that wins with p <= 1/2, s the step of its log-odds."""
        side = np.where(eta > 0, -1.0, 1.0)
        p, step = self.mean(side * eta), side * (eta_alt - eta)
        return np.maximum(np.log1p(p * np.expm1(step)) - p * step, 0.0)

    def statistic(self, outcome: Number) -> Number:
        return outcome

    def flip(self, outcome: Number) -> Number:
        return 1.0 - outcome

    def check(self, outcome: Floats) -> None:
        fine = (outcome >= 0.0) & (outcome <= 1.0)  # False for NaN
        if not fine.all():
            bad = outcome[~fine].flat[0]
            raise BadOutcome(
                f"outcome {bad} is not in [0, 1]; give 1 (first wins), 0 (second wins), 0.5 (tie) or a grade between"
            )

    def margin(self, tolerance: float) -> float:
        return math.log((0.5 + tolerance) / (0.5 - tolerance))

    def draw(self, rng: np.random.Generator, mean: Floats, counts: Floats) -> Floats:
        return rng.binomial(counts.astype(np.int64), mean).astype(np.float64)

    def expect(self, eta: Floats) -> Floats:
        return self.mean(eta)

    def natural(self, mean: Floats) -> Floats:
        return np.log(mean / (1.0 - mean))

    def damp(self, eta: Floats, variance: Floats) -> Floats:
        return eta / np.sqrt(1.0 + (math.pi / 8) * variance)  # the usual probit approximation

    def log_factor(self, eta: Floats, eta_null: float, outcome: Floats) -> Floats:
        """Linear in the outcome between the likelihood ratios of a win and a loss, so that only E[Y] matters."""
        decay = np.exp(-eta)
        p, q = 1.0 / (1.0 + decay), 1.0 / (1.0 + math.exp(-eta_null))
        factor: Floats = np.log(outcome * (p / q) + (1.0 - outcome) * (decay * p / (1.0 - q)))
        return factor

    def decisive(self, outcome: Floats) -> tuple[Floats, Floats]:
        lean = 2.0 * outcome - 1.0
        return np.abs(lean), np.maximum(lean, 0.0)

    def split(self, counts: Floats, sums: Floats) -> tuple[Floats, Floats]:
        return np.stack([np.ones_like(sums), np.zeros_like(sums)]), np.stack([sums, counts - sums])


@dataclass(frozen=True)
class Gaussian:
    """A real difference Y ~ N(eta, sigma^2) with known sigma; T(y) = y / sigma^2."""

    sigma: float = 1.0
    name: str = "gaussian"
    max_bound: float = 1e9
    max_tolerance: float = 1e9
    is_measured: bool = True
    tie: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.sigma, bool | str) or not 1e-9 <= self.sigma <= 1e9:
            raise BadFamily(f"sigma is {self.sigma!r}; the noise of a difference must be a positive number, up to 1e9")

    @property
    def variance_bound(self) -> float:
        return self.sigma**-2

    @property
    def tolerance_unit(self) -> float:
        return self.sigma

    @property
    def win(self) -> float:
        raise BadOutcome("a measured difference has no winner; give the difference")

    def log_partition(self, eta: Floats) -> Floats:
        return eta**2 / (2 * self.sigma**2)

    def mean(self, eta: Floats) -> Floats:
        return eta / self.sigma**2

    def moments(self, eta: Floats) -> Moments:
        mean = eta / self.sigma**2
        return Moments(0.5 * eta * mean, mean, np.full_like(eta, self.sigma**-2))

    def residual(self, moments: Moments, counts: Floats, sums: Floats) -> Floats:
        return counts * moments.mean - sums

    def divergence(self, eta: Floats, eta_alt: Floats) -> Floats:
        return (eta_alt - eta) ** 2 / (2 * self.sigma**2)

    def statistic(self, outcome: Number) -> Number:
        return outcome / self.sigma**2

    def flip(self, outcome: Number) -> Number:
        return -outcome

    def check(self, outcome: Floats) -> None:
        fine = np.abs(outcome) <= MAX_DIFFERENCE * self.sigma  # False for NaN
        if not fine.all():
            raise BadOutcome(f"outcome {outcome[~fine].flat[0]} is not a finite number in range; give the difference")

    def margin(self, tolerance: float) -> float:
        return tolerance

    def draw(self, rng: np.random.Generator, mean: Floats, counts: Floats) -> Floats:
        return counts * mean + self.sigma * np.sqrt(counts) * rng.standard_normal(len(counts))

    def expect(self, eta: Floats) -> Floats:
        return eta

    def natural(self, mean: Floats) -> Floats:
        return mean * self.sigma**2

    def damp(self, eta: Floats, variance: Floats) -> Floats:
        return eta / (1.0 + variance / self.sigma**2)

    def log_factor(self, eta: Floats, eta_null: float, outcome: Floats) -> Floats:
        return (eta - eta_null) * (outcome - 0.5 * (eta + eta_null)) / self.sigma**2

    def decisive(self, outcome: Floats) -> tuple[Floats, Floats]:
        return np.ones_like(outcome), outcome / self.sigma**2

    def split(self, counts: Floats, sums: Floats) -> tuple[Floats, Floats]:
        return (sums / np.maximum(counts, 1e-300))[None], counts[None]  # only the mean matters


FAMILIES: dict[str, Callable[[float], Family]] = {
    "bradley-terry": lambda sigma: BradleyTerry(),
    "gaussian": lambda sigma: Gaussian(sigma),
}


def make_family(family: Any, sigma: float = 1.0) -> Family:
    """The family of this name; a family passes through."""
    if hasattr(family, "log_partition"):
        given: Family = family
        return given
    if not isinstance(family, str) or family not in FAMILIES:
        raise BadFamily(f"unknown family {family!r}; choose one of {', '.join(FAMILIES)}")
    made: Family = FAMILIES[family](sigma)
    return made
