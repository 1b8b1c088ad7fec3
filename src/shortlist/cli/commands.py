"""The commands that compute: certify, oracle, simulate, replay."""

import math
import os
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

from shortlist.cli.options import DELTA, FAMILY, JSON, MAP, SIGMA, SKIP_BAD, TOLERANCE, VOTES, FamilyName
from shortlist.cli.output import console, print_json, progress_bar
from shortlist.cli.votes import load_votes, note_order
from shortlist.errors import BadProblem, BadVotes


class RuleName(StrEnum):
    edges = "edges"
    glr = "glr"
    posterior = "posterior"


class Gradient(StrEnum):
    sampled = "sampled"
    full = "full"


K = typer.Option(..., "-k", help="How many items are wanted.")
LAM = typer.Option(0.1, help="Ridge of the glr threshold; leave it unless you know better.")
METHOD = typer.Option(
    "bridge",
    help="bridge, oracle-tracking, track-and-stop, uniform, oracle or online-oracle; or a baseline that stops by "
    "itself: seeks, seeks-v2, active-ranking, active-ranking-tight or borda-lucb.",
)
RULE = typer.Option(
    None, help="When to stop; left out, edges for bridge and glr for the paper's methods. Not for baselines."
)
SCALE = typer.Option(1.5, help="posterior: spread of utilities thought likely.")


def certify(
    votes: Path = VOTES,
    k: int = K,
    delta: float = DELTA,
    rule: RuleName = typer.Option(RuleName.edges, help="Which certificate."),
    family: FamilyName = FAMILY,
    sigma: float = SIGMA,
    bound: float = typer.Option(10.0, help="Largest utility thought possible."),
    lam: float = LAM,
    tolerance: float = TOLERANCE,
    columns: list[str] = MAP,
    skip_bad: bool = SKIP_BAD,
    as_json: bool = JSON,
) -> None:
    """What a file of votes proves about the top k."""
    import numpy as np

    from shortlist import arrays
    from shortlist.certificates.verdict import named
    from shortlist.families import make_family

    speaks = make_family(family.value, sigma)
    table = load_votes(votes, speaks, columns, skip_bad)
    if rule is RuleName.edges:
        note_order(votes, table, speaks)
    rows = (table.first, table.second, table.outcome)
    size = len(table.items)
    verdict = arrays.certify(
        *rows, k, delta, table.weight, size, family.value, rule.value, bound, lam, sigma, tolerance
    )
    theta = arrays.fit(*rows, table.weight, size, family.value, bound, sigma)
    shown = named(verdict, table.items, theta)
    asks = [] if verdict.done else arrays.ask_next(*rows, k, delta, table.weight, size, family.value, sigma, tolerance)
    next_pairs = [[table.items[i], table.items[j], votes] for i, j, votes in asks]
    if as_json:
        utilities = dict(zip(table.items, map(float, theta), strict=True))
        likely = arrays.chances(*rows, k, table.weight, size, family.value, sigma)
        chances = dict(zip(table.items, map(float, likely), strict=True))
        found = {**vars(shown), "delta": delta, "k": k, "utilities": utilities}
        found |= {"chances": chances, "ask_next": next_pairs, "rows_left_out": len(table.left_out)}
        return print_json(found)
    counts = np.bincount(table.first, table.weight, size) + np.bincount(table.second, table.weight, size)
    likely = arrays.chances(*rows, k, table.weight, size, family.value, sigma)
    _show_verdict(shown, table.items, theta, counts, likely)
    _show_next(next_pairs)


def _show_verdict(verdict: Any, items: tuple[str, ...], theta: Any, counts: Any, likely: Any) -> None:
    out = console()
    out.print(str(verdict))
    if verdict.threshold is not None and not math.isfinite(verdict.threshold):
        out.print("  Some items were never compared with the others, directly or in a chain: nothing can be proved.")
    elif not verdict.done:
        left = verdict.votes_left or math.inf
        more = f"About {left:,.0f} more votes, well placed" if left < 1e7 else "Too close to tell; try a --tolerance"
        out.print(f"  {more}.")
    out.print(f"  Guarantee: {verdict.guarantee}.\n")
    marks = dict.fromkeys(verdict.certainly_in, "in") | dict.fromkeys(verdict.certainly_out, "out")
    width = max(len("item"), *map(len, items))
    out.print(f"  {'item':<{width}}  utility    votes   chance  certainly")
    for place, i in enumerate(sorted(range(len(items)), key=lambda i: -theta[i])):
        if place == len(verdict.top):
            out.print("  " + "-" * (width + 37))
        figures = f"{theta[i]:+7.2f}  {counts[i]:>7,.0f}  {likely[i]:>7.1%}"
        out.print(f"  {items[i]:<{width}}  {figures}  {marks.get(items[i], '')}".rstrip())
    out.print("  chance: of being in the top under a normal prior on utilities; an estimate, not a proof")


