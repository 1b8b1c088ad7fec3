import json
import os
import signal
import subprocess
import sys
from collections import Counter

import pytest

import shortlist
from shortlist.errors import BadCases, BadJudge, BadOutcome
from shortlist.study.sql import close_databases
from tests.judges.world import told
from tests.patience import wait_until


def new_study(items="ab", **options):
    return shortlist.create_study(list(items), k=1, delta=1e-30, **options)


def quiet(text):
    pass


def test_each_vote_is_used_once_whatever_side_it_was_recorded_from():
    judge = shortlist.RecordedJudge(["a", "b", "b", "a"], ["b", "a", "a", "b"], [1, 0, 0, 0])  # a wins 3 of 4
    orders = set()
    for seed in range(20):
        study = new_study(seed=seed)
        run = shortlist.run_study(study, judge, warn=quiet)
        a_wins = [answer.outcome == (answer.first == "a") for answer in told(study)]
        assert sorted(a_wins) == [False, True, True, True]
        assert {answer.case for answer in told(study)} == {"vote 1", "vote 2", "vote 3", "vote 4"}
        assert run.used_up
        assert run.warnings == (
            "All recorded votes on the pairs that a proof needs are used up: 4 of 4 votes were used. Not proved.",
        )
        orders.add(tuple(answer.case for answer in told(study)))
    assert len(orders) > 10


def test_the_order_is_uniform_and_the_same_again():
    judge = shortlist.RecordedJudge(["a"] * 3, ["b"] * 3, [1, 1, 1])
    first = Counter()
    for seed in range(600):
        study = new_study(seed=seed)
        first[study.ask(cases=judge.votes_on(study.items), once=True).case] += 1
    assert all(150 < count < 250 for count in first.values())
    orders = []
    for _ in range(2):
        study = new_study(seed=5)
        shortlist.run_study(study, judge, warn=quiet)
        orders.append([answer.case for answer in told(study)])
    assert orders[0] == orders[1]


def test_pairs_without_votes_are_never_asked():
    judge = shortlist.RecordedJudge(["a", "b"], ["b", "c"], [1, 1])
    study = new_study("abc")
    shortlist.run_study(study, judge, warn=quiet)
    assert {frozenset((row.first, row.second)) for row in study.rows} == {frozenset("ab"), frozenset("bc")}
    nothing = shortlist.run_study(new_study("cd"), judge, warn=quiet)
    assert (nothing.used_up, nothing.verdict.votes) == (True, 0)


def test_a_question_uses_up_a_whole_unit_on_every_pair():
    first, second, unit = "aaabb", "bbccc", ["x", "x", "x", "y", None]
    judge = shortlist.RecordedJudge(list(first), list(second), [1, 0, 1, 1, 1], unit=unit)
    for seed in range(20):
        study = new_study("abc", seed=seed)
        run = shortlist.run_study(study, judge, warn=quiet)
        assert sorted(row.case for row in study.rows) == ["unit x", "unit y", "vote 5"]
        assert "3 of 3 units were used" in run.warnings[-1]
        for row in study.rows:  # of two votes on one pair the first counts
            if {row.first, row.second} == {"a", "b"}:
                assert row.outcome == (row.first == "a")


def test_a_second_run_under_another_name_uses_nothing_again():
    votes = ["a"] * 5, ["b"] * 5, [1, 1, 1, 1, 1]
    study = new_study()
    shortlist.run_study(study, shortlist.RecordedJudge(*votes), warn=quiet)
    shortlist.run_study(study, shortlist.RecordedJudge(*votes, name="other"), warn=quiet)
    assert len(study.rows) == 5


def test_a_question_without_a_recorded_vote_is_skipped():
    judge = shortlist.RecordedJudge(["a"], ["b"], [1])
    study = new_study()
    study.ask(judge=judge.name)
    shortlist.run_study(study, judge, warn=quiet)
    assert study.counts["skipped"] == study.counts["counted"] == 1


def test_measured_differences():
    judge = shortlist.RecordedJudge(["a", "b"], ["b", "a"], [2.5, -2.5], family="gaussian")
    study = shortlist.create_study(["a", "b"], k=1, family="gaussian", max_votes=5)
    shortlist.run_study(study, judge, position="both", warn=quiet)
    assert {answer.outcome * (1 if answer.first == "a" else -1) for answer in told(study)} == {2.5}


def test_lists_that_make_no_sense():
    for first, second, outcome in (([], [], []), (["a"], ["b", "c"], [1]), (["a"], ["b"], [])):
        with pytest.raises(BadJudge):
            shortlist.RecordedJudge(first, second, outcome)
    with pytest.raises(BadJudge):
        shortlist.RecordedJudge(["a"], ["b"], [1], unit=[])
    with pytest.raises(BadOutcome):
        shortlist.RecordedJudge(["a"], ["b"], [7])
    with pytest.raises(BadCases, match="leave out cases"):
        shortlist.run_study(new_study(), shortlist.RecordedJudge(["a"], ["b"], [1]), cases=["x"])


@pytest.mark.slow
def test_several_processes_and_a_kill_use_no_vote_twice(tmp_path):
    items = list("abcdef")
    rows = [
        f"{one},{other},{(one, other)[n % 2]}" for one in items for other in items if one < other for n in range(40)
    ]
    (tmp_path / "items.txt").write_text("\n".join(items))
    (tmp_path / "votes.csv").write_text("\n".join(["first,second,winner", *rows]))
    command = [sys.executable, "-m", "shortlist", "run", "items.txt", "-k", "2", "--votes", "votes.csv", "--json"]
    command += ["--delta", "1e-12"]
    url = f"sqlite:///{tmp_path / 'shortlist.db'}"
    start = {"cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "env": {**os.environ}}
    shortlist.create_study(items, 2, 1e-12, storage=url, name="items")
    killed, *others = [subprocess.Popen(command, **start) for _ in range(3)]
    study = shortlist.load_study("items", url)
    wait_until(lambda: study.refresh().votes > 60 or killed.poll() is not None)
    killed.send_signal(signal.SIGKILL)
    for process in (killed, *others):
        process.communicate()
    last = json.loads(subprocess.run(command, **start, check=False).stdout)
    study.refresh()
    assert last["votes"] == len(rows) == len(study.rows) == len({row.case for row in study.rows})
    assert study.counts["counted"] == len(rows)
    close_databases()
