"""Settings that are changed after a look: the vote budget, delta, and what is refused."""

import subprocess
import sys

import numpy as np
import pytest

from shortlist import create_study, load_study
from shortlist.core.betting import PROVED_AHEAD, PROVED_BEHIND
from shortlist.core.stopping.posterior import Posterior
from shortlist.errors import BadProblem, LateAnswer, StudyDiffers, StudyDone
from shortlist.study.events import Changed, Told, dump, load
from shortlist.study.state import StudyState, apply_all, empty_state
from shortlist.study.sync import decode, encode

ITEMS = ["ann", "bob", "cid", "dee", "eve", "fay"]
FIXED = {"k": 3, "tolerance": 0.1, "stopping": "glr", "cases_claim": "like these", "judges_claim": "public",
         "items": ["x", "y"], "family": "gaussian", "ballot_size": 5, "bound": 5.0, "seed": 3}  # fmt: skip


def answer(question, share=0.8):
    """The same answer to the same question, in every study; the earlier name wins with this share."""
    wins = np.random.default_rng((question.id, 5)).random() < share
    return float(wins == (question.first < question.second))


def play(study, votes, share=0.8):
    """Until there are so many votes, or a verdict."""
    while study.verdict.votes < votes and not study.verdict.done:
        question = study.ask()
        study.tell(question, answer(question, share))
    return study


def evidence(study):
    """Every number that later questions and verdicts depend on, as bytes that no two states share."""
    state = study._state
    known = [study.problem.family, study.sampling, study.stopping]
    parts = state._replace(ended=None)
    return encode([part for name, part in parts._asdict().items() if name != "ended"], known)


@pytest.mark.parametrize(
    "options", [{}, {"tolerance": 0.1}, {"stopping": "glr"}, {"sampling": "uniform", "stopping": "posterior"}]
)
def test_a_raised_budget_gives_the_study_that_had_it_from_the_start(options):
    low, high = (create_study(ITEMS, 2, 1e-3, max_votes=votes, seed=3, **options) for votes in (40, 80))
    play(low, 40)
    assert low.verdict.reason == "budget"
    low.change(max_votes=80)
    play(high, 40)
    assert evidence(low) == evidence(high)
    assert low.verdict == high.verdict
    play(low, 80), play(high, 80)
    assert evidence(low) == evidence(high)
    assert low.examine() == high.examine()
    assert low.bound_history == high.bound_history


def test_all_answers_after_the_end_count():
    """Questions that were out when the study ended are answered, skipped and lost, a vote is undone and a judge is
    voided: the study goes on as if it had never ended."""
    ended, open_one = (create_study(ITEMS, 2, 1e-3, seed=7) for _ in range(2))
    for study in (ended, open_one):
        play(study, 30)
        study.tell(study.ask(judge="gus"), 1.0)
        out = study.ask(6, judge="ann")
        if study is ended:
            study.change(max_votes=31)
            assert study.verdict.reason == "budget"
            with pytest.raises(StudyDone):
                study.ask()
        for question, outcome in zip(out[:3], (1.0, 0.0, 0.5), strict=True):
            study.tell(question, outcome)
        study.skip(out[3])
        study.show(out[4], lease=-1)
        study.close_due()
        with pytest.raises(LateAnswer):
            study.tell(out[4], 1.0)
        study.undo(out[0])
        study.void("gus")
    assert ended.verdict.votes == 31
    ended.change(max_votes=None)
    assert ended.verdict == open_one.verdict
    assert ended.counts == open_one.counts
    assert ended.pending == open_one.pending
    assert evidence(ended) == evidence(open_one)
    assert ended.ask() == open_one.ask()


@pytest.mark.parametrize("stopping", ["edges", "cuts"])
def test_votes_that_were_imported_after_the_end_count_with_their_bets(stopping):
    rules = {"sampling": "bridge", "stopping": stopping}  # which asks the same with a vote budget and without
    study = play(create_study(ITEMS, 2, 1e-3, max_votes=30, seed=7, **rules), 30)
    study.import_votes(["ann"] * 20, ["fay"] * 20, [1.0] * 20)
    assert study.verdict.votes == 30
    assert all(row.bet > 0 for row in study.rows if row.question is None)
    before = play(create_study(ITEMS, 2, 1e-3, seed=7, **rules), 30)
    before.import_votes(["ann"] * 20, ["fay"] * 20, [1.0] * 20)
    assert study.change(max_votes=None).votes == 50
    assert evidence(study) == evidence(before)


