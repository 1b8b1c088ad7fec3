"""What asking every pair equally often would have cost: round-robin played on the fitted utilities.

Same stopping rule, same delta, votes drawn from the family at the maximum-likelihood utilities of this study. Those
tend to be a little too far apart when a study stops, and simulated votes have no ties; both make round-robin look
cheaper than it is. Blocks grow by 5 %, so a run may end up to 5 % late.
"""

from dataclasses import dataclass

import numpy as np

from shortlist.certificates.verdict import Verdict
from shortlist.errors import BadInput
from shortlist.estimate import fit
from shortlist.findings.ballots import Ballots
from shortlist.instances import Utilities
from shortlist.loop import Certificate
from shortlist.pairs import top_k
from shortlist.problem import Problem
from shortlist.simulation import simulate
from shortlist.threads import one_thread

RUNS, GROWTH, SEED = 5, 0.05, 1
MOST_ITEMS = 60  # beyond, a report would wait for it
LIMIT = 1000  # times the study's votes; there a run is given up


@dataclass(frozen=True)
class Saved:
    """Votes of round-robin in each simulated run, fewest first; none if `note` says why."""

    round_robin: tuple[int, ...]
    given_up: int  # runs that had no verdict after 1000 times the votes
    median: float | None
    saved: float | None  # share of the median that was not needed here
    note: str = ""


def round_robin(
    problem: Problem, certificate: Certificate, ballots: Ballots, items: tuple[str, ...], verdict: Verdict[str],
    chosen: float,
) -> Saved:  # fmt: skip
    """`chosen` is the share of votes on questions that the study chose."""
    if verdict.reason != "certified":
        return _none("there is no proved answer yet")
    if chosen < 0.5:
        return _none("most votes were imported, not chosen here")
    if problem.n > MOST_ITEMS:
        return _none(f"not simulated for more than {MOST_ITEMS} items")
    with one_thread():
        theta = fit(problem.family, ballots.tally, problem.bound)
    if {items[i] for i in top_k(theta, problem.k).tolist()} != set(verdict.top):
        return _none("the answer and the utilities that fit best name different items")
    world = Utilities(tuple(theta.tolist()), problem.k, problem.family)
    try:
        played = simulate(
            world, "uniform", RUNS, SEED, delta=problem.delta, rule=certificate, growth=GROWTH,
            bound=min(problem.family.max_bound, 2 * problem.bound), tolerance=problem.tolerance,
            max_votes=LIMIT * verdict.votes,
        )  # fmt: skip
    except BadInput as reason:  # such as a tie at the line
        return _none(str(reason))
    counts = sorted(run.comparisons for run in played.runs)
    median = float(np.median(counts))
    given_up = sum(not run.certified for run in played.runs)
    return Saved(tuple(counts), given_up, median, 1 - verdict.votes / median)


def _none(note: str) -> Saved:
    return Saved((), 0, None, None, note)
