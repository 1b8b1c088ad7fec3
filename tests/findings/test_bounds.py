"""The error bound over time is what the study said at the time."""

import numpy as np
import pytest

from shortlist.findings.bounds import LOOKS, error_bounds
from shortlist.findings.findings import study_findings
from tests.findings.studies import eta, make, rows, win


def course(study, **options):
    found = error_bounds(study.problem, study.rule, study.entries, study.examine(), **options)
    assert len(found.votes) == len(found.bound)
    return list(zip(found.votes, found.bound, strict=True))


@pytest.mark.parametrize(
    "options",
    [{}, {"rule": "posterior"}, {"family": "gaussian", "sigma": 0.5}, {"tolerance": 0.2}, {"k": 5}],
    ids=lambda options: "-".join(map(str, options.values())) or "edges",
)
def test_with_a_look_at_every_vote_it_is_what_a_study_stopped_there_says(options):
    study = make(votes=0, delta=0.3, **options)
    said = play(study, 120, 1)
    assert min(bound for _, bound in said) < 1
    np.testing.assert_allclose(course(study, looks=10_000), said, rtol=1e-9)


def test_glr_looked_at_every_fifteen_votes():
    study = make(votes=0, rule="glr")
    said = play(study, 360, 15)
    assert min(bound for _, bound in said) < 1
    np.testing.assert_allclose(course(study, looks=study.verdict.votes / 15), said, rtol=1e-6)


def play(study, votes, every):
    rng, said = np.random.default_rng(1), [(0, 1.0)]
    while not study.verdict.done and study.verdict.votes < votes:
        question = study.ask()
        difference, measured = 3 * eta(question), study.problem.family.win is None
        study.tell(question, float(difference + 0.5 * rng.standard_normal()) if measured else win(rng, difference))
        if study.verdict.votes % every == 0 or study.verdict.done:
            said.append((study.verdict.votes, study.examine().error_bound))
    return said


def test_questions_out_skips_undo_void_and_imports_are_folded_as_the_study_does():
    study = make(votes=0, delta=1e-6)
    rng, said = np.random.default_rng(2), []

    def note():
        said.append((study.verdict.votes, study.examine().error_bound))

    for turn in range(25):
        questions = study.ask(4, judge="ann" if turn % 5 else "bob")
        for question in questions[::-1][: 4 if turn % 8 else 3]:
            study.tell(question, win(rng, 6 * eta(question)))
            note()
        if turn % 7 == 0:
            study.undo(questions[-1])
            note()
    study.skip(study.out[0])
    for first, second, outcome in zip(*rows(20), strict=True):
        study.import_votes([first], [second], [outcome])
        note()
    study.void("bob")
    note()
    assert min(bound for _, bound in said) < 0.9
    shown = course(study, looks=10_000)
    assert shown[-1] == said[-1]
    assert set(shown[1:-1]) <= set(said)
    assert len(shown) > 80


def test_many_imported_votes_at_once():
    first, second, outcome = rows(1200)
    study, half = make(votes=10, delta=1e-9), make(votes=10, delta=1e-9)
    for one in (study, half):
        one.import_votes(first[:600], second[:600], outcome[:600])
    study.import_votes(first[600:], second[600:], outcome[600:])
    shown = dict(course(study, looks=10_000))
    assert half.examine().error_bound < 1
    assert shown[610] == half.examine().error_bound
    assert len(shown) > 200


def test_a_long_study_is_looked_at_now_and_then():
    study = make(votes=450, delta=1e-9)
    shown = course(study)
    assert LOOKS / 2 < len(shown) <= LOOKS + 2
    assert shown[-1] == (study.verdict.votes, study.examine().error_bound)
    assert [votes for votes, _ in shown] == sorted(votes for votes, _ in shown)


def test_votes_after_the_verdict_are_not_in_it():
    study, rng = make(votes=0, delta=0.3), np.random.default_rng(4)
    slow = []
    while not study.verdict.done:
        quick, late = study.ask(2)
        study.tell(quick, win(rng, 4 * eta(quick)))
        slow.append(late)
        if len(slow) > 3 and not study.verdict.done:
            study.tell(slow[0], win(rng, 4 * eta(slow.pop(0))))
    for question in slow:
        study.tell(question, win(rng, eta(question)))
    assert len(study.votes) == study.verdict.votes + len(slow)
    assert course(study)[-1] == (study.verdict.votes, study.verdict.error_bound)
    assert max(votes for votes, _ in course(study)) == study.verdict.votes


def test_glr_of_many_items_says_why_not():
    import shortlist

    study = shortlist.create_study([f"item {i}" for i in range(60)], 20, rule="glr", method="uniform")
    found = study_findings(study)
    assert not found.bounds.votes
    assert "too long" in found.bounds.note
