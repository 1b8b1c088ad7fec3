"""The dashboard's numbers, against a second way to compute them."""

import math
from collections import Counter

import numpy as np
import pytest

from shortlist import create_study
from shortlist.study.sql import Database
from shortlist.web.dashboard import dashboard, votes_left_range
from shortlist.web.display import Display
from shortlist.web.schemas import Dashboard
from shortlist.web.service import OpenStudy, study_id

ITEMS = [f"item {i}" for i in range(6)]


def busy_study(storage, seed=3):
    """Votes, skips, undos, an import and a voided judge."""
    draws = np.random.default_rng(seed)
    study = create_study(ITEMS, 2, 1e-6, storage=storage, name="busy")
    study.import_votes(ITEMS[:3], ITEMS[3:], [1.0, 0.5, 0.0], ["Old", None, "Old"])
    told = []
    for _ in range(120):
        question = study.ask(judge=str(draws.choice(["Ann", "Bob", "Cat"])))
        action = draws.random()
        if action < 0.8:
            study.tell(question, float(draws.choice([0.0, 0.5, 1.0])))
            told.append(question.id)
        elif action < 0.95:
            study.skip(question, "why not")
        if told and action > 0.9:
            study.undo(told.pop(int(draws.integers(len(told)))))
    study.void("Cat")
    return study


@pytest.fixture
def look(tmp_path):
    """The dashboard of a study in a database of its own."""
    database = Database(f"sqlite:///{tmp_path / 's.db'}")

    def board(make):
        study = make(database)
        return study, Dashboard(**dashboard(database, OpenStudy(study_id(database, study.name), study, Display())))

    yield board
    database.close()


def test_the_dashboard_counts_what_the_study_counts(look):
    study, board = look(busy_study)
    per_judge, per_pair, won = Counter(), Counter(), Counter()
    for first, second, outcome, judge in study.votes:
        pair = frozenset((first, second))
        per_judge[judge] += 1
        per_pair[pair] += 1
        won[pair, first] += outcome
        won[pair, second] += 1 - outcome
    shown = {judge.name: judge.counts for judge in board.judges}
    assert {name: counts.counted for name, counts in shown.items() if counts.counted} | {None: 1} == per_judge
    pairs = {frozenset((pair.first, pair.second)): pair for pair in board.pairs}
    assert {key: pair.votes for key, pair in pairs.items()} == per_pair
    assert all(pair.won == won[key, pair.first] for key, pair in pairs.items())
    assert [judge.name for judge in board.judges if judge.is_voided] == ["Cat"]
    assert sum(counts.pending for counts in shown.values()) == board.counts.pending == len(study.pending)
    assert (shown["Cat"].counted, shown["Cat"].voided) == (0, board.counts.voided)
    assert board.counts.undone == sum(counts.undone for counts in shown.values()) > 0
    assert board.counts.counted == len(study.votes)


def test_votes_that_are_voided_after_the_verdict_are_not_shown_as_votes(look):
    def make(storage):
        study = create_study(ITEMS[:3], 1, 0.3, storage=storage, name="eve")
        while not study.verdict.done:
            question = study.ask(judge="Ann")
            study.tell(question, winner=min(question.first, question.second))
        study.import_votes(ITEMS[:2], ITEMS[1:3], [0.0, 0.0], ["eve", "eve"])
        study.void("eve")
        return study

    study, board = look(make)
    eve = next(judge for judge in board.judges if judge.name == "eve")
    assert (board.counts.voided, eve.counts.voided, eve.counts.counted, eve.is_voided) == (2, 2, 0, True)
    assert board.counts.counted == len(study.votes) == sum(pair.votes for pair in board.pairs)


def test_agreement_by_hand(look):
    """Ann and Bob always prefer what comes first in the list, Eve never does."""

    def make(storage):
        pairs = [(one, other) for one in range(4) for other in range(one + 1, 4)]
        study = create_study(ITEMS, 2, 1e-6, storage=storage, name="agree")
        for judge, outcome in (("Ann", 1.0), ("Bob", 1.0), ("Eve", 0.0)):
            first, second = ([ITEMS[pair[side]] for pair in pairs] for side in (0, 1))
            study.import_votes(first, second, [outcome] * len(pairs), [judge] * len(pairs))
        return study

    _, board = look(make)
    assert {judge.name: judge.first_share for judge in board.judges} == {"Ann": 1.0, "Bob": 1.0, "Eve": 0.0}
    assert {judge.name: judge.agreement for judge in board.judges}["Eve"] == 0.0


def test_the_range_of_votes_left_holds_the_estimate():
    study = create_study(ITEMS, 2, 0.05)
    draws = np.random.default_rng(1)
    assert votes_left_range(study.verdict, 0.05)[0] is None or study.verdict.votes_left is not None
    while not study.verdict.done:
        question = study.ask()
        gap = ITEMS.index(question.second) - ITEMS.index(question.first)
        study.tell(question, float(draws.random() < 1 / (1 + math.exp(-gap))))
        low, high = votes_left_range(study.verdict, 0.05)
        if low is not None:
            assert low < study.verdict.votes_left < high
    assert votes_left_range(study.verdict, 0.05) == (None, None)


def play(run):
    """Every tenth vote: votes, and the range of votes to go; and how many it took in the end."""
    n, k, gap = [(6, 1), (8, 2), (10, 3)][run % 3] + ([0.5, 0.8, 1.2][run // 3 % 3],)
    draws, items, seen = np.random.default_rng(run), [f"item {i}" for i in range(n)], []
    study = create_study(items, k, 0.05, seed=run)
    while not study.verdict.done:
        question = study.ask()
        ahead = items.index(question.second) - items.index(question.first)
        votes = study.tell(question, float(draws.random() < 1 / (1 + math.exp(-gap * ahead)))).votes
        if votes % 10 == 0:
            low, high = votes_left_range(study.examine(), 0.05)
            if low is not None:
                seen.append((votes, low, high))
    return study.verdict.votes, seen


@pytest.mark.sweep
def test_the_range_of_votes_left_mostly_holds_the_truth():
    inside = []
    for run in range(1000, 1108):  # others than the range was fitted on
        total, seen = play(run)
        for share in (0.25, 0.5, 0.75):
            looks = [look for look in seen if look[0] <= share * total]
            if looks:
                votes, low, high = looks[-1]
                inside.append(low <= total - votes <= high)
    assert len(inside) > 100
    assert np.mean(inside) > 0.8


def test_caveats_and_guarantee_are_those_of_the_study(look):
    def fixed_opinion(storage):
        study = create_study(["a", "b"], 1, storage=storage, name="fixed")
        while not study.verdict.done:
            question = study.ask(judge="Ann")
            study.tell(question, winner="a")
        return study

    study, board = look(fixed_opinion)
    assert board.verdict.caveats == list(study.examine().caveats)
    assert "got the same answer" in board.verdict.caveats[0]
    assert board.verdict.guarantee == study.verdict.guarantee != ""


def test_no_guarantee_while_nothing_is_proved(look):
    _, board = look(lambda storage: create_study(ITEMS, 2, storage=storage, name="new"))
    assert board.verdict.guarantee == ""
