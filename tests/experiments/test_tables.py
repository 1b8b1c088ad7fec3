import json
import signal

import pytest

from experiments.errors import BadExperiment, RunsFailed
from experiments.tables import open_log, read_table, whole_file, write_table


def record(cell, run, **more):
    return {
        "cell": cell,
        "run": run,
        "definition": {},
        "result": {"comparisons": 1},
        "version": "1",
        "commit": "",
        **more,
    }


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
    good = json.dumps(record("a", 0))
    damaged = [
        json.dumps({**record("a", 0), name: value})
        for name, value in [("run", "1"), ("definition", None), ("result", None), ("result", {}), ("commit", None)]
    ]
    damaged += [good.replace('"comparisons": 1', '"comparisons": NaN'), '{"forget": 3}']
    for garbage in ("nonsense", "[1]", '{"cell": "a"}', "3", '"forget"', *damaged):
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
    write_table(path, ["id", "mean"], [{"id": "x,y", "mean": "1"}])
    assert path.read_bytes() == b'id,mean\n"x,y",1\n'
    with pytest.raises(UnicodeEncodeError), whole_file(path) as draft:
        draft.write_text("half \ud800", encoding="utf-8")
    assert read_table(path, ["id", "mean"]) == [{"id": "x,y", "mean": "1"}]
    assert list(tmp_path.iterdir()) == [path]
    assert read_table(tmp_path / "none.csv", ["id"]) == []
    with pytest.raises(BadExperiment, match="cannot write"):
        write_table(tmp_path / "no folder" / "table.csv", ["a"], [])


def test_a_table_that_others_changed(tmp_path):
    path, columns = tmp_path / "table.csv", ["id", "mean", "median"]
    path.write_bytes(b"\xef\xbb\xbfid,mean,median\r\na,1,\r\n")  # by a spreadsheet
    assert read_table(path, columns) == [{"id": "a", "mean": "1", "median": ""}]
    for text, message in [
        ("id;mean;median\na;1;2\n", "columns"), ("", "cannot read"), ("id,mean,median\na,1\n", "line 2"),
        ("id,mean,median\na,1,2\nb,,2\n", "line 3"), ("id,mean,median\na,much,2\n", "line 2"),
        ("id,mean,median\na,1,nan\n", "line 2"),
    ]:  # fmt: skip
        path.write_text(text)
        with pytest.raises(BadExperiment, match=message):
            read_table(path, columns)


def test_a_full_disk_ends_in_one_word(tmp_path):
    import resource  # here, as Windows has none

    path = tmp_path / "log.jsonl"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
        with pytest.raises(RunsFailed, match=r"cannot write .*are safe"), open_log(path) as log:
            [log.add(record("a", run)) for run in range(20)]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    with open_log(path) as log:
        assert 1 < len(log.records) < 20
