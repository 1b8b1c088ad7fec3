"""An item that is withdrawn after the first vote: what is asked and proved, what it costs, and where it is refused."""

from contextlib import suppress

import numpy as np
import pytest

from shortlist import create_study, load_study, verify
from shortlist.errors import BadProblem, NeedsJudges
from shortlist.study.proof import make_proof, replay_proof
from tests.study.test_change import ITEMS, play

PROVED = "certified"


def proved(**options):
    """A study that proves ann and bob."""
    study = play(create_study(ITEMS, 2, 0.05, seed=3, **options), 10_000, 0.9)
    assert (study.verdict.reason, set(study.verdict.top)) == (PROVED, {"ann", "bob"})
    return study


def test_the_answer_is_then_among_the_other_items_and_the_verdict_states_the_price():
    study = proved()
    before = study.verdict.votes
    study.withdraw_item("ann")
    assert not study.verdict.done
    assert "ann" not in (*study.verdict.top, *study.verdict.certainly_out, *study.verdict.undecided)
    assert "ann" not in study.filled
    play(study, 10_000, 0.9)
    assert set(study.verdict.top) == {"bob", "cid"}
    assert study.verdict.votes > before
    assert study.verdict.error == pytest.approx(0.075)  # 0.05 (1 + 1/2)
    assert "Top 2 of 5: bob, cid. Error at most 0.075" in str(study.verdict)
    assert "among the 5 items that were not withdrawn" in study.verdict.guarantee
    assert any("'ann' after" in caveat for caveat in study.verdict.caveats)
    assert study.withdrawn == ("ann",)
    assert study.chances()["ann"] == 0.0


def test_nothing_is_asked_about_it_any_more_and_its_votes_stay_in_the_record():
    study = play(create_study(ITEMS, 2, 0.05, seed=3), 40, 0.9)
    kept = [row for row in study.rows if "ann" in (row.first, row.second)]
    study.withdraw_item("ann")
    asked = len(study.rows)
    play(study, 10_000, 0.9)
    assert kept
    assert [row for row in study.rows[:asked] if "ann" in (row.first, row.second)] == kept
    assert not [row for row in study.rows[asked:] if "ann" in (row.first, row.second)]
    with pytest.raises(BadProblem, match="withdrawn"):
        study.ask(pair=("ann", "bob"))


def test_an_answer_to_a_pending_question_still_counts_against_it_and_proves_nothing_for_it():
    study = play(create_study(ITEMS, 2, 0.05, seed=3), 40, 0.9)
    pending = study.ask(pair=("ann", "fay"))
    study.withdraw_item("ann")
    study.tell(pending, winner="ann")
    assert study.row(pending.id).status == "counted"
    assert "ann" not in study.verdict.certainly_in


@pytest.mark.parametrize("k", [1, 2, 4])  # at 4 of 6 the proof is about the two worst
@pytest.mark.parametrize("judges", [1, 3])
def test_others_can_check_and_replay_the_proof(k, judges, tmp_path):
    study = create_study(ITEMS, k, 0.05, seed=4, min_judges=judges)
    rng, gone, turn = np.random.default_rng(4), ["ann"] if k == 4 else ["bob", "fay", "ann"], 0
    while not study.verdict.done or gone:
        if gone and (study.verdict.done or study.verdict.votes > 30 * (4 - len(gone))):
            study.withdraw_item(gone.pop())
            continue
        turn += 1
        with suppress(NeedsJudges):
            question = study.ask(judge=f"judge {turn % 5}")
            study.tell(question, float((rng.random() < 0.85) == (question.first < question.second)))
    text = make_proof(study)
    (tmp_path / "proof.jsonl").write_text(text)
    found = verify.check(text)
    assert set(found["verdict"]["top"]) == set(sorted(set(ITEMS) - set(study.withdrawn))[:k])
    assert found["verdict"]["error"] == study.problem.stated_delta
    assert f"the top {k} of {6 - len(study.withdrawn)} items" in "\n".join(verify.sentences(found))
    replay_proof(tmp_path / "proof.jsonl")


def test_another_process_and_a_fold_from_the_first_event_have_the_same_study(tmp_path):
    url = f"sqlite:///{tmp_path / 's.db'}"
    study = play(create_study(ITEMS, 2, 0.05, seed=3, name="demo", storage=url), 60, 0.9)
    study.withdraw_item("bob")
    play(study, 90, 0.9)
    again = load_study("demo", url)
    assert str(again.verdict) == str(study.verdict)
    assert again.withdrawn == ("bob",)
    assert (again.problem, again.filled) == (study.problem, study.filled)


@pytest.mark.parametrize("options", [{"stopping": "glr"}, {"stopping": "posterior"}, {"tolerance": 0.1}])
def test_it_is_refused_where_the_proof_does_not_cover_it(options):
    study = play(create_study(ITEMS, 2, 0.05, seed=3, **options), 5)
    with pytest.raises(BadProblem):
        study.withdraw_item("ann")
    assert study.withdrawn == ()


def test_it_is_refused_before_the_first_question_for_the_last_items_twice_and_with_imports():
    study = create_study(ITEMS, 2, 0.05, seed=3)
    with pytest.raises(BadProblem, match="nothing was asked"):
        study.withdraw_item("ann")
    play(study, 5)
    with pytest.raises(BadProblem, match="not an item"):
        study.withdraw_item("zoe")
    for item in ("fay", "eve", "dee"):
        study.withdraw_item(item)
    for item in ("fay", "ann"):
        with pytest.raises(BadProblem):
            study.withdraw_item(item)
    with pytest.raises(BadProblem, match="withdrawn"):
        study.import_votes(["ann"], ["bob"], [1.0])
    imported = create_study(ITEMS, 2, 0.05, seed=3)
    imported.import_votes(["ann"] * 3, ["bob"] * 3, [1.0, 0.0, 1.0])
    imported.ask()
    with pytest.raises(BadProblem, match="imported votes"):
        imported.withdraw_item("ann")


@pytest.mark.parametrize("k", [2, 4])
def test_what_is_filled_is_about_the_items_that_are_left(k):
    """Nothing is filled by an item that was withdrawn, and all is at the end."""
    study = create_study(ITEMS, k, 0.05, seed=3)
    pending = study.ask()
    study.withdraw_item("fay")
    assert set(study.filled.values()) == {0.0}
    study.skip(pending)
    play(study, 10_000, 0.9)
    assert set(study.filled.values()) == {1.0}
    assert study.bound_history[-1].filled == 1.0
