"""Draw tables as figures: PNG and PDF files next to the table.

A figure of kind `lines` or `ratios` has log-log panels with standard errors and one legend that says how many runs a
point averages. A figure of kind `heat` shows the share of comparisons that each pair gets, one of kind `race` compares
sampling rules world by world (`race_figures`).
"""

import math
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from experiments.errors import BadExperiment
from experiments.method_styles import AXES, WORLDS, methods, runs, style_of
from experiments.race_figures import draw_exact, draw_proofs
from experiments.run import table_path
from experiments.sweep import LOWER_BOUND, W_STAR, Sweep, load_sweep
from experiments.tables import Row, columns, read_table, whole_file
from shortlist.core.pairs import Floats
from shortlist.plots import STYLE

WIDTH, HEIGHT, LEGEND, LINE = 3.0, 2.4, 2.5, 0.18  # inches of a panel, of a column of the legend, of a line of text
LETTERS = 13  # of a title in an inch
SQUARE, BAR = 3.0, 0.9  # inches of a heat map and of its scale
DECADES = 3.0  # the range of shares that the colours distinguish
SYMBOLS = {"delta": "δ", "alpha": "α"}


def draw(sweep: Sweep, folder: Path) -> list[Path]:
    """Draw the sweep's figure from its table and return the files."""
    with mpl.rc_context(STYLE):
        figure = _KINDS[sweep.figure["kind"]](sweep, folder)
        return [_save(figure, table_path(sweep, folder).with_suffix(ending)) for ending in (".png", ".pdf")]


def _save(figure: Figure, path: Path) -> Path:
    stamp: dict[str, Any] = {"CreationDate": None} if path.suffix == ".pdf" else {}
    with whole_file(path) as draft:
        figure.savefig(draft, dpi=200, metadata=stamp)
    return path


def read_rows(sweep: Sweep, folder: Path) -> list[Row]:
    """The table of a sweep that was run."""
    rows = read_table(table_path(sweep, folder), columns(sweep))
    if not rows:
        raise BadExperiment(
            f"{folder} has no results of {sweep.name}; first run: python -m experiments run {sweep.given}"
        )
    return rows


def _lines(sweep: Sweep, folder: Path) -> Figure:
    panels = panels_of(sweep, read_rows(sweep, folder))
    return draw_curves(panels, sweep.title, AXES.get(sweep.measure, sweep.measure), sweep.figure.get("band"))


def _ratios(sweep: Sweep, folder: Path) -> Figure:
    sources = [load_sweep(name) for name in sweep.figure["sources"]]
    panels = ratio_panels([(source, read_rows(source, folder)) for source in sources])
    if not panels:
        raise BadExperiment(f"no cell in {folder} has its lower bound beside it; run the cells */lower-bound too")
    return draw_curves(panels, sweep.title, AXES["times_bound"])


def _heat(sweep: Sweep, folder: Path) -> Figure:
    return draw_heat(read_rows(sweep, folder), sweep.title)


def _race(sweep: Sweep, folder: Path) -> Figure:
    drawing = draw_exact if sweep.measure == "exact" else draw_proofs
    return drawing(read_rows(sweep, folder), sweep.title)


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
    """Comparisons divided by the lower bound: a row for each kind of world that has one, a column for each table."""
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
    """A panel whose title has the parameters that distinguish it from other panels."""
    named = [column for column in (*by, "gap" if "instance" in by else "") if column and column != x]
    alike = [(column, found[0]) for column in named if len(found := _values(column, rows)) == 1]
    return Panel(", ".join(_said(column, value) for column, value in alike if value), x, rows, y, error)


def _said(column: str, value: str) -> str:
    return WORLDS.get(value, f"{SYMBOLS.get(column, column)} = {value}")


def draw_curves(panels: list[list[Panel]], title: str, y_label: str, band: Sequence[float] | None = None) -> Figure:
    """The figure of a grid of panels; `band` is a range of x to shade."""
    down, across = len(panels), max(len(row) for row in panels)
    rows = [row for panel_row in panels for panel in panel_row for row in panel.rows]
    aside = across == 1  # one panel has its legend at its side, several have it below
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
    """The parameters that are the same in all panels and in none of their titles."""
    flat = [panel for panel_row in panels for panel in panel_row if panel.rows]
    rows = [row for panel in flat for row in panel.rows]
    names = [name for name in ("n", "k", "delta") if all(name != panel.x for panel in flat)]
    said = [_said(name, rows[0][name]) for name in names if len(_values(name, rows)) == 1]
    return "".join(f"{entry}, " for entry in said if all(entry not in panel.title for panel in flat))


