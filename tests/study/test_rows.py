"""The one table: whoever shows votes counts the same ones."""

import json
from collections import Counter

import numpy as np
import pytest

from shortlist import create_study, load_study
from shortlist.analysis.votes import study_votes
from shortlist.errors import LateAnswer
from shortlist.report.page import make_report
from shortlist.study.rows import STATUSES

ITEMS = ["a", "b", "c"]
RATING = {"a": 2.0, "b": 0.0, "c": -2.0}


def proved(storage=None):
    """A study with a verdict."""
    study = create_study(ITEMS, 1, 0.2, storage=storage, name="demo", seed=1)
    rng = np.random.default_rng(1)
    while not study.verdict.done:
        question = study.ask(judge="ann")
        chance = 1 / (1 + np.exp(RATING[question.second] - RATING[question.first]))
        study.tell(question, float(rng.random() < chance))
    return study


def test_void_after_a_verdict_is_the_same_for_everybody(tmp_path):

    storage = f"sqlite:///{tmp_path}/studies.db"
    study = proved(storage)
    verdict, votes = study.verdict, len(study.votes)
    study.import_votes(["a", "b"], ["b", "c"], [1.0, 0.0], ["eve", "eve"])
    assert len(study.votes) == votes + 2
    study.void("eve")
    for seen in (study, load_study("demo", storage)):
        assert seen.verdict == verdict
        assert len(seen.votes) == votes
        assert not any(vote[3] == "eve" for vote in seen.votes)
        assert (seen.counts["counted"], seen.counts["voided"]) == (votes, 2)
        counted, counts = study_votes(seen)
        assert (counted.total, counts.voided) == (votes, 2)
    page = make_report(study)
    assert "2 votes of a voided judge are not counted" in page
    assert "eve" in page


def test_every_row_has_one_status_and_they_add_up():
    study = create_study(ITEMS, 1, 0.001, seed=4)
    told = [study.ask(judge=judge) for judge in ("ann", "ann", "bob", "eve", "eve")]
    for question in told:
        study.tell(question, 1.0)
    study.skip(study.ask(judge="ann"), "no idea")
    left = study.ask(judge="eve")
    late = study.ask(judge="bob", lease=-1.0)
    pending = study.ask(judge="ann")
    with pytest.raises(LateAnswer, match="expired before this answer"):
        study.tell(late, 0.0)
    study.undo(told[0])
    study.import_votes(["a"], ["b"], [0.5], ["eve"], source="file")
    study.void("eve")
    status = {row.question: row.status for row in study.rows if row.question is not None}
    assert [status[question.id] for question in told] == ["undone", "counted", "counted", "voided", "voided"]
    assert (status[left.id], status[late.id], status[pending.id]) == ("lost", "late", "pending")
    assert [row.status for row in study.rows if row.source == "file"] == ["voided"]
    assert study.counts == {**dict.fromkeys(STATUSES, 0), **Counter(row.status for row in study.rows)}
    assert sum(study.counts.values()) == len(study.rows)
    assert study.row(late.id).outcome == 0.0
    assert study.question(told[3].id) == told[3]


def test_rows_follow_a_transaction_and_forget_one_that_fails(tmp_path):
    study = create_study(ITEMS, 1, storage=f"sqlite:///{tmp_path}/studies.db", name="demo", seed=3)
    with study.transaction():
        question = study.ask()
        assert [row.status for row in study.rows] == ["pending"]
        study.tell(question, 1.0)
        assert [row.status for row in study.rows] == ["counted"]

    def fail():
        with study.transaction():
            study.ask()
            assert len(study.rows) == 2
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [row.status for row in study.rows] == ["counted"]
    assert load_study("demo", study.storage).rows == study.rows


def test_rows_as_a_data_frame():
    study = proved()
    frame = study.to_pandas()
    assert list(frame["status"].unique()) == ["counted"]
    assert len(frame) == study.counts["counted"] == study.verdict.votes
    assert json.loads(frame[["first", "outcome"]].to_json(orient="records"))[0]["first"] in ITEMS
