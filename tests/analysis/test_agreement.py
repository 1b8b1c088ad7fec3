"""Agreement by brute force: every couple of votes, and a fit without each judge."""

from itertools import permutations

import numpy as np
import pytest

from shortlist.analysis.agreement import judge_agreements, krippendorff_alpha, measure_agreement
from shortlist.analysis.votes import table_votes
from shortlist.core.families import BradleyTerry, Gaussian
from shortlist.core.problem import Problem
from shortlist.core.ridge import laplace
from shortlist.core.tally import tally_votes
from shortlist.votes.table import make_table
from tests.analysis.test_position_bias import random_table


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
