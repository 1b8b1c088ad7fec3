"""Each baseline against its plain second implementation: same draws, same answer, same number of comparisons."""

import numpy as np
import pytest

from shortlist.baselines import BASELINES, run_baseline
from tests.baselines import plain
from tests.baselines.worlds import shuffled, spaced

PLAIN = {
    "seeks": plain.seeks,
    "seeks-v2": lambda *world: plain.seeks(*world, select=plain.eqs),
    "active-ranking": lambda *world: plain.active_ranking(*world, c=4),
    "active-ranking-tight": lambda *world: plain.active_ranking(*world, c=2),
    "borda-lucb": plain.borda_lucb,
}
CASES = [(2, 1, 1.5), (6, 1, 0.8), (7, 3, 1.0), (5, 4, 1.2)]  # n, k, gap


@pytest.mark.parametrize(("n", "k", "gap"), CASES)
@pytest.mark.parametrize("name", BASELINES)
def test_the_same_draws_give_the_same_run(name, n, k, gap):
    for seed in range(3):
        wins, place = shuffled(spaced(n, gap), np.random.default_rng(seed))
        fast, slow = np.random.default_rng([seed, n]), np.random.default_rng([seed, n])
        found = run_baseline(name, wins, k, 0.1, fast)
        top, comparisons = PLAIN[name](wins.tolist(), k, 0.1, slow)
        assert (list(found.top), found.comparisons) == (top, comparisons)
        assert fast.random() == slow.random()  # not one draw more or less
        assert found.certified
        assert set(found.top) == set(place[:k].tolist())
