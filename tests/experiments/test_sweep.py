import pytest

from experiments.errors import BadExperiment
from experiments.figures import _KINDS
from experiments.measures import PLAYED_BY, check_cell
from experiments.method_styles import AXES, METHOD_STYLES
from experiments.sweep import load_sweep, read_sweep, sweep_names
from shortlist import make_instance
from shortlist.errors import BadInstance

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
    with pytest.raises(BadExperiment, match="experiments list tiny"):
        sweep.select("tiny/*/n=5/*")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("k = 1", "", "without k"),
        ("k = 1", "k = 1\nspeed = 3", "speed"),
        ("k = 1", "k = 'one'", "not a whole number"),
        ("seed = 7", "seed = true", "not a whole number"),
        ("n = [3, 4]", "n = [3, 3]", "twice"),
        ("title", "name", "lacks 'title'"),
        ("runs = 3", "runs = 0", "at least 1"),
        ("[figure]", "[[figure]]", "layout of a sweep"),
        ("where = {", "where = 3 # {", "layout of a sweep"),
        ('x = "n"', 'x = "beauty"', "draws x"),
        ('x = "n"', 'x = ["n"]', "draws x"),
        ('x = "n"', 'x = "method"', "draws x"),
        ('x = "n"', "", "draws x"),
        ('x = "n"', 'x = "n"\nband = 3', "two numbers"),
        ('x = "n"', 'x = "n"\naccross = "k"', "accross"),
        ('kind = "lines"', 'kind = "pie"', "choose one of lines"),
        ('kind = "lines"\nx = "n"\nacross = "instance"', 'kind = "heat"', "shares"),
        ('kind = "lines"\nx = "n"\nacross = "instance"', 'kind = "ratios"', "needs sources"),
        ('title = "Tiny"', 'title = "Tiny"\nmeasure = "shares"', "kind = 'heat'"),
        ('title = "Tiny"', "title = 3", "not a text"),
        ('title = "Tiny"', 'title = "Tiny"\nmeasure = ["comparisons"]', "not a text"),
        ('title = "Tiny"', 'title = "Tiny"\ngird = 3', "gird"),
        ('across = "instance"', "", "at one place"),
        ('where = { method = "lower-bound"', 'where = { methid = "lower-bound"', "methid"),
        ("[[grid]]", "[[gird]]", "gird"),
        ("[all]", "[all", "not valid TOML"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused(old, new, message):
    with pytest.raises(BadExperiment, match=message):
        read_sweep("tiny", TINY.replace(old, new))


def test_rules_tell_cells_apart():
    rules = TINY.replace('across = "instance"', 'across = "instance"\ndown = "stopping"').replace(
        '"n", "method"]', '"n", "method", "stopping"]'
    )
    sweep = read_sweep("tiny", rules.replace("growth = 0.05", 'growth = 0.05\nstopping = ["edges", "glr"]'))
    assert [cell.id for cell in sweep.cells][:2] == [
        "tiny/equally-spaced/n=3/bridge/edges",
        "tiny/equally-spaced/n=3/oracle-tracking/edges",
    ]


def test_a_file_of_numbers_is_part_of_the_definition(tmp_path):
    file = tmp_path / "strengths.txt"
    file.write_text("3 2 1 0")
    text = TINY.replace('"random-utilities"', f'"utilities:{file}"')
    four = read_sweep("tiny", text.replace("n = 3\n", "n = 4\n")).cells[-1]
    check_cell(four)
    assert len(four.definition["file"]) == 16
    assert "file" not in four.parameters
    with pytest.raises(BadInstance, match="has 4 items, and n is 3"):
        check_cell(read_sweep("tiny", text).cells[-1])


def test_cells_that_cannot_be_played_are_refused():
    for old, new, message in [
        ("growth = 0.05", "growth = -1", "growth"),
        ("alpha = 0.2", "alpha = 7", "alpha"),
        ("growth = 0.05", "growth = 0.05\nstopping = 'magic'", "unknown stopping rule"),
        ('"oracle-tracking", "lower-bound"]', '"seeks"]\ndelta = 0.5', "guarantee of SEEKS"),
        ('"oracle-tracking", "lower-bound"]', '"seeks"]\nstopping = "glr"', "its own stopping rule"),
        (
            'instance = "random-utilities"\nn = 3\nmethod = ["bridge", "lower-bound"]',
            'instance = "sst"\nn = 3\nmethod = "oracle"',
            "true utilities",
        ),
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
        assert cell["method"] in METHOD_STYLES
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
