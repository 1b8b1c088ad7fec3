"""Win matrices for the tests, best item first unless shuffled."""

import numpy as np


def spaced(n, gap):
    theta = gap * np.arange(n)[::-1]
    return 1 / (1 + np.exp(theta[None, :] - theta[:, None]))


def certain(n):
    """The better item always wins."""
    return np.triu(np.ones((n, n)), 1) + 0.5 * np.eye(n)


def shuffled(wins, rng):
    """And where item 0, 1, ... of the old matrix went."""
    order = rng.permutation(len(wins))
    return np.ascontiguousarray(wins[np.ix_(order, order)]), np.argsort(order)
