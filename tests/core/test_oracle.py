"""Against an independent cone solver (tests/data/reference.json), closed forms, and weak duality."""

import math

import numpy as np
import pytest

from shortlist.core import oracle as oracle_module
from shortlist.core.estimate import Tie, project
from shortlist.core.families import BradleyTerry, Gaussian, make_family
from shortlist.core.oracle import GapNotReached, Oracle, best_mixture, solve_oracle
from shortlist.core.pairs import boundary, n_pairs, pair_number
from shortlist.errors import BadProblem, TieAtCutoff

from ..conftest import REFERENCE

WITH_RATE = [case for case in REFERENCE if "rate_lower" in case]
NEAR_TIES = np.array([3, 2, 1, 0.303, 0.3, -0.1, -0.103, -1, -2, -3])


def equally_spaced(n, gap):
    return (n - 1 - 2 * np.arange(n)) / 2 * gap


def value(family, theta, k, bound, w):
    """min_uv gamma_uv(w), one projection at a time."""
    ties = [Tie(better=int(v), worse=int(u)) for u, v in zip(*boundary(theta, k), strict=True)]
    return min(project(family, theta, w, bound, tie).gamma for tie in ties)


def assert_design(oracle, n):
    assert oracle.weights.shape == (n_pairs(n),)
    assert oracle.weights.min() >= 0
    assert oracle.weights.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("rel_gap", [1e-2, 1e-3])
@pytest.mark.parametrize("case", WITH_RATE, ids=lambda case: f"{case['family']}-{case['seed']}")
def test_reference_rates(case, rel_gap):
    found = solve_oracle(case["theta"], case["k"], case["family"], bound=case["R"], rel_gap=rel_gap)
    assert found.rate_upper <= (1 + rel_gap) * found.rate
    assert found.rate <= case["rate_upper"] * (1 + 1e-6)
    assert found.rate_upper >= case["rate_lower"] * (1 - 1e-6)
    assert_design(found, case["n"])


def test_equally_spaced_instance_of_the_paper():
    found = solve_oracle(equally_spaced(20, 0.25), 5)
    assert found.rate <= 0.00430
    assert found.rate_upper >= 0.00427
    assert found.rate_upper <= 1.01 * found.rate


@pytest.mark.parametrize(("family", "distance"), [("bradley-terry", None), ("gaussian", 1.3**2 / (2 * 0.7**2))])
def test_two_items_in_closed_form(family, distance):
    found = solve_oracle([0.4, -0.9], 1, family, sigma=0.7)
    expected = BradleyTerry().divergence(np.array(1.3), np.array(0.0)) if distance is None else distance
    assert found.rate == pytest.approx(float(expected), rel=1e-9)
    assert found.rate_upper == pytest.approx(found.rate, rel=1e-9)
    assert found.weights.tolist() == [1.0]


def test_three_gaussian_items_against_a_fine_grid():
    """Gaussian: gamma_uv = gap^2 / (2 R_uv), and three items have R in closed form."""
    a, b = np.meshgrid(np.linspace(0.001, 0.998, 400), np.linspace(0.001, 0.998, 400))
    c = 1 - a - b  # weights of (0,1), (0,2), (1,2)
    with np.errstate(divide="ignore", invalid="ignore"):
        conductances = a + b * c / (b + c), b + a * c / (a + c)
    worst = np.minimum(conductances[0] * 0.5**2, conductances[1] * 1.5**2) / 2
    best = worst[c > 0].max()
    found = solve_oracle([0.5, 0.0, -1.0], 1, "gaussian", rel_gap=1e-4)
    assert found.rate_upper >= best
    assert found.rate == pytest.approx(best, rel=5e-3)


@pytest.mark.parametrize("family", ["bradley-terry", "gaussian"])
def test_no_design_beats_the_upper_bound_and_the_rate_is_reached(family):
    rng = np.random.default_rng(3)
    theta = np.array([1.5, 0.8, 0.5, -0.3, -1.0, -1.5])
    found = solve_oracle(theta, 3, family)
    model = make_family(family)
    assert value(model, theta, 3, 10.0, found.weights) == pytest.approx(found.rate, rel=1e-7)
    for concentration in (0.1, 1.0, 10.0):
        near = rng.dirichlet(1e-3 + 50 * concentration * found.weights)
        far = rng.dirichlet(np.full(n_pairs(6), concentration))
        for w in (near, far):
            assert value(model, theta, 3, 10.0, 0.999 * w + 0.001 / len(w)) <= found.rate_upper


def test_relabelling_items_relabels_the_design():
    theta, order = NEAR_TIES, np.random.default_rng(1).permutation(10)
    plain, mixed = solve_oracle(theta, 5, rel_gap=1e-3), solve_oracle(theta[order], 5, rel_gap=1e-3)
    assert mixed.rate == pytest.approx(plain.rate, rel=1e-3)
    back = solve_oracle(theta[order], 5, rel_gap=2e-3, start=relabel(plain.weights, order))
    assert back.rate == pytest.approx(plain.rate, rel=1e-5)


def relabel(w, order):
    n = len(order)
    return np.array([w[pair_number(n, order[i], order[j])] for i in range(n) for j in range(i + 1, n)])


def test_shifting_utilities_changes_nothing():
    plain, shifted = solve_oracle(NEAR_TIES, 5), solve_oracle(NEAR_TIES + 7, 5)
    assert shifted.rate == pytest.approx(plain.rate, rel=1e-6)


