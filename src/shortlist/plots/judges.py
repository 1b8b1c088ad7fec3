"""Judge by judge: how often they agree with the others, and with the side they see first."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shortlist.findings.findings import Findings, findings_of
from shortlist.findings.sides import Share
from shortlist.plots.places import rows_size
from shortlist.plots.style import BLUE, INK, ORANGE, axes_for, drawing, name_rows, say_nothing
from shortlist.study.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 20  # judges, those with most votes
NOBODY = "no judges are named"


def plot_agreement(study: Study | Findings, ax: "Axes | None" = None) -> "Axes":
    """Each judge's share of votes for the item that the others put higher, with 95 % intervals."""
    judges = findings_of(study).trust.agreement.judges
    rows = [(one.judge, one.agreement, one.expected) for one in judges if one.agreement is not None][:SHOWN]
    with drawing():
        ax = axes_for(ax, rows_size(len(rows)))
        if not rows:
            return say_nothing(ax, NOBODY)
        _dots(ax, [name for name, _, _ in rows], [share for _, share, _ in rows], "this judge")
        expected = [share for _, _, share in rows if share is not None]
        ax.plot(expected, range(len(rows)), "|", color=ORANGE, markersize=9, markeredgewidth=1.6, label="expected")
        ax.set_xlabel("votes for the item that the others put higher")
        ax.legend(loc="lower left", frameon=False)
    return ax


def plot_first_share(study: Study | Findings, ax: "Axes | None" = None) -> "Axes":
    """How often each judge preferred the item shown first, with 95 % intervals."""
    found = findings_of(study).trust
    rows = [("all votes", found.sides.first)]
    rows += [(one.judge, one.sides.first) for one in found.agreement.judges if one.sides.first.votes][:SHOWN]
    with drawing():
        ax = axes_for(ax, rows_size(len(rows)))
        if not found.sides.first.votes:
            return say_nothing(ax, "no votes but ties")
        _dots(ax, [name for name, _ in rows], [share for _, share in rows], "share")
        ax.set_xlabel("votes for the item shown first")
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
