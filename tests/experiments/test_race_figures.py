"""Races of sampling rules: their tables say what the runs say, and the figures and Markdown what the tables say."""

import json
import math
from pathlib import Path

import pytest

from experiments.engines import local
from experiments.figures import draw, read_rows
from experiments.race_figures import MEAN, draw_exact, draw_proofs, markdown, mean_shares
from experiments.races import Race, exact_sets, proof
from experiments.run import choose, run_sweep
from experiments.sweep import load_sweep, read_sweep
from shortlist import make_instance
from shortlist.errors import BadInput

ROOT = Path(__file__).parents[2]
RACE = """
title = "Race"
measure = "exact"
id = ["instance", "n", "method"]

[figure]
kind = "race"
reference = "bridge"

[all]
k = 2
delta = 0.1
growth = 0.05
max_votes = 200
seed = 4
runs = 5
method = ["bridge", "swiss", "t3c"]

[[grid]]
instance = "equally-spaced"
n = 5
gap = 0.5

[[grid]]
instance = "normal:1.0"
n = 6
"""
PROOFS = (
    RACE.replace('"exact"', '"proofs"')
    .replace("growth = 0.05", 'growth = 0.05\nstopping = "edges"')
    .replace("max_votes = 200", "max_votes = 600")
)


def played(tmp_path_factory, text):
    sweep, folder = read_sweep("race", text), tmp_path_factory.mktemp("race")
    run_sweep(sweep, choose(sweep, None, None), folder, local(1))
    return sweep, folder


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    return played(tmp_path_factory, RACE)


@pytest.fixture(scope="module")
def proofs(tmp_path_factory):
    return played(tmp_path_factory, PROOFS)


def spaced(method, max_votes):
    return Race(make_instance("equally-spaced", 2, 5, 0.5), method, 0.1, 0.05, max_votes, "edges")


def mean_and_error(values):
    mean = sum(values) / len(values)
    return mean, math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))


def test_a_row_for_each_number_of_votes_with_the_paired_difference(exact):
    rows = {(row["id"].split("/", 1)[1], row["votes"]): row for row in read_rows(*exact)}
    assert len(rows) == 2 * 3 * 2
    found = {method: [exact_sets(spaced(method, 200), 4, run) for run in range(5)] for method in ("bridge", "swiss")}
    row = rows["equally-spaced/n=5/swiss", "100"]
    values = [float(run[0]) for run in found["swiss"]]
    apart = [float(run[0]) - other[0] for run, other in zip(found["swiss"], found["bridge"], strict=True)]
    assert (float(row["mean"]), float(row["standard_error"])) == pytest.approx(mean_and_error(values))
    assert (float(row["difference"]), float(row["difference_error"])) == pytest.approx(mean_and_error(apart))
    assert rows["equally-spaced/n=5/bridge", "100"]["difference"] == ""


def test_proofs_count_what_was_proved_and_what_of_it_is_right(proofs):
    rows = {row["id"].split("/", 1)[1]: row for row in read_rows(*proofs)}
    for method in ("bridge", "swiss"):
        found = [proof(spaced(method, 600), 4, run) for run in range(5)]
        row = rows[f"equally-spaced/n=5/{method}"]
        assert float(row["mean"]) == sum(run.votes for run in found) / 5
        assert int(row["proved"]) == sum(run.proved for run in found)
        assert int(row["correct"]) == sum(run.proved and run.correct for run in found)
    assert int(rows["equally-spaced/n=5/swiss"]["proved"]) < 5  # else the case is not tried


def test_the_mean_counts_every_world_alike(exact):
    rows = read_rows(*exact)
    both = [row for row in rows if (row["method"], row["votes"]) == ("t3c", "200")]
    share = mean_shares(rows)["t3c", "200"]
    assert share.mean == pytest.approx(sum(float(row["mean"]) for row in both) / 2)
    errors = [float(row["difference_error"]) for row in both]
    assert share.difference_error == pytest.approx(math.hypot(*errors) / 2)


