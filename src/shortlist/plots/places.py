"""Item by item, best first: utilities with intervals, chances of being in the top k."""

from typing import TYPE_CHECKING

import numpy as np

from shortlist.findings.findings import Findings, findings_of
from shortlist.findings.standing import Place
from shortlist.plots.style import BLUE, GREY, INK, ORANGE, axes_for, drawing, name_rows
from shortlist.study.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NAMES, UNNAMED = 60, 32  # rows
ROW, EDGE = 0.21, 0.75  # inches


def plot_utilities(study: Study | Findings, ax: "Axes | None" = None) -> "Axes":
    """Posterior utilities and their 95 % intervals, with the line below the answer."""
    found = findings_of(study)
    places, k = found.standing.places, found.problem.k
    with drawing():
        ax = axes_for(ax, rows_size(len(places)))
        for rows, colour, marker, label in _sides(places, k):
            middle = np.array([places[row].utility for row in rows])
            reach = [middle - [places[row].low for row in rows], np.array([places[row].high for row in rows]) - middle]
            ax.errorbar(
                middle, rows, xerr=reach, fmt=marker, color=colour, markersize=4.5, elinewidth=1.1, capsize=0,
                markerfacecolor=colour if marker == "o" else "none", label=label,
            )  # fmt: skip
        _rows(ax, places, k)
        unit = "log-odds" if found.problem.family.win is not None else "units of the outcome"
        ax.set_xlabel(f"utility ({unit}), with 95 % intervals")
        ax.legend(loc="best", frameon=False)
    return ax


def plot_chances(study: Study | Findings, ax: "Axes | None" = None) -> "Axes":
    """Each item's posterior chance of being in the top k: an estimate, not a proof."""
    found = findings_of(study)
    places, k = found.standing.places, found.problem.k
    with drawing():
        ax = axes_for(ax, rows_size(len(places)))
        for rows, colour, marker, label in _sides(places, k):
            chance = [places[row].chance for row in rows]
            ax.hlines(rows, 0, chance, color=colour, linewidth=1.4)
            ax.plot(
                chance, rows, marker, color=colour, markersize=4.5, label=label,
                markerfacecolor=colour if marker == "o" else "none", clip_on=False,
            )  # fmt: skip
        _rows(ax, places, k)
        ax.set_xlim(0, 1)
        ax.set_xlabel(f"chance of being in the top {k}")
    return ax


def rows_size(rows: int) -> tuple[float, float]:
    """In inches; many rows without names need less room."""
    return 6.4, EDGE + ROW * (max(rows, 3) if rows <= MOST_NAMES else UNNAMED)


def _sides(places: tuple[Place, ...], k: int) -> list[tuple[list[int], str, str, str]]:
    inside, outside = list(range(k)), list(range(k, len(places)))
    return [(inside, BLUE, "o", "in the answer"), (outside, ORANGE, "s", "not in the answer")]


def _rows(ax: "Axes", places: tuple[Place, ...], k: int) -> None:
    name_rows(ax, [place.item for place in places])
    if len(places) > MOST_NAMES:
        step = 10 * max(1, len(places) // 200)
        ticks = [0, *range(step - 1, len(places), step)]
        ax.set_yticks(ticks, [str(tick + 1) for tick in ticks])
        ax.set_ylabel("place")
    ax.axhline(k - 0.5, color=INK, linestyle="--", linewidth=0.9)
    ax.grid(visible=False, axis="y")
    ax.spines["left"].set_color(GREY)
