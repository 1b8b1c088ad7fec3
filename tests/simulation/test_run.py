from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ks_2samp

import shortlist
from shortlist.core.families import BradleyTerry, Gaussian
from shortlist.errors import BadInput
from shortlist.simulation.run import METHODS, play, prepare, simulate
from shortlist.simulation.worlds import Sst, Utilities, constant, equally_spaced

EASY = Utilities((2.0, 1.0, -1.0, -2.0), 2)


def counts(result):
    return [run.comparisons for run in result.runs]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_top(method):
    result = simulate(EASY, method, runs=3, seed=1, delta=0.1)
    assert result.correct == 3
    assert all(run.top == (0, 1) and run.error_bound <= 0.1 for run in result.runs)
    assert result.mean_comparisons == pytest.approx(np.mean(counts(result)))


def test_the_number_of_jobs_changes_nothing():
    one, two = (simulate(EASY, runs=4, seed=3, delta=0.1, jobs=jobs) for jobs in (1, 2))
    assert counts(one) == counts(two)
    assert [run.top for run in one.runs] == [run.top for run in two.runs]


def test_a_run_alone_is_that_run_of_the_simulation():
    together = simulate(EASY, "oracle-tracking", runs=4, seed=3, delta=0.1)
    cell = prepare(EASY, "oracle-tracking", delta=0.1)
    for number in (3, 0):
        assert replace(play(cell, 3, number), seconds=0) == replace(together.runs[number], seconds=0)


def test_blocks_of_one_are_round_by_round():
    lazy = simulate(EASY, runs=3, seed=2, delta=0.1, growth=1e-9)
    exact = simulate(EASY, runs=3, seed=2, delta=0.1, growth=0)
    assert counts(lazy) == counts(exact)


def test_seeds_matter_and_repeat():
    assert counts(simulate(EASY, runs=3, seed=1, delta=0.1)) == counts(simulate(EASY, runs=3, seed=1, delta=0.1))
    assert counts(simulate(EASY, runs=3, seed=1, delta=0.1)) != counts(simulate(EASY, runs=3, seed=2, delta=0.1))


def test_worlds_without_utilities_and_with_measured_votes():
    assert simulate(constant(4, 1, 0.8), runs=2, delta=0.1).correct == 2
    gaussian = Utilities((1.0, 0.0, -1.0), 1, Gaussian(1.0))
    assert simulate(gaussian, runs=2, delta=0.1).correct == 2
    assert simulate(gaussian, "oracle", runs=2, delta=0.1).correct == 2
    with pytest.raises(BadInput, match="true utilities"):
        simulate(Sst(5, 2), "oracle", runs=1)


def test_budget_tolerance_and_progress():
    seen = []
    result = simulate(equally_spaced(6, 2, 0.1, BradleyTerry()), runs=2, max_votes=300, progress=seen.append)
    assert counts(result) == [300, 300]
    assert all(run.reason == "budget" and not run.certified for run in result.runs)
    assert seen == [1, 2]
    loose = simulate(Utilities((1.0, 0.02, 0.0), 2), runs=2, delta=0.1, tolerance=0.2)
    assert loose.correct == 2
    assert max(counts(loose)) < 3000


@pytest.mark.parametrize(
    "options",
    [{"runs": 0}, {"jobs": 0}, {"growth": -1.0}, {"method": "magic"}, {"delta": 0.0}, {"bound": 1.0}, {"seed": -1}],
)
def test_bad_simulations_are_refused(options):
    with pytest.raises(BadInput):
        simulate(EASY, **{"runs": 1, **options})


def test_it_is_public():
    assert shortlist.simulate(shortlist.make_instance("constant", 1, 3, p=0.9), runs=1, delta=0.2).correct == 1


@pytest.mark.slow
def test_lazy_blocks_agree_with_round_by_round():
    """Blocks of up to 2 % of the votes, far above the default; the sweeps compare more and longer runs.

    24 runs each detect with probability 0.9 that one kind takes 1.3 standard deviations more.
    """
    instance = equally_spaced(4, 2, 0.8, BradleyTerry())
    exact, lazy = (
        simulate(instance, "oracle-tracking", runs=24, seed=seed, delta=0.05, growth=growth)
        for seed, growth in ((1, 0), (2, 0.02))
    )
    assert (exact.correct, lazy.correct) == (24, 24)
    assert np.median(counts(lazy)) > 200  # or there were hardly any blocks
    assert ks_2samp(counts(exact), counts(lazy)).pvalue > 0.01


@pytest.mark.slow
def test_learning_costs_little_and_uniform_asking_much():
    """The oracle is not beaten beyond chance (the sweeps compare more runs), and uniform asking is far behind."""
    instance = equally_spaced(10, 3, 0.5, BradleyTerry())
    oracle, tracking, uniform = (
        simulate(instance, method, runs=6, seed=1, delta=0.01, growth=0.02)
        for method in ("oracle", "oracle-tracking", "uniform")
    )
    noise = np.hypot(oracle.standard_error, tracking.standard_error)
    assert oracle.mean_comparisons < tracking.mean_comparisons + 2 * noise
    assert 3 * tracking.mean_comparisons < uniform.mean_comparisons
