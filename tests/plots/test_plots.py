"""Plots show the findings, on axes of their own and on given ones."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

import matplotlib.pyplot as plt

from shortlist import plots
from shortlist.findings.findings import study_findings
from tests.findings.studies import KINDS

ALL = [getattr(plots, name) for name in plots.__all__]


@pytest.fixture(scope="module")
def found():
    return study_findings(KINDS["certified"]())


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("kind", ["no votes", "gaussian", "only ties", "nobody named", "one judge"])
def test_every_plot_of_every_kind(kind):
    found = study_findings(KINDS[kind]())
    for plot in ALL:
        plot(found).get_figure().draw_without_rendering()


@pytest.mark.parametrize("plot", ALL, ids=lambda plot: plot.__name__)
def test_a_study_on_given_axes(plot):
    ax = plt.subplots()[1]
    assert plot(KINDS["one vote"](), ax=ax) is ax


def test_utilities_are_where_they_belong(found):
    ax = plots.plot_utilities(found)
    assert [label.get_text() for label in ax.get_yticklabels()] == [place.item for place in found.standing.places]
    drawn = np.concatenate([bar.lines[0].get_xdata() for bar in ax.containers])
    np.testing.assert_allclose(drawn, [place.utility for place in found.standing.places])
    low = [bar.lines[2][0].get_segments()[0][0][0] for bar in ax.containers]
    np.testing.assert_allclose(low, [found.standing.places[0].low, found.standing.places[2].low])


def test_the_bound_ends_at_the_verdict(found):
    line = plots.plot_error_bound(found).lines[0]
    assert (line.get_xdata()[-1], line.get_ydata()[-1]) == (found.verdict.votes, found.verdict.error_bound)


def test_squares_are_the_matrix(found):
    shown = plots.plot_matrix(found).images[0].get_array()
    np.testing.assert_allclose(np.ma.filled(shown, np.nan), found.matrix.share)
    votes = np.ma.filled(plots.plot_allocation(found).images[0].get_array(), np.nan)
    np.testing.assert_allclose(np.nan_to_num(votes), found.matrix.votes)


def test_a_plot_leaves_the_user_s_settings_alone(found):
    before = dict(mpl.rcParams)
    plots.plot_utilities(found)
    assert dict(mpl.rcParams) == before


def test_importing_plots_does_not_load_matplotlib():
    code = "import sys, shortlist.plots, shortlist.findings.findings; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
