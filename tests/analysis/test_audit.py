"""A judge against people: the interval, the evidence, and who is accused."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binomtest

import shortlist
from shortlist.analysis.audit import Answer, AuditDraws, Unit, audit, lean, mean_interval, units_of
from shortlist.errors import BadVotes


def test_the_interval_holds_the_mean_at_all_times():
    """Looked at after every draw. With 0.15 instead of at most 0.05 left out, it is found with probability 0.99."""
    rng, missed = np.random.default_rng(1), 0
    for _ in range(100):
        mean = rng.choice([0.1, 0.5, 0.9])
        draws = (rng.random(80) < mean).astype(float)
        ends = [mean_interval(draws[:size]) for size in range(1, 81, 8)]
        missed += not all(low <= mean <= high for low, high in ends)
        assert all(high - low <= before[1] - before[0] + 0.003 for before, (low, high) in pairwise(ends))
    assert binomtest(missed, 100, 0.05, alternative="greater").pvalue > 1e-3


def test_the_interval_shrinks():
    draws = np.tile([1.0] * 9 + [0.0], 30)
    low, high = mean_interval(draws)
    assert 0.82 < low < 0.9 < high < 0.96
    assert mean_interval([]) == (0.0, 1.0)


def test_evidence_of_a_lean():
    """All wins reach 60 within ten, and a fair coin reaches 20 in at most 5 of 100 sequences."""
    assert lean([True] * 10) > 60
    assert lean([False] * 50) == 1.0
    rng = np.random.default_rng(2)
    reached = sum(lean((rng.random(200) < 0.5).tolist()) >= 20 for _ in range(200))
    assert binomtest(reached, 200, 0.05, alternative="greater").pvalue > 1e-3


def world(seed, kind, people="quality"):
    """A study by a judge, and what 60 answers of one person say about it. Length has nothing to do with quality."""
    rng = np.random.default_rng(seed)
    items, cases = [f"i{place}" for place in range(6)], [f"c{place}" for place in range(40)]
    theta = rng.normal(size=6)
    lengths = {
        item: {case: int(size) for case, size in zip(cases, rng.integers(100, 900, 40), strict=True)} for item in items
    }

    def person(one, other, case):
        one, other = sorted((one, other))
        places = items.index(one), items.index(other)
        draw = np.random.default_rng([seed, *places, int(case[1:])]).random()
        return one if draw < 1 / (1 + np.exp(-1.5 * (theta[places[0]] - theta[places[1]]))) else other

    def ruler(first, second, case):
        return max(first, second, key=lambda item: lengths[item][case.id])

    def fair(first, second, case):
        said = person(first, second, case.id)
        draw = np.random.default_rng([seed, 9, items.index(first), items.index(second), int(case.id[1:])]).random()
        return said if draw < 0.9 else {first: second, second: first}[said]

    def sided(first, second, case):
        return first

    study = shortlist.create_study(items, 2, 0.05, seed=seed, max_votes=400)
    judge = {"ruler": ruler, "fair": fair, "sided": sided}[kind]
    shortlist.run_study(
        study, judge, cases=[shortlist.Case(case, case) for case in cases], workers=1, warn=lambda text: None
    )
    units = units_of(study, None, lengths)
    draws, answers, number = AuditDraws(units, study.verdict.top, seed), [], 0
    while len({answer.question for answer in answers}) < 60 and number < 400:
        question, stream, _ = draws.draw("ann", number)
        answers.append(Answer("ann", *question, float(person(*question) == question[0]), stream))
        number += 1
    return audit(study, units, answers), study


@pytest.mark.slow
def test_a_ruler_is_found_out_and_a_good_judge_is_not_accused():
    """`make slow` asks for 90 of 100 rulers, and at most 5 of 100 judges who agree on nine of ten. Here 8 of each: if
    half of the rulers were missed, or half of the good judges accused, this would fail with probability 0.96.
    """
    rulers = [world(seed, "ruler")[0] for seed in range(8)]
    assert sum(bool(found.accusations) for found in rulers) >= 7
    assert sum("longer" in " ".join(found.accusations) for found in rulers) >= 6
    fair = [world(seed, "fair")[0] for seed in range(8)]
    assert sum(bool(found.accusations or found.contradicts) for found in fair) <= 1
    assert sum(found.sentence.startswith("The judge agrees with people") for found in fair) >= 2


@pytest.mark.sweep
def test_a_hundred_rulers_and_a_hundred_good_judges(capsys):
    rulers = sum(bool(world(seed, "ruler")[0].accusations) for seed in range(100))
    fair = [world(seed, "fair")[0] for seed in range(100)]
    accused = sum(bool(found.accusations or found.contradicts) for found in fair)
    with capsys.disabled():
        print(f"\n{rulers} of 100 rulers found out, {accused} of 100 good judges accused")
    assert rulers >= 90
    assert accused <= 5


def test_a_judge_who_looks_at_positions_is_found_out():
    found, _ = world(3, "sided")
    assert any("shown first" in accusation or "fewer than" in accusation for accusation in found.accusations)


def test_what_people_answer_never_enters_the_study():
    found, study = world(1, "fair")
    assert found.answers == 60
    assert {row.judge for row in study.rows} == {"fair"}
    assert found.to_dict()["answers"] == 60


def test_people_may_contradict_the_top():
    """Two items; the judge always prefers a, people b, on every case."""
    study = shortlist.create_study(["a", "b"], 1)
    cases = [shortlist.Case(f"c{place}", "text") for place in range(30)]
    shortlist.run_study(study, lambda first, second, case: "a", cases=cases, warn=lambda text: None)
    units = units_of(study)
    answers = [Answer("ann", "a", "b", unit.case, 0.0) for unit in units] * 2
    found = audit(study, units, answers)
    assert found.contradicts == ("a", "b")
    assert found.sentence.startswith("The people contradict the result")
    assert len(found.disagreements) == len(units)


def test_orders_are_one_question_and_ties_agree_by_half():
    unit = Unit("a", "b", "c", "me", 0.5)
    study = shortlist.create_study(["a", "b"], 1)
    found = audit(study, [unit], [Answer("ann", "a", "b", "c", 1.0)])
    assert found.agreement == 0.5
    assert not found.disagreements
    with pytest.raises(BadVotes, match="answered nothing yet"):
        AuditDraws([], (), 0)
