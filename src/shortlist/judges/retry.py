"""How long to try again: calls that failed, a judge that does not respond, a storage that does not respond."""

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeVar

from shortlist.core.problem import real, whole
from shortlist.errors import BadJudge, JudgeUnavailable, StorageUnavailable
from shortlist.judges.run_log import Warn

Done = TypeVar("Done")


@dataclass(frozen=True)
class Backoff:
    """The wait before a retry: `first` seconds, doubled each time up to `most`, times a random factor from 0.5 to 1 so
    that workers do not retry all at once. A judge may ask for a longer wait, up to `patience` seconds."""

    first: float = 1.0
    most: float = 60.0
    patience: float = 600.0

    def __post_init__(self) -> None:
        for name in ("first", "most", "patience"):
            if real(name, getattr(self, name)) < 0:
                raise BadJudge(f"{name} is {getattr(self, name)}; give a number of seconds")

    def delay(self, retry: int, wanted: float | None = None) -> float:
        """Seconds to wait before that retry (0 is the first one), at least what the judge wants."""
        usual = min(self.first * 2.0 ** min(retry, 60), self.most) * random.uniform(0.5, 1.0)
        return usual if wanted is None else max(usual, wanted + random.uniform(0.0, self.first))


STORAGE_BACKOFF = Backoff(first=0.2, most=5.0)


@dataclass(frozen=True)
class RetryPolicy:
    """How often a call is tried, and how long one try may take."""

    retries: int = 3
    time_limit: float | None = 300.0  # seconds for one try
    backoff: Backoff = Backoff()

    def __post_init__(self) -> None:
        whole("retries", self.retries, 0)
        if self.time_limit is not None and real("time_limit", self.time_limit) <= 0:
            raise BadJudge(f"time_limit is {self.time_limit}; give seconds, or None for no limit")


class StoragePatience:
    """`patience(work)` works on the storage, and tries again while it does not respond, for up to `seconds`.

    After that, or if `wait` raises, nothing more is tried: what is left to store goes to a file (pending.py).
    """

    def __init__(self, seconds: float, warn: Warn) -> None:
        if real("storage_patience", seconds) < 0:
            raise BadJudge(f"storage_patience is {seconds}; give a number of seconds")
        self.seconds, self._warn = seconds, warn
        self.wait: Callable[[float], None] = time.sleep
        self.outages = 0
        self._over: StorageUnavailable | None = None

    def __call__(self, work: Callable[[], Done]) -> Done:
        began, retry = time.monotonic(), 0
        while True:
            if self._over is not None:
                raise self._over
            try:
                done = work()
            except StorageUnavailable as reason:
                self._wait(reason, began, retry)
                retry += 1
            else:
                if retry:
                    self.outages += 1
                    self._warn(f"the storage responds again after {time.monotonic() - began:.0f} s")
                return done

    def _wait(self, reason: StorageUnavailable, began: float, retry: int) -> None:
        self._over = reason
        left = began + self.seconds - time.monotonic()
        if left <= 0:
            raise reason
        if not retry:
            self._warn(f"{reason}. Trying again for {left:.0f} s; nothing new is asked meanwhile")
        self.wait(min(STORAGE_BACKOFF.delay(retry), left))
        self._over = None


class ServerPatience:
    """Shared by the calls of a run: how long a judge that does not respond is waited for, up to `seconds`. `notices`
    has what the user should know, for the caller's thread."""

    def __init__(self, seconds: float) -> None:
        if real("patience", seconds) < 0:
            raise BadJudge(f"patience is {seconds}; give a number of seconds")
        self._seconds, self._is_told, self._worked_at = seconds, False, -math.inf
        self._since: float | None = None
        self.notices: SimpleQueue[str] = SimpleQueue()

    def worked(self) -> None:
        """A call was answered."""
        self._worked_at = time.monotonic()
        if self._is_told and self._since is not None:
            self.notices.put(f"the judge responds again after {self._worked_at - self._since:.0f} s")
        self._since, self._is_told = None, False

    def has_worked_since(self, moment: float) -> bool:
        return self._worked_at > moment

    def failed(self) -> None:
        """A call found that the judge does not respond."""
        self._since = time.monotonic() if self._since is None else self._since

    def goes_on(self, reason: JudgeUnavailable) -> bool:
        """Whether to wait for the judge any longer, after the usual number of tries."""
        left = self._seconds if self._since is None else self._since + self._seconds - time.monotonic()
        if left <= 0:
            return False
        if not self._is_told:
            self._is_told = True
            self.notices.put(
                f"waiting for the judge: {reason}. Trying again for up to {_minutes(left)} (--patience); Ctrl-C stops "
                "the run, and it can be resumed"
            )
        return True


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} s"
