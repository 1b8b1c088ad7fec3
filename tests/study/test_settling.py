"""When an answer is final, what an undo costs before and after, and what becomes of questions that nobody answers."""

import numpy as np
import pytest

from shortlist import create_study, load_study
from shortlist.errors import (
    AlreadyAnswered,
    BadProblem,
    LateAnswer,
    NothingToUndo,
    ShortlistError,
    UnknownQuestion,
)
from shortlist.study import sync
from shortlist.study.events import Settled
from shortlist.study.state import pending_votes
from tests.study.test_storage import as_bytes

ITEMS = ["a", "b", "c", "d"]


@pytest.fixture
def clock(monkeypatch):
    """The time that a study sees; add to its only entry to let it pass."""
    now = [1e9]
    monkeypatch.setattr("shortlist.study.storage.time.time", lambda: now[0])
    return now


def two(seed=1, cases=(), **options):
    """Two items, with bets on the next question."""
    study = create_study(["a", "b"], 1, 1e-6, seed=seed, **options)
    for _ in range(4):
        study.tell(study.ask(cases=cases), winner="b")
    return study


def wealth(study):
    """The log wealth of b's account against a, with everything that is pending as lost."""
    ledger, pending = study._state.ahead.evidence.ledger, pending_votes(study._state)
    ledger = ledger if pending is None else ledger.doubting(pending)
    return float(ledger.wealth(np.array([1]), np.array([0]))[0])


def settled(study):
    return [entry.event.question for entry in study.entries if isinstance(entry.event, Settled)]


def test_until_it_settles_an_answer_counts_as_pending(clock):
    study = two()
    question = study.ask(judge="x")
    pending, shown = wealth(study), study.examine()
    study.tell(question, winner="b", settle=False)
    assert (wealth(study), study.examine()) == (pending, shown)
    assert (study.row(question.id).status, study.verdict.votes, len(study.votes)) == ("answered", 4, 4)
    assert (study.pending, study.counts["answered"]) == ([], 1)
    for again in ("a", "b"):
        with pytest.raises(AlreadyAnswered):
            study.tell(question, winner=again)
    clock[0] += 29
    study.close_due()
    assert study.row(question.id).status == "answered"
    clock[0] += 2
    study.close_due()
    assert (study.row(question.id).status, study.verdict.votes) == ("counted", 5)
    assert wealth(study) > pending


def test_how_long_an_answer_can_be_taken_back(clock):
    study = create_study(ITEMS, 2, 1e-6)
    short, usual = study.ask(judge="x"), study.ask(judge="x")
    study.tell(short, 1.0, settle=False, undo_seconds=2)
    study.tell(usual, 1.0, settle=False)
    clock[0] += 3
    study.close_due()
    assert settled(study) == [short.id]


def test_a_lease_is_written_again_after_a_tenth_of_it(clock):
    study = create_study(ITEMS, 2)
    question = study.ask(judge="x", lease=100, shown=False)
    events = []
    for seconds in (0, 5, 4, 2, 0):
        clock[0] += seconds
        study.show(question, lease=100)
        events.append(len(study.entries))
    assert events == [2, 2, 2, 3, 3]
    study.show(question, lease=10)  # a shorter one is
    assert len(study.entries) == 4


def test_what_settles_an_answer(clock):
    study = create_study(ITEMS, 2, 1e-6)
    numbers = []

    def answered(judge):
        question = study.ask(judge=judge)
        study.tell(question, 1.0, settle=False)
        numbers.append(question.id)
        return question

    answered("x")
    answered("y")
    for _ in range(2):
        answered("x")
    assert settled(study) == []  # the last three of each judge can be taken back
    answered("x")  # the first of x settles, y's does not
    assert settled(study) == [0]
    study.skip(study.ask(judge="x"))  # so does the second
    assert settled(study) == [0, 2]
    study.settle("x")
    assert settled(study) == [0, 2, 3, 4]
    study.tell(study.ask(judge="y"), 1.0)  # one that settles at once settles all before it
    assert settled(study) == [0, 2, 3, 4, 1]
    answered("x")
    answered("y")
    clock[0] += 31
    study.ask()
    assert settled(study) == [0, 2, 3, 4, 1, *numbers[5:]]
    answered("z")
    study.settle()
    assert study.counts["answered"] == 0
    assert study.verdict.votes == 9


def test_the_last_answers_are_taken_back_one_after_the_other():
    """Several undos are free too, and what comes back is the same questions."""
    study = create_study(ITEMS, 2, 1e-6)
    asked = [study.ask(judge="x") for _ in range(4)]
    for question in asked:
        study.tell(question, 1.0, settle=False)
    assert study.answered_of("x") == asked[1:]
    for question in reversed(asked[1:]):
        study.undo(question)
    assert study.pending == asked[1:]
    assert (study.verdict.votes, study.counts["counted"], study._state.spent) == (1, 1, ())
    for question in asked[1:]:
        study.tell(question, 0.0)
    assert [row.outcome for row in study.rows] == [1.0, 0.0, 0.0, 0.0]