def test_a_panel_for_each_world_and_one_for_the_mean(exact):
    sweep, folder = exact
    figure = draw_exact(read_rows(sweep, folder), sweep.title)
    panels = [axes for axes in figure.axes if axes.axison]
    titles = ["equally spaced, n = 5, k = 2", "normal, spread 1, n = 6, k = 2", MEAN]
    assert [axes.get_title() for axes in panels] == titles
    assert all(len(axes.containers) == 3 for axes in panels)
    assert [path.suffix for path in draw(sweep, folder)] == [".png", ".pdf"]


def test_runs_without_a_proof_are_drawn_open_and_counted(proofs):
    sweep, folder = proofs
    rows = read_rows(sweep, folder)
    figure = draw_proofs(rows, sweep.title)
    cut = [f"{row['proved']} of {row['runs']}" for row in rows if row["proved"] != row["runs"]]
    assert [text.get_text() for axes in figure.axes for text in axes.texts] == cut
    assert cut
    assert [path.suffix for path in draw(sweep, folder)] == [".png", ".pdf"]


def test_markdown_says_where_a_rule_is_above_the_reference(exact):
    """In a table where t3c is above by 0.4 with errors of 0.1 on one world and of 0.3 on the other."""
    rows = read_rows(*exact)
    for row in rows:
        row["difference"] = row["difference"] and "0"
        if row["method"] == "t3c" and row["votes"] == "100":
            row["difference"], row["difference_error"] = "0.4", "0.1" if row["n"] == "5" else "0.3"
    text = "\n".join(markdown(rows, "exact", "bridge"))
    assert "two standard errors in the mean: `t3c` at 100 votes." in text
    assert "1 of 8 comparisons: `t3c` on equally spaced, n = 5, k = 2 at 100 (+0.400 ± 0.100)." in text


def test_the_command_runs_draws_and_prints_a_race(tmp_path, experiment):
    (tmp_path / "race.toml").write_text(PROOFS.replace("runs = 5", "runs = 2"))
    found = json.loads(experiment("run", "race.toml", "--jobs", 1, "--json").out)
    assert found["cells"][0]["proved"] == 2
    assert "votes to a proof" not in experiment("plot", "race.toml").out
    assert "votes ± " in experiment("run", "race.toml", "--jobs", 1).out
    assert "2 runs, 2 proved, 2 correct" in experiment("run", "race.toml", "--jobs", 1).out
    printed = experiment("table", "race.toml").out
    assert "| sampling rule | equally spaced, n = 5, k = 2, edges | normal, spread 1, n = 6, k = 2, edges |" in printed
    assert "compares no sampling rules" in experiment("table", "smoke", code=2).err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("max_votes = 200", "", "a cell without max_votes"),
        ('reference = "bridge"', "", "needs reference"),
        ('measure = "exact"', 'measure = "comparisons"', "draws a race"),
        ('kind = "race"\nreference = "bridge"', 'kind = "lines"\nx = "n"', "kind = 'race'"),
        ('"t3c"', '"magic"', "unknown method 'magic'"),
        ("growth = 0.05", 'growth = 0.05\nstopping = "magic"', "unknown stopping rule"),
    ],
)
def test_a_race_that_makes_no_sense_is_refused(old, new, message):
    with pytest.raises(BadInput, match=message):
        choose(read_sweep("race", RACE.replace(old, new)), None, None)


@pytest.mark.parametrize("name", ["peers-at-a-budget", "peers-to-a-proof"])
def test_all_rules_of_the_stored_races_have_the_same_settings(name):
    sweep = load_sweep(name)
    assert {cell["method"] for cell in sweep.cells} >= {"learn-then-prove", "sharpen", "bridge", "t3c", "swiss"}
    assert len({(cell["seed"], cell["growth"], cell["max_votes"], cell["delta"]) for cell in sweep.cells}) == 1


@pytest.mark.parametrize("name", ["peers-at-a-budget", "peers-to-a-proof"])
def test_the_documentation_shows_the_stored_figures(name):
    stored = ROOT / "experiments" / "results" / f"{name}.png"
    assert (ROOT / "docs" / "images" / stored.name).read_bytes() == stored.read_bytes()
