import numpy as np
import pytest

from shortlist.core.estimate import Tie, project, screen
from shortlist.core.families import BradleyTerry, Gaussian
from shortlist.core.pairs import boundary, n_pairs
from shortlist.core.tally import expected_tally

THETA = np.array([0.9, 0.5, 0.1, -0.3, -1.2])


@pytest.mark.parametrize("margin", [0.0, 0.2])
def test_for_gaussian_votes_the_approximation_is_exact(margin):
    w = np.random.default_rng(1).dirichlet(np.ones(n_pairs(5)))
    inside, outside = boundary(THETA, 2)
    found = screen(Gaussian(0.8), expected_tally(Gaussian(0.8), THETA, w), THETA, inside, outside, margin)
    for m in range(len(inside)):
        exact = project(Gaussian(0.8), THETA, w, 10.0, Tie(int(outside[m]), int(inside[m]), margin))
        assert found.values[m] == pytest.approx(exact.gamma)
        np.testing.assert_allclose(found.guess(THETA, m), exact.theta_alt, atol=1e-9)


@pytest.mark.parametrize(("scale", "accuracy"), [(1.0, 0.5), (0.1, 0.005), (0.01, 0.00005)])
def test_for_close_items_it_is_exact_to_second_order_and_finds_the_worst_pair(scale, accuracy):
    """The third derivative of the log-partition vanishes at a tie, so the relative error falls like the gap squared."""
    w = np.random.default_rng(2).dirichlet(np.ones(n_pairs(5)))
    family, theta = BradleyTerry(), scale * THETA
    inside, outside = boundary(theta, 2)
    found = screen(family, expected_tally(family, theta, w), theta, inside, outside, 0.0)
    exact = [project(family, theta, w, 10.0, Tie(int(v), int(u))).gamma for u, v in zip(inside, outside, strict=True)]
    assert np.argmin(found.values) == np.argmin(exact)
    np.testing.assert_allclose(found.values, exact, rtol=accuracy)
