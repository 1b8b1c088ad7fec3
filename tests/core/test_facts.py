"""Facts: orders that agree with them, and circles across the cutoff, against all sets of k items."""

from itertools import combinations, permutations

import numpy as np
import pytest

from shortlist.core.betting import FACT, MARK, PROVED_AHEAD, PROVED_BEHIND, empty_ledger
from shortlist.core.pairs import cycle_across, order_by_facts
from shortlist.core.problem import Problem
from shortlist.core.tally import Block


def ends(facts):
    pairs = np.array(sorted(facts), dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def allowed_sets(n, k, facts):
    """The sets of k items that no fact speaks against: no source is outside while its target is inside."""
    sets = (set(items) for items in combinations(range(n), k))
    return [items for items in sets if not any(x not in items and y in items for x, y in facts)]


def random_facts(rng, n, share):
    """Each pair is decided with this chance, one way or the other."""
    return {(x, y) if rng.random() < 0.5 else (y, x) for x, y in combinations(range(n), 2) if rng.random() < share}


@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
def test_circles_are_called_only_if_no_set_is_left(share):
    rng = np.random.default_rng(7)
    for _ in range(300):
        n = int(rng.integers(2, 7))
        k, facts = int(rng.integers(1, n)), random_facts(rng, n, share)
        circle = cycle_across(n, k, *ends(facts))
        if circle:
            assert not allowed_sets(n, k, facts)
            assert set(zip(circle, [*circle[1:], circle[0]], strict=True)) <= facts
        if share == 1.0:  # all pairs are decided, so it is found whenever there is one
            assert bool(circle) == (not allowed_sets(n, k, facts))


def test_the_order_agrees_with_the_facts_and_else_with_the_ratings():
    rng = np.random.default_rng(8)
    agreed = 0
    for _ in range(300):
        n = int(rng.integers(2, 7))
        k, facts, theta = int(rng.integers(1, n)), random_facts(rng, n, 0.4), rng.normal(size=n)
        order = order_by_facts(theta, k, *ends(facts))
        assert sorted(order.tolist()) == list(range(n))
        sets = allowed_sets(n, k, facts)
        if set(order[:k].tolist()) in sets:
            agreed += 1
            by_rating = np.argsort(-theta, kind="stable")
            if set(by_rating[:k].tolist()) in sets and not any(
                by_rating.tolist().index(x) > by_rating.tolist().index(y) for x, y in facts
            ):
                assert order.tolist() == by_rating.tolist()
        else:  # only where circles have to be fitted together, which is not tried
            assert np.array_equal(order, np.argsort(-theta, kind="stable"))
    assert agreed > 200
    for facts in permutations(range(4), 4):  # a total order by facts alone
        chain = set(combinations(facts, 2))
        assert order_by_facts(np.zeros(4), 2, *ends(chain)).tolist() == list(facts)


def test_facts_outlive_what_removes_marks():
    vote = Block(np.array([0, 1]), np.array([2, 3]), np.array([1.0, 0.0]), np.ones(2), np.array([0.1, -0.1]))
    ledger = empty_ledger(Problem(4, 2, 0.05)).add(vote)
    marked = ledger.with_marks(np.array([0]), np.array([2])).with_facts(np.array([3]), np.array([1]))
    marks = slice(PROVED_AHEAD, PROVED_BEHIND + 1)
    assert marked.table[:, marks].tolist() == [[MARK, 0.0], [0.0, FACT]]
    left = marked.withdraw(vote)
    assert left.table[:, marks].tolist() == [[0.0, 0.0], [0.0, FACT]]
    assert [part.tolist() for part in left.facts[:2]] == [[3], [1]]
    assert not len(marked.with_facts(*ends(set())).facts.source)
