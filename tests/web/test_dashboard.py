"""The dashboard's numbers, against a second way to compute them."""

import math
from collections import Counter

import numpy as np
import pytest

from shortlist import create_study
from shortlist.study.sql import Database
from shortlist.web.dashboard import votes_left_range
from shortlist.web.watch import Box, Watch, agreement, counts

ITEMS = [f"item {i}" for i in range(6)]


def busy_study(storage, seed=3):
    """Votes, skips, undos, an import and a voided judge."""
    dice = np.random.default_rng(seed)
    study = create_study(ITEMS, 2, 1e-6, storage=storage, name="busy")
    study.import_votes(ITEMS[:3], ITEMS[3:], [1.0, 0.5, 0.0], ["Old", None, "Old"])
    told = []
    for _ in range(120):
        question = study.ask(judge=str(dice.choice(["Ann", "Bob", "Cat"])))
        action = dice.random()
        if action < 0.8:
            study.tell(question, float(dice.choice([0.0, 0.5, 1.0])))
            told.append(question.id)
        elif action < 0.95:
            study.skip(question, "why not")
        if told and action > 0.9:
            study.undo(told.pop(int(dice.integers(len(told)))))
    study.void("Cat")
    return study


@pytest.mark.parametrize("parts", [1, 7])
def test_the_watch_counts_what_the_study_counts(tmp_path, parts):
    database = Database(f"sqlite:///{tmp_path / 's.db'}")
    study, watch = busy_study(database), Watch()
    entries = study.entries
    for part in np.array_split(np.arange(len(entries)), parts):
        watch.fold([entries[i] for i in part])
    per_judge, per_pair, won = Counter(), Counter(), Counter()
    for first, second, outcome, judge in study.votes:
        low, high = sorted((ITEMS.index(first), ITEMS.index(second)))
        per_judge[judge] += 1
        per_pair[low, high] += 1
        won[low, high] += outcome if ITEMS.index(first) == low else 1 - outcome
    assert {judge: tab.votes for judge, tab in watch.tabs.items() if tab.votes} == per_judge
    assert {(i, j): (votes, total) for i, j, votes, total in counts(watch.boxes)} == {
        pair: (per_pair[pair], won[pair]) for pair in per_pair
    }
    assert watch.voided == {"Cat"}
    assert sum(tab.out for tab in watch.tabs.values()) == len(study.out)
    assert watch.tabs["Cat"].votes == 0
    database.close()


def test_agreement_by_hand():
    one, other = Box(), Box()
    for judge, outcome in (("Ann", 1.0), ("Ann", 0.0), ("Bob", 1.0), ("Cat", 1.0)):
        one.add(judge, outcome, 1)
    for judge, outcome in (("Ann", 0.5), ("Bob", 0.0)):
        other.add(judge, outcome, 1)
    assert agreement([one, other], "Ann") == pytest.approx((1 + 0 + 0.5) / 3)
    assert agreement([one], "Bob") == 1.0  # Ann and Cat say 2/3
    assert agreement([other], "Cat") is None


def test_the_range_of_votes_left_holds_the_estimate():
    study = create_study(ITEMS, 2, 0.05)
    dice = np.random.default_rng(1)
    assert votes_left_range(study.verdict, 0.05)[0] is None or study.verdict.votes_left is not None
    while not study.verdict.done:
        question = study.ask()
        gap = ITEMS.index(question.second) - ITEMS.index(question.first)
        study.tell(question, float(dice.random() < 1 / (1 + math.exp(-gap))))
        low, high = votes_left_range(study.verdict, 0.05)
        if low is not None:
            assert low < study.verdict.votes_left < high
    assert votes_left_range(study.verdict, 0.05) == (None, None)


def play(run):
    """Every tenth vote: votes, and the range of votes to go; and how many it took in the end."""
    n, k, gap = [(6, 1), (8, 2), (10, 3)][run % 3] + ([0.5, 0.8, 1.2][run // 3 % 3],)
    dice, items, seen = np.random.default_rng(run), [f"item {i}" for i in range(n)], []
    study = create_study(items, k, 0.05, seed=run)
    while not study.verdict.done:
        question = study.ask()
        ahead = items.index(question.second) - items.index(question.first)
        votes = study.tell(question, float(dice.random() < 1 / (1 + math.exp(-gap * ahead)))).votes
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
