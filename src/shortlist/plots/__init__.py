"""Plots of a study, on new axes or on yours: `plot_ranking(study)`, `plot_matrix(study, ax=ax)`.

Every function takes a study or its analysis and returns the axes.
"""

from shortlist.plots.error_bound import plot_error_bound
from shortlist.plots.items import plot_chances, plot_ranking
from shortlist.plots.judges import plot_agreement, plot_position_bias
from shortlist.plots.matrices import plot_allocation, plot_matrix

__all__ = [
    "plot_agreement", "plot_allocation", "plot_chances", "plot_error_bound", "plot_matrix", "plot_position_bias",
    "plot_ranking",
]  # fmt: skip
