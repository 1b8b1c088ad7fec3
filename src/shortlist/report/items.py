"""Where the items stand."""

from shortlist.findings.findings import Findings
from shortlist.findings.standing import Place
from shortlist.plots.places import plot_chances, plot_utilities, rows_size
from shortlist.report.markup import Html, folded, name, table, tag
from shortlist.report.svg import inline_svg
from shortlist.report.words import chance, count, utility

WIDTH = 4.0  # inches; a phone shows it at about its size
OPEN_ROWS = 60  # longer tables are folded


def items_section(found: Findings) -> Html:
    standing, k = found.standing, found.problem.k
    height = rows_size(len(standing.places))[1]
    first, last = standing.places[0], standing.places[-1]
    utilities = inline_svg(
        "utilities", lambda ax: plot_utilities(found, ax), (WIDTH, height), "Utilities with 95 % intervals",
        f"Items from the best, {first.item} at {utility(first.utility)}, to the last, {last.item} at "
        f"{utility(last.utility)}. The table below has all numbers.",
    )  # fmt: skip
    chances = inline_svg(
        "chances", lambda ax: plot_chances(found, ax), (WIDTH, height), f"Chance of being in the top {k}",
        "One bar for each item; the table below has all numbers.",
    )  # fmt: skip
    reading = (
        f"Dots are utilities, bars 95 % credible intervals, each item by itself. Model: {standing.model}. Ties and "
        "grades count as parts of wins, which makes intervals wider than need be. The verdict does not rest on this."
    )
    return tag(
        "section", tag("h2", "Where the items stand"), _line(found),
        tag("figure", utilities, tag("figcaption", reading)),
        tag("figure", chances, tag("figcaption", f"Chance of being in the top {k} by the same model: an estimate, "
                                   "not a proof.")),
        folded(f"All {len(found.items)} items", _table(found), len(found.items) > OPEN_ROWS),
    )  # fmt: skip


def _line(found: Findings) -> Html:
    line = found.standing.line
    return tag(
        "p", "The line runs between ", tag("strong", name(line.inside)), " and ", tag("strong", name(line.outside)),
        f": their utilities differ by {utility(line.gap)} (95 % interval {utility(line.low)} to {utility(line.high)}); "
        f"by the same model the chance that the second is better is {chance(line.chance)}.",
    )  # fmt: skip


def _table(found: Findings) -> Html:
    head = ("item", "place", "utility", "95 % interval", f"chance, top {found.problem.k}", "votes", "certainly")
    rows = [_row(place, number) for number, place in enumerate(found.standing.places, 1)]
    caption = f"Items, best first; the first {found.problem.k} are the answer"
    return table(caption, head, rows, frozenset({1, 2, 3, 4, 5}))


def _row(place: Place, number: int) -> list[Html | str]:
    interval = f"{utility(place.low)} to {utility(place.high)}"
    label = tag("strong", name(place.item)) if place.inside else name(place.item)
    figures = [str(number), utility(place.utility), interval, chance(place.chance), count(place.votes)]
    return [label, *figures, place.certain or "–"]
