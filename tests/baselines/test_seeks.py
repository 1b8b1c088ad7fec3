"""The parts of SEEKS against their lemmas and closed forms."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binomtest

from shortlist.baselines.seeks import (
    DOWN,
    MID,
    OUT_OF_BUDGET,
    UP,
    Counter,
    distribute,
    distribute_each,
    quick_select,
    seeks,
    share,
    tournament,
)  # fmt: skip
from tests.baselines.plain import di_limit, di_width
from tests.baselines.worlds import certain, spaced

EPS, SHIFT, DELTA, RUNS = 0.2, 0.1, 0.1, 3000
ENDLESS = 2**62


class Sure(Counter):
    """Sees the truth without noise, and remembers what it was asked with."""

    def __init__(self, rng=None):
        super().__init__(np.random.default_rng(1) if rng is None else rng, ENDLESS)
        self.asked = []

    def pile(self, wins, items, v, eps, shift, delta):
        self.asked.append((len(items), eps, shift, delta))
        better = [i for i in items if wins[i, v] > 0.5]
        return better, [v], [i for i in items if i != v and i not in better]


@pytest.mark.parametrize(
    ("p", "right"),
    [
        (0.5 + EPS + SHIFT, {UP}),
        (0.5 + EPS / 2 + SHIFT, {UP, MID}),
        (0.5 + SHIFT, {MID}),
        (0.5, {MID}),
        (0.5 - SHIFT, {MID}),
        (0.5 - EPS / 2 - SHIFT, {MID, DOWN}),
        (0.5 - EPS - SHIFT, {DOWN}),
    ],
)
def test_answers_are_as_often_right_as_the_lemma_says(p, right):
    answers, _ = distribute_each(np.random.default_rng(8), np.full(RUNS, p), EPS, SHIFT, DELTA, ENDLESS)
    allowed = 1.5 * DELTA if right == {MID} else DELTA
    wrong = int(np.sum(~np.isin(answers, list(right))))
    assert binomtest(wrong, RUNS, allowed, alternative="greater").pvalue > 1e-3
    if right == {UP, MID}:
        assert {UP, MID} <= set(answers.tolist())  # neither is an idle branch


def test_an_item_between_the_lines_costs_the_most():
    assert di_limit(0.1, 0.01) == 1199  # 200 log 400 = 1198.3
    answer, made = distribute(np.random.default_rng(1), 0.5, 0.1, 0.2, 0.2, 0.01, ENDLESS)
    assert (answer, made) == (MID, 1199)


@pytest.mark.parametrize(("p", "answer"), [(1.0, UP), (0.0, DOWN)])
def test_a_sure_thing_ends_where_the_width_allows(p, answer):
    first = next(t for t in range(1, 1000) if 0.5 - di_width(t, 0.01) > SHIFT)
    assert distribute(np.random.default_rng(1), p, 0.05, SHIFT, SHIFT, 0.01, ENDLESS) == (answer, first)


def test_the_two_lines_may_differ():
    at = 0.5 - di_width(40, 0.01)  # out of reach in 40 votes, but not in 41
    assert distribute(np.random.default_rng(1), 1.0, 0.05, at, 0.0, 0.01, ENDLESS) == (UP, 41)
    assert distribute(np.random.default_rng(1), 0.0, 0.05, 0.0, at, 0.01, ENDLESS) == (DOWN, 41)


def test_the_budget_ends_a_comparison():
    assert distribute(np.random.default_rng(1), 0.5, 0.1, 0.2, 0.2, 0.01, 50) == (OUT_OF_BUDGET, 50)
    assert distribute(np.random.default_rng(1), 0.5, 0.1, 0.2, 0.2, 0.01, 1199) == (MID, 1199)
    answers, made = distribute_each(np.random.default_rng(1), np.full(3, 0.5), 0.1, 0.2, 0.01, 1200)
    assert answers.tolist() == [MID, OUT_OF_BUDGET, OUT_OF_BUDGET]
    assert made == 1200


@pytest.mark.parametrize("select", [quick_select, tournament])
def test_sets_no_larger_than_k_are_kept_without_asking(select):
    for items in ([4], [2, 0, 3]):
        counter = Counter(np.random.default_rng(1), ENDLESS)
        assert select(counter, spaced(5, 1.0), items, 3, 0.1, 0.1) == items
        assert counter.comparisons == 0


@pytest.mark.parametrize("select", [quick_select, tournament])
@pytest.mark.parametrize("k", range(1, 12))
def test_without_noise_selections_are_exact(select, k):
    for seed in range(5):
        rng = np.random.default_rng([k, seed])
        items = rng.permutation(12).tolist()
        assert set(select(Sure(rng), certain(12), items, k, 0.1, 0.1)) == set(range(k))
        assert set(select(Sure(rng), certain(12).T, items, k, 0.1, 0.1)) == set(range(12 - k, 12))


def test_quick_select_spends_no_more_than_its_delta():
    for seed in range(20):
        counter = Sure(np.random.default_rng(seed))
        quick_select(counter, certain(30), list(range(30)), 7, 0.3, 0.1)
        assert sum((n - 1) * delta for n, _, _, delta in counter.asked) <= 0.1 + 1e-15
        assert {(eps, shift) for _, eps, shift, _ in counter.asked} == {(0.15, 0.0)}
        left = 0.1
        for n, _, _, delta in counter.asked:
            assert delta == pytest.approx(left / (n * (n - 1)))
            left *= (n - 1) / n


def test_a_tournament_shares_out_eps_and_delta():
    counter = Sure()
    tournament(counter, certain(64), list(range(64)), 1, 0.3, 0.1)  # groups of two: one question each
    assert [n for n, *_ in counter.asked] == [2] * 63
    rounds = [step for step, groups in enumerate((32, 16, 8, 4, 2, 1), 1) for _ in range(groups)]
    for t, (_, eps, _, delta) in zip(rounds, counter.asked, strict=True):
        assert eps == pytest.approx(0.3 / 4 * 0.8**t / 2)
        assert delta == pytest.approx(6 * 0.1 / (math.pi * t) ** 2 / 2)
    assert sum(0.3 / 4 * 0.8**t for t in range(1, 200)) == pytest.approx(0.3)
    assert sum(share(0.1, t) for t in range(1, 100_000)) == pytest.approx(0.1, rel=1e-4)


def test_rounds_halve_their_precision(monkeypatch):
    """Nothing is clear before the third round: then the top half goes up and the rest down."""

    class Slow(Sure):
        rounds = ()

        def pile(self, wins, items, v, eps, shift, delta):
            up, mid, down = super().pile(wins, items, v, eps, shift, delta)
            if shift == 0.0:
                return up, mid, down
            Slow.rounds += ((len(items), eps, delta),)
            return (up, mid, down) if len(Slow.rounds) >= 3 else ([], [*up, *mid, *down], [])

    monkeypatch.setattr("shortlist.baselines.seeks.Counter", lambda rng, budget: Slow(rng))
    found = seeks(certain(6), 3, 0.1, np.random.default_rng(1))
    assert found.top == (0, 1, 2)
    assert [n for n, *_ in Slow.rounds] == [6, 6, 6]
    for (_, wide, _), (_, narrow, _) in pairwise(Slow.rounds):
        assert narrow == wide / 2
    for t, (n, eps, delta) in enumerate(Slow.rounds, 1):
        assert eps == pytest.approx(2.0**-t / 3)
        assert delta == pytest.approx(share(0.1, t) / 3 / (n - 1))


@pytest.mark.parametrize("all_go", [UP, DOWN])
def test_k_items_come_back_even_when_every_answer_is_wrong(monkeypatch, all_go):
    class Liar(Sure):
        def pile(self, wins, items, v, eps, shift, delta):
            others = [i for i in items if i != v]
            return (others, [v], []) if all_go == UP else ([], [v], others)

    monkeypatch.setattr("shortlist.baselines.seeks.Counter", lambda rng, budget: Liar(rng))
    assert len(set(seeks(certain(6), 3, 0.1, np.random.default_rng(1)).top)) == 3
