"""A plot as SVG inside the page: its colours are the page's, its ids are its own, and it says what it shows."""

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shortlist.plots.style import BLUE, GREY, INK, ORANGE, drawing, matplotlib
from shortlist.report.markup import Html, tag

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {BLUE: "--blue", ORANGE: "--orange", INK: "--ink", GREY: "--soft"}
PIXELS = 130  # an inch, on a wide screen
NOTHING = dict.fromkeys(("Creator", "Date", "Format", "Type"))  # no stamps: the same study, the same bytes


def inline_svg(key: str, draw: Callable[["Axes"], Any], size: tuple[float, float], title: str, says: str) -> Html:
    """The plot that `draw` puts on axes of that size; `says` is for those who cannot see it."""
    mpl = matplotlib("a report")
    from matplotlib.figure import Figure

    settings = {"svg.fonttype": "none", "svg.hashsalt": key, "font.family": "DejaVu Sans"}
    with drawing(), mpl.rc_context(settings):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.subplots())
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata=NOTHING)
    return _embed(key, text.getvalue(), size[0], title, says)


def _embed(key: str, text: str, width: float, title: str, says: str) -> Html:
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
    spoken = tag("title", title, id=f"{key}-title") + tag("desc", says, id=f"{key}-desc")
    return Html(
        f'<svg viewBox="{view[1]}" role="img" aria-labelledby="{key}-title {key}-desc" style="max-width: '
        f'{PIXELS * width:.0f}px">{spoken}{body}</svg>'
    )
