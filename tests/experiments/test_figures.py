import sys
from dataclasses import replace

import pytest

from experiments.engines import local
from experiments.errors import BadExperiment
from experiments.figures import _short, draw, draw_curves, panels_of, ratio_panels
from experiments.run import choose, run_sweep, table_path
from experiments.sweep import read_sweep
from experiments.tables import columns, read_table

from .conftest import TINY


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    sweep = read_sweep("tiny", TINY)
    run_sweep(sweep, choose(sweep, None, 2), folder, local(1))
    return sweep, folder


def test_a_figure_is_two_files_next_to_the_table(played):
    sweep, folder = played
    png, pdf = draw(sweep, folder)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert pdf.read_bytes().startswith(b"%PDF")
    first = pdf.read_bytes()
    assert draw(sweep, folder)[1].read_bytes() == first
    assert {path.name for path in folder.iterdir()} == {"tiny.csv", "tiny.jsonl", "tiny.png", "tiny.pdf"}


def test_a_panel_for_each_world_and_a_curve_for_each_method(played):
    sweep, folder = played
    rows = read_table(table_path(sweep, folder), columns(sweep))
    figure = draw_curves(panels_of(sweep, rows), "Tiny", "mean comparisons")
    spaced, drawn = figure.axes
    assert [axes.get_title() for axes in figure.axes] == ["equally spaced, gap = 1.5", "random utilities"]
    assert (len(spaced.containers), len(drawn.containers)) == (3, 2)
    assert all(axes.get_xscale() == axes.get_yscale() == "log" for axes in figure.axes)
    bridge = spaced.containers[0].lines[0]
    assert list(bridge.get_xdata()) == [3, 4]
    assert list(bridge.get_ydata()) == [float(row["mean"]) for row in rows if row["id"].endswith("bridge")][:2]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["bridge (ours), 2 runs", "oracle-tracking (Algorithm 1), 2 runs", "lower bound for any method"]


def test_ratios_leave_out_the_bound_itself(played):
    sweep, folder = played
    panels = ratio_panels([(sweep, read_table(table_path(sweep, folder), columns(sweep)))])
    titles = [["equally spaced, k = 1, gap = 1.5"], ["random utilities, k = 1"]]
    assert [[panel.title for panel in row] for row in panels] == titles
    assert {row["method"] for row in panels[0][0].rows} == {"bridge", "oracle-tracking"}
    assert min(float(row["times_bound"]) for row in panels[0][0].rows) > 1


def test_numbers_are_written_as_people_write_them():
    assert [_short(value) for value in (0.5, 20, 1e3, 2e4, 1e6, 5e9)] == ["0.5", "20", "1 k", "20 k", "1 M", "5 G"]


def test_nothing_to_draw(tmp_path):
    with pytest.raises(BadExperiment, match="first run: python -m experiments run tiny"):
        draw(read_sweep("tiny", TINY), tmp_path)
    with pytest.raises(BadExperiment, match=r"first run: python -m experiments run my/tiny\.toml"):
        draw(read_sweep("tiny", TINY, "my/tiny.toml"), tmp_path)


def test_a_title_is_no_mathematics(played):
    sweep, folder = played
    draw(replace(sweep, title="What $5 buy"), folder)


@pytest.mark.parametrize(
    ("package", "arguments"),
    [("joblib", "--jobs 2"), ("distributed", "--cluster tcp://127.0.0.1:1")],
)
def test_what_is_not_installed_is_named(tmp_path, monkeypatch, refused, package, arguments):
    monkeypatch.setitem(sys.modules, package, None)
    assert "pip install 'shortlist[cluster]'" in refused("run", "smoke", *arguments.split())
    assert not list(tmp_path.iterdir())
