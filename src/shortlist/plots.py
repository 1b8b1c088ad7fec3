"""Plots of a study, on new axes or on yours: `plot_ranking(study)`, `plot_matrix(study, ax=ax)`.

Every function takes a study or its analysis and returns the axes. Figures are readable in print and without colour,
with colours that colour-blind people can tell apart. matplotlib is imported when something is drawn, so that importing
the package stays fast.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shortlist.analysis.analysis import Analysis, as_analysis
from shortlist.analysis.judges import Share
from shortlist.analysis.ranking import RankedItem
from shortlist.core.pairs import Floats
from shortlist.study.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colorbar import Colorbar
    from matplotlib.image import AxesImage

__all__ = [
    "plot_agreement", "plot_allocation", "plot_chances", "plot_error_bound", "plot_matrix", "plot_position_bias",
    "plot_ranking",
]  # fmt: skip

# Okabe and Ito's colours
BLUE, ORANGE, GREEN, SKY = "#0072B2", "#D55E00", "#009E73", "#56B4E9"
AMBER, PURPLE = "#E69F00", "#CC79A7"
INK, GREY = "#1F2328", "#666666"

STYLE: dict[Any, Any] = {
    "font.size": 8, "axes.titlesize": 9, "legend.fontsize": 8, "axes.grid": True, "grid.alpha": 0.25,
    "pdf.fonttype": 42,
}  # fmt: skip
INKED: dict[Any, Any] = {
    **STYLE,
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor"), INK),
    "axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left",
}  # fmt: skip
LONG_NAME = 24  # characters of a name that fit beside a plot

LEAST = 1e-12  # smaller bounds are drawn here
MOST_ROWS, UNNAMED = 60, 32  # rows
ROW, EDGE = 0.21, 0.75  # inches
MOST_JUDGES = 20  # the ones with most votes
NO_JUDGES = "no judges are named"
MOST_NUMBERS, MOST_COLUMNS = 16, 40
DARKEST = 0.25  # of the colour map; darker colours are invisible on a dark page
NO_VOTES = "no votes yet"


def plot_error_bound(study: Study | Analysis, ax: "Axes | None" = None) -> "Axes":
    """The anytime error bound after so many votes, on a logarithmic scale, and the allowed error."""
    analysis = as_analysis(study)
    history, delta = analysis.bound_history, analysis.problem.delta
    votes, bound = [point.votes for point in history], [max(point.error_bound, LEAST) for point in history]
    with drawing():
        ax = axes_for(ax, (6.4, 2.6))
        if not votes:
            return show_nothing(ax, "the error bound over time was not computed")
        ax.step(votes, bound, where="post", color=BLUE, linewidth=1.5)
        ax.plot(votes[-1:], bound[-1:], "o", color=BLUE, markersize=4.5, clip_on=False)
        ax.axhline(delta, color=ORANGE, linestyle="--", linewidth=1.1)
        ax.set_yscale("log")
        plain_ticks(ax.yaxis)
        ax.set_ylim(min(delta, *bound) / 2, 1.6)
        ax.set_xlim(0, max(1, *votes))
        ax.annotate(f"allowed error {delta:g}", (0, delta), (4, 3), textcoords="offset points", va="bottom", color=INK)
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.set_xlabel("votes")
        ax.set_ylabel("error bound")
    return ax


def plot_ranking(study: Study | Analysis, ax: "Axes | None" = None) -> "Axes":
    """Posterior ratings and their 95 % intervals, with a line at the cutoff."""
    analysis = as_analysis(study)
    items, k = analysis.ranking.items, analysis.problem.k
    with drawing():
        ax = axes_for(ax, rows_size(len(items)))
        for rows, colour, marker, label in _sides(len(items), k):
            middle = np.array([items[row].utility for row in rows])
            reach = [middle - [items[row].low for row in rows], np.array([items[row].high for row in rows]) - middle]
            ax.errorbar(
                middle, rows, xerr=reach, fmt=marker, color=colour, markersize=4.5, elinewidth=1.1, capsize=0,
                markerfacecolor=colour if marker == "o" else "none", label=label,
            )  # fmt: skip
        _rows(ax, items, k)
        unit = "log-odds" if not analysis.problem.family.is_measured else "in the unit of the outcomes"
        ax.set_xlabel(f"rating above the average item ({unit})")
        ax.legend(loc="best", frameon=False)
    return ax


def plot_chances(study: Study | Analysis, ax: "Axes | None" = None) -> "Axes":
    """Each item's posterior chance of being in the top k. An estimate, not a proof."""
    analysis = as_analysis(study)
    items, k = analysis.ranking.items, analysis.problem.k
    with drawing():
        ax = axes_for(ax, rows_size(len(items)))
        for rows, colour, marker, label in _sides(len(items), k):
            chance = [items[row].chance for row in rows]
            ax.hlines(rows, 0, chance, color=colour, linewidth=1.4)
            ax.plot(
                chance, rows, marker, color=colour, markersize=4.5, label=label,
                markerfacecolor=colour if marker == "o" else "none", clip_on=False,
            )  # fmt: skip
        _rows(ax, items, k)
        ax.set_xlim(0, 1)
        ax.set_xlabel(f"chance of being in the top {k}")
    return ax


