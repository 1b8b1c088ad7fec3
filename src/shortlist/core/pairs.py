"""Pairs of items, the graphs they make, and what facts alone say about the order of items.

A pair (i, j) with i < j has the number it has in the list (0,1), (0,2), ..., (n-2,n-1). Votes play no part here.

A fact (source, target) says, without a bet and without an error, that the target is outside the top k if the source is:
known answers alone put the source ahead. Facts may contradict each other: then items beat each other in a circle, and
such a circle is in the top k as a whole or not at all.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
TINY_GAP = 1e-6  # smaller gaps at the cutoff count as ties: the rate, about gap^2, would be lost in rounding


def n_pairs(n: int) -> int:
    """How many pairs n items make."""
    return n * (n - 1) // 2


def pair_number(n: int, i: int, j: int) -> int:
    """The number of the pair {i, j}, whichever is named first."""
    i, j = (i, j) if i < j else (j, i)
    return i * (2 * n - i - 1) // 2 + j - i - 1


def pair_numbers(n: int, first: Ints, second: Ints) -> Ints:
    """`pair_number` for arrays, or for two plain numbers."""
    if isinstance(first, int):
        number: Ints = _before_rows(n)[min(first, second)] + max(first, second)
        return number
    numbers: Ints = _before_rows(n)[np.minimum(first, second)] + np.maximum(first, second)
    return numbers


@lru_cache(maxsize=8)
def _before_rows(n: int) -> Ints:
    """The number that is added to j to get the number of the pair (i, j), i < j."""
    i = np.arange(n)
    before: Ints = i * (2 * n - i - 1) // 2 - i - 1
    return before


def pair_items(n: int, number: int) -> tuple[int, int]:
    """First and second item of one pair number, first < second."""
    back = n * (n - 1) // 2 - 1 - number  # counted from the end, pairs come in rows of 1, 2, 3, ...
    row = (math.isqrt(8 * back + 1) - 1) // 2
    return n - 2 - row, n - 1 - (back - row * (row + 1) // 2)


def pair_ends(n: int, numbers: Ints) -> tuple[Ints, Ints]:
    """First and second items, first < second, of pair numbers."""
    i = np.floor(n - 0.5 - np.sqrt((n - 0.5) ** 2 - 2.0 * numbers)).astype(np.int64)
    i -= numbers < i * (2 * n - i - 1) // 2  # the square root may be off by one
    i += numbers >= (i + 1) * (2 * n - i - 2) // 2
    return i, numbers - i * (2 * n - i - 1) // 2 + i + 1


@lru_cache(maxsize=8)
def all_pairs(n: int) -> tuple[Ints, Ints]:
    """First and second items of every pair, in the order of their numbers. Read-only."""
    first, second = (ends.astype(np.int64) for ends in np.triu_indices(n, 1))
    first.flags.writeable = second.flags.writeable = False
    return first, second


def node_sums(places: Ints, values: Floats, size: int) -> Floats:
    """sums[p] = sum of the values at place p."""
    return np.bincount(places, values, size).astype(np.float64, copy=False)


def net_sums(first: Ints, second: Ints, values: Floats, n: int) -> Floats:
    """What each item gains if every pair carries its value from `second` to `first`."""
    return node_sums(first, values, n) - node_sums(second, values, n)


def edge_codes(n: int, first: Ints, second: Ints) -> Ints:
    """Positions of the pairs in a flattened n x n matrix."""
    codes: Ints = first * n + second
    return codes


def laplacian(n: int, edges: Ints, weights: Floats) -> Floats:
    """sum_p weights_p x_p x_p' with x_p = e_first - e_second; `edges` are edge codes, repeated ones add up."""
    adjacency = node_sums(edges, weights, n * n).reshape(n, n)
    matrix: Floats = -(adjacency + adjacency.T)
    matrix.ravel()[:: n + 1] -= matrix.sum(axis=1)
    return matrix


def components(n: int, first: Ints, second: Ints) -> tuple[int, Ints]:
    """Number of connected components of the graph, and each item's component."""
    graph = coo_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=(n, n))
    count, labels = connected_components(graph, directed=False)
    return int(count), labels.astype(np.int64)


