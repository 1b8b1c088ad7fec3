"""Studies whose proofs rest on at least m judges: what each judge gave is kept through everything that can happen."""

from contextlib import suppress

import numpy as np
import pytest

from shortlist import create_study, load_study
from shortlist.core.betting import AHEAD, BEHIND
from shortlist.core.families import BradleyTerry
from shortlist.core.pairs import n_pairs, pair_number
from shortlist.errors import BadProblem, NeedsJudges, NothingToAsk, ShortlistError, StudyDone
from shortlist.study.state import pending_votes
from shortlist.study.sync import decode, encode

ITEMS = list("abcdef")
WIN = BradleyTerry().log_factor


def ledger_of(study):
    return study._state.settled.evidence.ledger


def gains_of(study):
    """What each judge gave to each account, from the study's rows alone: {(judge, source, target): nats}."""
    number = {item: place for place, item in enumerate(study.items)}
    found = {}
    for row in study.rows:
        if not row.bet or row.status in ("pending", "skipped", "answered"):
            continue
        source, target = (row.first, row.second) if row.bet > 0 else (row.second, row.first)
        outcome = 0.0 if row.status == "lost" else row.outcome if row.bet > 0 else 1.0 - row.outcome
        gain = row.weight * float(WIN(np.array(abs(row.bet)), 0.0, np.array(outcome)))
        if row.status in ("undone", "voided"):
            gain = min(gain, 0.0)
        if 2 * study.problem.k > len(study.items):  # the ledger looks for the worst
            source, target = target, source
        place = row.judge, number[source], number[target]
        found[place] = found.get(place, 0.0) + gain
    return found


def kept_by(study):
    """The same from the ledger."""
    judge, source, target, gain = ledger_of(study).gains
    names = {number: name for name, number in study._state.numbers.items()}
    rows = zip(judge.tolist(), source.tolist(), target.tolist(), gain.tolist(), strict=True)
    return {(names[one], x, y): value for one, x, y, value in rows}


def check_gains(study):
    expected, kept = gains_of(study), kept_by(study)
    for place in expected.keys() | kept.keys():
        assert kept.get(place, 0.0) == pytest.approx(expected.get(place, 0.0), abs=1e-9)
    ledger = ledger_of(study)
    total = np.zeros((len(ledger.pairs), 2))
    np.add.at(total, ledger.pairs.searchsorted(ledger.by_judge.places % n_pairs(6)), ledger.by_judge.gains)
    assert total == pytest.approx(ledger.table[:, AHEAD : BEHIND + 1], abs=1e-9)


def happen(study, rng, steps=120):
    """Answers, skips, undos before and after settling, lost and pending questions, and a judge who is voided."""
    for place in range(steps):
        judge = [None, "ann", "bob", "cleo"][rng.integers(0, 3 if study.voided else 4)]
        if place == steps // 2:
            study.void("cleo")
        elif (act := rng.random()) < 0.1:
            study.ask(judge=judge, lease=-1.0)  # lost when the next question is asked
        elif act < 0.95:
            question = study.ask(judge=judge)
            if act < 0.15:
                study.skip(question)
                continue
            study.tell(question, winner=min(question.first, question.second), settle=act < 0.7)
            if act > 0.65:
                study.undo(question)
                if act > 0.8:
                    study.tell(question, "tie")
        else:
            study.ask(judge=judge)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_what_each_judge_gave_is_kept_through_everything_that_happens(seed, k):
    rng, study = np.random.default_rng(seed), create_study(ITEMS, k, 1e-99, min_judges=3, seed=seed)
    with suppress(NeedsJudges):
        happen(study, rng)
    assert {"counted", "lost", "undone", "voided", "pending"} <= {
        status for status, count in study.counts.items() if count
    }
    check_gains(study)


