"""Chains of evidence against a slow fixpoint on sets, and what is claimed against its definition."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist.core.betting import AHEAD, BEHIND, CASH, Accounts, JudgeGains, empty_ledger
from shortlist.core.problem import Problem
from shortlist.core.stopping.chains import (
    absorb,
    capped_pull,
    capped_pulls,
    each_alone,
    grid_accounts,
    grid_level,
    pull,
    starts,
    step,
)
from shortlist.core.stopping.edges import Edges, _Chains
from shortlist.core.tally import Block


def random_accounts(rng, n):
    """Not every account exists, and about as many win as lose."""
    source, target = np.nonzero((rng.random((n, n)) < 0.6) & ~np.eye(n, dtype=bool))
    return Accounts(source, target, rng.normal(0, 1.5, len(source)).clip(-2.3))


def slow_chain(n, kinds, item):
    """All that `item` absorbs; kinds are (accounts, level, one by one?)."""
    absorbed = {item}
    while True:
        new = {v for v in set(range(n)) - absorbed if any(slow_reaches(kind, absorbed, v) for kind in kinds)}
        if not new:
            return absorbed
        absorbed |= new


def slow_reaches(kind, absorbed, v):
    accounts, enough, one_by_one = kind
    against = [(x, w) for x, y, w in zip(*accounts, strict=True) if y == v]
    if one_by_one:
        return any(w >= enough for x, w in against if x in absorbed)
    lost = sum(-w for _, w in against if w < 0)
    return sum(w for x, w in against if x in absorbed and w > 0) - lost >= enough


def columns(flags):
    return [set(np.flatnonzero(column).tolist()) for column in flags.T]


@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.floats(0.1, 3.0), st.floats(0.5, 3.0))
@settings(max_examples=80, deadline=None)
def test_absorbing_is_a_fixpoint_on_sets(seed, n, enough, single):
    rng = np.random.default_rng(seed)
    accounts, others = random_accounts(rng, n), random_accounts(rng, n)
    fast = absorb([(pull(n, accounts), enough)], starts(n, np.arange(n)))
    assert columns(fast) == [slow_chain(n, [(accounts, enough, False)], item) for item in range(n)]
    both = absorb([(pull(n, accounts), enough), each_alone(n, others, single)], starts(n, np.arange(n)))
    kinds = [(accounts, enough, False), (others, single, True)]
    assert columns(both) == [slow_chain(n, kinds, item) for item in range(n)]
    assert np.array_equal(step([(pull(n, accounts), enough)], fast), fast)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_no_outsider_absorbs_a_member_while_the_outsiders_accounts_stay_small(seed):
    """The step of the proof that is not probability."""
    rng, n, k = np.random.default_rng(seed), 7, 3
    accounts = random_accounts(rng, n)
    outside = accounts.source >= k
    sums = [accounts.wealth[outside & (accounts.target == y)].sum() for y in range(k)]
    enough = max(*sums, 0.0) + 1e-9
    absorbed = absorb([(pull(n, accounts), enough)], starts(n, np.arange(k, n)))
    assert not absorbed[:k].any()


def chains(seed, n, k, votes, tolerance=0.0, delta=0.1, spread=1.5, grid=False):
    rng, ledger = np.random.default_rng(seed), empty_ledger(Problem(n, k, delta, tolerance=tolerance))
    ledger = replace(ledger, share=0.5 if grid else 1.0)
    theta, blocks = np.linspace(spread, -spread, n), []
    for _ in range(votes):
        first = rng.integers(0, n, 4)
        second = (first + rng.integers(1, n, 4)) % n
        outcome = (rng.random(4) < 1 / (1 + np.exp(theta[second] - theta[first]))).astype(np.float64)
        blocks.append(ledger.place_bets(Block(first, second, outcome, np.ones(4))))
        ledger = ledger.add(blocks[-1])
    if not grid:
        return _Chains(ledger.problem, ledger)
    together = Block(*(np.concatenate(parts) for parts in zip(*(block[:5] for block in blocks), strict=True)))
    kinds = (False, True) if tolerance else (False,)
    return _Chains(ledger.problem, ledger, [grid_accounts(ledger.problem, together, kind) for kind in kinds], 0.5)


def slow_absorbed(built, delta, item):
    problem, ledger = built.problem, built.ledger
    level = math.log((2 * problem.n if problem.tolerance else ledger.k) / (delta * (0.5 if built.grids else 1.0)))
    plain = [(ledger.accounts(), level, False)]
    tolerant = [(ledger.accounts(tolerant=True), level, False)] if problem.tolerance else []
    if delta >= problem.delta:
        plain.append((ledger.proved, 1.0, True))
    if built.grids:
        enough = grid_level(problem, delta * 0.5)
        plain.append((built.grids[0], enough, True))
        tolerant += [(built.grids[1], enough, True)] if problem.tolerance else []
    reached = slow_chain(problem.n, plain, item)
    if not tolerant:
        return reached
    grown = reached | {v for v in range(problem.n) if any(slow_reaches(kind, reached, v) for kind in tolerant)}
    while True:
        more = grown | {v for v in range(problem.n) if any(slow_reaches(kind, grown, v) for kind in plain)}
        if more == grown:
            return grown
        grown = more


def slow_decides(built, delta):
    rest = set(np.flatnonzero(~built.inside).tolist())
    return all(rest <= slow_absorbed(built, delta, item) for item in built.top.tolist())


CASES = [  # seed, n, k, votes, tolerance
    (1, 5, 2, 60, 0.0),
    (2, 5, 4, 50, 0.0),
    (3, 6, 3, 80, 0.0),
    (4, 4, 1, 25, 0.1),
    (5, 5, 3, 60, 0.1),
    (6, 3, 1, 4, 0.0),
]


@pytest.mark.parametrize("grid", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_error_bound_is_the_smallest_delta_that_decides(case, grid):
    seed, n, k, votes, tolerance = case
    built = chains(seed, n, k, votes, tolerance, grid=grid)
    bound = built.error_bound()
    assert built.decide(built.problem.delta) == slow_decides(built, built.problem.delta)
    assert bound == 1.0 or slow_decides(built, bound)
    assert not slow_decides(built, bound * math.exp(-1.1e-3))
    deciding = [delta for delta in np.geomspace(1e-9, 1, 60) if slow_decides(built, delta)]
    assert all(delta >= bound * math.exp(-1.1e-3) for delta in deciding)  # once it decides it decides for all larger


def test_some_cases_are_certain_and_some_are_not():
    bounds = [chains(seed, n, k, votes, tolerance).error_bound() for seed, n, k, votes, tolerance in CASES]
    assert min(bounds) < 0.1
    assert max(bounds) > 0.1


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("n", "k"), [(5, 2), (5, 4), (6, 3)])
def test_certainly_in_and_out_follow_their_definitions(seed, n, k):
    built = chains(seed, n, k, 45, spread=2.0, delta=0.3)
    delta, small, flipped = built.problem.delta, built.ledger.k, built.ledger.flipped
    absorbed = {item: slow_absorbed(built, delta, item) for item in range(n)}
    top = set(built.top.tolist())
    best = {u for u in top if len(absorbed[u] - {u}) >= n - small}
    rest = {v for v in set(range(n)) - top if sum(v in absorbed[u] for u in top) >= small}
    assert built._certain(delta) == ((rest, best) if flipped else (best, rest))
    verdict = built.verdict(0, Edges().start(built.problem).verdict)
    assert (set(verdict.certainly_in), set(verdict.certainly_out)) == built._certain(delta)
    assert set(verdict.undecided) == set(range(n)) - set(verdict.certainly_in) - set(verdict.certainly_out)
    if verdict.done:
        assert set(verdict.certainly_in) == set(verdict.top)
        assert not verdict.undecided
    assert len(verdict.top) == k


def test_within_a_tolerance_nobody_is_certain():
    built = chains(4, 4, 1, 60, tolerance=0.1)
    assert built.error_bound() < 0.1
    assert built._certain(0.1) == (set(), set())


# --- steps that rest on at least m judges ---

LEVEL = 3.0


def plain_value(table, losses, sources, target, m):
    """e(R, v) with caps, word by word; `table[judge, source, target]` are gains."""
    cap = (LEVEL + losses[target]) / (m - 0.5)
    totals = [sum(max(table[j, r, target], 0.0) for r in sources) for j in range(len(table))]
    value = -losses[target]
    for r in sources:
        log_wealth = 0.0
        for j, total in enumerate(totals):
            gain = table[j, r, target]
            log_wealth += gain * min(1.0, cap / total) if gain > 0 else gain
        value += max(math.log(CASH + (1 - CASH) * math.exp(log_wealth)), 0.0)
    return value


def judged(table, m, k=1):
    """The ledger of these gains, what its accounts have won, and what was lost against each item; its level is 3."""
    judges, n, _ = table.shape
    problem = Problem(n, k, k * math.exp(-LEVEL), min_judges=m)
    low, high = np.triu_indices(n, 1)
    gains = np.stack([table[:, low, high].ravel(), table[:, high, low].ravel()], axis=1)
    columns = np.zeros((len(low), 6))
    columns[:, AHEAD], columns[:, BEHIND] = table.sum(axis=0)[low, high], table.sum(axis=0)[high, low]
    by_judge = JudgeGains(np.arange(judges * len(low)), gains)
    ledger = replace(empty_ledger(problem), pairs=np.arange(len(low)), table=columns, by_judge=by_judge)
    true = np.log(CASH + (1 - CASH) * np.exp(table.sum(axis=0)))
    return ledger, true, np.maximum(-true, 0.0).sum(axis=0)


def random_gains(rng, judges, n):
    table = rng.normal(0.8, 1.5, (judges, n, n)) * (rng.random((judges, n, n)) < 0.7)
    table[:, range(n), range(n)] = 0.0
    return table


def grown(ledger, absorbed):
    delta = ledger.problem.delta
    return step(capped_pulls(capped_pull(ledger, delta), ledger, delta), absorbed[:, None])[:, 0]


@pytest.mark.parametrize("m", [2, 3, 5])
def test_capped_steps_are_those_of_the_plain_calculation(m):
    """From the absorbed items whose accounts won, all together or one by one."""
    rng, absorbing = np.random.default_rng(m), 0
    for _ in range(200):
        n = int(rng.integers(3, 7))
        table = random_gains(rng, int(rng.integers(1, 12)), n)
        ledger, true, losses = judged(table, m)
        absorbed = rng.random(n) < 0.5
        after = grown(ledger, absorbed)
        for v in np.flatnonzero(~absorbed):
            winners = [r for r in np.flatnonzero(absorbed) if true[r, v] > 0]
            sets = [winners, *([r] for r in winners)]
            assert after[v] == any(plain_value(table, losses, sources, v, m) >= LEVEL for sources in sets)
        absorbing += int(after.sum() - absorbed.sum())
    assert absorbing > 20


def test_a_capped_step_has_gains_of_at_least_m_judges_and_is_a_step_without_caps():
    rng, steps = np.random.default_rng(1), 0
    for _ in range(500):
        m, n = int(rng.integers(2, 6)), 5
        table = random_gains(rng, 8, n)
        ledger, true, losses = judged(table, m)
        absorbed = rng.random(n) < 0.6
        for v in np.flatnonzero(grown(ledger, absorbed) & ~absorbed):
            assert (np.maximum(table[:, absorbed, v], 0.0).sum(axis=1) > 0).sum() >= m
            assert np.maximum(true[absorbed, v], 0.0).sum() - losses[v] >= LEVEL
            assert ledger.reachable()[v]
            steps += 1
    assert steps > 50


@pytest.mark.parametrize("m", range(2, 11))
def test_m_judges_who_agree_are_enough(m):
    """Each may give a little more than 1/m of what is needed, which covers the cash."""
    table = np.zeros((m, 2, 2))
    table[:, 0, 1] = 50.0
    absorbed = np.array([True, False])
    assert grown(judged(table, m)[0], absorbed)[1]
    assert not grown(judged(table, m + 1)[0], absorbed)[1]


def test_error_bounds_with_caps_use_the_level_and_the_caps_of_their_own_delta():
    """One judge gives 6 nats and the other 3. The bound is that of the level which these reach with its own cap, and
    the cap binds there: without it the level would be about 8.9."""
    table = np.zeros((2, 2, 2))
    table[:, 0, 1] = 6.0, 3.0
    ledger = judged(table, 2)[0]
    ledger = replace(ledger, belief=ledger.belief._replace(theta=np.array([1.0, -1.0])))
    level = -math.log(_Chains(ledger.problem, ledger).error_bound())
    given = min(6.0, level / 1.5) + min(3.0, level / 1.5)
    assert level / 1.5 < 6.0
    assert math.log(CASH + (1 - CASH) * math.exp(given)) == pytest.approx(level, abs=2e-3)
