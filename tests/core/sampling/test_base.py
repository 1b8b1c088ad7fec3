import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist.core.sampling.base import hand_out, most_behind


@settings(max_examples=50, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), size=st.integers(2, 30))
def test_counts_stay_near_the_targets(seed, size):
    """C-tracking lemma: -(P - 1) <= N_p - w_sum_p <= 1 for any sequence of allocations. Paper: Appendix F.1."""
    rng = np.random.default_rng(seed)
    w_sum, counts = np.zeros(size), np.zeros(size)
    for _ in range(200):
        w_sum += rng.dirichlet(np.full(size, rng.choice([0.1, 1.0])))
        counts[most_behind(w_sum - counts)] += 1
        excess = counts - w_sum
        assert excess.max() <= 1 + 1e-9
        assert excess.min() >= -(size - 1) - 1e-9


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), pairs=st.integers(1, 40), size=st.integers(1, 200))
def test_a_block_is_what_asking_one_by_one_gives(seed, pairs, size):
    rng = np.random.default_rng(seed)
    behind = np.round(rng.normal(size=pairs) * 5, int(rng.integers(0, 6)))  # with and without ties
    one_by_one, left = np.zeros(pairs), behind.copy()
    for _ in range(size):
        asked = most_behind(left)
        one_by_one[asked] += 1
        left[asked] -= 1
    asked, counts = hand_out(behind, size)
    block = np.zeros(pairs)
    block[asked] = counts
    assert block.sum() == size
    np.testing.assert_allclose(np.sort(behind - block), np.sort(behind - one_by_one), atol=1e-9)
