"""Where comparisons go: the share of each pair, best items first, one square a method."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from shortlist.experiments.looks import look, methods, runs
from shortlist.experiments.results import Row
from shortlist.experiments.sweep import W_STAR
from shortlist.pairs import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SQUARE, BAR = 3.0, 0.9  # inches
DECADES = 3.0  # of shares that the colours tell apart


def draw_heat(rows: Sequence[Row], title: str) -> "Figure":
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

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
        label = look(method).label
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


def _mark(axes: "Axes", k: int, n: int) -> None:
    """The line between the top k and the rest, on both sides."""
    for line in (axes.axhline, axes.axvline):
        line(k + 0.5, color="white", linewidth=1.2)
    ticks = [place for place in range(1, n + 1) if place == 1 or place % 5 == 0]
    axes.set_xticks(ticks)
    axes.set_yticks(ticks)
    axes.grid(visible=False)
    axes.set_xlabel("item, best first")
