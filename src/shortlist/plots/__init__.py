"""Plots of a study, on new axes or on yours: `plot_ranking(study)`, `plot_matrix(study, ax=ax)`.

Every function takes a study or its analysis and returns the axes.
"""

from shortlist.plots.figures import (
    plot_agreement,
    plot_allocation,
    plot_chances,
    plot_error_bound,
    plot_matrix,
    plot_position_bias,
    plot_ranking,
)

__all__ = [
    "plot_agreement", "plot_allocation", "plot_chances", "plot_error_bound", "plot_matrix", "plot_position_bias",
    "plot_ranking",
]  # fmt: skip
