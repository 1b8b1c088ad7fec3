import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = [str(Path(sys.executable).parent / "shortlist")]


def run(*arguments, code=0):
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stderr
    return done


def run_json(*arguments):
    return json.loads(run(*arguments, "--json").stdout)


def test_help_lists_every_command():
    text = run("--help").stdout
    for command in ("demo", "oracle", "simulate", "certify", "replay", "votes", "report"):
        assert command in text
        assert "--json" in run(command, "--help").stdout
    assert "experiment" in text
    for command in ("list", "run", "plot"):
        assert "--json" in run("experiment", command, "--help").stdout
    assert run("--version").stdout.startswith("shortlist ")


def test_oracle():
    found = run_json("oracle", "--utilities", "1,0,-1", "-k", "1")
    assert found["rate"] <= found["rate_upper"] <= 1.011 * found["rate"]
    assert sum(w for _, _, w in found["weights"]) == pytest.approx(1)
    assert [row[:2] for row in found["weights"]] == [[0, 1], [0, 2], [1, 2]]
    gaussian = run_json("oracle", "--utilities", "0.5,-0.5", "-k", "1", "--family", "gaussian", "--sigma", "2")
    assert gaussian["rate"] == pytest.approx(1 / (2 * 4), rel=1e-6)
    assert "nats per comparison" in run("oracle", "--utilities", "1,0,-1", "-k", "1").stdout


def test_simulate():
    world = ["--instance", "equally-spaced", "-n", "4", "-k", "2", "--gap", "1"]
    arguments = ["simulate", *world, "--delta", "0.1", "--runs", "3", "--seed", "4"]
    found = run_json(*arguments)
    assert found["correct"] == 3
    assert found["mean_comparisons"] == pytest.approx(sum(r["comparisons"] for r in found["runs"]) / 3)
    assert all(r["correct"] is True for r in found["runs"])
    assert found["method"] == "bridge"
    assert run_json(*arguments, "--jobs", "1")["mean_comparisons"] == found["mean_comparisons"]
    assert "3 of 3" in run(*arguments).stdout


def test_simulate_a_baseline():
    world = ["--instance", "constant", "--p", "0.8", "-n", "4", "-k", "1", "--delta", "0.1"]
    found = run_json("simulate", *world, "--method", "seeks", "--runs", "3")
    assert (found["rule"], found["correct"]) == ("own", 3)
    assert all(r["certified"] and r["reason"] == "certified" for r in found["runs"])
    short = run_json("simulate", *world, "--method", "borda-lucb", "--runs", "1", "--max-votes", "40")
    assert short["runs"][0]["reason"] == "budget"


def test_replay_with_a_baseline(tmp_path):
    votes = tmp_path / "votes.csv"
    rows = [f"{a},{b},{int(number > 0)}" for a, b in ("xy", "xz", "yz") for number in range(10)]
    votes.write_text("\n".join(["first,second,outcome", *rows]))
    found = run_json("replay", str(votes), "-k", "1", "--method", "seeks", "--runs", "2", "--max-votes", "100000")
    assert (found["file_top"], found["correct"]) == (["x"], 2)
    votes.write_text("\n".join(["first,second,outcome", *rows, "x,y,0.5"]))
    assert "no ties or grades" in run("replay", str(votes), "-k", "1", "--method", "seeks", code=2).stderr


def test_certify(tmp_path):
    votes = tmp_path / "votes.csv"
    rows = [f"{a},{b},0.9,80" for a, b in (("x", "y"), ("x", "z"), ("y", "z"))]
    votes.write_text("\n".join(["first,second,outcome,weight", *rows]))
    found = run_json("certify", str(votes), "-k", "1", "--delta", "0.05", "--rule", "glr")
    assert found["top"] == ["x"]
    assert found["done"] is True
    assert found["error_bound"] <= 0.05
    assert found["certainly_out"] == ["y", "z"]
    assert found["undecided"] == []
    assert found["statistic"] >= found["threshold"]
    text = run("certify", str(votes), "-k", "1").stdout
    assert "Top 1 of 3: x" in text
    assert "Guarantee" in text


