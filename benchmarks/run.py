"""What we measure ourselves and peers with: `make bench`, or `python benchmarks/run.py --json FILE`.

Machines are noisy, so costs are ratios to one dense numpy.linalg.solve of the same n, timed in the same run, all on
one thread of linear algebra.
"""

import argparse
import json
import math
import platform
import random
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import choix
import evalica
import numpy as np
from rich.console import Console
from rich.table import Table

import shortlist
from shortlist.baselines import BASELINES, run_baseline
from shortlist.core import loop
from shortlist.core.estimate import fit
from shortlist.core.evidence import Evidence
from shortlist.core.families import BradleyTerry
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import n_pairs, pair_ends
from shortlist.core.problem import Problem
from shortlist.core.sampling import default_stopping
from shortlist.core.sampling.base import SamplingRule
from shortlist.core.sampling.bridge import Bridge
from shortlist.core.sampling.sharpen import Sharpen
from shortlist.core.sampling.tracking import OracleTracking
from shortlist.core.stopping import STOPPING_RULES
from shortlist.core.tally import Block, expected_tally
from shortlist.simulation.run import simulate
from shortlist.simulation.worlds import Utilities, equally_spaced
from shortlist.study.sql import close_databases
from shortlist.study.study import Study

Row = dict[str, Any]


def median_seconds(work: Callable[[], Any], repeats: int) -> float:
    work()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def in_solves(what: str, work: Callable[[], Any], n: int, repeats: int) -> Row:
    """The work's cost in dense solves, the two timed in turn so that both meet the same machine."""
    rng = np.random.default_rng(0)
    matrix, right = rng.normal(size=(n, n)) + n * np.eye(n), rng.normal(size=n)
    work()
    times = np.empty((repeats, 2))
    for row in times:
        began = time.perf_counter()
        np.linalg.solve(matrix, right)
        solved = time.perf_counter()
        work()
        row[:] = solved - began, time.perf_counter() - solved
    solve, seconds = np.median(times, axis=0)
    return {"what": what, "seconds": float(seconds), "solves": float(seconds / solve)}


def middle_of_a_study(method: SamplingRule, theta: np.ndarray, k: int, votes: int, even: bool = False) -> Study:
    """A study with that many votes, reached in coarse blocks; `even` ones are spread over all pairs at once."""
    n, rng = len(theta), np.random.default_rng(1)
    problem = Problem(n, k, 1e-9)
    study = Study(
        [f"item {i}" for i in range(n)], problem, method, STOPPING_RULES[default_stopping(method, problem)](), seed=1
    )
    state, family = study._state.ahead, problem.family
    while state.tally.votes < votes:
        if even:
            pairs = np.arange(n_pairs(n))
            counts = rng.multinomial(votes, np.full(len(pairs), 1 / len(pairs))).astype(float)
        else:
            pairs, counts = loop.ask_block(state, max(1, int(0.01 * state.tally.votes)))
        first, second = pair_ends(n, pairs)
        sums = family.draw(rng, family.expect(theta[first] - theta[second]), counts)
        block = Block(first, second, sums, counts).divided(*family.split(counts, sums))
        if even:
            tally = state.tally.add_block(family, block)
            state = state._replace(evidence=Evidence(tally, fit(family, tally, problem.bound)))
        else:
            state = loop.tell_block(state, block)
    study._sync.state = study._state._replace(settled=state, ahead=state)
    return study


def ask_and_tell(method: SamplingRule, theta: np.ndarray, k: int, votes: int, rounds: int, even: bool = False) -> Row:
    study = middle_of_a_study(method, theta, k, votes, even)
    judge, utility = random.Random(2), dict(zip(study.items, theta.tolist(), strict=True))

    def one() -> None:  # with a judge in plain numbers, which costs next to nothing
        question = study.ask()
        eta = utility[question.first] - utility[question.second]
        study.tell(question, float(judge.random() < 1 / (1 + math.exp(-eta))))

    for _ in range(rounds):  # a live study has met its boundary pairs before
        one()
    return in_solves(f"ask+tell, {method.name}, n={len(theta)}, {votes:,} votes in", one, len(theta), rounds)


