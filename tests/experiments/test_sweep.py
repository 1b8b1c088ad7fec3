import pytest

from shortlist.errors import BadExperiment
from shortlist.experiments.figures import _KINDS
from shortlist.experiments.looks import AXES, LOOKS
from shortlist.experiments.measures import PLAYED_BY, check_cell
from shortlist.experiments.sweep import load_sweep, read_sweep, sweep_names
from shortlist.io.instances import make_instance

from .conftest import TINY

BASELINES = {"seeks", "seeks-v2", "active-ranking", "active-ranking-tight", "borda-lucb"}


def test_grids_multiply_out_and_exceptions_apply():
    sweep = read_sweep("tiny", TINY)
    assert [cell.id for cell in sweep.cells][:4] == [
        "tiny/equally-spaced/n=3/bridge",
        "tiny/equally-spaced/n=3/oracle-tracking",
        "tiny/equally-spaced/n=3/lower-bound",
        "tiny/equally-spaced/n=4/bridge",
    ]
    assert len(sweep.cells) == 8
    bridge, tracking, bound = sweep.cells[:3]
    assert bridge.parameters == {
        "instance": "equally-spaced", "n": 3, "k": 1, "gap": 1.5, "delta": 0.2, "method": "bridge", "growth": 0.05,
        "seed": 7,
    }  # fmt: skip
    assert (bridge.runs, bound.runs, sweep.cells[-1].runs) == (3, 1, 3)
    assert tracking["alpha"] == 0.2
    assert bridge["alpha"] is bound["growth"] is sweep.cells[-1]["gap"] is None


def test_cells_are_chosen_by_name_or_pattern():
    sweep = read_sweep("tiny", TINY)
    assert len(sweep.select(None)) == 8
    assert [cell.id for cell in sweep.select("tiny/random-utilities/n=3/bridge")] == [
        "tiny/random-utilities/n=3/bridge"
    ]
    assert len(sweep.select("*/bridge")) == 3
    with pytest.raises(BadExperiment, match="experiment list tiny"):
        sweep.select("tiny/*/n=5/*")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("k = 1", "", "without k"),
        ("k = 1", "k = 1\nspeed = 3", "speed"),
        ("k = 1", "k = 'one'", "no int"),
        ("seed = 7", "seed = true", "no int"),
        ("n = [3, 4]", "n = [3, 3]", "twice"),
        ("title", "name", "lacks 'title'"),
        ("runs = 3", "runs = 0", "the least is 1"),
        ("[figure]", "[[figure]]", "not laid out"),
        ("where = {", "where = 3 # {", "not laid out"),
        ('x = "n"', 'x = "beauty"', "draws x"),
        ("[all]", "[all", "no TOML"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused(old, new, message):
    with pytest.raises(BadExperiment, match=message):
        read_sweep("tiny", TINY.replace(old, new))


def test_cells_that_cannot_be_played_are_refused():
    for old, new, message in [
        ('"bridge", "oracle-tracking"', '"bridge", "magic"', "unknown method 'magic'"),
        ('instance = "random-utilities"', 'instance = "sst"', "true utilities"),
        ('title = "Tiny"', 'title = "Tiny"\nmeasure = "beauty"', "unknown measure"),
    ]:
        sweep = read_sweep("tiny", TINY.replace(old, new))
        with pytest.raises(Exception, match=message):
            [check_cell(cell) for cell in sweep.cells]


@pytest.mark.parametrize("name", sweep_names())
def test_every_sweep_that_comes_along_can_be_played_and_drawn(name):
    sweep = load_sweep(name)
    assert sweep.figure["kind"] in _KINDS
    assert all(source in sweep_names() for source in sweep.figure.get("sources", []))
    assert sweep.cells or sweep.figure["sources"]
    for cell in sweep.cells:
        assert cell.id.startswith(f"{name}/")
        assert cell["method"] in {*PLAYED_BY[sweep.measure], *BASELINES}
        assert cell["method"] in LOOKS
        assert make_instance(cell["instance"], cell["k"], cell["n"]).n == cell["n"]
        assert sweep.measure in AXES or sweep.measure == "shares"


def test_the_papers_figures_have_the_papers_settings():
    for name, x in (("against-n", "n"), ("against-k", "k")):
        cells = load_sweep(name).cells
        assert {cell["instance"] for cell in cells} == {"random-utilities", "equally-spaced", "sst"}
        assert {cell["gap"] for cell in cells if cell["instance"] == "equally-spaced"} == {0.1}
        assert {cell["delta"] for cell in cells} == {0.01}
        assert {cell["k" if x == "n" else "n"] for cell in cells} == {5 if x == "n" else 100}
        assert {cell["instance"] for cell in cells if cell["method"] == "oracle"} == {"equally-spaced"}
        assert {cell["alpha"] for cell in cells} == {0.2, None}
    by_k = load_sweep("alpha-against-k").cells
    assert {(cell["n"], cell["gap"], cell["delta"]) for cell in by_k} == {(50, 0.25, 0.01)}
    assert {cell["k"] for cell in by_k} == {1, 2, 3, 5, 10}
    by_n = load_sweep("alpha-against-n-and-gap").cells
    assert {(cell["n"], cell["gap"]) for cell in by_n} == {(n, gap) for n in (20, 50, 100) for gap in (0.1, 0.25)}
    assert {cell["k"] for cell in by_n} == {5}
    assert {cell["method"] for cell in (*by_k, *by_n)} == {"oracle-tracking", "online-oracle"}
