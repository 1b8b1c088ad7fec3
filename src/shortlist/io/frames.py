"""Parquet files, and pandas, polars and Arrow tables. Their packages are optional and loaded only when needed."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from shortlist.errors import BadVotes, NotInstalled, ShortlistError
from shortlist.io.source import Source

T = TypeVar("T")


def load(package: str, purpose: str) -> Any:
    """An optional package, or how to get it."""
    try:
        return import_module(package)
    except ImportError:
        raise NotInstalled(purpose, package.partition(".")[0], "frames") from None


def read_parquet(file: str, path: Path) -> Source:
    """Only the columns that votes are made of are read; others, such as whole conversations, may be large."""
    parquet = load("pyarrow.parquet", "a Parquet file")
    opened = _foreign(file, lambda: parquet.ParquetFile(path))
    names = _foreign(file, lambda: tuple(opened.schema_arrow.names))

    def column(number: int) -> list[Any]:
        cells: list[Any] = _foreign(file, lambda: opened.read(columns=[names[number]]).column(0).to_pylist())
        if len(cells) != rows:
            raise BadVotes(f"cannot read {file}: it is damaged, its columns are not all of one length")
        return cells

    rows = opened.metadata.num_rows
    return Source(file, "Parquet", "row", names, range(1, rows + 1), column)


def read_frame(frame: Any) -> Source | None:
    """A data frame, or None if it is none. Whoever has a frame has loaded its package already."""
    pandas, polars, arrow = (sys.modules.get(package) for package in ("pandas", "polars", "pyarrow"))
    if pandas and isinstance(frame, pandas.DataFrame):
        return _source(frame, "pandas", lambda number: _pandas_cells(frame.iloc[:, number]))
    if polars and isinstance(frame, polars.DataFrame):
        return _source(frame, "polars", lambda number: frame.to_series(number).to_list())
    if arrow and isinstance(frame, arrow.Table):
        return _source(frame, "Arrow", lambda number: frame.column(number).to_pylist(), frame.column_names)
    return None


def _source(frame: Any, kind: str, column: Callable[[int], list[Any]], names: list[Any] | None = None) -> Source:
    titles = tuple(str(name) for name in (frame.columns if names is None else names))
    file = f"the {kind} frame"
    return Source(file, kind, "row", titles, range(1, len(frame) + 1), lambda i: _foreign(file, lambda: column(i)))


def _pandas_cells(series: Any) -> list[Any]:
    """Missing cells, which pandas writes in four ways, as None."""
    cells: list[Any] = series.astype(object).where(series.notna(), None).tolist()
    return cells


def _foreign(file: str, call: Callable[[], T]) -> T:
    """Whatever another package's reader raises on broken data, in one line of ours."""
    try:
        return call()
    except ShortlistError:
        raise
    except Exception as reason:
        said = " ".join(str(reason).split())
        raise BadVotes(f"cannot read {file}: {said[:200] or type(reason).__name__}") from None
