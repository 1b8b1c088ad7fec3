"""Each peer asks what its paper or software says, by a plain second calculation; and all peers meet the same coins."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import beta, binomtest, norm

from experiments.peers import PEERS
from experiments.peers.base import covariance_of, told
from experiments.peers.information import (
    PRIOR_QUALITY,
    Crowd,
    after,
    expected_divergence,
    gains_of,
    information,
)
from experiments.peers.top_two import drawn_sets
from experiments.peers.tournaments import scores
from experiments.races import CHECKPOINTS, Race, exact_sets, proof
from shortlist import make_instance
from shortlist.core.draws import Draws
from shortlist.core.pairs import all_pairs, n_pairs, pair_items, pair_number, pair_numbers
from shortlist.simulation.run import advance

SPACED = make_instance("equally-spaced", 2, 6, 0.7)


def race(method, instance=SPACED, growth=0.01, max_votes=2000, delta=1e-9, stopping=None):
    return Race(instance, method, delta, growth, max_votes, stopping)


def played(method, votes, number=0, instance=SPACED, growth=0.01, stopping=None):
    """The state of a run after so many votes, and the pairs that were asked, in turn."""
    _, coins, state = race(method, instance, stopping=stopping).start(3, number)
    asked = []

    def answers(first, second, counts):
        asked.extend(np.repeat(pair_numbers(instance.n, first, second), counts.astype(int)).tolist())
        return coins.votes(first, second, counts)

    while state.tally.votes < votes:
        assert not state.verdict.done
        state = advance(state, answers, growth, votes)
    return state, asked


@pytest.fixture(scope="module")
def evidence():
    """Some votes on six items, no two of which are believed equal."""
    found = played("t3c", 60)[0].evidence
    assert np.diff(np.sort(found.ledger.theta)).min() > 1e-3
    return found


def ask(method, evidence, memory=None, size=1, seed=5):
    return PEERS[method]().ask(memory, evidence, size, np.random.default_rng(seed))


# --- the same worlds and coins


def test_the_mth_vote_on_a_pair_is_the_same_for_every_rule_and_block():
    one, two = race("swiss").start(3, 1)[1], race("bridge").start(3, 1)[1]
    first, second = np.array([0, 2]), np.array([1, 4])
    single = [one.votes(first, second, np.ones(2)) for _ in range(30)]
    wins = sum(block.counts[:2] for block in single)
    two.votes(np.array([1]), np.array([3]), np.array([9.0]))  # another pair in between changes nothing
    assert np.array_equal(two.votes(first, second, np.array([30.0, 30.0])).counts, [*wins, *(30 - wins)])
    other = race("swiss").start(3, 2)[1].votes(first, second, np.array([30.0, 30.0]))
    assert not np.array_equal(other.counts[:2], wins)


def test_coins_fall_with_the_chances_of_the_world():
    world, coins, _ = race("swiss").start(3, 1)
    votes = coins.votes(*all_pairs(6), np.full(15, 4000.0))
    for pair, wins in enumerate(votes.counts[:15]):
        assert binomtest(int(wins), 4000, world.expected[pair_items(6, pair)]).pvalue > 1e-4  # 15 tests: one in 700


def test_every_rule_meets_the_same_world_and_answers_with_the_same_estimate():
    starts = [race(method).start(8, 4) for method in (*PEERS, "bridge", "oracle-tracking")]
    assert all(np.array_equal(world.expected, starts[0][0].expected) for world, _, _ in starts)
    state, _ = played("oracle-tracking", 50)
    assert race("oracle-tracking").answer(state) == tuple(np.sort(np.argsort(-state.evidence.ledger.theta)[:2]))


def test_checkpoints_are_met_exactly_and_a_shorter_race_is_the_beginning_of_a_longer_one():
    long, short = exact_sets(race("t3c"), 1, 0), exact_sets(race("t3c", max_votes=500), 1, 0)
    assert len(long) == len(CHECKPOINTS)
    assert long[:3] == short
    assert exact_sets(race("bridge", make_instance("equally-spaced", 1, 3, 3.0), delta=0.2), 1, 0) == [True] * 5


@pytest.mark.parametrize("method", [*PEERS, "oracle-tracking", "track-and-stop", "sharpen"])
def test_what_a_peer_asks_does_not_depend_on_the_stopping_rule(method):
    asked = [played(method, 60, stopping=stopping)[1] for stopping in ("edges", "cuts")]
    assert asked[0] == asked[1]


def test_a_race_to_a_proof_says_whether_it_was_reached():
    easy = make_instance("equally-spaced", 1, 3, 3.0)
    reached = proof(race("bridge", easy, delta=0.05), 1, 0)
    assert (reached.proved, reached.correct) == (True, True)
    assert reached.votes < 200
    assert proof(race("swiss", max_votes=150), 1, 0)[:2] == (150, False)


# --- tournaments


@pytest.mark.parametrize("growth", [0, 0.5])
def test_a_round_robin_asks_all_pairs_equally_often(growth):
    _, asked = played("round-robin", 47, growth=growth)
    for begin in (0, 15, 30):
        assert len(set(asked[begin : begin + 15])) == 15
    assert asked[:15] != asked[15:30]


@pytest.mark.parametrize("n", [7, 8])
def test_a_swiss_round_pairs_everybody_once_and_nobody_with_the_last_opponent(n):
    games = n // 2
    _, asked = played("swiss", 40 * games, instance=make_instance("equally-spaced", 2, n, 0.7))
    rounds = [{pair_items(n, pair) for pair in asked[at : at + games]} for at in range(0, len(asked), games)]
    for before, now in itertools.pairwise(rounds):
        assert len({item for pair in now for item in pair}) == 2 * games
        assert not before & now
    met = [sum(item in pair for played in rounds for pair in played) for item in range(n)]
    assert max(met) - min(met) <= n % 2  # byes go around


def test_swiss_pairs_items_of_equal_score():
    """Without barred pairs in the way, the sum of differences of score is as small as any matching's."""
    instance = make_instance("equally-spaced", 2, 8, 0.7)
    for number in range(5):
        state, _ = played("swiss", 4, number, instance)  # winners have met no other winner
        points = scores(state.tally)
        assert sorted(points) == [0, 0, 0, 0, 1, 1, 1, 1]
        assert all(points[i] == points[j] for i, j in (pair_items(8, pair) for pair in state.sampling_memory.pairs))


