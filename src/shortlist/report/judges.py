"""Who judged, and how they compare."""

from shortlist.findings.agreement import JudgeFound
from shortlist.findings.findings import Findings
from shortlist.findings.trust import percent
from shortlist.plots.judges import SHOWN, plot_agreement, plot_first_share
from shortlist.plots.places import rows_size
from shortlist.report.items import WIDTH
from shortlist.report.markup import Html, folded, name, table, tag
from shortlist.report.svg import inline_svg
from shortlist.report.words import count

OPEN_ROWS = 20  # a longer table is folded
READING = (
    "Agreement: the share of a judge's votes, ties left out, for the item that all other judges' votes put higher. "
    "Expected: the same for a judge who votes as the others' fit says. Kappa: 2 × agreement − 1, so that a coin has 0."
)


def judges_section(found: Findings) -> Html:
    agreement, title = found.trust.agreement, tag("h2", "Judges")
    if not agreement.judges:
        unnamed = f"{count(agreement.unnamed)} votes, and nobody is named." if agreement.unnamed else "No votes yet."
        return tag("section", title, tag("p", unnamed, class_="note"), _first_shown(found, 1))
    others = (
        tag("p", f"{agreement.others:,} more judges with fewer votes.", class_="note") if agreement.others else None
    )
    rows = folded(f"All {len(agreement.judges)} judges", _table(found), len(agreement.judges) > OPEN_ROWS)
    shown = min(len(agreement.judges), SHOWN)
    return tag("section", title, _agreement(found, shown), _first_shown(found, shown + 1), rows, others)


def _agreement(found: Findings, rows: int) -> Html | None:
    if len(found.trust.agreement.judges) < 2:
        return None
    plot = inline_svg(
        "agreement", lambda ax: plot_agreement(found, ax), (WIDTH, rows_size(rows)[1]), "Agreement with the others",
        "One row for each judge; the table below has all numbers.",
    )  # fmt: skip
    return tag("figure", plot, tag("figcaption", READING))


def _first_shown(found: Findings, rows: int) -> Html | None:
    first = found.trust.sides.first
    if not first.votes:
        return None
    says = f"The item shown first was preferred in {percent(first.share)} of decided votes."
    plot = inline_svg(
        "sides", lambda ax: plot_first_share(found, ax), (WIDTH, rows_size(rows)[1]), "Preference for the first side",
        says,
    )  # fmt: skip
    return tag("figure", plot, tag("figcaption", says, " Bars are 95 % intervals (Wilson)."))


def _table(found: Findings) -> Html:
    head = ("judge", "votes", "ties", "agreement", "expected", "kappa", "first side", "flips", "changed mind")
    rows = [_row(judge) for judge in found.trust.agreement.judges]
    caption = (
        "Judges, most votes first. Flips: chose differently when a pair was shown the other way round; changed mind: "
        "when it was shown the same way again"
    )
    return table(caption, head, rows, frozenset(range(1, len(head))))


def _row(judge: JudgeFound) -> list[Html | str]:
    agreement = None if judge.agreement is None else judge.agreement.share
    kappa = "–" if judge.kappa is None else f"{judge.kappa:.2f}"
    repeats = judge.sides.repeats
    return [
        name(judge.judge), count(judge.votes), count(judge.ties), percent(agreement), percent(judge.expected), kappa,
        percent(judge.sides.first.share) if judge.sides.first.votes else "–", percent(repeats.other_order),
        percent(repeats.same_order),
    ]  # fmt: skip