def top_k(theta: Floats, k: int) -> Ints:
    """The k best items by utility, in increasing order of item number; ties go to the lower number."""
    return np.sort(np.argsort(-theta, kind="stable")[:k]).astype(np.int64)


def boundary(theta: Floats, k: int) -> tuple[Ints, Ints]:
    """The k(n-k) boundary pairs of theta: items inside the top k, and items outside."""
    order = np.argsort(-theta, kind="stable")
    inside, outside = np.sort(order[:k]), np.sort(order[k:])
    return np.repeat(inside, len(outside)), np.tile(outside, len(inside))


def order_by_facts(theta: Floats, k: int, source: Ints, target: Ints) -> Ints:
    """The items, best first by theta, but so that no fact speaks against the first k if that can be seen quickly: no
    item comes before one that is ahead of it, and a circle is among the first k as a whole or not at all."""
    n = len(theta)
    circles, ahead = _circles(n, source, target)
    members = [np.flatnonzero(circles == number) for number in range(circles.max() + 1)]
    best = [float(theta[items].max()) for items in members]
    waits = np.bincount([b for a, b in ahead], minlength=len(members)).tolist()
    behind: dict[int, list[int]] = {}
    for one, other in ahead:
        behind.setdefault(one, []).append(other)
    free = {number for number in range(len(members)) if not waits[number]}
    inside, outside, is_out = list[int](), list[int](), set[int]()
    while free:
        number = min(free, key=lambda one: (-best[one], one))
        free.remove(number)
        items = members[number][np.argsort(-theta[members[number]], kind="stable")].tolist()
        fits = number not in is_out and len(inside) + len(items) <= k
        (inside if fits else outside).extend(items)
        for other in behind.get(number, ()):
            if not fits:
                is_out.add(other)
            waits[other] -= 1
            if not waits[other]:
                free.add(other)
    if len(inside) < k:
        return np.argsort(-theta, kind="stable")
    return np.array(inside + outside, dtype=np.int64)


def cycle_across(n: int, k: int, source: Ints, target: Ints) -> tuple[int, ...]:
    """Items, each ahead of the next and the last ahead of the first, that are in no set of k items which the facts
    allow, and cannot all be outside one. Empty if there are none: always so if some set of k items has a fact for each
    of its items against each other item."""
    circles, _ = _circles(n, source, target)
    sizes = np.bincount(circles)
    graph = csr_array((np.ones(len(source)), (source, target)), shape=(n, n))
    for number in np.flatnonzero(sizes > 1).tolist():
        items = np.flatnonzero(circles == number)
        with_all_ahead = len(breadth_first_order(graph.T.tocsr(), items[0], return_predecessors=False))
        with_all_behind = len(breadth_first_order(graph, items[0], return_predecessors=False))
        if with_all_ahead > k and n - with_all_behind < k:
            return _shortest(graph[items][:, items], items)
    return ()


def _circles(n: int, source: Ints, target: Ints) -> tuple[Ints, list[tuple[int, int]]]:
    """The circle of each item, most often itself alone, and which circles are ahead of which others."""
    graph = csr_array((np.ones(len(source)), (source, target)), shape=(n, n))
    _, labels = connected_components(graph, directed=True, connection="strong")
    circles = labels.astype(np.int64)
    pairs = set(zip(circles[source].tolist(), circles[target].tolist(), strict=True))
    return circles, sorted((one, other) for one, other in pairs if one != other)


def _shortest(graph: csr_array, items: Ints) -> tuple[int, ...]:
    """A shortest circle through the first item."""
    _, before = breadth_first_order(graph, 0)
    lengths = breadth_first_order(graph, 0, return_predecessors=False).tolist()
    into = set(np.flatnonzero(graph[:, [0]].toarray()[:, 0]).tolist())
    place = next(place for place in lengths if place in into)  # in order of distance
    circle = [place]
    while circle[-1] != 0:
        circle.append(int(before[circle[-1]]))
    return tuple(int(items[place]) for place in reversed(circle))
