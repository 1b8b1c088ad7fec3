import math

import numpy as np
import pytest

import shortlist
from shortlist.core.estimate import fit
from shortlist.core.evidence import Evidence
from shortlist.core.families import BradleyTerry, make_family
from shortlist.core.pairs import boundary
from shortlist.core.problem import Problem
from shortlist.core.stopping.glr import Glr
from shortlist.core.tally import tally_votes
from shortlist.errors import BadInput

from ...conftest import case_tally, random_votes


def test_reference_statistics_and_threshold(case):
    family = make_family(case["family"])
    tally = case_tally(case)
    problem = Problem(case["n"], case["k"], 0.05, family, case["R"])
    theta_hat = fit(family, tally, case["R"])
    assert Glr(case["lam"]).slack(problem, tally, theta_hat) == pytest.approx(case["beta_slack"], abs=1e-6)
    verdict = Glr(case["lam"]).examine(None, problem, Evidence(tally, theta_hat))
    assert verdict.statistic == pytest.approx(min(case["Z"].values()), abs=1e-6)
    assert verdict.threshold == pytest.approx(math.log(20) + case["beta_slack"], abs=1e-6)


def test_every_reference_statistic(case):
    from shortlist.core.stopping.glr import _Search

    family, tally = make_family(case["family"]), case_tally(case)
    problem = Problem(case["n"], case["k"], 0.05, family, case["R"])
    theta_hat = fit(family, tally, case["R"])
    search = _Search(problem, tally, theta_hat)
    inside, outside = boundary(theta_hat, case["k"])
    found = {f"{u},{v}": search.exact(m) for m, (u, v) in enumerate(zip(inside, outside, strict=True))}
    assert found == pytest.approx(case["Z"], abs=1e-6)
    for m in range(len(inside)):
        assert search.at_most(m) >= search.exact(m) - 1e-9


def clear_votes(weight):
    first, second = np.triu_indices(4, 1)
    return first, second, np.full(6, 0.8), np.full(6, weight)


def test_check_and_examine_agree_on_stopping():
    for weight in (5, 60, 120, 135, 140, 145, 150, 155, 200, 400):
        first, second, outcome, w = clear_votes(weight)
        family = BradleyTerry()
        tally = tally_votes(family, first, second, outcome, w)
        problem = Problem(4, 2, 0.05, family)
        evidence = Evidence(tally, fit(family, tally, 10.0))
        (_, quick), full = Glr().check(None, problem, evidence), Glr().examine(None, problem, evidence)
        assert quick.done == full.done == (full.statistic >= full.threshold)
        if not quick.done:
            assert full.statistic <= quick.statistic + 1e-9 < quick.threshold + 1e-9


def test_more_evidence_and_a_laxer_delta_never_hurt():
    bounds = []
    for weight in (110, 130, 150, 170):
        first, second, outcome, w = clear_votes(weight)
        bounds.append(shortlist.certify(first, second, outcome, k=2, stopping="glr", delta=0.05, weight=w).error_bound)
    assert bounds == sorted(bounds, reverse=True)
    first, second, outcome, w = clear_votes(150)
    done = [
        shortlist.certify(first, second, outcome, k=2, stopping="glr", delta=delta, weight=w).done
        for delta in (1e-9, 0.01, 0.5)
    ]
    assert done == sorted(done)


def test_done_means_error_bound_at_most_delta():
    first, second, outcome, w = clear_votes(250)
    verdict = shortlist.certify(first, second, outcome, k=2, stopping="glr", delta=0.01, weight=w)
    assert verdict.done
    assert verdict.reason == "certified"
    assert verdict.error_bound <= 0.01
    assert verdict.certainly_in == verdict.top == (0, 1)
    assert verdict.certainly_out == (2, 3)


def test_far_items_are_certain_before_near_ones():
    first, second = np.triu_indices(4, 1)
    verdict = shortlist.certify(first, second, [0.8, 0.95, 0.99, 0.55, 0.9, 0.9], k=2, stopping="glr", weight=[60] * 6)
    assert not verdict.done
    assert verdict.certainly_in == (0,)
    assert verdict.certainly_out == (3,)
    assert verdict.undecided == (1, 2)
    assert verdict.votes_left > 0


def test_a_tolerance_helps_at_a_tie():
    first, second = np.triu_indices(3, 1)
    votes = first, second, [0.9, 0.9, 0.5]
    assert not shortlist.certify(*votes, k=2, stopping="glr", weight=[500] * 3).done
    assert shortlist.certify(*votes, k=2, stopping="glr", weight=[500] * 3, tolerance=0.2).done


def test_unconnected_items_are_never_certified():
    verdict = shortlist.certify([0, 2], [1, 3], [1.0, 1.0], k=2, stopping="glr", weight=[1e6, 1e6])
    assert not verdict.done
    assert verdict.error_bound == 1.0


def test_relabelling_and_swapping_sides_relabel_the_verdict():
    rng = np.random.default_rng(8)
    first, second, outcome = random_votes(rng, 6, 900, 1.2)
    order = rng.permutation(6)
    plain = shortlist.certify(first, second, outcome, k=2, stopping="glr")
    moved = shortlist.certify(order[first], order[second], outcome, k=2, stopping="glr")
    swapped = shortlist.certify(second, first, 1 - outcome, k=2, stopping="glr")
    assert moved.statistic == pytest.approx(plain.statistic) == pytest.approx(swapped.statistic)
    assert moved.threshold == pytest.approx(plain.threshold) == pytest.approx(swapped.threshold)
    assert sorted(order[list(plain.top)]) == list(moved.top)
    assert plain.top == swapped.top


def test_bad_options_are_refused():
    for options in ({"lam": 0.0}, {"lam": float("nan")}, {"every": -1.0}):
        with pytest.raises(BadInput):
            Glr(**options)
    for options in (
        {"k": 0},
        {"k": 2},
        {"k": 1, "delta": 0.0},
        {"k": 1, "delta": 1.0},
        {"k": 1, "stopping": "psychic"},
    ):
        with pytest.raises(BadInput):
            shortlist.certify([0], [1], [1.0], **options)
    with pytest.raises(BadInput, match="tolerance"):
        shortlist.certify([0], [1], [1.0], k=1, stopping="glr", tolerance=0.5)
    with pytest.raises(BadInput, match="tolerance"):
        shortlist.certify([0], [1], [1.0], k=1, stopping="glr", tolerance=-0.1)


def test_many_items_on_the_box_prove_nothing_and_break_nothing():
    a = np.arange(50)
    verdict = shortlist.certify(np.r_[a, a], np.r_[a + 50, (a + 1) % 50 + 50], np.ones(100), k=1, stopping="glr", n=100)
    assert verdict.error_bound == 1.0


def test_with_a_tolerance_no_single_item_is_certain():
    votes = [0, 1, 0] * 400, [1, 2, 2] * 400, [0.5, 1, 1] * 400
    verdict = shortlist.certify(*votes, k=1, stopping="glr", tolerance=0.2)
    assert verdict.done
    assert verdict.certainly_in == verdict.certainly_out == ()
    assert "some outsider is better by 0.2" in verdict.guarantee
