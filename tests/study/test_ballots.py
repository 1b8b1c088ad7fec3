"""A study about the public: one ballot for each judge, drawn as a whole, and lost where it is not answered."""

from contextlib import suppress

import pytest

import shortlist
from shortlist import create_study, load_study
from shortlist.errors import BadJudge, BadProblem, BallotDone, BallotsOpen, NothingToAsk, StudyPaused, VoidJudge
from shortlist.judges.base import RecordedJudge
from shortlist.study.claims import ONE_JUDGE, SENTENCES
from shortlist.study.events import Asked, Lost, Shown
from shortlist.study.sync import decode, encode

ITEMS = list("abcdefgh")


def public(items=ITEMS, k=3, **options):
    return create_study(items, k, judges_claim="public", **options)


def answer(study, judge, count=None, better=min):
    for question in study.ballot(judge)[:count]:
        study.tell(question, winner=better(question.first, question.second))


def asked(study):
    return [entry.event for entry in study.entries if isinstance(entry.event, Asked)]


def statuses(study, judge):
    return [row.status for row in study.rows_of(judge)]


def test_a_ballot_is_drawn_as_a_whole_when_the_judge_first_asks():
    study = public(ballot_size=6)
    first = study.ask(judge="ann")
    events = asked(study)
    assert [event.place for event in events] == list(range(6))
    assert {event.judge for event in events} == {"ann"}
    assert (first.id, first.place) == (0, 0)
    assert study.ballot("ann") == [study.question(number) for number in range(6)]
    assert study.ask(3, judge="ann") == study.ballot("ann")[:3]
    study.tell(first, 1.0)
    assert [question.place for question in study.ballot("ann")] == [1, 2, 3, 4, 5]
    assert study.ask(judge="ann").place == 1
    assert len(asked(study)) == 6


def test_the_list_does_not_depend_on_the_name():
    one, other = public(seed=3), public(seed=3)
    for number in range(12):
        answer(one, f"judge {number}")
        answer(other, f"someone else {number}")
    lists = ([(event.first, event.second, event.bet) for event in asked(study)] for study in (one, other))
    assert next(lists) == next(lists)


def test_each_judge_gets_one_ballot_under_friendly_words():
    study = public()
    answer(study, "ann")
    for again in (lambda: study.ask(judge="ann"), lambda: study.ballot("ann")):
        with pytest.raises(BallotDone, match="ann has finished their ballot, thank you"):
            again()
    assert issubclass(BallotDone, NothingToAsk)


def test_what_is_skipped_is_lost_and_nothing_is_withdrawn():
    study = public(ballot_size=5)
    first = study.ask(judge="ann")
    study.skip(first, "cannot judge")
    study.drop_useless("ann")
    assert statuses(study, "ann") == ["lost", *["pending"] * 4]
    study.settle("ann")  # the judge leaves
    assert statuses(study, "ann") == ["lost"] * 5
    with pytest.raises(BallotDone):
        study.ask(judge="ann")


def held_up(slow=5):
    """A study in which slow ballots with bets are open, and all would be proved without them."""
    study = public(["a", "b", "c"], 1, seed=2)
    for number in range(5):
        answer(study, f"early {number}")
    for number in range(slow):
        study.ballot(f"slow {number}")
    with suppress(BallotsOpen):
        for number in range(100):
            answer(study, f"judge {number}")
    assert not study.verdict.done
    return study


def test_proved_pairs_stay_on_a_running_ballot():
    study = held_up()
    before = [statuses(study, f"slow {number}") for number in range(5)]
    for number in range(5):
        study.drop_useless(f"slow {number}")
    assert [statuses(study, f"slow {number}") for number in range(5)] == before
    assert {status for found in before for status in found} == {"pending"}


