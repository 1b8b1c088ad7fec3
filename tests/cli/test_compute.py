"""Commands on vote files and on simulated items."""

import json

import pytest

WORLD = ["--instance", "equally-spaced", "-n", 4, "-k", 2, "--gap", 1]


def test_oracle(shortlist):
    found = shortlist.json("oracle", "--utilities", "1,0,-1", "-k", 1)
    assert found["rate"] <= found["rate_upper"] <= 1.011 * found["rate"]
    assert sum(w for _, _, w in found["weights"]) == pytest.approx(1)
    assert [row[:2] for row in found["weights"]] == [[0, 1], [0, 2], [1, 2]]
    gaussian = shortlist.json("oracle", "--utilities", "0.5,-0.5", "-k", 1, "--family", "gaussian", "--sigma", 2)
    assert gaussian["rate"] == pytest.approx(1 / (2 * 4), rel=1e-6)
    assert "nats per comparison" in shortlist("oracle", "--utilities", "1,0,-1", "-k", 1).out


def test_simulate(shortlist):
    arguments = ["simulate", *WORLD, "--delta", 0.1, "--runs", 3, "--seed", 4]
    found = shortlist.json(*arguments, "--jobs", 2)
    assert found["correct"] == 3
    assert found["mean_comparisons"] == pytest.approx(sum(r["comparisons"] for r in found["runs"]) / 3)
    assert all(r["correct"] is True for r in found["runs"])
    assert found["method"] == "bridge"
    alone = shortlist.json(*arguments, "--jobs", 1)
    assert alone["mean_comparisons"] == found["mean_comparisons"]
    assert "3 of 3" in shortlist(*arguments, "--jobs", 1).out


@pytest.mark.parametrize(("stopping", "options"), [("glr", ["--lam", 1]), ("posterior", ["--scale", 2])])
def test_simulate_with_another_stopping_rule(shortlist, stopping, options):
    arguments = ["simulate", *WORLD, "--delta", 0.1, "--runs", 1, "--jobs", 1, "--every", 0.1]
    found = shortlist.json(*arguments, "--stopping", stopping, *options)
    assert (found["stopping"], found["runs"][0]["certified"]) == (stopping, True)
    assert shortlist.json(*arguments)["runs"][0]["comparisons"] != found["runs"][0]["comparisons"]


def test_simulate_a_baseline(shortlist):
    world = ["--instance", "constant", "--p", 0.8, "-n", 4, "-k", 1, "--delta", 0.1, "--jobs", 1]
    found = shortlist.json("simulate", *world, "--method", "seeks", "--runs", 3)
    assert (found["stopping"], found["correct"]) == ("own", 3)
    assert all(r["certified"] and r["reason"] == "certified" for r in found["runs"])
    short = shortlist.json("simulate", *world, "--method", "borda-lucb", "--runs", 1, "--max-votes", 40)
    assert short["runs"][0]["reason"] == "budget"


def test_replay_with_a_baseline(shortlist):
    votes = shortlist.folder / "votes.csv"
    rows = [f"{a},{b},{int(number > 0)}" for a, b in ("xy", "xz", "yz") for number in range(10)]
    votes.write_text("\n".join(["first,second,outcome", *rows]))
    arguments = ["replay", votes, "-k", 1, "--method", "seeks", "--runs", 2, "--jobs", 1]
    found = shortlist.json(*arguments, "--max-votes", 100000)
    assert (found["file_top"], [run["agrees"] for run in found["runs"]]) == (["x"], [True, True])
    votes.write_text("\n".join(["first,second,outcome", *rows, "x,y,0.5"]))
    assert "no ties or grades" in shortlist.refused(*arguments)


def test_replay_that_ends_on_the_budget(shortlist):
    votes = shortlist.folder / "votes.csv"
    votes.write_text("first,second,outcome\n" + "\n".join(["x,y,1", "y,x,1", "x,z,1"] * 10))
    said = shortlist("replay", votes, "-k", 1, "--runs", 2, "--jobs", 1).out
    assert "1 pairs have no recorded votes" in said
    assert "2 of 2 runs would have needed more than the budget of 30 votes" in said
    assert "--tolerance" in said


def test_replay_is_a_simulation_and_claims_nothing(shortlist):
    votes = shortlist.folder / "votes.csv"
    votes.write_text("first,second,outcome\n" + "\n".join(["x,y,1", "y,z,1", "x,z,1"] * 20))
    command = ["replay", votes, "-k", 1, "--runs", 2, "--jobs", 1]
    said, found = shortlist(*command).out, shortlist.json(*command)
    assert said.startswith("Simulated: how many votes a method would have needed.")
    assert found["note"] == "simulated: how many votes a method would have needed"
    assert all(run["stopped"] and run["votes"] <= 60 for run in found["runs"])
    for word in ("prove", "proof", "certified", "error_bound", "error bound", "guarantee"):
        assert word not in said + str(found)


def test_certify(shortlist):
    votes = shortlist.folder / "votes.csv"
    rows = [f"{a},{b},0.9,80" for a, b in (("x", "y"), ("x", "z"), ("y", "z"))]
    votes.write_text("\n".join(["first,second,outcome,weight", *rows]))
    found = shortlist.json("certify", votes, "-k", 1, "--delta", 0.05, "--stopping", "glr")
    assert found["top"] == ["x"]
    assert found["done"] is True
    assert found["error_bound"] <= 0.05
    assert found["certainly_out"] == ["y", "z"]
    assert found["undecided"] == []
    assert found["statistic"] >= found["threshold"]
    text = shortlist("certify", votes, "-k", 1).out
    assert "Top 1 of 3: x" in text
    assert "Guarantee" in text


