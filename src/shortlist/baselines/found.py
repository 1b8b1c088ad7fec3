"""How a baseline ended."""

from typing import NamedTuple

ENDLESS = 2**63 - 1  # compiled loops count in 64 bits


class Found(NamedTuple):
    """`certified` is False when the budget ran out; `top` is then the best answer so far."""

    top: tuple[int, ...]
    comparisons: int
    certified: bool


def budget(max_votes: int | None) -> int:
    """A number to count against; None is as good as endless."""
    return ENDLESS if max_votes is None else min(max_votes, ENDLESS)