def test_imported_votes_count_for_their_judges_and_the_grid_does_not():
    """A file with the votes of two judges, and one without names; what looks sorted takes its bets back."""
    rng, study = np.random.default_rng(0), create_study(ITEMS, 2, 1e-99, min_judges=2)
    first, second = rng.integers(0, 3, 200), rng.integers(3, 6, 200)
    votes = [ITEMS[i] for i in first], [ITEMS[j] for j in second], rng.choice([1.0, 0.0], 200, p=[0.7, 0.3]).tolist()
    study.import_votes(*votes, judge=[["ann", "bob", None][place % 3] for place in range(200)])
    check_gains(study)
    assert len(study._state.numbers) == 3
    assert ledger_of(study).imports is not None
    assert ledger_of(study).grids() == []
    with suppress(NothingToAsk):
        happen(study, rng, 20)
    order = np.argsort(votes[2], kind="stable")
    study.import_votes(*([column[place] for place in order] for column in votes), judge=["dora"] * 200)
    assert ledger_of(study).share == 0.25
    live = {place: gain for place, gain in gains_of_live(study).items() if gain}
    kept = {place: gain for place, gain in kept_by(study).items() if abs(gain) > 1e-9}
    assert kept == pytest.approx(live, abs=1e-9)


def gains_of_live(study):
    """The gains without imported votes."""

    class Live:
        items, problem, rows = study.items, study.problem, [row for row in study.rows if row.question is not None]

    return gains_of(Live)


def test_a_snapshot_reloads_bit_for_bit():
    study = create_study(ITEMS, 2, 1e-99, min_judges=2, seed=4)
    with suppress(NothingToAsk):
        happen(study, np.random.default_rng(4), 60)
    known = study._sync.known
    written = encode(study._state, known)
    again = decode(written, known)
    assert encode(again, known) == written
    assert again.numbers == study._state.numbers
    assert np.array_equal(again.settled.evidence.ledger.by_judge.gains, ledger_of(study).by_judge.gains)


def test_pending_questions_count_as_lost_by_their_own_judge():
    study = create_study(ITEMS, 2, 1e-99, min_judges=3)
    for judge in ("ann", "bob") * 10:
        question = study.ask(judge=judge)
        study.tell(question, winner=min(question.first, question.second))
    before, left = kept_by(study), study.ask(judge="bob")
    state = study._state
    names = {number: name for name, number in state.numbers.items()}
    judge, source, target, gain = ledger_of(study).doubting(pending_votes(state)).gains
    after = {
        (names[one], x, y): g
        for one, x, y, g in zip(*map(np.ndarray.tolist, (judge, source, target, gain)), strict=True)
    }
    changed = {place: gain - before.get(place, 0.0) for place, gain in after.items() if gain != before.get(place, 0.0)}
    (((who, *_), change),) = changed.items()
    assert who == "bob"
    assert change == pytest.approx(float(WIN(np.array(abs(left.bet)), 0.0, np.array(0.0))))


def alone(study, judge="ann", most=500):
    """One judge who always prefers the earlier letter, until nothing is left to ask them."""
    for _ in range(most):
        question = study.ask(judge=judge)
        study.tell(question, winner=min(question.first, question.second))


def test_one_judge_is_sent_away_and_the_owner_is_told():
    study = create_study(ITEMS, 2, min_judges=2)
    assert study.advice is None or "another judge" not in study.advice
    with pytest.raises(NeedsJudges, match="another judge is needed: a proof must rest on at least 2 judges"):
        alone(study)
    assert study.verdict.reason is None
    assert not study.verdict.proves
    assert "another judge is needed" in study.advice
    assert "Invite another judge, or lower the number" in study.advice
    question = study.ask(judge="bob")  # another judge can go on
    assert question.judge == "bob"
    assert study.advice is None or "another judge" not in study.advice
    study.tell(question, winner=min(question.first, question.second))
    with suppress(StudyDone):
        alone(study, "bob")
    assert set(study.verdict.top) == {"a", "b"}
    assert "and rests on at least 2 judges" in study.verdict.guarantee


def test_votes_without_a_name_are_one_judge():
    study = create_study(ITEMS, 1, min_judges=2)
    with pytest.raises(NeedsJudges):
        alone(study, None)


