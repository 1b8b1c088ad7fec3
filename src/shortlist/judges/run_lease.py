"""Leases: which run works on which question, so that two runs with one judge do not do the work twice.

A run marks the questions it asks with its id, and renews its lease every few seconds. Questions of a run that ended,
was killed or did not renew its lease for a while are free: the next run of the same judge takes them over.
"""

import itertools
import math
import os
import platform
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType

from shortlist.core.draws import digest
from shortlist.errors import StorageUnavailable
from shortlist.study.questions import Question
from shortlist.study.study import Study

RENEW_EVERY = 10.0  # seconds
EXPIRES_AFTER = 60.0  # seconds, for a run on another machine

UNKNOWN = "?"  # the start of a process that cannot be read

_numbers = itertools.count()
_here: set[str] = set()  # the runs of this process


class RunLease:
    """`with RunLease(study) as lease`: one run that works on a study."""

    def __init__(self, study: Study, patience: float = 0.0) -> None:
        """patience: seconds that the run waits for its storage; its lease lasts longer than that."""
        self._study, self._last, self._lasts = study, -math.inf, EXPIRES_AFTER + patience
        self.id = f"{_machine()} {os.getpid()} {_started(os.getpid())} {next(_numbers)}"

    def __enter__(self) -> "RunLease":
        _here.add(self.id)
        self.renew()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _here.discard(self.id)
        with suppress(StorageUnavailable):  # then the lease ends by itself
            self._study.storage.leave(self._study.name, self.id)

    def renew(self) -> bool:
        """Show that this run is alive. Returns True if it was time to: then it is also time to `take_over`."""
        now = time.monotonic()
        if now < self._last + RENEW_EVERY:
            return False
        self._study.storage.beat(self._study.name, self.id, self._lasts)
        self._last = now
        return True

    def take_over(self, judge: str, before: Callable[[], None] = lambda: None) -> list[Question]:
        """The judge's pending questions that no run works on; from now on this run does. `before` is called when it is
        known which runs have ended: they may have left answers in a file."""
        holders = self._study.holders(judge)  # read before the leases: a run may start in between
        left = self._study.storage.beats(self._study.name)
        free = {run for run in holders if run is None or not is_working(run, left)}
        before()
        return self._study.take_over(judge, self.id, free.__contains__)


def is_working(run: str, left: dict[str, float]) -> bool:
    """Whether a run is alive, given the seconds that are left of each run's lease."""
    if run not in left:
        return False
    recent = left[run] > 0
    machine, pid, started, _ = run.split(" ")
    if machine != _machine():
        return recent
    if int(pid) == os.getpid():
        return run in _here
    return _started(int(pid)) == started and (recent or started != UNKNOWN)


@cache
def _machine() -> str:
    return digest(platform.node(), uuid.getnode())


def _started(pid: int) -> str:
    """When a process of this machine started, in clock ticks; "-" if there is no such process."""
    with suppress(OSError):  # process ids are reused, so the start is compared too
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    try:
        if os.name == "posix":
            os.kill(pid, 0)
    except ProcessLookupError:
        return "-"
    except PermissionError:
        pass
    return UNKNOWN
