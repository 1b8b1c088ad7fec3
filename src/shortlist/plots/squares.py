"""Item against item, best first: who beat whom, and where the votes went."""

from typing import TYPE_CHECKING

import numpy as np

from shortlist.findings.findings import Findings, findings_of
from shortlist.pairs import Floats
from shortlist.plots.style import GREY, INK, axes_for, drawing, plain_ticks, say_nothing, short
from shortlist.study.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.image import AxesImage

MOST_NUMBERS, MOST_NAMES = 16, 40
DARKEST = 0.25  # of the colours; darker ones would vanish on dark paper
NO_VOTES = "no votes yet"


def plot_matrix(study: Study | Findings, ax: "Axes | None" = None) -> "Axes":
    """How often the row's item was preferred to the column's, ties as half; empty where nobody compared them."""
    from matplotlib.colors import Normalize

    found = findings_of(study)
    square = found.matrix
    with drawing():
        ax = axes_for(ax, square_size(len(square.items)))
        if not square.votes.any():
            return say_nothing(ax, NO_VOTES)
        wins = found.problem.family.win is not None
        far = 0.5 if wins else float(np.nanmax(np.abs(square.share)))
        middle = found.problem.family.tie
        image = ax.imshow(
            square.share, cmap="PuOr_r", norm=Normalize(middle - far, middle + far), interpolation="none"
        )  # fmt: skip
        if len(square.items) <= MOST_NUMBERS:
            _write(ax, square.share, wins, middle, far)
        _frame(ax, image, square.items, found.problem.k, "share won by the row" if wins else "mean difference")
    return ax


def plot_allocation(study: Study | Findings, ax: "Axes | None" = None) -> "Axes":
    """How many votes each pair got, on a logarithmic scale."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, LogNorm
    from matplotlib.ticker import LogLocator

    found = findings_of(study)
    square = found.matrix
    with drawing():
        ax = axes_for(ax, square_size(len(square.items)))
        if not square.votes.any():
            return say_nothing(ax, NO_VOTES)
        votes = np.where(square.votes > 0, square.votes, np.nan)
        colours = ListedColormap(colormaps["cividis"](np.linspace(DARKEST, 1, 256)))
        image = ax.imshow(
            votes, cmap=colours, norm=LogNorm(1, max(2.0, float(np.nanmax(votes)))), interpolation="none"
        )  # fmt: skip
        bar = _frame(ax, image, square.items, found.problem.k, "votes")
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
    """Names, the line between the answer and the rest on both sides, and what the colours mean."""
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
        ax.set_xlabel("place")
        ax.set_ylabel("place")
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_color(GREY)
    figure = ax.get_figure()
    assert figure is not None
    bar = figure.colorbar(image, ax=ax, label=label, shrink=0.8)
    plain_ticks(bar.ax.yaxis)
    return bar