def spaced(n: int, gap: float) -> np.ndarray:
    return (n + 1 - 2 * np.arange(1, n + 1)) * gap / 2


def many_items() -> list[Row]:
    """A whole study of 1,000 items; and 10,000 items, which must start and answer."""
    theta = np.sort(np.random.default_rng(7).uniform(-5, 5, 1000))[::-1]
    theta[:10] += max(0.0, 0.2 - (theta[9] - theta[10]))
    run = simulate(Utilities(tuple(theta), 10), "bridge", runs=1, seed=1, delta=0.01).runs[0]
    what = f"whole study, bridge, n=1,000, k=10: {run.comparisons:,} comparisons, correct: {run.correct}"
    study = shortlist.create_study([f"item {i}" for i in range(10_000)], k=10)
    slowest = 0.0
    for number in range(200):
        began = time.perf_counter()
        study.tell(study.ask(), float(number % 2))
        slowest = max(slowest, time.perf_counter() - began)
    return [{"what": what, "seconds": run.seconds}, {"what": "slowest of 200 ask+tell, n=10,000", "seconds": slowest}]


def stored_study() -> list[Row]:
    """200 items and 100,000 votes in a SQLite file: load it as a new process would, and ask."""
    items = [f"item {i}" for i in range(200)]
    first, second, outcome = raw_votes(200, 100_000)
    with TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/studies.db"
        study = shortlist.create_study(items, k=10, delta=1e-9, storage=url, name="large")
        study.import_votes([items[i] for i in first], [items[i] for i in second], outcome.tolist())
        for number in range(200):
            study.tell(study.ask(), float(number % 2))
        close_databases()
        began = time.perf_counter()
        study = shortlist.load_study("large", url)
        loaded = time.perf_counter() - began
        asking = median_seconds(study.ask, 20)
        close_databases()
    size = "a study of 200 items and 100,000 votes in SQLite"
    return [{"what": f"load {size}", "seconds": loaded}, {"what": f"ask in {size}", "seconds": asking}]


