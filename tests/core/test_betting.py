"""Accounts of bets against a slow product written down here, and what may and may not change them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logsumexp

from shortlist.core import loop
from shortlist.core.betting import (
    AHEAD,
    AHEAD_EPS,
    BEHIND,
    BEHIND_EPS,
    CASH,
    CLEAR,
    CLEAR_EARLY,
    KELLY,
    PROVED_AHEAD,
    PROVED_BEHIND,
    SETTLED,
    SUM,
    WEIGHT,
    empty_ledger,
    own_bet,
)
from shortlist.core.families import BradleyTerry, Gaussian
from shortlist.core.pairs import node_sums
from shortlist.core.problem import Problem
from shortlist.core.sampling.uniform import Uniform
from shortlist.core.stopping.chains import ETAS, grid_accounts
from shortlist.core.stopping.cuts import Cuts
from shortlist.core.stopping.edges import Edges
from shortlist.core.tally import Block, Vote, one_vote

N = 5
GRADES = np.array([0.0, 0.5, 1.0, 0.2, 0.9])


def random_block(rng, votes, n=N, outcomes=GRADES):
    first = rng.integers(0, n, votes)
    second = (first + rng.integers(1, n, votes)) % n
    return Block(first, second, rng.choice(outcomes, votes), np.ones(votes), rng.normal(0, 0.7, votes))


def slow_wealth(problem, block, x, y, margin=0.0):
    """Log wealth of x's account against y on the ledger's side, vote by vote."""
    log_stake = 0.0
    null = expit(-margin)
    for i, j, outcome, _, bet in zip(*block[:5], strict=True):
        if {int(i), int(j)} != {x, y}:
            continue
        seen, expected = (outcome, bet) if i == x else (1 - outcome, -bet)
        if 2 * problem.k > problem.n:
            seen, expected = 1 - seen, -expected
        chance = expit(max(expected, -margin))
        log_stake += math.log(seen * chance / null + (1 - seen) * (1 - chance) / (1 - null))
    return np.logaddexp(math.log(CASH), math.log(1 - CASH) + log_stake)


def all_wealth(ledger, tolerant=False):
    source, target = np.nonzero(~np.eye(N, dtype=bool))
    return ledger.wealth(source, target, tolerant)


def examined(ledger):
    stopping, state = Edges(), loop.start(ledger.problem, Uniform(), Edges())
    return stopping.examine(stopping.start(ledger.problem), ledger.problem, state.evidence._replace(ledger=ledger))


def played(problem, theta, votes, seed, flipped=False):
    """A ledger that placed its own bets on votes of a Bradley-Terry world, or on the same votes seen upside down."""
    rng, ledger = np.random.default_rng(seed), empty_ledger(problem)
    for _ in range(votes):
        block = random_block(rng, 1)
        outcome = (rng.random(1) < expit(theta[block.first] - theta[block.second])).astype(np.float64)
        block = block._replace(outcome=1 - outcome if flipped else outcome)
        ledger = ledger.add(ledger.place_bets(block))
    return ledger


@pytest.mark.parametrize("k", [2, 4], ids=["top", "flipped"])
@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_wealth_is_the_product_of_the_factors(k, tolerance):
    problem = Problem(N, k, 0.1, tolerance=tolerance)
    block = random_block(np.random.default_rng(1), 120)
    ledger = empty_ledger(problem).add(block)
    for x in range(N):
        for y in set(range(N)) - {x}:
            here = np.array([x]), np.array([y])
            assert ledger.wealth(*here)[0] == pytest.approx(slow_wealth(problem, block, x, y), abs=1e-10)
            if tolerance:
                slow = slow_wealth(problem, block, x, y, problem.margin)
                assert ledger.wealth(*here, tolerant=True)[0] == pytest.approx(slow, abs=1e-10)
    accounts = ledger.accounts()
    assert np.array_equal(accounts.wealth, ledger.wealth(accounts.source, accounts.target))
    assert np.allclose(ledger.inflow, node_sums(accounts.target, accounts.wealth, N))
    assert np.all(accounts.wealth >= math.log(CASH))


@pytest.mark.parametrize("family", [BradleyTerry(), Gaussian(0.7)], ids=["bradley-terry", "gaussian"])
@pytest.mark.parametrize(("tolerance", "marker"), [(0.0, None), (0.1, None), (0.0, Cuts())])
@pytest.mark.parametrize("k", [2, 4], ids=["top", "flipped"])
def test_plain_numbers_say_what_arrays_of_one_do(k, tolerance, marker, family):
    problem = Problem(N, k, 0.5, family, tolerance=tolerance)
    arrays = numbers = empty_ledger(problem, marker)
    rng = np.random.default_rng(6)
    pending = None if family.is_measured else random_block(rng, 1)
    for _ in range(400):
        block = random_block(rng, 1)
        if rng.random() < 0.7:  # the lower item wins more often than not
            won = np.ones(1)
            block = block._replace(outcome=np.where(block.first < block.second, won, family.flip(won)))
        block = arrays.place_bets(block)
        plain = one_vote(Vote(*(column.tolist()[0] for column in (*block[:3], block.bets))))
        assert block.bets.tolist() == [numbers.bets(plain.first, plain.second)]
        arrays, numbers = arrays.add(block, pending), numbers.add(plain, pending)
        assert np.array_equal(arrays.table, numbers.table)
        assert np.array_equal(arrays.inflow, numbers.inflow)
    assert arrays.pairs.tolist() == numbers.pairs.tolist()
    assert numbers.table[:, PROVED_AHEAD : PROVED_BEHIND + 1].any()


def test_the_order_of_answers_does_not_matter_given_the_bets():
    problem = Problem(N, 2, 0.1, tolerance=0.05)
    block = random_block(np.random.default_rng(2), 80)
    together = empty_ledger(problem).add(block)
    one_by_one = empty_ledger(problem)
    for vote in np.random.default_rng(3).permutation(80):
        one_by_one = one_by_one.add(block.part(vote, vote + 1))
    sums = [WEIGHT, SUM, AHEAD, BEHIND, AHEAD_EPS, BEHIND_EPS]
    assert np.allclose(together.table[:, sums], one_by_one.table[:, sums], atol=1e-10)
    assert np.allclose(together.inflow, one_by_one.inflow, atol=1e-10)


def test_a_tie_changes_no_wealth():
    problem = Problem(N, 2, 0.1)
    block = random_block(np.random.default_rng(4), 40)
    before = empty_ledger(problem).add(block)
    after = before.add(block._replace(outcome=np.full(40, 0.5), bets=3 * block.bets))
    assert np.allclose(before.table, after.table, atol=1e-12)
    assert after.votes == 80


def test_a_fair_vote_wins_nothing_on_average():
    """Half of what a win brings plus half of what a loss costs is nothing; at the tolerance's own odds too."""
    problem = Problem(N, 2, 0.1, tolerance=0.1)
    for bet in np.linspace(-3, 3, 13):
        rows = [
            empty_ledger(problem)
            .add(Block(*np.array([[0], [1]]), np.array([won]), np.ones(1), np.array([bet])))
            .table[0]
            for won in (1.0, 0.0)
        ]
        win, loss = np.exp(rows)
        assert np.allclose(0.5 * win[AHEAD] + 0.5 * loss[AHEAD], 1)
        assert np.allclose(0.5 * win[BEHIND] + 0.5 * loss[BEHIND], 1)
        assert np.allclose(0.4 * win[AHEAD_EPS] + 0.6 * loss[AHEAD_EPS], 1)
        assert np.allclose(0.6 * win[BEHIND_EPS] + 0.4 * loss[BEHIND_EPS], 1)


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 4]), st.sampled_from([0.0, 0.1]))
@settings(max_examples=40, deadline=None)
def test_an_undo_is_one_sided(seed, k, tolerance):
    """It restores whom the vote helped and leaves whom it hurt; no account gains by it."""
    rng = np.random.default_rng(seed)
    problem = Problem(N, k, 0.1, tolerance=tolerance)
    without = empty_ledger(problem).add(random_block(rng, 30))
    block = random_block(rng, 3)
    first, second = (end[:1].repeat(3) for end in (block.first, block.second))
    block = block._replace(first=first, second=second, outcome=rng.choice([0.0, 1.0], 1).repeat(3))
    block = block._replace(bets=np.abs(block.bets) * rng.choice([-1, 1]))
    voted = without.add(block)
    undone = voted.withdraw(block)
    for tolerant in (False, True) if tolerance else (False,):
        lower = np.minimum(all_wealth(voted, tolerant), all_wealth(without, tolerant))
        assert np.allclose(all_wealth(undone, tolerant), lower, atol=1e-9)
    slots = np.searchsorted(undone.pairs, without.pairs)
    assert np.allclose(undone.table[slots][:, [WEIGHT, SUM]], without.table[:, [WEIGHT, SUM]])
    assert undone.votes == without.votes
    accounts = undone.accounts()
    assert np.allclose(undone.inflow, node_sums(accounts.target, accounts.wealth, N))


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 4]), st.sampled_from([0.0, 0.1]), st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_doubting_is_below_every_completion(seed, k, tolerance, open_questions):
    rng = np.random.default_rng(seed)
    ledger = empty_ledger(Problem(N, k, 0.1, tolerance=tolerance)).add(random_block(rng, 25))
    block = random_block(rng, open_questions)
    doubting = ledger.doubting(block)
    answered = rng.random(open_questions) < 0.7  # the others are skipped
    outcome = np.where(rng.random(open_questions) < 0.5, rng.random(open_questions), rng.integers(0, 2, open_questions))
    told = block._replace(outcome=outcome)
    some = Block(*(column[answered] for column in told[:5]))
    for end in (ledger.add(some), ledger.add(told), ledger):
        for tolerant in (False, True) if tolerance else (False,):
            assert np.all(all_wealth(doubting, tolerant) <= all_wealth(end, tolerant) + 1e-12)
    accounts = doubting.accounts()
    assert np.allclose(doubting.inflow, node_sums(accounts.target, accounts.wealth, N))
    assert doubting.votes == ledger.votes
    assert doubting.belief.number == ledger.belief.number


