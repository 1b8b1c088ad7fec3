import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import shortlist
from shortlist.core.estimate import Tie, fit, log_likelihood, project, reverse, screen
from shortlist.core.families import BradleyTerry, Gaussian, make_family
from shortlist.core.pairs import all_pairs, boundary, n_pairs
from shortlist.core.tally import expected_tally, tally_votes
from shortlist.errors import BadInput

from ..conftest import case_tally, random_votes


def test_reference_utilities(case):
    family = make_family(case["family"])
    np.testing.assert_allclose(fit(family, case_tally(case), case["R"]), case["theta_hat"], atol=1e-5)


def test_reference_projection(case):
    family = make_family(case["family"])
    inside, outside = case["tie"]
    found = project(family, np.array(case["theta"]), np.array(case["w"]), case["R"], Tie(outside, inside))
    assert found.gamma == pytest.approx(case["gamma"], abs=1e-6)
    np.testing.assert_allclose(found.theta_alt, case["projection"], atol=1e-5)


def slsqp(family, tally, bound, tie):
    constraints = [{"type": "eq", "fun": np.sum}]
    if tie:
        constraints.append({"type": "eq", "fun": lambda x: x[tie.worse] - x[tie.better] + tie.margin})
    found = minimize(
        lambda x: -log_likelihood(family, tally, x),
        np.zeros(tally.n),
        method="SLSQP",
        bounds=[(-bound, bound)] * tally.n,
        constraints=constraints,
        options={"ftol": 1e-13, "maxiter": 500},
    )
    return -found.fun


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(2, 8),
    votes=st.integers(1, 40),
    bound=st.sampled_from([1.0, 3.0, 10.0]),
    spread=st.sampled_from([0.5, 3.0]),
    margin=st.sampled_from([None, 0.0, 0.3]),
    family=st.sampled_from([BradleyTerry(), Gaussian(0.7)]),
)
def test_never_beaten_by_slsqp_and_always_feasible(seed, n, votes, bound, spread, margin, family):
    """Sparse votes: undefeated items, disconnected graphs, items on the box."""
    rng = np.random.default_rng(seed)
    tally = tally_votes(family, *random_votes(rng, n, votes, spread), n=n)
    tie = None if margin is None or n < 3 else Tie(*map(int, rng.choice(n, 2, replace=False)), margin)
    theta = fit(family, tally, bound, tie=tie)
    assert abs(theta.sum()) < 1e-8
    assert np.abs(theta).max() <= bound + 1e-12
    if tie:
        assert theta[tie.worse] == pytest.approx(theta[tie.better] - tie.margin, abs=1e-9)
    assert log_likelihood(family, tally, theta) >= slsqp(family, tally, bound, tie) - 1e-7


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), votes=st.integers(1, 60))
def test_a_warm_start_changes_nothing(seed, votes):
    rng = np.random.default_rng(seed)
    family = BradleyTerry()
    tally = tally_votes(family, *random_votes(rng, 7, votes, 2.0), n=7)
    cold = log_likelihood(family, tally, fit(family, tally, 10.0))
    warm = log_likelihood(family, tally, fit(family, tally, 10.0, rng.uniform(-20, 20, 7)))
    assert warm == pytest.approx(cold, abs=1e-7)


def test_a_cycle_has_equal_utilities():
    np.testing.assert_allclose(shortlist.fit([0, 1, 2], [1, 2, 0], [1, 1, 1]), 0, atol=1e-9)


def test_two_items_in_closed_form():
    theta = shortlist.fit([0], [1], [0.8], weight=[10])
    assert theta[0] - theta[1] == pytest.approx(np.log(0.8 / 0.2), abs=1e-8)
    theta = shortlist.fit([0], [1], [0.8], family="gaussian", sigma=3.0)
    assert theta[0] - theta[1] == pytest.approx(0.8)


def test_gaussian_fit_is_least_squares():
    rng = np.random.default_rng(5)
    first, second, _ = random_votes(rng, 6, 40, 1.0)
    outcome = rng.normal(size=40)
    design = np.eye(6)[first] - np.eye(6)[second]
    expected = np.linalg.lstsq(design, outcome, rcond=None)[0]
    np.testing.assert_allclose(shortlist.fit(first, second, outcome, family="gaussian", sigma=0.4), expected, atol=1e-8)


def test_a_never_beaten_item_sits_exactly_on_the_box():
    assert shortlist.fit([0], [1], [1.0]).tolist() == [10.0, -10.0]
    theta = shortlist.fit([0, 0, 1, 2], [1, 2, 2, 1], [1, 1, 1, 1], bound=4.0)
    assert theta[0] == 4.0
    assert theta[1] == pytest.approx(-2.0)


def test_items_that_nothing_connects_are_centred():
    theta = shortlist.fit([0, 0, 2, 2], [1, 1, 3, 3], [1, 0.5, 0, 0.5], n=5)
    gap = np.log(3.0)
    np.testing.assert_allclose(theta, [gap / 2, -gap / 2, -gap / 2, gap / 2, 0], atol=1e-7)
    assert shortlist.fit([], [], [], n=3).tolist() == [0, 0, 0]


