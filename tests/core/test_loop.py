"""A study is a fold; and the symmetries that any ranking code must have."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist.core import loop
from shortlist.core.families import Gaussian
from shortlist.core.pairs import pair_ends
from shortlist.core.problem import Problem
from shortlist.core.sampling.tracking import OracleTracking
from shortlist.core.sampling.uniform import Uniform
from shortlist.core.stopping.glr import Glr
from shortlist.core.tally import Block, Vote
from shortlist.errors import BadProblem

THETA = np.array([1.2, 0.5, 0.0, -0.6, -1.1])


def play(state, rng, rounds, theta=THETA):
    """The votes of `rounds` rounds, and the state after each."""
    votes, states = [], [state]
    for _ in range(rounds):
        i, j = (int(end) for end in pair_ends(state.problem.n, np.asarray(loop.ask(state))))
        mean = state.problem.family.expect(theta[[i]] - theta[[j]])
        votes.append(Vote(i, j, float(state.problem.family.draw(rng, mean, np.ones(1))[0])))
        state = loop.tell(state, votes[-1])
        states.append(state)
    return votes, states


def alike(a, b, exact=True):
    close = np.array_equal if exact else (lambda x, y: np.allclose(x, y, atol=1e-6))
    return (
        close(a.tally.counts, b.tally.counts)
        and close(a.tally.sums, b.tally.sums)
        and close(a.theta_hat, b.theta_hat)
        and all(close(x, y) for x, y in zip((a.sampling_memory or ())[:5], (b.sampling_memory or ())[:5], strict=True))
    )


@pytest.mark.parametrize("rule", [OracleTracking(), OracleTracking(gradient="full"), Uniform()], ids=repr)
@pytest.mark.parametrize("family", [None, Gaussian(0.8)], ids=["bradley-terry", "gaussian"])
def test_replaying_the_votes_gives_the_same_state_and_question(rule, family):
    options = {"family": family} if family else {}
    start = loop.start(Problem(5, 2, 0.01, **options), rule, Glr(), seed=7)
    votes, states = play(start, np.random.default_rng(1), 150)
    again = reduce(loop.tell, votes, loop.start(Problem(5, 2, 0.01, **options), rule, Glr(), seed=7))
    assert alike(again, states[-1])
    assert again.verdict == states[-1].verdict
    if not again.verdict.done:
        assert loop.ask(again) == loop.ask(states[-1])


def test_a_state_is_a_value():
    start = loop.start(Problem(5, 2, 0.01), OracleTracking(), Glr())
    votes, states = play(start, np.random.default_rng(2), 60)
    before = reduce(loop.tell, votes[:30], start)
    assert alike(before, states[30])


@settings(max_examples=6, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_swapping_the_sides_of_votes_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    start = loop.start(Problem(5, 2, 0.01), OracleTracking(), Glr(), seed=3)
    votes, states = play(start, rng, 60)
    swapped = [Vote(v.second, v.first, 1 - v.outcome) if rng.random() < 0.5 else v for v in votes]
    assert alike(reduce(loop.tell, swapped, start), states[-1])


@settings(max_examples=4, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_relabelling_items_relabels_estimate_and_verdict(seed):
    rng = np.random.default_rng(seed)
    start = loop.start(Problem(5, 2, 0.2), Uniform(), Glr())
    votes, states = play(start, rng, 250, 2 * THETA)
    order = rng.permutation(5)
    moved = reduce(loop.tell, [Vote(int(order[v.first]), int(order[v.second]), v.outcome) for v in votes], start)
    np.testing.assert_allclose(moved.theta_hat[order], states[-1].theta_hat, atol=1e-6)
    assert moved.verdict.done == states[-1].verdict.done
    assert moved.verdict.votes == states[-1].verdict.votes
    ordered = np.sort(states[-1].theta_hat)
    if ordered[-2] - ordered[-3] > 1e-6:  # an exact tie goes to the lower number
        assert sorted(order[list(states[-1].verdict.top)]) == list(moved.verdict.top)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), shift=st.floats(-3, 3))
def test_shifting_true_utilities_changes_nothing(seed, shift):
    start = loop.start(Problem(5, 2, 0.01), OracleTracking(), Glr())
    plain = play(start, np.random.default_rng(seed), 40)[0]
    shifted = play(start, np.random.default_rng(seed), 40, THETA + shift)[0]
    assert [(v.first, v.second) for v in plain] == [(v.first, v.second) for v in shifted]


def test_a_verdict_once_reached_stays():
    start = loop.start(Problem(3, 1, 0.2), Uniform(), Glr())
    state = start
    for _ in range(200):
        state = loop.tell(loop.tell(state, Vote(0, 1, 1.0)), Vote(0, 2, 1.0))
    assert state.verdict.done
    assert state.verdict.top == (0,)
    assert loop.tell(state, Vote(1, 0, 1.0)) is state
    assert loop.tell_block(state, Block(np.array([1]), np.array([0]), np.ones(1), np.ones(1))) is state


def test_a_budget_ends_with_what_is_proved_and_no_more():
    state = loop.start(Problem(4, 2, 0.01, max_votes=25), Uniform(), Glr())
    _, states = play(state, np.random.default_rng(0), 25, THETA[:4])
    verdict = states[-1].verdict
    assert verdict.done
    assert verdict.reason == "budget"
    assert verdict.votes == 25
    assert verdict.error_bound == 1.0
    assert "budget" in str(verdict)
    assert not states[-2].verdict.done


def test_a_sparse_checking_schedule_stops_a_little_later_with_the_same_answer():
    _, states = play(loop.start(Problem(4, 1, 0.2), Uniform(), Glr()), np.random.default_rng(5), 2500, 2 * THETA[:4])
    every = next(state for state in states if state.verdict.done).verdict
    rng = np.random.default_rng(5)
    state = loop.start(Problem(4, 1, 0.2), Uniform(), Glr(every=0.1))
    while not state.verdict.done:
        state = play(state, rng, 1, 2 * THETA[:4])[1][-1]
    assert every.votes <= state.verdict.votes <= 1.11 * every.votes + 1
    assert state.verdict.top == every.top == (0,)


def test_a_tolerance_ends_what_would_never_end():
    tied = np.array([1.0, 0.0, 0.0])
    state = loop.start(Problem(3, 2, 0.1, tolerance=0.2), OracleTracking(), Glr())
    rng = np.random.default_rng(1)
    while not state.verdict.done:
        state = play(state, rng, 1, tied)[1][-1]
    assert state.verdict.reason == "certified"
    assert 0 in state.verdict.top


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 1, "k": 1}, "at least two"),
        ({"k": 0}, "from 1 to 3"),
        ({"k": 4}, "from 1 to 3"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta": float("nan")}, "delta"),
        ({"bound": -1.0}, "bound"),
        ({"tolerance": -0.1}, "tolerance"),
        ({"max_votes": 0}, "max_votes"),
    ],
)
def test_bad_problems_are_refused(options, message):
    with pytest.raises(BadProblem, match=message):
        Problem(**{"n": 4, "k": 2, "delta": 0.1, **options})
