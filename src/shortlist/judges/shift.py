"""Who is at work on which question, so that two runs with one judge do not do the work twice.

A run signs the questions it asks, and shows every few seconds that it is alive. Questions of a run that has ended,
was killed or has not been seen for a while are free, and the next run of the same judge takes them over.
"""

import itertools
import os
import platform
import time
import uuid
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType

from shortlist.dice import digest
from shortlist.study.questions import Question
from shortlist.study.study import Study

BEAT = 10.0  # seconds between signs of life
GONE = 60.0  # seconds without one, after which a run on another machine is given up

UNKNOWN = "?"  # where the start of a process cannot be read

_numbers = itertools.count()
_here: set[str] = set()  # the runs of this process


class Shift:
    """`with Shift(study) as shift`: one run at work."""

    def __init__(self, study: Study) -> None:
        self._study, self._last = study, 0.0
        self.sign = f"{_machine()} {os.getpid()} {_started(os.getpid())} {next(_numbers)}"

    def __enter__(self) -> "Shift":
        _here.add(self.sign)
        self.beat()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _here.discard(self.sign)
        self._study.storage.leave(self._study.name, self.sign)

    def beat(self) -> bool:
        """Show that this run is alive, if it is time to: then look whether others still are."""
        now = time.time()
        if self._last <= now < self._last + BEAT:
            return False
        self._study.storage.beat(self._study.name, self.sign, now)
        self._last = now
        return True

    def take_over(self, judge: str) -> list[Question]:
        """The judge's open questions that no run is at work on."""
        holders = self._study.holders(judge)  # before the look at who is alive: later ones may have begun after it
        seen, now = self._study.storage.beats(self._study.name), time.time()
        free = {sign for sign in holders if sign is None or not _is_at_work(sign, seen, now)}
        return self._study.take_over(judge, self.sign, free.__contains__)


def _is_at_work(sign: str, seen: dict[str, float], now: float) -> bool:
    if sign not in seen:
        return False
    recent = now - seen[sign] < GONE
    machine, pid, started, _ = sign.split(" ")
    if machine != _machine():
        return recent
    if int(pid) == os.getpid():
        return sign in _here
    return _started(int(pid)) == started and (recent or started != UNKNOWN)


@cache
def _machine() -> str:
    return digest(platform.node(), uuid.getnode())


def _started(pid: int) -> str:
    """When a process of this machine started, in its own count; "-" if it is not there."""
    with suppress(OSError):  # numbers of processes are used again, so being there is not enough
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    try:
        if os.name == "posix":
            os.kill(pid, 0)
    except ProcessLookupError:
        return "-"
    except PermissionError:
        pass
    return UNKNOWN
