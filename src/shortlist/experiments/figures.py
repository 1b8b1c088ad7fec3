"""From tables to figures: PNG and PDF next to the table."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shortlist.errors import BadExperiment
from shortlist.experiments.curves import draw_curves, panels_of, ratio_panels
from shortlist.experiments.heat import draw_heat
from shortlist.experiments.looks import AXES
from shortlist.experiments.results import Row, read_table, whole_file
from shortlist.experiments.run import table_path
from shortlist.experiments.sweep import Sweep, load_sweep
from shortlist.experiments.tables import columns
from shortlist.plots.style import STYLE, matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(sweep: Sweep, folder: Path) -> list[Path]:
    """Draw the sweep's figure from its table; the files written."""
    mpl = matplotlib("a figure")
    with mpl.rc_context(STYLE):
        figure = _KINDS[sweep.figure["kind"]](sweep, folder)
        return [_save(figure, table_path(sweep, folder).with_suffix(ending)) for ending in (".png", ".pdf")]


def _save(figure: "Figure", path: Path) -> Path:
    stamp: dict[str, Any] = {"CreationDate": None} if path.suffix == ".pdf" else {}
    with whole_file(path) as draft:
        figure.savefig(draft, dpi=200, metadata=stamp)
    return path


def _rows(sweep: Sweep, folder: Path) -> list[Row]:
    rows = read_table(table_path(sweep, folder), columns(sweep))
    if not rows:
        raise BadExperiment(f"{folder} has no results of {sweep.name}; first: shortlist experiment run {sweep.given}")
    return rows


def _lines(sweep: Sweep, folder: Path) -> "Figure":
    panels = panels_of(sweep, _rows(sweep, folder))
    return draw_curves(panels, sweep.title, AXES.get(sweep.measure, sweep.measure), sweep.figure.get("band"))


def _ratios(sweep: Sweep, folder: Path) -> "Figure":
    sources = [load_sweep(name) for name in sweep.figure["sources"]]
    panels = ratio_panels([(source, _rows(source, folder)) for source in sources])
    if not panels:
        raise BadExperiment(f"no cell in {folder} has its lower bound beside it; run the cells */lower-bound too")
    return draw_curves(panels, sweep.title, AXES["times_bound"])


def _heat(sweep: Sweep, folder: Path) -> "Figure":
    return draw_heat(_rows(sweep, folder), sweep.title)


_KINDS: dict[str, Callable[[Sweep, Path], "Figure"]] = {"lines": _lines, "ratios": _ratios, "heat": _heat}