def _show_next(pairs: list[list[Any]]) -> None:
    if pairs:
        console().print("\n  To ask next, with about how many votes each still needs:")
    for first, second, votes in pairs[:8]:
        console().print(f"    {first} against {second}: {votes:,.0f}")
    if len(pairs) > 8:
        console().print(f"    and {len(pairs) - 8} more pairs")


def oracle(
    utilities: str = typer.Option(..., help="True utilities, separated by commas."),
    k: int = K,
    family: FamilyName = FAMILY,
    sigma: float = SIGMA,
    bound: float = typer.Option(None, help="Largest utility thought possible; chosen from the utilities if left out."),
    gap: float = typer.Option(0.01, help="Relative width of the bracket to reach."),
    as_json: bool = JSON,
) -> None:
    """The fewest comparisons any method can need: the information rate and the best allocation."""
    from shortlist.oracle import solve_oracle
    from shortlist.pairs import all_pairs

    try:
        theta = [float(value) for value in utilities.split(",")]
    except ValueError:
        raise BadProblem(f"utilities {utilities!r} are not numbers separated by commas, e.g. 1,0.5,-1.5") from None
    solved = solve_oracle(theta, k, family.value, sigma, bound, gap)
    first, second = all_pairs(len(theta))
    rows = list(zip(first.tolist(), second.tolist(), solved.weights.tolist(), strict=True))
    bounds = {f"{delta:g}": solved.lower_bound(delta) for delta in (0.1, 0.05, 0.01, 1e-3, 1e-6)}
    if as_json:
        return print_json(
            {"rate": solved.rate, "rate_upper": solved.rate_upper, "weights": rows, "lower_bounds": bounds}
        )
    out = console()
    out.print(f"Information rate Γ* between {solved.rate:.6g} and {solved.rate_upper:.6g} nats per comparison.")
    out.print("No method with error at most δ can need fewer comparisons on average than")
    for delta, comparisons in bounds.items():
        out.print(f"  δ = {delta:>6}: {comparisons:,.0f}")
    out.print("Largest shares of the best allocation:")
    for i, j, w in sorted(rows, key=lambda row: -row[2])[:10]:
        out.print(f"  {i} against {j}: {w:.1%}")


def simulate(
    instance: str = typer.Option(
        ..., help="equally-spaced, random-utilities, sst, constant, utilities:FILE or matrix:FILE."
    ),
    k: int = K,
    n: int = typer.Option(None, "-n", help="How many items."),
    gap: float = typer.Option(0.1, help="equally-spaced: step between utilities."),
    p: float = typer.Option(0.6, help="constant: win probability of the better item."),
    delta: float = typer.Option(0.01, help="Allowed probability of a wrong answer."),
    method: str = METHOD,
    rule: RuleName = RULE,
    runs: int = typer.Option(20, help="How many runs."),
    seed: int = typer.Option(1, help="Seed; the same seed gives the same runs."),
    jobs: int = typer.Option(None, min=1, help="Processes; all cores if left out. Results do not depend on it."),
    growth: float = typer.Option(0.001, help="Refresh when votes grew by this share; 0 is round by round."),
    alpha: float = typer.Option(0.2, help="oracle-tracking: learning rate t^-alpha."),
    gamma: float = typer.Option(1 / 3, help="oracle-tracking: forced exploration t^-gamma."),
    gradient: Gradient = typer.Option(Gradient.sampled, help="oracle-tracking: one sampled pair, or the exact one."),
    lam: float = LAM,
    scale: float = SCALE,
    every: float = typer.Option(None, help="Check for a stop when votes grew by this share."),
    tolerance: float = TOLERANCE,
    max_votes: int = typer.Option(None, help="Vote budget of a run."),
    family: FamilyName = FAMILY,
    sigma: float = SIGMA,
    bound: float = typer.Option(None, help="Largest utility thought possible; chosen from the instance if left out."),
    as_json: bool = JSON,
) -> None:
    """Play a method against a known world and count its comparisons."""
    from shortlist.families import make_family
    from shortlist.io.instances import make_instance
    from shortlist.rules.oracle_tracking import OracleTracking
    from shortlist.simulation import simulate as play

    world = make_instance(instance, k, n, gap, p, make_family(family.value, sigma))
    learner = OracleTracking(alpha, gamma, gradient.value)
    cores = (os.cpu_count() or 1) if jobs is None else jobs
    stopping = _stopping(method, rule, lam, scale, every)
    with progress_bar(f"{method} on {world.name}", runs) as show:
        result = play(
            world, method, runs, seed, delta=delta, rule=stopping, learner=learner, growth=growth, jobs=cores,
             bound=bound, tolerance=tolerance, max_votes=max_votes, progress=show,
        )  # fmt: skip
    if as_json:
        return print_json(_as_json(result))
    _show_runs(result)


