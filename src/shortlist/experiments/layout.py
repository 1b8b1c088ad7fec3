"""What the figure of a sweep may say, and whether it can show the sweep's cells."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from shortlist.errors import BadExperiment

SETTINGS = {"lines": ("x", "across", "down", "band"), "heat": (), "ratios": ("sources",)}  # by kind of figure
AXES = {
    "x": ("n", "k", "gap", "delta", "alpha", "growth"),
    "across": ("instance", "n", "k", "gap", "delta", "rule", "alpha", "growth"),
}  # panels go across and down alike


class Drawn(Protocol):
    """A cell, as far as a figure looks at it."""

    @property
    def id(self) -> str: ...
    def __getitem__(self, parameter: str) -> Any: ...


def check_figure(name: str, measure: str, figure: Mapping[str, Any], cells: Sequence[Drawn]) -> None:
    """Raise BadExperiment unless the sweep's cells can be drawn as its figure says."""
    kind = figure.get("kind")
    if kind not in list(SETTINGS):
        raise BadExperiment(f"experiment {name} has the kind of figure {kind!r}; choose one of {', '.join(SETTINGS)}")
    for key in figure:
        if key != "kind" and key not in SETTINGS[kind]:
            known = ", ".join(SETTINGS[kind]) or "nothing else"
            raise BadExperiment(f"the figure of experiment {name} sets {key!r}; one of kind {kind!r} has {known}")
    wrong = _CHECKS[kind](measure, figure)
    if wrong:
        raise BadExperiment(f"experiment {name} {wrong}")
    if not cells and kind != "ratios":
        raise BadExperiment(f"experiment {name} has no cells; give it a [[grid]]")
    _check_places(name, figure, cells)


def _wrong_lines(measure: str, figure: Mapping[str, Any]) -> str:
    for axis in ("x", "across", "down"):
        known = AXES["x" if axis == "x" else "across"]
        if (axis == "x" or axis in figure) and figure.get(axis) not in list(known):
            return f"draws {axis} = {figure.get(axis)!r}; choose from {', '.join(known)}"
    if measure == "shares":
        return "measures shares of pairs; draw them with kind = 'heat'"
    band = figure.get("band", [0, 1])
    if not isinstance(band, list) or len(band) != 2 or not all(isinstance(end, int | float) for end in band):
        return f"shades the band {band!r}; it is two numbers"
    return ""


def _wrong_heat(measure: str, figure: Mapping[str, Any]) -> str:
    return "" if measure == "shares" else "draws a heat map, which shows measure = 'shares'"


def _wrong_ratios(measure: str, figure: Mapping[str, Any]) -> str:
    sources = figure.get("sources")
    named = isinstance(sources, list) and sources and all(isinstance(source, str) for source in sources)
    return "" if named else "draws ratios, and needs sources = [names of experiments]"


_CHECKS: dict[str, Callable[[str, Mapping[str, Any]], str]] = {
    "lines": _wrong_lines, "heat": _wrong_heat, "ratios": _wrong_ratios,
}  # fmt: skip


def _check_places(name: str, figure: Mapping[str, Any], cells: Sequence[Drawn]) -> None:
    """Two cells at one place would be joined to one curve, or be drawn over each other."""
    axes = [figure[axis] for axis in ("x", "across", "down") if axis in figure]
    drawn: dict[tuple[Any, ...], str] = {}
    for cell in cells:
        other = drawn.setdefault((cell["method"], *(cell[axis] for axis in axes)), cell.id)
        if other != cell.id:
            apart = "across or down" if figure["kind"] == "lines" else "sweeps of their own"
            raise BadExperiment(
                f"experiment {name} draws {other} and {cell.id} at one place; tell them apart by {apart}"
            )
