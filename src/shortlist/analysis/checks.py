"""Checks of what the guarantee assumes, as far as the votes can show it: whether utilities explain the votes, whether
preferences go in circles, whether outsiders beat members of the answer.

Next to every count is the number to expect by chance under the fit, so that noise is not mistaken for a finding.

The evidence of the direct votes of a pair is an e-value for "i is better than j": the likelihood ratio of a win
probability spread evenly over (1/2, 1), against 1/2.

    E = 2 * 2^N * integral from 1/2 to 1 of p^wins (1 - p)^losses dp

Ties are left out, and a grade counts as its side. min(1, 1/E) is a p-value that stays valid whatever was asked when,
and whenever one looks (Ville), which is needed because a study chooses its questions by what it has seen. For measured
differences the mean is spread as the positive half of N(0, sigma^2).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import betainc, betaincc, betaln, chdtrc, log_ndtr, ndtr

from shortlist.analysis.judges import Agreement, JudgeAgreement, PositionBias, Repeats, measure_agreement, position_bias
from shortlist.analysis.ranking import Connectivity, connect, mean_outcomes
from shortlist.analysis.votes import Votes
from shortlist.core.estimate import fit
from shortlist.core.families import Family
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import Flags, Floats, components, node_sums
from shortlist.core.problem import Problem

ERROR = 0.05  # level of significance, over all triples or pairs together
SHOWN = 5  # cycles, upsets, and pairs that fit worst
Status = Literal["ok", "warning", "unknown"]
UNLIKELY = 0.01  # a p-value below it is a warning
FEW_COUPLES = 20  # with fewer, repeated questions show nothing
FAR = 3.3  # standard deviations; there may be a hundred judges to look at
MANY_VOTES = 100  # that a judge needs before a warning names it
ENOUGH = 10  # votes of a pair in the chi-square test; with fewer its outcomes are far from normal


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


@dataclass(frozen=True)
class Check:
    """One assumption, whether the votes agree with it, and why."""

    name: str
    status: Status
    sentence: str


@dataclass(frozen=True)
class Residual:
    """A pair whose votes differ from the fit, seen from the side of the item that does better than expected."""

    better: str
    worse: str
    votes: float
    share: float  # mean outcome
    expected: float
    z: float  # in standard deviations


@dataclass(frozen=True)
class FitTest:
    """Pearson's chi-square over pairs.

        X^2 = sum over pairs of N (mean outcome - expected)^2 / variance,    pairs - (items - groups) degrees of freedom

    Only pairs with at least 10 votes, refitted on these alone. Variance is p(1-p), times the votes' own dispersion
    around their pair's mean if there are ties or grades, or sigma^2. Numbers of votes are taken as given, so for a
    study that chooses its questions the p-value is only a guide.
    """

    chi_square: float
    degrees_of_freedom: int
    p_value: float | None  # None where nothing is left to test
    pairs: int
    dispersion: float
    noise: float | None  # measured differences: their variance around their pair's mean, over sigma^2
    residuals: tuple[Residual, ...]  # the largest first


@dataclass(frozen=True)
class Checks:
    """`results` in plain sentences, and the numbers behind them."""

    results: tuple[Check, ...]
    connectivity: Connectivity
    upsets: Upsets
    cycles: Cycles
    fit_test: FitTest
    position_bias: PositionBias
    agreement: Agreement


def run_checks(problem: Problem, items: tuple[str, ...], votes: Votes, theta: Floats, in_top: Flags) -> Checks:
    """Run all checks on the votes; `theta` are fitted utilities, and `in_top` marks the items of the answer."""
    seen = directions(votes, theta)
    found = (
        connect(items, votes), find_upsets(items, seen, in_top), find_cycles(items, seen),
        fit_test(problem, items, votes), position_bias(votes, theta), measure_agreement(problem, votes, theta),
    )  # fmt: skip
    connectivity, upsets, cycles, tested, bias, agreement = found
    results = (
        _connected(connectivity), _no_upsets(upsets), _no_cycles(cycles), _fits(tested),
        _no_position_bias(bias, agreement.judges), _independent(bias.repeats, bool((votes.case >= 0).all())),
        _agree(agreement),
    )  # fmt: skip
    return Checks(results, *found)


def percent(share: float | None) -> str:
    """A share as text, with a space that does not break; a dash for None."""
    return "–" if share is None else f"{100 * share:.1f}\u00a0%"


def _connected(found: Connectivity) -> Check:
    name = "All items are connected"
    if found.asked == 0:
        return Check(name, "unknown", "No votes yet.")
    pairs = f"{found.asked:,} of {found.possible:,} pairs have votes"
    if found.groups > 1:
        return Check(name, "warning", f"{pairs}. They leave {found.groups} groups of items that no vote compares.")
    if not found.bounded:
        only = "Some items, or groups of items, only won or only lost; the model limits their ratings."
        return Check(name, "ok", f"{pairs} and connect all items. {only}")
    return Check(name, "ok", f"{pairs} and connect all items, with wins in both directions.")


def _no_upsets(found: Upsets) -> Check:
    name = "No outsider beats a member"
    if not found.pairs:
        return Check(name, "unknown", "No pair across the cutoff has votes.")
    across = f"{found.pairs:,} pair{'' if found.pairs == 1 else 's'} with votes across the cutoff"
    if not found.found:
        return Check(name, "ok", f"In none of {across} is the outsider ahead.")
    sentence = f"In {found.found:,} of {across} the outsider is ahead. {_by_chance(found.expected)}"
    if found.significant:
        lost = f"{_significant(found.significant)} If outsiders do beat members, there may be no true top to find."
        return Check(name, "warning", f"{sentence} {lost}")
    return Check(name, "ok", f"{sentence} None is significant.")


def _no_cycles(found: Cycles) -> Check:
    name = "Preferences have no cycles"
    if not found.triples:
        return Check(name, "unknown", "No three items were all compared with each other.")
    among = f"{found.triples:,} triple{'' if found.triples == 1 else 's'} of items compared with each other"
    if not found.found:
        return Check(name, "ok", f"By majority, none of {among} forms a cycle (A beats B, B beats C, C beats A).")
    form = "forms" if found.found == 1 else "form"
    sentence = f"By majority, {found.found:,} of {among} {form} a cycle. {_by_chance(found.expected)}"
    if found.significant:
        return Check(name, "warning", f"{sentence} {_significant(found.significant)}")
    return Check(name, "ok", f"{sentence} None is significant.")


def _by_chance(expected: float) -> str:
    return f"Chance alone would produce about {expected:.1f}."


def _significant(count: int) -> str:
    return f"{count:,} cannot be explained by chance."


def _fits(found: FitTest) -> Check:
    name = "Ratings explain the votes"
    if found.p_value is None:
        return Check(name, "unknown", "Too few pairs have 10 votes or more.")
    test = (
        f"Chi-square test over {found.pairs:,} pairs: {found.chi_square:.1f} with "
        f"{found.degrees_of_freedom:,} degree{'' if found.degrees_of_freedom == 1 else 's'} of freedom, "
        f"p = {found.p_value:.2g}."
    )
    if found.noise is not None and found.noise > 1.2:
        return Check(name, "warning", f"{test} Differences vary {found.noise:.2f} times as much as sigma² predicts.")
    if found.p_value < UNLIKELY:
        return Check(name, "warning", f"{test} Ratings and chances may be off. Proofs by direct votes do not use them.")
    return Check(name, "ok", test)


def _no_position_bias(found: PositionBias, judges: Sequence[JudgeAgreement]) -> Check:
    name = "Position does not matter"
    share = found.first
    if not share.votes:
        return Check(name, "unknown", "There are no votes, or only ties.")
    sentence = (
        f"The item shown first won {percent(share.share)} of {share.votes:,.0f} votes without ties (95 % interval "
        f"{percent(share.low)} to {percent(share.high)}). The ratings predict {percent(found.expected)}."
    )
    if found.repeats.other_order is not None:
        flips = percent(found.repeats.other_order)
        sentence += f" Judges who saw a pair in both orders contradicted themselves {flips} of the time."
    biased = [one for one in judges if one.votes >= MANY_VOTES and not _as_expected(one.position_bias)]
    if biased:
        sentence += f" Judges with a position bias: {_most_biased(biased)}."
    if biased or not _as_expected(found):
        return Check(name, "warning", f"{sentence} A random order keeps the result fair, but bias costs extra votes.")
    return Check(name, "ok", sentence)


def _most_biased(judges: list[JudgeAgreement]) -> str:
    bias = [one.position_bias for one in judges]
    order = sorted(range(len(judges)), key=lambda i: -abs(bias[i].first.share - bias[i].expected))
    names = ", ".join(f"{judges[i].judge} {percent(bias[i].first.share)}" for i in order[:3])
    return f"{names}{' and others' if len(judges) > 3 else ''}"


def _as_expected(found: PositionBias) -> bool:
    """Within 3.3 standard deviations: about one fair judge in a thousand is outside."""
    share = found.first
    spread = math.sqrt(max(found.expected * (1 - found.expected), 1e-12) / max(share.votes, 1.0))
    return abs(share.share - found.expected) <= FAR * spread


def _independent(found: Repeats, on_cases: bool) -> Check:
    """`on_cases`: every vote is about a case, and repeats are about the same one."""
    name = "Votes are fresh"
    if found.same_order is None or found.expected is None or found.couples < FEW_COUPLES:
        return Check(name, "unknown", "Too few judges saw the same pair twice in the same order.")
    sentence = (
        f"Judges who saw a pair twice in the same order changed their choice in {percent(found.same_order)} of "
        f"{found.couples:,.0f} repeats. Independent votes would differ in about {percent(found.expected)}."
    )
    if found.same_order < found.expected / 2 and on_cases:
        return Check(name, "ok", f"{sentence} These repeats are on the same case; a question draws its case afresh.")
    if found.same_order < found.expected / 2:
        advice = "Asking the same judge again adds nothing: draw judges or cases at random."
        return Check(name, "warning", f"{sentence} {advice}")
    return Check(name, "ok", sentence)


def _agree(found: Agreement) -> Check:
    name = "Judges agree"
    if len(found.judges) < 2:
        return Check(name, "unknown", "Fewer than two judges are named.")
    together = "" if found.alpha is None else f"Krippendorff's alpha is {found.alpha:.2f} (0 is chance, 1 is perfect). "
    against = [one for one in found.judges if one.agreement and one.votes >= MANY_VOTES and one.agreement.high < 0.5]
    if against:
        names = ", ".join(judge.judge for judge in against[:3])
        return Check(name, "warning", f"{together}More often against the others than with them: {names}.")
    return Check(name, "ok", f"{together}No judge is clearly more often against the others than with them.")


def fit_test(problem: Problem, items: tuple[str, ...], votes: Votes) -> FitTest:
    """Test whether one utility for each item explains the mean outcomes of the pairs."""
    counts = np.bincount(votes.pair, votes.weight, minlength=1)
    kept = votes.select(counts[votes.pair] >= ENOUGH)
    tally = kept.tally
    if not len(tally.pairs):
        return FitTest(0.0, 0, None, 0, 1.0, None, ())
    with one_thread():
        theta = fit(problem.family, tally, problem.bound)
    expected, mean = problem.family.expect(theta[tally.first] - theta[tally.second]), mean_outcomes(kept)
    variance, dispersion, noise = _variance(kept, expected, mean)
    z = (mean - expected) * np.sqrt(tally.counts / variance)
    groups = components(votes.n, tally.first, tally.second)[0]
    freedom, chi_square = len(tally.pairs) - (votes.n - groups), float(z @ z)
    p_value = float(chdtrc(freedom, chi_square)) if freedom > 0 else None
    return FitTest(chi_square, freedom, p_value, len(z), dispersion, noise, _residuals(items, kept, mean, expected, z))


def _variance(votes: Votes, expected: Floats, mean: Floats) -> tuple[Floats, float, float | None]:
    """The variance of one vote on each pair, over that of wins and losses, and over sigma^2."""
    tally, family = votes.tally, votes.family
    slots = tally.pairs.searchsorted(votes.pair)
    seen = np.where(votes.low_first > 0, votes.outcome, family.flip(votes.outcome))
    within = node_sums(slots, votes.weight * (seen - mean[slots]) ** 2, len(mean))
    if family.is_measured:
        square = 1.0 / family.variance_bound
        spare = float((tally.counts - 1).sum())
        return np.full(len(mean), square), 1.0, float(within.sum()) / (spare * square)
    binary = np.maximum(expected * (1 - expected), 1e-12)
    plain = bool(np.isin(votes.outcome, (0.0, family.win)).all())
    own = float(within.sum()) / max(float(((tally.counts - 1) * mean * (1 - mean)).sum()), 1e-12)
    dispersion = 1.0 if plain else max(own, 1e-6)
    return binary * dispersion, dispersion, None


def _residuals(items: tuple[str, ...], votes: Votes, mean: Floats, expected: Floats, z: Floats) -> tuple[Residual, ...]:
    tally, flip = votes.tally, votes.family.flip
    found = []
    for p in np.argsort(-np.abs(z), kind="stable")[:SHOWN].tolist():
        ends, told = (int(tally.first[p]), int(tally.second[p])), np.array([mean[p], expected[p]])
        if z[p] < 0:
            ends, told = ends[::-1], flip(told)
        names, count = (items[ends[0]], items[ends[1]]), float(tally.counts[p])
        found.append(Residual(*names, count, float(told[0]), float(told[1]), abs(float(z[p]))))
    return tuple(found)
