"""Commands that need no stored study: on a vote file (certify, votes, replay) and on simulated items (simulate,
oracle)."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import typer

from shortlist.baselines import BASELINES
from shortlist.cli.options import (
    ADVANCED,
    DELTA,
    FAMILY,
    FILE_STOPPING,
    JSON,
    MAP,
    SIGMA,
    SKIP_BAD,
    STOPPING,
    TOLERANCE,
    UNIT,
    VOTES,
    K,
    console,
    exit_with,
    load_single_votes,
    load_votes,
    print_items,
    print_json,
    print_verdict,
    progress_bar,
    say,
    working,
)
from shortlist.core import arrays
from shortlist.core.families import make_family
from shortlist.core.oracle import Oracle, solve_oracle
from shortlist.core.pairs import Floats, all_pairs, n_pairs
from shortlist.core.problem import Problem
from shortlist.core.sampling import SAMPLING_RULES, default_stopping
from shortlist.core.sampling.tracking import OracleTracking
from shortlist.core.stopping import STOPPING_RULES
from shortlist.core.stopping.base import StoppingRule, named
from shortlist.errors import BadProblem
from shortlist.simulation import run as simulation
from shortlist.simulation.run import SIMULATED, Replay, Simulation
from shortlist.simulation.run import replay as replay_votes
from shortlist.simulation.worlds import INSTANCES, Recorded, make_instance
from shortlist.study.proof import certify_proof, is_proof
from shortlist.votes.formats import read_map
from shortlist.votes.read import inspect_votes
from shortlist.votes.table import ROW, VoteTable, report_units

LEVELS = (0.1, 0.05, 0.01, 1e-3, 1e-6)  # of delta, for the lower bounds
FEW = 8  # pairs to ask next that are shown

BOUND = typer.Option(
    None, help="Largest rating considered possible. Default: chosen from the items.", rich_help_panel=ADVANCED
)
LAM = typer.Option(
    0.1, help="Stopping rule glr: ridge parameter of its threshold. Rarely needs changing.", rich_help_panel=ADVANCED
)
SCALE = typer.Option(
    1.5, help="Stopping rule posterior: standard deviation of the prior on ratings.", rich_help_panel=ADVANCED
)
RUNS = typer.Option(20, help="Number of independent runs.")
SEED = typer.Option(1, help="Random seed. The same seed gives the same runs.")
JOBS = typer.Option(None, min=1, help="Number of processes. Default: all cores. Results do not depend on it.")
GROWTH = typer.Option(
    0.001,
    help="Update the sampling rule each time the votes grow by this share. 0 updates it after every vote.",
    rich_help_panel=ADVANCED,
)
METHOD = typer.Option(
    "bridge",
    help=f"Method: a sampling rule ({', '.join((*SAMPLING_RULES, *simulation.KNOWING))}), or a baseline that has its "
    f"own stopping rule ({', '.join(BASELINES)}).",
)


def certify(
    votes: Path = VOTES,
    k: int | None = typer.Option(None, "-k", help="How many items to find. Needed unless the file is a proof."),
    delta: float = DELTA,
    stopping: str = FILE_STOPPING,
    family: str = FAMILY,
    sigma: float = SIGMA,
    bound: float = typer.Option(10.0, help="Largest rating considered possible.", rich_help_panel=ADVANCED),
    lam: float = LAM,
    tolerance: float = TOLERANCE,
    columns: list[str] | None = MAP,
    unit: str | None = UNIT,
    skip_bad: bool = SKIP_BAD,
    as_json: bool = JSON,
) -> None:
    """Show what a vote file proves about the top k.

    Prints the best answer so far, its error bound, which items are proved to be in or out, and which pairs to compare
    next. Of a proof (`shortlist export --proof`) it prints the verdict of its study, if it can be checked and replayed.
    Exit code 3 if the answer is not proved.
    """
    if is_proof(votes):
        with working("Checking the proof"):
            proved = certify_proof(votes)
        print_json(proved.to_dict()) if as_json else print_verdict(proved)
        return exit_with(proved)
    if k is None:
        raise BadProblem("how many items are to be found? Give -k")
    kind = make_family(family, sigma)
    table = load_votes(votes, kind, columns, skip_bad, unit)
    rows, size, units = (table.first, table.second, table.outcome), len(table.items), table.unit
    with working("Computing what the votes prove"):
        found = arrays.certify(*rows, k, delta, table.weight, size, kind, stopping, bound, lam, sigma, tolerance, units)
        theta = arrays.fit(*rows, table.weight, size, kind, bound, sigma)
        chances = _by_item(table, arrays.chances(*rows, k, table.weight, size, kind, sigma))
        asks = [] if found.done else arrays.ask_next(*rows, k, delta, table.weight, size, kind, sigma, tolerance, units)
    verdict, ratings = named(found, table.items, theta), _by_item(table, theta)
    pairs = [(table.items[i], table.items[j], count) for i, j, count in asks]
    if as_json:
        own = {"k": k, "delta": delta, "utilities": ratings, "chances": chances, "ask_next": pairs}
        taken = report_units(table)
        own |= {"rows_left_out": len(table.left_out), "units": {**taken._asdict(), "claim": taken.claim}}
        print_json({**verdict.to_dict(), **own})
    else:
        print_verdict(verdict)
        _print_units(table)
        print_items(verdict, ratings, _votes_by_item(table), chances)
        _print_next(pairs)
    exit_with(verdict)


def _print_units(table: VoteTable) -> None:
    """Which rows weigh as one vote together, and what is proved then."""
    units = report_units(table)
    if units.name != ROW or units.units < units.rows:
        say(f"Unit: {units.name}. {str(units)[0].upper()}{str(units)[1:]}. {units.claim}.")


def _by_item(table: VoteTable, values: Floats) -> dict[str, float]:
    return dict(zip(table.items, map(float, values), strict=True))


def _votes_by_item(table: VoteTable) -> dict[str, float]:
    first, second = (np.bincount(end, table.weight, len(table.items)) for end in (table.first, table.second))
    return _by_item(table, np.asarray(first + second, np.float64))


def _print_next(pairs: Sequence[tuple[str, str, float]]) -> None:
    out = console()
    if pairs:
        out.print("\n  Pairs to compare next, with the estimated number of votes for a proof:")
    for first, second, votes in pairs[:FEW]:
        out.print(f"    {first} and {second}: {votes:,.0f}")
    if len(pairs) > FEW:
        out.print(f"    and {len(pairs) - FEW} more pairs")


def votes(
    votes: Path = VOTES,
    columns: list[str] | None = MAP,
    unit: str | None = UNIT,
    family: str = FAMILY,
    sigma: float = SIGMA,
    as_json: bool = JSON,
) -> None:
    """Show how a vote file is parsed.

    Prints its format, its columns, the counts, which rows count as one vote together, and every row that could not be
    read.
    """
    reading = inspect_votes(votes, make_family(family, sigma), columns=read_map(columns or ()), unit=unit)
    print_json(reading.as_dict()) if as_json else console().print(str(reading))


def replay(
    votes: Path = VOTES,
    k: int = K,
    delta: float = DELTA,
    method: str = METHOD,
    stopping: str | None = STOPPING,
    runs: int = RUNS,
    seed: int = SEED,
    jobs: int | None = JOBS,
    growth: float = GROWTH,
    tolerance: float = TOLERANCE,
    max_votes: int | None = typer.Option(None, help="Vote budget of a run. Default: the number of votes in the file."),
    only_recorded: bool = typer.Option(
        False,
        "--only-recorded",
        help="Never ask a pair that has no recorded votes. Default: the ratings fitted to the file answer it.",
    ),
    lam: float = LAM,
    scale: float = SCALE,
    family: str = FAMILY,
    sigma: float = SIGMA,
    columns: list[str] | None = MAP,
    skip_bad: bool = SKIP_BAD,
    as_json: bool = JSON,
) -> None:
    """Estimate how many votes a method would have needed on a vote file.

    This is a simulation: each question about a pair is answered by one of the recorded votes on it, drawn at random
    with replacement. `shortlist certify` shows what the file itself says.
    """
    kind = make_family(family, sigma)
    table = load_single_votes(votes, kind, columns, skip_bad, "replay")
    world = Recorded(table.first, table.second, table.outcome, len(table.items), k, kind, not only_recorded)
    budget = len(table) if max_votes is None else max_votes
    problem = Problem(world.n, k, delta, world.family, tolerance=tolerance)
    rule = _stopping_rule(method, stopping, problem, lam, scale, None)
    with progress_bar(f"{method} on {votes.name}", runs) as show:
        result = replay_votes(
            world, method, runs, seed, delta=delta, stopping=rule, growth=growth, jobs=_cores(jobs),
            tolerance=tolerance, max_votes=budget, progress=show,
        )  # fmt: skip
    if as_json:
        return print_json(_replay_json(result, table, world))
    _print_replay(result, table, world, budget)


def _names(table: VoteTable, top: Sequence[int]) -> list[str]:
    return [table.items[i] for i in top]


def _file_top(table: VoteTable, world: Recorded) -> list[str]:
    """The top k by all recorded votes."""
    return _names(table, world.draw(np.random.default_rng(0)).top)


def _pairs_without_votes(world: Recorded) -> int:
    return n_pairs(world.n) - len(world.recorded_pairs)


def _replay_json(result: Replay, table: VoteTable, world: Recorded) -> Mapping[str, object]:
    return {
        **vars(result),
        "mean_votes": result.mean_votes,
        "standard_error": result.standard_error,
        "runs": [{**vars(run), "top": _names(table, run.top)} for run in result.runs],
        "file_top": _file_top(table, world),
        "file_votes": len(table),
        "pairs_without_votes": _pairs_without_votes(world),
        "rows_left_out": len(table.left_out),
    }


def _print_replay(result: Replay, table: VoteTable, world: Recorded, budget: int) -> None:
    out, gaps, counts = console(), _pairs_without_votes(world), sorted(run.votes for run in result.runs)
    out.print(f"{SIMULATED[0].upper()}{SIMULATED[1:]}.")
    out.print(f"{result.method} on recorded votes, n={result.n}, k={result.k}, δ={result.delta:g}")
    out.print(f"  votes             {_mean(result.mean_votes, result.standard_error, counts)}")
    out.print(f"  enough votes      {sum(run.stopped for run in result.runs)} of {len(counts)}")
    out.print(f"  same as the file  {sum(run.agrees for run in result.runs)} of {len(counts)}")
    say(f"Top {world.k} by all {len(table):,} recorded votes: {', '.join(_file_top(table, world))}.")
    if gaps:
        how = "were answered by the ratings fitted to the file" if world.fill else "were never asked"
        say(f"{gaps} pairs have no recorded votes and {how}.")
    ended = [run.top for run in result.runs if not run.stopped]
    if ended:
        usual = max(set(ended), key=ended.count)
        say(
            f"{len(ended)} of {len(result.runs)} runs would have needed more than the budget of {budget:,} votes. "
            f"Their most frequent answer: {', '.join(_names(table, usual))}. Set --tolerance to accept near ties at "
            "the cutoff."
        )


def simulate(
    instance: str = typer.Option(..., help=f"Simulated items: {', '.join(INSTANCES)}."),
    k: int = K,
    n: int | None = typer.Option(None, "-n", help="Number of items."),
    gap: float = typer.Option(0.1, help="equally-spaced: difference between neighbouring ratings."),
    p: float = typer.Option(0.6, help="constant: probability that the better item wins."),
    delta: float = typer.Option(0.01, help="Allowed probability that the answer is wrong."),
    method: str = METHOD,
    stopping: str | None = STOPPING,
    runs: int = RUNS,
    seed: int = SEED,
    jobs: int | None = JOBS,
    growth: float = GROWTH,
    alpha: float = typer.Option(0.2, help="oracle-tracking: the learning rate is t^-alpha.", rich_help_panel=ADVANCED),
    gamma: float = typer.Option(
        1 / 3, help="oracle-tracking: the share of forced exploration is t^-gamma.", rich_help_panel=ADVANCED
    ),
    gradient: str = typer.Option(
        "sampled", help="oracle-tracking: sampled (from one pair) or full (exact).", rich_help_panel=ADVANCED
    ),
    lam: float = LAM,
    scale: float = SCALE,
    every: float | None = typer.Option(
        None, help="Check the stopping rule each time the votes grow by this share.", rich_help_panel=ADVANCED
    ),
    tolerance: float = TOLERANCE,
    max_votes: int | None = typer.Option(None, help="Vote budget of a run."),
    family: str = FAMILY,
    sigma: float = SIGMA,
    bound: float | None = BOUND,
    as_json: bool = JSON,
) -> None:
    """Run a method on simulated items and count its comparisons."""
    world = make_instance(instance, k, n, gap, p, make_family(family, sigma))
    learner = OracleTracking(alpha, gamma, gradient)  # type: ignore[arg-type]  # it checks the word itself
    problem = Problem(world.n, world.k, delta, world.family, tolerance=tolerance)
    rule = _stopping_rule(method, stopping, problem, lam, scale, every)
    with progress_bar(f"{method} on {world.name}", runs) as show:
        result = simulation.simulate(
            world, method, runs, seed, delta=delta, stopping=rule, learner=learner, growth=growth, jobs=_cores(jobs),
            bound=bound, tolerance=tolerance, max_votes=max_votes, progress=show,
        )  # fmt: skip
    print_json(_simulation_json(result)) if as_json else _print_runs(result)


def _cores(jobs: int | None) -> int:
    return (os.cpu_count() or 1) if jobs is None else jobs


def _stopping_rule(
    method: str, stopping: str | None, problem: Problem, lam: float, scale: float, every: float | None
) -> StoppingRule | str | None:
    """The rule with its options; what `simulate` refuses is passed on as it is."""
    name = default_stopping(method, problem) if stopping is None else stopping
    if method in BASELINES or name not in STOPPING_RULES:
        return stopping
    options = {"glr": {"lam": lam}, "posterior": {"scale": scale}}.get(name, {})
    if every is not None:
        options["every"] = every
    rule: StoppingRule = STOPPING_RULES[name](**options)
    return rule


def _simulation_json(result: Simulation) -> dict[str, object]:
    return {
        **vars(result),
        "mean_comparisons": result.mean_comparisons,
        "standard_error": result.standard_error,
        "correct": result.correct,
        "runs": [vars(run) for run in result.runs],
    }


def _print_runs(result: Simulation) -> None:
    out, runs = console(), len(result.runs)
    counts = sorted(run.comparisons for run in result.runs)
    proved = sum(run.certified for run in result.runs)
    out.print(f"{result.method} on {result.instance}, n={result.n}, k={result.k}, δ={result.delta:g}")
    out.print(f"  comparisons  {_mean(result.mean_comparisons, result.standard_error, counts)}")
    out.print(f"  proved       {proved} of {runs}")
    out.print(f"  correct      {result.correct} of {runs}")


def _mean(mean: float, standard_error: float, counts: Sequence[int]) -> str:
    spread = f" ± {standard_error:,.0f}, from {counts[0]:,} to {counts[-1]:,}" if len(counts) > 1 else ""
    return f"{mean:,.0f}{spread}"


def oracle(
    utilities: str = typer.Option(..., help="True ratings of the items, separated by commas: 1,0.5,-1.5."),
    k: int = K,
    family: str = FAMILY,
    sigma: float = SIGMA,
    bound: float | None = BOUND,
    gap: float = typer.Option(
        0.01, help="Stop when the information rate is known to this relative precision.", rich_help_panel=ADVANCED
    ),
    as_json: bool = JSON,
) -> None:
    """Compute the fewest comparisons any method needs, and where they go.

    Solves for the information rate per comparison when the ratings are known, which gives a lower bound on the
    expected number of comparisons, and for the best share of comparisons for each pair.
    """
    theta = _numbers(utilities)
    with working("Solving for the best allocation"):
        solved = solve_oracle(theta, k, family, sigma, bound, gap)
    first, second = all_pairs(len(theta))
    weights = list(zip(first.tolist(), second.tolist(), solved.weights.tolist(), strict=True))
    bounds = {f"{delta:g}": solved.lower_bound(delta) for delta in LEVELS}
    if as_json:
        rates = {"rate": solved.rate, "rate_upper": solved.rate_upper}
        return print_json({**rates, "weights": weights, "lower_bounds": bounds})
    _print_oracle(solved, bounds, weights)


def _numbers(utilities: str) -> list[float]:
    try:
        return [float(value) for value in utilities.split(",")]
    except ValueError:
        raise BadProblem(
            f"--utilities {utilities!r} is not a list of numbers; separate them by commas: 1,0.5,-1.5"
        ) from None


def _print_oracle(solved: Oracle, bounds: Mapping[str, float], weights: Sequence[tuple[int, int, float]]) -> None:
    out = console()
    out.print(f"Information rate Γ* between {solved.rate:.6g} and {solved.rate_upper:.6g} nats per comparison.")
    out.print("Any method that is wrong with probability at most δ needs on average at least this many comparisons:")
    for delta, comparisons in bounds.items():
        out.print(f"  δ = {delta:>6}: {comparisons:,.0f}")
    out.print("Pairs with the largest share of comparisons in the best allocation:")
    for i, j, share in sorted(weights, key=lambda row: -row[2])[:10]:
        out.print(f"  {i} and {j}: {share:.1%}")
