"""Whatever a vote file holds, importing it into a study ends in all of its votes or in one line, never in a part."""

import json
import random
import sys
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shortlist import create_study, load_study
from shortlist.analysis.votes import as_table
from shortlist.cli.app import main
from shortlist.errors import BadProblem, BadVotes, CasesUsedUp, ShortlistError
from shortlist.study.rows import counted
from shortlist.study.sql import close_databases
from shortlist.votes.read import read_votes

FUZZ = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
ITEMS = ["x", "y", "z"]
CELL = st.sampled_from(
    [*ITEMS, "tie", "model_a", "model_b", "w", "", " x ", "nan", "1e400", "\0", '"', "é", "1", "0", "0.5", "-3"]
)
HEADERS = [
    ["first", "second", "winner"], ["first", "second", "outcome"], ["first", "second", "winner", "judge"],
    ["model_a", "model_b", "winner"], ["winner", "loser"], ["first", "second", "outcome", "weight"],
]  # fmt: skip


def good_row(header):
    """A row that is understood, mostly."""
    sides = {"first": "x", "second": "y", "model_a": "x", "model_b": "y", "loser": "z"}
    words = {"winner": "x", "outcome": "0.5", "judge": "ann", "weight": "1"}
    return st.just([{**sides, **words}[title] for title in header])


@pytest.fixture
def url(tmp_path):
    made = f"sqlite:///{tmp_path / 'studies.db'}"
    create_study(ITEMS, 1, 1e-30, storage=made, name="demo")
    return made


def import_file(url, file, monkeypatch, capsys):
    """What the command prints, None if it refuses, in one line."""
    monkeypatch.setattr(sys, "argv", ["shortlist", "import", "demo", str(file), "--storage", url, "--json"])
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    if ended.value.code == 0:
        return json.loads(said.out)
    assert ended.value.code == 2
    assert said.err.startswith("shortlist: ")
    assert said.err.count("\n") == 1
    assert not said.out
    return None


def all_or_nothing(url, file, monkeypatch, capsys):
    close_databases()
    before = rows_of(load_study("demo", url))
    found = import_file(url, file, monkeypatch, capsys)
    after = rows_of(load_study("demo", url))
    if found is None:
        assert after == before
        return
    table = read_votes(file)
    sides = ([table.items[i] for i in side.tolist()] for side in (table.first, table.second))
    nothing = [None] * len(table)
    rows = Counter(zip(*sides, table.outcome.tolist(), table.judge or nothing, table.unit or nothing, strict=True))
    assert after == before | rows  # of equal rows, those that are more than any import had before


def rows_of(study):
    return Counter((row.first, row.second, row.outcome, row.judge, row.unit) for row in study.rows)


@FUZZ
@given(data=st.data(), header=st.sampled_from(HEADERS))
def test_rows(url, tmp_path, monkeypatch, capsys, data, header):
    rows = data.draw(
        st.lists(good_row(header) | st.lists(CELL, min_size=len(header), max_size=len(header)), max_size=5)
    )
    file = tmp_path / "votes.csv"
    file.write_text("\n".join(",".join(row) for row in [header, *rows]))
    all_or_nothing(url, file, monkeypatch, capsys)


@FUZZ
@given(data=st.binary(max_size=200), ending=st.sampled_from(["csv", "json", "jsonl", "parquet", "txt"]))
def test_bytes(url, tmp_path, monkeypatch, capsys, data, ending):
    file = tmp_path / f"votes.{ending}"
    file.write_bytes(data)
    all_or_nothing(url, file, monkeypatch, capsys)


@pytest.mark.parametrize("bad", ["x,kiwi,x,ann", "x,y,1.5e400,ann", "x,x,x,ann", "x,y,x,void"])
def test_one_bad_row_among_thousands(url, tmp_path, monkeypatch, capsys, bad):
    """Votes are stored a thousand in a record; the third thousand is to blame."""
    load_study("demo", url).void("void")
    file = tmp_path / "votes.csv"
    file.write_text("\n".join(["first,second,winner,judge", *["x,y,x,ann"] * 2500, bad]))
    all_or_nothing(url, file, monkeypatch, capsys)
    assert load_study("demo", url).votes == []


@given(
    first=st.lists(st.sampled_from([*ITEMS, "w", 3, None]), max_size=4),
    second=st.lists(st.sampled_from([*ITEMS, "w"]), max_size=4),
    outcome=st.lists(st.sampled_from([0.0, 0.5, 1, 2.0, float("nan"), "1", None, [1]]), max_size=4),
    judge=st.lists(st.sampled_from(["ann", None, "void"]), max_size=4),
)
def test_lists(first, second, outcome, judge):
    study = create_study(ITEMS, 1, 1e-30)
    study.void("void")
    try:
        study.import_votes(first, second, outcome, judge)
    except ShortlistError:
        assert study.votes == []
        return
    assert len(study.votes) == len(first) == study.verdict.votes


