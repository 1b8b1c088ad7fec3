"""Least cuts, decisions and certain items against brute force over all sets; marks, undo, refusals."""

import math
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist import certify, create_study
from shortlist.core import loop, revisions
from shortlist.core.betting import AHEAD, BEHIND, CASH, PROVED_AHEAD, Ledger, empty_ledger
from shortlist.core.families import Gaussian
from shortlist.core.pairs import all_pairs, n_pairs, node_sums, top_k
from shortlist.core.problem import Problem
from shortlist.core.sampling.bridge import Bridge
from shortlist.core.stopping.cuts import Cuts, Network, _Sets, check_problem, evidence_against
from shortlist.core.stopping.edges import may_be_enough, nothing_proved
from shortlist.core.tally import Block, Vote
from shortlist.errors import BadProblem

ROUNDING = 1e-4  # capacities are whole numbers of a millionth of a nat
DELTA = 0.1


def random_ledger(seed, n, k, lean=1.0, losers=True):
    """Accounts on most pairs. `lean` favours items that are believed better; without `losers`, no pair has two accounts
    that lose together."""
    rng = np.random.default_rng(seed)
    ledger = empty_ledger(Problem(n, k, DELTA), Cuts())
    pairs = np.flatnonzero(rng.random(n_pairs(n)) < 0.9)
    first, second = (ends[pairs] for ends in all_pairs(n))
    theta = rng.normal(0, 1, n)
    table = np.zeros((len(pairs), ledger.table.shape[1]))
    sign = np.sign(theta[first] - theta[second])
    table[:, AHEAD] = rng.normal(lean * np.maximum(sign, 0), 1.0)
    table[:, BEHIND] = rng.normal(lean * np.maximum(-sign, 0), 1.0)
    if not losers:
        table[:, BEHIND] = np.maximum(table[:, BEHIND], 0.2 - np.minimum(table[:, AHEAD], 0.0))
    ledger = replace(ledger, pairs=pairs, table=table, belief=ledger.belief._replace(theta=theta), votes=100.0)
    accounts = ledger.accounts()
    return replace(ledger, inflow=node_sums(accounts.target, accounts.wealth, n))


def wealth_of(ledger: Ledger):
    """Log wealth as a matrix [source, target]."""
    accounts, n = ledger.accounts(), ledger.problem.n
    matrix = np.zeros((n, n))
    matrix[accounts.source, accounts.target] = accounts.wealth
    return matrix


def against(matrix, inside):
    """E(S), by its definition."""
    return sum(matrix[x, y] for x, y in product(range(len(matrix)), repeat=2) if not inside[x] and inside[y])


def flags(n, items):
    return np.isin(np.arange(n), list(items))


def sets_of_any_size(n):
    return [np.array(inside) for inside in product([False, True], repeat=n)]


def k_sets(n, k):
    return [frozenset(items) for items in combinations(range(n), k)]


def rivals(ledger):
    """Every k-set but the believed one, with its E(S)."""
    n, top, matrix = ledger.problem.n, frozenset(top_k(ledger.belief.theta, ledger.k).tolist()), wealth_of(ledger)
    return {items: against(matrix, flags(n, items)) for items in k_sets(n, ledger.k) if items != top}