def test_adjacent_asks_the_neighbours_with_the_fewest_votes(evidence):
    order = np.argsort(-evidence.ledger.theta)
    counts = np.zeros(15)
    counts[evidence.tally.pairs] = evidence.tally.counts
    neighbours = [pair_number(6, *ends) for ends in itertools.pairwise(order.tolist())]
    assert counts[ask("adjacent", evidence)[0]] == min(counts[neighbours])
    asked = ask("adjacent", evidence, size=100)
    assert set(asked) <= set(neighbours)
    counts += np.bincount(asked, minlength=15)
    assert np.ptp(counts[np.unique(asked)]) <= 1  # filled up evenly


# --- information


def test_the_expected_information_is_that_of_the_whole_posterior():
    """Kullback-Leibler divergence of the posterior of three utilities from the prior, on a grid of 51^3 points."""
    theta, covariance = np.array([0.8, 0.0, -0.3]), np.array([[0.9, 0.2, 0.1], [0.2, 0.7, 0.3], [0.1, 0.3, 1.4]])
    axis, step = np.linspace(-5, 5, 51), 0.2
    noise = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    prior = norm.pdf(noise).prod(axis=1) * step**3
    points = theta + noise @ np.linalg.cholesky(covariance).T
    expected = []
    for i, j in ((0, 1), (0, 2), (1, 2)):
        wins = expit(points[:, i] - points[:, j])
        gain = 0.0
        for likelihood in (wins, 1 - wins):
            chance = prior @ likelihood
            gain += (prior * likelihood) @ np.log(likelihood / chance)
        expected.append(gain)
    assert gains_of(theta, covariance) == pytest.approx(expected, abs=2e-5)
    assert information(np.array([50.0]), np.array([0.01])) == pytest.approx(0.0, abs=1e-9)


def test_information_gain_asks_the_pair_that_tells_most(evidence):
    belief = evidence.ledger.belief
    covariance = covariance_of(belief)
    gains = gains_of(belief.theta, covariance)
    assert ask("information-gain", evidence)[0] == np.argmax(gains)
    asked = ask("information-gain", evidence, size=3)
    for pair in asked[:2]:  # those already chosen count as told
        covariance = told(covariance, belief.theta, *pair_items(6, pair))
    assert asked[2] == np.argmax(gains_of(belief.theta, covariance))


def test_a_vote_that_is_told_adds_its_information(evidence):
    belief = evidence.ledger.belief
    x = np.eye(6)[1] - np.eye(6)[4]
    spread = x @ belief.covariance @ x
    p = expit((x @ belief.theta) / np.sqrt(1 + np.pi / 8 * spread))
    direct = np.linalg.inv(np.linalg.inv(belief.covariance) + p * (1 - p) * np.outer(x, x))
    assert told(belief.covariance, belief.theta, 1, 4) == pytest.approx(direct, abs=1e-12)


