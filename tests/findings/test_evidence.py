"""E-values against integrals, and against what makes them e-values: a mean of 1 under a fair coin."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, norm

from shortlist.findings.ballots import study_ballots
from shortlist.findings.evidence import directions, log_e_measured, log_e_value
from tests.findings.studies import ITEMS, KINDS, THETA


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
    study = KINDS[kind]()
    ballots, _ = study_ballots(len(ITEMS), study.problem.family, study.entries)
    seen, total = directions(ballots, THETA), np.zeros((6, 6))
    tie = study.problem.family.tie
    for first, second, outcome, _ in study.votes:
        i, j = ITEMS.index(first), ITEMS.index(second)
        step = outcome - tie if kind == "gaussian" else np.sign(outcome - tie)
        total[i, j] += step
        total[j, i] -= step
    np.testing.assert_array_equal(seen.ahead, total > 1e-12)
    assert not (seen.ahead & seen.ahead.T).any()


def test_how_probable_a_majority_is():
    study = KINDS["certified"]()
    ballots, _ = study_ballots(len(ITEMS), study.problem.family, study.entries)
    seen = directions(ballots, THETA)
    for i, j in [(0, 2), (2, 0), (1, 2)]:
        votes = int(seen.wins[i, j] + seen.wins[j, i])
        p = 1 / (1 + math.exp(THETA[j] - THETA[i]))
        assert votes > 0
        assert seen.expected[i, j] == pytest.approx(float(binom.sf(votes // 2, votes, p)))