def test_reversing_utilities_swaps_top_and_bottom():
    plain, upside_down = solve_oracle(NEAR_TIES, 3, rel_gap=1e-3), solve_oracle(-NEAR_TIES, 7, rel_gap=1e-3)
    assert upside_down.rate == pytest.approx(plain.rate, rel=1e-3)


def test_best_of_many_equals():
    """One best item and equal rivals: by symmetry one number fixes the design, found here on a grid."""
    found = solve_oracle([1.0, 0, 0, 0, 0], 1, "gaussian", rel_gap=1e-3)
    best_pairs = found.weights[:4]
    np.testing.assert_allclose(best_pairs, best_pairs.mean(), rtol=1e-6)
    a = np.linspace(0.001, 0.25, 2000)  # weight of each pair of the best item; the six others share the rest
    conductance = 1 / symmetric_resistance(a, (1 - 4 * a) / 6)
    best = conductance.max() / 2
    assert found.rate <= best * (1 + 1e-6)
    assert found.rate_upper >= best * (1 - 1e-6)


def symmetric_resistance(a, b):
    """Between the best item and one of four rivals: a to each rival, b among rivals."""
    laplacian = np.empty((len(a), 4, 4))
    laplacian[:] = -b[:, None, None]
    laplacian[:, range(4), range(4)] = (a + 3 * b)[:, None]
    return np.linalg.inv(laplacian)[:, 0, 0]


def test_pairs_away_from_the_line_can_bind():
    found = solve_oracle(NEAR_TIES, 5)
    gammas = {
        (u, v): project(BradleyTerry(), NEAR_TIES, found.weights, 10.0, Tie(better=v, worse=u)).gamma
        for u in range(5)
        for v in range(5, 10)
    }
    assert min(gammas.values()) == pytest.approx(found.rate, rel=1e-6)
    assert gammas[3, 6] < 1.05 * found.rate  # neither item is next to the line


def test_twice_the_noise_is_a_quarter_of_the_rate():
    sharp, dull = (solve_oracle(NEAR_TIES, 5, Gaussian(sigma)) for sigma in (1.0, 2.0))
    assert dull.rate == pytest.approx(sharp.rate / 4, rel=1e-2)


def test_a_tight_box_makes_it_no_harder():
    theta = [1.0, 0.5, -0.5, -1.0]
    assert solve_oracle(theta, 2, bound=1.0).rate_upper >= solve_oracle(theta, 2).rate


def test_a_solution_is_its_own_best_start(monkeypatch):
    found = solve_oracle(NEAR_TIES, 5)
    monkeypatch.setattr(oracle_module, "MAX_ROUNDS", 1)
    again = solve_oracle(NEAR_TIES, 5, start=found.weights)
    assert again.rate == pytest.approx(found.rate, rel=1e-4)


def test_a_start_with_a_single_pair_still_arrives():
    start = np.zeros(n_pairs(5))
    start[0] = 3.0
    found = solve_oracle([2.0, 1.0, 0.0, -1.0, -2.0], 2, start=start)
    assert found.rate_upper <= 1.01 * found.rate


def test_solving_twice_gives_the_same_bits():
    first, second = solve_oracle(NEAR_TIES, 5), solve_oracle(NEAR_TIES, 5)
    assert (first.rate, first.rate_upper) == (second.rate, second.rate_upper)
    np.testing.assert_array_equal(first.weights, second.weights)


def test_best_mixture_solves_matching_pennies():
    assert best_mixture(np.array([[1.0, 0.0], [0.0, 3.0]]), 1.0) == pytest.approx([0.75, 0.25])


def test_lower_bound():
    oracle = Oracle(rate=0.009, rate_upper=0.01, weights=np.ones(1))
    assert oracle.lower_bound(0.1) == pytest.approx((0.1 * math.log(1 / 9) + 0.9 * math.log(9)) / 0.01)
    assert oracle.lower_bound(0.9) == 0.0
    with pytest.raises(BadProblem, match="delta"):
        oracle.lower_bound(0.0)


@pytest.mark.parametrize(
    ("utilities", "k", "options", "message"),
    [
        ([1.0], 1, {}, "at least two"),
        ([[1.0, 2.0]], 1, {}, "flat"),
        ([1.0, math.nan], 1, {}, "finite"),
        ([1.0, math.inf], 1, {}, "finite"),
        ([1.0, 2.0], 0, {}, "k is 0"),
        ([1.0, 2.0], 2, {}, "from 1 to 1"),
        ([5.0, -5.0], 1, {"bound": 4.0}, "outside the bound"),
        ([5.0, -5.0], 1, {"bound": math.nan}, "bound"),
        ([1.0, 0.0], 1, {"rel_gap": 0.0}, "rel_gap"),
        ([1.0, 0.0], 1, {"start": np.ones(2)}, "1 weights"),
        ([1.0, 0.0, -1.0], 1, {"start": np.array([-1.0, 1.0, 1.0])}, "negative"),
        ([1.0, 0.0, -1.0], 1, {"start": np.zeros(3)}, "zero"),
    ],
)
def test_bad_input(utilities, k, options, message):
    with pytest.raises(BadProblem, match=message):
        solve_oracle(utilities, k, **options)


def test_a_tie_at_the_line_has_no_answer():
    with pytest.raises(TieAtCutoff):
        solve_oracle([1.0, 0.0, 0.0, -1.0], 2)


def test_says_how_far_it_came(monkeypatch):
    monkeypatch.setattr(oracle_module, "MAX_ROUNDS", 3)
    with pytest.raises(GapNotReached, match="after 3 rounds"):
        solve_oracle(NEAR_TIES, 5)
