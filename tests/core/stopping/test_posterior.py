"""The Bayesian stopping rule against linear algebra where that is exact, and against a general optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from shortlist.core import loop
from shortlist.core.evidence import Evidence
from shortlist.core.families import BradleyTerry, Gaussian
from shortlist.core.pairs import all_pairs
from shortlist.core.problem import Problem
from shortlist.core.ridge import laplace
from shortlist.core.sampling.uniform import Uniform
from shortlist.core.stopping.posterior import Posterior, chances, error
from shortlist.core.tally import Vote, empty_tally, tally_votes
from shortlist.errors import BadProblem

from ...conftest import random_votes


def gaussian_votes(n, votes, sigma, seed=3):
    rng = np.random.default_rng(seed)
    theta = 2 * rng.normal(size=n)
    first = rng.integers(0, n, votes)
    second = (first + rng.integers(1, n, votes)) % n
    return first, second, theta[first] - theta[second] + sigma * rng.normal(size=votes)


@pytest.mark.parametrize("scale", [0.3, 1.5, 40.0])
def test_gaussian_posterior_is_the_exact_one(scale):
    n, sigma = 6, 0.7
    first, second, outcome = gaussian_votes(n, 50, sigma)
    design = np.eye(n)[first] - np.eye(n)[second]
    precision = np.eye(n) / scale**2 + design.T @ design / sigma**2
    family = Gaussian(sigma)
    posterior = laplace(family, tally_votes(family, first, second, outcome, n=n), scale)
    np.testing.assert_allclose(posterior.theta, np.linalg.solve(precision, design.T @ outcome / sigma**2), atol=1e-9)
    np.testing.assert_allclose(posterior.covariance, np.linalg.inv(precision), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("votes", [1, 8, 2000])
def test_the_most_probable_utilities_agree_with_a_general_optimiser(votes):
    n, scale = 5, 1.5
    first, second, outcome = random_votes(np.random.default_rng(votes), n, votes, 1.5)

    def loss(theta):
        eta = theta[first] - theta[second]
        return np.sum(np.logaddexp(0, eta) - outcome * eta) + theta @ theta / (2 * scale**2)

    found = laplace(BradleyTerry(), tally_votes(BradleyTerry(), first, second, outcome, n=n), scale)
    np.testing.assert_allclose(found.theta, minimize(loss, np.zeros(n), tol=1e-10).x, atol=1e-4)
    warm = laplace(BradleyTerry(), tally_votes(BradleyTerry(), first, second, outcome, n=n), scale, np.full(n, 30.0))
    np.testing.assert_allclose(warm.theta, found.theta, atol=1e-7)


def test_two_items_in_closed_form():
    """theta_0 - theta_1 has prior variance 2 scale^2 and mean of m votes: a normal with known posterior."""
    votes, mean, sigma, scale = 9, 0.8, 2.0, 1.5
    family, problem = Gaussian(sigma), Problem(2, 1, 0.05, Gaussian(sigma))
    tally = tally_votes(family, [0] * votes, [1] * votes, [mean] * votes)
    precision = votes / sigma**2 + 1 / (2 * scale**2)
    lead, spread = votes * mean / sigma**2 / precision, precision**-0.5
    verdict = Posterior(scale).examine(Posterior(scale).start(problem), problem, Evidence(tally))
    assert verdict.error_bound == pytest.approx(norm.cdf(-lead / spread))
    assert verdict.top == (0,)
    tolerant = Problem(2, 1, 0.05, family, tolerance=0.3)
    assert error(tolerant, laplace(family, tally, scale)) == pytest.approx(norm.cdf(-(lead + 0.3) / spread))
    assert chances(problem, tally, scale, 40_000)[1] == pytest.approx(norm.cdf(-lead / spread), abs=0.01)


def test_chances_sum_to_k_and_repeat():
    first, second, outcome = random_votes(np.random.default_rng(5), 9, 300, 1.0)
    tally = tally_votes(BradleyTerry(), first, second, outcome, n=9)
    for k in (1, 4, 8):
        found = chances(Problem(9, k, 0.1), tally)
        assert found.sum() == pytest.approx(k, abs=1e-12)
        assert np.all((found >= 0) & (found <= 1))
        np.testing.assert_array_equal(found, chances(Problem(9, k, 0.1), tally))


def test_no_votes_and_unconnected_items_break_nothing():
    problem, stopping = Problem(6, 2, 0.1), Posterior()
    verdict = stopping.examine(stopping.start(problem), problem, Evidence(empty_tally(6)))
    assert (verdict.done, verdict.error_bound, verdict.votes) == (False, 1.0, 0)
    np.testing.assert_allclose(chances(problem, empty_tally(6)), 1 / 3, atol=0.03)
    for weight, done in ((10.0, False), (1e6, True)):  # a prior can place items 4 and 5, which were never seen
        apart = tally_votes(BradleyTerry(), [0, 2], [1, 3], [1.0, 1.0], [weight, weight], 6)
        verdict = stopping.examine(stopping.start(problem), problem, Evidence(apart))
        assert (verdict.top, verdict.done) == ((0, 2), done)


def test_one_sided_votes_under_extreme_priors_break_nothing():
    for scale in (1e-9, 1e-3, 1e3, 1e9):
        for weight in (1.0, 1e6, 1e12):
            tally = tally_votes(BradleyTerry(), [0, 0, 1], [1, 2, 2], [1.0, 1.0, 1.0], [weight] * 3, 4)
            assert np.all(np.isfinite(laplace(BradleyTerry(), tally, scale).theta))
            assert chances(Problem(4, 1, 0.1), tally, scale, 100).sum() == pytest.approx(1)


def test_a_symmetrical_problem_has_symmetrical_chances():
    first, second = all_pairs(4)
    tally = tally_votes(BradleyTerry(), first, second, np.full(6, 0.5), np.full(6, 20.0))
    posterior = laplace(BradleyTerry(), tally)
    np.testing.assert_allclose(posterior.theta, 0, atol=1e-12)
    assert np.ptp(posterior.covariance.diagonal()) < 1e-12
    assert error(Problem(4, 2, 0.1), posterior) == 1.0
    np.testing.assert_allclose(chances(Problem(4, 2, 0.1), tally), 0.5, atol=0.03)


def test_relabelling_and_swapping_sides_relabel_the_verdict():
    rng = np.random.default_rng(8)
    first, second, outcome = random_votes(rng, 6, 300, 1.2)
    order, problem, stopping = rng.permutation(6), Problem(6, 2, 0.05), Posterior()

    def verdict(*votes):
        evidence = Evidence(tally_votes(BradleyTerry(), *votes, n=6))
        return stopping.examine(stopping.start(problem), problem, evidence)

    plain, swapped = verdict(first, second, outcome), verdict(second, first, 1 - outcome)
    moved = verdict(order[first], order[second], outcome)
    assert moved.error_bound == pytest.approx(plain.error_bound) == pytest.approx(swapped.error_bound)
    assert sorted(order[list(plain.top)]) == list(moved.top)
    assert plain.top == swapped.top


def test_more_votes_and_a_tolerance_lower_the_error():
    first, second = all_pairs(4)
    wins = 1 / (1 + np.exp(0.5 * (first - second)))
    bounds = []
    for weight in (10.0, 40.0, 160.0):
        tally = tally_votes(BradleyTerry(), first, second, wins, np.full(6, weight))
        bounds.append(error(Problem(4, 2, 0.1), laplace(BradleyTerry(), tally)))
        assert error(Problem(4, 2, 0.1, tolerance=0.1), laplace(BradleyTerry(), tally)) < bounds[-1]
    assert bounds == sorted(bounds, reverse=True)


def play(problem, stopping, theta, seed=0):
    rng, state = np.random.default_rng(seed), loop.start(problem, Uniform(), stopping)
    first, second = all_pairs(problem.n)
    while not state.verdict.done:
        pair = loop.ask(state)
        i, j = int(first[pair]), int(second[pair])
        state = loop.tell(state, Vote(i, j, float(rng.random() < 1 / (1 + np.exp(theta[j] - theta[i])))))
    return state


def test_a_run_ends_certified_and_says_what_that_means():
    state = play(Problem(4, 2, 0.05), Posterior(every=0.0), np.array([1.5, 1.0, -1.0, -1.5]))
    verdict = state.verdict
    assert (verdict.reason, verdict.top) == ("certified", (0, 1))
    assert verdict.error_bound <= 0.05
    assert verdict.certainly_in == verdict.certainly_out == ()
    assert verdict.undecided == (0, 1, 2, 3)
    assert "N(0, 1.5²)" in verdict.guarantee
    assert "no worst-case promise" in verdict.guarantee
    cold = Posterior().examine(Posterior().start(state.problem), state.problem, state.evidence)
    assert cold.error_bound == pytest.approx(verdict.error_bound, rel=1e-6)


def test_the_budget_ends_a_run():
    verdict = play(Problem(4, 2, 0.001, max_votes=25), Posterior(), np.zeros(4)).verdict
    assert (verdict.done, verdict.reason, verdict.votes) == (True, "budget", 25)
    assert 0.001 < verdict.error_bound <= 1


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), True, "wide"])
def test_a_bad_scale_is_refused(scale):
    with pytest.raises(BadProblem, match="scale"):
        Posterior(scale)
    with pytest.raises(BadProblem, match="scale"):
        chances(Problem(3, 1, 0.1), empty_tally(3), scale)


def test_a_bad_interval_is_refused():
    with pytest.raises(BadProblem, match="every"):
        Posterior(every=-0.1)
