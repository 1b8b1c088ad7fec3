"""A sweep is a TOML file: settings that all cells share, grids of cells, exceptions and a figure; see smoke.toml.

A cell is what one call of `shortlist simulate` runs. Its id, such as against-n/sst/n=50/bridge, never changes.
"""

import itertools
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from experiments.errors import BadExperiment

FOLDER = Path(__file__).parent / "sweeps"
LEARNERS = ("oracle-tracking", "online-oracle")
LOWER_BOUND, W_STAR = "lower-bound", "w-star"  # references that methods are compared with
PARAMETERS: dict[str, type[Any]] = {
    "instance": str, "n": int, "k": int, "gap": float, "delta": float, "method": str, "stopping": str, "alpha": float,
    "growth": float, "seed": int,
}  # fmt: skip
RACES = ("exact", "proofs")  # measures that compare sampling rules with the same coins
RACE_PARAMETERS = {**PARAMETERS, "max_votes": int}
SECTIONS = ("title", "measure", "id", "figure", "all", "grid", "except")
REQUIRED = ("instance", "n", "k", "delta", "method", "seed", "runs")
RACE_REQUIRED = {"exact": ("growth", "max_votes"), "proofs": ("growth", "max_votes", "stopping")}
KEYS = {**RACE_PARAMETERS, "runs": int, "seconds": float}
KIND_NAMES = {str: "a text", int: "a whole number", float: "a number"}
UNNAMED = ("instance", "method", "stopping")  # an id gives their value without their name
FIGURE_SETTINGS = {
    "lines": ("x", "across", "down", "band"), "heat": (), "ratios": ("sources",), "race": ("reference",),
}  # fmt: skip
WORLD = ("instance", "n", "k", "gap", "delta", "seed")  # what the world of a run, and its lower bound, depend on
X_AXES = ("n", "k", "gap", "delta", "alpha", "growth")
PANEL_AXES = ("instance", "n", "k", "gap", "delta", "stopping", "alpha", "growth")


def parameters_of(measure: str) -> dict[str, type[Any]]:
    """The parameters of a cell, which are columns of its table too."""
    return RACE_PARAMETERS if measure in RACES else PARAMETERS


@cache
def _digest(instance: str) -> dict[str, str]:
    _, _, file = instance.partition(":")
    try:
        return {"file": sha256(Path(file).read_bytes()).hexdigest()[:16]} if file else {}
    except OSError:
        return {}  # reading the instance reports it


@dataclass(frozen=True)
class Cell:
    """One point of a sweep. `parameters` has no entry for those that do not apply, such as alpha for the bridge."""

    id: str
    measure: str
    parameters: dict[str, Any]
    runs: int
    seconds: float  # rough time of a run, for the estimate of the time left

    @property
    def definition(self) -> dict[str, Any]:
        """Everything that decides the outcome of a run, including the contents of a file of numbers."""
        return {"measure": self.measure, **self.parameters, **_digest(self.parameters["instance"])}

    def __getitem__(self, parameter: str) -> Any:
        return self.parameters.get(parameter)


@dataclass(frozen=True)
class Sweep:
    """An experiment: its cells and its figure."""

    name: str
    given: str  # the name or the file on the command line
    title: str
    measure: str
    figure: dict[str, Any]
    cells: tuple[Cell, ...]

    def select(self, pattern: str | None) -> tuple[Cell, ...]:
        """The cells whose id equals the pattern or matches it as a glob. None selects all."""
        found = tuple(cell for cell in self.cells if pattern in (None, cell.id) or fnmatchcase(cell.id, str(pattern)))
        if self.cells and not found:
            raise BadExperiment(
                f"no cell of {self.name} matches {pattern!r}; list them with: python -m experiments list {self.given}"
            )
        return found


