import pytest
from scipy.stats import binomtest

import shortlist
from shortlist.errors import BadJudge, BadOutcome, JudgeFailed
from tests.judges.world import told


def new_study():
    return shortlist.create_study(["a", "b"], k=1, delta=1e-30, sampling="uniform", max_votes=100)


def test_votes_are_drawn_with_replacement_whatever_side_they_were_recorded_from():
    judge = shortlist.RecordedJudge(["a", "b", "b", "a"], ["b", "a", "a", "b"], [1, 0, 0, 0])  # a wins 3 of 4
    study = new_study()
    shortlist.run_study(study, judge)
    a_wins = [answer.outcome == (answer.first == "a") for answer in told(study)]
    assert binomtest(sum(a_wins), len(a_wins), 0.75).pvalue > 1e-3
    again = new_study()
    shortlist.run_study(again, judge, workers=1)
    assert [answer.outcome for answer in told(again)] == [answer.outcome for answer in told(study)]
    other = new_study()
    shortlist.run_study(other, shortlist.RecordedJudge(["a", "a"], ["b", "b"], [1, 0], seed=2))
    assert [answer.outcome for answer in told(other)] != [answer.outcome for answer in told(study)]


def test_pairs_without_votes():
    judge = shortlist.RecordedJudge(["a", "b"], ["b", "c"], [1, 1])
    study = shortlist.create_study(["a", "b", "c"], k=1, allowed=judge.pairs)
    assert shortlist.run_study(study, judge, warn=lambda text: None).verdict.top == ("a",)
    study = shortlist.create_study(["c", "d"], k=1)
    with pytest.raises(JudgeFailed, match=r"no votes on .* were recorded"):
        shortlist.run_study(study, judge)


def test_measured_differences():
    judge = shortlist.RecordedJudge(["a", "b"], ["b", "a"], [2.5, -2.5], family="gaussian")
    study = shortlist.create_study(["a", "b"], k=1, family="gaussian", max_votes=5)
    shortlist.run_study(study, judge, position="both", warn=lambda text: None)
    assert {answer.outcome * (1 if answer.first == "a" else -1) for answer in told(study)} <= {2.5}


def test_lists_that_make_no_sense():
    for first, second, outcome in (([], [], []), (["a"], ["b", "c"], [1]), (["a"], ["b"], [])):
        with pytest.raises(BadJudge):
            shortlist.RecordedJudge(first, second, outcome)
    with pytest.raises(BadOutcome):
        shortlist.RecordedJudge(["a"], ["b"], [7])
