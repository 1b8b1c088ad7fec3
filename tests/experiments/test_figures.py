import subprocess
import sys
from dataclasses import replace

import pytest

from shortlist.errors import BadExperiment
from shortlist.experiments.curves import _short, draw_curves, panels_of, ratio_panels
from shortlist.experiments.engines import local
from shortlist.experiments.figures import draw
from shortlist.experiments.results import read_table
from shortlist.experiments.run import choose, run_sweep, table_path
from shortlist.experiments.sweep import read_sweep
from shortlist.experiments.tables import columns

from .conftest import TINY, results


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
    with pytest.raises(BadExperiment, match="first: shortlist experiment run tiny"):
        draw(read_sweep("tiny", TINY), tmp_path)
    with pytest.raises(BadExperiment, match=r"first: shortlist experiment run my/tiny\.toml"):
        draw(read_sweep("tiny", TINY, "my/tiny.toml"), tmp_path)


def test_a_title_is_no_mathematics(played):
    sweep, folder = played
    draw(replace(sweep, title="What $5 buy"), folder)


@pytest.mark.parametrize(
    ("package", "arguments", "extra"),
    [("matplotlib", "plot smoke", "plots"), ("distributed", "run smoke --cluster tcp://127.0.0.1:1", "cluster")],
)
def test_what_is_not_installed_is_named(tmp_path, package, arguments, extra):
    code = f"import sys; sys.modules[{package!r}] = None; sys.argv[1:] = {['experiment', *arguments.split()]!r}"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; from shortlist.cli import main; main()"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert f"pip install 'shortlist[{extra}]'" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not results(tmp_path).parent.exists()