def cold_fit() -> Row:
    n, family = 100, BradleyTerry()
    theta = np.linspace(3, -3, n)
    tally = expected_tally(family, theta, np.full(n * (n - 1) // 2, 20.0))
    return in_solves("fit, n=100, all pairs, cold, from counts", lambda: fit(family, tally, 10.0), n, 100)


def raw_votes(n: int, votes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    theta = np.linspace(2, -2, n)
    first = rng.integers(0, n, votes)
    second = (first + rng.integers(1, n, votes)) % n
    return first, second, (rng.random(votes) < 1 / (1 + np.exp(theta[second] - theta[first]))).astype(float)


def fit_against_peers() -> list[Row]:
    """The same 100,000 votes in each library's own form, aggregation included; utilities must agree."""
    n, votes = 100, 100_000
    first, second, outcome = raw_votes(n, votes)
    winners_losers = np.where(outcome[:, None] == 1, np.column_stack([first, second]), np.column_stack([second, first]))
    pairs = list(map(tuple, winners_losers.tolist()))
    names = [str(i) for i in range(n)]
    left, right = [names[i] for i in first], [names[i] for i in second]
    results = [evalica.Winner.X if y == 1 else evalica.Winner.Y for y in outcome]
    ours = shortlist.fit(first, second, outcome)
    seconds = median_seconds(lambda: shortlist.fit(first, second, outcome), 20)
    theirs = {
        "choix opt_pairwise": lambda: choix.opt_pairwise(n, pairs),
        "choix ilsr_pairwise": lambda: choix.ilsr_pairwise(n, pairs),
        "evalica bradley_terry": lambda: evalica_theta(evalica.bradley_terry, left, right, results, names),
        "evalica newman": lambda: evalica_theta(evalica.newman, left, right, results, names),
    }
    rows = [{"what": "fit of 100,000 raw votes, shortlist", "seconds": seconds}]
    for name, work in theirs.items():
        theta = np.asarray(work())
        slower = median_seconds(work, 3)
        difference = float(np.abs(theta - theta.mean() - ours).max())
        rows.append({"what": f"  {name}", "seconds": slower, "times ours": slower / seconds, "difference": difference})
    return rows


def evalica_theta(method: Any, left: Any, right: Any, results: Any, names: list[str]) -> np.ndarray:
    scores = method(left, right, results, tolerance=1e-8).scores
    return np.log(np.array([scores[name] for name in names]))


def oracle_rows(sizes: list[tuple[int, int, float]]) -> list[Row]:
    rows = []
    for n, k, gap in sizes:
        theta = (n + 1 - 2 * np.arange(1, n + 1)) * gap / 2
        began = time.perf_counter()
        solved = shortlist.solve_oracle(theta, k)
        seconds = time.perf_counter() - began
        width = solved.rate_upper / solved.rate - 1
        rows.append({"what": f"oracle to 1 %, n={n}, k={k}, gap {gap}", "seconds": seconds, "difference": width})
    return rows


def lazy_run() -> Row:
    instance = equally_spaced(100, 5, 0.1, BradleyTerry())
    run = simulate(instance, "oracle-tracking", runs=1, seed=1, delta=0.01, growth=0.002).runs[0]
    what = f"lazy run to the stop, n=100, k=5, gap 0.1: {run.comparisons:,} comparisons, correct: {run.correct}"
    return {"what": what, "seconds": run.seconds}


def baseline_rows() -> list[Row]:
    """Whole runs, once their loops are compiled."""
    wins, rows = equally_spaced(20, 5, 0.25, BradleyTerry()).draw(np.random.default_rng(0)).expected, []
    for name in BASELINES:
        run_baseline(name, wins, 5, 0.01, np.random.default_rng(0))
        began = time.perf_counter()
        made = sum(run_baseline(name, wins, 5, 0.01, np.random.default_rng([1, run])).comparisons for run in range(100))
        seconds = time.perf_counter() - began
        what = f"100 runs of {name}, n=20, k=5, gap 0.25: {made / seconds / 1e6:.0f} million comparisons a second"
        rows.append({"what": what, "seconds": seconds})
    return rows


def measure(quick: bool) -> list[Row]:
    with one_thread():
        rows = [
            ask_and_tell(Bridge(), spaced(100, 0.1), 5, 8_000, 1000),
            ask_and_tell(Bridge(), spaced(1000, 0.01), 10, 20_000, 200),
            ask_and_tell(Sharpen(), spaced(100, 0.1), 5, 1_000, 300),
            ask_and_tell(OracleTracking(), spaced(20, 0.25), 5, 10_000, 300),
            ask_and_tell(OracleTracking(), spaced(100, 0.1), 5, 200_000, 900),
        ]
        rows += [] if quick else [ask_and_tell(OracleTracking(), spaced(500, 0.02), 5, 300_000, 50, even=True)]
        rows += [cold_fit(), *fit_against_peers()]
    rows += baseline_rows()
    rows += stored_study()
    rows += oracle_rows([(20, 5, 0.25)] if quick else [(20, 5, 0.25), (100, 5, 0.1)])
    return rows if quick else [*rows, *many_items(), lazy_run()]


def show(rows: list[Row]) -> None:
    table = Table("what", "seconds", "solves", "times ours", "difference")
    for row in rows:
        cells = [
            f"{row[name]:.3g}" if name in row else "" for name in ("seconds", "solves", "times ours", "difference")
        ]
        table.add_row(row["what"], *cells)
    Console(width=140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the rows here")
    parser.add_argument("--quick", action="store_true", help="leave out what takes minutes")
    options = parser.parse_args()
    rows = measure(options.quick)
    show(rows)
    if options.json:
        about = {"python": platform.python_version(), "numpy": np.__version__, "machine": platform.machine()}
        options.json.write_text(json.dumps({**about, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
