"""Items against items, best first: who beat whom, and where the votes went."""

from typing import TYPE_CHECKING

import numpy as np

from shortlist.analysis.analysis import Analysis, as_analysis
from shortlist.core.pairs import Floats
from shortlist.plots.style import GREY, INK, axes_for, drawing, plain_ticks, short, show_nothing
from shortlist.study.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.image import AxesImage

MOST_NUMBERS, MOST_NAMES = 16, 40
DARKEST = 0.25  # of the colour map; darker colours are invisible on a dark page
NO_VOTES = "no votes yet"


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
    if n <= MOST_NAMES:
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
