"""A sweep is a TOML file: what its cells share, grids that multiply out, and exceptions. See sweeps/smoke.toml.

A cell is what one call of `shortlist simulate` plays; its id, such as against-n/sst/n=50/bridge, names it for good.
"""

import itertools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from shortlist.errors import BadExperiment
from shortlist.experiments.layout import check_figure

LEARNERS = ("oracle-tracking", "online-oracle")
LOWER_BOUND, W_STAR = "lower-bound", "w-star"  # no methods, but what methods are held against
PARAMETERS: dict[str, type[Any]] = {
    "instance": str, "n": int, "k": int, "gap": float, "delta": float, "method": str, "rule": str, "alpha": float,
    "growth": float, "seed": int,
}  # fmt: skip
SECTIONS = ("title", "measure", "id", "figure", "all", "grid", "except")
REQUIRED = ("instance", "n", "k", "delta", "method", "seed", "runs")
KEYS = {**PARAMETERS, "runs": int, "seconds": float}
PLAIN = ("instance", "method", "rule")  # said in an id without their name


@cache
def _digest(instance: str) -> dict[str, str]:
    _, _, file = instance.partition(":")
    try:
        return {"file": sha256(Path(file).read_bytes()).hexdigest()[:16]} if file else {}
    except OSError:
        return {}  # whoever plays it says so


@dataclass(frozen=True)
class Cell:
    """One point of a sweep. `parameters` lacks those that do not apply, such as the gap of random utilities."""

    id: str
    measure: str
    parameters: dict[str, Any]
    runs: int
    seconds: float  # about how long a run takes, for the time left

    @property
    def definition(self) -> dict[str, Any]:
        """What decides the outcome of each run, the contents of a file of numbers among it."""
        return {"measure": self.measure, **self.parameters, **_digest(self.parameters["instance"])}

    def __getitem__(self, parameter: str) -> Any:
        return self.parameters.get(parameter)


@dataclass(frozen=True)
class Sweep:
    name: str
    given: str  # the name or the file that it was asked for by
    title: str
    measure: str
    figure: dict[str, Any]
    cells: tuple[Cell, ...]

    def select(self, pattern: str | None) -> tuple[Cell, ...]:
        """The cells whose id is the pattern or matches it as a glob; all for None."""
        found = tuple(cell for cell in self.cells if pattern in (None, cell.id) or fnmatchcase(cell.id, str(pattern)))
        if self.cells and not found:
            raise BadExperiment(
                f"no cell of {self.name} matches {pattern!r}; shortlist experiment list {self.given} names them"
            )
        return found


def sweep_names() -> list[str]:
    """The experiments that come with the package."""
    found = files(__package__).joinpath("sweeps").iterdir()
    return sorted(entry.name.removesuffix(".toml") for entry in found if entry.name.endswith(".toml"))


def load_sweep(name: str) -> Sweep:
    """An experiment by its name, or from a TOML file of your own."""
    if name.endswith(".toml"):
        return read_sweep(Path(name).stem, _read(Path(name)), name)
    if name not in sweep_names():
        raise BadExperiment(f"unknown experiment {name!r}; choose one of {', '.join(sweep_names())}, or a .toml file")
    return read_sweep(name, files(__package__).joinpath("sweeps", f"{name}.toml").read_text(encoding="utf-8"))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as reason:
        raise BadExperiment(f"cannot read {path}: {getattr(reason, 'strerror', None) or reason}") from None


def read_sweep(name: str, text: str, given: str | None = None) -> Sweep:
    """The sweep that a TOML text describes; raises BadExperiment for one that makes no sense."""
    try:
        data = tomllib.loads(text)
        measure, title, figure = data.get("measure", "comparisons"), data["title"], dict(data["figure"])
        cells = tuple(_cells(name, measure, data)) if "grid" in data else ()
    except tomllib.TOMLDecodeError as reason:
        raise BadExperiment(f"experiment {name} is no TOML: {reason}") from None
    except KeyError as key:
        raise BadExperiment(f"experiment {name} lacks {key}; compare it with one that comes along") from None
    except (TypeError, ValueError, AttributeError) as reason:
        raise BadExperiment(
            f"experiment {name} is not laid out as a sweep ({reason}); compare it with one that comes along"
        ) from None
    _check_head(name, data)
    twice = [
        cell.id for cell, after in itertools.pairwise(sorted(cells, key=lambda cell: cell.id)) if cell.id == after.id
    ]
    if twice:
        raise BadExperiment(f"experiment {name} has cell {twice[0]} twice; add what tells them apart to its id")
    check_figure(name, measure, figure, cells)
    return Sweep(name, given or name, title, measure, figure, cells)


def _check_head(name: str, data: dict[str, Any]) -> None:
    for key, value in data.items():
        if key not in SECTIONS:
            raise BadExperiment(f"experiment {name} has {key!r}, which no sweep has; choose from {', '.join(SECTIONS)}")
        if key in ("title", "measure") and not isinstance(value, str):
            raise BadExperiment(f"experiment {name} has the {key} {value!r}, which is no text")


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
            raise BadExperiment(f"an exception asks where {key!r} is something, and no cell has it")
    return all(chosen.get(key) in (value if isinstance(value, list) else [value]) for key, value in where.items())


def _make_cell(name: str, measure: str, id_parts: list[str], chosen: dict[str, Any]) -> Cell:
    for key in REQUIRED:
        if key not in chosen:
            raise BadExperiment(f"experiment {name} has a cell without {key}")
    for key, value in chosen.items():
        kind = KEYS.get(key)
        if kind is None:
            raise BadExperiment(f"experiment {name} sets {key!r}, which no cell has; choose from {', '.join(KEYS)}")
        if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind):
            raise BadExperiment(f"experiment {name} sets {key} to {value!r}, which is no {kind.__name__}")
    for key, least in (("runs", 1), ("seed", 0)):
        if chosen[key] < least:
            raise BadExperiment(f"experiment {name} sets {key} to {chosen[key]}, and the least is {least}")
    parameters = {key: kind(chosen[key]) for key, kind in PARAMETERS.items() if key in chosen and _applies(key, chosen)}
    parts = (chosen[key] if key in PLAIN else f"{key}={chosen[key]:g}" for key in id_parts)
    return Cell("/".join([name, *parts]), measure, parameters, chosen["runs"], float(chosen.get("seconds", 1.0)))


def _applies(parameter: str, chosen: dict[str, Any]) -> bool:
    method: str = chosen["method"]
    if parameter == "gap":
        return bool(chosen["instance"] == "equally-spaced")
    if parameter == "alpha":
        return method in LEARNERS
    return parameter != "growth" or method not in (LOWER_BOUND, W_STAR)