@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.booleans())
@settings(max_examples=60, deadline=None)
def test_no_bound_is_above_the_evidence_and_without_pairs_that_lose_twice_it_is_exact(seed, n, losers):
    ledger = random_ledger(seed, n, max(1, n // 2), losers=losers)
    network, matrix = Network(ledger), wealth_of(ledger)
    for inside in sets_of_any_size(n):
        evidence = against(matrix, inside)
        assert evidence_against(ledger, inside) == pytest.approx(evidence, abs=1e-9)
        assert network.bound(inside) <= evidence + 1e-9
        assert losers or network.bound(inside) == pytest.approx(evidence, abs=1e-9)
    assert network.bound(network.inside) == pytest.approx(against(matrix, network.inside), abs=1e-9)  # by choice of q


@given(st.integers(0, 2**32 - 1), st.integers(3, 6), st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_least_cut_is_the_least_of_all_sets(seed, n, losers):
    rng, ledger = np.random.default_rng(seed), random_ledger(seed, n, 2, losers=losers)
    network, matrix = Network(ledger), wealth_of(ledger)
    items = rng.permutation(n)
    out, into = flags(n, items[: rng.integers(1, n)]), int(items[-1])
    cut = network.least(out, into)
    assert cut.inside[into]
    assert not (cut.inside & out).any()
    assert cut.value == pytest.approx(network.bound(cut.inside), abs=ROUNDING)
    meant = [inside for inside in sets_of_any_size(n) if inside[into] and not (inside & out).any()]
    assert cut.value <= min(network.bound(inside) for inside in meant) + 1e-9
    assert cut.value <= min(against(matrix, inside) for inside in meant) + 1e-9
    if not losers:
        assert cut.value == pytest.approx(min(against(matrix, inside) for inside in meant), abs=ROUNDING)


LEANS = [1.0, 4.0, 7.0]


@given(st.integers(0, 2**32 - 1), st.integers(2, 7), st.data(), st.sampled_from(LEANS), st.booleans())
@settings(max_examples=150, deadline=None)
def test_what_is_claimed_is_true_of_all_sets(seed, n, data, lean, losers):
    ledger = random_ledger(seed, n, data.draw(st.integers(1, n - 1)), lean, losers)
    level, evidence, sets = ledger.enough, rivals(ledger), _Sets(ledger)
    verdict = sets.verdict(100, nothing_proved(ledger.problem))
    rejected = {items for items, value in evidence.items() if value >= level}
    top = frozenset(top_k(ledger.belief.theta, ledger.k).tolist())
    is_rejected = against(wealth_of(ledger), flags(n, top)) >= level
    assert sets.is_rejected == is_rejected
    if verdict.done:
        assert rejected == set(evidence)
        assert not is_rejected
    if verdict.error_bound < 1:
        assert verdict.error_bound >= min(DELTA, math.exp(-min(evidence.values())) * (1 - 1e-9))
    standing = [items for items in k_sets(n, ledger.k) if items not in rejected and not (items == top and is_rejected)]
    sure_in, sure_out = set(verdict.certainly_in), set(verdict.certainly_out)
    for items in standing:
        members = set(range(n)) - items if ledger.flipped else items
        assert sure_in <= members
        assert not sure_out & members


@given(st.integers(0, 2**32 - 1), st.integers(3, 6), st.sampled_from(LEANS))
@settings(max_examples=60, deadline=None)
def test_every_proof_that_sets_of_any_size_allow_is_found(seed, n, lean):
    ledger = random_ledger(seed, n, 2, lean, losers=False)
    matrix, top = wealth_of(ledger), flags(n, top_k(ledger.belief.theta, ledger.k))
    others = [inside for inside in sets_of_any_size(n) if (inside & ~top).any() and (top & ~inside).any()]
    least = min(against(matrix, inside) for inside in others)
    standing = _Sets(ledger).standing
    if least >= ledger.enough + ROUNDING:
        assert standing is None
        assert may_be_enough(ledger.problem, ledger)
    elif least < ledger.enough - ROUNDING:
        assert standing is not None
        assert against(matrix, standing) < ledger.enough


def test_some_random_ledgers_prove_and_some_do_not():
    found = [_Sets(random_ledger(seed, 5, 2, 4.0, False)).standing is None for seed in range(40)]
    assert 5 < sum(found) < 35


def played(seed, n, k, votes, family=None, theta=None):
    """A state after votes one by one, and the votes with their bets."""
    problem = Problem(n, k, DELTA) if family is None else Problem(n, k, DELTA, family)
    rng, state, told = np.random.default_rng(seed), loop.start(problem, Bridge(), Cuts(), seed), []
    theta = np.linspace(1.0, -1.0, n) if theta is None else theta
    while len(told) < votes and not state.verdict.done:
        i, j = (int(end[loop.ask(state)]) for end in all_pairs(n))
        eta = theta[i] - theta[j]
        outcome = float(rng.normal(eta, family.sigma)) if family else float(rng.random() < 1 / (1 + math.exp(-eta)))
        told.append(Vote(i, j, outcome, loop.bet(state, i, j)))
        state = loop.tell(state, told[-1])
    return state, told


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_accounts_across_a_set_are_the_same_whichever_side_the_ledger_takes(k):
    """Wealth by hand, in the world's own direction, also for k > n/2."""
    state, told = played(3, 5, k, 150)
    bet_part = np.ones((5, 5))
    for vote in told:
        source, target = (vote.first, vote.second) if vote.bet > 0 else (vote.second, vote.first)
        won = vote.outcome if vote.bet > 0 else 1 - vote.outcome
        bet_part[source, target] *= 1 + math.tanh(abs(vote.bet) / 2) * (2 * won - 1)
    matrix = np.log(CASH + (1 - CASH) * bet_part)
    ledger = state.evidence.kept_ledger
    assert ledger.flipped == (k > 2)
    for items in k_sets(5, k):
        inside = flags(5, items)
        here = ~inside if ledger.flipped else inside
        plain = replace(ledger, table=np.where(np.arange(8) >= PROVED_AHEAD, 0.0, ledger.table))
        assert evidence_against(plain, here) == pytest.approx(against(matrix, inside), abs=1e-9)


@pytest.mark.parametrize(("seed", "k"), [(1, 2), (2, 2), (3, 3), (4, 1)])
def test_a_check_decides_as_if_it_had_no_memory(seed, k):
    """At every vote, with a set kept from the last check and without."""
    rng, state = np.random.default_rng(seed), loop.start(Problem(4, k, DELTA), Bridge(), Cuts(), seed)
    theta = np.linspace(1.0, -1.0, 4)
    while not state.verdict.done:
        ledger = state.evidence.kept_ledger
        assert not (may_be_enough(ledger.problem, ledger) and _Sets(ledger).standing is None)
        i, j = (int(end[loop.ask(state)]) for end in all_pairs(4))
        outcome = float(rng.random() < 1 / (1 + math.exp(theta[j] - theta[i])))
        state = loop.tell(state, Vote(i, j, outcome, loop.bet(state, i, j)))
    assert state.verdict.top == tuple(range(k))
    assert _Sets(state.evidence.kept_ledger).standing is None


def test_a_mark_means_that_all_sets_it_crosses_are_rejected_and_stays():
    rng, state, known = np.random.default_rng(5), loop.start(Problem(5, 2, DELTA), Bridge(), Cuts(), 5), set()
    theta = np.linspace(1.5, -1.5, 5)
    while not state.verdict.done:
        i, j = (int(end[loop.ask(state)]) for end in all_pairs(5))
        outcome = float(rng.random() < 1 / (1 + math.exp(theta[j] - theta[i])))
        state = loop.tell(state, Vote(i, j, outcome, loop.bet(state, i, j)))
        ledger = state.evidence.kept_ledger
        marks = set(zip(ledger.proved.source.tolist(), ledger.proved.target.tolist(), strict=True))
        assert known <= marks
        matrix = wealth_of(ledger)
        for source, target in known:
            matrix[source, target] = np.inf  # rejected then, and now for good
        for source, target in marks - known:
            crossed = [inside for inside in sets_of_any_size(6) if inside[target] and not inside[source]]
            assert min(against(matrix, inside) for inside in crossed) >= ledger.enough
        known = marks
    assert known


def test_marks_after_a_change_of_delta_are_made_at_the_new_level():
    found = 0
    for seed in range(6):
        state, _ = played(seed, 6, 2, 250)
        if state.verdict.done:
            continue
        ledger = revisions.change(state, replace(state.problem, delta=DELTA / 1.1)).evidence.kept_ledger
        assert ledger.enough == pytest.approx(math.log(1.1 / DELTA))
        matrix = wealth_of(ledger)
        for source, target in zip(ledger.proved.source.tolist(), ledger.proved.target.tolist(), strict=True):
            crossed = [inside for inside in sets_of_any_size(6) if inside[target] and not inside[source]]
            assert min(against(matrix, inside) for inside in crossed) >= ledger.enough
            found += 1
    assert found


def test_all_marks_go_with_any_withdrawn_vote():
    for seed in range(20):
        state, told = played(seed, 4, 1, 200)
        ledger = state.evidence.kept_ledger
        if len(ledger.proved.source):
            break
    first, second = (np.array([getattr(told[0], side)]) for side in ("first", "second"))
    block = Block(first, second, np.array([told[0].outcome]), np.ones(1), np.array([told[0].bet]))
    assert len(ledger.proved.source)
    assert not len(ledger.withdraw(block).proved.source)


def test_pending_questions_count_as_lost_by_both():
    state, _ = played(2, 4, 2, 30)
    ledger = state.evidence.kept_ledger
    first, second = np.array([0, 1]), np.array([2, 3])
    asked = ledger.place_bets(Block(first, second, np.zeros(2), np.ones(2)))
    lost = ledger.doubting(asked)
    for items in k_sets(4, 2):
        inside = flags(4, items)
        answered = [
            evidence_against(ledger.add(asked._replace(outcome=np.array(outcome))), inside)
            for outcome in product([0.0, 1.0], repeat=2)
        ]
        assert evidence_against(lost, inside) <= min(answered) + 1e-9


def test_measured_differences_are_proved_too():
    state, _ = played(1, 4, 2, 400, Gaussian(1.0))
    assert state.verdict.reason == "certified"
    assert state.verdict.top == (0, 1)
    assert "cut theorem" in state.verdict.guarantee


def test_votes_against_every_set_prove_nothing_and_are_said_to():
    ledger = random_ledger(0, 3, 1)
    table = ledger.table.copy()
    table[:, AHEAD] = table[:, BEHIND] = 5.0
    verdict = _Sets(replace(ledger, table=table, inflow=np.full(3, 20.0))).verdict(9, nothing_proved(ledger.problem))
    assert not verdict.done
    assert verdict.error_bound == 1
    assert "every set of 1 items" in verdict.caveats[0]


def test_a_file_of_votes():
    rng, theta = np.random.default_rng(1), np.array([1.5, 1.2, -0.5, -1.0])
    first = rng.integers(0, 4, 1500)
    second = (first + rng.integers(1, 4, 1500)) % 4
    outcome = rng.random(1500) < 1 / (1 + np.exp(theta[second] - theta[first]))
    verdict = certify(first, second, outcome, 2, stopping="cuts")
    assert (verdict.reason, verdict.top) == ("certified", (0, 1))
    assert "cut theorem" in verdict.guarantee
    few = certify(first[:30], second[:30], outcome[:30], 2, stopping="cuts")
    assert not few.done
    assert few.votes_left is not None
    assert certify(first, second, outcome, 2, stopping="cuts", unit=list(range(1500))) == verdict


def test_what_the_theorem_does_not_cover_is_refused(tmp_path):
    storage = {"storage": f"sqlite:///{tmp_path}/studies.db", "name": "refused"}
    with pytest.raises(BadProblem, match="tolerance"):
        create_study(["a", "b", "c"], 1, stopping="cuts", tolerance=0.1, **storage)
    create_study(["a", "b", "c"], 1, stopping="cuts", **storage)  # nothing was stored before
    with pytest.raises(BadProblem, match="tolerance"):
        certify([0, 1], [1, 2], [1, 1], 1, stopping="cuts", tolerance=0.1)
    with pytest.raises(BadProblem, match="min_judges"):
        check_problem(Problem(3, 1, DELTA, min_judges=2))
    with pytest.raises(BadProblem, match="min_judges"):
        create_study(["a", "b", "c"], 1, stopping="cuts", min_judges=2)
    with pytest.raises(BadProblem, match="public"):
        create_study(["a", "b", "c"], 1, stopping="cuts", judges_claim="public")
    study = create_study(["a", "b", "c"], 1, stopping="cuts")
    with pytest.raises(BadProblem, match="Create a new study with min_judges=2"):
        study.change(min_judges=2)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 4]))