def test_an_asap_round_is_the_best_of_all_spanning_trees():
    state, asked = played("asap", 30, instance=make_instance("equally-spaced", 2, 4, 0.7))
    belief = state.evidence.ledger.belief
    costs = 1 / gains_of(belief.theta, covariance_of(belief))
    trees = []
    for tree in itertools.combinations(range(6), 3):
        reached = {0}
        for _ in range(3):
            reached |= {item for pair in tree for item in pair_items(4, pair) if reached & {*pair_items(4, pair)}}
        trees += [tree] if len(reached) == 4 else []
    assert len(trees) == 16  # Cayley
    round_now = PEERS["asap"]().next_round(state.sampling_memory, state.evidence, np.random.default_rng(1))
    assert set(round_now) == set(min(trees, key=lambda tree: costs[[*tree]].sum()))
    assert len(set(asked[-3:])) == 3


CROWD = Crowd(np.array([0.4, -0.2, 1.1]), np.array([0.5, 0.9, 0.3]), (7.0, 2.0), 0)


def log_chance(means):
    """Of a vote for item 0 over item 1, by a judge who is right with the mean quality."""
    p = expit(means[0] - means[1])
    return np.log((7 * p + 2 * (1 - p)) / 9)


def test_crowd_bt_moves_by_the_slope_and_the_curvature_of_the_likelihood():
    found, step = after(CROWD, np.array([0]), np.array([1])), 1e-4
    for end, item in enumerate((0, 1)):
        up, down = (log_chance(CROWD.means + sign * step * np.eye(3)[item]) for sign in (1, -1))
        slope, curve = (up - down) / (2 * step), (up + down - 2 * log_chance(CROWD.means)) / step**2
        variance = CROWD.variances[item]
        assert found.means[end][0] == pytest.approx(CROWD.means[item] + variance * slope, abs=1e-7)
        assert found.variances[end][0] == pytest.approx(variance * (1 + variance * curve), abs=1e-6)


def test_crowd_bt_matches_the_moments_of_the_judges_quality():
    found = after(CROWD, np.array([0]), np.array([1]))
    p = expit(0.6)
    better = p + 0.5 * 1.4 * p * (1 - p) * (1 - 2 * p)  # the chance that item 0 is better, to second order

    def moment(power):
        return quad(lambda q: q**power * (q * better + (1 - q) * (1 - better)) * beta.pdf(q, 7, 2), 0, 1)[0]

    mean, square = moment(1) / moment(0), moment(2) / moment(0)
    a, b = found.quality[0][0], found.quality[1][0]
    assert found.chance[0] == pytest.approx(moment(0), abs=1e-9)
    assert (a / (a + b), beta.var(a, b)) == pytest.approx((mean, square - mean**2), abs=1e-9)


