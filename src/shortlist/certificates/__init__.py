"""When to stop, and what is then proved. Rules ask, certificates stop; any pair of them works together."""

from collections.abc import Callable
from typing import Any

from shortlist.certificates.edges import Edges
from shortlist.certificates.glr import Glr
from shortlist.certificates.posterior import Posterior

CERTIFICATES: dict[str, Callable[..., Any]] = {"edges": Edges, "glr": Glr, "posterior": Posterior}