def test_ten_million_votes_are_as_easy_as_ten():
    few = shortlist.fit([0, 1, 2], [1, 2, 0], [0.7, 0.6, 0.3], weight=[10, 10, 10])
    many = shortlist.fit([0, 1, 2], [1, 2, 0], [0.7, 0.6, 0.3], weight=[1e7, 1e7, 1e7])
    np.testing.assert_allclose(few, many, atol=1e-9)


@pytest.mark.parametrize("family", [BradleyTerry(), Gaussian()], ids=repr)
def test_projection_is_the_nearest_of_all_reversed_models(family):
    rng = np.random.default_rng(2)
    theta = np.array([1.0, 0.4, -0.2, -1.2])
    w = rng.dirichlet(np.ones(n_pairs(4)))
    nearest = project(family, theta, w, 10.0, Tie(2, 1))
    assert nearest.theta_alt[1] == pytest.approx(nearest.theta_alt[2])
    first, second = all_pairs(4)
    for _ in range(2000):
        other = nearest.theta_alt + rng.normal(size=4) * rng.choice([0.01, 1.0])
        other[1] = min(other[1], other[2])
        distance = w @ family.divergence(theta[first] - theta[second], other[first] - other[second])
        assert distance >= nearest.gamma - 1e-12


def test_gaussian_projection_in_closed_form():
    """gamma = gap^2 / (2 R) with R the effective resistance: two resistors 1/w in series beside one."""
    theta, w = np.array([1.0, 0.0, -1.0]), np.array([0.2, 0.5, 0.3])
    resistance = 1 / (0.5 + 1 / (1 / 0.2 + 1 / 0.3))
    assert project(Gaussian(), theta, w, 10.0, Tie(2, 0)).gamma == pytest.approx(2.0**2 / (2 * resistance))


def test_a_model_that_is_reversed_already_stays():
    theta = np.array([0.0, 1.0])
    found = project(BradleyTerry(), theta, np.ones(1), 10.0, Tie(1, 0))
    assert found.gamma == 0
    np.testing.assert_array_equal(found.theta_alt, theta)
    tally = tally_votes(BradleyTerry(), [0], [1], [0.3])
    assert reverse(BradleyTerry(), tally, 10.0, theta, Tie(1, 0)) is theta


@pytest.mark.parametrize("bound", [0.0, -1.0, float("nan"), float("inf"), 1e6])
def test_a_bad_bound_is_refused(bound):
    with pytest.raises(BadInput, match="bound"):
        shortlist.fit([0], [1], [1.0], bound=bound)


def test_rows_of_weight_zero_are_no_votes():
    theta = shortlist.fit([0, 1, 2], [1, 2, 3], [1, 0, 0.5], weight=[1, 0, 1], n=40)
    np.testing.assert_allclose(theta[[0, 1, 2, 3]], [10, -10, 0, 0], atol=1e-6)
    assert not shortlist.certify([0, 1], [1, 2], [1.0, 1.0], k=1, weight=[0, 0]).done


def test_the_box_is_reached_beside_many_votes():
    assert shortlist.fit([0], [1], [1.0], bound=15.0).tolist() == [15.0, -15.0]
    theta = shortlist.fit([0, 1], [1, 2], [0.3, 1.0], weight=[1e12, 1])
    assert theta[2] == -10.0
    assert theta[1] - theta[0] == pytest.approx(np.log(7 / 3))


def test_gaussian_outcomes_beyond_the_box_end_on_it():
    np.testing.assert_allclose(
        shortlist.fit([0, 1], [1, 2], [1e11, -1e11], family="gaussian"), [5.0, -10.0, 5.0], atol=1e-6
    )


# --- screening: which boundary pair is the hardest, to second order ---

FIVE = np.array([0.9, 0.5, 0.1, -0.3, -1.2])


@pytest.mark.parametrize("margin", [0.0, 0.2])
def test_for_gaussian_votes_the_approximation_is_exact(margin):
    w = np.random.default_rng(1).dirichlet(np.ones(n_pairs(5)))
    inside, outside = boundary(FIVE, 2)
    found = screen(Gaussian(0.8), expected_tally(Gaussian(0.8), FIVE, w), FIVE, inside, outside, margin)
    for m in range(len(inside)):
        exact = project(Gaussian(0.8), FIVE, w, 10.0, Tie(int(outside[m]), int(inside[m]), margin))
        assert found.values[m] == pytest.approx(exact.gamma)
        np.testing.assert_allclose(found.guess(FIVE, m), exact.theta_alt, atol=1e-9)


@pytest.mark.parametrize(("scale", "accuracy"), [(1.0, 0.5), (0.1, 0.005), (0.01, 0.00005)])
def test_for_close_items_it_is_exact_to_second_order_and_finds_the_worst_pair(scale, accuracy):
    """The third derivative of the log-partition vanishes at a tie, so the relative error falls like the gap squared."""
    w = np.random.default_rng(2).dirichlet(np.ones(n_pairs(5)))
    family, theta = BradleyTerry(), scale * FIVE
    inside, outside = boundary(theta, 2)
    found = screen(family, expected_tally(family, theta, w), theta, inside, outside, 0.0)
    exact = [project(family, theta, w, 10.0, Tie(int(v), int(u))).gamma for u, v in zip(inside, outside, strict=True)]
    assert np.argmin(found.values) == np.argmin(exact)
    np.testing.assert_allclose(found.values, exact, rtol=accuracy)
