"""Votes that share a source of chance, counted: false claims of `certify` and of imports on noise, at delta 0.05.

Each attack is played twice. With the safeguard at most 8 % of the files or studies make a false claim; without it,
where every row is said to be a vote of its own, more than 10 % do. A claim is an item that is proved in or out. Items
are equal unless the docstring says otherwise, so every claim is false for some top k that the theorem allows.

Power: if the true share is 15 %, 400 runs exceed 8 % with probability 1, and 200 runs with probability 0.998.
"""

import json
import sys

import numpy as np
import pytest

from shortlist import certify, create_study, read_votes
from shortlist.cli.app import main

DELTA, MOST, LEAST = 0.05, 0.08, 0.10
pytestmark = pytest.mark.slow


def claims(verdict):
    return bool(verdict.certainly_in or verdict.certainly_out)


def shares(draw, runs, false=claims, **options):
    """How many files make a false claim with the units that `draw` gives, and with every row as a unit."""
    found = np.zeros(2)
    for seed in range(runs):
        first, second, outcome, unit = draw(np.random.default_rng((7, seed)))
        for off, units in enumerate((unit.tolist(), None)):
            found[off] += false(certify(first, second, outcome, 1, DELTA, unit=units, **options))
    print(f"safeguard on {found[0] / runs:.3f}, off {found[1] / runs:.3f}")
    return found / runs


def check(on, off):
    assert on <= MOST
    assert off > LEAST


def copied(rng, cases, rows, n):
    """A coin decides each case, which is about one random pair, and all of its rows say the same."""
    first = rng.integers(0, n, cases)
    second = (first + rng.integers(1, n, cases)) % n
    outcome = rng.integers(0, 2, cases).astype(float)
    return *(np.repeat(column, rows) for column in (first, second, outcome)), np.repeat(np.arange(cases), rows)


def test_two_games_on_one_case():
    """Five items, 80 cases of two games with one outcome."""
    check(*shares(lambda rng: copied(rng, 80, 2, 5), 400, n=5))


def test_five_raters_on_one_case():
    """Three items, 60 cases of five raters who agree."""
    check(*shares(lambda rng: copied(rng, 60, 5, 3), 400, n=3))


LEADERS, REST = 24, 2


def benchmark(rng, cases=25):
    """Every pair on the same cases. One leader beats the other leaders, all leaders beat the rest 65 to 35, and one
    coin per case decides whether all leaders beat the member or lose to it. All other pairs are even."""
    group = np.r_[0, np.ones(LEADERS - 1, int), 2, np.full(REST, 3)]
    low, high = np.triu_indices(len(group), 1)
    first, second, case = np.tile(low, cases), np.tile(high, cases), np.repeat(np.arange(cases), len(low))
    one, other, coin = group[first], group[second], rng.integers(0, 2, cases)[case]
    mean = np.where((one == 0) & (other == 1), 1.0, np.where((one <= 1) & (other == 3), 0.65, 0.5))
    outcome = (rng.random(len(first)) < mean).astype(float)
    return first, second, np.where((one <= 1) & (other == 2), coin, outcome), case


def test_a_benchmark_with_all_pairs_on_the_same_cases():
    """The member is the top 1 that no other item beats on average. Counted: it is proved out, or another is proved
    in."""

    def false(verdict):
        return LEADERS in verdict.certainly_out or set(verdict.certainly_in) - {LEADERS}

    check(*shares(benchmark, 200, lambda verdict: bool(false(verdict)), n=LEADERS + 1 + REST))


# --- the small bettor: one account with a fixed bet, for traps that certify does not have an option for ---


def ever_rich(log_factors):
    """Does the account ever reach 1/delta?"""
    return np.cumsum(log_factors, axis=-1).max(axis=-1) >= np.log(1 / DELTA)


def test_ties_added_after_losses():
    """A loss is followed by four ties on the same case. Weights 1/m count a win fully and a loss as a fifth; the first
    row per target does not. Counted: certify's claims, and a bettor with bet 0.3 who ever reaches 1/delta."""

    def draw(rng, cases=150):
        won = rng.integers(0, 2, cases).astype(float)
        rows = np.where(won > 0, 1, 5)
        outcome = np.concatenate([[1.0] if win else [0.0, 0.5, 0.5, 0.5, 0.5] for win in won])
        zeros = np.zeros(len(outcome), int)
        return zeros, zeros + 1, outcome, np.repeat(np.arange(cases), rows)

    on = shares(draw, 400, n=2)[0]
    rng = np.random.default_rng(1)
    won = rng.integers(0, 2, (400, 150))
    gains = np.where(won, np.log(1.3), np.log(0.7))
    check(max(on, ever_rich(gains).mean()), ever_rich(np.where(won, gains, gains / 5)).mean())


def test_a_bet_on_row_two_after_row_one():
    """Two rows of one coin, weight 1/2 each. Counted: a bettor who ever reaches 1/delta, with bets 0.3 on both rows,
    and with bet 0.9 or 0 on row two after row one was read."""
    won = np.random.default_rng(2).integers(0, 2, (400, 150))
    fair = np.where(won, np.log(1.3), np.log(0.7))
    informed = np.where(won, 0.5 * np.log(1.3) + 0.5 * np.log(1.9), 0.5 * np.log(0.7))
    check(ever_rich(fair).mean(), ever_rich(informed).mean())