def marks(ledger):
    return set(zip(ledger.proved.source.tolist(), ledger.proved.target.tolist(), strict=True))


@pytest.mark.parametrize("k", [2, 4], ids=["top", "flipped"])
def test_what_was_enough_once_stays_proved(k):
    """Against a replay that looks at every account after every vote, as if pending questions were lost."""
    rng, ledger = np.random.default_rng(8), empty_ledger(Problem(N, k, 0.4))
    enough, pending, expected, later = ledger.level(0.4), random_block(rng, 1), set(), 0
    for vote in range(600):
        block = random_block(rng, 1)
        side = 1.0 if block.first[0] < block.second[0] else -1.0  # lower items win at first, and lose later
        won = rng.random(1) < 0.5 + 0.3 * side * (1 if vote < 300 else -1)
        ledger = ledger.add(block._replace(outcome=won.astype(np.float64), bets=np.array([0.8 * side])), pending)
        sure = ledger.doubting(pending).accounts()
        left = sure.wealth - sure.losses(N)[sure.target]
        pair = {int(block.first[0]), int(block.second[0])}
        now = {
            (x, y) for x, y, net in zip(sure.source.tolist(), sure.target.tolist(), left, strict=True) if net >= enough
        }
        expected |= {ends for ends in now if set(ends) == pair}
        later += len(expected - now)
        assert marks(ledger) == expected
    assert later > 0, "no account fell back, so nothing was tested"
    x, y = sorted(expected)[0]
    again = Block(np.array([x]), np.array([y]), np.ones(1), np.ones(1), np.zeros(1))
    assert marks(ledger.withdraw(again)) == {ends for ends in expected if ends[1] not in (x, y)}


