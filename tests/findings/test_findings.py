"""All findings of all kinds of studies, as plain JSON; and what round-robin would have cost."""

import json

import numpy as np
import pytest

import shortlist
from shortlist.findings.findings import PARTS, findings_of, study_findings, vote_findings
from shortlist.findings.savings import GROWTH, RUNS, SEED
from shortlist.instances import Utilities
from tests.findings.studies import ITEMS, KINDS, make, table


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_study_is_plain_json(kind):
    study = KINDS[kind]()
    found = study_findings(study)
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert plain["verdict"]["says"] == str(study.examine())
    assert len(found.trust.checks) == 7
    assert all(check.says.endswith(".") for check in found.trust.checks)


def test_weighted_files_and_files_without_judges():
    votes = table(120, weight=np.full(120, 3.0))
    found = vote_findings(votes, 2)
    assert found.ballots.votes == 360
    assert json.dumps(found.to_json(), allow_nan=False)
    assert not found.bounds.votes
    assert "imported" in vote_findings(table(2000), 2, 0.5).saved.note


def test_parts_are_computed_once_and_only_when_read():
    found = study_findings(make(votes=20))
    assert not set(PARTS) & set(vars(found))
    assert found.matrix is found.matrix
    assert findings_of(found) is found


def test_round_robin_is_the_simulation_it_says():
    study = KINDS["certified"]()
    found = study_findings(study)
    first, second, outcome, _ = zip(*study.votes, strict=True)
    theta = shortlist.fit([ITEMS.index(i) for i in first], [ITEMS.index(j) for j in second], outcome, n=6)
    played = shortlist.simulate(
        Utilities(tuple(theta.tolist()), 2), "uniform", RUNS, SEED, delta=0.2, rule="edges", growth=GROWTH, bound=15.0,
        max_votes=1000 * study.verdict.votes,
    )  # fmt: skip
    assert found.saved.round_robin == tuple(sorted(run.comparisons for run in played.runs))
    assert found.saved.median == np.median(found.saved.round_robin)
    assert found.saved.saved == pytest.approx(1 - study.verdict.votes / found.saved.median)


def test_round_robin_says_why_not():
    assert "no proved answer" in study_findings(make(votes=20)).saved.note
    assert "no proved answer" in study_findings(KINDS["budget"]()).saved.note
    names = [f"item {i}" for i in range(61)]
    study = shortlist.create_study(names, 1, 0.4)
    while not study.verdict.done:
        question = study.ask()
        study.tell(question, winner=min(question.first, question.second))
    assert "more than 60 items" in study_findings(study).saved.note


def signs(found):
    return {check.name: check.sign for check in found.trust.checks}


def test_signs_of_trouble():
    """A judge with a fixed opinion, one who always takes the first side, and one against everybody."""
    names, rng = ["a", "b", "c", "d"], np.random.default_rng(3)
    rows = []
    for _ in range(900):
        i, j = rng.permutation(4)[:2]
        judge = ("stubborn", "left", "contrary")[rng.integers(3)]
        outcome = {"stubborn": float(i < j), "left": 1.0, "contrary": float(i > j)}[judge]
        rows.append((names[i], names[j], outcome, judge))
    first, second, outcome, judge = zip(*rows, strict=True)
    found = vote_findings(shortlist.make_table(first, second, outcome, judge=judge), 2)
    assert signs(found)["It does not matter who is shown first"] == "look"
    assert signs(found)["Votes are fresh"] == "look"
    fine = signs(study_findings(KINDS["certified"]()))
    assert "look" not in fine.values()


def test_signs_of_circles_and_gaps():
    names = ("stone", "scissors", "paper")
    rows = [(names[i], names[(i + 1) % 3], 1.0) for i in range(3) for _ in range(40)]
    circle = signs(vote_findings(shortlist.make_table(*zip(*rows, strict=True)), 1))
    assert circle["Preferences do not go in circles"] == "look"
    assert circle["No outsider beats a member"] == "look"
    assert circle["Utilities explain the votes"] == "look"
    apart = signs(vote_findings(shortlist.make_table(["a", "c"], ["b", "d"], [1.0, 1.0]), 2))
    assert apart["All items are connected"] == "look"