def sweep_names() -> list[str]:
    """The names of the experiments in this repository."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_sweep(name: str) -> Sweep:
    """Load an experiment by its name, or from a TOML file of your own."""
    if name.endswith(".toml"):
        return read_sweep(Path(name).stem, _read(Path(name)), name)
    if name not in sweep_names():
        raise BadExperiment(f"unknown experiment {name!r}; choose one of {', '.join(sweep_names())}, or a .toml file")
    return read_sweep(name, _read(FOLDER / f"{name}.toml"))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as reason:
        raise BadExperiment(f"cannot read {path}: {getattr(reason, 'strerror', None) or reason}") from None


def read_sweep(name: str, text: str, given: str | None = None) -> Sweep:
    """Read a sweep from the text of a TOML file. Raises BadExperiment if it is not valid."""
    try:
        data = tomllib.loads(text)
        measure, title, figure = data.get("measure", "comparisons"), data["title"], dict(data["figure"])
        cells = tuple(_cells(name, measure, data)) if "grid" in data else ()
    except tomllib.TOMLDecodeError as reason:
        raise BadExperiment(f"experiment {name} is not valid TOML: {reason}") from None
    except KeyError as key:
        raise BadExperiment(f"experiment {name} lacks {key}; compare it with smoke.toml") from None
    except (TypeError, ValueError, AttributeError) as reason:
        raise BadExperiment(
            f"experiment {name} does not have the layout of a sweep ({reason}); compare it with smoke.toml"
        ) from None
    _check_head(name, data)
    _check_ids(name, cells)
    _check_figure(name, measure, figure, cells)
    return Sweep(name, given or name, title, measure, figure, cells)


def _check_head(name: str, data: dict[str, Any]) -> None:
    for key, value in data.items():
        if key not in SECTIONS:
            raise BadExperiment(f"experiment {name} has an unknown key {key!r}; choose from {', '.join(SECTIONS)}")
        if key in ("title", "measure") and not isinstance(value, str):
            raise BadExperiment(f"the {key} of experiment {name} is {value!r}, which is not a text")


def _check_ids(name: str, cells: Sequence[Cell]) -> None:
    for first, second in itertools.pairwise(sorted(cell.id for cell in cells)):
        if first == second:
            raise BadExperiment(f"experiment {name} has cell {first} twice; add the parameter that differs to its id")


def _cells(name: str, measure: str, data: dict[str, Any]) -> Iterator[Cell]:
    for grid in data["grid"]:
        settings = {**data.get("all", {}), **grid}
        lists = [value if isinstance(value, list) else [value] for value in settings.values()]
        for values in itertools.product(*lists):
            chosen = dict(zip(settings, values, strict=True))
            for exception in data.get("except", []):
                if _matches(chosen, exception["where"]):
                    chosen |= {key: value for key, value in exception.items() if key != "where"}
            yield _make_cell(name, measure, data["id"], chosen)


def _matches(chosen: dict[str, Any], where: dict[str, Any]) -> bool:
    for key in where:
        if key not in KEYS:
            raise BadExperiment(f"an exception has the condition {key!r}, which is not a parameter of a cell")
    return all(chosen.get(key) in (value if isinstance(value, list) else [value]) for key, value in where.items())


def _make_cell(name: str, measure: str, id_parts: list[str], chosen: dict[str, Any]) -> Cell:
    _check_settings(name, measure, chosen)
    known = parameters_of(measure)
    parameters = {key: kind(chosen[key]) for key, kind in known.items() if key in chosen and _applies(key, chosen)}
    parts = (chosen[key] if key in UNNAMED else f"{key}={chosen[key]:g}" for key in id_parts)
    return Cell("/".join([name, *parts]), measure, parameters, chosen["runs"], float(chosen.get("seconds", 1.0)))


def _check_settings(name: str, measure: str, chosen: dict[str, Any]) -> None:
    for key in (*REQUIRED, *RACE_REQUIRED[measure]) if measure in RACES else REQUIRED:
        if key not in chosen:
            raise BadExperiment(f"experiment {name} has a cell without {key}")
    for key, value in chosen.items():
        kind = KEYS.get(key)
        if kind is None:
            raise BadExperiment(f"experiment {name} sets an unknown key {key!r}; choose from {', '.join(KEYS)}")
        if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind):
            raise BadExperiment(f"experiment {name} sets {key} to {value!r}, which is not {KIND_NAMES[kind]}")
    for key, least in (("runs", 1), ("seed", 0)):
        if chosen[key] < least:
            raise BadExperiment(f"experiment {name} sets {key} to {chosen[key]}; it must be at least {least}")


def _applies(parameter: str, chosen: dict[str, Any]) -> bool:
    method: str = chosen["method"]
    if parameter == "gap":
        return bool(chosen["instance"] == "equally-spaced")
    if parameter == "alpha":
        return method in LEARNERS
    return parameter != "growth" or method not in (LOWER_BOUND, W_STAR)


def _check_figure(name: str, measure: str, figure: Mapping[str, Any], cells: Sequence[Cell]) -> None:
    """Raise BadExperiment unless the figure can show the sweep's cells."""
    kind = figure.get("kind")
    if kind not in list(FIGURE_SETTINGS):
        raise BadExperiment(
            f"experiment {name} has the kind of figure {kind!r}; choose one of {', '.join(FIGURE_SETTINGS)}"
        )
    for key in figure:
        if key != "kind" and key not in FIGURE_SETTINGS[kind]:
            known = ", ".join(FIGURE_SETTINGS[kind]) or "no settings"
            raise BadExperiment(f"the figure of experiment {name} sets {key!r}; a figure of kind {kind!r} has {known}")
    wrong = _FIGURE_CHECKS[kind](measure, figure)
    if wrong:
        raise BadExperiment(f"experiment {name} {wrong}")
    if not cells and kind != "ratios":
        raise BadExperiment(f"experiment {name} has no cells; give it a [[grid]]")
    _check_places(name, figure, cells)


