"""What was asked, what it saved, and who beat whom."""

from shortlist.findings.findings import Findings
from shortlist.findings.trust import percent
from shortlist.plots.squares import plot_allocation, plot_matrix, square_size
from shortlist.report.markup import Html, folded, name, table, tag
from shortlist.report.svg import inline_svg
from shortlist.report.words import count

ROWS = 100  # pairs in a table


def asked_section(found: Findings) -> Html:
    spread, title = found.allocation, tag("h2", "What was asked")
    if not spread.pairs:
        return tag("section", title, tag("p", "Nothing yet.", class_="note"))
    most = spread.pairs[0]
    says = (
        f"{len(spread.pairs):,} of {spread.possible:,} pairs have votes. The most asked pair has {count(most.votes)}: "
        f"{most.first} against {most.second}."
    )
    plot = inline_svg(
        "allocation", lambda ax: plot_allocation(found, ax), square_size(len(found.items)), "Votes on each pair", says
    )
    text = (
        f"{percent(spread.across)} of the votes went to pairs with one item of the answer and one of the rest; such "
        f"pairs are {percent(spread.even_across)} of all. The most asked tenth of all got {percent(spread.busiest)}."
    )
    return tag("section", title, tag("p", text), tag("p", _saved(found)), tag("figure", plot, tag("figcaption", says)))


def _saved(found: Findings) -> list[Html | str]:
    saved = found.saved
    title = tag("strong", "Against round-robin: ")
    if saved.median is None or saved.saved is None:
        return [title, f"not computed: {saved.note}."]
    runs = len(saved.round_robin)
    least, most = saved.round_robin[0], saved.round_robin[-1]
    gave_up = f", {saved.given_up} of them without a verdict" if saved.given_up else ""
    much = f"{percent(saved.saved)} fewer" if saved.saved > 0 else "no fewer"
    return [
        title,
        f"this study took {much} votes: {count(found.verdict.votes)} against a median of {count(saved.median)} "
        f"({count(least)} to {count(most)} in {runs} simulated runs{gave_up}). That is what asking every pair equally "
        "often would take until the same rule stops at the same δ, with votes drawn from the utilities that fit this "
        "study best. One study and a few runs: take it as a size, not as a measurement.",
    ]


def matrix_section(found: Findings) -> Html:
    square, title = found.matrix, tag("h2", "Who beat whom")
    if not square.votes.any():
        return tag("section", title, tag("p", "Nobody yet.", class_="note"))
    wins = found.problem.family.win is not None
    cell = "per cent of votes won by the row, ties as half" if wins else "the mean difference from the row's side"
    says = (
        f"Rows against columns, best first: {cell}; empty where nobody compared the two. Dashed lines separate the "
        "answer from the rest."
    )
    plot = inline_svg(
        "matrix", lambda ax: plot_matrix(found, ax), square_size(len(square.items)), "Who beat whom", says
    )
    shown = found.allocation.pairs[:ROWS]
    summary = f"The {len(shown)} most asked pairs" if len(found.allocation.pairs) > ROWS else "All pairs with votes"
    return tag(
        "section", title, tag("figure", plot, tag("figcaption", says)),
        folded(summary, _table(found, wins)),
    )  # fmt: skip


def _table(found: Findings, wins: bool) -> Html:
    place = {item: number for number, item in enumerate(found.matrix.items)}
    rows = []
    for pair in found.allocation.pairs[:ROWS]:
        better, worse = sorted((pair.first, pair.second), key=lambda item: place[item])
        share = float(found.matrix.share[place[better], place[worse]])
        value = percent(share) if wins else f"{share:.3g}"
        rows.append([name(better), name(worse), count(pair.votes), value, "yes" if pair.crosses else "no"])
    head = ("item", "against", "votes", "won by the item" if wins else "mean difference", "across the line")
    return table("Pairs, most votes first", head, rows, frozenset({2, 3}))
