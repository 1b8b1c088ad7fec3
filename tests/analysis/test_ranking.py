"""Utilities, intervals, chances and the cutoff: closed forms, and the study's own figures."""

import math

import numpy as np
import pytest
from scipy.stats import norm

import shortlist
from shortlist.analysis import analyse_study, analyse_votes
from tests.analysis.studies import KINDS, THETA, analysis_of, study_of, table


def test_two_items_with_measured_differences_in_closed_form():
    study = shortlist.create_study(["a", "b"], 1, family="gaussian", sigma=2.0, bound=5.0, delta=0.001)
    for outcome in (1.0, 2.5, -0.5, 3.0):
        question = study.ask()
        study.tell(question, outcome if question.first == "a" else -outcome)
    precision = 4 / 2.0**2 + 1 / (2 * 5.0**2)  # of the difference: votes, and a N(0, 25) prior on each utility
    gap, spread = (6.0 / 2.0**2) / precision, precision**-0.5
    found = analyse_study(study).ranking
    line = found.cutoff
    assert (line.gap, line.low, line.high) == pytest.approx((gap, gap - 1.96 * spread, gap + 1.96 * spread), rel=1e-3)
    assert line.chance == pytest.approx(norm.sf(gap / spread))
    first = found.items[0]
    assert first.item == "a"
    assert (first.utility, first.high - first.low) == pytest.approx((gap / 2, 1.96 * spread), rel=1e-3)
    assert first.chance == pytest.approx(norm.cdf(gap / spread), abs=0.02)


@pytest.mark.parametrize("kind", ["certified", "unfinished", "ties", "most wanted", "voided"])
def test_chances_are_the_study_s(kind):
    study, found = study_of(kind), analysis_of(kind).ranking
    assert {place.item: place.chance for place in found.items} == pytest.approx(study.chances())
    assert sum(place.utility for place in found.items) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_comes_first(kind):
    study, found = study_of(kind), analysis_of(kind)
    places, k = found.ranking.items, study.problem.k
    assert {place.item for place in places[:k]} == set(found.verdict.top)
    assert [place.in_top for place in places] == [True] * k + [False] * (len(places) - k)
    for side in (places[:k], places[k:]):
        assert [place.utility for place in side] == sorted((place.utility for place in side), reverse=True)
    assert (found.ranking.cutoff.inside, found.ranking.cutoff.outside) == (places[k - 1].item, places[k].item)
    assert sum(place.votes for place in places) == 2 * len(study.votes)


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Utilities drawn from the prior, 400 items' intervals in all: calibrated on average over it."""
    rng, inside = np.random.default_rng(8), []
    for _ in range(40):
        theta = rng.normal(0, 1.5, 10)
        pairs = [rng.choice(10, 2, replace=False) for _ in range(150)]
        outcome = [float(rng.random() < 1 / (1 + math.exp(theta[j] - theta[i]))) for i, j in pairs]
        votes = shortlist.make_table([str(i) for i, _ in pairs], [str(j) for _, j in pairs], outcome)
        truth = theta - theta[[int(item) for item in votes.items]].mean()
        found = analyse_votes(votes, 3, stopping="posterior").ranking
        inside += [place.low <= truth[int(place.item)] <= place.high for place in found.items]
    assert abs(np.mean(inside) - 0.95) < 0.03


def test_matrix_and_allocation_by_hand():
    study, found = study_of("unfinished"), analysis_of("unfinished")
    place = {item: number for number, item in enumerate(found.matrix.items)}
    votes, won = np.zeros((6, 6)), np.zeros((6, 6))
    for first, second, outcome, _ in study.votes:
        for one, other, y in ((first, second, outcome), (second, first, 1 - outcome)):
            votes[place[one], place[other]] += 1
            won[place[one], place[other]] += y
    np.testing.assert_array_equal(found.matrix.votes, votes)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found.matrix.share, won / votes)
    assert sum(pair.votes for pair in found.allocation.pairs) == len(study.votes)
    assert found.allocation.across == pytest.approx(2 * votes[:2, 2:].sum() / votes.sum())
    assert found.allocation.even_across == pytest.approx(8 / 15)
    assert found.allocation.busiest == pytest.approx(votes.max() / len(study.votes))


def test_a_file_has_the_verdict_of_certify():
    votes = table(400)
    found = analyse_votes(votes, 2, 0.1)
    expected = shortlist.certify(votes.first, votes.second, votes.outcome, 2, 0.1)
    assert found.verdict.error_bound == expected.error_bound
    assert {votes.items.index(item) for item in found.verdict.top} == set(expected.top)
    assert THETA.size == len(found.ranking.items)
