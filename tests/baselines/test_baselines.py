"""What all baselines have in common, alone and inside `simulate`."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import binomtest

from shortlist.baselines import BASELINES, compiled, run_baseline
from shortlist.core.families import BradleyTerry, Gaussian
from shortlist.errors import BadInput, BadInstance
from shortlist.simulation.run import METHODS, replay, simulate
from shortlist.simulation.worlds import Recorded, Sst, Utilities, constant, equally_spaced
from tests.baselines.worlds import certain, shuffled, spaced

pytestmark = pytest.mark.slow

EASY = Utilities((2.0, 1.0, -1.0, -2.0), 2)
every_baseline = pytest.mark.parametrize("name", BASELINES)
# n, k, gap of equally spaced utilities, or n, k, p: mean comparisons of an independent implementation at delta 0.01
SPACED = {"seeks": 167_000, "seeks-v2": 147_000, "active-ranking": 195_000, "active-ranking-tight": 47_600,
          "borda-lucb": 37_100}  # fmt: skip
CONSTANT = {(10, "seeks"): 105_000, (10, "seeks-v2"): 125_000, (100, "seeks"): 1_280_000, (100, "seeks-v2"): 1_780_000}


@every_baseline
@pytest.mark.parametrize("k", [1, 5])
def test_the_best_and_all_but_the_worst(name, k):
    for seed in range(5):
        wins, place = shuffled(spaced(6, 1.0), np.random.default_rng(seed))
        found = run_baseline(name, wins, k, 0.05, np.random.default_rng(seed))
        assert found.certified
        assert set(found.top) == set(place[:k].tolist())


@every_baseline
def test_certain_wins_never_mislead(name):
    for seed in range(20):
        wins, place = shuffled(certain(8), np.random.default_rng(seed))
        assert set(run_baseline(name, wins, 3, 0.4, np.random.default_rng(seed)).top) == set(place[:3].tolist())


@every_baseline
def test_wrong_answers_stay_below_delta(name):
    result = simulate(Utilities((0.6, 0.5, -0.5, -0.6), 2), name, runs=300, seed=2026, delta=0.2)
    assert all(run.certified for run in result.runs)
    assert binomtest(300 - result.correct, 300, 0.2, alternative="greater").pvalue > 1e-3


@every_baseline
def test_a_budget_ends_a_run_and_changes_nothing_before(name):
    wins = spaced(6, 0.8)
    whole = run_baseline(name, wins, 2, 0.05, np.random.default_rng(5))
    assert run_baseline(name, wins, 2, 0.05, np.random.default_rng(5), whole.comparisons) == whole
    for budget in (1, 3, 7, whole.comparisons // 2, whole.comparisons - 1):
        found = run_baseline(name, wins, 2, 0.05, np.random.default_rng(5), budget)
        assert not found.certified
        assert budget - 6 < found.comparisons <= budget  # a round that does not fit is not begun
        assert len(set(found.top)) == 2


@every_baseline
def test_simulate_judges_them_like_others(name):
    result = simulate(EASY, name, runs=4, seed=1, delta=0.1)
    assert (result.method, result.stopping, result.correct) == (name, "own", 4)
    assert all(run.certified and run.reason == "certified" and run.error_bound == 0.1 for run in result.runs)
    short = simulate(equally_spaced(6, 2, 0.1, BradleyTerry()), name, runs=2, max_votes=300)
    assert all(run.reason == "budget" and not run.certified and run.error_bound == 1.0 for run in short.runs)
    assert simulate(Sst(5, 2, band=0.3, line=0.6), name, runs=2, delta=0.1).correct == 2


def test_the_number_of_jobs_changes_nothing():
    one, two = (simulate(EASY, "seeks", runs=4, seed=3, delta=0.1, jobs=jobs) for jobs in (1, 2))
    assert [(run.comparisons, run.top) for run in one.runs] == [(run.comparisons, run.top) for run in two.runs]


@every_baseline
@pytest.mark.parametrize(
    ("instance", "options", "message"),
    [
        (EASY, {"stopping": "glr"}, "its own stopping rule"),
        (EASY, {"tolerance": 0.1}, "no tolerance"),
        (Utilities((1.0, 0.0, -1.0), 1, Gaussian(1.0)), {}, "win or lose"),
    ],
)
def test_what_they_cannot_do_is_said_in_one_line(name, instance, options, message):
    with pytest.raises(BadInstance, match=message) as caught:
        simulate(instance, name, runs=1, **options)
    assert "\n" not in str(caught.value)


@every_baseline
def test_a_delta_beyond_the_proof_is_refused(name):
    with pytest.raises(BadInput, match=r"delta is 0\.6"):
        simulate(EASY, name, runs=1, delta=0.6)


def test_recorded_wins_and_losses_are_coins():
    """0 beats 1 in nine of ten recorded votes, and 1 beats 2; the pair without votes is answered by the fit."""
    first, second = np.repeat([0, 1], 10), np.repeat([1, 2], 10)
    outcome = np.tile(np.arange(10) > 0, 2).astype(float)
    for name in BASELINES:
        assert all(run.agrees for run in replay(Recorded(first, second, outcome, 3, 1), name, runs=3).runs)
    with pytest.raises(BadInstance, match="some have no votes"):
        replay(Recorded(first, second, outcome, 3, 1, fill=False), "seeks", runs=1)
    graded = Recorded(np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([1.0, 0.5, 1.0]), 3, 1)
    for name in BASELINES:
        with pytest.raises(BadInstance, match="no ties or grades"):
            replay(graded, name, runs=1)


def test_numba_is_loaded_only_by_a_baseline():
    code = (
        "import sys, shortlist, shortlist.cli.app, shortlist.study.study, shortlist.simulation.run as s;"
        "world = shortlist.make_instance('constant', 1, 3, p=0.9);"
        "s.simulate(world, runs=1, delta=0.2); assert 'numba' not in sys.modules;"
        "s.simulate(world, 'seeks', runs=1, delta=0.2); assert 'numba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@every_baseline
def test_without_numba_a_baseline_says_how_to_get_it(name):
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "import shortlist, shortlist.baselines, shortlist.simulation.run as s\n"
        "world = shortlist.make_instance('constant', 1, 3, p=0.9)\n"
        "s.simulate(world, runs=1, delta=0.2)\n"
        f"try: s.simulate(world, {name!r}, runs=1, delta=0.2, jobs=2)\n"
        "except shortlist.ShortlistError as error: print(type(error).__name__, error)"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert said.splitlines() == [f"NotInstalled the baseline {name} needs numba: pip install 'shortlist[bench]'"]


def test_a_place_without_a_writable_disk_compiles_all_the_same(monkeypatch):
    def njit(function=None, cache=False):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return function

    monkeypatch.setattr("numba.njit", njit)
    assert compiled(abs) is abs


def test_every_baseline_is_a_method():
    assert set(BASELINES) < set(METHODS)


@pytest.mark.slow
@every_baseline
def test_comparisons_are_those_of_an_independent_implementation(name):
    result = simulate(equally_spaced(20, 5, 0.25, BradleyTerry()), name, runs=100, seed=1, delta=0.01)
    assert result.correct == 100
    assert result.mean_comparisons == pytest.approx(SPACED[name], rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "name"), CONSTANT)
def test_comparisons_at_constant_noise(n, name):
    result = simulate(constant(n, 1, 0.6), name, runs=20, seed=1, delta=0.01)
    assert result.correct == 20
    assert result.mean_comparisons == pytest.approx(CONSTANT[n, name], rel=0.1)
