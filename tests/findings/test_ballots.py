"""The votes that are looked at are the votes that count."""

import numpy as np
import pytest

from shortlist.families import BradleyTerry
from shortlist.findings.ballots import study_ballots, table_ballots
from shortlist.io.table import make_table
from shortlist.tally import tally_votes
from tests.findings.studies import ITEMS, KINDS


def ballots_of(study):
    return study_ballots(study.problem.n, study.problem.family, study.entries)


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_the_votes_of_the_study(kind):
    study = KINDS[kind]()
    ballots, events = ballots_of(study)
    judges = [ballots.judges[number] if number >= 0 else None for number in ballots.judge]
    names = ([ITEMS[i] for i in side] for side in (ballots.first, ballots.second))
    assert list(zip(*names, ballots.outcome.tolist(), judges, strict=True)) == study.votes
    assert events.out == len(study.out)
    assert events.asked == len(study.history)


def test_what_else_happened():
    events = ballots_of(KINDS["voided"]())[1]
    assert events.voided == ("bob",)
    assert events.taken_back > 1
    assert ballots_of(KINDS["imported"]())[1].imported == 150
    events = ballots_of(KINDS["waiting"]())[1]
    assert (events.skipped, events.out) == (1, 3)
    assert events.began <= events.ended


def test_a_row_of_many_votes_is_wins_and_losses():
    table = make_table(["a", "b"], ["b", "c"], [0.75, 1.0], weight=[8, 3], judge=["ann", None])
    ballots = table_ballots(BradleyTerry(), table)
    assert set(ballots.outcome) == {0.0, 1.0}
    assert ballots.votes == 11
    expected = tally_votes(BradleyTerry(), table.first, table.second, table.outcome, table.weight)
    np.testing.assert_allclose(ballots.tally.sums, expected.sums)
    assert ballots.weight[ballots.judge == 0].tolist() == [6, 2]
