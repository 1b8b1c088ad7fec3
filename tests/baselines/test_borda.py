"""The radius of the Borda procedures, and both where they can be computed by hand."""

import numpy as np
import pytest
from scipy.stats import binomtest

from shortlist.baselines import run_baseline
from shortlist.baselines.borda import active_ranking, active_ranking_tight, borda_lucb, error_level, radius, sort_items
from shortlist.errors import BadProblem
from tests.baselines.plain import alpha
from tests.baselines.worlds import certain


@pytest.mark.parametrize("t", [1, 2, 17, 10**6])
def test_the_radius_is_the_papers(t):
    assert radius(error_level(20, 0.01), t) == pytest.approx(alpha(t, 20, 0.01), rel=1e-12)
    assert radius(error_level(20, 0.01), np.array([t]))[0] == pytest.approx(alpha(t, 20, 0.01), rel=1e-12)


def test_by_hand():
    """d = 0.001: log 1000 + 0.75 log log 1000 = 6.9078 + 1.4495; at t = 2 the last term is 0."""
    assert radius(error_level(10, 0.01), 2) == pytest.approx(np.sqrt(8.3573 / 4), rel=1e-5)


def test_a_delta_without_a_radius_is_refused():
    assert np.isfinite(radius(error_level(2, 0.2), 1))
    wins, rng = np.full((2, 2), 0.5), np.random.default_rng(1)
    for name in ("borda-lucb", "active-ranking", "active-ranking-tight"):
        with pytest.raises(BadProblem, match=r"0\.2 or less"):
            run_baseline(name, wins, 1, 0.21, rng)
    with pytest.raises(BadProblem, match=r"below 0\.5"):
        run_baseline("seeks-v2", wins, 1, 0.5, rng)


@pytest.mark.parametrize("d", [0.1, 0.02])
def test_fair_coins_leave_the_radius_less_often_than_allowed(d):
    paths, horizon = 3000, 3000
    t = np.arange(1, horizon + 1)
    heads = np.cumsum(np.random.default_rng(3).random((paths, horizon), dtype=np.float32) < 0.5, axis=1, dtype=np.int32)
    left = int(np.any(heads / t - 0.5 > radius(error_level(1, d), t), axis=1).sum())
    assert binomtest(left, paths, d, alternative="greater").pvalue > 1e-3


def test_borda_lucb_of_two_ends_where_the_radii_part():
    votes = next(t for t in range(1, 10_000) if alpha(t, 2, 0.01) <= 0.5)
    found = borda_lucb(certain(2), 1, 0.01, np.random.default_rng(1))
    assert (found.top, found.comparisons, found.certified) == ((0,), 2 * votes, True)


@pytest.mark.parametrize(("procedure", "c"), [(active_ranking, 4), (active_ranking_tight, 2)])
def test_active_ranking_of_two_ends_where_the_radius_allows(procedure, c):
    """Scores are 1 and 0 throughout."""
    rounds = next(t for t in range(1, 10_000) if c * alpha(t, 2, 0.01) < 1)
    found = procedure(certain(2), 1, 0.01, np.random.default_rng(1))
    assert (found.top, found.comparisons, found.certified) == ((0,), 2 * rounds, True)


def test_sorting_is_stable():
    won = np.array([3, 5, 3, 0, 5, 3])
    items = np.array([5, 0, 3, 4, 1, 2])
    sort_items(items, won)
    assert items.tolist() == [4, 1, 5, 0, 2, 3]