def test_votes_with_a_map_and_bad_rows(tmp_path):
    votes = tmp_path / "votes.jsonl"
    rows = [{"one": "x", "two": other, "won": "one", "who": "ann"} for other in "yz" for _ in range(40)]
    rows[3]["won"] = "nobody"
    votes.write_text("\n".join(map(json.dumps, rows)))
    mapped = ["--map", "first=one,second=two", "--map", "winner=won,judge=who"]
    found = run_json("votes", str(votes), *mapped)
    assert (found["votes"], found["rows"], found["items"], found["judges"], found["cases"]) == (79, 80, 3, 1, None)
    assert found["columns"] == {"first": "one", "second": "two", "winner": "won", "judge": "who"}
    assert found["bad_rows"] == [{"line": 4, "reason": "winner 'nobody' is neither 'x' nor 'y', a side or a tie"}]
    assert "line 4: winner 'nobody'" in run("votes", str(votes), *mapped).stdout
    for command in (["certify"], ["replay", "--runs", "1"]):
        assert "line 4: winner" in run(*command, str(votes), "-k", "1", *mapped, code=2).stderr
        done = run(*command, str(votes), "-k", "1", *mapped, "--skip-bad", "--json")
        assert json.loads(done.stdout)["rows_left_out"] == 1
        assert "left out 1 rows" in done.stderr


@pytest.mark.parametrize(
    ("data", "arguments", "message"),
    [
        (b"one,two,won\nx,y,x\n", ["votes"], "needed are two item columns"),
        (b"one,two,won\nx,y,x\n", ["certify", "-k", "1", "--map", "first=a"], "has no column 'a' for first"),
        (b"PAR1 and no more", ["votes"], "cannot read"),
        (b"\xff\x00\n", ["replay", "-k", "1"], "not UTF-8"),
        (b"first,second,outcome\nx,y,2\n", ["certify", "-k", "1"], "--skip-bad"),
    ],
)
def test_wrong_files_are_one_line_and_exit_code_two(tmp_path, data, arguments, message):
    file = tmp_path / "votes"
    file.write_bytes(data)
    done = run(*arguments, str(file), code=2)
    assert message in done.stderr
    assert (done.stderr.count("\n"), done.stdout) == (1, "")


def test_names_are_printed_as_they_are(tmp_path):
    votes = tmp_path / "votes.csv"
    votes.write_text("first,second,outcome\nx[/b],[red]y[/red],1\n")
    text = run("certify", str(votes), "-k", "1").stdout
    assert "x[/b]" in text
    assert "[red]y[/red]" in text


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "shortlist", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("shortlist ")


def test_ctrl_c_is_quick_and_says_so():
    arguments = ["simulate", "--instance", "equally-spaced", "-n", "30", "-k", "5", "--runs", "4", "--jobs", "2"]
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(5)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert said.strip().endswith("interrupted")


def test_demo_ends_in_a_verdict():
    found = run_json("demo")
    assert found["done"] is True
    assert set(found["top"]) == {"reason then check", "three examples", "step by step"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("oracle --utilities 1,1,0 -k 1", "no unique top 1"),
        ("oracle --utilities 1,0 -k 2", "k"),
        ("oracle --utilities 1,0 -k 0", "k"),
        ("oracle --utilities 1,x -k 1", "separated by commas"),
        ("oracle --utilities 1,0 -k 1 --family gaussian --sigma 0", "sigma"),
        ("oracle --utilities 1,0 -k 1 --family thurstone", "thurstone"),
        ("oracle -k 1", "utilities"),
        ("simulate --instance nonsense -n 4 -k 1", "unknown instance"),
        ("simulate --instance sst -n 4 -k 4", "k is 4"),
        ("simulate --instance sst -k 1", "needs n"),
        ("simulate --instance sst -n 4 -k 1 --delta 1", "delta"),
        ("simulate --instance sst -n 4 -k 1 --method oracle", "true utilities"),
        ("simulate --instance sst -n 4 -k 1 --method magic", "unknown method"),
        ("simulate --instance sst -n 4 -k 1 --method seeks --rule edges", "stopping of its own"),
        ("simulate --instance sst -n 4 -k 1 --method borda-lucb --tolerance 0.1", "no tolerance"),
        ("simulate --instance equally-spaced -n 4 -k 1 --method seeks --family gaussian", "win or lose"),
        ("simulate --instance sst -n 4 -k 1 --method active-ranking --delta 0.9", "delta"),
        ("simulate --instance sst -n four -k 1", "integer"),
        ("simulate --instance sst -n 4 -k 1 --family gaussian", "bradley-terry"),
        ("simulate --instance sst -n 4 -k 1 --jobs 0", "jobs"),
        ("oracle --utilities 100,2,3 -k 1", "outside the bound"),
        ("certify nowhere.csv -k 1", "cannot read nowhere.csv"),
        ("votes nowhere.parquet", "cannot read nowhere.parquet"),
        ("replay nowhere.csv -k 1 --map nonsense", "TARGET=COLUMN"),
        ("frobnicate", "frobnicate"),
        ("demo --delta 0", "delta"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_two(arguments, message):
    done = run(*arguments.split(), code=2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
