"""The problem: find the best k of n with error at most delta, under a family on Theta.

`whole` and `real` check that an argument is a number of the right kind.
"""

import math
import operator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shortlist.core.families import BradleyTerry, Family
from shortlist.core.pairs import components, pair_ends, pair_number
from shortlist.errors import BadProblem

LEAST_DELTA = 1e-200  # so that shares of it are numbers greater than 0


@dataclass(frozen=True)
class Problem:
    """Theta is {sum zero, |theta| <= bound}. A tolerance is in win probability (Gaussian: in units of outcome):
    an outsider may then be better than a member of the answer by less than it. `max_votes` ends a study early. Every
    step of a proof rests on at least `min_judges` judges."""

    n: int
    k: int
    delta: float
    family: Family = field(default_factory=BradleyTerry)
    bound: float = 10.0
    tolerance: float = 0.0
    max_votes: int | None = None
    allowed: tuple[int, ...] | None = None  # numbers of the pairs that may be asked; None is all
    min_judges: int = 1
    largest_delta: float | None = None  # that was in force, if delta was lowered after the first question
    withdrawn: tuple[int, ...] = ()  # items that were withdrawn after the first question: the answer is among the rest

    def __post_init__(self) -> None:
        if whole("the number of items", self.n, 0) < 2:
            raise BadProblem(f"{self.n} items cannot be compared; give at least two")
        if whole("k", self.k, 0) not in range(1, self.n):
            raise BadProblem(f"k is {self.k}; with {self.n} items it must be from 1 to {self.n - 1}")
        if not LEAST_DELTA <= real("delta", self.delta) < 1:
            raise BadProblem(
                f"delta is {self.delta}; the allowed error must be greater than 0 (at least {LEAST_DELTA:g}) and less "
                "than 1"
            )
        if not 0 < real("bound", self.bound) <= self.family.max_bound:
            raise BadProblem(f"bound is {self.bound}; the largest utility must lie in (0, {self.family.max_bound:g}]")
        if not (0 <= real("tolerance", self.tolerance) < self.family.max_tolerance and self.margin < 2 * self.bound):
            raise BadProblem(
                f"tolerance is {self.tolerance}; it must lie in [0, {self.family.max_tolerance:g}) "
                "and within twice the bound"
            )
        if self.max_votes is not None:
            whole("max_votes", self.max_votes, 1)
        if self.allowed is not None and components(self.n, *pair_ends(self.n, np.array(self.allowed, np.int64)))[0] > 1:
            raise BadProblem("the allowed pairs do not connect all items, so no top k can be proved; allow more pairs")
        if whole("min_judges", self.min_judges, 1) > 1 and (self.tolerance or self.family.is_measured):
            raise BadProblem(
                f"min_judges is {self.min_judges}; more than 1 needs wins, ties or grades as votes, and no tolerance"
            )

        self._check_withdrawn()

    def _check_withdrawn(self) -> None:
        if not self.withdrawn:
            return
        left = self.n - len(set(self.withdrawn))
        if len(set(self.withdrawn)) < len(self.withdrawn) or not set(self.withdrawn) <= set(range(self.n)):
            raise BadProblem("an item that is withdrawn must be an item of the study, and can be withdrawn once")
        if left <= self.k:
            raise BadProblem(
                f"{left} items would be left, and the best {self.k} are wanted; more than {self.k} must be left"
            )
        if self.tolerance or self.family.is_measured:
            raise BadProblem("an item can be withdrawn only from a study of wins, ties or grades without a tolerance")

    @property
    def flipped(self) -> bool:
        """Whether the worst items are the smaller set, so that the proof is about them."""
        return 2 * self.k > self.n

    @property
    def left(self) -> int:
        """The number of items that were not withdrawn."""
        return self.n - len(self.withdrawn)

    @property
    def withdrawn_pairs(self) -> frozenset[int]:
        """The pairs with an item that was withdrawn: they are asked no more."""
        everyone = range(self.n)
        return frozenset(
            pair_number(self.n, gone, other) for gone in self.withdrawn for other in everyone if other != gone
        )

    @property
    def accepted_delta(self) -> float:
        """The largest delta that was in force."""
        return max(self.delta, self.largest_delta or 0.0)

    @property
    def stated_delta(self) -> float:
        """The error that a guarantee may state: the largest delta that was in force, and for each withdrawn item what
        its successor in the answer adds (docs/guarantee.md)."""
        return min(1.0, self.accepted_delta * (1 + len(self.withdrawn) / (1 if self.flipped else self.k)))

    @property
    def margin(self) -> float:
        """The tolerance as a difference of utilities."""
        return self.family.margin(self.tolerance)


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least `least`; True is not one, numpy's integers are."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < least:
        raise BadProblem(f"{name} is {value!r}; it must be a whole number, {least} or more")
    return number


def real(name: str, value: Any) -> float:
    """A finite number; True is not one, numpy's numbers are."""
    try:
        number = math.nan if isinstance(value, bool | str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise BadProblem(f"{name} is {value!r}; it must be a finite number")
    return number


def shown(value: Any, limit: int = 60) -> str:
    """The value for an error message: on one line, and never long."""
    text = repr(value[: limit + 1] if isinstance(value, str | bytes) else value)
    return text if len(text) <= limit + 2 else text[:limit] + "…"
