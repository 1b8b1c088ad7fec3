"""Items, best first: ratings with intervals, and chances of being in the top k."""

from typing import TYPE_CHECKING

import numpy as np

from shortlist.analysis.analysis import Analysis, as_analysis
from shortlist.analysis.ranking import RankedItem
from shortlist.plots.style import BLUE, GREY, INK, ORANGE, axes_for, drawing, name_rows, number_rows
from shortlist.study.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NAMES, UNNAMED = 60, 32  # rows
ROW, EDGE = 0.21, 0.75  # inches


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
    return 6.4, EDGE + ROW * (max(rows, 3) if rows <= MOST_NAMES else UNNAMED)


def _sides(n: int, k: int) -> list[tuple[list[int], str, str, str]]:
    inside, outside = list(range(k)), list(range(k, n))
    return [(inside, BLUE, "o", "in the answer"), (outside, ORANGE, "s", "not in the answer")]


def _rows(ax: "Axes", items: tuple[RankedItem, ...], k: int) -> None:
    if len(items) <= MOST_NAMES:
        name_rows(ax, [one.item for one in items])
    else:
        step = 10 * max(1, len(items) // 200)
        number_rows(ax, len(items), [0, *range(step - 1, len(items), step)])
    ax.axhline(k - 0.5, color=INK, linestyle="--", linewidth=0.9)
    ax.grid(visible=False, axis="y")
    ax.spines["left"].set_color(GREY)
