"""Where runs are played: here in processes of this machine; cluster.py has the workers of a Dask cluster.

An engine takes tasks and gives them back with what they yielded, in the order in which they finish.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from shortlist.errors import RunsFailed, ShortlistError
from shortlist.experiments.measures import measure_run
from shortlist.experiments.sweep import Cell


class Task(NamedTuple):
    cell: Cell
    number: int

    @property
    def order(self) -> tuple[dict[str, Any], int]:
        """All that whoever plays it needs to know."""
        return self.cell.definition, self.number

    def __str__(self) -> str:
        return f"cell {self.cell.id}, run {self.number}"


Played = tuple[Task, dict[str, Any]]
Engine = Callable[[Sequence[Task]], Iterator[Played]]


@contextmanager
def local(jobs: int) -> Iterator[Engine]:
    """Processes of this machine; with one job, this process itself."""
    if jobs == 1:
        yield _here
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_settle_in) as pool:
        try:
            yield lambda tasks: _from_pool(pool, tasks)
        except BaseException:
            for worker in list(pool._processes.values()):  # else Ctrl-C waits for runs that nobody will read
                worker.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _here(tasks: Sequence[Task]) -> Iterator[Played]:
    for task in tasks:
        yield task, outcome(task, partial(measure_run, *task.order))


def _from_pool(pool: ProcessPoolExecutor, tasks: Sequence[Task]) -> Iterator[Played]:
    futures = {pool.submit(measure_run, *task.order): task for task in tasks}
    for future in as_completed(futures):
        try:
            yield futures[future], outcome(futures[future], future.result)
        except BrokenProcessPool:
            raise RunsFailed(
                "a process that played runs was killed; the finished runs are saved, run this again"
            ) from None


def _settle_in() -> None:
    """Ctrl-C is the parent's business, and without a parent there is nobody to play for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def leave() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=leave, daemon=True).start()


def outcome(task: Task, result: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What the task yielded, or an error that names it."""
    try:
        return result()
    except ShortlistError as reason:
        raise RunsFailed(f"{task}: {reason}; the finished runs are saved") from None
