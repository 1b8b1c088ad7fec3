"""Units and imports, exactly: which bets and weights the rows of a unit get, and what an import says. The attacks
are in attacks_files.py and attacks_imports.py.
"""

import numpy as np
import pytest

from shortlist import certify, create_study, read_votes
from tests.guarantee.attacks_files import arena_hard, claims, copied
from tests.guarantee.attacks_imports import by_winner, imported, noise

DELTA = 0.05
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("stopping", "least"), [("edges", 20), ("cuts", 5)])
@pytest.mark.parametrize("rows", [2, 5])
def test_no_bet_of_a_unit_depends_on_its_outcomes(rows, stopping, least):
    """An import bets the same on a unit, and on all units before, whatever the rows of the unit say."""
    first, second, outcome, unit = copied(np.random.default_rng(3), 40, rows, 3)
    labels = [str(label) for label in unit]
    sides = [[str(item) for item in side] for side in (first, second)]
    bets = []
    for last in (outcome[-rows:], 1 - outcome[-rows:]):
        study = create_study(["0", "1", "2"], 1, DELTA, stopping=stopping)
        study.import_votes(*sides, [*outcome[:-rows], *last], unit=labels)
        bets.append([row.bet for row in study.rows])
    assert bets[0] == bets[1]
    assert len(set(bets[0])) > least  # bets of cuts wait until the order is clear


def test_a_sorted_import_says_so():
    verdict = imported([by_winner(*noise(np.random.default_rng(1), 80))], 2).examine()
    assert any("look sorted by winner" in caveat for caveat in verdict.caveats)


def test_a_unit_that_was_imported_before_counts_no_more():
    study = create_study(["a", "b"], 1, DELTA)
    study.import_votes(["a"] * 3, ["b"] * 3, [1.0] * 3, unit=["x", "y", None])
    verdict = study.import_votes(["a"] * 3, ["b"] * 3, [0.0] * 3, unit=["x", "z", None], id=[None, None, "another"])
    assert [row.weight for row in study.rows] == [1, 1, 1, 0, 1, 1]
    assert [row.unit for row in study.rows] == ["x", "y", None, "x", "z", None]
    assert any("share a unit" in caveat for caveat in verdict.caveats)


def test_both_games_are_one_unit_without_a_column_of_cases(tmp_path):
    path = tmp_path / "judgments.jsonl"
    arena_hard(path, np.random.default_rng(1), cases=20, models=1)
    assert read_votes(path, unit="row").unit == tuple(str(line) for line in range(1, 21) for _ in range(2))


def test_an_honest_arena_hard_file_needs_no_more_cases_than_single_games(tmp_path):
    """A model that wins 60 % of cases: how many cases prove it, with two games each, and with one vote each."""
    needed = np.zeros((20, 2))
    for seed in range(20):
        rng = np.random.default_rng((11, seed))
        won = (rng.random(2000) < 0.6).astype(float)
        for both in (0, 1):
            rows = np.repeat(won, 2) if both else won
            unit = np.repeat(np.arange(2000), 2) if both else np.arange(2000)
            zeros, step = np.zeros(len(rows), int), 1 + both

            def proved(cases, rows=rows, unit=unit, zeros=zeros, step=step):
                end = cases * step
                return certify(zeros[:end], zeros[:end] + 1, rows[:end], 1, DELTA, unit=unit[:end].tolist()).done

            needed[seed, both] = next(cases for cases in range(40, 2001, 40) if proved(cases))
    single, double = needed.mean(axis=0)
    print(f"cases needed: {single:.0f} with one vote each, {double:.0f} with two games each")
    assert double <= 1.1 * single


def test_a_column_of_bets_is_ignored(tmp_path):
    """Bets written after the outcomes would prove anything."""
    first, second, outcome = noise(np.random.default_rng(12), 200, 3)
    rows = [f"{a},{b},{y}" for a, b, y in zip(first, second, outcome, strict=True)]
    plain, cheated = tmp_path / "plain.csv", tmp_path / "bets.csv"
    plain.write_text("\n".join(["first,second,outcome", *rows]))
    bets = [f"{row},{3 if y else -3}" for row, y in zip(rows, outcome, strict=True)]
    cheated.write_text("\n".join(["first,second,outcome,bets", *bets]))
    verdicts = []
    for path in (plain, cheated):
        table = read_votes(path)
        verdicts.append(certify(table.first, table.second, table.outcome, 1, DELTA, unit=table.unit))
    assert verdicts[0] == verdicts[1]
    assert not claims(verdicts[0])
