"""Panels of curves, log-log, with standard errors, and one legend that says how many runs a point stands for."""

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from shortlist.experiments.looks import AXES, WORLDS, look, methods, runs
from shortlist.experiments.results import Row
from shortlist.experiments.sweep import LOWER_BOUND, Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

WIDTH, HEIGHT, LEGEND, LINE = 3.0, 2.4, 2.5, 0.18  # inches of a panel, of a column of the legend, of a line of text
LETTERS = 13  # of a title in an inch
SYMBOLS = {"delta": "δ", "alpha": "α"}


class Panel(NamedTuple):
    """One pair of axes: a curve for each method of the rows."""

    title: str
    x: str
    rows: Sequence[Row]
    y: str
    error: str


def panels_of(sweep: Sweep, rows: Sequence[Row]) -> list[list[Panel]]:
    """A panel for each value of the columns `across` and `down` that the sweep's figure names."""
    x, across, down = (sweep.figure.get(name, "") for name in ("x", "across", "down"))
    return [
        [_panel(x, _where(across, a, _where(down, d, rows)), (down, across)) for a in _values(across, rows)]
        for d in _values(down, rows)
    ]


def ratio_panels(tables: Sequence[tuple[Sweep, Sequence[Row]]]) -> list[list[Panel]]:
    """Comparisons over the lower bound: a row for each kind of world that has one, a column for each table."""
    own = [
        (sweep.figure["x"], [row for row in rows if row["times_bound"] and row["method"] != LOWER_BOUND])
        for sweep, rows in tables
    ]
    by, y = ("instance", "n", "k"), ("times_bound", "times_bound_error")
    worlds = _values("instance", [row for _, rows in own for row in rows])
    return [[_panel(x, _where("instance", world, rows), by, *y) for x, rows in own] for world in worlds]


def _values(column: str, rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row[column] for row in rows)) if column else [""]


def _where(column: str, value: str, rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if not column or row[column] == value]


def _panel(x: str, rows: Sequence[Row], by: Sequence[str], y: str = "mean", error: str = "standard_error") -> Panel:
    """Titled after what tells it from other panels."""
    named = [column for column in (*by, "gap" if "instance" in by else "") if column and column != x]
    alike = [(column, found[0]) for column in named if len(found := _values(column, rows)) == 1]
    return Panel(", ".join(_said(column, value) for column, value in alike if value), x, rows, y, error)


def _said(column: str, value: str) -> str:
    return WORLDS.get(value, f"{SYMBOLS.get(column, column)} = {value}")


def draw_curves(panels: list[list[Panel]], title: str, y_label: str, band: Sequence[float] | None = None) -> "Figure":
    """The figure of a grid of panels; `band` is a range of x to shade."""
    from matplotlib.figure import Figure

    down, across = len(panels), max(len(row) for row in panels)
    rows = [row for panel_row in panels for panel in panel_row for row in panel.rows]
    aside = across == 1  # a lone panel has its legend at its side, and many have it below
    width = WIDTH * across + LEGEND * aside
    columns = 1 if aside else int(width / LEGEND)
    head = [*textwrap.wrap(title, int(width * LETTERS)), f"{_constants(panels)}mean ± standard error"]
    lines = len(head) + (0 if aside else math.ceil(len(methods(rows)) / columns))
    figure = Figure(figsize=(width, HEIGHT * down + LINE * lines), layout="constrained")
    figure.suptitle("\n".join(head), fontsize=9, parse_math=False)
    grid = figure.subplots(down, across, squeeze=False)
    for axes_row, panel_row in zip(grid, panels, strict=True):
        for axes, panel in zip(axes_row, panel_row, strict=True):
            _draw_panel(axes, panel, band)
        axes_row[0].set_ylabel(y_label)
    entries = _legend(rows)
    if aside:
        figure.legend(handles=entries, loc="outside right center", frameon=False)
    else:
        figure.legend(handles=entries, loc="outside lower center", ncols=columns, frameon=False)
    return figure


def _constants(panels: list[list[Panel]]) -> str:
    """What is the same in all panels, and in none of their titles."""
    flat = [panel for panel_row in panels for panel in panel_row if panel.rows]
    rows = [row for panel in flat for row in panel.rows]
    names = [name for name in ("n", "k", "delta") if all(name != panel.x for panel in flat)]
    said = [_said(name, rows[0][name]) for name in names if len(_values(name, rows)) == 1]
    return "".join(f"{entry}, " for entry in said if all(entry not in panel.title for panel in flat))


def _draw_panel(axes: "Axes", panel: Panel, band: Sequence[float] | None) -> None:
    if not panel.rows:
        axes.set_axis_off()
        return
    for method in methods(panel.rows):
        _draw_curve(axes, method, panel)
    if band is not None:
        axes.axvspan(band[0], band[1], color="black", alpha=0.07, linewidth=0)
    axes.set_title(panel.title)
    axes.set_xlabel(AXES.get(panel.x, panel.x))
    _log_scale(axes)
    _log_ticks(axes, panel.x, sorted({float(row[panel.x]) for row in panel.rows}))


def _draw_curve(axes: "Axes", method: str, panel: Panel) -> None:
    rows = sorted(_where("method", method, panel.rows), key=lambda row: _place(panel.x, float(row[panel.x])))
    style = look(method)
    axes.errorbar(
        [_place(panel.x, float(row[panel.x])) for row in rows],
        [float(row[panel.y]) for row in rows],
        [float(row[panel.error] or 0) for row in rows],
        color=style.colour, marker=style.marker, linestyle=style.line, linewidth=1.2, markersize=4.5, capsize=2,
        elinewidth=0.8,
    )  # fmt: skip


def _place(x: str, value: float) -> float:
    """An allowed error is drawn at log(1/δ), which is what comparisons grow with."""
    return -math.log(value) if x == "delta" else value


def _log_scale(axes: "Axes") -> None:
    """Every power of ten; over a short range 2 and 5 too, or just round numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    few = MaxNLocator(4, steps=[1, 2, 5, 10])
    several = LogLocator(10, subs=(1, 2, 5) if high < 100 * low else (1,))
    axes.yaxis.set_major_locator(few if high < 4 * low else several)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _short(value: float) -> str:
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= 0.999 * size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _log_ticks(axes: "Axes", x: str, values: Sequence[float]) -> None:
    """A tick at every value that was played."""
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log")
    labels = [_power(value) if x == "delta" else f"{value:g}" for value in values]
    axes.set_xticks([_place(x, value) for value in values], labels)
    axes.xaxis.set_minor_locator(NullLocator())


def _power(value: float) -> str:
    digit, exponent = f"{value:.0e}".split("e")
    return f"$10^{{{int(exponent)}}}$" if digit == "1" else f"{value:g}"


def _legend(rows: Sequence[Row]) -> "list[Line2D]":
    """All methods once, with how many runs a point of theirs is the mean of."""
    from matplotlib.lines import Line2D

    entries = []
    for method in methods(rows):
        style = look(method)
        label = style.label if method == LOWER_BOUND else f"{style.label}, {runs(rows, method)}"
        entries.append(Line2D([], [], color=style.colour, marker=style.marker, linestyle=style.line, label=label))
    return entries
