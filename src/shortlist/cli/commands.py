"""The commands that compute: certify, oracle, simulate."""

import os
from enum import StrEnum
from pathlib import Path

import typer

from shortlist.cli.output import console, print_json, progress_bar
from shortlist.errors import BadProblem


class FamilyName(StrEnum):
    bradley_terry = "bradley-terry"
    gaussian = "gaussian"


class RuleName(StrEnum):
    glr = "glr"


class Gradient(StrEnum):
    sampled = "sampled"
    full = "full"


JSON = typer.Option(False, "--json", help="One JSON object on standard output.")
FAMILY = typer.Option(FamilyName.bradley_terry, help="How comparisons speak.")
SIGMA = typer.Option(1.0, help="Gaussian: noise of a difference.")
K = typer.Option(..., "-k", help="How many items are wanted.")
DELTA = typer.Option(0.05, help="Allowed error.")
LAM = typer.Option(0.1, help="Ridge of the glr threshold.")
TOLERANCE = typer.Option(0.0, help="How much better an outsider may be, in win probability.")


def certify(
    votes: Path = typer.Argument(..., help="CSV file, e.g. first,second,outcome or model_a,model_b,winner."),
    k: int = K,
    delta: float = DELTA,
    rule: RuleName = typer.Option(RuleName.glr, help="Which certificate."),
    family: FamilyName = FAMILY,
    sigma: float = SIGMA,
    bound: float = typer.Option(10.0, help="Largest utility thought possible."),
    lam: float = LAM,
    tolerance: float = TOLERANCE,
    as_json: bool = JSON,
) -> None:
    """What a file of votes proves about the top k."""
    from shortlist import arrays
    from shortlist.certificates.verdict import named
    from shortlist.io.votes import read_votes

    table = read_votes(votes)
    columns = (table.first, table.second, table.outcome)
    size = len(table.items)
    verdict = arrays.certify(
        *columns, k, delta, table.weight, size, family.value, rule.value, bound, lam, sigma, tolerance
    )
    theta = arrays.fit(*columns, table.weight, size, family.value, bound, sigma)
    shown = named(verdict, table.items, theta)
    if as_json:
        utilities = dict(zip(table.items, map(float, theta), strict=True))
        return print_json({**vars(shown), "delta": delta, "k": k, "utilities": utilities})
    out = console()
    out.print(str(shown))
    for side in ("certainly_in", "certainly_out", "undecided"):
        out.print(f"  {side.replace('_', ' ')}: {', '.join(getattr(shown, side)) or '–'}")
    if shown.statistic is not None and shown.threshold is not None:
        out.print(f"  weakest evidence {shown.statistic:.2f} of {shown.threshold:.2f} nats needed")
    if shown.votes_left:
        out.print(f"  about {shown.votes_left:,.0f} more votes at this rate")
    out.print(f"  Guarantee: {shown.guarantee}.")


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
    delta: float = typer.Option(0.01, help="Allowed error."),
    method: str = typer.Option("oracle-tracking", help="oracle-tracking, uniform, oracle or online-oracle."),
    rule: RuleName = typer.Option(RuleName.glr, help="When to stop."),
    runs: int = typer.Option(20, help="How many runs."),
    seed: int = typer.Option(1, help="Seed of the first world and vote to the last."),
    jobs: int = typer.Option(None, help="Processes; all cores if left out. The result is the same for any number."),
    growth: float = typer.Option(0.001, help="Refresh when votes grew by this share; 0 is round by round."),
    alpha: float = typer.Option(0.2, help="oracle-tracking: learning rate t^-alpha."),
    gamma: float = typer.Option(1 / 3, help="oracle-tracking: forced exploration t^-gamma."),
    gradient: Gradient = typer.Option(Gradient.sampled, help="oracle-tracking: one sampled pair, or the exact one."),
    lam: float = LAM,
    every: float = typer.Option(0.0, help="Check for a stop when votes grew by this share."),
    tolerance: float = TOLERANCE,
    max_votes: int = typer.Option(None, help="Vote budget of a run."),
    family: FamilyName = FAMILY,
    sigma: float = SIGMA,
    bound: float = typer.Option(None, help="Largest utility thought possible; chosen from the instance if left out."),
    as_json: bool = JSON,
) -> None:
    """Play a method against a known world and count its comparisons."""
    from shortlist.certificates.glr import Glr
    from shortlist.families import make_family
    from shortlist.instances import make_instance
    from shortlist.simulation import choose_method
    from shortlist.simulation import simulate as play

    world = make_instance(instance, k, n, gap, p, make_family(family.value, sigma))
    asking = choose_method(method, alpha, gamma, gradient.value)
    with progress_bar(f"{method} on {world.name}", runs) as show:
        result = play(
            world, asking, runs, seed, delta=delta, rule=Glr(lam, every), growth=growth,
            jobs=jobs or os.cpu_count() or 1, bound=bound, tolerance=tolerance, max_votes=max_votes, progress=show,
        )  # fmt: skip
    if as_json:
        return print_json(
            {
                **{name: value for name, value in vars(result).items() if name != "runs"},
                "mean_comparisons": result.mean_comparisons,
                "standard_error": result.standard_error,
                "correct": result.correct,
                "runs": [vars(run) for run in result.runs],
            }
        )
    out = console()
    counts = sorted(run.comparisons for run in result.runs)
    out.print(f"{result.method} on {result.instance}, n={result.n}, k={result.k}, δ={result.delta:g}, {runs} runs:")
    out.print(f"  comparisons  mean {result.mean_comparisons:,.0f} ± {result.standard_error:,.0f}", end="")
    out.print(f", from {counts[0]:,} to {counts[-1]:,}")
    out.print(f"  correct      {result.correct} of {runs}")
