"""The promise itself: wrong answers at most a share delta of the time, counted over seeded runs."""

import numpy as np
import pytest
from scipy.stats import binomtest

from shortlist import create_study
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


# Power: 60 runs detect a share of 40 % with probability 0.995 and of 30 % with 0.84, and 1,000 one of 15 % with 0.96.
@pytest.mark.parametrize(
    "runs", [pytest.param(60, marks=pytest.mark.slow), pytest.param(1000, marks=pytest.mark.sweep)]
)
def test_an_owner_who_changes_budget_and_delta_after_every_look_stays_below_the_largest_delta(runs):
    """Coin flips, and an owner who wants "b" to win. Each time the budget is used up it is raised, and each time "a" is
    proved delta is lowered, which reopens the study. Only a proof of "b" is reported. S* is {"a"}."""
    fooled = lowered = raised = 0
    for seed in range(runs):
        rng, study = np.random.default_rng((20, seed)), create_study(["a", "b"], 1, DELTA, max_votes=20, seed=seed)
        while study.verdict.votes < 120 and not (study.verdict.reason == "certified" and study.verdict.top == ("b",)):
            if not study.verdict.done:
                study.tell(study.ask(), float(rng.integers(0, 2)))
            elif study.verdict.reason == "budget":
                study.change(max_votes=study.problem.max_votes + 20)
                raised += 1
            else:
                study.change(delta=study.problem.delta / 2)
                lowered += 1
        assert study.problem.stated_delta == DELTA
        fooled += study.verdict.reason == "certified" and study.verdict.top == ("b",)
    print(f"{fooled} fooled, {lowered} lowered, {raised} raised, {runs} runs")
    assert lowered
    assert raised > runs
    assert at_most(fooled, runs)
