"""How events change a study under the edge rule: pending questions, undo, void, pairs not to show, ties."""

import numpy as np
import pytest

import shortlist
from shortlist.errors import BadInput, BadProblem, NothingToAsk, UnknownQuestion, VoidJudge

ITEMS = ["ann", "bob", "cid", "dee", "eve"]
STRENGTH = dict(zip(ITEMS, [2.0, 1.0, 0.0, -1.0, -2.0], strict=True))


def answer(question, rng):
    return float(rng.random() < 1 / (1 + np.exp(STRENGTH[question.second] - STRENGTH[question.first])))


@pytest.mark.parametrize(("stopping", "more"), [("edges", 6), ("cuts", 8)])
def test_what_is_out_counts_as_lost(stopping, more):
    """The answers that would be enough are not while questions are out that could contradict them."""
    study = shortlist.create_study(["a", "b"], k=1, delta=0.05, stopping=stopping)
    study.tell(study.ask(), winner="a")
    study.tell(study.ask(), winner="a")
    waiting = study.ask(6)  # bets stand on these already
    for _ in range(more):
        study.tell(study.ask(), winner="a")
    certain_but_for = study.examine().error_bound
    for question in waiting[:-1]:
        study.skip(question)
    assert not study.verdict.done
    assert study.examine().error_bound < 0.5 * certain_but_for
    study.skip(waiting[-1])
    assert study.verdict.done
    assert study.verdict.top == ("a",)


def test_answers_in_any_order_give_the_same_wealth():
    rng = np.random.default_rng(3)
    studies = [shortlist.create_study(ITEMS, k=2, delta=1e-9, seed=4) for _ in range(2)]
    questions = [study.ask(40) for study in studies]
    assert questions[0] == questions[1]
    outcomes = {question.id: answer(question, rng) for question in questions[0]}
    for study, order in zip(studies, (range(40), reversed(range(40))), strict=True):
        for number in order:
            study.tell(number, outcomes[number])
    one, two = (study._state.ahead.evidence.ledger for study in studies)
    np.testing.assert_allclose(one.table, two.table, atol=1e-12)
    np.testing.assert_allclose(one.inflow, two.inflow, atol=1e-12)


def test_undo_takes_support_back_and_leaves_opposition():
    study = shortlist.create_study(["a", "b"], k=1, delta=1e-6)
    for _ in range(10):
        study.tell(study.ask(), winner="a")
    before = study._state.ahead.evidence.ledger.inflow.copy()
    winning = study.ask()
    study.tell(winning, winner="a")
    study.undo(winning)
    np.testing.assert_allclose(study._state.ahead.evidence.ledger.inflow, before, atol=1e-12)
    losing = study.ask(judge="another")  # the first judge bets nothing on this pair any more
    study.tell(losing, winner="b")
    after = study._state.ahead.evidence.ledger.inflow.copy()
    study.undo(losing.id)
    assert np.all(study._state.ahead.evidence.ledger.inflow <= after + 1e-12)
    assert study.verdict.votes == 10
    assert study.rows[losing.id].status == "undone"
    with pytest.raises(NothingToAsk, match="prove nothing"):
        study.ask()
    assert study.ask(pair=("a", "b")).bet == 0
    for again in (losing, 999, study.ask(judge="a third")):
        with pytest.raises(UnknownQuestion):
            study.undo(again)
    paper = shortlist.create_study(["a", "b"], k=1, sampling="oracle-tracking")
    question = paper.ask()
    paper.tell(question, 1.0)
    with pytest.raises(BadProblem, match="edges"):
        paper.undo(question)


def test_a_voided_judge_is_heard_no_more():
    study = shortlist.create_study(ITEMS, k=2, delta=1e-6)
    rng = np.random.default_rng(0)
    for number in range(40):
        question = study.ask(judge=("ann's friend", "fair")[number % 2])
        study.tell(question, answer(question, rng))
    open_question = study.ask(judge="ann's friend")
    assert open_question.judge == "ann's friend"
    study.void("ann's friend")
    assert study.verdict.votes == 20
    assert study.pending == []
    with pytest.raises(VoidJudge, match="friend"):
        study.ask(judge="ann's friend")
    study.ask(judge="fair")


def test_where_the_order_matters_nothing_is_imported_past_a_question_that_is_out():
    """How long the answer takes must not decide which votes the import is added to."""
    study = shortlist.create_study(["a", "b"], k=1, family="gaussian")
    question = study.ask()
    with pytest.raises(BadProblem, match="answer or skip"):
        study.import_votes(["a"], ["b"], [1.0])
    study.tell(question, 0.5)
    assert study.import_votes(["a"], ["b"], [1.0]).votes == 2


