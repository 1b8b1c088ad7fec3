"""Write the report: one HTML page without scripts that loads nothing, for light and dark screens, phones and paper."""

import io
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from shortlist import __version__
from shortlist.analysis.analysis import Analysis, as_analysis
from shortlist.analysis.checks import percent
from shortlist.analysis.votes import VoteCounts
from shortlist.errors import BadInput
from shortlist.plots import (
    BLUE,
    GREY,
    INK,
    MOST_JUDGES,
    ORANGE,
    drawing,
    plot_agreement,
    plot_allocation,
    plot_chances,
    plot_error_bound,
    plot_matrix,
    plot_position_bias,
    plot_ranking,
    rows_size,
    square_size,
)
from shortlist.study.storage import Spent
from shortlist.study.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Size = tuple[float, float]  # inches
COLOURS = {BLUE: "--blue", ORANGE: "--orange", INK: "--ink", GREY: "--soft"}
PIXELS = 130  # per inch, on a wide screen
WIDTH = 4.0  # inches; a phone shows it at about this size
NO_STAMPS = dict.fromkeys(("Creator", "Date", "Format", "Type"))  # the same study gives the same bytes
OPEN_ITEMS, OPEN_JUDGES = 60, 20  # a longer table is folded
MOST_PAIRS = 100  # rows of the table of pairs
STATUSES = {
    "counted": "votes that this report is about",
    "answered": "answers that the judge may still take back; not counted yet",
    "pending": "questions that were asked and are not answered yet",
    "skipped": "questions that were closed without an answer",
    "lost": "questions that a judge saw and did not answer in time; a loss for both items",
    "late": "answers that came after their question had expired; not counted",
    "undone": "votes that were withdrawn; not counted",
    "voided": "votes of a voided judge; not counted",
}


def report_context(analysis: Analysis) -> dict[str, Any]:
    """The variables of `page.html.j2`."""
    return {
        "analysis": analysis,
        "figures": draw_figures(analysis),
        "summary": _summary(analysis),
        "notes": _notes(analysis),
        "statuses": [(name, getattr(analysis.counts, name), meaning) for name, meaning in STATUSES.items()],
        "wins": not analysis.problem.family.is_measured,
        "win_share": lambda gap: whole_percent(float(analysis.problem.family.expect(gap))),
        "pairs": _pairs(analysis),
        "reached": _reached(analysis),
        "fold_items": len(analysis.items) > OPEN_ITEMS,
        "fold_judges": len(analysis.checks.agreement.judges) > OPEN_JUDGES,
    }


def _summary(analysis: Analysis) -> dict[str, str]:
    verdict, counts, problem = analysis.verdict, analysis.counts, analysis.problem
    agreement = analysis.checks.agreement
    proved = f"{len(verdict.certainly_in)} in, {len(verdict.certainly_out)} out, {len(verdict.undecided)} open"
    summary = {
        "Error bound": small(verdict.error_bound), "Allowed error (δ)": f"{problem.delta:g}",
        "Votes": count(verdict.votes), "Estimated votes to go": _votes_left(verdict.votes_left, verdict.done),
        "Items proved": proved, "Judges": count(len(agreement.judges) + agreement.others),
        "Stopping rule": analysis.stopping.name, "Vote model": problem.family.name,
        "Tolerance": f"{problem.tolerance:g}" if problem.tolerance else "none",
    }  # fmt: skip
    if analysis.sampling is None:
        return summary
    if analysis.spent.calls:
        summary |= {"Calls to judges": count(analysis.spent.calls)}
        summary |= {"Cost": _cost(analysis.spent)} if analysis.spent.cost else {}
    return summary | {
        "Sampling rule": analysis.sampling, "Imported votes": count(counts.imported),
        "First event": day(counts.first_at), "Last event": day(counts.last_at),
    }  # fmt: skip


def _cost(spent: Spent) -> str:
    return f"{spent.cost:.4g}" + (
        f", without {plural(spent.unpriced, 'call')} of no known price" * bool(spent.unpriced)
    )


def _votes_left(left: float | None, done: bool) -> str:
    if done:
        return "0"
    return "not known" if left is None or not left < 1e9 else count(left)


def _notes(analysis: Analysis) -> list[str]:
    """What a reader must know before the numbers."""
    counts, verdict, notes = analysis.counts, analysis.verdict, []
    if analysis.paused:
        notes.append("The study is paused: it hands out no questions.")
    if counts.pending or counts.answered:
        notes.append(_pending(counts.pending + counts.answered, analysis.counts_pending))
    if counts.voided_judges:
        notes.append(_voided(counts))
    extra = round(analysis.votes.total) - verdict.votes
    if verdict.done and extra > 0:
        notes.append(f"{plural(extra, 'vote')} came after the verdict. The tables include them, the verdict does not.")
    if analysis.advice:
        notes.append(sentence(analysis.advice))
    return notes


def _pending(pending: int, lost: bool) -> str:
    are = f"{plural(pending, 'question')} {'is' if pending == 1 else 'are'} pending."
    if lost:
        return f"{are} Until it is answered, a pending question counts as a loss for both items."
    return f"{are} Votes on later questions are counted once the earlier ones are answered or skipped."


def _voided(counts: VoteCounts) -> str:
    whose = "a voided judge" if len(counts.voided_judges) == 1 else f"{len(counts.voided_judges)} voided judges"
    votes = f"{plural(counts.voided, 'vote')} of {whose} {'is' if counts.voided == 1 else 'are'} not counted"
    return f"{votes}: {', '.join(counts.voided_judges)}."