def test_a_lease_covers_the_ballot_and_showing_one_extends_all(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    study = public(ballot_size=4)
    first = study.ask(judge="ann", lease=60)
    now[0] = 1050
    study.tell(first, 1.0)
    study.show(study.ask(judge="ann", lease=60), 60)
    now[0] = 1100  # past the first lease, not past the second
    study.close_due()
    assert statuses(study, "ann") == ["counted", "pending", "pending", "pending"]
    now[0] = 1200
    study.close_due()
    assert statuses(study, "ann") == ["counted", "lost", "lost", "lost"]
    assert {entry.event.reason for entry in study.entries if isinstance(entry.event, Lost)} == {"lease ran out"}
    with pytest.raises(BallotDone):
        study.ask(judge="ann")


def test_void_loses_the_rest():
    study = public(ballot_size=3)
    answer(study, "ann", 1)
    study.void("ann")
    assert statuses(study, "ann") == ["voided", "lost", "lost"]
    with pytest.raises(VoidJudge):
        study.ask(judge="ann")


def test_an_undo_is_free_until_it_settles_and_a_skip_then_is_lost():
    study = public(ballot_size=3)
    first = study.ask(judge="ann")
    study.tell(first, 1.0, settle=False)
    study.undo(first)
    assert study.ask(judge="ann") == first
    study.tell(first, 0.0, settle=False)
    study.tell(study.ask(judge="ann"), 1.0)
    study.undo(first)  # settled by the next answer: one-sided, and not asked again
    assert statuses(study, "ann") == ["undone", "counted", "pending"]


def test_places_are_counted_when_a_ballot_is_closed():
    study = public(ballot_size=3)
    answer(study, "ann")
    study.ballot("bob")
    answer(study, "bob", 1)
    assert study._state.ballots.places.closed == (1, 1, 1)
    study.settle("bob")
    places = study._state.ballots.places
    assert (places.answered, places.closed) == ((2, 1, 1), (2, 2, 2))
    assert study._state.ballots.closed == {"ann", "bob"}
    assert not study._state.ballots.open


def test_pairs_to_avoid_count_only_when_the_ballot_is_opened():
    study = public(["a", "b", "c", "d"], 1)
    own = [("a", other) for other in "bcd"]
    listed = study.ballot("ann", avoid=own)
    assert listed
    assert all("a" not in (question.first, question.second) for question in listed)
    assert study.ask(10, judge="ann", avoid=[("b", "c"), ("b", "d"), ("c", "d")]) == listed


def test_a_ballot_is_drawn_before_conflicts_are_struck_out_and_not_filled_again():
    own = {frozenset(("a", other)) for other in "bcd"}
    whole, cut = (public(["a", "b", "c", "d"], 1) for _ in range(2))
    listed = whole.ballot("ann")
    kept = [question for question in listed if {question.first, question.second} not in own]
    assert 0 < len(kept) < len(listed)
    assert cut.ballot("ann", avoid=[tuple(pair) for pair in own]) == kept
    assert [row.reason for row in cut.rows if row.status == "skipped"] == ["conflict of interest"] * (
        len(listed) - len(kept)
    )


def test_a_ballot_that_is_struck_out_as_a_whole_was_the_judges_ballot():
    study = public(["a", "b", "c", "d"], 1)
    for _ in range(2):
        with pytest.raises(BallotDone, match="each judge gets one ballot"):
            study.ballot("bob", avoid=[(x, y) for x in "abcd" for y in "abcd" if x < y])
    assert study._state.ballots.closed == {"bob"}
    assert study._state.ballots.places.closed == ()
    assert len(study.ballot("ann")) > 1


def test_cases_are_drawn_for_each_question_and_used_once_if_so_wanted():
    study = public(ballot_size=5)
    cases = [question.case for question in study.ballot("ann", cases=["x", "y", "z"])]
    assert set(cases) <= {"x", "y", "z"}
    once = public(ballot_size=5)
    pool = [f"case {number}" for number in range(8)]
    first = [question.case for question in once.ballot("ann", cases=pool, once=True)]
    second = [question.case for question in once.ballot("bob", cases=pool, once=True)]
    assert sorted({*first, *second}) == pool
    assert (len(first), len(second)) == (5, 3)  # the list ends where the cases end
    with pytest.raises(NothingToAsk):
        once.ballot("cleo", cases=pool, once=True)


def test_no_ballot_is_opened_while_open_ones_may_complete_the_proof():
    study = held_up()
    with pytest.raises(BallotsOpen, match="the 5 ballots that are open may complete the proof"):
        study.ballot("new")
    for number in range(5):
        study.settle(f"slow {number}")  # lost, and the study goes on
    assert study.ballot("new")
    answer(study, "new")
    answered = held_up()
    for number in range(5):
        if not answered.verdict.done:
            answer(answered, f"slow {number}")
    assert answered.verdict.top == ("a",)
    assert answered.verdict.done


def test_a_paused_study_lets_open_ballots_end():
    study = public(ballot_size=3)
    study.ballot("ann")
    study.pause()
    assert study.ask(judge="ann").place == 0
    with pytest.raises(StudyPaused):
        study.ask(judge="bob")


def test_the_vote_budget_bounds_the_ballot():
    study = public(max_votes=4)
    assert len(study.ballot("ann")) == 4
    with pytest.raises(NothingToAsk, match="all 4 votes"):
        study.ballot("bob")


def test_what_a_public_study_refuses():
    study = public()
    with pytest.raises(BadProblem, match="give the judge's name"):
        study.ask()
    with pytest.raises(BadProblem, match="leave pair= out"):
        study.ask(judge="ann", pair=("a", "b"))
    with pytest.raises(BadProblem, match="imported votes"):
        study.import_votes(["a"], ["b"], [1.0])
    with pytest.raises(BadProblem, match="only a study about the public"):
        create_study(ITEMS, 3).ballot("ann")
    for options in ({"stopping": "glr"}, {"sampling": "uniform"}, {"family": "gaussian"}, {"sampling": "sharpen"}):
        with pytest.raises(BadProblem, match="needs the sampling rule learn-then-prove or bridge"):
            public(**options)
    with pytest.raises(BadProblem, match="choose one of 'each', 'public'"):
        create_study(ITEMS, 3, judges_claim="all")
    with pytest.raises(BadProblem, match="ballot_size"):
        public(ballot_size=0)
    recorded = RecordedJudge(["a"], ["b"], [1.0])
    with pytest.raises(BadJudge, match="asked once"):
        shortlist.run_study(public(["a", "b"], 1), recorded)


def test_a_run_answers_one_ballot():
    study = public(ballot_size=6)
    run = shortlist.run_study(study, lambda first, second: min(first, second), workers=3)
    assert study.counts["counted"] == 6
    assert any("finished their ballot" in warning for warning in run.warnings)


def test_a_study_is_the_same_after_it_is_read_again(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    study = public(storage=url, name="s", ballot_size=4)
    answer(study, "ann")
    study.ask(judge="bob", lease=600)
    answer(study, "bob", 2)
    study.skip(study.ask(judge="bob"))
    study.ballot("cleo", lease=600)
    study.settle("bob")
    again = load_study("s", url)
    assert (again.judges_claim, again.ballot_size) == ("public", 4)
    assert again._state.ballots == study._state.ballots
    assert again.rows == study.rows
    known = study._sync.known
    assert decode(encode(study._state, known), known).ballots == study._state.ballots
    for one, other in zip(
        study._state.ahead.evidence.ledger.table, again._state.ahead.evidence.ledger.table, strict=True
    ):
        assert one.tobytes() == other.tobytes()
    assert again.ballot("dan") == load_study("s", url).ballot("dan")
    assert any(isinstance(entry.event, Shown) for entry in again.entries)
    with pytest.raises(shortlist.errors.StudyDiffers, match="ballot_size is 4 there and 5 here"):
        public(storage=url, name="s", ballot_size=5, load_if_exists=True)


def test_a_guarantee_names_whom_it_is_about():
    study = public(["a", "b"], 1, seed=1)
    for number in range(100):
        if study.verdict.done:
            break
        answer(study, f"judge {number}")
    assert study.verdict.guarantee.endswith(
        "items are compared on average over the public that the judges come from (each judge was asked once, with one "
        "ballot)"
    )
    assert study.claims == (SENTENCES["public"],)
    each = create_study(["a", "b"], 1)
    while not each.verdict.done:
        each.tell(each.ask(judge=f"judge {each.verdict.votes % 2}"), winner="a")
    assert each.verdict.guarantee.endswith("items are compared separately for every judge who answered")
    assert each.claims == (SENTENCES["each"],)
    alone = create_study(["a", "b"], 1)
    while not alone.verdict.done:
        alone.tell(alone.ask(judge="ann"), winner="a")
    assert alone.verdict.guarantee.endswith("items are compared by this judge's answers")
    assert alone.claims == (ONE_JUDGE,)
    nameless = create_study(["a", "b"], 1)
    while not nameless.verdict.done:
        nameless.tell(nameless.ask(), winner="a")
    assert nameless.verdict.guarantee.endswith("(cut theorem)")
    assert nameless.claims == ()


def test_few_judges_are_a_caveat():
    study = public(["a", "b"], 1)
    answer(study, "ann")
    assert any("Only 1 judge answered" in caveat for caveat in study.examine().caveats)
    assert not any("Only" in caveat for caveat in create_study(["a", "b"], 1).examine().caveats)
