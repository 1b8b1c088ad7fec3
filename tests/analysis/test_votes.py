"""The votes that are analysed are the votes that count, and every question has a status."""

import numpy as np
import pytest

from shortlist.analysis.votes import table_votes
from shortlist.core.families import BradleyTerry
from shortlist.core.tally import tally_votes
from shortlist.votes.table import make_table
from tests.analysis.studies import ITEMS, KINDS, analysis_of, study_of


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_the_votes_of_the_study(kind):
    study, votes, counts = study_of(kind), analysis_of(kind).votes, analysis_of(kind).counts
    judges = [votes.judges[number] if number >= 0 else None for number in votes.judge]
    names = ([ITEMS[i] for i in side] for side in (votes.first, votes.second))
    assert list(zip(*names, votes.outcome.tolist(), judges, strict=True)) == study.votes
    assert counts.pending == len(study.pending)
    assert counts.counted == len(study.votes)
    assert counts._asdict().items() >= study.counts.items()


def test_every_status_is_counted():
    counts = analysis_of("voided").counts
    assert counts.voided_judges == ("bob",)
    assert counts.undone == 1
    assert counts.voided > 1
    assert analysis_of("imported").counts.imported == 150
    counts = analysis_of("pending").counts
    assert (counts.skipped, counts.pending) == (1, 3)
    assert counts.first_at <= counts.last_at


def test_a_row_of_many_votes_is_wins_and_losses():
    table = make_table(["a", "b"], ["b", "c"], [0.75, 1.0], weight=[8, 3], judge=["ann", None])
    votes = table_votes(BradleyTerry(), table)
    assert set(votes.outcome) == {0.0, 1.0}
    assert votes.total == 11
    expected = tally_votes(BradleyTerry(), table.first, table.second, table.outcome, table.weight)
    np.testing.assert_allclose(votes.tally.sums, expected.sums)
    assert votes.weight[votes.judge == 0].tolist() == [6, 2]
