"""The command: what it runs, keeps and refuses."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from experiments.provenance import provenance
from experiments.sweep import read_sweep
from experiments.tables import cell_rows, open_log
from shortlist import make_instance, simulate

from .conftest import TINY, finish, log_lines, results, start, write

pytestmark = pytest.mark.slow


def table(folder, name="tiny"):
    with results(folder, name=name).open(newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def new_runs(printed):
    return json.loads(printed.out)["new_runs"]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """The tiny sweep, run once by two processes of the real command."""
    folder = tmp_path_factory.mktemp("played")
    write(folder / "tiny.toml", TINY)
    code, said = finish(start("run", "tiny.toml", "--jobs", 2, folder=folder))
    assert code == 0, said
    return folder


@pytest.fixture
def again(played, tmp_path):
    """Its results in a folder of one's own."""
    for path in (results(tmp_path), results(tmp_path, "jsonl"), tmp_path / "tiny.toml"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((played / path.relative_to(tmp_path)).read_bytes())
    return tmp_path


def run(*more):
    """The arguments that run the tiny sweep in this process."""
    return "run", "tiny.toml", "--jobs", 1, *more


def test_rows_say_what_simulate_says(played):
    rows = table(played)
    assert [row["id"] for row in rows.values()] == [cell.id for cell in read_sweep("tiny", TINY).cells]
    row = rows["tiny/equally-spaced/n=4/bridge"]
    expected = simulate(make_instance("equally-spaced", 1, 4, 1.5), "bridge", 3, 7, delta=0.2, growth=0.05)
    assert float(row["mean"]) == pytest.approx(expected.mean_comparisons, rel=1e-9)
    assert float(row["standard_error"]) == pytest.approx(expected.standard_error, rel=1e-9)
    assert (row["runs"], row["correct"], row["seed"], row["gap"]) == ("3", str(expected.correct), "7", "1.5")
    quartiles = [float(row[name]) for name in ("min", "quartile_1", "median", "quartile_3", "max")]
    assert quartiles == pytest.approx(np.percentile(expected.comparisons, [0, 25, 50, 75, 100]))
    assert (row["version"], row["commit"]) == provenance()
    assert "seconds" not in row
    bound = rows["tiny/equally-spaced/n=4/lower-bound"]
    assert float(row["times_bound"]) == pytest.approx(float(row["mean"]) / float(bound["mean"]), rel=1e-8)
    assert bound["correct"] == ""


def test_the_bound_of_each_world_is_that_worlds(played):
    values, bounds = (
        [line["result"]["comparisons"] for line in sorted(log_lines(played), key=lambda line: line["run"])
         if line["cell"] == f"tiny/random-utilities/n=3/{method}"]
        for method in ("bridge", "lower-bound")
    )  # fmt: skip
    ratio = np.mean(np.array(values) / np.array(bounds))
    assert float(table(played)["tiny/random-utilities/n=3/bridge"]["times_bound"]) == pytest.approx(ratio, rel=1e-8)


def test_the_number_of_processes_changes_nothing(played, experiment, tmp_path, tiny):
    found = json.loads(experiment(*run("--json")).out)
    assert (found["new_runs"], len(found["cells"]), len(log_lines(played))) == (20, 8, 20)
    assert results(tmp_path).read_bytes() == results(played).read_bytes()


def test_finished_runs_are_never_repeated(again, experiment):
    before, log = results(again).read_bytes(), results(again, "jsonl").read_bytes()
    assert new_runs(experiment(*run("--json"))) == 0
    assert (results(again).read_bytes(), results(again, "jsonl").read_bytes()) == (before, log)
    lines = log.splitlines(keepends=True)
    results(again, "jsonl").write_bytes(b"".join(lines[:9]) + lines[9][:30])
    assert new_runs(experiment(*run("--json"))) == 11
    assert results(again).read_bytes() == before


def test_one_cell_alone_leaves_the_others_as_they_are(again, experiment):
    before = table(again)
    results(again, "jsonl").unlink()  # as after a fresh clone, where only the table is
    assert new_runs(experiment(*run("--cell", "tiny/random-utilities/*", "--json"))) == 6
    assert table(again) == before
    more = json.loads(experiment(*run("--cell", "*=4/bridge", "--runs", "5", "--json")).out)
    assert more["new_runs"] == 5
    assert more["cells"][0]["runs"] == 5
    assert len(table(again)) == 8


def test_more_runs_of_one_cell_stay_when_another_is_played(again, experiment):
    experiment(*run("--cell", "tiny/*/n=4/bridge", "--runs", "5"))
    experiment(*run("--cell", "tiny/*/n=3/bridge"))
    assert table(again)["tiny/equally-spaced/n=4/bridge"]["runs"] == "5"


def test_a_cell_played_alone_finds_the_bound_in_the_table(again, experiment):
    results(again, "jsonl").unlink()
    before = table(again)
    experiment(*run("--cell", "tiny/equally-spaced/n=4/bridge"))
    assert table(again).keys() == before.keys()
    for name, row in table(again).items():
        was, now = (float(found[name].pop("times_bound") or 0) for found in (before, {name: row}))
        assert now == pytest.approx(was, rel=1e-8)
        assert {**row, "times_bound_error": ""} == {**before[name], "times_bound_error": ""}


def test_a_table_of_another_sweep_is_not_lost(again, refused):
    before = results(again).read_bytes()
    for log in (True, False):
        if not log:
            results(again, "jsonl").unlink()
        (again / "tiny.toml").write_text(TINY.replace("n = [3, 4]", "n = [4, 5]"))
        assert "would be lost" in refused(*run())
        assert results(again).read_bytes() == before


def test_restart_forgets_only_what_is_played(again, experiment):
    found = json.loads(experiment(*run("--restart", "--cell", "*/n=3/bridge", "--json")).out)
    assert found["new_runs"] == 6
    assert log_lines(again)[20]["forget"] == ["tiny/equally-spaced/n=3/bridge", "tiny/random-utilities/n=3/bridge"]


def test_results_of_another_version_are_refused(again, experiment, refused):
    log = results(again, "jsonl")
    old = log.read_text().replace(f'"version": "{provenance().version}"', '"version": "0.0.1"')
    log.write_text(old)
    said = refused(*run())
    assert "shortlist 0.0.1" in said
    assert "--restart" in said
    assert log.read_text() == old
    assert new_runs(experiment(*run("--restart", "--json"))) == 20


def test_results_of_another_definition_are_refused(again, refused):
    (again / "tiny.toml").write_text(TINY.replace("delta = 0.2", "delta = 0.1"))
    said = refused(*run())
    assert "delta 0.2, which is now 0.1" in said
    results(again, "jsonl").unlink()
    assert "other parameters" in refused(*run("--cell", "*/bridge"))


def test_rows_tell_runs_without_a_gap(tmp_path, played):
    """Short runs finish first, so the mean of whatever is finished would be biased."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(results(played, "jsonl").read_bytes())
    sweep = read_sweep("tiny", TINY)
    cell = sweep.cells[0]
    with open_log(path) as log:
        del log.records[cell.id, 1]
        assert cell_rows(sweep, cell, log)[0]["runs"] == "1"
        assert cell_rows(sweep, replace(cell, runs=9), log)[0]["standard_error"] == ""
        del log.records[cell.id, 0]
        assert cell_rows(sweep, cell, log) == []


def test_shares_make_a_table_by_pair(tmp_path, experiment):
    grid = 'instance = "equally-spaced"\nn = 4\ngap = 1.0\nmethod = ["bridge", "w-star"]'
    text = TINY.split("[[grid]]")[0].replace('"Tiny"', '"Where"\nmeasure = "shares"')
    text = text.replace('kind = "lines"\nx = "n"\nacross = "instance"', 'kind = "heat"')
    (tmp_path / "where.toml").write_text(f"{text}[[grid]]\n{grid}\n")
    experiment("run", "where.toml", "--jobs", 1, "--runs", 2)
    with results(tmp_path, name="where").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["first"], row["second"]) for row in rows[:6]] == [*zip("000112", "123233", strict=True)]
    for part in (rows[:6], rows[6:]):
        assert sum(float(row["mean"]) for row in part) == pytest.approx(1)
    experiment("plot", "where.toml")


def test_help_explains_every_command(experiment):
    text = experiment("--help").out
    for command in ("list", "run", "plot"):
        assert command in text
        assert "--json" in experiment(command, "--help").out


def test_list(tmp_path, tiny, experiment):
    assert "against-n" in experiment("list").out
    found = json.loads(experiment("list", "--json").out)["experiments"]
    assert {"smoke", "against-n", "times-the-bound"} <= {entry["name"] for entry in found}
    assert "tiny/equally-spaced/n=3/bridge  3 runs" in experiment("list", tiny).out
    cells = json.loads(experiment("list", tiny, "--json").out)["cells"]
    assert cells[0]["gap"] == 1.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("run nothing", "choose one of against-"),
        ("list nothing", "unknown experiment"),
        ("run smoke --cell smoke/n=5", "no cell of smoke"),
        ("run smoke --runs 0", "runs"),
        ("run smoke --jobs 0", "jobs"),
        ("run times-the-bound", "no runs of its own"),
        ("run missing.toml", "cannot read missing.toml"),
        ("run magic.toml", "unknown method 'magic'"),
        ("run smoke --results /dev/null/x", "cannot write"),
        ("plot smoke", "first run: python -m experiments run smoke"),
        ("plot nothing", "unknown experiment"),
        ("run smoke --cluster nonsense", "tcp://host:8786"),
        ("run smoke --cluster tcp://127.0.0.1:1", "start one with: dask scheduler"),
    ],
)
def test_wrong_calls_are_one_line_and_write_nothing(tmp_path, arguments, message, refused):
    (tmp_path / "magic.toml").write_text(TINY.replace('"oracle-tracking"', '"magic"'))
    assert message in refused(*arguments.split())
    assert [path.name for path in tmp_path.iterdir()] == ["magic.toml"]
