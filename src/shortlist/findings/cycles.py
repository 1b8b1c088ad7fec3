"""Do preferences go in circles, and do outsiders beat members of the answer?

Every count comes with what the fit alone would show by chance, so that nobody reads noise.
"""

from dataclasses import dataclass

import numpy as np

from shortlist.findings.evidence import Directions
from shortlist.pairs import Flags, Floats

ERROR = 0.05  # of calling anything sure, over all triples or pairs together
SHOWN = 5


@dataclass(frozen=True)
class Cycle:
    """items[0] beat items[1], who beat items[2], who beat items[0]; votes won and lost in each."""

    items: tuple[str, str, str]
    won: tuple[float, float, float]
    lost: tuple[float, float, float]
    p_value: float  # the largest of the three


@dataclass(frozen=True)
class Cycles:
    """Over the triples of which all three pairs have votes."""

    triples: int
    found: int  # by majority
    expected: float  # by majority, if votes followed the fit
    sure: int  # with error 5 % over all triples together
    strongest: tuple[Cycle, ...]


@dataclass(frozen=True)
class Upset:
    """An outsider ahead of a member of the answer in their direct votes."""

    outsider: str
    member: str
    won: float
    lost: float
    p_value: float


@dataclass(frozen=True)
class Upsets:
    """Over the pairs across the line that have votes."""

    pairs: int
    found: int
    expected: float
    sure: int
    strongest: tuple[Upset, ...]


def cycles(items: tuple[str, ...], seen: Directions) -> Cycles:
    """A cycle is sure if all three directions are: its p-value is the largest of theirs, times all the triples.

    With a 0/1 matrix A of who is ahead, trace(A^3) / 3 counts cycles; with probabilities it is their expectation.
    """
    compared = (seen.wins + seen.wins.T > 0) | seen.ahead | seen.ahead.T
    triples = round(_trace_of_cube(compared) / 6)
    limit = ERROR / max(1, 2 * triples)
    sure = _trace_of_cube(seen.p_value <= limit) / 3
    found, expected = _trace_of_cube(seen.ahead) / 3, _trace_of_cube(seen.expected) / 3
    return Cycles(triples, round(found), expected, round(sure), _strongest(items, seen))


def upsets(items: tuple[str, ...], seen: Directions, inside: Flags) -> Upsets:
    """The guarantee supposes that no outsider is expected to beat a member; this is what direct votes say of it."""
    out, member = np.flatnonzero(~inside), np.flatnonzero(inside)
    square = np.ix_(out, member)
    p_value, ahead = seen.p_value[square], seen.ahead[square]
    pairs = int(np.count_nonzero(seen.wins[square] + seen.wins[np.ix_(member, out)].T))
    worst = np.argsort(np.where(ahead, p_value, 2.0), axis=None, kind="stable")[:SHOWN]
    rows = [(int(out[a]), int(member[b])) for a, b in zip(*np.unravel_index(worst, ahead.shape), strict=True)]
    strongest = tuple(
        Upset(items[v], items[u], float(seen.wins[v, u]), float(seen.wins[u, v]), float(seen.p_value[v, u]))
        for v, u in rows
        if seen.ahead[v, u]
    )
    sure = int(np.count_nonzero(p_value <= ERROR / max(1, pairs)))
    return Upsets(pairs, int(np.count_nonzero(ahead)), float(seen.expected[square].sum()), sure, strongest)


def _trace_of_cube(matrix: Floats | Flags) -> float:
    square = matrix.astype(np.float64)
    return float(((square @ square) * square.T).sum())


def _strongest(items: tuple[str, ...], seen: Directions) -> tuple[Cycle, ...]:
    """The cycles by majority with the smallest p-values, each once, named from its lowest item."""
    found: list[tuple[float, int, int, int]] = []
    weight = np.where(seen.ahead, seen.p_value, np.inf)
    for i in range(len(items)):
        worst = np.maximum(np.maximum(weight[i, :, None], weight), weight[:, i][None, :])  # i -> j -> m -> i
        worst[: i + 1, :] = worst[:, : i + 1] = np.inf
        best = np.argsort(worst, axis=None, kind="stable")[:SHOWN] if worst.size > SHOWN else np.arange(worst.size)
        for j, m in zip(*np.unravel_index(best, worst.shape), strict=True):
            if np.isfinite(worst[j, m]):
                found.append((float(worst[j, m]), i, int(j), int(m)))
    return tuple(_cycle(items, seen, *entry) for entry in sorted(found)[:SHOWN])


def _cycle(items: tuple[str, ...], seen: Directions, p_value: float, i: int, j: int, m: int) -> Cycle:
    edges = ((i, j), (j, m), (m, i))
    won, lost = ([float(seen.wins[pair]) for pair in ends] for ends in (edges, [(b, a) for a, b in edges]))
    return Cycle((items[i], items[j], items[m]), (won[0], won[1], won[2]), (lost[0], lost[1], lost[2]), p_value)
