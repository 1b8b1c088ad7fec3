"""Analyses of all kinds of studies, as plain JSON; and what round-robin would have cost."""

import json

import numpy as np
import pytest

import shortlist
from shortlist.analysis import analyse_study, analyse_votes
from shortlist.analysis.analysis import GROWTH, PARTS, RUNS, SEED, as_analysis, simulate_round_robin
from shortlist.core.problem import Problem
from shortlist.simulation.worlds import Utilities
from tests.analysis.studies import ITEMS, KINDS, analysis_of, study_of, table


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_study_is_plain_json(kind):
    analysis = analysis_of(kind)
    parts = PARTS[:-1] if kind in ("one wanted", "most wanted") else PARTS  # round-robin is simulated for the others
    plain = json.loads(json.dumps(analysis.to_dict(parts), allow_nan=False))
    assert plain["verdict"] == study_of(kind).examine().to_dict()
    assert plain["vote_counts"]["counted"] == len(study_of(kind).votes)
    assert len(analysis.checks.results) == 7
    assert all(check.sentence.endswith(".") for check in analysis.checks.results)


def test_weighted_files_and_files_without_judges():
    votes = table(120, weight=np.full(120, 3.0))
    found = analyse_votes(votes, 2)
    assert found.votes.total == 360
    assert json.dumps(found.to_dict(), allow_nan=False)
    assert not found.bound_history
    assert "imported" in analyse_votes(table(2000), 2, 0.5).savings.note


def test_parts_are_computed_once_and_only_when_read():
    analysis = analyse_study(study_of("one vote"))
    assert not set(PARTS) & set(vars(analysis))
    assert analysis.matrix is analysis.matrix
    assert as_analysis(analysis) is analysis


def test_round_robin_is_the_simulation_it_says():
    study, savings = study_of("certified"), analysis_of("certified").savings
    first, second, outcome, _ = zip(*study.votes, strict=True)
    theta = shortlist.fit([ITEMS.index(i) for i in first], [ITEMS.index(j) for j in second], outcome, n=6)
    played = shortlist.simulate(
        Utilities(tuple(theta.tolist()), 2), "uniform", RUNS, SEED, delta=0.2, stopping="cuts", growth=GROWTH,
        bound=15.0,        max_votes=1000 * study.verdict.votes,
    )  # fmt: skip
    assert savings.round_robin == tuple(sorted(run.comparisons for run in played.runs))
    assert savings.median == np.median(savings.round_robin)
    assert savings.saved == pytest.approx(1 - study.verdict.votes / savings.median)


def test_round_robin_says_why_not():
    assert "no proved answer" in analysis_of("paused").savings.note
    assert "no proved answer" in analysis_of("budget").savings.note
    proved, names = analysis_of("certified"), tuple(f"item {i}" for i in range(61))
    many = simulate_round_robin(Problem(61, 2, 0.2), proved.stopping, proved.votes, names, proved.verdict, 1.0)
    assert "more than 60 items" in many.note


def statuses(found):
    return {check.name: check.status for check in found.checks.results}


def test_warnings_about_judges():
    """A judge with a fixed opinion, one who always takes the first side, and one against everybody."""
    names, rng = ["a", "b", "c", "d"], np.random.default_rng(3)
    rows = []
    for _ in range(900):
        i, j = rng.permutation(4)[:2]
        judge = ("stubborn", "left", "contrary")[rng.integers(3)]
        outcome = {"stubborn": float(i < j), "left": 1.0, "contrary": float(i > j)}[judge]
        rows.append((names[i], names[j], outcome, judge))
    first, second, outcome, judge = zip(*rows, strict=True)
    found = analyse_votes(shortlist.make_table(first, second, outcome, judge=judge), 2)
    assert statuses(found)["Position does not matter"] == "warning"
    assert statuses(found)["Votes are fresh"] == "warning"
    assert "warning" not in statuses(analysis_of("certified")).values()


def test_warnings_about_cycles_and_gaps():
    names = ("stone", "scissors", "paper")
    rows = [(names[i], names[(i + 1) % 3], 1.0) for i in range(3) for _ in range(40)]
    cycle = statuses(analyse_votes(shortlist.make_table(*zip(*rows, strict=True)), 1))
    assert cycle["Preferences have no cycles"] == "warning"
    assert cycle["No outsider beats a member"] == "warning"
    assert cycle["Ratings explain the votes"] == "warning"
    apart = statuses(analyse_votes(shortlist.make_table(["a", "c"], ["b", "d"], [1.0, 1.0]), 2))
    assert apart["All items are connected"] == "warning"