def _pairs(analysis: Analysis) -> list[dict[str, Any]]:
    """The most asked pairs, the better item first."""
    matrix = analysis.matrix
    rank = {item: number for number, item in enumerate(matrix.items)}
    rows = []
    for pair in analysis.allocation.pairs[:MOST_PAIRS]:
        better, worse = sorted((pair.first, pair.second), key=lambda item: rank[item])
        share = float(matrix.share[rank[better], rank[worse]])
        rows.append({"better": better, "worse": worse, "votes": pair.votes, "share": share, "crosses": pair.crosses})
    return rows


def _reached(analysis: Analysis) -> int | None:
    """The number of votes at which the error bound first was small enough."""
    delta = analysis.problem.delta
    return next((point.votes for point in analysis.bound_history if point.error_bound <= delta), None)


def count(value: float) -> str:
    return f"{value:,.0f}"


def chance(share: float) -> str:
    """A probability estimated from random draws, which cannot be told from 0 or 1 near the ends."""
    if not 0.0005 <= share <= 0.9995:
        return "<\u00a00.1\u00a0%" if share < 0.5 else ">\u00a099.9\u00a0%"
    return percent(share)


def whole_percent(share: float) -> str:
    return f"{100 * share:.0f}\u00a0%"


def rating(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−") if math.isfinite(value) else "–"


def small(value: float | None) -> str:
    """An error bound or a p-value."""
    return "–" if value is None else f"{value:.2g}"


def day(seconds: float | None) -> str:
    return "–" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def plural(number: float, thing: str) -> str:
    return f"{count(number)} {thing}{'' if round(number) == 1 else 's'}"


def sentence(text: str) -> str:
    """The text with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


FILTERS: dict[str, Callable[..., str]] = {
    "count": count, "chance": chance, "percent": percent, "rating": rating, "small": small, "plural": plural,
    "sentence": sentence,
}  # fmt: skip


# Names are escaped. If one became markup anyway, the browser would still run nothing and load nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def write_report(source: Study | Analysis, path: str | Path) -> None:
    """Write the report on a study, or on an analysis, as an HTML file. Raises BadInput if it cannot be written."""
    text = make_report(source)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as reason:
        raise BadInput(f"cannot write {path}: {reason.strerror or reason}") from None


def make_report(source: Study | Analysis) -> str:
    """The report as the text of an HTML page."""
    context = report_context(as_analysis(source))
    return environment().get_template("page.html.j2").render(context, policy=POLICY, version=__version__)


@cache
def environment() -> Environment:
    """The templates. Every value is escaped; only the drawn figures are markup."""
    found = Environment(
        loader=PackageLoader("shortlist.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    found.filters.update(FILTERS)
    return found


class Figure(NamedTuple):
    """A plot as the inside of an SVG element, in the page's colours and with ids of its own."""

    key: str
    view_box: str
    width: int  # pixels
    body: Markup


def draw_figures(analysis: Analysis) -> dict[str, Figure | None]:
    """All figures of the report by name; None where there is nothing to draw."""
    judges, n = analysis.checks.agreement.judges, len(analysis.items)
    shown = min(len(judges), MOST_JUDGES)
    voted, square = bool(analysis.votes.total), square_size(n)

    def draw(key: str, plot: Callable[..., Any], size: Size, wanted: bool = True) -> Figure | None:
        return _draw(key, lambda ax: plot(analysis, ax), size) if wanted else None

    drawn = (
        draw("ranking", plot_ranking, (WIDTH, rows_size(n)[1])),
        draw("chances", plot_chances, (WIDTH, rows_size(n)[1])),
        draw("bound", plot_error_bound, (WIDTH, 2.1), len(analysis.bound_history) > 1),
        draw("allocation", plot_allocation, square, voted),
        draw("matrix", plot_matrix, square, voted),
        draw("agreement", plot_agreement, (WIDTH, rows_size(shown)[1]), len(judges) > 1),
        draw(
            "position", plot_position_bias, (WIDTH, rows_size(shown + 1)[1]), bool(analysis.checks.position_bias.votes)
        ),
    )
    keys = ("ranking", "chances", "bound", "allocation", "matrix", "agreement", "position")
    return dict(zip(keys, drawn, strict=True))


def _draw(key: str, plot: Callable[["Axes"], Any], size: Size) -> Figure:
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Paper
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    settings: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": key, "font.family": "DejaVu Sans"}
    with drawing(), rc_context(settings):
        paper = Paper(figsize=size, layout=(layout := ConstrainedLayoutEngine()))
        FigureCanvasSVG(paper)
        plot(paper.subplots())
        layout.execute(paper)
        paper.set_layout_engine(None)  # with one, savefig would draw everything twice
        text = io.StringIO()
        paper.savefig(text, format="svg", transparent=True, metadata=NO_STAMPS)
    return _embed(key, text.getvalue(), size[0])


def _embed(key: str, text: str, width: float) -> Figure:
    """Ids that are unique on the page, colours of the page, and no fonts of matplotlib's own."""
    view = re.search(r'viewBox="([^"]+)"', text)
    assert view is not None
    body = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{key}-', body)
    body = re.sub(r"url\(#", f"url(#{key}-", body)
    body = re.sub(r'(xlink:)?href="#', f'href="#{key}-', body).replace("xlink:href", "href")
    body = re.sub(r"\bfont: ([\d.]+)px [^;\"]*", r"font-size: \1px", body)
    for colour, variable in COLOURS.items():
        body = re.sub(colour, f"var({variable})", body, flags=re.IGNORECASE)
    return Figure(key, view[1], round(PIXELS * width), Markup(body))
