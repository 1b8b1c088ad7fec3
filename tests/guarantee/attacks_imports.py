"""Attacks through imports: sorted votes, the same votes again, new votes taken for old ones. Items are equal, so
every item that is proved in or out is a false claim for some top k that the theorem allows.
"""

from contextlib import ExitStack, nullcontext, suppress
from unittest.mock import patch

import numpy as np

from shortlist import create_study
from shortlist.analysis.votes import as_table
from shortlist.core.betting import Imports
from shortlist.errors import BadVotes
from shortlist.study import importing
from shortlist.study.importing import ImportRows
from shortlist.study.rows import counted
from tests.guarantee.attacks import DELTA, Attack
from tests.guarantee.attacks_files import claims


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


def imported(batches, n):
    """A study with these files. Ids say that the votes of each are new."""
    study = create_study(names(range(n)), 1, DELTA)
    for batch, (first, second, outcome) in enumerate(batches):
        ids = [f"{batch} {row}" for row in range(len(first))]
        study.import_votes(names(first), names(second), outcome.tolist(), id=ids)
    return study


def told_one_by_one(batches, n):
    """The same votes in the same order without the safeguards of an import."""
    study = create_study(names(range(n)), 1, DELTA)
    for first, second, outcome in batches:
        for one, other, won in zip(first, second, outcome, strict=True):
            if study.verdict.done:
                return study
            study.tell(study.ask(pair=(str(one), str(other))), winner=str(one if won else other))
    return study


def sorted_batches(count):
    """Two items; each file has 40 votes, those that item 0 won first."""

    def fooled(safeguard, seed):
        rng = np.random.default_rng((8, seed))
        files = [by_winner(*noise(rng, 40)) for _ in range(count)]
        return claims((imported if safeguard else told_one_by_one)(files, 2).examine())

    return fooled


def six_times(growing):
    """Three items, 60 votes, imported six times, the whole file or ever more of it. Without the safeguard: with an id
    that says that they are other votes each time."""

    def fooled(safeguard, seed):
        first, second, outcome = noise(np.random.default_rng((9, seed)), 60, 3)
        study = create_study(names(range(3)), 1, DELTA)
        for time in range(6):
            end = 10 * (time + 1) if growing else 60
            ids = () if safeguard else [f"{time} {row}" for row in range(end)]
            study.import_votes(names(first[:end]), names(second[:end]), outcome[:end].tolist(), id=ids)
        return claims(study.examine())

    return fooled


def digests_of_outcomes(rows, items):
    """What told rows apart: everything that they say, and how many rows said the same before."""
    seen, found = {}, []
    for row in zip(*vars(rows).values(), strict=True):
        seen[row] = seen.get(row, 0) + 1
        found.append(repr((row, seen[row])))
    return found


def with_a_new_grid(earlier, new):
    """Imports of the same pairs, whose grids are averaged one by one."""
    return earlier._replace(bets=earlier.bets + new.bets, grid=earlier.grid + new.grid)


def second_file(safeguard, seed):
    """Two items, two files of 300 coin flips. Without the safeguard a new vote is taken for an old one if their
    outcomes are equal, and the grid begins anew with each import: 10 wins and no loss may be left of the second."""
    rng = np.random.default_rng((14, seed))
    files = [noise(rng, 300) for _ in range(2)]
    if safeguard:
        return claims(imported(files, 2).examine())
    with ExitStack() as patches:
        patches.enter_context(patch.object(ImportRows, "digests", digests_of_outcomes))
        patches.enter_context(patch.object(importing, "_check_repeated", lambda *given: None))
        patches.enter_context(patch.object(Imports, "add", with_a_new_grid))
        study = create_study(names(range(2)), 1, DELTA)
        for first, second, outcome in files:
            study.import_votes(names(first), names(second), outcome.tolist())
    return claims(study.examine())