def test_a_mark_goes_with_the_votes_it_rests_on():
    """Votes for another item, too, can bring an account to the level: they make up for what that item had lost."""

    def votes(source, outcome, count):
        return Block(np.full(count, source), np.full(count, 2), np.full(count, outcome), np.ones(count), np.ones(count))

    lifting = votes(1, 1.0, 6)
    before = empty_ledger(Problem(3, 1, 0.05)).add(votes(1, 0.0, 4)).add(votes(0, 1.0, 8))
    without, lifted = (ledger.add(votes(0, 1.0, 1)) for ledger in (before, before.add(lifting)))
    assert marks(without) == set()
    assert marks(lifted) == {(0, 2)}
    assert marks(lifted.withdraw(lifting)) == set()


def test_doubt_is_reached_when_one_question_is_pending():
    """And not lower than need be: one end of the open question gives each account what the doubt gives it."""
    ledger = played(Problem(N, 2, 0.1), np.linspace(1, -1, N), 60, 5)
    block = ledger.place_bets(Block(np.array([3]), np.array([1]), np.zeros(1), np.ones(1)))
    ends = [all_wealth(ledger.add(block._replace(outcome=np.array([end])))) for end in (0.0, 1.0)]
    assert np.allclose(all_wealth(ledger.doubting(block)), np.minimum(*ends))


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("seed", [6, 7])
def test_the_mirrored_problem_has_mirrored_verdicts(k, seed):
    theta = np.linspace(2, -2, N)
    top = examined(played(Problem(N, k, 0.3), theta, 120, seed))
    bottom = examined(played(Problem(N, N - k, 0.3), theta, 120, seed, flipped=True))
    assert set(bottom.top) == set(range(N)) - set(top.top)
    assert bottom.certainly_in == top.certainly_out
    assert bottom.certainly_out == top.certainly_in
    assert top.certainly_out  # or there was nothing to compare
    assert bottom.error_bound == top.error_bound


