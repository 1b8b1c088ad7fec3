"""Known answers over a list of cases: every study ends, what it proves is true of the table, and what would be false
without the rule."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binomtest

import shortlist
from shortlist.study import claims
from shortlist.study.claims import AnswerTable, PairCells
from shortlist.study.events import Materials

DELTA = 0.05


def means(table):
    """The mean of each item against each other over all cells. `table[x, y, c]` is x's share if it is shown first."""
    first = table.mean(axis=2)
    return (first + (1 - first).T) / 2


def true_tops(table, k):
    """The sets of k items, each ahead of all others; exact ties count for the item that is listed first."""
    mean, n = means(table), len(table)
    ahead = (mean > 0.5) | ((mean == 0.5) & (np.arange(n)[:, None] < np.arange(n)))
    sets = (set(items) for items in combinations(range(n), k))
    return [items for items in sets if all(ahead[i, j] for i in items for j in set(range(n)) - items)]


def play(table, k, seed, position="random", workers=1, stopping="edges", **options):
    items = [f"i{place}" for place in range(len(table))]

    def judge(first, second, case):
        return float(table[items.index(first), items.index(second), int(case.text)])

    study = shortlist.create_study(items, k, DELTA, seed=seed, stopping=stopping, **options)
    cases = [str(place) for place in range(table.shape[2])]
    found = shortlist.run_study(study, judge, cases=cases, position=position, workers=workers, warn=lambda text: None)
    return study, found


def tied_table(rng, n, cases):
    """Ratings in steps, and in the middle two items that are exactly equal."""
    theta = np.linspace(1.0, -1.0, n)
    chance = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
    table = (rng.random((n, n, cases)) < chance[:, :, None]).astype(float)
    low, high = n // 2 - 1, n // 2
    table[low, high] = table[high, low] = rng.permutation(np.arange(cases) % 2)
    return table


@pytest.mark.slow
@pytest.mark.parametrize("stopping", ["edges", "cuts"])
@pytest.mark.parametrize("position", ["random", "both"])
def test_an_exact_tie_at_the_cutoff_ends_with_the_item_listed_first(stopping, position):
    rng = np.random.default_rng(11)
    for seed in range(4):
        table = tied_table(rng, 4, 10)
        while len(true_tops(table, 2)) != 1:
            table = tied_table(rng, 4, 10)
        study, found = play(table, 2, seed, position, workers=1 + 3 * (seed % 2), stopping=stopping)
        assert found.verdict.reason == "certified"
        assert {study.items.index(item) for item in found.verdict.top} in true_tops(table, 2)
        assert found.costs.calls <= 4 * 3 * 10
        assert "exact ties counted for the item that is listed first" in found.verdict.guarantee


def random_studies(runs, stopping, items=(2, 5), cases=(1, 7)):
    """Studies on small tables of coin flips, most of them near a tie: how many were wrong, of those with a top k."""
    rng, wrong, total = np.random.default_rng(12), 0, 0
    for seed in range(runs):
        n, size = int(rng.integers(*items)), int(rng.integers(*cases))
        k, table = int(rng.integers(1, n)), rng.integers(0, 3, (n, n, size)) / 2
        position = ("random", "both")[seed % 2]
        study, found = play(table, k, seed, position, workers=1 + seed % 4, stopping=stopping)
        tops = true_tops(table, k)
        assert found.verdict.reason in ("certified", "no top")
        assert found.costs.calls <= n * (n - 1) * size
        if found.verdict.reason == "no top":
            assert not tops
        elif tops:
            total += 1
            wrong += {study.items.index(item) for item in found.verdict.top} not in tops
    return wrong, total


@pytest.mark.slow
@pytest.mark.parametrize("stopping", ["edges", "cuts"])
def test_every_study_over_a_case_list_ends_and_errors_stay_below_delta(stopping):
    """An error rate of 0.15 instead of at most 0.05 is found with probability 0.8."""
    wrong, total = random_studies(60, stopping)
    assert total >= 35
    assert binomtest(wrong, total, DELTA, alternative="greater").pvalue > 1e-3


@pytest.mark.slow
def test_without_the_rule_a_majority_of_the_known_answers_would_prove_noise(monkeypatch):
    """The safeguard off: unknown cells count like the known ones, from the third on."""

    def decide(self, size):
        parts = self._parts()
        known = len(claims._units(self.answers))
        margin = sum(parts) - known / 2
        return self._replace(ahead=int(np.sign(margin)) if known >= min(3, 2 * size) else 0)

    monkeypatch.setattr(PairCells, "decide", decide)
    wrong, total = 0, 0
    rng = np.random.default_rng(13)
    for seed in range(40):
        table = rng.integers(0, 2, (2, 2, 25)).astype(float)
        study, found = play(table, 1, seed)
        total += 1
        wrong += {study.items.index(item) for item in found.verdict.top} not in true_tops(table, 1)
    assert wrong / total > 0.1


def moody(seed, chance, votes=200):
    """A study whose judge answers anew each time, and whose caller says that the answers never change."""
    study = shortlist.create_study(["a", "b"], 1, DELTA, seed=seed, max_votes=votes)
    cases, rng = [f"c{place}" for place in range(12)], np.random.default_rng(seed)
    study.record([Materials(None, dict.fromkeys(cases, "text"))])
    while not study.verdict.done:
        question = study.ask(judge="moody", cases=cases, cells=1)
        study.tell(question, winner="a" if rng.random() < chance else "b")
    return study.verdict


@pytest.mark.slow
def test_a_judge_who_changes_its_mind_has_no_table(monkeypatch):
    """b is better with chance 0.6. The first answers to all cells would say otherwise in one study of five; a judge who
    is seen to answer the same question in two ways decides nothing without bets."""
    wrong = sum(
        verdict.top == ("a",) and verdict.reason == "certified" for verdict in (moody(s, 0.4) for s in range(30))
    )
    assert binomtest(wrong, 30, DELTA, alternative="greater").pvalue > 1e-3
    kept = AnswerTable.answered

    def answered(self, *question):  # the safeguard off: other answers to the same cell are not noticed
        return kept(self, *question)._replace(changed=frozenset())

    monkeypatch.setattr(AnswerTable, "answered", answered)
    fooled = sum(
        verdict.top == ("a",) and verdict.reason == "certified" for verdict in (moody(s, 0.4) for s in range(30))
    )
    assert fooled / 30 > 0.1
