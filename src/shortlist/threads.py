"""Linear algebra on one thread.

Our matrices are small: threads cost more than they bring, much more on a busy machine, and the last bits of a result
would depend on the number of cores.
"""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np  # noqa: F401  # the libraries that hold the threads must be loaded before they are looked for
import scipy.linalg  # noqa: F401
from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]


@cache
def _controller() -> Any:
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """A context in which linear algebra uses one thread; the old setting comes back after it."""
    limits: AbstractContextManager[Any] = _controller().limit(limits=1)
    return limits