@settings(max_examples=40, deadline=None)
def test_withdrawn_items_give_no_set_more_evidence_than_the_true_sets_with_them_inside(seed, k):
    """The true set of a larger size is the answer among what is left, and some withdrawn items: if the answer is
    rejected, so is that set. On either side of the cutoff."""
    n, gone = 6, (1, 4) if k < 4 else (1,)
    raw = random_ledger(seed, n, k)
    ledger, matrix = replace(raw, problem=replace(raw.problem, withdrawn=gone)), wealth_of(raw)
    network = Network(ledger)
    for items in combinations([item for item in range(n) if item not in gone], k):
        inside = flags(n, items) != ledger.flipped
        evidence = evidence_against(ledger, inside)
        assert network.bound(inside) <= evidence + 1e-9
        for more in ((), *combinations(gone, 1), gone):
            assert evidence <= against(matrix, flags(n, items + more) != ledger.flipped) + 1e-9
    assert ledger.enough == pytest.approx(math.log((1 if ledger.flipped else k) / DELTA))


@pytest.mark.parametrize(("sizes", "weights"), [([2, 2], [0.5] * 4), ([2, 1], [1.0, 0.0, 1.0])])
def test_all_votes_of_a_unit_weigh_as_one_together(sizes, weights):
    """Other pairs of a unit too: one product may have them all. If units differ, their first rows count."""
    study = create_study(["a", "b", "c", "d"], 2, stopping="cuts")
    pairs = [("a", "c"), ("b", "d")]
    rows = [(*pairs[row], 1.0, f"case {unit}") for unit, size in enumerate(sizes) for row in range(size)]
    first, second, outcome, unit = zip(*rows, strict=True)
    study.import_votes(first, second, outcome, unit=unit)
    assert [row.weight for row in study.rows] == weights
    _, caveats = certify([0, 1], [2, 3], [1, 1], 2, stopping="cuts", unit=["x", "x"]), study.verdict.caveats
    assert not caveats


