"""Shares, intervals and repeated questions, against scipy and by counting couples one by one."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binomtest

from shortlist.analysis.position_bias import position_bias, wilson
from shortlist.analysis.votes import table_votes
from shortlist.core.families import BradleyTerry
from shortlist.votes.table import make_table


@pytest.mark.parametrize(("wins", "votes"), [(0, 5), (3, 5), (5, 5), (540, 1000)])
def test_wilson(wins, votes):
    interval = binomtest(wins, votes).proportion_ci(method="wilson")
    found = wilson(wins, votes)
    assert (found.share, found.low, found.high) == pytest.approx((wins / votes, interval.low, interval.high))


def test_a_share_is_inside_its_interval_in_spite_of_rounding():
    for votes in range(1, 300):
        for wins in (0, votes):
            found = wilson(wins, votes)
            assert found.low <= found.share <= found.high


def random_table(seed, count=400, cases=False):
    rng = np.random.default_rng(seed)
    pairs = [rng.permutation(4)[:2] for _ in range(count)]
    return make_table(
        [f"item {i}" for i, _ in pairs],
        [f"item {j}" for _, j in pairs],
        rng.choice([0.0, 0.5, 0.8, 1.0], count),
        judge=rng.choice([None, "ann", "bob"], count).tolist(),
        case=rng.choice(["x", "y"], count).tolist() if cases else None,
    )


@pytest.mark.parametrize("cases", [False, True])
def test_repeats_by_counting_couples(cases):
    table = random_table(1, cases=cases)
    found = position_bias(table_votes(BradleyTerry(), table), np.zeros(4))
    same, other = [], []
    rows = [
        (first, second, y, judge, case)
        for first, second, y, _, judge, case in zip(*table.columns().values(), strict=True)
        if y != 0.5 and judge is not None
    ]
    for one, two in combinations(rows, 2):
        if {*one[:2]} == {*two[:2]} and one[3:] == two[3:]:
            differ = (one[0] if one[2] > 0.5 else one[1]) != (two[0] if two[2] > 0.5 else two[1])
            (same if one[0] == two[0] else other).append(differ)
    assert (found.repeats.couples, found.repeats.flips) == (len(same), len(other))
    assert found.repeats.same_order == pytest.approx(np.mean(same))
    assert found.repeats.other_order == pytest.approx(np.mean(other))
    assert found.repeats.expected == pytest.approx(0.5)  # equal utilities


def test_the_first_side():
    table = random_table(2)
    found = position_bias(table_votes(BradleyTerry(), table), np.zeros(4))
    decided = table.outcome[table.outcome != 0.5]
    assert found.first.votes == len(decided)
    assert found.first.share == pytest.approx(np.mean(decided > 0.5))
    assert found.expected == 0.5


def test_what_the_fit_expects_of_the_first_side_depends_on_who_was_first():
    table = make_table(["strong"] * 10, ["weak"] * 10, [1.0] * 9 + [0.0])
    found = position_bias(table_votes(BradleyTerry(), table), np.array([1.0, -1.0]))
    assert found.first.share == pytest.approx(0.9)
    assert found.expected == pytest.approx(1 / (1 + np.exp(-2)))


def test_nobody_named_and_only_ties():
    table = make_table(["a"] * 3, ["b"] * 3, [0.5] * 3)
    found = position_bias(table_votes(BradleyTerry(), table), np.zeros(2))
    assert found.first.votes == 0
    assert found.repeats.same_order is None
    assert found.repeats.other_order is None
