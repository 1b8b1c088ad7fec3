from collections import Counter

import numpy as np
import pytest

from shortlist.core.families import BradleyTerry, Gaussian
from shortlist.core.pairs import n_pairs
from shortlist.core.tally import Block, Vote, empty_tally, tally_votes
from shortlist.errors import BadOutcome, BadVotes

from ..conftest import random_votes


def same(a, b):
    return all(
        np.allclose(getattr(a, name), getattr(b, name)) for name in ("pairs", "first", "second", "counts", "sums")
    )


@pytest.mark.parametrize("family", [BradleyTerry(), Gaussian(0.5)], ids=repr)
def test_one_by_one_in_bulk_and_in_blocks_agree(family):
    first, second, outcome = random_votes(np.random.default_rng(1), 6, 80, 1.0)
    single = empty_tally(6)
    for vote in zip(first.tolist(), second.tolist(), outcome.tolist(), strict=True):
        single = single.add(family, Vote(*vote))
    bulk = tally_votes(family, first, second, outcome, n=6)
    block, joined = Block(first, second, outcome, np.ones(80)), empty_tally(6)
    for begin in (0, 40):
        joined = joined.add_block(family, block.part(begin, begin + 40))
    assert same(single, bulk)
    assert same(joined, bulk)
    assert bulk.votes == 80


def test_counts_by_hand():
    tally = tally_votes(BradleyTerry(), [0, 1, 2, 0], [1, 0, 0, 1], [1.0, 1.0, 0.5, 0.25], [2, 3, 1, 4])
    assert tally.pairs.tolist() == [0, 1]
    assert tally.counts.tolist() == [9, 1]
    assert tally.sums.tolist() == [2 * 1 + 3 * 0 + 4 * 0.25, 0.5]


def test_many_items_need_no_dense_table():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 50_000, 300)
    second = (first + 1) % 50_000
    tally = tally_votes(BradleyTerry(), first, second, np.ones(300), n=50_000)
    assert len(tally.pairs) == len(Counter(zip(np.minimum(first, second), np.maximum(first, second), strict=True)))
    assert tally.pairs.max() < n_pairs(50_000)


def test_groups_are_the_connected_components_and_stay_joined():
    family = BradleyTerry()
    tally = empty_tally(3)
    assert tally.groups is not None
    tally = tally.add(family, Vote(0, 1, 1.0)).add(family, Vote(2, 1, 1.0))
    assert tally.groups is None
    assert tally.add(family, Vote(0, 2, 1.0)).groups is None


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        (([0, 2], [1, 2], [1.0, 1.0]), "with itself"),
        (([1], [-1], [1.0]), "negative"),
        (([0, 1], [1], [1.0]), "equal length"),
        (([0.5], [1], [1.0]), "whole item numbers"),
        (([0], [1], ["x"]), "arrays of numbers"),
        (([], [], []), "no votes"),
    ],
)
def test_bad_votes_say_what_is_wrong(votes, message):
    with pytest.raises(BadVotes, match=message):
        tally_votes(BradleyTerry(), *votes)


def test_bad_outcome_item_and_weight():
    with pytest.raises(BadOutcome):
        tally_votes(BradleyTerry(), [0], [1], [float("nan")])
    with pytest.raises(BadVotes, match=r"0\.\.2"):
        tally_votes(BradleyTerry(), [0], [5], [1.0], n=3)
    with pytest.raises(BadVotes, match="weight"):
        tally_votes(BradleyTerry(), [0], [1], [1.0], [-1.0])
