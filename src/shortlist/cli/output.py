"""What every command prints with: JSON for machines, tables and bars for people (bars on standard error)."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

LONG_RUNS = 1800.0  # seconds of which the speed is the mean: some runs take minutes


def print_json(value: dict[str, Any]) -> None:
    """One object on standard output, numbers that JSON cannot say as null."""
    print(json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def console() -> Console:
    return Console(highlight=False, markup=False, soft_wrap=True)


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Any]:
    """A bar on standard error; yields a function that takes the number finished."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    screen = Console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task(title, total=total)
        yield lambda finished: bar.update(task, completed=finished)


@contextmanager
def work_bar(title: str) -> Iterator[Any]:
    """A bar whose parts are of unequal length; yields a function that takes work, work done, parts, parts finished."""
    parts = TextColumn("{task.fields[finished]:,} of {task.fields[parts]:,} runs")
    columns = TextColumn("{task.description}"), BarColumn(), parts, TimeElapsedColumn(), TimeRemainingColumn()
    screen = Console(stderr=True)
    with Progress(
        *columns, console=screen, transient=True, disable=not screen.is_terminal, speed_estimate_period=LONG_RUNS
    ) as bar:
        task = bar.add_task(title, total=None, finished=0, parts=0)
        yield lambda work, done, parts, finished: bar.update(
            task, total=work, completed=done, parts=parts, finished=finished
        )