@pytest.mark.parametrize("k", [2, 4])
def test_swapping_sides_changes_nothing(k):
    problem = Problem(N, k, 0.1, tolerance=0.1)
    block = random_block(np.random.default_rng(8), 60)
    swapped = Block(block.second, block.first, 1 - block.outcome, block.counts)
    ledger = other = empty_ledger(problem)
    for begin in range(0, 60, 6):
        here = ledger.place_bets(block.part(begin, begin + 6))
        there = other.place_bets(swapped.part(begin, begin + 6))
        assert np.allclose(there.bets, -here.bets, atol=1e-12)
        ledger, other = ledger.add(here), other.add(there._replace(bets=-here.bets))
    assert np.allclose(ledger.table, other.table, atol=1e-10)
    assert np.allclose(ledger.belief.theta, other.belief.theta, atol=1e-10)


@pytest.mark.parametrize("k", [1, 2])
def test_ten_million_votes_on_a_pair_stay_finite_and_right(k):
    problem, ends = Problem(3, k, 0.05), (np.array([0, 0]), np.array([1, 1]))
    wins, losses, bet = 5.1e6, 4.9e6, 0.04
    votes = Block(*ends, np.array([1.0, 0.0]), np.array([wins, losses]), np.full(2, bet))
    ledger = empty_ledger(problem).add(votes)
    gained = wins * math.log(2 * expit(bet)) + losses * math.log(2 * expit(-bet))
    source, target = (0, 1) if k == 1 else (1, 0)  # with k = 2 the ledger looks for the worst
    wealth = ledger.wealth(np.array([source]), np.array([target]))[0]
    assert wealth == pytest.approx(gained + math.log(1 - CASH), rel=1e-9)
    assert np.isfinite(ledger.accounts().wealth).all()
    assert ledger.theta[0] > ledger.theta[1]


def test_ten_million_wins_leave_sensible_bets():
    ledger = empty_ledger(Problem(2, 1, 0.05))
    ends = np.array([0]), np.array([1])
    for _ in range(20):
        ledger = ledger.add(Block(*ends, np.ones(1), np.full(1, 5e5), ledger.bets(*ends)))
    ledger = ledger.add(Block(*ends, np.zeros(1), np.ones(1), ledger.bets(*ends)))
    assert np.isfinite(ledger.table).all()
    assert np.isfinite(ledger.bets(*ends)).all()
    assert examined(ledger).top == (0,)
    assert examined(ledger).reason == "certified"


@pytest.mark.parametrize("k", [2, 4], ids=["top", "flipped"])
@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_the_grid_is_an_average_over_fixed_bets(k, tolerance):
    problem = Problem(N, k, 0.1, tolerance=tolerance)
    block = random_block(np.random.default_rng(9), 200, outcomes=np.array([0.0, 1.0]))
    for tolerant in (False, True) if tolerance else (False,):
        margin = problem.margin if tolerant else 0.0
        accounts = grid_accounts(problem, block, tolerant)
        for x, y, wealth in zip(*accounts, strict=True):
            wins = np.sum(block.outcome[(block.first == x) & (block.second == y)] == 1)
            wins += np.sum(block.outcome[(block.first == y) & (block.second == x)] == 0)
            votes = np.sum((np.minimum(x, y) == np.minimum(*block[:2])) & (np.maximum(x, y) == np.maximum(*block[:2])))
            won = votes - wins if k == 4 else wins
            win, loss = (np.log(expit(s * (ETAS - margin)) / expit(-s * margin)) for s in (1, -1))
            assert wealth == pytest.approx(logsumexp(won * win + (votes - won) * loss) - math.log(len(ETAS)), abs=1e-9)


def test_the_tolerant_grid_is_never_poorer():
    """Which is why plain and tolerant accounts of a pair can share one level."""
    problem = Problem(N, 2, 0.1, tolerance=0.1)
    block = random_block(np.random.default_rng(10), 300)
    plain, tolerant = (grid_accounts(problem, block, kind).wealth for kind in (False, True))
    assert np.all(tolerant >= plain)


