"""Checks of what the guarantee assumes, as far as the votes can show it; one is whether utilities explain the votes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import chdtrc

from shortlist.analysis.cycles import Cycles, Upsets, directions, find_cycles, find_upsets
from shortlist.analysis.judges import Agreement, JudgeAgreement, PositionBias, Repeats, measure_agreement, position_bias
from shortlist.analysis.ranking import Connectivity, connect, mean_outcomes
from shortlist.analysis.votes import Votes
from shortlist.core.estimate import fit
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import Flags, Floats, components, node_sums
from shortlist.core.problem import Problem

Status = Literal["ok", "warning", "unknown"]
UNLIKELY = 0.01  # a p-value below it is a warning
FEW_COUPLES = 20  # with fewer, repeated questions show nothing
FAR = 3.3  # standard deviations; there may be a hundred judges to look at
MANY_VOTES = 100  # that a judge needs before a warning names it
ENOUGH = 10  # votes of a pair in the chi-square test; with fewer its outcomes are far from normal
SHOWN = 5  # pairs that fit worst


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
        return Check(name, "warning", f"{test} Ratings and chances may be off. A proof by `edges` does not use them.")
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
