"""The core on plain arrays: item numbers, outcomes seen from the first item's side, optional weights."""

from numpy.typing import ArrayLike

from shortlist import estimate
from shortlist.certificates import CERTIFICATES
from shortlist.certificates.verdict import Verdict
from shortlist.errors import BadProblem
from shortlist.families import Family, make_family
from shortlist.pairs import Floats
from shortlist.problem import Problem
from shortlist.tally import tally_votes
from shortlist.threads import one_thread


def fit(
    first: ArrayLike,
    second: ArrayLike,
    outcome: ArrayLike,
    weight: ArrayLike | None = None,
    n: int | None = None,
    family: str | Family = "bradley-terry",
    bound: float = 10.0,
    sigma: float = 1.0,
) -> Floats:
    """The maximum-likelihood utilities on {sum zero, |theta| <= bound}; a never-beaten item sits on the bound.

    A row of weight w stands for w votes of that mean outcome. `sigma` is the Gaussian family's noise.
    """
    speaks = make_family(family, sigma)
    tally = tally_votes(speaks, first, second, outcome, weight, n)
    problem = Problem(tally.n, 1, 0.5, speaks, bound)  # checks the bound
    with one_thread():
        return estimate.fit(speaks, tally, problem.bound)


def certify(
    first: ArrayLike,
    second: ArrayLike,
    outcome: ArrayLike,
    k: int,
    delta: float = 0.05,
    weight: ArrayLike | None = None,
    n: int | None = None,
    family: str | Family = "bradley-terry",
    rule: str = "glr",
    bound: float = 10.0,
    lam: float = 0.1,
    sigma: float = 1.0,
    tolerance: float = 0.0,
) -> Verdict[int]:
    """What these votes prove about the top k. rule="glr" also fills `statistic` (min Z) and `threshold` (beta)."""
    if not isinstance(rule, str) or rule not in CERTIFICATES:
        raise BadProblem(f"unknown rule {rule!r}; choose one of {', '.join(CERTIFICATES)}")
    speaks = make_family(family, sigma)
    tally = tally_votes(speaks, first, second, outcome, weight, n)
    problem = Problem(tally.n, k, delta, speaks, bound, tolerance)
    with one_thread():
        theta_hat = estimate.fit(speaks, tally, bound)
        return CERTIFICATES[rule](lam=lam).examine(problem, tally, theta_hat)