def test_a_judge_is_not_shown_what_to_avoid():
    study = shortlist.create_study(ITEMS, k=2)
    hers = [("ann", other) for other in ITEMS[1:]]
    for question in study.ask(30, judge="ann", avoid=hers):
        assert "ann" not in (question.first, question.second)
    needed = study.ask()
    only = {needed.first, needed.second}
    others = [(a, b) for a in ITEMS for b in ITEMS if a < b and {a, b} != only]
    for question in study.ask(20, avoid=others):
        assert {question.first, question.second} == only
    with pytest.raises(NothingToAsk, match="judge"):
        shortlist.create_study(["a", "b"], k=1).ask(avoid=[("b", "a")])
    with pytest.raises(BadInput, match="not a pair"):
        study.ask(avoid=[("ann", "nobody")])


@pytest.mark.parametrize("sampling", ["bridge", "sharpen", "learn-then-prove"])
def test_allowed_pairs_are_respected_or_refused(sampling):
    ring = [(a, b) for a, b in zip(ITEMS, ITEMS[1:] + ITEMS[:1], strict=True)]
    for seed in range(1, 6):  # in some of them all that the allowed pairs can prove is proved before the end
        study = shortlist.create_study(ITEMS, k=2, allowed=ring, seed=seed, sampling=sampling)
        rng = np.random.default_rng(5)
        asked = set()
        for _ in range(200):
            if study.verdict.done:
                break
            question = study.ask()
            asked.add(frozenset((question.first, question.second)))
            study.tell(question, answer(question, rng))
        assert asked <= {frozenset(pair) for pair in ring}
    with pytest.raises(BadInput, match="connect"):
        shortlist.create_study(ITEMS, k=2, allowed=ring[:2])
    with pytest.raises(BadInput, match="bridge"):
        shortlist.create_study(ITEMS, k=2, allowed=ring, sampling="uniform")


def test_advice_says_that_sharpen_aims_at_no_proof():
    options = {"sampling": "sharpen"}
    study = shortlist.create_study(ITEMS, k=2, **options)
    for question in study.ask(3):
        assert "not for a proof" in study.advice
        study.tell(question, 1)
    assert "not for a proof" in study.advice
    assert "not for a proof" in shortlist.create_study(ITEMS, k=2, stopping="glr", **options).advice
    assert shortlist.create_study(ITEMS, k=2, max_votes=50, **options).advice is None
    assert shortlist.create_study(ITEMS, k=2, stopping="posterior", **options).advice is None


@pytest.mark.parametrize("sampling", ["bridge", "learn-then-prove"])
def test_advice_at_a_tie(sampling):
    study = shortlist.create_study(["a", "b", "c"], k=1, seed=2, sampling=sampling)
    assert "never ends" in study.advice
    assert shortlist.create_study(["a", "b", "c"], k=1, max_votes=9).advice is None
    rng = np.random.default_rng(1)
    said = []
    for _ in range(1500):
        question = study.ask()
        coin = float(rng.random() < (0.5 if "c" not in (question.first, question.second) else 0.9))
        study.tell(question, coin if question.second == "c" or "c" not in (question.first,) else 1 - coin)
        if study.verdict.votes % 100 == 0 and study.advice:
            said.append(study.advice)
    assert any("look tied at the cutoff; with a tolerance of" in advice for advice in said)


def test_chances_add_up_and_follow_the_votes():
    study = shortlist.create_study(ITEMS, k=2, max_votes=200)
    assert all(abs(chance - 0.4) < 0.05 for chance in study.chances().values())
    rng = np.random.default_rng(2)
    while not study.verdict.done:
        question = study.ask()
        study.tell(question, answer(question, rng))
    chances = study.chances()
    assert sum(chances.values()) == pytest.approx(2)
    assert min(chances["ann"], chances["bob"]) > max(chances["cid"], chances["dee"], chances["eve"])


def test_a_tolerance_is_said_in_the_units_of_the_votes():
    grades = shortlist.find_top(["a", "b"], 1, min, tolerance=0.1)
    assert "with probability above 0.5 + 0.1" in grades.guarantee
    measured = shortlist.find_top(
        ["a", "b"], 1, lambda one, other: 9.0 if one < other else -9.0, tolerance=3.0, family="gaussian", sigma=2.0
    )
    assert "by more than 3," in measured.guarantee
