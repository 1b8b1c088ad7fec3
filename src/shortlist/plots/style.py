"""The style of all figures: readable in print and without colour, with colours that colour-blind people can tell apart.

matplotlib is imported when something is drawn, so that importing the package stays fast.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

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
