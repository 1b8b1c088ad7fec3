"""Attacks through vote files: rows that share a source of chance, units that grow, bets made after a look. Items are
equal unless a docstring says otherwise, so every item that is proved in or out is a false claim for some top k that the
theorem allows.
"""

import io
import json
import os
import sys
import tempfile
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from unittest.mock import patch

import numpy as np

from shortlist import certify
from shortlist.cli.app import main
from shortlist.core import arrays
from shortlist.core.betting import Ledger
from shortlist.core.units import find_units
from shortlist.study.sql import close_databases
from tests.guarantee.attacks import DELTA, Attack


def claims(verdict):
    return bool(verdict.certainly_in or verdict.certainly_out)


def by_row(draw, false=claims, **options):
    """An attack with units. Without the safeguard every row is a unit of its own."""

    def fooled(safeguard, seed):
        first, second, outcome, unit = draw(np.random.default_rng((7, seed)))
        units = unit.tolist() if safeguard else None
        return bool(false(certify(first, second, outcome, 1, DELTA, unit=units, **options)))

    return fooled


def copied(rng, cases, rows, n):
    """A coin decides each case, which is about one random pair, and all of its rows say the same."""
    first = rng.integers(0, n, cases)
    second = (first + rng.integers(1, n, cases)) % n
    outcome = rng.integers(0, 2, cases).astype(float)
    return *(np.repeat(column, rows) for column in (first, second, outcome)), np.repeat(np.arange(cases), rows)


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


def against_the_member(verdict):
    """The member is the top 1 that no other item beats on average."""
    return LEADERS in verdict.certainly_out or set(verdict.certainly_in) - {LEADERS}


def one_pair(rng, after_win, after_loss, cases=150):
    """Rows of one pair: after the first row of each case, a coin, come rows that depend on it."""
    won = rng.integers(0, 2, cases)
    rows = [[float(win), *(after_win if win else after_loss)] for win in won]
    outcome, zeros = np.concatenate(rows), np.zeros(sum(map(len, rows)), int)
    return zeros, zeros + 1, outcome, np.repeat(np.arange(cases), [len(row) for row in rows])


def weighing(draw, share):
    """An attack with units that do not all have the same rows. Without the safeguard a row weighs `share`, given how
    many rows its unit has."""

    def careless(*given):
        order, units = find_units(*given)
        rows = np.bincount(units.number)[units.number]
        return order, units._replace(share=share(rows), is_fixed=np.ones(len(rows), dtype=bool))

    def fooled(safeguard, seed):
        first, second, outcome, unit = draw(np.random.default_rng((7, seed)))
        with nullcontext() if safeguard else patch.object(arrays, "find_units", careless):
            return claims(certify(first, second, outcome, 1, DELTA, n=2, unit=unit.tolist()))

    return fooled


def bet_after_row_one(safeguard, seed):
    """Two rows of one coin on each case. Without the safeguard the bet on row two knows row one."""
    place_bets = Ledger.place_bets

    def informed(ledger, block):
        bets = place_bets(ledger, block).bets.copy()
        bets[1::2] = np.where(block.outcome[::2] > 0, 2.0, 0.0)
        return block._replace(bets=bets)

    first, second, outcome, unit = copied(np.random.default_rng((7, seed)), 150, 2, 2)
    first, second = np.zeros_like(first), np.ones_like(second)
    with nullcontext() if safeguard else patch.object(Ledger, "place_bets", informed):
        return claims(certify(first, second, outcome, 1, DELTA, n=2, unit=unit.tolist()))


def command(*arguments):
    """What a command prints, run in this process in a folder of its own."""
    out = io.StringIO()
    with (
        patch.object(sys, "argv", ["shortlist", *map(str, arguments), "--json"]),
        redirect_stdout(out),
        redirect_stderr(io.StringIO()),
        suppress(SystemExit),
    ):
        main()
    return json.loads(out.getvalue())


@contextmanager
def folder():
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as path:
        os.chdir(path)
        try:
            yield Path(path)
        finally:
            close_databases()
            os.chdir(before)


