import itertools
import logging
import math
import random

import numpy as np
import pytest
from scipy.stats import binomtest

import shortlist
from shortlist.judges.base import Call
from shortlist.judges.run_log import ALARM, DOUBT, FIXED, RepeatCheck
from tests.judges.world import ITEMS, new_study, noisy

PAIRS = list(itertools.permutations(ITEMS, 2))


def watch(answer, calls, seed):
    """The first warning while a judge is asked about random pairs."""
    fresh, rng = RepeatCheck("me", len(ITEMS)), random.Random(seed)
    for number in range(calls):
        first, second = rng.choice(PAIRS)
        warning = fresh.add(Call(number, first, second), answer(first, second, rng))
        if warning:
            return number, warning
    return None


def test_the_bet_is_fair_at_the_doubt_it_is_made_against():
    assert math.isclose(DOUBT * (FIXED / DOUBT) + (1 - DOUBT) * (1 - FIXED) / (1 - DOUBT), 1.0)


def test_false_alarms_are_as_rare_as_promised():
    """A judge with the least doubt allowed, checked after every one of 200 answers."""
    alarms = sum(
        watch(lambda a, b, rng: float(rng.random() < (1 - DOUBT if a < b else DOUBT)), 200, seed) is not None
        for seed in range(500)
    )
    assert binomtest(alarms, 500, 1 / ALARM, alternative="greater").pvalue > 1e-3


@pytest.mark.parametrize("seed", range(5))
def test_a_fixed_opinion_is_noticed(seed):
    number, warning = watch(lambda a, b, rng: float(a < b), 60, seed)
    assert "changed its answer 0 times" in warning
    assert number < 12 + 17 + 1  # first answers, repeats


def test_an_opinion_fixed_by_position_is_noticed_too():
    """It contradicts itself when the sides are turned round, and still never says anything new."""
    assert watch(lambda a, b, rng: 1.0, 60, 1)


def test_one_pair_is_not_enough():
    fresh = RepeatCheck("me", 4)
    assert not any(fresh.add(Call(number, "ann", "bob"), 1.0) for number in range(200))
    fresh = RepeatCheck("me", 2)
    assert any(fresh.add(Call(number, "ann", "bob"), 1.0) for number in range(200))


def test_the_user_is_told_once(caplog):
    said = []
    found = shortlist.run_study(new_study(delta=0.01), min, warn=said.append)
    assert found.verdict.done
    assert said == list(found.warnings)
    assert len(said) == 1
    assert "give the study cases" in said[0]
    assert not caplog.records
    with caplog.at_level(logging.WARNING, "shortlist"):
        shortlist.find_top(ITEMS, k=2, judge=min, delta=0.01)
    assert len(caplog.records) == 1


def test_a_judge_in_doubt_is_left_alone():
    rng = np.random.default_rng(1)
    strength = dict(zip(ITEMS, [0.6, 0.2, -0.2, -0.6], strict=True))

    def judge(first, second):
        return float(rng.random() < 1 / (1 + np.exp(strength[second] - strength[first])))

    assert shortlist.run_study(new_study(max_votes=150, sampling="uniform"), judge, workers=1).warnings == ()


def test_with_cases_nobody_is_suspected():
    cases = [str(number) for number in range(50)]
    found = shortlist.run_study(new_study(delta=0.01), lambda a, b, case: min(a, b), cases=cases)
    assert found.warnings == ()
    judge = noisy()
    few = shortlist.run_study(new_study(max_votes=5), judge, cases=cases[:3], warn=lambda text: None)
    assert few.warnings == ("there are only 3 cases, so the result holds for these cases and not for others",)