def test_a_case_that_a_question_was_about_is_a_unit_that_was_seen():
    study = create_study(["a", "b", "c"], k=1)
    study.tell(study.ask(cases=["c1"]), 1.0)
    study.import_votes(["a", "a"], ["b", "b"], [1.0, 1.0], unit=["c1", "c2"])
    assert [row.weight for row in study.rows if row.question is None] == [0.0, 1.0]


def test_a_unit_of_an_import_is_a_case_that_was_used():
    study = create_study(["a", "b", "c"], k=1)
    study.import_votes(["a"], ["b"], [1.0], unit=["c1"])
    assert study.ask(cases=["c1", "c2"], once=True).case == "c2"
    with pytest.raises(CasesUsedUp):
        study.ask(cases=["c1", "c2"], once=True)


def test_glr_takes_no_case_of_a_question_again():
    study = create_study(["a", "b", "c"], k=1, stopping="glr")
    study.tell(study.ask(cases=["c1"]), 1.0)
    with pytest.raises(BadProblem, match="takes every vote as independent"):
        study.import_votes(["a"], ["b"], [1.0], unit=["c1"])


def test_recorded_votes_are_drawn_or_imported_and_not_both():
    drawn = create_study(["a", "b"], 1)
    drawn.tell(drawn.ask(cases={("a", "b"): ["vote 0", "vote 1"]}, once=True), "tie")
    with pytest.raises(BadProblem, match="would count twice"):
        drawn.import_votes(["a"], ["b"], [1.0])
    imported = create_study(["a", "b"], 1)
    imported.import_votes(["a"], ["b"], [1.0])
    with pytest.raises(BadProblem, match="would count twice"):
        imported.ask(cases={("a", "b"): ["vote 0"]}, once=True)


def columns(study):
    """What an export of the study holds, as arguments of an import."""
    table = as_table(counted(study.rows))
    first, second = ([table.items[i] for i in side] for side in (table.first, table.second))
    return {"first": first, "second": second, "outcome": table.outcome.tolist(), "judge": table.judge, "id": table.id}


def asked(votes, seed=0):
    study = create_study(ITEMS, k=1, seed=seed)
    for _ in range(votes):
        study.tell(study.ask(judge="ann"), 1.0)
    return study


def test_a_study_knows_its_own_votes():
    study = asked(5)
    exported = columns(study)
    study.undo(study.rows[0].question)
    verdict = study.import_votes(**exported)  # also the one that was undone
    assert (len(study.votes), study.counts["undone"]) == (4, 1)
    assert any("5 imported rows were counted before" in caveat for caveat in verdict.caveats)
    study.import_votes(**{**exported, "id": [f"other {row}" for row in range(5)]})
    assert len(study.votes) == 9  # other ids say that they are other votes


def test_votes_that_come_back_through_another_study_are_known():
    study, other = asked(5), asked(3, seed=1)
    other.import_votes(**columns(study))
    assert len(other.votes) == 8
    study.import_votes(**columns(other))
    assert len(study.votes) == 8  # the three of the other study are new
    study.import_votes(**columns(other))
    other.import_votes(**columns(study))
    assert len(study.votes) == len(other.votes) == 8


def test_an_export_that_is_imported_back_by_command_adds_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    study = create_study(ITEMS, k=1, storage="sqlite:///studies.db", name="fruit")
    for _ in range(4):
        study.tell(study.ask(cases=["c1", "c2"]), 1.0)
    for command in (["export", "fruit", "votes.csv"], ["import", "fruit", "votes.csv"]):
        monkeypatch.setattr(sys, "argv", ["shortlist", *command, "--storage", "sqlite:///studies.db"])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
    assert "4 imported rows were counted before" in capsys.readouterr().out
    study.refresh()
    assert len(study.votes) == 4


def test_a_studys_own_votes_are_refused_without_their_ids():
    """All of them, or those that were told since the last import; other votes on the same pairs are new."""
    rng, study = random.Random(1), create_study(["a", "b", "c"], 1, 1e-6)
    for _ in range(12):
        study.tell(study.ask(judge="x"), rng.random())
    few = [(first, second, outcome) for first, second, outcome, _ in study.votes]
    study.import_votes(*zip(*few, strict=True), id=[f"few {row}" for row in range(12)])  # may be equal by chance
    for _ in range(12):
        study.tell(study.ask(judge="x"), rng.random())
    own = [(row.first, row.second, row.outcome) for row in study.rows if row.question is not None]
    every = [vote[:3] for vote in study.votes]
    for votes in (own, every, own[12:]):
        with pytest.raises(BadVotes, match="these are this study's own votes"):
            study.import_votes(*zip(*votes, strict=True), id=[f"vote {row}" for row in range(len(votes))])
    others = [(first, second, rng.random()) for first, second, _ in own]
    assert study.import_votes(*zip(*others, strict=True), id=[f"other {row}" for row in range(24)]).votes == 60
