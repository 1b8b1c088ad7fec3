"""How many calls does a proof over a list of cases take? On tables of answers that are known in full.

    python benchmarks/case_list.py                                    # invented tables
    python benchmarks/case_list.py --votes FILE                       # real ones: a CSV file with the columns below
    python benchmarks/case_list.py --sizes 10x80 --runs 10 --now edges cuts

prints the tables of docs/results.md. A table has the answer of a judge to every pair, case and order of showing. `now`
is a study with known answers and one of the stopping rules of `--now`, `before` one with `edges` and without known
answers, ended after 6,000 votes. `all pairs` asks the whole table.
`one baseline` compares every item with one of them on all cases, in both orders, and takes the best by share of wins;
each item is the baseline once. Who is right is known from the whole table. Invented tables without a top k are drawn
again, and real ones left out. FILE has a row for each answer: model_a (shown first), model_b, winner (model_a, model_b
or tie), judge, question.
"""

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import shortlist
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import Floats
from shortlist.study.claims import AnswerTable

DELTA, MOST_VOTES, CLEAR = 0.05, 6000, 0.05
SHARE = {"model_a": 1.0, "model_b": 0.0, "tie": 0.5}


class Played(NamedTuple):
    calls: int
    votes: int
    proved: bool
    right: bool


class Cell(NamedTuple):
    """What was played on one judge and k, or on one size of invented tables."""

    margin: float
    before: list[Played]
    now: dict[str, list[Played]]  # by stopping rule
    right: list[bool]


def means(table: Floats) -> Floats:
    """What each item gets against each other, over all cases and both orders. `table[x, y, c]`: x is shown first."""
    first = table.mean(axis=2)
    mean: Floats = (first + (1 - first).T) / 2
    return mean


def true_top(table: Floats, k: int) -> set[int] | None:
    """The k items that are ahead of all others; ties go to the one that is listed first. None if there are none."""
    mean, n = means(table), len(table)
    ahead = (mean > 0.5) | ((mean == 0.5) & (np.arange(n)[:, None] < np.arange(n)))
    np.fill_diagonal(ahead, False)
    top = set(np.argsort(-ahead.sum(axis=1), kind="stable")[:k].tolist())
    is_top = all(ahead[i, j] for i in top for j in set(range(n)) - top)
    return top if is_top else None


def margin(table: Floats, k: int) -> float:
    """How far the closest pair of an item of the top k and another one is from a tie."""
    mean, top = means(table), true_top(table, k) or set()
    return min(float(mean[i, j]) - 0.5 for i in top for j in set(range(len(table))) - top)


def invent(n: int, cases: int, k: int, rng: np.random.Generator) -> Floats:
    """Ratings from a normal distribution; each cell is drawn once."""
    while True:
        theta = rng.standard_normal(n)
        chance = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
        table = (rng.random((n, n, cases)) < chance[:, :, None]).astype(np.float64)
        if true_top(table, k) is not None:
            return table


def read(file: Path) -> dict[str, Floats]:
    """The table of each judge in the file."""
    rows = list(csv.DictReader(file.open()))
    items = sorted({row[side] for row in rows for side in ("model_a", "model_b")})
    cases = sorted({row["question"] for row in rows})
    tables: dict[str, Floats] = defaultdict(lambda: np.full((len(items), len(items), len(cases)), np.nan))
    for row in rows:
        place = items.index(row["model_a"]), items.index(row["model_b"]), cases.index(row["question"])
        tables[row["judge"]][place] = SHARE[row["winner"]]
    for judge, table in tables.items():
        table[np.arange(len(items)), np.arange(len(items))] = 0.5
        assert not np.isnan(table).any(), f"judge {judge} has not answered everything"
    return tables


def play(table: Floats, k: int, seed: int, given: argparse.Namespace, stopping: str, knows: bool) -> Played:
    """A study on the table, with or without known answers."""
    items = [f"item {place}" for place in range(len(table))]
    number = {item: place for place, item in enumerate(items)}
    kept = AnswerTable.facts
    if not knows:
        AnswerTable.facts = lambda *_: frozenset()  # type: ignore[method-assign]
    try:
        study = shortlist.create_study(
            items, k, DELTA, seed=seed, max_votes=None if knows else MOST_VOTES, stopping=stopping
        )
        run = shortlist.run_study(
            study, lambda a, b, case: float(table[number[a], number[b], int(case.text)]),
            workers=given.workers, cases=[str(case) for case in range(table.shape[2])], position=given.position,
            warn=lambda text: None,
        )  # fmt: skip
    finally:
        AnswerTable.facts = kept  # type: ignore[method-assign]
    found = {number[item] for item in run.verdict.top}
    return Played(run.costs.calls, run.verdict.votes, run.verdict.reason == "certified", found == true_top(table, k))


