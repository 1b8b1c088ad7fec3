import json

import pytest

from shortlist.errors import BadExperiment
from shortlist.experiments.results import open_log, read_table, whole_file, write_table


def record(cell, run, **more):
    return {"cell": cell, "run": run, "definition": {}, "result": {}, "version": "1", "commit": "", **more}


def test_a_torn_last_line_is_dropped_and_written_over(tmp_path):
    path = tmp_path / "deep" / "log.jsonl"
    with open_log(path) as log:
        log.add(record("a", 0))
        log.add(record("a", 1))
    whole = path.read_bytes()
    for torn in (b"{", b'{"cell": "a", "run": 2, "definition"', json.dumps(record("a", 2)).encode()):
        path.write_bytes(whole + torn)
        with open_log(path) as log:
            assert set(log.records) == {("a", 0), ("a", 1)}
            log.add(record("a", 3))
        with open_log(path) as log:
            assert set(log.records) == {("a", 0), ("a", 1), ("a", 3)}


def test_what_is_no_run_is_named(tmp_path):
    path = tmp_path / "log.jsonl"
    for garbage in ("nonsense", "[1]", '{"cell": "a"}', "3"):
        path.write_text(f"{json.dumps(record('a', 0))}\n{garbage}\n")
        with pytest.raises(BadExperiment, match=r"line 2 of .*log\.jsonl"), open_log(path):
            pass


def test_forgotten_runs_stay_forgotten(tmp_path):
    path = tmp_path / "log.jsonl"
    with open_log(path) as log:
        for cell in "ab":
            log.add(record(cell, 0))
        log.forget(["a", "c"])
        log.add(record("a", 5))
    with open_log(path) as log:
        assert set(log.records) == {("a", 5), ("b", 0)}
        assert log.of("a") == {5: record("a", 5)}


def test_only_one_may_write(tmp_path):
    path = tmp_path / "log.jsonl"
    with open_log(path), pytest.raises(BadExperiment, match="in use"), open_log(path):
        pass
    with open_log(path):
        pass


def test_tables_are_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "table.csv"
    write_table(path, ["a", "b"], [{"a": "1", "b": "x,y"}])
    assert path.read_bytes() == b'a,b\n1,"x,y"\n'
    with pytest.raises(UnicodeEncodeError), whole_file(path) as draft:
        draft.write_text("half \ud800", encoding="utf-8")
    assert read_table(path) == [{"a": "1", "b": "x,y"}]
    assert list(tmp_path.iterdir()) == [path]
    assert read_table(tmp_path / "none.csv") == []
    with pytest.raises(BadExperiment, match="cannot write"):
        write_table(tmp_path / "no folder" / "table.csv", ["a"], [])