def test_crowd_bt_expects_the_divergence_that_integrals_give():
    def divergence(now, before):
        low, high = now.ppf([1e-12, 1 - 1e-12])
        return quad(lambda x: now.pdf(x) * (now.logpdf(x) - before.logpdf(x)), low, high, limit=200)[0]

    first = after(CROWD, np.array([0]), np.array([2])).chance[0]
    expected = 0.0
    for winner, loser, chance in ((0, 2, first), (2, 0, 1 - first)):
        now = after(CROWD, np.array([winner]), np.array([loser]))
        expected += chance * 0.1 * divergence(beta(now.quality[0][0], now.quality[1][0]), beta(7, 2))
        for end, item in enumerate((winner, loser)):
            before = norm(CROWD.means[item], CROWD.variances[item] ** 0.5)
            expected += chance * divergence(norm(now.means[end][0], now.variances[end][0] ** 0.5), before)
    assert expected_divergence(CROWD, np.array([0]), np.array([2]))[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("method", ["crowd-bt", "gavel"])
def test_crowd_bt_asks_one_question_in_four_at_random(method):
    state, asked = played(method, 60)
    memory, rule = state.sampling_memory, PEERS[method]()
    ends = all_pairs(6) if method == "crowd-bt" else (np.full(5, memory.last), np.delete(np.arange(6), memory.last))
    best = pair_numbers(6, *ends)[np.argmax(expected_divergence(memory, *ends))]
    hits = sum(rule.ask(memory, state.evidence, 9, np.random.default_rng(i)).tolist() == [best] for i in range(400))
    assert binomtest(hits, 400, 0.75 + 0.25 / len(ends[0])).pvalue > 1e-3
    assert memory.variances.max() < 1 < sum(memory.quality)
    if method == "gavel":  # every pair shares an item with the one before
        for before, now in itertools.pairwise(asked):
            assert {*pair_items(6, before)} & {*pair_items(6, now)}


def test_crowd_bt_forms_its_posterior_vote_by_vote():
    _, coins, state = race("crowd-bt").start(3, 0)
    plain = Crowd(np.zeros(6), np.ones(6), PRIOR_QUALITY, 0)

    def answers(first, second, counts):
        nonlocal plain
        block = coins.votes(first, second, counts)
        ends = (first, second) if block.counts[0] else (second, first)
        now, means, variances = after(plain, *ends), plain.means.copy(), plain.variances.copy()
        for end, item in enumerate(ends):
            means[item], variances[item] = now.means[end], now.variances[end]
        plain = Crowd(means, variances, (now.quality[0][0], now.quality[1][0]), 0)
        return block

    for _ in range(30):
        state = advance(state, answers, 0.5)
    assert state.sampling_memory.means == pytest.approx(plain.means)
    assert state.sampling_memory.variances == pytest.approx(plain.variances)
    assert state.sampling_memory.quality == pytest.approx(plain.quality)


# --- top-two rules


def plain_cost(belief, u, v):
    x = np.eye(6)[u] - np.eye(6)[v]
    return max(x @ belief.theta, 0.0) ** 2 / (2 * x @ belief.covariance @ x)


def test_eb_tci_asks_the_swap_with_the_least_cost_and_log_of_votes(evidence):
    belief = evidence.ledger.belief
    inside = np.argsort(-belief.theta)[:2]
    tally = evidence.tally
    votes = [tally.counts[(tally.first == item) | (tally.second == item)].sum() for item in range(6)]
    costs = {
        pair_number(6, u, v): plain_cost(belief, u, v) + np.log(np.sqrt((1 + votes[u]) * (1 + votes[v])))
        for u in inside for v in set(range(6)) - set(inside)
    }  # fmt: skip
    assert ask("eb-tci", evidence)[0] == min(costs, key=costs.get)
    assert len(set(ask("eb-tci", evidence, size=12))) > 2


def test_t3c_asks_the_cheapest_swap_of_a_drawn_set(evidence):
    ledger = evidence.ledger
    rng = np.random.default_rng(5)
    drawn = drawn_sets(ledger, 50, rng)
    asked = ask("t3c", evidence, size=50)
    for inside, pair in zip(drawn, asked, strict=True):
        costs = {
            (u, v): plain_cost(ledger.belief, u, v)
            for u in np.flatnonzero(inside) for v in np.flatnonzero(~inside)
        }  # fmt: skip
        least = [pair_number(6, *swap) for swap, cost in costs.items() if cost <= min(costs.values()) + 1e-8]
        assert pair in least
    assert len(set(asked)) > 1


def test_sets_are_drawn_from_the_belief(evidence):
    """The share of draws with each item inside, against draws by numpy's own multivariate normal."""
    ledger = evidence.ledger
    found = drawn_sets(ledger, 20_000, np.random.default_rng(1)).mean(axis=0)
    rng = np.random.default_rng(2)
    draws = rng.multivariate_normal(ledger.belief.theta, ledger.belief.covariance, 20_000)
    expected = (np.argsort(np.argsort(-draws, axis=1), axis=1) < 2).mean(axis=0)
    assert found.sum() == pytest.approx(2)
    assert np.abs(found - expected).max() < 0.025  # five standard errors


def test_top_two_asks_a_pair_in_which_two_drawn_sets_differ(evidence):
    """The pairs asked are the least |z| of a leader and the first other set, drawn again here one by one."""
    ledger, theta = evidence.ledger, evidence.ledger.belief.theta
    asked = ask("top-two", evidence, size=40, seed=9)
    rng = np.random.default_rng(9)
    for pair in asked:
        leader, *others = drawn_sets(ledger, 200, rng)
        other = next(drawn for drawn in others if (drawn != leader).any())
        z = {}
        for u in np.flatnonzero(leader & ~other):
            for v in np.flatnonzero(other & ~leader):
                x = np.eye(6)[u] - np.eye(6)[v]
                z[pair_number(6, u, v)] = abs(x @ theta) / np.sqrt(x @ ledger.belief.covariance @ x)
        assert pair == min(z, key=z.get)


def test_top_two_falls_back_on_the_cheapest_swap_when_no_other_set_is_drawn(evidence):
    belief = evidence.ledger.belief
    costs = np.array([[plain_cost(belief, u, v) if u != v else 0.0 for v in range(6)] for u in range(6)])
    inside = np.isin(np.arange(6), np.argsort(-belief.theta)[:2])
    swap = PEERS["top-two"]()._swap(inside, np.array([inside] * 5), costs, costs, np.random.default_rng(1))
    assert costs[swap] == costs[inside][:, ~inside].min()


@pytest.mark.parametrize("method", PEERS)
def test_every_peer_can_ask_before_the_first_vote_and_in_blocks(method):
    rule, problem = PEERS[method](), race(method).start(1, 0)[2].problem
    state = race(method).start(1, 0)[2]
    pairs, counts = rule.questions(rule.start(problem), state.evidence, np.empty(0, int), 4, Draws((1,)))
    assert 1 <= counts.sum() <= 4
    assert set(pairs) <= set(range(n_pairs(6)))
    state, asked = played(method, 120, growth=0.1)
    assert state.tally.votes == len(asked) == 120
