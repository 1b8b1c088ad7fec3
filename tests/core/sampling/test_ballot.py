"""A ballot bets against no item twice, begins with what a proof needs most, and knows nothing of the judge."""

import itertools
import math

import numpy as np
import pytest

from shortlist.core import loop
from shortlist.core.draws import Draws
from shortlist.core.evidence import Evidence
from shortlist.core.pairs import n_pairs, pair_items, pair_number
from shortlist.core.problem import Problem
from shortlist.core.sampling.ballot import Places, draw_ballot
from shortlist.core.sampling.base import NO_PAIRS
from shortlist.core.sampling.bridge import Bridge, BridgeMemory
from shortlist.core.sampling.plan import make_plan
from shortlist.core.stopping.edges import Edges
from shortlist.core.tally import Vote, as_block
from tests.core.sampling.test_bridge import THETA, believing


def played(n, k, votes, seed=0, **options):
    """A state after votes of one world on random pairs."""
    rng, theta = np.random.default_rng((3, seed)), np.linspace(1.5, -1.5, n)
    state = loop.start(Problem(n, k, 0.05, **options), Bridge(), Edges(), seed)
    for _ in range(votes):
        i, j = rng.choice(n, 2, replace=False).tolist()
        outcome = float(rng.random() < 1 / (1 + math.exp(theta[j] - theta[i])))
        state = loop.tell(state, Vote(i, j, outcome, loop.bet(state, i, j)))
    return state


def drawn(state, size=10, number=0, pending=NO_PAIRS, places=Places(), avoid=NO_PAIRS):
    draws = Draws((state.seed, number, 2))
    return draw_ballot(state.sampling_memory, state.evidence, pending, size, places, draws, avoid)


def targets(ballot, n, k):
    """Against whom the ledger's accounts bet: for k > n/2 the accounts look for the worst, so the item that a vote is
    bet on is the one that must not be met twice."""
    found = []
    for pair, bet in ballot:
        low, high = pair_items(n, pair)
        if bet:
            better, worse = (low, high) if bet > 0 else (high, low)
            found.append(better if 2 * k > n else worse)
    return found


@pytest.mark.parametrize(("n", "k"), [(4, 1), (6, 2), (8, 1), (8, 6), (9, 5), (12, 3), (12, 9)])
@pytest.mark.parametrize("votes", [0, 10, 60, 400])
def test_no_item_is_bet_against_twice_and_no_pair_is_listed_twice(n, k, votes):
    state = played(n, k, votes)
    for number, size in itertools.product(range(5), (1, 3, 10)):
        ballot = drawn(state, size, number)
        pairs, against = [entry.pair for entry in ballot], targets(ballot, n, k)
        assert 1 <= len(ballot) <= min(size, n_pairs(n))
        assert len(set(pairs)) == len(pairs)
        assert len(set(against)) == len(against)
        if votes == 0:
            assert not against  # nothing is known, so nothing is bet
            assert len(ballot) == min(size, n_pairs(n))


def test_the_ledger_agrees_about_who_is_bet_against():
    """A second look at the targets: which accounts lose if everything on the list is lost by both."""
    for n, k in ((8, 3), (8, 6), (7, 2), (7, 5)):
        state = played(n, k, 300)
        ballot = [entry for entry in drawn(state) if entry.bet]
        ledger = state.evidence.kept_ledger
        against = []
        for pair, bet in ballot:
            low, high = pair_items(n, pair)
            after = ledger.doubting(as_block([Vote(low, high, 0.0, bet)])).accounts()
            before = ledger.doubting(as_block([Vote(low, high, 0.0, 0.0)])).accounts()
            against += after.target[after.wealth < before.wealth - 1e-12].tolist()
        assert len(against) == len(ballot)
        assert len(set(against)) == len(against)


def test_with_a_tolerance_no_item_is_listed_twice():
    for votes, n in itertools.product((0, 50, 400), (5, 8, 12)):
        ballot = drawn(played(n, 3, votes, tolerance=0.05))
        items = [item for entry in ballot for item in pair_items(n, entry.pair)]
        assert len(set(items)) == len(items)
        assert len(ballot) == n // 2


