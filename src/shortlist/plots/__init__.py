"""Plots of a study, each on axes of its own or on yours: `plot_utilities(study)`, `plot_matrix(study, ax=ax)`, ...

Every function takes a study, or its findings, and returns the axes. Needs matplotlib, the extra `plots`.
"""

from shortlist.plots.course import plot_error_bound
from shortlist.plots.judges import plot_agreement, plot_first_share
from shortlist.plots.places import plot_chances, plot_utilities
from shortlist.plots.squares import plot_allocation, plot_matrix

__all__ = [
    "plot_agreement", "plot_allocation", "plot_chances", "plot_error_bound", "plot_first_share", "plot_matrix",
    "plot_utilities",
]  # fmt: skip
