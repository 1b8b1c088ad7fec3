"""Plots as SVG inside the page, in the page's colours and with ids of their own."""

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from shortlist.analysis.analysis import Analysis
from shortlist.plots.error_bound import plot_error_bound
from shortlist.plots.items import plot_chances, plot_ranking, rows_size
from shortlist.plots.judges import MOST_JUDGES, plot_agreement, plot_position_bias
from shortlist.plots.matrices import plot_allocation, plot_matrix, square_size
from shortlist.plots.style import BLUE, GREY, INK, ORANGE, drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Size = tuple[float, float]  # inches
COLOURS = {BLUE: "--blue", ORANGE: "--orange", INK: "--ink", GREY: "--soft"}
PIXELS = 130  # per inch, on a wide screen
WIDTH = 4.0  # inches; a phone shows it at about this size
NO_STAMPS = dict.fromkeys(("Creator", "Date", "Format", "Type"))  # the same study gives the same bytes


class Figure(NamedTuple):
    """The inside of an SVG element."""

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