def test_settling_at_once_and_later_are_the_same_votes():
    """Whoever never undoes: the same pairs, sides, bets, and the same evidence."""
    coins = np.random.default_rng(2)
    once, later = (create_study(ITEMS, 2, 1e-3, seed=5) for _ in range(2))
    for _ in range(60):
        outcome, asked = float(coins.random() < 0.7), [study.ask(judge="x") for study in (once, later)]
        assert asked[0] == asked[1]
        once.tell(asked[0], outcome)
        later.tell(asked[1], outcome, settle=False)
        later.settle("x")
    assert once.verdict == later.verdict
    assert once.utilities == later.utilities


def test_an_undo_before_settling_is_free():
    cases = ["one", "two"]
    study = two(cases=cases)
    before = wealth(study)
    question = study.ask(judge="x", cases=cases)
    for _ in range(2):
        study.tell(question, winner="a", settle=False)
        study.undo(question)
    assert study.pending == [question]  # the same bet, case and sides
    assert study.is_reopened(question.id)
    study.tell(question, winner="b")
    assert (study.verdict.votes, wealth(study) > before) == (5, True)
    assert not study._state.spent


@pytest.mark.parametrize("shown", [True, False])
@pytest.mark.parametrize("end", ["skip", "lease", "leave", "void"])
def test_after_an_undo_a_question_can_only_be_answered_or_lost(end, shown, clock):
    study, plain = two(), two()
    question = study.ask(judge="x", lease=60, shown=shown)  # who answers has seen it, whatever the caller says
    assert plain.ask(judge="x") == question
    for at in (study, plain):
        at.tell(question, winner="b", settle=False)
        at.undo(question)
    if end == "lease":
        clock[0] += 61
    ends = {
        "skip": lambda: study.skip(question), "lease": study.close_due, "leave": lambda: study.settle("x"),
        "void": lambda: study.void("x"),
    }  # fmt: skip
    ends[end]()
    assert study.row(question.id).status == "lost"
    assert not study.pending
    assert wealth(study) == wealth(plain)  # lost for good is what pending was
    with pytest.raises(ShortlistError):
        study.undo(question)


def test_after_settling_an_undo_is_one_sided_and_the_judge_bets_nothing_more(clock):
    study = two()
    question = study.ask(judge="x")
    study.tell(question, winner="b", settle=False)
    clock[0] += 31  # nobody has noticed yet
    study.undo(question)
    assert study.row(question.id).status == "undone"
    assert study._state.bets_nothing("x", 0)
    assert study.ask(judge="x", pair=("a", "b")).bet == 0
    assert study.ask(judge="y").bet != 0


def test_after_an_undo_nothing_is_bet_with_a_tolerance_either():
    study = create_study(["a", "b"], 1, tolerance=0.1)
    question = study.ask(judge="x")
    study.tell(question, winner="a")
    study.undo(question)
    before = study._state.ahead.evidence.ledger.accounts(tolerant=True).wealth
    for _ in range(40):  # with the smallest bet of a tolerant account these would prove b
        study.tell(study.ask(judge="x", pair=("a", "b")), winner="b")
    after = study._state.ahead.evidence.ledger.accounts(tolerant=True).wealth
    assert (after.tolist(), study.verdict.votes) == (before.tolist(), 40)
    late = study.ask(judge="x", pair=("a", "b"), lease=-1)
    study.close_due()
    assert study.row(late.id).status == "lost"
    assert study._state.ahead.evidence.ledger.accounts(tolerant=True).wealth.tolist() == before.tolist()


def test_an_undo_closes_what_the_judge_holds_on_the_pair():
    study = two()
    vote, seen = study.ask(2, judge="x")
    unseen, other = study.ask(judge="x", shown=False), study.ask(judge="y")
    assert 0.0 not in (seen.bet, unseen.bet)
    study.tell(vote, winner="a")
    before = wealth(study)
    study.undo(vote)
    assert [study.row(question.id).status for question in (seen, unseen)] == ["lost", "skipped"]
    assert study.pending == [other]
    for question in (seen, unseen):
        with pytest.raises(LateAnswer):
            study.tell(question, winner="b")
    assert wealth(study) > before  # what was never shown is no longer counted as lost
    study.skip(other)
    reference = two()
    vote, seen = reference.ask(2, judge="x")
    reference.tell(vote, winner="a")
    assert wealth(study) == wealth(reference)