def test_the_grid_does_not_mind_the_unit_of_gaussian_votes():
    rng = np.random.default_rng(11)
    block = random_block(rng, 100, outcomes=rng.normal(0.3, 1.0, 50))
    one = grid_accounts(Problem(N, 2, 0.1, Gaussian(1.0)), block)
    ten = grid_accounts(Problem(N, 2, 0.1, Gaussian(10.0)), block._replace(outcome=10 * block.outcome))
    assert np.allclose(one.wealth, ten.wealth)


def test_the_bet_from_own_votes_is_the_mean_of_a_normal_cut_off_at_zero():
    """Up to the usual probit approximation of the expectation of a logistic function."""
    for votes, won in [(0, 0), (7, 7), (30, 18), (30, 12), (2000, 1100), (2000, 700)]:
        precision = 4 + votes / 4
        mean, spread = (won - votes / 2) / precision, precision**-0.5
        eta = np.linspace(0, max(mean, 0) + 9 * spread, 200_001)
        density = np.exp(-0.5 * ((eta - mean) / spread) ** 2 + 0.5 * min(mean / spread, 0) ** 2)
        exact = (density * (2 * expit(eta) - 1)).sum() / density.sum()
        assert own_bet(np.array(votes), np.array(won)) == pytest.approx(exact, rel=0.02, abs=0.002)
    assert 0 <= own_bet(np.array(10**6), np.array(0)) < 1e-3


def replayed(problem, seed, votes=700):
    """A ledger of whole sets whose bets are its own, vote by vote, and what it bet, as it sees pairs; some pairs are
    seen from the other side."""
    rng, ledger, placed = np.random.default_rng(seed), empty_ledger(problem, Cuts()), []
    theta = np.linspace(1.5, -1.5, N) * (-1 if ledger.flipped else 1)
    for _ in range(votes):
        block = random_block(rng, 1, outcomes=np.ones(1))
        won = (rng.random(1) < expit(theta[block.first] - theta[block.second])).astype(np.float64)
        block = ledger.place_bets(block._replace(outcome=won))
        placed.append((ledger, block))
        ledger = ledger.add(block)
    return ledger, placed


@pytest.mark.parametrize("k", [2, 4], ids=["top", "flipped"])
def test_two_bettors_and_their_average_hold_the_same(k):
    """Where whole sets are rejected, an account is divided between two bettors; one bet by the average of theirs,
    weighted by their wealth, must win exactly what they win together."""
    ledger, placed = replayed(Problem(N, k, 0.1), 5)
    wealth = {}
    for before, block in placed:
        i, j, won, bet = (column.tolist()[0] for column in (*block[:3], block.bets))
        if bet == 0:
            continue
        better, worse = (i, j) if (bet > 0) != ledger.flipped else (j, i)  # as the ledger sees it
        seen = won if (better == i) != ledger.flipped else 1 - won
        ends = np.array([better]), np.array([worse])
        rows = before.look_up(*ends)
        expected = before.expected(*ends, damped=True)
        assert expected[0] > 0
        total = rows[0, SUM] if better < worse else rows[0, WEIGHT] - rows[0, SUM]
        bets = np.array([KELLY * np.tanh(expected[0] / 2), own_bet(rows[0, WEIGHT], total)])
        account = wealth.setdefault((better, worse), np.array([0.55, 0.35]))
        assert math.tanh(abs(bet) / 2) == pytest.approx(account @ bets / account.sum(), rel=1e-9)
        account *= 1 + bets * (2 * seen - 1)
    assert len(wealth) >= 8
    for (better, worse), account in wealth.items():
        here = np.array([better]), np.array([worse])
        assert ledger.wealth(*here)[0] == pytest.approx(math.log(CASH + account.sum()), abs=1e-9)


def test_with_whole_sets_little_is_bet_until_the_order_is_settled():
    ledger, placed = replayed(Problem(N, 2, 0.1), 8, votes=300)
    early = [(before, block) for before, block in placed if not before.settled]
    late = [(before, block) for before, block in placed if before.settled]
    assert early
    assert len(late) > 100
    assert all(before.misordered() > SETTLED for before, _ in early if before.votes == before.believed)
    for group, least in ((early, CLEAR_EARLY), (late, CLEAR)):
        for before, block in group:
            theta, spread = before.belief.theta, before.belief.spread(block.first, block.second)
            z = abs(theta[block.first] - theta[block.second]) / np.sqrt(spread)
            assert (block.bets[0] != 0) <= (z[0] >= least - 1e-9)
    assert sum(block.bets[0] != 0 for _, block in late) > 50
    assert ledger.settled
