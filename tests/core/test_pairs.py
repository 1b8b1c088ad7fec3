import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.core.pairs import (
    all_pairs,
    boundary,
    components,
    edge_codes,
    laplacian,
    n_pairs,
    pair_ends,
    pair_items,
    pair_number,
    top_k,
)


@pytest.mark.parametrize("n", [2, 3, 7, 100])
def test_numbers_and_ends_are_inverse_and_in_the_order_of_triu_indices(n):
    first, second = np.triu_indices(n, 1)
    assert [pair_number(n, i, j) for i, j in zip(first.tolist(), second.tolist(), strict=True)] == list(
        range(n_pairs(n))
    )
    assert [ends.tolist() for ends in pair_ends(n, np.arange(n_pairs(n)))] == [first.tolist(), second.tolist()]
    assert [ends.tolist() for ends in all_pairs(n)] == [first.tolist(), second.tolist()]
    assert [pair_items(n, p) for p in range(n_pairs(n))] == list(zip(first.tolist(), second.tolist(), strict=True))


@given(st.integers(2, 200_000), st.data())
def test_ends_survive_the_square_root_for_large_n(n, data):
    i = data.draw(st.integers(0, n - 2))
    j = data.draw(st.integers(i + 1, n - 1))
    assert pair_number(n, j, i) == pair_number(n, i, j)
    assert [int(end) for end in pair_ends(n, np.asarray(pair_number(n, i, j)))] == [i, j]


def test_laplacian_is_the_sum_of_its_edges():
    first, second, weights = np.array([0, 0, 2, 0]), np.array([1, 2, 3, 1]), np.array([1.0, 2.0, 3.0, 4.0])
    expected = np.zeros((4, 4))
    for i, j, w in zip(first, second, weights, strict=True):
        x = np.eye(4)[i] - np.eye(4)[j]
        expected += w * np.outer(x, x)
    np.testing.assert_allclose(laplacian(4, edge_codes(4, first, second), weights), expected)


def test_components_and_boundary():
    count, labels = components(5, np.array([0, 3]), np.array([1, 4]))
    assert count == 3
    assert labels[0] == labels[1] != labels[2] != labels[3] == labels[4]
    theta = np.array([0.0, 3.0, 1.0, 2.0])
    assert top_k(theta, 2).tolist() == [1, 3]
    inside, outside = boundary(theta, 2)
    assert list(zip(inside.tolist(), outside.tolist(), strict=True)) == [(1, 0), (1, 2), (3, 0), (3, 2)]