def test_votes_of_a_file_that_count_for_nothing_are_said_to():
    found = certify([0, 1, 0], [2, 3, 2], [1, 1, 1], 2, stopping="cuts", unit=["x", "x", "y"])
    assert "1 of 3 votes count for nothing" in found.caveats[0]


def test_imports_are_proved_at_half_of_the_stake():
    rng, theta = np.random.default_rng(2), np.array([1.5, 1.2, -0.5, -1.0])
    study = create_study(["a", "b", "c", "d"], 2, DELTA, stopping="cuts")
    for part in range(20):
        first = rng.integers(0, 4, 50)
        second = (first + rng.integers(1, 4, 50)) % 4
        outcome = (rng.random(50) < 1 / (1 + np.exp(theta[second] - theta[first]))).astype(float)
        names = [["abcd"[item] for item in end] for end in (first, second)]
        study.import_votes(*names, outcome.tolist(), id=[f"{part} {row}" for row in range(50)])
        ledger = study._state.settled.evidence.kept_ledger
        assert ledger.level(DELTA) == pytest.approx(math.log(2 / DELTA))
        if study.verdict.done:
            break
    assert (study.verdict.reason, set(study.verdict.top)) == ("certified", {"a", "b"})
    marked = set(zip(ledger.proved.source.tolist(), ledger.proved.target.tolist(), strict=True))
    matrix = wealth_of(ledger)
    for source, target in marked:
        matrix[source, target] = np.inf
    for items in k_sets(4, 2):
        assert items == {0, 1} or against(matrix, flags(4, items)) >= ledger.enough


def test_no_mark_stays_when_a_fact_that_it_may_rest_on_is_gone():
    state, _ = played(2, 4, 1, 40)
    ledger = state.evidence.kept_ledger.with_facts(np.array([0]), np.array([1]))
    marked = ledger.with_only_marks(np.array([1]), np.array([2]))
    assert marked.with_facts(np.array([0, 1]), np.array([1, 3])).is_proved(np.array([1]), np.array([2])).all()
    assert not marked.with_facts(np.array([1]), np.array([3])).is_proved(np.array([1]), np.array([2])).any()
