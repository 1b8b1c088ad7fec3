"""Every boundary pair's value at once, approximately: the graph of votes as a network of resistors.

To second order, the likelihood lost by reversing (u, v) is (theta_u - theta_v)^2 / (2 R_uv), R_uv the effective
resistance with the curvatures as conductances. One inverse serves all pairs. It orders pairs; it proves nothing.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from shortlist.families import Family
from shortlist.pairs import Floats, Ints, laplacian
from shortlist.tally import Tally


class Screen(NamedTuple):
    """Approximate values of boundary pairs (inside[m], outside[m]), and what the guesses are made of."""

    inside: Ints
    outside: Ints
    values: Floats
    gaps: Floats
    resistances: Floats
    inverse: Floats

    def way(self, m: int) -> Floats:
        """The direction in which reversing pair m costs least, to second order; sums to zero."""
        direction: Floats = self.inverse[self.inside[m]] - self.inverse[self.outside[m]]
        return direction

    def guess(self, theta: Floats, m: int) -> Floats:
        """Where reversing pair m would move theta, to second order; ties the pair."""
        return theta - float(self.gaps[m] / self.resistances[m]) * self.way(m)


def screen(family: Family, tally: Tally, theta: Floats, inside: Ints, outside: Ints, margin: float) -> Screen:
    """Approximate the value of reversing each pair, theta'[inside] <= theta'[outside] - margin. Needs one group."""
    inverse = curvature_inverse(family, tally, theta)
    diagonal = inverse.diagonal()
    resistances = diagonal[inside] + diagonal[outside] - 2 * inverse[inside, outside]
    gaps = np.maximum(theta[inside] - theta[outside] + margin, 0.0)
    return Screen(inside, outside, gaps**2 / (2 * resistances), gaps, resistances, inverse)


def curvature_inverse(family: Family, tally: Tally, theta: Floats) -> Floats:
    """Inverse of the likelihood's curvature at theta, regular on the all-ones direction."""
    variance = family.moments(theta[tally.first] - theta[tally.second]).variance
    curvature = laplacian(tally.n, tally.edges, tally.counts * variance)
    curvature += curvature.trace() / tally.n**2
    factor, info = lapack.dpotrf(curvature.T, lower=1, clean=1)
    if info != 0:  # nearly flat somewhere: an order is all that is wanted
        curvature.ravel()[:: tally.n + 1] += 1e-12 * (1.0 + curvature.trace())
        factor, info = lapack.dpotrf(curvature.T, lower=1, clean=1)
    lower: Floats = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]  # faster than numpy's inv
    inverse = lower + lower.T
    inverse.ravel()[:: tally.n + 1] *= 0.5
    return inverse
