"""First sharpen, then bridge: when it changes over, and that it asks exactly what the two rules would."""

import numpy as np
import pytest

from shortlist.core import loop
from shortlist.core.draws import Draws
from shortlist.core.evidence import Evidence
from shortlist.core.pairs import pair_items
from shortlist.core.problem import Problem
from shortlist.core.sampling.bridge import Bridge
from shortlist.core.sampling.learn_then_prove import LearnThenProve
from shortlist.core.sampling.sharpen import Sharpen
from shortlist.core.stopping.edges import Edges
from shortlist.core.stopping.glr import Glr
from shortlist.core.stopping.posterior import Posterior
from shortlist.core.tally import Vote, empty_tally
from shortlist.errors import BadProblem
from shortlist.simulation.run import simulate
from shortlist.simulation.worlds import Utilities

from .test_bridge import believing

THETA = np.array([2.0, 1.0, 0.5, -0.5, -1.0, -2.0])
NOBODY = np.empty(0, np.int64)


def states(rule, votes, problem=None, stopping=None, seed=3):
    """The states of a study, vote by vote."""
    problem, rng = Problem(6, 3, 0.01) if problem is None else problem, np.random.default_rng(seed)
    state = loop.start(problem, rule, Edges() if stopping is None else stopping, seed)
    for _ in range(votes):
        yield state
        if state.verdict.done:
            return
        i, j = pair_items(6, loop.ask(state))
        won = float(rng.random() < 1 / (1 + np.exp(THETA[j] - THETA[i])))
        state = loop.tell(state, Vote(i, j, won, loop.bet(state, i, j)))


def asked(rule, votes, **options):
    return [loop.ask(state) for state in states(rule, votes, **options) if not state.verdict.done]


def test_it_starts_by_learning_and_then_proves():
    phases = []
    for state in states(LearnThenProve(), 2000):
        ledger, phase = state.evidence.kept_ledger, state.sampling_memory.learning
        phases.append(phase)
        if ledger.votes and ledger.votes == ledger.believed and not state.verdict.done:
            assert phase == (ledger.misordered() > 0.3)
            assert state.sampling.votes_left(state.sampling_memory, state.evidence) > 0
    assert state.verdict.reason == "certified"
    assert state.verdict.top == (0, 1, 2)
    assert phases[0]
    assert not phases[-1]


def test_each_phase_asks_what_its_rule_asks():
    assert asked(LearnThenProve(doubt=1e-300), 150) == asked(Sharpen(), 150)
    after = [state for state in states(LearnThenProve(doubt=1e9), 100) if state.tally.votes]
    for state in after:
        assert not state.sampling_memory.learning
        memory = state.sampling_memory.bridge
        draws = Draws((9,))
        one = Bridge().questions(memory, state.evidence, NOBODY, 1, draws)
        other = state.sampling.questions(state.sampling_memory, state.evidence, NOBODY, 1, draws)
        assert one[0].tolist() == other[0].tolist()


def test_a_surprise_leads_back_to_learning():
    problem, rule, draws = Problem(6, 3, 0.05), LearnThenProve(), Draws((1,))
    sure = Evidence(empty_tally(6), None, believing(problem, THETA, 1000))
    memory = rule.learn(rule.start(problem), problem, sure, 1, draws)
    assert not memory.learning
    tied = Evidence(empty_tally(6), None, believing(problem, np.zeros(6), 10).refresh())
    assert rule.learn(memory, problem, tied, 1, draws).learning


def test_a_budget_that_a_proof_does_not_fit_in_is_spent_on_learning():
    rule = LearnThenProve(doubt=1e9)
    small, large = (Problem(6, 3, 0.01, max_votes=votes) for votes in (60, 10**6))
    assert all(state.sampling_memory.learning for state in states(rule, 60, problem=small))
    assert not list(states(rule, 60, problem=large))[-1].sampling_memory.learning
    assert asked(rule, 60, problem=small) == asked(Sharpen(), 60, problem=small)


def test_posterior_stays_in_the_first_phase():
    rule = LearnThenProve(doubt=1e9)
    assert all(state.sampling_memory.learning for state in states(rule, 80, stopping=Posterior()))
    assert not list(states(rule, 80, stopping=Glr()))[-1].sampling_memory.learning


@pytest.mark.parametrize("stopping", [Edges(), Posterior()], ids=lambda rule: rule.name)
def test_it_works_with_stopping_rules_in_blocks(stopping):
    world = Utilities((2.0, 1.0, -1.0, -2.0), 2)
    assert simulate(world, "learn-then-prove", 3, 1, delta=0.1, stopping=stopping, growth=0.02).correct == 3


def test_bad_doubt():
    with pytest.raises(BadProblem, match="positive"):
        LearnThenProve(doubt=0)
