"""Stopping rules: when to stop, and what is then proved. Any of them works with any sampling rule."""

from collections.abc import Callable
from typing import Any

from shortlist.core.stopping.cuts import Cuts
from shortlist.core.stopping.edges import Edges
from shortlist.core.stopping.glr import Glr
from shortlist.core.stopping.posterior import Posterior

STOPPING_RULES: dict[str, Callable[..., Any]] = {
    "edges": Edges,
    "cuts": Cuts,
    "glr": Glr,
    "posterior": Posterior,
}
