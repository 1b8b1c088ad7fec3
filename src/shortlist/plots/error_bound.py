"""The error bound, vote by vote."""

from typing import TYPE_CHECKING

from shortlist.analysis.analysis import Analysis, as_analysis
from shortlist.plots.style import BLUE, INK, ORANGE, axes_for, drawing, plain_ticks, show_nothing
from shortlist.study.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST = 1e-12  # smaller bounds are drawn here


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
