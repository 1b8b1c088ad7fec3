"""What a run reports: its costs, how its judge treats positions, its warnings and skips."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from shortlist.core.stopping.verdict import Verdict
from shortlist.study.study import Study

log = logging.getLogger("shortlist")


@dataclass
class Costs:
    """The calls and tokens that were paid for, and the calls that were saved."""

    calls: int = 0  # every try, including cancelled ones
    saved: int = 0  # calls not made because the answer was cached
    retries: int = 0
    unclear: int = 0  # tries without a usable answer: refusals, garbage, time-outs
    skips: int = 0  # questions closed without a vote
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class JudgeStats:
    """How a judge treats positions. A fair coin decides which item is shown first, so an unbiased judge prefers it half
    of the time."""

    judge: str
    answers: int = 0
    first_wins: float = 0.0  # a tie counts half
    both: int = 0  # questions asked in both orders
    flips: int = 0  # of these, questions where the two orders gave different winners

    @property
    def first_share(self) -> float | None:
        """How often the item shown first was preferred."""
        return self.first_wins / self.answers if self.answers else None

    @property
    def flip_rate(self) -> float | None:
        """How often the judge chose another winner when the sides were swapped."""
        return self.flips / self.both if self.both else None

    def after(self, outcome: float, tie: float) -> "JudgeStats":
        """With one more answer, as seen from the item shown first."""
        won = (1 + (outcome > tie) - (outcome < tie)) / 2
        return replace(self, answers=self.answers + 1, first_wins=self.first_wins + won)

    def after_both(self, one: float, other: float, tie: float) -> "JudgeStats":
        """With one more question asked in both orders, both outcomes as seen from the same item."""
        flipped = (one > tie, one < tie) != (other > tie, other < tie)
        return replace(self, both=self.both + 1, flips=self.flips + flipped)


@dataclass(frozen=True)
class StudyRun:
    """The state or the result of a run."""

    verdict: Verdict[str]
    costs: Costs
    stats: JudgeStats
    warnings: tuple[str, ...] = ()
    skipped: Mapping[int, str] = field(default_factory=dict)  # the reason, by question id


Progress = Callable[[StudyRun], None]
Warn = Callable[[str], None]


class RunLog:
    """Collects what a run reports."""

    def __init__(self, study: Study, judge: str, progress: Progress | None, warn: Warn | None) -> None:
        self._study, self._progress, self._warn = study, progress, warn or log.warning
        self.costs, self.stats = Costs(), JudgeStats(judge)
        self.warnings: list[str] = []
        self.skipped: dict[int, str] = {}

    def warn(self, text: str) -> None:
        """Pass a warning to the user, and keep it for the result."""
        self.warnings.append(text)
        self._warn(text)

    def so_far(self) -> StudyRun:
        return StudyRun(self._study.verdict, replace(self.costs), self.stats, tuple(self.warnings), dict(self.skipped))

    def show_progress(self) -> None:
        """Call `progress`, after a question was closed."""
        progress, self._progress = self._progress, None  # if it raises, it is not called again
        if progress is not None:
            progress(self.so_far())
        self._progress = progress
