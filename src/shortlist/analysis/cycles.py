"""Do preferences go in circles, and do outsiders beat members of the answer?

Next to every count is the number to expect by chance under the fit, so that noise is not mistaken for a finding.

The evidence of the direct votes of a pair is an e-value for "i is better than j": the likelihood
ratio of a win probability spread evenly over (1/2, 1), against 1/2.

    E = 2 * 2^N * integral from 1/2 to 1 of p^wins (1 - p)^losses dp

Ties are left out, and a grade counts as its side. min(1, 1/E) is a p-value that stays valid whatever was asked when,
and whenever one looks (Ville), which is needed because a study chooses its questions by what it has seen. For measured
differences the mean is spread as the positive half of N(0, sigma^2).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, betaincc, betaln, log_ndtr, ndtr

from shortlist.analysis.votes import Votes
from shortlist.core.families import Family
from shortlist.core.pairs import Flags, Floats

ERROR = 0.05  # level of significance, over all triples or pairs together
SHOWN = 5


@dataclass(frozen=True)
class Cycle:
    """items[0] beat items[1], which beat items[2], which beat items[0]; votes won and lost in each."""

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
    significant: int  # with error 5 % over all triples together
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
    """Over the pairs across the cutoff that have votes."""

    pairs: int
    found: int
    expected: float
    significant: int
    strongest: tuple[Upset, ...]


@dataclass(frozen=True, eq=False)
class Directions:
    """n by n: who is ahead of whom. `wins` counts votes; all is 0, False or 1 where a pair has no votes."""

    wins: Floats  # votes in which the row's item was preferred
    ahead: Flags  # was it preferred by more votes, or on the mean?
    p_value: Floats  # of "the row's item is better", small if it surely is
    expected: Floats  # how probable `ahead` is under fitted utilities


def directions(votes: Votes, theta: Floats) -> Directions:
    n = votes.n
    wins = np.zeros((n, n))
    np.add.at(wins, (votes.first, votes.second), votes.weight * (votes.preference > 0))
    np.add.at(wins, (votes.second, votes.first), votes.weight * (votes.preference < 0))
    eta = np.subtract.outer(theta, theta)
    if votes.family.is_measured:
        return _measured(votes, wins, eta)
    tally, counts = votes.tally, np.zeros((n, n))
    counts[tally.first, tally.second] = counts[tally.second, tally.first] = tally.counts
    decided = wins + wins.T
    p_value = np.exp(-np.maximum(log_e_value(wins, wins.T), 0.0))
    return Directions(wins, wins > wins.T, p_value, _majority(votes.family, eta, counts, decided))


def log_e_value(wins: Floats, losses: Floats) -> Floats:
    """log E; the integral is an incomplete beta function. Where that is 0 in doubles, E is far below 1."""
    tail = betaincc(wins + 1, losses + 1, 0.5)
    with np.errstate(divide="ignore"):
        value: Floats = (wins + losses + 1) * np.log(2) + betaln(wins + 1, losses + 1) + np.log(tail)
    return value


def log_e_measured(total: Floats, votes: Floats, sigma: float) -> Floats:
    """log E of `votes` differences that add up to `total`, in closed form."""
    z, shrink = total / sigma, 1.0 + votes
    value: Floats = np.log(2) - 0.5 * np.log(shrink) + z**2 / (2 * shrink) + log_ndtr(z / np.sqrt(shrink))
    return value


def _majority(family: Family, eta: Floats, votes: Floats, decided: Floats) -> Floats:
    """P(more than half of the decided votes) if votes follow the fit, with ties as often as they were."""
    count = np.maximum(decided, 1.0)
    tied = 1.0 - count / np.maximum(votes, count)
    p, half = np.clip((family.expect(eta) - tied / 2) / (1 - tied), 0.0, 1.0), np.floor(count / 2)
    return np.where(decided > 0, betainc(half + 1, count - half, p), 0.0)


def _measured(votes: Votes, wins: Floats, eta: Floats) -> Directions:
    tally, sigma = votes.tally, votes.family.variance_bound**-0.5
    counts, total = np.zeros(wins.shape), np.zeros(wins.shape)
    counts[tally.first, tally.second] = counts[tally.second, tally.first] = tally.counts
    total[tally.first, tally.second] = tally.sums * sigma**2
    total -= total.T
    p_value = np.exp(-np.maximum(log_e_measured(total, counts, sigma), 0.0))
    expected = np.where(counts > 0, ndtr(eta * np.sqrt(counts) / sigma), 0.0)
    return Directions(wins, total > 0, p_value, expected)


def find_cycles(items: tuple[str, ...], seen: Directions) -> Cycles:
    """A cycle is significant if all three directions are: its p-value is the largest of theirs, times all the triples.

    With a 0/1 matrix A of who is ahead, trace(A^3) / 3 counts cycles; with probabilities it is their expectation.
    """
    compared = (seen.wins + seen.wins.T > 0) | seen.ahead | seen.ahead.T
    triples = round(_trace_of_cube(compared) / 6)
    limit = ERROR / max(1, 2 * triples)
    significant = _trace_of_cube(seen.p_value <= limit) / 3
    found, expected = _trace_of_cube(seen.ahead) / 3, _trace_of_cube(seen.expected) / 3
    return Cycles(triples, round(found), expected, round(significant), _strongest(items, seen))


def find_upsets(items: tuple[str, ...], seen: Directions, in_top: Flags) -> Upsets:
    """The guarantee assumes that no outsider beats a member on average; this is what direct votes say about it."""
    out, member = np.flatnonzero(~in_top), np.flatnonzero(in_top)
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
    significant = int(np.count_nonzero(p_value <= ERROR / max(1, pairs)))
    return Upsets(pairs, int(np.count_nonzero(ahead)), float(seen.expected[square].sum()), significant, strongest)


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
