"""Weights of units: their sums, and what they do to accounts, against slow sums and the closed form."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist import certify
from shortlist.core.betting import empty_ledger, in_parts
from shortlist.core.pairs import pair_number
from shortlist.core.problem import Problem
from shortlist.core.tally import Block
from shortlist.core.units import find_units, is_shared, unit_numbers
from shortlist.errors import BadProblem, BadVotes

N = 4
ROWS = st.lists(st.tuples(st.integers(0, N - 1), st.integers(1, N - 1), st.integers(0, 5)), min_size=1, max_size=30)


def build(rows, seed=0):
    first = np.array([row[0] for row in rows])
    second = (first + [row[1] for row in rows]) % N
    order, units = find_units(N, first, second, [row[2] for row in rows])
    bets = np.random.default_rng(seed).normal(size=len(rows))
    return Block(first, second, np.ones(len(rows)), np.ones(len(rows))).ordered(order)._replace(bets=bets), units


@settings(deadline=None)
@given(rows=ROWS, flipped=st.booleans())
def test_no_unit_weighs_more_than_one_vote_in_any_product(rows, flipped):
    block, units = build(rows)
    sums = defaultdict(float)
    plain, both = (units.weights(block, flipped, kind) for kind in (False, True))
    for row, unit in enumerate(units.number.tolist()):
        i, j = int(block.first[row]), int(block.second[row])
        target = j if (block.bets[row] > 0) != flipped else i
        sums["plain", unit, target] += plain[row]
        sums["both", unit, i] += both[row]
        sums["both", unit, j] += both[row]
        sums["grid", unit, pair_number(N, i, j)] += units.share[row]
        sums["whole", unit] += units.whole[row]
    assert max(sums.values()) <= 1 + 1e-9
    assert all(np.any(plain[units.number == unit] > 0) for unit in range(units.size))


@settings(deadline=None)
@given(rows=ROWS)
def test_a_design_is_regular_if_all_units_have_the_same_pairs(rows):
    pairs = defaultdict(Counter)
    for i, step, unit in rows:
        pairs[unit][pair_number(N, i, (i + step) % N)] += 1
    block, units = build(rows)
    assert units.regular == (len({tuple(sorted(found.items())) for found in pairs.values()}) == 1)
    if units.regular:
        weights = units.weights(block, False, False)
        targets = np.where(block.bets > 0, block.second, block.first)
        for unit in range(units.size):
            for target in set(targets[units.number == unit].tolist()):
                here = (units.number == unit) & (targets == target)
                assert weights[here] == pytest.approx(1 / here.sum())


def test_units_keep_their_first_rows_order_and_no_part_cuts_one():
    labels = ["b", "a", "b", None, "a", None]
    order, units = find_units(2, np.zeros(6, int), np.ones(6, int), labels)
    assert order.tolist() == [0, 2, 1, 4, 3, 5]
    assert units.number.tolist() == [0, 0, 1, 1, 2, 3]
    for size in (1, 7, 300):
        starts = np.r_[np.arange(0, 3 * size, 3), 3 * size]
        parts = list(in_parts(3 * size, 10.0, starts))
        assert {begin % 3 for begin, _ in parts} == {0}
        assert [end for _, end in parts] == [*[begin for begin, _ in parts][1:], 3 * size]


@pytest.mark.parametrize("tolerance", [0.0, 0.1])
@pytest.mark.parametrize("k", [1, 3])
def test_a_weight_is_a_power_of_the_factor(k, tolerance):
    rng, problem = np.random.default_rng(3), Problem(N, k, 0.1, tolerance=tolerance)
    ends = np.array([0, 1, 2]), np.array([1, 2, 3])
    block = Block(*ends, rng.random(3), np.ones(3), rng.normal(size=3))
    weights = np.array([1.0, 0.5, 0.0])
    one = empty_ledger(problem)._rows(block)
    some = empty_ledger(problem)._rows(block._replace(weights=weights))
    assert np.allclose(some[:, 2:], one[:, 2:] * weights[:, None])
    assert np.array_equal(some[:, :2], one[:, :2])  # the belief takes every row in full
    doubted = [empty_ledger(problem).doubting(block._replace(weights=w)).table[:, 2:] for w in (weights, np.ones(3))]
    assert np.allclose(doubted[0], doubted[1] * weights[:, None])


def test_single_rows_as_units_change_nothing():
    rng = np.random.default_rng(5)
    first = rng.integers(0, 3, 80)
    votes = first, (first + rng.integers(1, 3, 80)) % 3, rng.integers(0, 2, 80).astype(float)
    assert certify(*votes, 1, unit=list(range(80))) == certify(*votes, 1)
    assert certify(*votes, 1, unit=[None] * 80) == certify(*votes, 1)


def test_a_second_copy_of_every_row_proves_what_one_copy_proves_with_glr():
    rng = np.random.default_rng(6)
    first = rng.integers(0, 3, 60)
    votes = first, (first + 1) % 3, rng.integers(0, 2, 60).astype(float)
    single = certify(*votes, 1, stopping="glr")
    double = certify(
        *(np.repeat(column, 2) for column in votes), 1, stopping="glr", unit=np.repeat(range(60), 2).tolist()
    )
    assert double.statistic == pytest.approx(single.statistic)
    assert double.threshold == pytest.approx(single.threshold)
    assert double.votes == 120


def test_what_cannot_have_units_says_so():
    votes = [0, 0], [1, 1], [1.0, 1.0]
    with pytest.raises(BadVotes, match="weights cannot have units"):
        certify(*votes, 1, weight=[2.0, 3.0], unit=["a", "a"])
    with pytest.raises(BadProblem, match="independent"):
        certify(*votes, 1, stopping="posterior", unit=["a", "a"])
    with pytest.raises(BadVotes, match="one unit per vote"):
        certify(*votes, 1, unit=["a", "a", "b"])


def grown_units(labels):
    """Units found by growing sets of rows until no two of them share a label in the same place."""
    units = [({row}, set(enumerate(label))) for row, label in enumerate(labels)]
    while touching := [(a, b) for a in units for b in units if a is not b and a[1] & b[1]]:
        a, b = touching[0]
        units = [unit for unit in units if unit is not a and unit is not b] + [(a[0] | b[0], a[1] | b[1])]
    return sorted(sorted(rows) for rows, _ in units)


@settings(deadline=None)
@given(labels=st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), min_size=1, max_size=12))
def test_rows_that_share_one_of_several_labels_are_one_unit(labels):
    numbers = unit_numbers(labels).tolist()
    rows = [[row for row, number in enumerate(numbers) if number == unit] for unit in range(max(numbers) + 1)]
    assert sorted(rows) == grown_units(labels)
    assert numbers[0] == 0
    assert is_shared(labels) == (len(rows) < len(labels))