def own_votes(ids, every):
    """Two items, 60 coin flips told one by one; after every so many, all votes are exported and imported back. Without
    the safeguard the ids that exports write are replaced, and nobody compares the votes."""

    def fooled(safeguard, seed):
        rng = np.random.default_rng((15, seed))
        study = create_study(["0", "1"], 1, DELTA)
        with nullcontext() if safeguard else patch.object(importing, "_check_relabelled", lambda *given: None):
            for vote in range(60):
                if study.verdict.done:
                    break
                study.tell(study.ask(), float(rng.integers(0, 2)))
                if (vote + 1) % every == 0:
                    back = as_table(counted(study.rows))
                    first, second = ([back.items[i] for i in side] for side in (back.first, back.second))
                    with suppress(BadVotes):
                        study.import_votes(first, second, back.outcome.tolist(), id=ids(back, vote, safeguard))
        return claims(study.examine())

    return fooled


def with_ids(back, vote, safeguard):
    return back.id if safeguard else other_ids(back, vote, safeguard)


def other_ids(back, vote, safeguard):
    """The column of ids has been replaced by another."""
    return [f"{vote} {row}" for row in range(len(back))]


def same_raters(safeguard, seed):
    """Two items, three raters who each always prefer the same one, 30 files with a new case each. Without the
    safeguard the units of every file are numbered for themselves."""
    tastes = np.random.default_rng((16, seed)).integers(0, 2, 3).astype(float).tolist()
    study = create_study(["0", "1"], 1, DELTA)
    for file in range(30):
        units = [(f"case {file}", f"rater {rater}") if safeguard else f"file {file}" for rater in range(3)]
        study.import_votes(["0"] * 3, ["1"] * 3, tastes, unit=units, id=[f"{file} {rater}" for rater in range(3)])
    return claims(study.examine())


def other_labels(safeguard, seed):
    """Two items, 40 coin flips, imported without labels, then with cases, with a judge, and so on. Without the
    safeguard rows with other labels are other votes."""
    first, second, outcome = noise(np.random.default_rng((17, seed)), 40)
    study, rows = create_study(["0", "1"], 1, DELTA), range(40)
    unit, judge, id_ = {"unit": [f"case {row}" for row in rows]}, {"judge": ["x"] * 40}, {"id": list(map(str, rows))}
    labels = unit, judge, id_, judge | {"unit": [f"row {row}" for row in rows]}, judge | id_
    with nullcontext() if safeguard else patch.object(importing, "_check_relabelled", lambda *given: None):
        for given in ({}, *labels):
            with suppress(BadVotes):
                study.import_votes(names(first), names(second), outcome.tolist(), **given)
    return claims(study.examine())


SORTED = "a fixed part of the stake is on counts, and bets on votes that look sorted are dropped"
ONCE = "a row is counted once"
GROWN = "earlier rows come first, or rows have ids"
ATTACKS = [
    Attack("an import sorted by winner", SORTED, "all votes on a pair are there", sorted_batches(1)),
    Attack("three imports sorted by winner", SORTED, "all votes on a pair are there", sorted_batches(3)),
    Attack("the same file imported six times", ONCE, GROWN, six_times(growing=False), runs=(50, 40)),
    Attack("a growing file imported six times", ONCE, GROWN, six_times(growing=True), runs=(50, 60)),
    Attack(
        "the same file with other labels", "an import of the same outcomes on the same pairs is refused",
        "the file has at least 20 votes", other_labels, runs=(50, 60),
    ),
    Attack(
        "a second file of new votes", "which rows are old does not depend on outcomes; one grid for all imports",
        "ids of new votes are new", second_file, runs=(50, 60),
    ),
    Attack(
        "a study's own votes imported back", ONCE, "exported votes keep their ids", own_votes(with_ids, 10),
        runs=(60, 20),
    ),
    Attack(
        "a study's own votes imported back with other ids", "an import of the study's own outcomes is refused",
        "there are at least 20 votes", own_votes(other_ids, 20), runs=(60, 20),
    ),
    Attack(
        "thirty imports that share their raters",
        "rows that share a case or a judge with an earlier import weigh nothing",
        "labels mean the same in every file", same_raters, runs=(20, 20),
    ),
]  # fmt: skip
