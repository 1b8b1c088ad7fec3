"""Judges: agreement with the others, and preference for the item shown first."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shortlist.analysis.analysis import Analysis, as_analysis
from shortlist.analysis.position_bias import Share
from shortlist.plots.items import rows_size
from shortlist.plots.style import BLUE, INK, ORANGE, axes_for, drawing, name_rows, show_nothing
from shortlist.study.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_JUDGES = 20  # the ones with most votes
NO_JUDGES = "no judges are named"


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