def baseline(table: Floats, k: int) -> Iterator[bool]:
    """Whether all against one baseline gives the right top k, for each baseline. The baseline itself ties."""
    mean = means(table)
    for place in range(len(table)):
        yield set(np.argsort(-mean[:, place], kind="stable")[:k].tolist()) == true_top(table, k)


def summary(played: list[Played]) -> str:
    calls, is_open = [one.calls for one in played], sum(not one.proved for one in played)
    wrong = sum(one.proved and not one.right for one in played)
    error = f" ± {np.std(calls, ddof=1) / np.sqrt(len(calls)):,.0f}" if len(calls) > 1 else ""
    spread = f"{np.mean(calls):,.0f}{error} ({min(calls):,} to {max(calls):,})"
    return f"{spread}; {is_open} open, {wrong} wrong of {len(played)}"


def show(name: str, tables: list[tuple[Floats, int]], given: argparse.Namespace) -> Cell:
    before, right = [], list[bool]()
    now: dict[str, list[Played]] = {rule: [] for rule in given.now}
    for seed, (table, k) in enumerate(tables):
        for rule in given.now:
            now[rule].append(play(table, k, seed, given, rule, True))
        before.append(play(table, k, seed, given, "edges", False))
        right += list(baseline(table, k))
    n, cases = len(tables[0][0]), tables[0][0].shape[2]
    columns = [name, f"{n * (n - 1) * cases:,}", f"{2 * (n - 1) * cases:,} ({np.mean(right):.0%} right)"]
    print(f"| {' | '.join([*columns, summary(before), *map(summary, now.values())])} |", flush=True)
    return Cell(min(margin(table, k) for table, k in tables), before, now, right)


def show_all(cells: list[Cell], rules: list[str]) -> None:
    """The mean over cells of clear and of close tables."""
    for name, those in (
        (f"mean of the cells with a margin of at least {CLEAR}", [cell for cell in cells if cell.margin >= CLEAR]),
        ("mean of the closer ones", [cell for cell in cells if cell.margin < CLEAR]),
    ):
        if those:
            right = np.mean([np.mean(cell.right) for cell in those])
            before = summary([one for cell in those for one in cell.before])
            now = [summary([one for cell in those for one in cell.now[rule]]) for rule in rules]
            print(f"| {' | '.join([f'{name} ({len(those)})', '', f'{right:.0%} right', before, *now])} |")


def main() -> None:
    parser = argparse.ArgumentParser(description="Calls to a proof over a list of cases.")
    parser.add_argument("--votes", type=Path)
    parser.add_argument("--sizes", nargs="*", default=["10x80", "10x200", "20x80", "20x200"])
    parser.add_argument("--k", type=int, default=3)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--position", default="random")
    parser.add_argument("--now", nargs="+", default=["edges", "cuts"])
    given = parser.parse_args()
    named = "".join(f" now, {rule}: calls |" for rule in given.now)
    print(f"| tables | all pairs | one baseline | before: calls |{named}\n|---|--:|--:|--:|{'--:|' * len(given.now)}")
    with one_thread():
        if given.votes:
            cells = []
            for judge, table in sorted(read(given.votes).items()):
                for k in range(1, len(table)):
                    if true_top(table, k) is not None:
                        tables = [(table, k)] * given.runs
                        cells.append(show(f"{judge}, k = {k}", tables, given))
            show_all(cells, given.now)
            return
        for size in given.sizes:
            n, cases = map(int, size.split("x"))
            rng = np.random.default_rng(n * cases)
            tables = [(invent(n, cases, given.k, rng), given.k) for _ in range(given.runs)]
            show(f"n = {n}, C = {cases}, k = {given.k}", tables, given)


if __name__ == "__main__":
    main()
