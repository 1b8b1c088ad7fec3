"""Linear algebra for small symmetric positive definite matrices, on one thread.

Our matrices are small, so several threads would be slower, much slower on a busy machine, and the last bits of a result
would depend on the number of cores. No function here changes its arguments.
"""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import lapack
from threadpoolctl import ThreadpoolController

from shortlist.core.pairs import Floats


@cache
def _controller() -> Any:
    return ThreadpoolController()  # created after numpy and scipy, so that it finds their libraries


def one_thread() -> AbstractContextManager[Any]:
    """A context in which linear algebra uses one thread; the old setting is restored after it."""
    limits: AbstractContextManager[Any] = _controller().limit(limits=1)
    return limits


def cholesky(matrix: Floats) -> Floats | None:
    """The lower Cholesky factor, or None if the matrix is not positive definite in floating point."""
    factor, info = lapack.dpotrf(matrix.T, lower=1)
    return np.asarray(factor, dtype=np.float64) if info == 0 else None


def solve(matrix: Floats, right: Floats) -> tuple[Floats, Floats] | None:
    """The solution of matrix @ x = right and the Cholesky factor, or None if the matrix is not positive definite."""
    factor, solution, info = lapack.dposv(matrix.T, right, lower=1)
    return (np.asarray(solution), np.asarray(factor)) if info == 0 else None


def inverse(factor: Floats) -> Floats:
    """The inverse of the matrix with this Cholesky factor; only the factor's lower triangle is read."""
    lower, _ = lapack.dpotri(factor, lower=1)
    whole: Floats = np.tril(lower) + np.tril(lower, -1).T
    return whole
