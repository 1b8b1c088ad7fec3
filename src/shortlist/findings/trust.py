"""Reasons to trust the answer, or not to: what can be seen in the votes of what the guarantee supposes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from shortlist.findings.agreement import Agreement, JudgeFound, agreement
from shortlist.findings.ballots import Ballots
from shortlist.findings.cycles import Cycles, Upsets, cycles, upsets
from shortlist.findings.evidence import directions
from shortlist.findings.graph import Graph, graph
from shortlist.findings.misfit import Misfit, misfit
from shortlist.findings.sides import Repeats, Sides, sides
from shortlist.pairs import Flags, Floats
from shortlist.problem import Problem

Sign = Literal["fine", "look", "unknown"]
UNLIKELY = 0.01  # a p-value or chance below it is worth a look
FEW_COUPLES = 20  # below, a judge that repeats itself says nothing
FAR = 3.3  # standard deviations; there may be a hundred judges to look at
SEEN_OFTEN = 100  # votes that a judge needs before disagreement is called such


@dataclass(frozen=True)
class Check:
    """One question about the votes, answered in a sentence."""

    name: str
    sign: Sign
    says: str


@dataclass(frozen=True)
class Trust:
    checks: tuple[Check, ...]
    graph: Graph
    upsets: Upsets
    cycles: Cycles
    misfit: Misfit
    sides: Sides
    agreement: Agreement


def trust(problem: Problem, items: tuple[str, ...], ballots: Ballots, theta: Floats, inside: Flags) -> Trust:
    seen = directions(ballots, theta)
    found = (
        graph(items, ballots), upsets(items, seen, inside), cycles(items, seen), misfit(problem, items, ballots),
        sides(ballots, theta), agreement(problem, ballots, theta),
    )  # fmt: skip
    connected, across, circles, off, shown, judges = found
    checks = (
        _connected(connected), _across(across), _circles(circles), _fits(off, problem), _even(shown, judges.judges),
        _fresh(shown.repeats), _agree(judges),
    )  # fmt: skip
    return Trust(checks, *found)


def percent(share: float | None) -> str:
    """With a space that does not break; a dash for what is not known."""
    return "–" if share is None else f"{100 * share:.1f}\u00a0%"


def _connected(found: Graph) -> Check:
    name = "All items are connected"
    if found.asked == 0:
        return Check(name, "unknown", "No votes yet.")
    pairs = f"{found.asked:,} of {found.possible:,} pairs have votes"
    if found.groups > 1:
        return Check(name, "look", f"{pairs}; they leave {found.groups} groups that nothing compares with each other.")
    if not found.bounded:
        return Check(
            name,
            "fine",
            f"{pairs} and connect all items. Some items only won or only lost; the prior keeps them finite.",
        )
    return Check(name, "fine", f"{pairs} and connect all items, with wins and losses on every way.")


def _across(found: Upsets) -> Check:
    name = "No outsider beats a member"
    if not found.pairs:
        return Check(name, "unknown", "No pair across the line has votes.")
    if not found.found:
        return Check(
            name, "fine", f"In none of {found.pairs:,} pairs across the line with votes is the outsider ahead."
        )
    said = (
        f"In {found.found:,} of {found.pairs:,} pairs across the line with votes the outsider is ahead; chance alone "
        f"would show about {found.expected:.1f}."
    )
    if found.sure:
        return Check(name, "look", f"{said} {found.sure:,} of them are no chance: the answer may have no meaning.")
    return Check(name, "fine", f"{said} None is sure.")


def _circles(found: Cycles) -> Check:
    name = "Preferences do not go in circles"
    if not found.triples:
        return Check(name, "unknown", "No three items were all compared with each other.")
    if not found.found:
        return Check(name, "fine", f"None of {found.triples:,} triples compared goes in a circle by majority.")
    said = (
        f"Of {found.triples:,} triples compared, {found.found:,} go in a circle by majority; chance alone would show "
        f"about {found.expected:.1f}."
    )
    if found.sure:
        return Check(name, "look", f"{said} {found.sure:,} of them are no chance.")
    return Check(name, "fine", f"{said} None is sure.")


def _fits(found: Misfit, problem: Problem) -> Check:
    name = "Utilities explain the votes"
    if found.p_value is None:
        return Check(name, "unknown", "Too few pairs with 10 votes or more to tell.")
    test = (
        f"Chi-square {found.chi_square:.1f} on {found.freedom:,} degrees of freedom over {found.pairs:,} pairs, "
        f"p = {found.p_value:.2g}."
    )
    if found.noise is not None and found.noise > 1.2:
        return Check(name, "look", f"{test} Differences vary {found.noise:.2f} times as much as sigma² says.")
    if found.p_value < UNLIKELY:
        return Check(name, "look", f"{test} The verdict by edges does not need the model; utilities and chances do.")
    return Check(name, "fine", test)


def _even(found: Sides, judges: Sequence[JudgeFound]) -> Check:
    name = "It does not matter who is shown first"
    share = found.first
    if not share.votes:
        return Check(name, "unknown", "No votes but ties.")
    said = (
        f"The item shown first was preferred in {percent(share.share)} of {share.votes:,.0f} decided votes "
        f"({percent(share.low)} to {percent(share.high)}); by the fit it should be {percent(found.expected)}."
    )
    if found.repeats.other_order is not None:
        said += f" Judges who saw a pair both ways round chose differently in {percent(found.repeats.other_order)}."
    uneven = [one for one in judges if one.votes >= SEEN_OFTEN and not _as_expected(one.sides)]
    uneven.sort(key=lambda one: -abs(one.sides.first.share - one.sides.expected))
    if uneven:
        named = ", ".join(f"{one.judge} {percent(one.sides.first.share)}" for one in uneven[:3])
        said += f" Judges who lean to a side: {named}{' and others' if len(uneven) > 3 else ''}."
    if uneven or not _as_expected(found):
        return Check(name, "look", f"{said} Sides drawn by a coin keep this from helping an item; it costs votes.")
    return Check(name, "fine", said)


def _as_expected(found: Sides) -> bool:
    """Within 3.3 standard deviations: about one fair judge in a thousand is not."""
    share = found.first
    spread = math.sqrt(max(found.expected * (1 - found.expected), 1e-12) / max(share.votes, 1.0))
    return abs(share.share - found.expected) <= FAR * spread


def _fresh(found: Repeats) -> Check:
    name = "Votes are fresh"
    if found.same_order is None or found.expected is None or found.couples < FEW_COUPLES:
        return Check(name, "unknown", "Too few judges saw a pair twice the same way round to tell.")
    said = (
        f"Judges who saw a pair twice the same way round chose differently in {percent(found.same_order)} of "
        f"{found.couples:,.0f} couples of votes; fresh votes would in about {percent(found.expected)}."
    )
    if found.same_order < found.expected / 2:
        return Check(name, "look", f"{said} Asking a fixed opinion again is no new vote: draw judges or cases.")
    return Check(name, "fine", said)


def _agree(found: Agreement) -> Check:
    name = "Judges agree"
    if len(found.judges) < 2:
        return Check(name, "unknown", "Fewer than two judges are named.")
    together = (
        "" if found.alpha is None else f"Krippendorff's alpha is {found.alpha:.2f} (0 is chance, 1 is agreement). "
    )
    against = [
        judge for judge in found.judges if judge.agreement and judge.votes >= SEEN_OFTEN and judge.agreement.high < 0.5
    ]
    if against:
        names = ", ".join(judge.judge for judge in against[:3])
        return Check(name, "look", f"{together}More often against the others than with them: {names}.")
    return Check(name, "fine", f"{together}No judge is more often against the others than with them.")
