"""Facts: items that are ahead of others by known answers alone, without a bet and without an error.

A fact (source, target) says that the target is outside the top k if the source is. Facts may contradict each other:
then items beat each other in a circle, and such a circle is in the top k as a whole or not at all.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from shortlist.core.pairs import Floats, Ints


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
