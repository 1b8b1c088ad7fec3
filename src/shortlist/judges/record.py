"""What is written down about a run while it goes on, and given out when it ends."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from shortlist.certificates.verdict import Verdict
from shortlist.judges.stats import Costs, JudgeStats
from shortlist.study.study import Study

log = logging.getLogger("shortlist")


@dataclass(frozen=True)
class StudyRun:
    """Where a run has got to."""

    verdict: Verdict[str]
    costs: Costs
    stats: JudgeStats
    warnings: tuple[str, ...] = ()
    skipped: Mapping[int, str] = field(default_factory=dict)  # why, by the question's id


Progress = Callable[[StudyRun], None]
Warn = Callable[[str], None]


class Record:
    """The books of one run."""

    def __init__(self, study: Study, judge: str, progress: Progress | None, warn: Warn | None) -> None:
        self._study, self._progress, self._warn = study, progress, warn or log.warning
        self.costs, self.stats = Costs(), JudgeStats(judge)
        self.warnings: list[str] = []
        self.skipped: dict[int, str] = {}

    def warn(self, text: str) -> None:
        """Tell the user, and keep it for the result."""
        self.warnings.append(text)
        self._warn(text)

    def so_far(self) -> StudyRun:
        return StudyRun(self._study.verdict, self.costs.copy(), self.stats, tuple(self.warnings), dict(self.skipped))

    def show(self) -> None:
        """A question was closed."""
        progress, self._progress = self._progress, None  # one that raises is not called again
        if progress is not None:
            progress(self.so_far())
        self._progress = progress
