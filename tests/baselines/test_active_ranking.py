"""Active ranking where it can be computed by hand."""

import numpy as np
import pytest

from shortlist.baselines.active_ranking import active_ranking, active_ranking_tight, sort_items
from tests.baselines.plain import alpha
from tests.baselines.worlds import certain


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
