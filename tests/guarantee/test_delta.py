"""The promise itself: wrong answers at most a share delta of the time, counted over seeded runs."""

import numpy as np
import pytest
from scipy.stats import binomtest

from shortlist.core import loop
from shortlist.core.pairs import pair_ends
from shortlist.core.problem import Problem
from shortlist.core.sampling.uniform import Uniform
from shortlist.core.stopping.glr import Glr
from shortlist.core.tally import Vote
from shortlist.simulation.run import simulate
from shortlist.simulation.worlds import Utilities

DELTA = 0.1


def at_most(wrong, runs, delta=DELTA):
    return binomtest(wrong, runs, delta, alternative="greater").pvalue > 1e-3


# 60 runs detect an error rate of 40 % with probability 0.995 and one of 30 % with 0.84; 500 detect 20 % with 0.999. A
# threshold that is merely too low fools nobody in this world, even without its slack: the tie below is there for that.
@pytest.mark.parametrize("runs", [pytest.param(60, marks=pytest.mark.slow), pytest.param(500, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("method", ["oracle-tracking", "uniform"])
def test_wrong_answers_stay_below_delta(method, runs):
    result = simulate(Utilities((1.0, 0.8, -0.8, -1.0), 2), method, runs, seed=2026, delta=DELTA, growth=0.05)
    assert all(run.certified for run in result.runs)
    assert at_most(runs - result.correct, runs)


@pytest.mark.parametrize("runs", [pytest.param(80, marks=pytest.mark.slow), pytest.param(400, marks=pytest.mark.sweep)])
def test_no_false_proof_at_an_exact_tie_with_graded_votes(runs):
    """Two equal items at the cutoff: naming either is false against the other order's truth.

    Votes are graded, three levels with the right mean, which the proof covers though they are not coin flips. A
    threshold without its slack and for three times delta has a false rate of 68 %. 80 runs of 200 votes detect that for
    certain, 50 % with probability 0.995 and 40 % with 0.79; 400 runs detect 30 % with 0.93.
    """
    rng = np.random.default_rng(7)
    false = 0
    for seed in range(runs):
        state = loop.start(Problem(2, 1, DELTA, max_votes=200), Uniform(), Glr(every=0.02), seed)
        while not state.verdict.done:
            i, j = (int(end) for end in pair_ends(2, np.asarray(loop.ask(state))))
            state = loop.tell(state, Vote(i, j, float(rng.choice([0.0, 0.5, 1.0], p=[0.4, 0.2, 0.4]))))
        false += state.verdict.reason == "certified"
    assert at_most(false, runs, 2 * DELTA)  # either direction, each at most delta