def test_a_budget_of_no_more_than_the_votes_ends_the_study_and_may_be_raised_again():
    study, other = (play(create_study(ITEMS, 2, 1e-3, seed=1), 30) for _ in range(2))
    assert study.change(max_votes=10).reason == "budget"
    assert study.verdict.votes == 30
    assert study.change(max_votes=20).reason == "budget"
    assert not study.change(max_votes=31).done
    study.change(max_votes=None)
    assert evidence(study) == evidence(other)


def test_a_budget_neither_ends_nor_reopens_a_proof():
    study = play(create_study(ITEMS, 2, 0.1, max_votes=5000), 5000, 0.9)
    before = study.verdict
    assert before.reason == "certified"
    for votes in (10_000, 10, None, 1):
        assert study.change(max_votes=votes) == before
        assert study.problem.max_votes == votes


def test_a_proof_that_only_the_budget_made_look_stays():
    """The posterior rule looks at 1 % more votes, and when the budget ends: what is proved then stays proved."""
    study = create_study(ITEMS[:3], 1, 0.2, stopping=Posterior(every=50.0), sampling="uniform", max_votes=12)
    play(study, 12, 1.0)
    assert study.verdict.reason == "certified"
    assert study.change(max_votes=1000).reason == "certified"


def marks(study):
    return study._state.settled.evidence.ledger.table[:, PROVED_AHEAD : PROVED_BEHIND + 1].sum()


def test_a_smaller_delta_reopens_a_proof_and_takes_back_what_the_larger_one_proved():
    study = play(create_study(ITEMS, 2, 0.3, seed=2), 5000)
    proved = study.verdict
    assert proved.reason == "certified"
    assert marks(study)
    again = study.change(delta=1e-4)
    assert not again.done
    assert not again.certainly_in
    assert not marks(study)
    assert again.error_bound > 1e-4
    fresh = create_study(ITEMS, 2, 1e-4, seed=2)
    state = apply_all(fresh._state, [event for event in study._sync.events if not isinstance(event, Changed)])
    mine, theirs = study._state.settled.evidence, state.settled.evidence
    mine, theirs = (evidence.ledger.table[:, : PROVED_BEHIND + 1] for evidence in (mine, theirs))
    assert np.array_equal(mine, theirs)  # the accounts, and no marks at this delta; only later bets depend on the rest
    play(study, 5000)
    assert study.verdict.reason == "certified"
    assert study.verdict.error_bound <= 1e-4
    assert "with probability at most 0.3 " in study.verdict.guarantee
    assert study.claims[-1].startswith("The accepted error (delta) was lowered to 0.0001 after votes could be seen")


def test_a_smaller_delta_that_the_votes_prove_already_stays_proved():
    study = create_study(["a", "b"], 1, 0.2)
    for _ in range(4):
        study.tell(study.ask(), winner="a")
    out = study.ask(20)
    for question in [*out, *[study.ask() for _ in range(36)]]:
        study.tell(question, winner="a")
    votes = study.verdict.votes
    assert study.verdict.reason == "certified"
    assert study.counts["counted"] == 60
    lower = study.change(delta=0.01)  # the answers that came after the end count now
    assert lower.reason == "certified"
    assert votes < lower.votes <= 60
    assert lower.error_bound <= 0.01
    assert lower.error > 0.01
    assert f"Error at most {lower.error:g}, " in str(lower)  # the delta that was in force before


def test_before_the_first_question_delta_is_free():
    study = create_study(ITEMS, 2, 0.3)
    study.change(delta=0.1)
    assert study.problem == create_study(ITEMS, 2, 0.1).problem
    assert study.claims == ()
    study.ask()
    study.change(delta=0.05)
    study.change(delta=0.01)
    assert study.problem.stated_delta == 0.1


def test_marks_are_made_again_where_the_smaller_delta_allows_it():
    study = create_study(["a", "b", "c"], 1, 0.4)
    for _ in range(60):
        if not study.verdict.done:
            question = study.ask()
            study.tell(question, winner=min(question.first, question.second))
    study.change(delta=0.39)
    table = study._state.settled.evidence.ledger
    assert marks(study)
    assert all(table.wealth(table.proved.source, table.proved.target) >= table.enough)


def test_glr_is_checked_again():
    study = play(create_study(ITEMS, 2, 0.3, stopping="glr", sampling="uniform"), 5000)
    assert study.verdict.reason == "certified"
    votes = study.verdict.votes
    assert not study.change(delta=1e-6).done
    assert play(study, 20_000).verdict.reason == "certified"
    assert study.verdict.votes > votes


@pytest.mark.parametrize("name", FIXED)
def test_other_settings_are_refused_with_the_reason(name):
    study = play(create_study(ITEMS, 2), 3)
    before = study.head
    with pytest.raises(BadProblem, match=rf"^{name} cannot be changed .*Create a new study"):
        study.change(**{name: FIXED[name]}, max_votes=50)
    assert study.head == before


