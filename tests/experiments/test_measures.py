"""A run of a cell is the run that `simulate` plays, and what is held against it is what theory says."""

import numpy as np
import pytest

from experiments.measures import measure_run
from shortlist import OracleTracking, make_instance, simulate, solve_oracle
from shortlist.core.pairs import n_pairs
from shortlist.simulation.run import draw_world, prepare, run_seed, shares

CELL = {"measure": "comparisons", "instance": "random-utilities", "n": 5, "k": 2, "delta": 0.2, "seed": 11}


def comparisons(number, **changes):
    return measure_run({**CELL, **changes}, number)["result"]["comparisons"]


def test_runs_are_seeded_as_numpy_spawns_children():
    children = np.random.SeedSequence(11).spawn(5)
    for number, child in enumerate(children):
        assert np.array_equal(run_seed(11, number).generate_state(8), child.generate_state(8))


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "bridge", "growth": 0.02},
        {"method": "bridge", "stopping": "posterior"},
        {"method": "oracle-tracking", "growth": 0.05, "alpha": 0.4},
        {"method": "oracle", "growth": 0.05},
        {"method": "uniform", "instance": "equally-spaced", "gap": 1.0, "growth": 0.05},
    ],
    ids=lambda changes: changes["method"],
)
def test_a_cell_is_what_simulate_plays(changes):
    cell = {**CELL, **changes}
    options = {name: cell[name] for name in ("delta", "stopping", "growth") if name in cell}
    if "alpha" in cell:
        options["learner"] = OracleTracking(alpha=cell["alpha"])
    world = make_instance(cell["instance"], cell["k"], cell["n"], cell.get("gap", 0.1))
    expected = simulate(world, cell["method"], runs=3, seed=11, **options)
    played = [measure_run(cell, number) for number in (2, 0, 1)]  # in any order
    assert [entry["result"]["comparisons"] for entry in played] == [expected.runs[i].comparisons for i in (2, 0, 1)]
    assert [entry["result"]["correct"] for entry in played] == [expected.runs[i].correct for i in (2, 0, 1)]


def test_the_lower_bound_is_that_of_the_runs_own_world():
    world = draw_world(make_instance("random-utilities", 2, 5), 11, 4)
    expected = solve_oracle(world.theta, 2).lower_bound(0.2)
    assert comparisons(4, method="lower-bound") == expected
    assert comparisons(4, method="lower-bound") != comparisons(3, method="lower-bound")
    spaced = {"instance": "equally-spaced", "gap": 0.5, "method": "lower-bound"}
    assert comparisons(0, **spaced) == comparisons(1, **spaced)


def test_shares_are_told_of_the_items_as_they_were_before_shuffling():
    """The oracle tracks w*, so that no share of t comparisons can be further from it than C-tracking allows."""
    instance = make_instance("equally-spaced", 2, 6, 1.0)
    best = measure_run(
        {**CELL, "measure": "shares", "instance": "equally-spaced", "n": 6, "gap": 1.0, "method": "w-star"}, 0
    )
    w_star = np.array(best["result"]["shares"])
    run = simulate(instance, "oracle", runs=1, seed=3, delta=1e-9).runs[0]
    found = shares(prepare(instance, "oracle", delta=1e-9), 3, 0)
    assert found.sum() == pytest.approx(1)
    assert np.abs(found - w_star).max() <= n_pairs(6) / run.comparisons
    assert np.abs(found[::-1] - w_star).max() > 0.05


def test_decisions_are_timed():
    timed = measure_run({**CELL, "measure": "milliseconds", "n": 8, "delta": 1e-9, "method": "bridge"}, 0)
    assert 0 < timed["result"]["milliseconds"] < 1000 * timed["seconds"]
