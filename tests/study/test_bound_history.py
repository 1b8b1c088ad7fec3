"""The series of the error bound is what `examine` said at those votes."""

import math

import numpy as np
import pytest

from shortlist import create_study, load_study
from shortlist.analysis import analyse_study
from shortlist.errors import NeedsJudges

ITEMS = ["a", "b", "c", "d"]
RATING = {"a": 1.5, "b": 0.8, "c": -0.8, "d": -1.5}


def play(study, votes, seed=1, seen=None):
    rng = np.random.default_rng(seed)
    for _ in range(votes):
        if study.verdict.done:
            break
        question = study.ask()
        chance = 1 / (1 + np.exp(RATING[question.second] - RATING[question.first]))
        study.tell(question, float(rng.random() < chance))
        if seen is not None:
            seen[study.verdict.votes] = study.examine().error_bound
    return study


@pytest.mark.parametrize(
    "options", [{}, {"stopping": "posterior"}, {"stopping": "glr"}, {"stopping": "cuts"}, {"tolerance": 0.1}, {"k": 3}]
)
def test_every_point_is_the_bound_at_that_moment(options):
    seen = {0: 1.0}
    study = play(create_study(ITEMS, **{"k": 2, "delta": 0.05, "seed": 4, **options}), 150, seen=seen)
    points = study.bound_history
    assert points[0].votes == 0
    assert len(points) > 20
    assert [point.votes for point in points] == sorted(point.votes for point in points)
    for point in points[1:]:
        assert point.error_bound == pytest.approx(seen[point.votes], rel=2e-3), point
    if study.verdict.done:
        assert (points[-1].votes, points[-1].error_bound) == (study.verdict.votes, study.verdict.error_bound)


def test_it_is_the_same_in_every_process_and_after_a_snapshot(tmp_path):
    storage = f"sqlite:///{tmp_path}/studies.db"
    study = play(create_study(ITEMS, 2, 1e-30, storage=storage, name="demo", seed=4), 1100)
    assert study.storage.snapshot("demo") is not None
    again = load_study("demo", storage)
    assert again.bound_history == study.bound_history
    assert len(study.bound_history) < 400


def test_an_import_adds_one_point():
    """Nothing is proved in the middle of an import, so there is no bound to show there."""
    rng = np.random.default_rng(7)
    first, second = (list(side) for side in zip(*[rng.permutation(ITEMS)[:2] for _ in range(120)], strict=True))
    outcome = [
        float(rng.random() < 1 / (1 + np.exp(RATING[b] - RATING[a]))) for a, b in zip(first, second, strict=True)
    ]
    study = create_study(ITEMS, 2, 1e-9, seed=1)
    study.import_votes(first, second, outcome)
    assert [point.votes for point in study.bound_history] == [0, 120]
    assert study.bound_history[-1].error_bound < 1


def test_the_report_draws_it():
    study = play(create_study(ITEMS, 2, 0.05, seed=4), 400)
    last = analyse_study(study).bound_history[-1]
    assert (last.votes, last.error_bound) == (study.verdict.votes, study.verdict.error_bound)


@pytest.mark.parametrize("stopping", ["edges", "cuts"])
def test_the_share_of_a_proof_about_two_items_is_the_evidence_over_the_level(stopping):
    """With two items the proof is one account: its log wealth, c + (1 - c) E, over log(1/delta)."""
    delta, seen, wealth = 0.01, [], 0.0
    study = create_study(["a", "b"], 1, delta, stopping=stopping)
    while not study.verdict.done:
        question = study.ask()
        study.tell(question, winner="a")
        bet = abs(question.bet)
        wealth += math.log(2 / (1 + math.exp(-bet)))
        evidence = math.log(0.1 + 0.9 * math.exp(wealth)) / math.log(1 / delta)
        if not study.verdict.done:
            assert study.filled == pytest.approx({"a": max(evidence, 0.0), "b": max(evidence, 0.0)})
            seen.append(study.filled["a"])
    assert seen == sorted(seen)
    assert 0 <= seen[0] < 0.5 < seen[-1] < 1
    assert study.filled == {"a": 1.0, "b": 1.0}
    assert [point.filled for point in study.bound_history][-1] == 1.0


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize(("stopping", "min_judges"), [("edges", 1), ("edges", 2), ("cuts", 1)])
def test_the_share_of_a_proof_is_full_when_it_is_proved_and_not_before(k, stopping, min_judges):
    items = [f"item {number}" for number in range(7)]
    study = create_study(items, k, 0.2, min_judges=min_judges, stopping=stopping)
    draws, full = np.random.default_rng(k), []
    while not study.verdict.done:
        try:
            question = study.ask(judge=str(draws.integers(4)))
        except NeedsJudges:
            continue
        right = question.first < question.second
        study.tell(question, float(right if draws.random() < 0.9 else not right))
        full.append(min(study.filled.values()) == 1.0)
        assert all(0 <= share <= 1 for share in study.filled.values())
    assert full == [False] * (len(full) - 1) + [True]
