"""Each caveat appears where its cause is, and not in a study without it."""

import math
import random

import pytest

import shortlist
from shortlist.core.families import make_family
from shortlist.study.caveats import evidence_by_judge, find_caveats
from shortlist.study.rows import counted

FAMILY = make_family("bradley-terry")


def judged(answer, items=("a", "b", "c", "d"), judges=("ann",), votes=40, **options):
    """The votes of a study in which judges take turns; `answer(question)` is the outcome."""
    study = shortlist.create_study(list(items), k=1, delta=1e-30, **options)
    for turn in range(votes):
        question = study.ask(judge=judges[turn % len(judges)])
        study.tell(question, answer(question))
    return counted(study.rows)


def fair(question, rng=random.Random(3)):
    return float(rng.random() < 0.5)


def said(votes):
    return " ".join(find_caveats(votes, FAMILY))


@pytest.mark.parametrize("items", [("a", "b"), ("a", "b", "c")])
def test_a_judge_who_never_changes_their_mind(items):
    votes = judged(lambda question: float(question.first < question.second), items, votes=12)
    distinct = len({(vote.first, vote.second) for vote in votes})
    assert f"these 12 votes are only {distinct}" in said(votes)
    assert "got the same answer" not in said(judged(fair, items))


def test_one_changed_answer_is_enough_to_be_silent():
    votes = judged(lambda question: float(question.first < question.second), ("a", "b"), votes=12)
    assert "got the same answer" not in said([*votes, votes[0]._replace(outcome=1.0 - votes[0].outcome)])


def test_answers_on_cases_are_not_repetitions():
    votes = judged(lambda question: 1.0, ("a", "b"), votes=12)
    on_cases = [vote._replace(case=f"case {number}") for number, vote in enumerate(votes)]
    assert "got the same answer" not in said(on_cases)


@pytest.mark.parametrize(("cases", "warned"), [(1, True), (29, True), (30, False)])
def test_few_cases(cases, warned):
    votes = [vote._replace(case=str(number % cases)) for number, vote in enumerate(judged(fair))]
    assert (f"about {cases} case" in said(votes)) == warned


def test_few_cases_is_about_the_list_and_not_about_those_that_were_drawn():
    for cases, warned in ((40, False), (12, True)):
        study = shortlist.create_study(["a", "b"], 1, max_votes=10)
        while not study.verdict.done:
            study.tell(study.ask(cases=list(map(str, range(cases)))), "tie")
        assert (f"The votes are about {cases} cases" in " ".join(study.verdict.caveats)) == warned


def test_one_judge_gives_most_of_the_evidence():
    taste = random.Random(5)

    def answer(question):
        return float(question.first < question.second) if question.judge == "ann" else float(taste.random() < 0.5)

    votes = judged(answer, judges=("ann", "bob"), votes=80)
    assert "Judge 'ann' gave" in said(votes)
    alike = judged(lambda question: float(question.first < question.second), judges=("ann", "bob", "cid"), votes=90)
    assert "of the evidence" not in said(alike)
    alone = judged(lambda question: float(question.first < question.second), votes=30)
    assert "of the evidence" not in said(alone)


@pytest.mark.parametrize("other", ["Ann", "ann ", "a\u200bnn", "\uff41nn"])
def test_names_that_look_alike(other):
    assert f"Judges {' and '.join(map(repr, sorted(['ann', other])))} count as 2" in said(
        judged(fair, judges=("ann", other))
    )
    assert "count as" not in said(judged(fair, judges=("ann", "anna", "ann-2", "judge #1", "judge #2")))


def test_evidence_is_the_logarithm_of_what_bets_have_won():
    votes = judged(lambda question: float(question.first < question.second), judges=("ann", "bob"))
    by_hand = {"ann": 0.0, "bob": 0.0}
    for vote in votes:
        stake = math.tanh(abs(vote.bet) / 2)
        sign = 1 if (vote.outcome == 1.0) == (vote.bet > 0) else -1
        by_hand[vote.judge] += max(math.log1p(sign * stake), 0.0)
    assert evidence_by_judge(votes, FAMILY) == pytest.approx(by_hand)


@pytest.mark.parametrize(("outcome", "side"), [(1.0, "first"), (0.0, "second")])
def test_a_judge_who_prefers_a_side(outcome, side):
    assert f"shown {side} in 100 % of 40 answers" in said(judged(lambda question: outcome))
    assert "preferred the item shown" not in said(judged(fair, votes=60))
