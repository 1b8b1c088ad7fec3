"""Plots show the analysis, on new axes and on given ones."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

import matplotlib.pyplot as plt

from shortlist import plots
from tests.analysis.studies import analysis_of, study_of

ALL = [getattr(plots, name) for name in plots.__all__]


@pytest.fixture
def analysis():
    return analysis_of("certified")


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("kind", ["no votes", "only ties", "nobody named"])
def test_every_plot_where_something_is_missing(kind):
    """All other kinds are drawn for their reports."""
    for plot in ALL:
        plot(analysis_of(kind)).get_figure().draw_without_rendering()


@pytest.mark.parametrize("plot", ALL, ids=lambda plot: plot.__name__)
def test_a_study_on_given_axes(plot):
    ax = plt.subplots()[1]
    assert plot(study_of("one vote"), ax=ax) is ax


def test_ratings_are_where_they_belong(analysis):
    items, ax = analysis.ranking.items, plots.plot_ranking(analysis)
    assert [label.get_text() for label in ax.get_yticklabels()] == [one.item for one in items]
    drawn = np.concatenate([bar.lines[0].get_xdata() for bar in ax.containers])
    np.testing.assert_allclose(drawn, [one.utility for one in items])
    low = [bar.lines[2][0].get_segments()[0][0][0] for bar in ax.containers]
    np.testing.assert_allclose(low, [items[0].low, items[2].low])


def test_the_bound_ends_at_the_verdict(analysis):
    line = plots.plot_error_bound(analysis).lines[0]
    assert (line.get_xdata()[-1], line.get_ydata()[-1]) == (analysis.verdict.votes, analysis.verdict.error_bound)


def test_the_matrices_are_those_of_the_analysis(analysis):
    shown = plots.plot_matrix(analysis).images[0].get_array()
    np.testing.assert_allclose(np.ma.filled(shown, np.nan), analysis.matrix.share)
    votes = np.ma.filled(plots.plot_allocation(analysis).images[0].get_array(), np.nan)
    np.testing.assert_allclose(np.nan_to_num(votes), analysis.matrix.votes)


def test_a_plot_leaves_the_user_s_settings_alone(analysis):
    before = dict(mpl.rcParams)
    plots.plot_ranking(analysis)
    assert dict(mpl.rcParams) == before


def test_importing_plots_does_not_load_matplotlib():
    code = "import sys, shortlist.plots, shortlist.report.page; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
