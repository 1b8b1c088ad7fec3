"""When to stop, and what is then proved. Rules ask, certificates stop; any pair of them works together."""

from collections.abc import Callable

from shortlist.certificates.glr import Glr

CERTIFICATES: dict[str, Callable[..., Glr]] = {"glr": Glr}