def bets_column(safeguard, seed):
    """A table of coin flips with a column of bets that was written after the outcomes. Without the safeguard the bets
    are those of the column."""
    rng = np.random.default_rng((12, seed))
    outcome = rng.integers(0, 2, 60)
    rows = [f"x,y,{won},{2 if won else -2}" for won in outcome]

    def from_column(ledger, block):
        return block._replace(bets=np.where(block.outcome > 0, 2.0, -2.0))

    with folder() as here, nullcontext() if safeguard else patch.object(Ledger, "place_bets", from_column):
        (here / "votes.csv").write_text("\n".join(["first,second,outcome,bets", *rows]))
        said = command("certify", "votes.csv", "-k", 1, "--delta", DELTA)
    return bool(said["certainly_in"] or said["certainly_out"])


def export_twice(safeguard, seed):
    """Twelve exports of 60 coin flips in one file. Without the safeguard the column of ids is missing."""
    rng = np.random.default_rng((13, seed))
    rows = [f"x,y,{won}" + f",shortlist-{row}" * safeguard for row, won in enumerate(rng.integers(0, 2, 60))]
    with folder() as here:
        (here / "votes.csv").write_text("\n".join(["first,second,outcome" + ",vote_id" * safeguard, *rows * 12]))
        said = command("certify", "votes.csv", "-k", 1, "--delta", DELTA, "--skip-bad")
    return bool(said["certainly_in"] or said["certainly_out"])


def arena_hard(path, rng, cases=30, models=40):
    """Judgments of models against a baseline in two games. One coin per case decides all of them: the baseline has a
    good answer or a bad one."""
    rows = []
    for case in range(cases):
        grades = ["B>>A", "A>>B"] if rng.integers(0, 2) else ["A>>B", "B>>A"]
        games = [{"score": grade} for grade in grades]
        rows += [
            {"uid": f"q{case}", "model": f"m{model}", "baseline": "base", "games": games} for model in range(models)
        ]
    path.write_text("\n".join(map(json.dumps, rows)))


def every_row_alone(n, first, second, labels):
    return find_units(n, first, second, [None] * len(labels))


def arena_hard_file(safeguard, seed):
    """Without the safeguard every game of every model is a unit of its own."""
    with folder() as here, nullcontext() if safeguard else patch.object(arrays, "find_units", every_row_alone):
        arena_hard(here / "judgments.jsonl", np.random.default_rng((10, seed)))
        said = command("certify", "judgments.jsonl", "-k", 1, "--delta", DELTA)
    return bool(said["certainly_in"] or said["certainly_out"])


UNITS = "rows of one case are one unit"
CASES = "cases are drawn afresh, and their rows do not depend on answers"
ATTACKS = [
    Attack(
        "two games on one case", UNITS, CASES, by_row(lambda rng: copied(rng, 80, 2, 5), n=5),
        runs=(60, 150),
    ),
    Attack("five raters on one case", UNITS, CASES, by_row(lambda rng: copied(rng, 60, 5, 3), n=3)),
    Attack(
        "a benchmark: all pairs on the same cases", UNITS, CASES,
        by_row(benchmark, against_the_member, n=LEADERS + 1 + REST), runs=(50, 50),
    ),
    Attack(
        "Arena-Hard files through the command certify", UNITS, CASES, arena_hard_file, runs=(60, 30), many=(200, 200),
    ),
    Attack(
        "a second vote of a unit after a win", "where units differ, the first row against an item counts alone",
        "the first row of a unit is a fair one",
        weighing(lambda rng: one_pair(rng, [1.0], []), lambda rows: np.full(len(rows), 0.5)),
    ),
    Attack(
        "ties added after losses", "where units differ, the first row against an item counts alone",
        "the first row of a unit is a fair one",
        weighing(lambda rng: one_pair(rng, [], [0.5] * 4), lambda rows: 1.0 / rows),
    ),
    Attack(
        "a bet on row 2 after row 1", "all bets of a unit are made before it is read", CASES, bet_after_row_one,
    ),
    Attack(
        "a column of bets in a table", "`certify` makes its own bets", "rows are in the order in which they were cast",
        bets_column,
    ),
    Attack(
        "twelve exports put together in one file", "rows with the same id are one vote",
        "exported votes keep their ids", export_twice, runs=(50, 40),
    ),
]  # fmt: skip
