"""The plan is a proof once it is won, costs what it must, and copes with what may not be asked."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from shortlist.core import loop
from shortlist.core.betting import AHEAD, empty_ledger
from shortlist.core.families import Gaussian
from shortlist.core.pairs import n_pairs, pair_ends, pair_number
from shortlist.core.problem import Problem
from shortlist.core.sampling.bridge import Bridge
from shortlist.core.sampling.plan import LEARNING, URGENCY, make_plan
from shortlist.core.stopping.cuts import Cuts
from shortlist.core.stopping.edges import Edges
from shortlist.core.stopping.glr import Glr
from shortlist.core.stopping.posterior import Posterior
from shortlist.core.tally import Block
from shortlist.simulation.run import simulate
from shortlist.simulation.worlds import Utilities

THETA = np.array([2.0, 1.2, 0.9, 0.2, -0.3, -1.0, -1.1, -2.0])


def believing(problem, theta, votes=10**6):
    """A ledger that knows theta well and has won nothing yet."""
    first, second = pair_ends(problem.n, np.arange(n_pairs(problem.n)))
    wins = votes * problem.family.expect(theta[first] - theta[second])
    block = Block(first, second, wins, np.full(len(first), float(votes)))
    block = block.divided(*problem.family.split(block.counts, block.outcome))
    return empty_ledger(problem).add(block._replace(bets=np.zeros(len(block.first)))).refresh()


def reaches_all(n, k, edges):
    """Does every top item reach every outsider along these edges?"""
    below = {u: {v for a, v in edges if a == u} for u in range(n)}
    for u in range(k):
        seen, todo = {u}, [u]
        while todo:
            for v in below[todo.pop()] - seen:
                seen.add(v)
                todo.append(v)
        if not seen >= set(range(k, n)):
            return False
    return True


@pytest.mark.parametrize("k", [1, 3, 5, 7])
def test_a_plan_that_is_won_is_a_proof(k):
    plan = make_plan(believing(Problem(8, k, 0.05), THETA), np.random.default_rng(0))
    edges = set(zip(*(end.tolist() for end in pair_ends(8, plan.pairs)), strict=True))  # items are sorted, best first
    assert reaches_all(8, k, edges)
    assert plan.line == (k - 1, k)


def test_with_whole_sets_a_loss_on_a_quick_pair_is_won_back_where_it_was_lost():
    """The account of item 0 against item 7 burdens all sets with 7 and without 0, so also the pair at the cutoff."""
    ledger = replace(believing(Problem(8, 3, 0.05), THETA), marker=Cuts())
    lost = ledger.table.copy()
    account = np.flatnonzero(ledger.pairs == pair_number(8, 0, 7))[0]
    lost[account, AHEAD] = -1.0
    before, after = (
        make_plan(replace(ledger, table=table), np.random.default_rng(0)) for table in (ledger.table, lost)
    )
    chances = [dict(zip(plan.pairs.tolist(), plan.chances().tolist(), strict=True)) for plan in (before, after)]
    assert pair_number(8, 0, 7) not in chances[0]
    rate = ledger.problem.family.divergence(THETA[:1] - THETA[7:], np.zeros(1))[0]
    wealth = math.log(0.1 + 0.9 * math.exp(-1))
    assert chances[1][pair_number(8, 0, 7)] == pytest.approx(URGENCY * max(1.0, -wealth / rate), rel=1e-3)
    assert before.chances().tolist() == before.costs.tolist()
    slow = replace(ledger, table=lost, marker=None)  # with `edges` it burdens nothing but proofs about item 7
    assert pair_number(8, 0, 7) not in make_plan(slow, np.random.default_rng(0)).pairs


def test_a_plan_costs_no_more_than_any_other_bridgehead():
    problem = Problem(8, 3, 0.05)
    plan = make_plan(believing(problem, THETA), np.random.default_rng(0))
    eta = THETA[:, None] - THETA
    rates = problem.family.divergence(eta, np.zeros_like(eta))
    cost = (empty_ledger(problem).level(0.05) + LEARNING) / np.where(eta > 0, rates, np.inf)

    def total(x, y):
        upper, lower = range(3 - x, 3), range(3, 3 + y)
        across = sum(cost[u, v] for u in upper for v in lower)
        above = sum(min(cost[u, b] for b in upper) for u in range(3 - x))
        return across + above + sum(min(cost[b, v] for b in lower) for v in range(3 + y, 8))

    best = min(total(x, y) for x, y in itertools.product(range(1, 4), range(1, 6)))
    assert plan.costs.sum() == pytest.approx(best, rel=0.02)


def test_forbidden_pairs_are_gone_around_or_named():
    everything = {pair_number(8, i, j) for i, j in itertools.combinations(range(8), 2)}
    around = Problem(8, 3, 0.05, allowed=tuple(sorted(everything - {pair_number(8, 0, 3), pair_number(8, 1, 4)})))
    plan = make_plan(believing(around, THETA), np.random.default_rng(0))
    assert set(plan.pairs.tolist()) <= set(around.allowed)
    assert not plan.blocked
    edges = set(zip(*(end.tolist() for end in pair_ends(8, plan.pairs)), strict=True))
    assert reaches_all(8, 3, edges)
    stuck = Problem(8, 3, 0.05, allowed=tuple(sorted(everything - {pair_number(8, 2, 3)})))
    assert (2, 3) in make_plan(believing(stuck, THETA), np.random.default_rng(0)).blocked


@pytest.mark.parametrize("stopping", [Edges(), Glr(), Posterior()], ids=lambda c: c.name)
def test_it_works_with_every_stopping_rule(stopping):
    done = simulate(Utilities((2.0, 1.0, -1.0, -2.0), 2), Bridge(), 3, 1, delta=0.1, stopping=stopping, growth=0.01)
    assert done.correct == 3


def test_gaussian_votes_and_the_far_side_of_the_middle():
    for k in (1, 4):
        world = Utilities((1.0, 0.6, 0.0, -0.5, -1.1), k, Gaussian(0.7))
        assert simulate(world, "bridge", 3, 1, delta=0.05, growth=0.01).correct == 3


def test_a_tolerance_ends_a_tie():
    state = loop.start(Problem(4, 2, 0.1, tolerance=0.1), Bridge(), Edges())
    rng, theta = np.random.default_rng(1), np.array([1.0, 0.0, 0.0, -1.0])
    while not state.verdict.done:
        pairs, counts = loop.ask_block(state, 1 + round(state.tally.votes) // 50)
        first, second = pair_ends(4, pairs)
        wins = state.problem.family.draw(rng, state.problem.family.expect(theta[first] - theta[second]), counts)
        state = loop.tell_block(
            state, Block(first, second, wins, counts).divided(*state.problem.family.split(counts, wins))
        )
    assert state.verdict.reason == "certified"
    assert 0 in state.verdict.top
    assert 3 not in state.verdict.top
    assert "transitivity" in state.verdict.guarantee


def test_votes_left_is_about_right():
    """Runs scatter by about a quarter, so the mean of eight is good to a tenth."""
    needed = simulate(Utilities(tuple(THETA), 3), "bridge", 8, 1, delta=0.05, growth=0.05).mean_comparisons
    plan = make_plan(believing(Problem(8, 3, 0.05), THETA), np.random.default_rng(0))
    assert 0.6 * needed < plan.costs.sum() < 1.4 * needed


def test_many_items_need_little_memory():
    problem = Problem(10_000, 10, 0.05)
    state = loop.start(problem, Bridge(), Edges())
    pairs = {loop.ask(state, [0] * extra) for extra in range(5)}
    assert len(pairs) >= 4
    assert state.evidence.ledger.table.size == 0