def known(n=8, k=3):
    """A state that is sure of the order: nothing is left but the proof."""
    problem = Problem(n, k, 0.05)
    ledger = believing(problem, np.linspace(2, -2, n) if n != 8 else THETA, 10**4)
    return loop.start(problem, Bridge(), Edges())._replace(
        evidence=Evidence(loop.start(problem, Bridge(), Edges()).tally, None, ledger), sampling_memory=BridgeMemory()
    )


def test_when_the_order_is_known_the_plan_comes_first_and_the_most_needed_of_it():
    for k in (1, 3, 6):
        state = known(k=k)
        ledger = state.evidence.kept_ledger
        assert ledger.misordered() < 0.3
        plan = make_plan(ledger, np.random.default_rng(0))
        costs = dict(zip(plan.pairs.tolist(), plan.costs.tolist(), strict=True))
        for number in range(20):
            needed = [costs.get(entry.pair, 0.0) for entry in drawn(state, number=number)]
            assert needed == sorted(needed, reverse=True)
            assert needed[0] > 0
        assert len(drawn(state)) == 7  # one target for each item but the best (or, turned, the worst)


def test_a_list_that_learns_bets_against_free_items_only():
    state = played(10, 3, 15)
    assert state.evidence.kept_ledger.misordered() > 0.3
    assert len(drawn(state)) >= 5


def test_the_same_state_and_number_give_the_same_list():
    state = known()
    assert drawn(state, number=7) == drawn(state, number=7)
    assert len({tuple(drawn(state, 4, number)) for number in range(30)}) > 1  # the dice matter


def test_pairs_to_avoid_and_pairs_not_allowed_are_left_out():
    state = played(6, 2, 200)
    avoid = np.array([pair_number(6, 0, other) for other in range(1, 6)])
    assert all(0 not in pair_items(6, entry.pair) for entry in drawn(state, avoid=avoid))
    assert drawn(state, avoid=np.arange(n_pairs(6))) == []
    chain = tuple(sorted(pair_number(6, i, i + 1) for i in range(5)))
    assert {entry.pair for entry in drawn(played(6, 2, 0, allowed=chain))} <= set(chain)


def test_votes_that_are_out_count_as_needed_less():
    """The plan's pair with most votes out is drawn less often."""
    state, often = known(k=1), []
    plan = make_plan(state.evidence.kept_ledger, np.random.default_rng(0))
    pair = int(plan.pairs[np.argsort(-plan.costs)[0]])
    for out in (0, int(plan.costs.max())):
        pending = np.full(out, pair)
        often.append(sum(drawn(state, 1, number, pending)[0].pair == pair for number in range(200)))
    assert often[1] < 0.3 * often[0]


def test_places_count_lists_that_are_closed():
    places = Places().after(range(3), [0, 1]).after(range(2), [0]).after([0, 1, 3], [0, 1, 3])
    assert places == Places((3, 2, 0, 1), (3, 3, 1, 1))
    assert places.share(0) == 22 / 23
    assert places.share(1) == 21 / 23
    assert places.share(7) == 19 / 20


def test_bets_know_their_place():
    """p' = share * p for the side that bets, and no bet where p' is at most a half."""
    state = known(k=3)
    places = Places((400, 100, 0), (400, 400, 400))
    plain, later = drawn(state, 3), drawn(state, 3, places=places)
    assert [entry.pair for entry in plain] == [entry.pair for entry in later]
    ledger = state.evidence.kept_ledger
    for place, entry in enumerate(later):
        ends = (np.array([end]) for end in pair_items(8, entry.pair))
        p = 1 / (1 + math.exp(-abs(ledger.bets(*ends)[0])))
        expected = p * (places.answered[place] + 19) / (places.closed[place] + 20)
        assert 1 / (1 + math.exp(-abs(entry.bet))) == pytest.approx(max(expected, 0.5))
    assert later[2].bet == 0.0
