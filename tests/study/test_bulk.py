"""Events folded in stretches give the state that one after the other gives, bit for bit."""

import random

import pytest

from shortlist import create_study, load_study
from shortlist.core.stopping import cuts, edges
from shortlist.errors import BrokenChain
from shortlist.study import bulk, sync
from shortlist.study.bulk import apply_many
from shortlist.study.events import Materials, Told
from shortlist.study.state import apply, apply_all, next_question
from shortlist.study.sync import encode
from tests.study.random_studies import play

ITEMS = [f"item {place}" for place in range(8)]


def events_of(start, votes, seed, chance, pending=4, judges=("ann", "bob", None)):
    """Questions and answers in any order, in a study that goes on."""
    rng, state, waiting, events = random.Random(seed), start, [], []
    while votes > 0 and not state.settled.verdict.done:
        budget = state.ahead.problem.max_votes
        if len(waiting) < pending and (budget is None or len(waiting) + state.ahead.verdict.votes < budget):
            event = next_question(state, rng.choice(judges), frozenset())
            waiting.append(event)
        else:
            asked = waiting.pop(rng.randrange(len(waiting)))
            event = Told(asked.question, float(rng.random() < chance(asked.first, asked.second)))
            votes -= 1
        events.append(event)
        state = apply(event, state)
    return events, state


def even(first, second):
    return 0.5


def tied(first, second):
    """The third and the fourth are equal, the others are far apart."""
    one, other = (place - (place > 2) for place in (first, second))
    return 0.5 if one == other else 0.75 if one < other else 0.25


def counted_alone(monkeypatch):
    """The number of events that are folded one by one from now on."""
    alone = []
    monkeypatch.setattr(bulk, "apply_all", lambda state, events: (alone.extend(events), apply_all(state, events))[1])
    return alone


@pytest.mark.parametrize(
    ("chance", "settings"),
    [
        (tied, {"k": 3}),
        (even, {"k": 6}),
        (even, {"k": 3, "min_judges": 2}),
        (even, {"k": 3, "max_votes": 800}),
        (tied, {"k": 3, "stopping": "cuts"}),
        (even, {"k": 6, "stopping": "cuts"}),
        (tied, {"k": 3, "stopping": "cuts", "sampling": "learn-then-prove"}),
    ],
)
def test_a_long_study(chance, settings, monkeypatch):
    monkeypatch.setattr(bulk, "FEW", 3)
    start = create_study(ITEMS, delta=1e-3, seed=5, **settings)._sync.start
    events, state = events_of(start, 900, 1, chance)
    alone = counted_alone(monkeypatch)
    assert encode(apply_many(start, events), []) == encode(state, [])
    assert len(alone) < 0.8 * len(events)
    cut = len(events) // 3
    assert encode(apply_many(apply_many(start, events[:cut]), events[cut:]), []) == encode(state, [])


@pytest.mark.parametrize(
    "kind",
    [
        "people",
        "imports",
        "ballots",
        "tolerance",
        "changes, several judges, imports",
        "cuts, people",
        "cuts, changes, imports",
    ],
)
def test_a_study_in_which_everything_happens(kind, monkeypatch):
    monkeypatch.setattr(bulk, "FEW", 1)
    study = play(7, steps=200, kind=kind, delta=1e-7)
    events = [entry.event for entry in study.entries]
    start = study._sync.start
    assert encode(apply_many(start, events), []) == encode(apply_all(start, events), [])


def proved_by_cuts(problem, ledger):
    return edges.may_be_enough(problem, ledger) and cuts._Sets(ledger).standing is None


def ordered(first, second):
    return 0.7 if first < second else 0.3


@pytest.mark.parametrize(("stopping", "chance"), [("edges", tied), ("cuts", ordered)])
def test_without_looking_for_marks_and_ends_the_state_is_another(stopping, chance, monkeypatch):
    """The same, with the safeguard off."""
    start = create_study(ITEMS, k=3, delta=1e-3, seed=5, stopping=stopping)._sync.start
    events, state = events_of(start, 1500, 1, chance)
    monkeypatch.setattr(bulk, "_quiet", lambda ledger, added, memory: len(added.slots))
    assert encode(apply_many(start, events), []) != encode(state, [])


@pytest.mark.parametrize(("stopping", "is_enough"), [("edges", edges.is_enough), ("cuts", proved_by_cuts)])
def test_what_the_best_case_does_not_prove_is_not_proved_at_any_vote(stopping, is_enough, monkeypatch):
    """Whenever a stretch is folded as one, every vote of it is checked here as it would be alone."""
    start = create_study(ITEMS, k=3, delta=0.01, seed=5, stopping=stopping)._sync.start
    events, state = events_of(start, 900, 2, tied)
    checked = []

    def check(ledger, added, memory):
        quiet = real(ledger, added, memory)
        for place in range(quiet):
            table = ledger.table.copy()
            for slot, row in zip(added.slots[: place + 1], added.rows[: place + 1], strict=True):
                table[slot] = row
            now = bulk.replace(ledger, table=table)
            checked.append(is_enough(ledger.problem, now))
        return quiet

    real = bulk._quiet
    monkeypatch.setattr(bulk, "_quiet", check)
    assert encode(apply_many(start, events), []) == encode(state, [])
    assert len(checked) > 100
    assert not any(checked)


def test_an_event_that_cannot_follow_is_named(sqlite_url, monkeypatch):
    monkeypatch.setattr(sync, "SNAPSHOT", 10**9)
    study = create_study(ITEMS, k=3, delta=1e-3, seed=5, storage=sqlite_url, name="s")
    events, _ = events_of(study._sync.start, 600, 1, even)
    events.insert(1000, Told(999_999, 1.0))
    with study.transaction():
        study._sync.add(events, study._state)
    with pytest.raises(BrokenChain, match="event 1,000 "):
        load_study("s", sqlite_url)


def test_known_answers_are_folded_in_stretches_too(monkeypatch):
    """A judge whose answers never change: what they decide is the same, and most events are not folded one by one."""
    monkeypatch.setattr(bulk, "FEW", 3)
    cases, rng = [f"c{place}" for place in range(40)], random.Random(5)
    study = create_study(ITEMS, 3, seed=2)
    study.record([Materials(None, dict.fromkeys(cases, "text"))])
    table: dict[tuple[str, str, str], float] = {}
    while not study.verdict.done:
        question = study.ask(judge="me", cases=cases, cells=1)
        ends = ITEMS.index(question.first), ITEMS.index(question.second)
        key = question.first, question.second, question.case
        study.tell(question, table.setdefault(key, float(rng.random() < tied(*ends))))
    assert study._state.facts
    alone, events = counted_alone(monkeypatch), [entry.event for entry in study.entries]
    known = [study.problem, study.problem.family, study.sampling, study.stopping]
    assert encode(apply_many(study.start, events), known) == encode(apply_all(study.start, events), known)
    assert len(alone) < 0.6 * len(events)