@pytest.mark.parametrize("rows", [2, 5])
def test_no_bet_of_a_unit_depends_on_its_outcomes(rows):
    """An import bets the same on a unit, and on all units before, whatever the rows of the unit say."""
    first, second, outcome, unit = copied(np.random.default_rng(3), 40, rows, 3)
    labels = [str(label) for label in unit]
    sides = [[str(item) for item in side] for side in (first, second)]
    bets = []
    for last in (outcome[-rows:], 1 - outcome[-rows:]):
        study = create_study(["0", "1", "2"], 1, DELTA)
        study.import_votes(*sides, [*outcome[:-rows], *last], unit=labels)
        bets.append([row.bet for row in study.rows])
    assert bets[0] == bets[1]
    assert len(set(bets[0])) > 20


# --- imports ---


def noise(rng, votes, n=2):
    first = rng.integers(0, n, votes)
    second = (first + rng.integers(1, n, votes)) % n
    first, second = np.minimum(first, second), np.maximum(first, second)
    return first, second, rng.integers(0, 2, votes).astype(float)


def by_winner(first, second, outcome):
    order = np.argsort(np.where(outcome > 0, first, second), kind="stable")
    return first[order], second[order], outcome[order]


def names(side):
    return [str(item) for item in side]


def told_one_by_one(batches, n):
    """The same votes in the same order without the safeguards of an import."""
    study = create_study(names(range(n)), 1, DELTA)
    for first, second, outcome in batches:
        for one, other, won in zip(first, second, outcome, strict=True):
            if study.verdict.done:
                return study
            study.tell(study.ask(pair=(str(one), str(other))), winner=str(one if won else other))
    return study


def imported(batches, n):
    study = create_study(names(range(n)), 1, DELTA)
    for first, second, outcome in batches:
        study.import_votes(names(first), names(second), outcome.tolist())
    return study


@pytest.mark.parametrize("batches", [1, 3])
def test_imports_sorted_by_winner(batches):
    """Two items; each batch has 40 votes, those that item 0 won first. Off: the same votes told one by one."""
    found = np.zeros(2)
    for seed in range(400):
        rng = np.random.default_rng((8, seed))
        files = [by_winner(*noise(rng, 40)) for _ in range(batches)]
        for off, make in enumerate((imported, told_one_by_one)):
            found[off] += claims(make(files, 2).examine())
    print(found / 400)
    check(*found / 400)


def test_a_sorted_import_says_so():
    verdict = imported([by_winner(*noise(np.random.default_rng(1), 80))], 2).examine()
    assert any("look sorted by winner" in caveat for caveat in verdict.caveats)


@pytest.mark.parametrize("growing", [False, True])
def test_the_same_file_six_times(growing):
    """Three items, 60 votes, imported six times, the whole file or ever more of it. Off: with an id that says that they
    are other votes each time."""
    found, runs = np.zeros(2), 200
    for seed in range(runs):
        first, second, outcome = noise(np.random.default_rng((9, seed)), 60, 3)
        for off in (0, 1):
            study = create_study(names(range(3)), 1, DELTA)
            for time in range(6):
                end = 10 * (time + 1) if growing else 60
                rows = names(first[:end]), names(second[:end]), outcome[:end].tolist()
                ids = [f"{time} {row}" for row in range(end)] if off else ()
                verdict = study.import_votes(*rows, id=ids)
            assert off or (verdict.votes == 60 and any("counted before" in caveat for caveat in verdict.caveats))
            found[off] += claims(study.examine())
    print(found / runs)
    check(*found / runs)


def test_a_unit_that_was_imported_before_counts_no_more():
    study = create_study(["a", "b"], 1, DELTA)
    study.import_votes(["a"] * 3, ["b"] * 3, [1.0] * 3, unit=["x", "y", None])
    verdict = study.import_votes(["a"] * 3, ["b"] * 3, [0.0] * 3, unit=["x", "z", None])
    assert [row.weight for row in study.rows] == [1, 1, 1, 0, 1, 1]
    assert [row.unit for row in study.rows] == ["x", "y", None, "x", "z", None]
    assert any("share a unit" in caveat for caveat in verdict.caveats)


# --- files ---


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["shortlist", *arguments, "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    return json.loads(capsys.readouterr().out)


def arena_hard(path, rng, cases=100, models=3, share=0.5, games=2):
    """Judgments of models against a baseline; one draw per case and model decides both games."""
    rows = []
    for model in range(models):
        for case in range(cases):
            won = rng.random() < share
            grades = ["B>>A", "A>>B"] if won else ["A>>B", "B>>A"]
            scores = [{"score": grade} for grade in grades]
            rows.append({"uid": f"q{case}", "model": f"m{model}", "baseline": "base", "games": scores[:games]})
    path.write_text("\n".join(map(json.dumps, rows)))


def test_sixty_arena_hard_files(tmp_path, monkeypatch, capsys):
    """A coin per case and model. Counted: files that prove any item in or out. This world is mild: with every row as a
    unit 5 of 60 do, so it does not show that units are needed; the tests above do."""
    found = 0
    for seed in range(60):
        path = tmp_path / "judgments.jsonl"
        arena_hard(path, np.random.default_rng((10, seed)))
        said = run(monkeypatch, capsys, "certify", str(path), "-k", "1")
        assert said["units"] == {**said["units"], "name": "case", "units": 100, "regular": True, "unused": 0}
        found += bool(said["certainly_in"] or said["certainly_out"])
    print(f"{found} of 60")
    assert found <= 7


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
