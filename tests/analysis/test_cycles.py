"""Cycles and upsets by counting triple by triple; e-values against integrals, and their mean of 1 under a fair coin."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, norm

from shortlist.analysis.checks import (
    ERROR,
    Directions,
    directions,
    find_cycles,
    find_upsets,
    log_e_measured,
    log_e_value,
)
from shortlist.analysis.votes import table_votes
from shortlist.core.families import BradleyTerry
from shortlist.votes.table import make_table
from tests.analysis.studies import ITEMS, THETA, analysis_of, study_of


def noise(n, seed, density=0.7):
    """Directions of coin flips."""
    rng = np.random.default_rng(seed)
    votes = np.triu(rng.integers(1, 12, (n, n)) * (rng.random((n, n)) < density), 1)
    first, second = np.nonzero(votes)
    names = [f"item {i}" for i in range(n)]
    rows = [(i, j) for i, j in zip(first, second, strict=True) for _ in range(votes[i, j])]
    table = make_table(
        [names[i] for i, _ in rows], [names[j] for _, j in rows], rng.integers(0, 2, len(rows)).astype(float)
    )
    votes = table_votes(BradleyTerry(), table)
    return table.items, directions(votes, rng.standard_normal(len(table.items)))


def in_a_circle(matrix, triple):
    i, j, m = triple
    return [(a, b, c) for a, b, c in ((i, j, m), (i, m, j)) if matrix[a, b] and matrix[b, c] and matrix[c, a]]


@pytest.mark.parametrize("seed", range(4))
def test_cycles_by_hand(seed):
    items, seen = noise(9, seed)
    n, found = len(items), find_cycles(*noise(9, seed))
    compared = seen.wins + seen.wins.T > 0
    triples = [t for t in combinations(range(n), 3) if all(compared[a, b] for a, b in permutations(t, 2))]
    circles = [circle for t in combinations(range(n), 3) for circle in in_a_circle(seen.ahead, t)]
    assert found.triples == len(triples)
    assert found.found == len(circles)
    q = seen.expected
    chance = sum(
        q[a, b] * q[b, c] * q[c, a] for i, j, m in combinations(range(n), 3) for a, b, c in ((i, j, m), (i, m, j))
    )
    assert found.expected == pytest.approx(chance)
    worst = sorted(max(seen.p_value[a, b], seen.p_value[b, c], seen.p_value[c, a]) for a, b, c in circles)
    assert [cycle.p_value for cycle in found.strongest] == pytest.approx(worst[:5])
    assert found.significant == sum(p <= ERROR / (2 * len(triples)) for p in worst)


def test_expected_cycles_are_those_of_simulated_votes():
    """2,000 worlds with the same numbers of votes, drawn from the utilities themselves."""
    rng, n = np.random.default_rng(5), 5
    theta = np.array([0.4, 0.2, 0.0, -0.1, -0.5])
    votes = np.triu(rng.integers(1, 9, (n, n)), 1)
    p = 1 / (1 + np.exp(np.subtract.outer(theta, theta).T))
    drawn = rng.binomial(votes, p, (2000, n, n)).astype(float)
    wins = drawn + np.triu(votes - drawn, 1).transpose(0, 2, 1)
    circles = [_found(one) for one in wins]
    table = [(i, j) for i, j in combinations(range(n), 2) for _ in range(votes[i, j])]
    votes = table_votes(
        BradleyTerry(), make_table(*([str(pair[side]) for pair in table] for side in (0, 1)), [1.0] * len(table))
    )
    order = [int(item) for item in dict.fromkeys(str(i) for pair in table for i in pair)]
    expected = find_cycles(tuple(map(str, order)), directions(votes, theta[order])).expected
    spread = float(np.std(circles)) / np.sqrt(len(circles))
    assert abs(float(np.mean(circles)) - expected) < 4 * spread


def _found(wins):
    ahead = (wins > wins.T).astype(float)
    return ((ahead @ ahead) * ahead.T).sum() / 3


def test_stone_paper_scissors_is_sure_and_a_coin_is_not():
    names = ("stone", "scissors", "paper")
    rows = [(names[i], names[(i + 1) % 3], 1.0) for i in range(3) for _ in range(30)]
    table = make_table(*zip(*rows, strict=True))
    seen = directions(table_votes(BradleyTerry(), table), np.zeros(3))
    found = find_cycles(table.items, seen)
    assert (found.triples, found.found, found.significant) == (1, 1, 1)
    assert found.strongest[0].items == names
    assert found.strongest[0].won == (30, 30, 30)
    assert find_upsets(table.items, seen, np.array([True, False, False])).significant == 1
    items, coin = noise(12, 7)
    assert find_cycles(items, coin).found >= 10
    assert find_cycles(items, coin).significant == 0


def test_upsets_by_hand():
    items, seen = noise(9, 11)
    inside = np.arange(len(items)) < 4
    found = find_upsets(items, seen, inside)
    pairs = [(v, u) for v in range(4, len(items)) for u in range(4)]
    ahead = [(seen.p_value[v, u], items[v], items[u]) for v, u in pairs if seen.ahead[v, u]]
    assert found.pairs == sum(seen.wins[v, u] + seen.wins[u, v] > 0 for v, u in pairs)
    assert found.found == len(ahead)
    assert found.expected == pytest.approx(sum(seen.expected[v, u] for v, u in pairs))
    assert [(one.p_value, one.outsider, one.member) for one in found.strongest] == sorted(ahead, key=lambda a: a[0])[:5]


def test_nothing_compared():
    nothing = np.zeros((3, 3))
    found = find_cycles(("a", "b", "c"), Directions(nothing, nothing > 0, nothing + 1, nothing))
    assert (found.triples, found.found, found.significant, found.strongest) == (0, 0, 0, ())


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (1, 0), (0, 1), (7, 3), (3, 7), (40, 15)])
def test_wins_and_losses_against_the_integral(wins, losses):
    expected = 2 * quad(lambda p: (2 * p) ** wins * (2 - 2 * p) ** losses, 0.5, 1)[0]
    assert log_e_value(np.array(wins), np.array(losses)) == pytest.approx(math.log(expected), abs=1e-9)


@pytest.mark.parametrize("votes", [1, 2, 9, 30])
def test_its_mean_under_a_fair_coin_is_one(votes):
    wins = np.arange(votes + 1.0)
    values = np.exp(log_e_value(wins, votes - wins))
    assert float(binom.pmf(wins, votes, 0.5) @ values) == pytest.approx(1)
    assert float(binom.pmf(wins, votes, 0.4) @ values) < 1


@pytest.mark.parametrize(("total", "votes"), [(0.0, 1), (3.0, 4), (-5.0, 3), (20.0, 10)])
def test_measured_differences_against_the_integral(total, votes):
    sigma = 1.7
    value = quad(
        lambda mean: 2 * norm.pdf(mean, 0, sigma) * math.exp((mean * total - votes * mean**2 / 2) / sigma**2), 0, 30
    )[0]
    assert log_e_measured(np.array(total), np.array(votes), sigma) == pytest.approx(math.log(value), abs=1e-7)


def test_a_long_losing_record_is_no_evidence():
    assert np.exp(-np.maximum(log_e_value(np.array(0.0), np.array(5000.0)), 0)) == 1


@pytest.mark.parametrize("kind", ["certified", "ties", "gaussian"])
def test_directions_are_what_the_votes_say(kind):
    study = study_of(kind)
    seen, total = directions(analysis_of(kind).votes, THETA), np.zeros((6, 6))
    tie = study.problem.family.tie
    for first, second, outcome, _ in study.votes:
        i, j = ITEMS.index(first), ITEMS.index(second)
        step = outcome - tie if kind == "gaussian" else np.sign(outcome - tie)
        total[i, j] += step
        total[j, i] -= step
    np.testing.assert_array_equal(seen.ahead, total > 1e-12)
    assert not (seen.ahead & seen.ahead.T).any()


def test_how_probable_a_majority_is():
    seen = directions(analysis_of("certified").votes, THETA)
    for i, j in [(0, 2), (2, 0), (1, 2)]:
        votes = int(seen.wins[i, j] + seen.wins[j, i])
        p = 1 / (1 + math.exp(THETA[j] - THETA[i]))
        assert votes > 0
        assert seen.expected[i, j] == pytest.approx(float(binom.sf(votes // 2, votes, p)))
