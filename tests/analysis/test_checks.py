"""Chi-square by hand, and its p-value against a parametric bootstrap."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2, kstest

from shortlist.analysis.checks import fit_test
from shortlist.analysis.votes import table_votes
from shortlist.core.families import BradleyTerry, Gaussian
from shortlist.core.problem import Problem
from shortlist.votes.table import make_table

NAMES = ("a", "b", "c", "d", "e")


def fit_of(outcomes, family=None, n=3):
    """FitTest of outcomes listed pair by pair."""
    family = BradleyTerry() if family is None else family
    rows = [(NAMES[i], NAMES[j], y) for (i, j), many in outcomes.items() for y in many]
    table = make_table(*zip(*rows, strict=True))
    return fit_test(Problem(n, 1, 0.05, family), table.items, table_votes(family, table))


def wins(won, lost):
    return [1.0] * won + [0.0] * lost


def test_three_items_by_hand():
    counts = {(0, 1): (30, 10), (0, 2): (18, 12), (1, 2): (14, 16)}
    found = fit_of({pair: wins(*score) for pair, score in counts.items()})

    def minus_log_likelihood(theta):
        p = [1 / (1 + np.exp(theta[j] - theta[i])) for i, j in counts]
        return -sum(won * np.log(q) + lost * np.log(1 - q) for q, (won, lost) in zip(p, counts.values(), strict=True))

    theta = minimize(minus_log_likelihood, np.zeros(3), tol=1e-12).x
    value = 0.0
    for (i, j), (won, lost) in counts.items():
        p, votes = 1 / (1 + np.exp(theta[j] - theta[i])), won + lost
        value += (won - votes * p) ** 2 / (votes * p) + (lost - votes * (1 - p)) ** 2 / (votes * (1 - p))
    assert found.chi_square == pytest.approx(value, rel=1e-4)
    assert found.degrees_of_freedom == 1
    assert found.p_value == pytest.approx(chi2.sf(value, 1), rel=1e-4)
    assert found.dispersion == 1


def test_gaussian_by_hand():
    family, rng = Gaussian(2.0), np.random.default_rng(1)
    outcomes = {pair: rng.normal(0.3, 2.0, 20).tolist() for pair in combinations(range(4), 2)}
    found = fit_of(outcomes, family, 4)
    design = np.array([np.eye(4)[i] - np.eye(4)[j] for i, j in outcomes])
    means = np.array([np.mean(many) for many in outcomes.values()])
    residual = means - design @ np.linalg.lstsq(design, means, rcond=None)[0]
    assert found.chi_square == pytest.approx(20 / 4 * residual @ residual)
    assert found.degrees_of_freedom == 3
    assert found.noise == pytest.approx(np.mean([np.var(many, ddof=1) for many in outcomes.values()]) / 4)


def drawn(rng, theta, votes, draw):
    found = []
    for _ in range(300):
        outcomes = {
            (i, j): draw(rng, 1 / (1 + np.exp(theta[j] - theta[i])), votes) for i, j in combinations(range(5), 2)
        }
        found.append(fit_of(outcomes, n=5).p_value)
    return np.array(found)


def coin(rng, p, votes):
    return (rng.random(votes) < p).astype(float).tolist()


def with_ties(rng, p, votes):
    """Ties half of the time, and the expectation of the model."""
    return [0.5 if rng.random() < 0.5 else float(rng.random() < 2 * p - 0.5) for _ in range(votes)]


@pytest.mark.parametrize("draw", [coin, with_ties])
def test_p_values_are_even_where_the_model_holds(draw):
    """A parametric bootstrap: the test's own p-values on 300 worlds from the model are spread evenly."""
    theta = np.array([0.4, 0.3, 0.0, -0.2, -0.4])
    p_values = drawn(np.random.default_rng(4), theta, 25, draw)
    assert kstest(p_values, "uniform").pvalue > 1e-3
    assert abs(np.mean(p_values < 0.1) - 0.1) < 0.06


def test_a_cycle_does_not_fit():
    found = fit_of({(0, 1): wins(40, 10), (1, 2): wins(40, 10), (0, 2): wins(10, 40)})
    assert found.p_value < 1e-6
    assert found.residuals[0].z > 3
    assert found.residuals[0].share > found.residuals[0].expected


def test_pairs_with_few_votes_are_left_out():
    few = fit_of({(0, 1): wins(4, 5), (1, 2): wins(4, 5), (0, 2): wins(9, 0)})
    assert (few.pairs, few.p_value) == (0, None)
    some = fit_of({(0, 1): wins(20, 5), (1, 2): wins(20, 5), (0, 2): wins(0, 9)})
    assert (some.pairs, some.degrees_of_freedom, some.p_value) == (2, 0, None)
    assert some.chi_square == pytest.approx(0, abs=1e-9)
