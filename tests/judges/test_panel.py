"""Several judges as one: who is asked, what is stored and what is claimed."""

from collections import Counter

import pytest

import shortlist
from shortlist.errors import BadJudge
from shortlist.judges.base import PanelJudge
from tests.judges.world import AT_ONCE, ITEMS, new_study, noisy, told

CASES = [f"case {number}" for number in range(40)]


def member(name, seed=1):
    return shortlist.CallableJudge(noisy(seed), name=name)


def fixed(name, better):
    """A judge who always prefers one item, and else the first in the alphabet."""
    return shortlist.CallableJudge(
        lambda first, second, case=None: better if better in (first, second) else "tie", name
    )


def run(study, judge, **options):
    return shortlist.run_study(study, judge, **{"backoff": AT_ONCE, "warn": lambda text: None, **options})


def test_each_question_goes_to_one_of_them():
    study, panel = new_study(max_votes=60), PanelJudge([member("one"), member("two", 2), member("three", 3)], name="p")
    asked = []
    for judge in panel.judges:
        answer = judge.function
        object.__setattr__(
            judge, "function", lambda *call, name=judge.name, answer=answer: asked.append(name) or answer(*call)
        )
    found = run(study, panel, cases=CASES, workers=1)  # so that no call is under way at the end
    assert found.costs.calls == len(asked)
    assert set(Counter(asked)) == {"one", "two", "three"}
    assert {row.judge for row in told(study)} == {"p"}


def test_the_draw_depends_on_seed_and_number_alone():
    panel = PanelJudge([member("one"), member("two")])
    drawn = [panel.asked(7, question) for question in range(1000)]
    assert drawn == [panel.asked(7, question) for question in range(1000)]
    assert 440 < drawn.count((0,)) < 560
    assert [panel.asked(8, question) for question in range(1000)] != drawn


def test_the_mean_of_all_is_one_vote():
    study = shortlist.create_study(["a", "b"], k=1, max_votes=6)
    panel = PanelJudge([fixed("one", "a"), fixed("two", "a"), fixed("three", "b")], "mean")
    found = run(study, panel, cases=CASES, workers=1)
    assert found.costs.calls == 18
    assert {abs(row.outcome - (row.first == "b") / 3 - (row.first == "a") * 2 / 3) < 1e-12 for row in told(study)} == {
        True
    }
    assert found.stats.compared == 18
    assert found.stats.agreement == pytest.approx(1 / 3)


def test_the_mean_in_both_orders():
    study = shortlist.create_study(["a", "b"], k=1, max_votes=3)
    first = shortlist.CallableJudge(lambda one, other, case: "first", "shown first")
    found = run(study, PanelJudge([first, fixed("two", "a")], "mean"), cases=CASES, position="both", workers=1)
    assert found.costs.calls == 12
    assert (found.stats.both, found.stats.flips) == (6, 3)
    assert [row.outcome for row in told(study)] == [0.75 if row.first == "a" else 0.25 for row in told(study)]


@pytest.mark.parametrize(("how", "words"), [("random", "one of them, drawn at random"), ("mean", "all of them")])
def test_the_claim_is_about_the_mean_of_the_panel(how, words):
    study = new_study()
    found = run(study, PanelJudge([member("one"), member("two", 2)], how), cases=CASES)
    assert found.verdict.reason == "certified"
    assert "by the mean answer of a panel of 2 judges" in found.verdict.guarantee
    assert words in found.verdict.guarantee
    assert any("mean of the panel's 2 judges" in claim for claim in study.claims)


def test_answers_are_cached_for_each_of_them():
    """A panel uses what one of its judges was paid for alone. Two items, two cases and two orders are four answers."""
    study = shortlist.create_study(["a", "b"], k=1, delta=1e-9, max_votes=20, tolerance=0.01)  # no answer decides alone
    one, two = fixed("one", "a"), fixed("two", "b")
    assert run(study, one, cases=CASES[:2]).costs.calls == 4
    study.change(max_votes=50)
    assert run(study, PanelJudge([one, two], "mean"), cases=CASES[:2]).costs.calls == 4


def test_only_a_mean_of_all_is_an_answer_that_never_changes():
    """One judge of the panel is drawn anew when a case comes again, so no pair is decided by known answers."""
    for how, cells in (("random", {0}), ("mean", {1})):
        study = shortlist.create_study(["a", "b"], k=1, delta=1e-9, max_votes=20)
        run(study, PanelJudge([fixed("one", "a"), fixed("two", "b")], how), cases=CASES[:2])
        assert {event.cells for event in (entry.event for entry in study.entries) if hasattr(event, "cells")} == cells


def test_panels_that_cannot_be():
    recorded = shortlist.RecordedJudge(["a"], ["b"], [1])
    for judges in ([], [member("one")], [member("one"), member("one")], [member("one"), recorded]):
        with pytest.raises(BadJudge):
            PanelJudge(judges)
    with pytest.raises(BadJudge, match="random, mean"):
        PanelJudge([member("one"), member("two")], "best")
    public = shortlist.create_study(ITEMS, 2, judges_claim="public")
    with pytest.raises(BadJudge, match="not drawn from a public"):
        run(public, PanelJudge([member("one"), member("two")]))


def test_another_panel_is_another_judge():
    one, two = member("one"), member("two")
    names = {PanelJudge([one, two]).name, PanelJudge([one, two], "mean").name, PanelJudge([one, member("three")]).name}
    assert len(names) == 3


def shares_fooled(studies, make):
    """How many of so many studies of two items that tie on the panel's mean claim something."""
    fooled = 0
    for seed in range(studies):
        study = shortlist.create_study(["a", "b"], k=1, delta=0.1, max_votes=60, seed=seed)
        fooled += make(study).reason == "certified"
    return fooled


def test_a_panel_drawn_at_random_is_not_fooled_and_one_after_the_other_is():
    """One judge always says a, the other b, so the mean is a tie. Asked one after the other, the first proves its own
    taste; drawn at random, at most a share delta of the studies claims anything."""
    one, two = fixed("one", "a"), fixed("two", "b")
    quick = {"workers": 1, "cases": CASES[:1]}
    drawn = shares_fooled(40, lambda study: run(study, PanelJudge([one, two]), **quick).verdict)
    assert drawn <= 9  # 99.4 % quantile of Binomial(40, 0.1)
    assert shares_fooled(10, lambda study: run(study, one, **quick).verdict) == 10
