"""Judges by brute force: shares and intervals against scipy, every couple of votes, and a fit without each judge."""

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.stats import binomtest

from shortlist.analysis.judges import judge_agreements, krippendorff_alpha, measure_agreement, position_bias, wilson
from shortlist.analysis.votes import table_votes
from shortlist.core.families import BradleyTerry, Gaussian
from shortlist.core.problem import Problem
from shortlist.core.ridge import laplace
from shortlist.core.tally import tally_votes
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


def alpha_by_couples(table, tie, flip):
    """Krippendorff's own definition, with every vote also seen from the other side for what chance would do."""
    units = {}
    columns = table.columns()
    for first, second, y, case in zip(*(columns[name] for name in ("first", "second", "outcome", "case")), strict=True):
        low = table.items.index(first) < table.items.index(second)
        units.setdefault((frozenset((first, second)), case), []).append(y if low else flip(y))
    units = [votes for votes in units.values() if len(votes) > 1]
    total = sum(map(len, units))
    observed = sum(sum((a - b) ** 2 for a, b in permutations(votes, 2)) / (len(votes) - 1) for votes in units) / total
    values = np.array([y for votes in units for y in votes])
    both = np.concatenate([values, flip(values)])
    return 1 - observed / np.mean(np.subtract.outer(both, both) ** 2)


@pytest.mark.parametrize("cases", [False, True])
def test_alpha(cases):
    table = random_table(3, 120, cases)
    expected = alpha_by_couples(table, 0.5, lambda y: 1 - y)
    assert krippendorff_alpha(table_votes(BradleyTerry(), table)) == pytest.approx(expected)


def test_alpha_of_measured_differences():
    table = random_table(4, 60)
    assert krippendorff_alpha(table_votes(Gaussian(1.0), table)) == pytest.approx(
        alpha_by_couples(table, 0.0, lambda y: -y)
    )


def test_alpha_at_its_ends():
    names = ["a"] * 400, ["b"] * 400
    same = table_votes(BradleyTerry(), make_table(*names, [1.0] * 400))
    assert krippendorff_alpha(same) == 1
    coin = np.random.default_rng(1).integers(0, 2, 400).astype(float)
    assert abs(krippendorff_alpha(table_votes(BradleyTerry(), make_table(*names, coin)))) < 0.1
    assert krippendorff_alpha(table_votes(BradleyTerry(), make_table(*names, [0.5] * 400))) is None
    assert krippendorff_alpha(table_votes(BradleyTerry(), make_table(["a"], ["b"], [1.0]))) is None


def test_each_judge_against_the_others():
    rng = np.random.default_rng(6)
    theta, judges = np.array([1.5, 0.5, -0.5, -1.5]), ("ann", "bob", "cleo", "upside down")
    rows = []
    for _ in range(600):
        i, j = rng.permutation(4)[:2]
        judge = judges[rng.integers(4)]
        better = rng.random() < 1 / (1 + np.exp(theta[j] - theta[i]))
        rows.append((f"item {i}", f"item {j}", float(better != (judge == "upside down")), judge))
    first, second, outcome, judge = zip(*rows, strict=True)
    table, family = make_table(first, second, outcome, judge=judge), BradleyTerry()
    votes, problem = table_votes(family, table), Problem(4, 1, 0.05)
    found = measure_agreement(problem, votes, np.zeros(4))
    for one in found.judges:
        mine = np.array([name == one.judge for name in judge])
        others = tally_votes(family, table.first[~mine], table.second[~mine], table.outcome[~mine], n=4)
        utilities = laplace(family, others, 1.5).theta
        higher = utilities[table.first] > utilities[table.second]
        assert one.votes == mine.sum()
        assert one.agreement.share == pytest.approx(np.mean(higher[mine] == (table.outcome[mine] == 1)))
        assert one.kappa == pytest.approx(2 * one.agreement.share - 1)
        gap = np.abs(utilities[table.first] - utilities[table.second])[mine]
        assert one.expected == pytest.approx(np.mean(1 / (1 + np.exp(-gap))))
    assert {one.judge for one in found.judges if one.agreement.high < 0.5} == {"upside down"}
    assert sum(one.votes for one in found.judges) == 600
    quick = judge_agreements(problem, votes, most=2)
    assert [one.judge for one in quick] == [one.judge for one in found.judges[:2]]
    assert [one.agreement for one in quick] == [one.agreement for one in found.judges[:2]]


def test_one_judge_has_nobody_to_agree_with():
    table = make_table(["a"] * 5, ["b"] * 5, [1.0] * 5, judge=["ann"] * 5)
    found = measure_agreement(Problem(2, 1, 0.05), table_votes(BradleyTerry(), table), np.zeros(2))
    assert [(one.judge, one.agreement, one.kappa) for one in found.judges] == [("ann", None, None)]