def test_the_number_of_judges_can_be_lowered_and_raised_again():
    study = create_study(ITEMS, 1, min_judges=2)
    with pytest.raises(NeedsJudges):
        alone(study)
    study.change(min_judges=1)
    with suppress(StudyDone):
        alone(study)
    assert study.verdict.reason == "certified"
    assert "judges" not in study.verdict.guarantee.split(";")[0]
    votes = len(study.votes)
    study.change(min_judges=2)
    assert study.verdict.reason is None  # one judge is not enough again
    assert len(study.votes) == votes
    assert ledger_of(study).proved.source.size == 0
    with suppress(StudyDone):
        alone(study, "bob")
    assert study.verdict.reason == "certified"
    study.change(min_judges=1)
    assert study.verdict.reason == "certified"


def test_a_study_that_keeps_nothing_by_judge_raises_the_number_only_before_the_first_question():
    study = create_study(ITEMS, 1, stopping="edges")
    study.change(min_judges=2)
    assert study.problem.min_judges == 2
    with pytest.raises(NeedsJudges):
        alone(study)
    begun = create_study(ITEMS, 1, stopping="edges")
    begun.tell(begun.ask(), 1.0)
    with pytest.raises(BadProblem, match="before the first question"):
        begun.change(min_judges=2)
    assert ledger_of(begun).by_judge is None


@pytest.mark.parametrize(
    "options",
    [
        {"tolerance": 0.05}, {"family": "gaussian"}, {"stopping": "glr"}, {"stopping": "posterior"},
        {"sampling": "uniform"},
    ],
)  # fmt: skip
def test_what_does_not_go_with_several_judges_is_refused(options):
    with pytest.raises(BadProblem, match="min_judges is 2"):
        create_study(ITEMS, 1, min_judges=2, **options)


@pytest.mark.parametrize("number", [0, -1, True, 1.5, "2", None])
def test_the_number_of_judges_is_a_whole_number(number):
    with pytest.raises(BadProblem, match="min_judges"):
        create_study(ITEMS, 1, min_judges=number)


def test_a_stored_study_keeps_the_number_and_old_ones_have_1(tmp_path):
    storage = f"sqlite:///{tmp_path}/studies.db"
    create_study(ITEMS, 1, min_judges=3, name="three", storage=storage)
    assert load_study("three", storage).problem.min_judges == 3
    with pytest.raises(ShortlistError, match="min_judges is 3 there and 2 here"):
        create_study(ITEMS, 1, min_judges=2, name="three", storage=storage, load_if_exists=True)


@pytest.mark.parametrize("sampling", ["learn-then-prove", "sharpen"])
def test_other_sampling_rules_go_with_several_judges(sampling):
    study = create_study(ITEMS, 1, min_judges=2, sampling=sampling, max_votes=300)
    with suppress(StudyDone):
        for place in range(300):
            with suppress(NeedsJudges):
                question = study.ask(judge=["ann", "bob"][place % 2])
                study.tell(question, winner=min(question.first, question.second))
    assert study.verdict.top == ("a",)


def test_ballots_need_several_judges_anyway():
    ends = []
    for m in (1, 3):
        study, judges = create_study(ITEMS, 1, min_judges=m, judges_claim="public", ballot_size=5), 0
        while not study.verdict.done:
            judges += 1
            for question in study.ballot(f"judge {judges}"):
                study.tell(question, winner=min(question.first, question.second))
        ends.append(judges)
    assert ends[0] == ends[1]


def test_pairs_that_a_judge_must_not_see_are_not_blamed_on_the_judge():
    study = create_study(ITEMS[:3], 1, min_judges=2)
    with pytest.raises(NeedsJudges):
        alone(study)
    pairs = [(one, other) for one in ITEMS[:3] for other in ITEMS[:3] if one < other]
    with pytest.raises(NothingToAsk, match="no useful pair"):
        study.ask(judge="bob", avoid=pairs)
    assert pair_number(3, 0, 1) == 0