def _stopping(method: str, rule: RuleName | None, lam: float, scale: float, every: float | None) -> Any:
    from shortlist.baselines import BASELINES
    from shortlist.certificates import CERTIFICATES
    from shortlist.rules import default_rule

    if method in BASELINES:
        return rule  # refused by simulate unless it is None
    name = default_rule(method) if rule is None else rule.value
    options: dict[str, Any] = {"glr": {"lam": lam}, "posterior": {"scale": scale}}.get(name, {})
    return CERTIFICATES[name](**options, **({} if every is None else {"every": every}))


def _as_json(result: Any) -> dict[str, Any]:
    return {
        **{name: value for name, value in vars(result).items() if name != "runs"},
        "mean_comparisons": result.mean_comparisons,
        "standard_error": result.standard_error,
        "correct": result.correct,
        "runs": [vars(run) for run in result.runs],
    }


def _show_runs(result: Any) -> None:
    out, runs = console(), len(result.runs)
    counts = sorted(run.comparisons for run in result.runs)
    certified = sum(run.certified for run in result.runs)
    out.print(f"{result.method} on {result.instance}, n={result.n}, k={result.k}, δ={result.delta:g}")
    spread = f" ± {result.standard_error:,.0f}, from {counts[0]:,} to {counts[-1]:,}" if runs > 1 else ""
    out.print(f"  comparisons  {result.mean_comparisons:,.0f}{spread}")
    out.print(f"  certified    {certified} of {runs}")
    out.print(f"  correct      {result.correct} of {runs}")


def replay(
    votes: Path = VOTES,
    k: int = K,
    delta: float = DELTA,
    method: str = METHOD,
    rule: RuleName = RULE,
    runs: int = typer.Option(20, help="How many runs."),
    seed: int = typer.Option(1, help="Seed; the same seed gives the same runs."),
    jobs: int = typer.Option(None, min=1, help="Processes; all cores if left out."),
    growth: float = typer.Option(0.001, help="Refresh when votes grew by this share; 0 is round by round."),
    tolerance: float = TOLERANCE,
    max_votes: int = typer.Option(None, help="Vote budget of a run; the file's own number of votes if left out."),
    only_recorded: bool = typer.Option(
        False, "--only-recorded", help="Never ask a pair without votes; else the file's own fit answers it."
    ),
    lam: float = LAM,
    scale: float = SCALE,
    family: FamilyName = FAMILY,
    sigma: float = SIGMA,
    columns: list[str] = MAP,
    skip_bad: bool = SKIP_BAD,
    as_json: bool = JSON,
) -> None:
    """How many votes a method would have needed, drawing the recorded votes of a pair with replacement."""
    import numpy as np

    from shortlist.families import make_family
    from shortlist.instances import Recorded
    from shortlist.pairs import n_pairs
    from shortlist.simulation import simulate as play

    speaks = make_family(family.value, sigma)
    table = load_votes(votes, speaks, columns, skip_bad)
    if np.any(table.weight != 1):
        raise BadVotes(f"{votes} counts votes in a weight column; replay draws single votes")
    world = Recorded(table.first, table.second, table.outcome, len(table.items), k, speaks, not only_recorded)
    budget = len(table) if max_votes is None else max_votes
    cores = (os.cpu_count() or 1) if jobs is None else jobs
    with progress_bar(f"{method} on {votes.name}", runs) as show:
        result = play(
            world, method, runs, seed, delta=delta, rule=_stopping(method, rule, lam, scale, None), growth=growth,
            jobs=cores, tolerance=tolerance, max_votes=budget, progress=show,
        )  # fmt: skip

    def names(top: Any) -> list[str]:
        return [table.items[i] for i in top]

    whole = names(world.draw(np.random.default_rng(0)).top)
    gaps = n_pairs(world.n) - len(world.recorded_pairs)
    if as_json:
        found = _as_json(result)
        found["runs"] = [{**vars(run), "top": names(run.top)} for run in result.runs]
        found |= {"file_top": whole, "file_votes": len(table), "pairs_without_votes": gaps}
        return print_json({**found, "rows_left_out": len(table.left_out)})
    _show_runs(result)
    ended = [run for run in result.runs if not run.certified]
    out = console()
    out.print(f"  All {len(table):,} recorded votes together put on top: {', '.join(whole)}.")
    if gaps:
        how = "were never asked" if only_recorded else "were answered by the utilities fitted to the file"
        out.print(f"  {gaps} pairs have no recorded votes and {how}.")
    if ended:
        likely = max({run.top for run in ended}, key=[run.top for run in ended].count)
        out.print(
            f"  {len(ended)} runs ended on the budget of {budget:,} votes with the best answer so far, most often "
            f"{', '.join(names(likely))}: near ties at the line. A --tolerance would end them."
        )
