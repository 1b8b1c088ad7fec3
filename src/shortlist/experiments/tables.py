"""From finished runs to rows. No time and no order of finishing is in them: the same runs give the same bytes.

A cell is told by its runs 0 to m - 1 without a gap: of runs that happen to be finished, the short ones are too many.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from shortlist.experiments.results import Log, Record, Row
from shortlist.experiments.sweep import LOWER_BOUND, PARAMETERS, Cell, Sweep
from shortlist.pairs import all_pairs

WORLD = ("instance", "n", "k", "gap", "delta", "seed")  # what a lower bound depends on
FIXED = ("equally-spaced",)  # instances whose world is always the same: its bound is needed once
SPREAD = ("mean", "standard_error", "median", "quartile_1", "quartile_3", "min", "max")
ORIGIN = ("version", "commit")
SUMMARY = ("id", *PARAMETERS, "runs", *SPREAD, "correct", "times_bound", "times_bound_error", *ORIGIN)
NOTHING: Mapping[str, float] = MappingProxyType({})
BY_PAIR = ("id", *PARAMETERS, "runs", "first", "second", "mean", "standard_error", *ORIGIN)


def columns(sweep: Sweep) -> tuple[str, ...]:
    return BY_PAIR if sweep.measure == "shares" else SUMMARY


def cell_rows(sweep: Sweep, cell: Cell, log: Log, kept: Mapping[str, float] = NOTHING) -> list[Row]:
    """What the finished runs of a cell say: a row, or for shares one a pair; none before the first is finished.
    `kept` has the means of cells that are in an older table alone."""
    records = prefix(log.of(cell.id), cell.runs)
    if not records:
        return []
    values = [record["result"][sweep.measure] for record in records]
    shared = {**definition_columns(cell), "runs": len(records), **_origins(records)}
    if sweep.measure == "shares":
        return [_text({**shared, **row}) for row in _pair_rows(cell, values)]
    bounds = [_bound(sweep, cell, log, kept, number) for number in range(len(records))]
    correct = [record["result"].get("correct") for record in records]
    right = None if None in correct else sum(correct)
    return [_text({**shared, **_spread(values), "correct": right, **_times(values, bounds)})]


def prefix(records: dict[int, Record], most: int) -> list[Record]:
    """Runs 0, 1, … up to the first that is not finished."""
    found: list[Record] = []
    while len(found) < most and len(found) in records:
        found.append(records[len(found)])
    return found


def definition_columns(cell: Cell) -> Row:
    return _text({"id": cell.id, **{name: cell[name] for name in PARAMETERS}})


def _spread(values: Sequence[float]) -> dict[str, Any]:
    low, middle, high = np.percentile(values, [25, 50, 75]).tolist()
    told = statistics.fmean(values), _standard_error(values), middle, low, high, min(values), max(values)
    return dict(zip(SPREAD, told, strict=True))


def _standard_error(values: Sequence[float]) -> float | None:
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None


def _times(values: Sequence[float], bounds: Sequence[float | None]) -> dict[str, Any]:
    """Comparisons over the lower bound of the same world, run by run."""
    ratios = [value / bound for value, bound in zip(values, bounds, strict=True) if bound is not None]
    if len(ratios) < len(values):
        return {}
    return {"times_bound": statistics.fmean(ratios), "times_bound_error": _standard_error(ratios)}


def _bound(sweep: Sweep, cell: Cell, log: Log, kept: Mapping[str, float], number: int) -> float | None:
    for other in sweep.cells:
        if other["method"] == LOWER_BOUND and all(other[name] == cell[name] for name in WORLD):
            always = cell["instance"] in FIXED
            record = log.records.get((other.id, 0 if always else number))
            if record is not None:
                return float(record["result"]["comparisons"])
            return kept.get(other.id) if always else None
    return None


def _pair_rows(cell: Cell, values: Sequence[Sequence[float]]) -> Iterable[dict[str, Any]]:
    for first, second, shares in zip(*all_pairs(cell["n"]), zip(*values, strict=True), strict=True):
        spread = {"mean": statistics.fmean(shares), "standard_error": _standard_error(shares)}
        yield {"first": int(first), "second": int(second), **spread}


def _origins(records: Sequence[Record]) -> dict[str, str]:
    return {name: " ".join(sorted({record[name] for record in records})) for name in ORIGIN}


def _text(row: dict[str, Any]) -> Row:
    return {key: _shown(value) for key, value in row.items()}


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.10g}" if isinstance(value, float) else str(value)