def test_certify_says_what_is_missing(shortlist):
    votes = shortlist.folder / "votes.csv"
    votes.write_text("first,second,winner\na,b,a\nc,d,c\n")
    said = shortlist("certify", votes, "-k", 1, "--stopping", "glr").out
    assert "not connected" in said
    found = shortlist.json("certify", votes, "-k", 1)
    assert found["done"] is False
    assert found["ask_next"]
    assert "Pairs to compare next" in shortlist("certify", votes, "-k", 1).out


def test_votes_with_a_map_and_bad_rows(shortlist):
    votes = shortlist.folder / "votes.jsonl"
    rows = [{"one": "x", "two": other, "won": "one", "who": "ann"} for other in "yz" for _ in range(40)]
    rows[3]["won"] = "nobody"
    votes.write_text("\n".join(map(json.dumps, rows)))
    mapped = ["--map", "first=one,second=two", "--map", "winner=won,judge=who"]
    found = shortlist.json("votes", votes, *mapped)
    assert (found["votes"], found["rows"], found["items"], found["judges"], found["cases"]) == (79, 80, 3, 1, None)
    assert found["columns"] == {"first": "one", "second": "two", "winner": "won", "judge": "who"}
    assert [row["line"] for row in found["bad_rows"]] == [4]
    assert "winner 'nobody'" in found["bad_rows"][0]["reason"]
    assert "line 4: winner 'nobody'" in shortlist("votes", votes, *mapped).out
    for command in (["certify"], ["replay", "--runs", 1, "--jobs", 1]):
        assert "line 4: winner" in shortlist.refused(*command, votes, "-k", 1, *mapped)
        done = shortlist(*command, votes, "-k", 1, *mapped, "--skip-bad", "--json")
        assert json.loads(done.out)["rows_left_out"] == 1
        assert "left out 1 row " in done.err


@pytest.mark.parametrize(
    ("data", "arguments", "message"),
    [
        (b"one,two,won\nx,y,x\n", ["votes"], "it needs two item columns"),
        (b"one,two,won\nx,y,x\n", ["certify", "-k", "1", "--map", "first=a"], "has no column 'a' for first"),
        (b"PAR1 and no more", ["votes"], "cannot read"),
        (b"\xff\x00\n", ["replay", "-k", "1"], "not UTF-8"),
        (b"first,second,outcome\nx,y,2\n", ["certify", "-k", "1"], "--skip-bad"),
        (b"first,second,outcome,weight\nx,y,1,2\n", ["replay", "-k", "1"], "one row per vote"),
    ],
)
def test_wrong_files_are_one_line_and_exit_code_two(shortlist, data, arguments, message):
    (shortlist.folder / "votes").write_bytes(data)
    assert message in shortlist.refused(*arguments, "votes")


def test_names_are_printed_as_they_are(shortlist):
    (shortlist.folder / "votes.csv").write_text("first,second,outcome\nx[/b],[red]y[/red],1\n")
    text = shortlist("certify", "votes.csv", "-k", 1).out
    assert "x[/b]" in text
    assert "[red]y[/red]" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("oracle --utilities 1,1,0 -k 1", "no unique top 1"),
        ("oracle --utilities 1,0 -k 2", "k"),
        ("oracle --utilities 1,0 -k 0", "k"),
        ("oracle --utilities 1,x -k 1", "separate them by commas"),
        ("oracle --utilities 1,0 -k 1 --family gaussian --sigma 0", "sigma"),
        ("oracle --utilities 1,0 -k 1 --family thurstone", "thurstone"),
        ("oracle --utilities 100,2,3 -k 1", "outside the bound"),
        ("simulate --instance nonsense -n 4 -k 1", "unknown instance"),
        ("simulate --instance sst -n 4 -k 4", "k is 4"),
        ("simulate --instance sst -k 1", "needs n"),
        ("simulate --instance sst -n 4 -k 1 --delta 1", "delta"),
        ("simulate --instance sst -n 4 -k 1 --method oracle", "true utilities"),
        ("simulate --instance sst -n 4 -k 1 --method magic", "unknown method"),
        ("simulate --instance sst -n 4 -k 1 --stopping magic", "unknown stopping rule"),
        ("simulate --instance sst -n 4 -k 1 --gradient magic", "choose sampled or full"),
        ("simulate --instance sst -n 4 -k 1 --method seeks --stopping edges", "its own stopping rule"),
        ("simulate --instance sst -n 4 -k 1 --method borda-lucb --tolerance 0.1", "no tolerance"),
        ("simulate --instance equally-spaced -n 4 -k 1 --method seeks --family gaussian", "win or lose"),
        ("simulate --instance sst -n 4 -k 1 --method active-ranking --delta 0.9", "delta"),
        ("simulate --instance sst -n 4 -k 1 --family gaussian", "bradley-terry"),
        ("certify nowhere.csv -k 1", "cannot read nowhere.csv"),
        ("votes nowhere.parquet", "cannot read nowhere.parquet"),
        ("replay nowhere.csv -k 1 --map nonsense", "TARGET=COLUMN"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_two(shortlist, arguments, message):
    assert message in shortlist.refused(*arguments.split())