def rows_size(rows: int) -> tuple[float, float]:
    """Width and height in inches; many rows are drawn without names and need less room."""
    return 6.4, EDGE + ROW * (max(rows, 3) if rows <= MOST_ROWS else UNNAMED)


def _sides(n: int, k: int) -> list[tuple[list[int], str, str, str]]:
    inside, outside = list(range(k)), list(range(k, n))
    return [(inside, BLUE, "o", "in the answer"), (outside, ORANGE, "s", "not in the answer")]


def _rows(ax: "Axes", items: tuple[RankedItem, ...], k: int) -> None:
    if len(items) <= MOST_ROWS:
        name_rows(ax, [one.item for one in items])
    else:
        step = 10 * max(1, len(items) // 200)
        number_rows(ax, len(items), [0, *range(step - 1, len(items), step)])
    ax.axhline(k - 0.5, color=INK, linestyle="--", linewidth=0.9)
    ax.grid(visible=False, axis="y")
    ax.spines["left"].set_color(GREY)


def plot_agreement(study: Study | Analysis, ax: "Axes | None" = None) -> "Axes":
    """Each judge's share of votes for the item that the others rate higher, with 95 % intervals."""
    judges = as_analysis(study).checks.agreement.judges
    rows = [(one.judge, one.agreement, one.expected) for one in judges if one.agreement is not None][:MOST_JUDGES]
    with drawing():
        ax = axes_for(ax, rows_size(len(rows)))
        if not rows:
            return show_nothing(ax, NO_JUDGES)
        _dots(ax, [name for name, _, _ in rows], [share for _, share, _ in rows], "this judge")
        expected = [share for _, _, share in rows if share is not None]
        ax.plot(expected, range(len(rows)), "|", color=ORANGE, markersize=9, markeredgewidth=1.6, label="expected")
        ax.set_xlabel("share of votes for the item that the others rate higher")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=2, frameon=False)  # above: bars may be anywhere
    return ax


def plot_position_bias(study: Study | Analysis, ax: "Axes | None" = None) -> "Axes":
    """How often each judge preferred the item shown first, with 95 % intervals."""
    checks = as_analysis(study).checks
    judges = [(one.judge, one.position_bias.first) for one in checks.agreement.judges if one.position_bias.first.votes]
    rows = [("all votes", checks.position_bias.first), *judges[:MOST_JUDGES]]
    with drawing():
        ax = axes_for(ax, rows_size(len(rows)))
        if not checks.position_bias.first.votes:
            return show_nothing(ax, "no votes, or only ties")
        _dots(ax, [name for name, _ in rows], [share for _, share in rows], "share")
        ax.set_xlabel("share of votes for the item shown first")
    return ax


def _dots(ax: "Axes", names: Sequence[str], shares: Sequence[Share], label: str) -> None:
    middle = [share.share for share in shares]
    below = [share.share - share.low for share in shares]
    above = [share.high - share.share for share in shares]
    rows = range(len(shares))
    ax.errorbar(middle, rows, xerr=[below, above], fmt="o", color=BLUE, markersize=4.5, elinewidth=1.1, label=label)
    ax.axvline(0.5, color=INK, linestyle="--", linewidth=0.9)
    name_rows(ax, names)
    ax.set_xlim(0, 1)
    ax.grid(visible=False, axis="y")


def plot_matrix(study: Study | Analysis, ax: "Axes | None" = None) -> "Axes":
    """How often the row's item won against the column's, ties as half; empty where nobody compared them."""
    from matplotlib.colors import Normalize

    analysis = as_analysis(study)
    matrix = analysis.matrix
    with drawing():
        ax = axes_for(ax, square_size(len(matrix.items)))
        if not matrix.votes.any():
            return show_nothing(ax, NO_VOTES)
        wins = not analysis.problem.family.is_measured
        far = 0.5 if wins else float(np.nanmax(np.abs(matrix.share)))
        middle = analysis.problem.family.tie
        image = ax.imshow(
            matrix.share, cmap="PuOr_r", norm=Normalize(middle - far, middle + far), interpolation="none"
        )  # fmt: skip
        if len(matrix.items) <= MOST_NUMBERS:
            _write(ax, matrix.share, wins, middle, far)
        _frame(ax, image, matrix.items, analysis.problem.k, "share won by the row" if wins else "mean difference")
    return ax


