"""Track-and-Stop: what forced exploration and tracking promise, checked along runs."""

import numpy as np
import pytest

from shortlist.core import loop
from shortlist.core.draws import Draws
from shortlist.core.evidence import Evidence
from shortlist.core.families import BradleyTerry
from shortlist.core.oracle import solve_oracle
from shortlist.core.pairs import all_pairs, n_pairs, pair_ends
from shortlist.core.problem import Problem
from shortlist.core.sampling.tracking import TrackAndStop, TrackAndStopMemory
from shortlist.core.stopping.glr import Glr
from shortlist.core.tally import Block, Vote, empty_tally
from shortlist.errors import BadProblem

from ..test_oracle import value

N, K = 4, 2
SIZE = n_pairs(N)
TRUTH = np.array([1.0, 0.4, -0.3, -1.1])
FIRST, SECOND = all_pairs(N)
WINS = 1 / (1 + np.exp(TRUTH[SECOND] - TRUTH[FIRST]))
NOBODY = np.empty(0, dtype=np.int64)
DRAWS = Draws((0,))
NEVER = 1e9  # votes grow by this factor before the second check: a verdict would end the learning


def counts(state):
    return np.bincount(state.tally.pairs, state.tally.counts, SIZE)


def new(seed=0, delta=1e-9):
    return loop.start(Problem(N, K, delta), TrackAndStop(), Glr(every=NEVER), seed)


def test_every_pair_keeps_being_asked():
    rng, state = np.random.default_rng(1), new()
    for t in range(1, 400):
        pair = loop.ask(state)
        state = loop.tell(state, Vote(int(FIRST[pair]), int(SECOND[pair]), float(rng.random() < WINS[pair])))
        assert counts(state).min() >= np.sqrt(t) - SIZE / 2 - 1


def lazy_run(votes, growth=0.05):
    rng, state = np.random.default_rng(2), new()
    while state.tally.votes < votes:
        pairs, often = loop.ask_block(state, max(1, int(growth * state.tally.votes)))
        first, second = pair_ends(N, pairs)
        block = Block(first, second, rng.binomial(often.astype(int), WINS[pairs]).astype(float), often)
        state = loop.tell_block(state, block.divided(*state.problem.family.split(block.counts, block.outcome)))
        yield state


def test_every_pair_keeps_being_asked_in_blocks():
    for state in lazy_run(3000):
        assert counts(state).min() >= np.sqrt(state.tally.votes) - SIZE / 2 - 1


def test_the_allocation_becomes_the_oracles():
    *_, state = lazy_run(300_000)
    assert not state.verdict.done
    oracle = solve_oracle(TRUTH, K, rel_gap=0.001)
    share, even = counts(state) / state.tally.votes, np.full(SIZE, 1 / SIZE)
    assert np.abs(share - oracle.weights).sum() < 0.1
    assert np.abs(even - oracle.weights).sum() > 0.3  # which asking evenly does not come near
    promised = oracle.rate / (1 + TrackAndStop().gap)
    assert value(BradleyTerry(), TRUTH, K, 10.0, share) > 0.98 * promised  # an estimate is not quite the truth
    assert value(BradleyTerry(), TRUTH, K, 10.0, even) < 0.5 * promised


def test_a_replay_asks_the_same():
    def questions(outcomes):
        state = new(seed=5)
        for outcome in outcomes:
            pair = loop.ask(state)
            yield pair
            state = loop.tell(state, Vote(int(FIRST[pair]), int(SECOND[pair]), outcome))

    outcomes = np.random.default_rng(3).integers(0, 2, 120).astype(float).tolist()
    assert list(questions(outcomes)) == list(questions(outcomes))


def test_one_question_follows_garivier_and_kaufmann():
    w = np.array([0.5, 0.3, 0.1, 0.1, 0.0, 0.0])
    often = np.array([20.0, 12.0, 4.0, 4.0, 4.0, 4.0])
    block = Block(FIRST, SECOND, np.full(SIZE, 0.5), often)
    rule, problem = TrackAndStop(), Problem(N, K, 0.1)
    tally = empty_tally(N).add_block(problem.family, block)
    assert often.sum() == 48  # sqrt(48) - 3 = 3.9: nobody is short, and pair 0 is 4 behind
    assert rule.questions(TrackAndStopMemory(w, 48), Evidence(tally), NOBODY, 1, DRAWS)[0] == [0]
    pending = np.array([0, 0, 0, 0, 0])  # sqrt(53) - 3 = 4.3: pairs 2 to 5 are short now
    assert rule.questions(TrackAndStopMemory(w, 48), Evidence(tally), pending, 1, DRAWS)[0] == [2]


def test_a_block_serves_the_short_pairs_first_and_spends_all():
    w = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    block = Block(FIRST[:1], SECOND[:1], np.full(1, 0.5), np.array([100.0]))
    rule, problem = TrackAndStop(), Problem(N, K, 0.1)
    evidence = Evidence(empty_tally(N).add_block(problem.family, block))
    pairs, often = rule.questions(TrackAndStopMemory(w, 100), evidence, NOBODY, 4, DRAWS)
    assert (pairs.tolist(), often.tolist()) == ([1, 2, 3, 4], [1, 1, 1, 1])
    pairs, often = rule.questions(TrackAndStopMemory(w, 100), evidence, NOBODY, 60, DRAWS)  # sqrt(159) - 3 = 9.6
    assert (pairs.tolist(), often.tolist()) == ([0, 1, 2, 3, 4, 5], [10, 10, 10, 10, 10, 10])


def test_ties_and_unconnected_votes_keep_the_allocation():
    rule, problem = TrackAndStop(), Problem(N, K, 0.1)
    memory = rule.start(problem)
    apart = empty_tally(N).add(problem.family, Vote(0, 1, 1.0))
    assert rule.learn(memory, problem, Evidence(apart, np.zeros(N)), 1, DRAWS) is memory
    even = empty_tally(N).add_block(problem.family, Block(FIRST, SECOND, np.full(SIZE, 0.5), np.full(SIZE, 2.0)))
    assert rule.learn(memory, problem, Evidence(even, np.zeros(N)), 1, DRAWS) is memory
    learned = rule.learn(memory, problem, Evidence(even, TRUTH - TRUTH.mean()), 1, DRAWS)
    assert learned.w.sum() == pytest.approx(1)
    assert (
        rule.learn(learned, problem, Evidence(even, TRUTH), 1, DRAWS) is learned
    )  # no more votes, nothing new to solve


def test_estimates_on_the_edge_of_theta_can_be_solved():
    rule, problem = TrackAndStop(), Problem(N, K, 0.1)
    even = empty_tally(N).add_block(problem.family, Block(FIRST, SECOND, np.full(SIZE, 0.5), np.full(SIZE, 2.0)))
    learned = rule.learn(rule.start(problem), problem, Evidence(even, np.array([10.0, 10.0, -10.0, -10.0])), 1, DRAWS)
    assert np.all(np.isfinite(learned.w))


@pytest.mark.parametrize("options", [{"growth": -1.0}, {"growth": float("nan")}, {"gap": 0.0}, {"gap": -1.0}])
def test_bad_options_are_refused(options):
    with pytest.raises(BadProblem):
        TrackAndStop(**options)