def _draw_panel(axes: Axes, panel: Panel, band: Sequence[float] | None) -> None:
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


def _draw_curve(axes: Axes, method: str, panel: Panel) -> None:
    rows = sorted(_where("method", method, panel.rows), key=lambda row: _place(panel.x, float(row[panel.x])))
    style = style_of(method)
    axes.errorbar(
        [_place(panel.x, float(row[panel.x])) for row in rows],
        [float(row[panel.y]) for row in rows],
        [float(row[panel.error] or 0) for row in rows],
        color=style.colour, marker=style.marker, linestyle=style.line, linewidth=1.2, markersize=4.5, capsize=2,
        elinewidth=0.8,
    )  # fmt: skip


def _place(x: str, value: float) -> float:
    """An allowed error is drawn at log(1/δ), because comparisons grow with it."""
    return -math.log(value) if x == "delta" else value


def _log_scale(axes: Axes) -> None:
    """Ticks at powers of ten; over a short range also at 2 and 5, or at round numbers."""
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


def _log_ticks(axes: Axes, x: str, values: Sequence[float]) -> None:
    """A tick at every value in the table."""
    axes.set_xscale("log")
    labels = [_power(value) if x == "delta" else f"{value:g}" for value in values]
    axes.set_xticks([_place(x, value) for value in values], labels)
    axes.xaxis.set_minor_locator(NullLocator())


def _power(value: float) -> str:
    digit, exponent = f"{value:.0e}".split("e")
    return f"$10^{{{int(exponent)}}}$" if digit == "1" else f"{value:g}"


def _legend(rows: Sequence[Row]) -> list[Line2D]:
    """Each method once, with how many runs its points average."""
    entries = []
    for method in methods(rows):
        style = style_of(method)
        label = style.label if method == LOWER_BOUND else f"{style.label}, {runs(rows, method)}"
        entries.append(Line2D([], [], color=style.colour, marker=style.marker, linestyle=style.line, label=label))
    return entries


def draw_heat(rows: Sequence[Row], title: str) -> Figure:
    names = sorted(methods(rows), key=lambda method: method != W_STAR)
    most = max(float(row["mean"]) for row in rows)
    figure = Figure(figsize=(SQUARE * len(names) + BAR, SQUARE + 0.55), layout="constrained")
    figure.suptitle(title, fontsize=9, parse_math=False)
    squares = figure.subplots(1, len(names), squeeze=False)[0]
    colours = LogNorm(most / 10**DECADES, most, clip=True)
    for axes, method in zip(squares, names, strict=True):
        mine = [row for row in rows if row["method"] == method]
        n = int(mine[0]["n"])
        image = axes.imshow(_square(mine, n), norm=colours, cmap="cividis", extent=(0.5, n + 0.5, n + 0.5, 0.5))
        _mark(axes, int(mine[0]["k"]), n)
        label = style_of(method).label
        axes.set_title(label if method == W_STAR else f"{label}, mean of {runs(mine, method)}")
    squares[0].set_ylabel("item, best first")
    figure.colorbar(image, ax=list(squares), label="share of comparisons", extend="min")
    return figure


def _square(rows: Sequence[Row], n: int) -> Floats:
    shares = np.full((n, n), np.nan)
    for row in rows:
        i, j = int(row["first"]), int(row["second"])
        shares[i, j] = shares[j, i] = float(row["mean"])
    return shares


def _mark(axes: Axes, k: int, n: int) -> None:
    """Draw the cutoff between the top k and the rest on both axes."""
    for line in (axes.axhline, axes.axvline):
        line(k + 0.5, color="white", linewidth=1.2)
    ticks = [place for place in range(1, n + 1) if place == 1 or place % 5 == 0]
    axes.set_xticks(ticks)
    axes.set_yticks(ticks)
    axes.grid(visible=False)
    axes.set_xlabel("item, best first")


_KINDS: dict[str, Callable[[Sweep, Path], Figure]] = {
    "lines": _lines, "ratios": _ratios, "heat": _heat, "race": _race,
}  # fmt: skip