def _wrong_lines(measure: str, figure: Mapping[str, Any]) -> str:
    for axis, known in (("x", X_AXES), ("across", PANEL_AXES), ("down", PANEL_AXES)):
        if (axis == "x" or axis in figure) and figure.get(axis) not in list(known):
            return f"draws {axis} = {figure.get(axis)!r}; choose from {', '.join(known)}"
    if measure == "shares":
        return "measures shares of pairs; draw them with kind = 'heat'"
    if measure in RACES:
        return f"measures {measure}; draw them with kind = 'race'"
    band = figure.get("band", [0, 1])
    if not isinstance(band, list) or len(band) != 2 or not all(isinstance(end, int | float) for end in band):
        return f"shades the band {band!r}; a band is two numbers"
    return ""


def _wrong_heat(measure: str, figure: Mapping[str, Any]) -> str:
    return "" if measure == "shares" else "draws a heat map, which shows measure = 'shares'"


def _wrong_ratios(measure: str, figure: Mapping[str, Any]) -> str:
    sources = figure.get("sources")
    named = isinstance(sources, list) and sources and all(isinstance(source, str) for source in sources)
    return "" if named else "draws ratios, and needs sources = [names of experiments]"


def _wrong_race(measure: str, figure: Mapping[str, Any]) -> str:
    if not isinstance(figure.get("reference"), str):
        return "draws a race, and needs reference = the method that others are compared with"
    return "" if measure in RACES else f"draws a race, which shows measure = {' or '.join(map(repr, RACES))}"


_FIGURE_CHECKS: dict[str, Callable[[str, Mapping[str, Any]], str]] = {
    "lines": _wrong_lines, "heat": _wrong_heat, "ratios": _wrong_ratios, "race": _wrong_race,
}  # fmt: skip


def _check_places(name: str, figure: Mapping[str, Any], cells: Sequence[Cell]) -> None:
    """Two cells at one place would be joined into one curve, or drawn over each other."""
    axes = [figure[axis] for axis in ("x", "across", "down") if axis in figure] or [*WORLD, "stopping"]
    drawn: dict[tuple[Any, ...], str] = {}
    for cell in cells:
        other = drawn.setdefault((cell["method"], *(cell[axis] for axis in axes)), cell.id)
        if other != cell.id:
            apart = "across or down" if figure["kind"] == "lines" else "sweeps of their own"
            raise BadExperiment(f"experiment {name} draws {other} and {cell.id} at one place; separate them by {apart}")