@pytest.mark.parametrize(
    "changes",
    [{"delta": 0.06}, {"delta": 0}, {"delta": "small"}, {"delta": None}, {"max_votes": 0}, {"max_votes": 1.5}],
)
def test_impossible_values_are_refused(changes):
    study = create_study(ITEMS, 2)
    before = study.head
    with pytest.raises(BadProblem):
        study.change(**changes)
    assert study.head == before


def test_what_is_in_force_already_is_no_event():
    study = create_study(ITEMS, 2, max_votes=9)
    before = study.head
    study.change(max_votes=9, delta=0.05)
    assert study.head == before


def test_no_limit_is_not_the_same_as_unchanged():
    for settings in ({"max_votes": None}, {"delta": 0.01}, {"max_votes": 3, "delta": 0.5}):
        assert load(*dump(Changed(settings))) == Changed(settings)


def test_other_processes_see_the_change(url):
    here = create_study(ITEMS, 2, 0.3, max_votes=20, storage=url, name="shared")
    there = load_study("shared", url)
    play(here, 20)
    code = "import sys; from shortlist import load_study as load; load('shared', sys.argv[1])"
    code += ".change(max_votes=60, delta=.01)"
    subprocess.run([sys.executable, "-c", code, url], check=True)
    for study in (here, there):
        study.refresh()
        assert (study.problem.max_votes, study.problem.delta, study.problem.stated_delta) == (60, 0.01, 0.3)
        assert not study.verdict.done
    play(there, 60)
    assert here.refresh() == there.verdict == load_study("shared", url).verdict
    assert evidence(here) == evidence(there) == evidence(load_study("shared", url))


def test_snapshots_hold_the_change(url, monkeypatch):
    monkeypatch.setattr("shortlist.study.sync.SNAPSHOT", 10)
    study = create_study(ITEMS, 2, 0.3, max_votes=20, storage=url, name="kept")
    play(study, 20)
    study.change(max_votes=30)
    play(study, 30)
    assert study.storage.snapshot("kept") is not None
    for votes in (40, 50):  # from a snapshot that has the end in it
        again = load_study("kept", url)
        assert evidence(again) == evidence(study)
        again.change(max_votes=votes)
        study = play(again, votes)
    plain = play(create_study(ITEMS, 2, 0.3, max_votes=50), 50)
    assert evidence(plain) == evidence(study)


def test_a_snapshot_of_the_end_is_exact():
    study = play(create_study(ITEMS, 2, 0.3, max_votes=20), 20)
    known = [study.problem, study.problem.family, study.sampling, study.stopping]
    found = decode(encode(study._state, known), known)
    assert isinstance(found, StudyState)
    assert found.ended.events == study._state.ended.events
    assert isinstance(found.ended.events[-1], Told)
    assert encode(found, known) == encode(study._state, known)


def test_resuming_takes_what_it_was_created_with_or_what_is_in_force(url):
    def again(delta=0.1, **options):
        return create_study(ITEMS, 2, delta, storage=url, name="s", load_if_exists=True, **options)

    again(max_votes=10).change(max_votes=20, delta=0.05)
    for options in ({"max_votes": 10}, {"max_votes": 20}, {"max_votes": 20, "delta": 0.05}):
        assert again(**options).problem.max_votes == 20
    with pytest.raises(StudyDiffers, match=r"max_votes is 20 there and 30 here; .*\.change\(max_votes=30\)"):
        again(max_votes=30)
    with pytest.raises(StudyDiffers, match=r"delta is 0.05 there and 0.01 here; .*\.change\(delta=0.01\)"):
        again(0.01, max_votes=10)
    with pytest.raises(StudyDiffers, match=r"choose another name$"):
        create_study(ITEMS, 3, 0.1, storage=url, name="s", load_if_exists=True, max_votes=30)


def test_studies_of_the_same_items_are_counted(storage):
    def caveats(study):
        return [caveat for caveat in study.examine().caveats if "studies of these items" in caveat]

    first = create_study(ITEMS, 2, storage=storage, name="first")
    create_study(ITEMS[:5], 2, storage=storage, name="fewer")
    assert not caveats(first)
    second = create_study(ITEMS[::-1], 3, storage=storage, name="second")
    assert caveats(first) == caveats(second)
    assert caveats(first)[0].startswith("2 studies of these items are in this storage.")
    assert "report all" in caveats(first)[0]
    assert not caveats(load_study("fewer", storage))


def test_studies_in_memory_are_alone():
    assert not create_study(ITEMS, 2).examine().caveats
    assert empty_state(create_study(ITEMS, 2)._state.settled).ended is None