def plot_allocation(study: Study | Analysis, ax: "Axes | None" = None) -> "Axes":
    """How many votes each pair got, on a logarithmic scale."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, LogNorm
    from matplotlib.ticker import LogLocator

    analysis = as_analysis(study)
    matrix = analysis.matrix
    with drawing():
        ax = axes_for(ax, square_size(len(matrix.items)))
        if not matrix.votes.any():
            return show_nothing(ax, NO_VOTES)
        votes = np.where(matrix.votes > 0, matrix.votes, np.nan)
        colours = ListedColormap(colormaps["cividis"](np.linspace(DARKEST, 1, 256)))
        image = ax.imshow(
            votes, cmap=colours, norm=LogNorm(1, max(2.0, float(np.nanmax(votes)))), interpolation="none"
        )  # fmt: skip
        bar = _frame(ax, image, matrix.items, analysis.problem.k, "votes")
        bar.locator = LogLocator(subs=(1, 2, 5))
        bar.update_ticks()
        plain_ticks(bar.ax.yaxis)
    return ax


def square_size(n: int) -> tuple[float, float]:
    side = min(max(2.6, 1.3 + 0.2 * n), 6.0)
    return side + 0.9, side


def _write(ax: "Axes", share: Floats, wins: bool, middle: float, far: float) -> None:
    """The numbers in their cells, white where the cell is dark."""
    for (row, column), value in np.ndenumerate(share):
        if np.isfinite(value):
            text = f"{100 * value:.0f}" if wins else f"{value:.2g}"
            dark = abs(value - middle) > 0.6 * far
            ax.text(column, row, text, ha="center", va="center", fontsize=6.5, color="white" if dark else "black")


def _frame(ax: "Axes", image: "AxesImage", items: tuple[str, ...], k: int, label: str) -> "Colorbar":
    """Names, the cutoff on both axes, and a scale for the colours."""
    n = len(items)
    ax.grid(visible=False)
    for line in (ax.axhline, ax.axvline):
        line(k - 0.5, color=INK, linewidth=1.1, linestyle="--")
    if n <= MOST_COLUMNS:
        names = [short(item) for item in items]
        ax.set_xticks(range(n), names, rotation=90)
        ax.set_yticks(range(n), names)
    else:
        ticks = [0, *range(9, n, 10 * max(1, n // 100))]
        for axis in (ax.set_xticks, ax.set_yticks):
            axis(ticks, [str(tick + 1) for tick in ticks])
        ax.set_xlabel("rank")
        ax.set_ylabel("rank")
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_color(GREY)
    figure = ax.get_figure()
    assert figure is not None
    bar = figure.colorbar(image, ax=ax, label=label, shrink=0.8)
    plain_ticks(bar.ax.yaxis)
    return bar


def axes_for(ax: "Axes | None", size: tuple[float, float]) -> "Axes":
    """The given axes, or new ones of this size in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def drawing() -> Any:
    """The context that gives plots this style."""
    from matplotlib import rc_context

    return rc_context(INKED)


def short(name: str) -> str:
    """A name that fits beside a plot, without control characters; a dollar sign does not start a formula."""
    cut = name if len(name) <= LONG_NAME else f"{name[: LONG_NAME - 1]}…"
    return "".join(letter if letter.isprintable() else " " for letter in cut).replace("$", r"\$")


def name_rows(ax: "Axes", names: Sequence[str]) -> None:
    """One row for each name, the first on top."""
    ax.set_yticks(range(len(names)), [short(name) for name in names])
    _frame_rows(ax, len(names))


def number_rows(ax: "Axes", rows: int, numbered: Sequence[int]) -> None:
    """Rows without names, the first on top; some have a number."""
    ax.set_yticks(numbered, [str(row + 1) for row in numbered])
    _frame_rows(ax, rows)
    ax.set_ylabel("rank")


def _frame_rows(ax: "Axes", rows: int) -> None:
    ax.set_ylim(rows - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def plain_ticks(axis: "Axis") -> None:
    """0.1 rather than a power of ten."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def show_nothing(ax: "Axes", why: str) -> "Axes":
    """Empty axes with a note."""
    ax.set_axis_off()
    ax.text(0.5, 0.5, why, ha="center", va="center", transform=ax.transAxes, color=GREY)
    return ax