def test_imported_votes_of_that_judge_bet_nothing_either():
    study, other = two(), two()
    for at in (study, other):
        question = at.ask(judge="x")
        at.tell(question, winner="b")
        at.undo(question)
    assert wealth(study) == wealth(other)
    before = wealth(study)
    study.import_votes(["b"] * 20, ["a"] * 20, [1.0] * 20, ["x"] * 20)
    assert (wealth(study), study.verdict.votes) == (before, 24)
    other.import_votes(["b"] * 20, ["a"] * 20, [1.0] * 20, ["y"] * 20)
    assert wealth(other) > before + 1
    study.void("x")
    assert (wealth(study), study.verdict.votes) == (before, 4)


def test_a_lease_that_ends_on_what_was_shown_is_lost_and_else_dropped(clock):
    study = two()
    before = wealth(study)
    seen, unseen = study.ask(judge="x", lease=60), study.ask(judge="y", lease=60, shown=False)
    pending = wealth(study)
    clock[0] += 61
    study.close_due()
    assert [study.row(question.id).status for question in (seen, unseen)] == ["lost", "skipped"]
    assert pending < wealth(study) < before
    with pytest.raises(LateAnswer):
        study.tell(seen, winner="b")
    assert study.row(seen.id).status == "late"
    assert wealth(study) < before


def test_showing_begins_a_lease_and_extends_those_of_the_judge(clock):
    study = create_study(ITEMS, 2, 1e-6)
    first, second = study.ask(2, judge="x", lease=60, shown=False)
    other = study.ask(judge="y", lease=60)
    assert not study.is_shown(first.id)
    for _ in range(5):
        study.show(first, lease=60)
        clock[0] += 50
        study.close_due()
    assert study.is_shown(first.id)
    assert not study.is_shown(second.id)
    assert study.pending == [first, second]
    assert study.row(other.id).status == "lost"
    study.tell(first, 1.0)
    with pytest.raises(AlreadyAnswered):
        study.show(first)
    with pytest.raises(UnknownQuestion):
        study.show(99)


def test_a_void_settles_and_withdraws():
    study = two()
    question = study.ask(judge="x")
    study.tell(question, winner="b", settle=False)
    study.void("x")
    assert (study.row(question.id).status, study.counts["answered"]) == ("voided", 0)
    with pytest.raises(NothingToUndo):
        study.undo(question)


def test_where_the_order_matters(clock):
    """No largest loss is known: answers settle in the order asked, none is taken back, and a lease is a skip."""
    study = create_study(ITEMS, 2, family="gaussian")
    first, second = study.ask(2, judge="x", lease=60)
    study.tell(first, 1.0, settle=False)
    for refused in (lambda: study.undo(first), lambda: study.void("x")):
        with pytest.raises(BadProblem, match="edges"):
            refused()
    assert (study.verdict.votes, study.tally.votes) == (0, 0)
    study.tell(second, 0.5, settle=False)
    assert study.verdict.votes == 1
    last = study.ask(judge="x", lease=60)
    clock[0] += 61
    study.close_due()
    assert (study.verdict.votes, study.row(last.id).status) == (2, "skipped")


@pytest.mark.parametrize("every", [7, 10**9], ids=["snapshots", "no snapshots"])
def test_a_study_is_the_same_after_it_is_read_again(sqlite_url, every, clock, monkeypatch):
    monkeypatch.setattr(sync, "SNAPSHOT", every)
    study = create_study(ITEMS, 2, 1e-4, storage=sqlite_url, name="demo", seed=3)
    draws = np.random.default_rng(4)
    for step in range(300):
        clock[0] += draws.exponential(15)
        judge = str(draws.choice(["x", "y"]))
        try:
            act(study, judge, draws)
        except ShortlistError:
            continue
        if step % 10 == 0:
            again = load_study("demo", sqlite_url)
            assert as_bytes(again) == as_bytes(study)
            assert again.rows == study.rows
    assert min(study.counts[status] for status in ("counted", "skipped", "lost", "late", "undone")) > 0
    assert load_study("demo", sqlite_url).ask(judge="z") in load_study("demo", sqlite_url).pending


def act(study, judge, draws):
    """Something that a judge may do."""
    mine = [row.question for row in study.rows_of(judge)]
    number = int(draws.choice(mine)) if mine else 0
    held = study.pending_of(judge)
    moves = {
        "ask": lambda: study.ask(2, judge=judge, lease=60, shown=False), "show": lambda: study.show(held[0], 60),
        "tell": lambda: study.tell(held[0], float(draws.random() < 0.6), settle=bool(draws.random() < 0.3)),
        "skip": lambda: study.skip(held[-1]), "undo": lambda: study.undo(max(mine, default=0)),
        "old": lambda: study.undo(number),
        "late": lambda: study.tell(number, 1.0), "leave": lambda: study.settle(judge), "due": study.close_due,
        "drop": lambda: study.drop_useless(judge),
    }  # fmt: skip
    name = str(draws.choice(list(moves), p=np.array([3, 3, 6, 1, 2, 1, 1, 1, 1, 1]) / 20))
    if held or name not in ("show", "tell", "skip"):
        moves[name]()
