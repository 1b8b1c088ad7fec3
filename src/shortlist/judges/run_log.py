"""What a run reports: its costs, how its judge treats positions and repeats, its warnings and skips."""

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from shortlist.core.stopping.verdict import Verdict
from shortlist.judges.base import Call
from shortlist.study.study import Study

DOUBT = 0.25  # a pair worth asking about often is at least that uncertain
FIXED = 0.01  # a fixed opinion may still slip now and then
ALARM = 100.0
SEVERAL = 3  # pairs; one clear pair says nothing about the judge

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
    cost: float = 0.0  # of the calls with a known price


@dataclass(frozen=True)
class JudgeStats:
    """How a judge treats positions. A fair coin decides which item is shown first, so an unbiased judge prefers it half
    of the time."""

    judge: str
    answers: int = 0
    first_wins: float = 0.0  # a tie counts half
    both: int = 0  # questions asked in both orders
    flips: int = 0  # of these, questions where the two orders gave different winners
    compared: int = 0  # of a panel: pairs of judges who answered the same question
    agreed: int = 0  # of these, pairs with the same winner

    @property
    def first_share(self) -> float | None:
        """How often the item shown first was preferred."""
        return self.first_wins / self.answers if self.answers else None

    @property
    def flip_rate(self) -> float | None:
        """How often the judge chose another winner when the sides were swapped."""
        return self.flips / self.both if self.both else None

    @property
    def agreement(self) -> float | None:
        """How often two judges of a panel chose the same winner."""
        return self.agreed / self.compared if self.compared else None

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
    used_up: bool = False  # it ended because each case or recorded vote is used once, and no useful one was left
    needs_judge: bool = False  # it ended because a proof needs votes of another judge too


Progress = Callable[[StudyRun], None]
Warn = Callable[[str], None]


class RepeatCheck:
    """Does a judge without cases that is asked the same thing again ever answer differently?

    A repeat is a call about a pair in an order that the judge has answered before. If on every pair both answers had a
    probability of at least DOUBT, each repeat would differ from the answer before it with at least that probability,
    independent of what came earlier. So a bet that repeats differ only with probability FIXED multiplies its stake by
    (1 - FIXED)/(1 - DOUBT) for each repeat that agrees and by FIXED/DOUBT for each that differs, and its expected gain
    is zero or less: by Ville's inequality it ever reaches ALARM times its stake with probability at most 1/ALARM.
    Seventeen repeats without a change reach it.
    """

    def __init__(self, judge: str, n_items: int) -> None:
        self._judge, self._several = judge, min(SEVERAL, n_items * (n_items - 1) // 2)
        self._last: dict[tuple[str, str], float] = {}
        self._pairs: set[frozenset[str]] = set()
        self._log_wealth = 0.0
        self._repeats = self._changes = 0
        self._has_warned = False

    def add(self, call: Call, outcome: float) -> str | None:
        """Count one more answer. Returns a warning once, as soon as there is reason to doubt that votes are new."""
        shown = call.first, call.second
        before = self._last.get(shown)
        self._last[shown] = outcome
        if before is not None:
            changed = before != outcome
            self._pairs.add(frozenset(shown))
            self._repeats, self._changes = self._repeats + 1, self._changes + changed
            self._log_wealth += math.log(FIXED / DOUBT if changed else (1 - FIXED) / (1 - DOUBT))
        if self._has_warned or self._log_wealth < math.log(ALARM) or len(self._pairs) < self._several:
            return None
        self._has_warned = True
        return (
            f"judge {self._judge!r} was asked {self._repeats} times about a pair in an order it had answered before, "
            f"on {len(self._pairs)} pairs, and changed its answer {self._changes} times. If it always gives the same "
            "answer, asking again adds no information and the error bound is not valid: give the study cases, or the "
            "judge some randomness. If the items really differ that clearly, ignore this warning"
        )


class RunLog:
    """Collects what a run reports."""

    def __init__(self, study: Study, judge: str, progress: Progress | None, warn: Warn | None) -> None:
        self._study, self._progress, self._warn = study, progress, warn or log.warning
        self.costs, self.stats, self._repeats = Costs(), JudgeStats(judge), RepeatCheck(judge, len(study.items))
        self._by_members: dict[tuple[str, ...], list[int]] = {}  # winners that judges of a panel chose, by question
        self.warnings: list[str] = []
        self.skipped: dict[int, str] = {}
        self.used_up, self.needs_judge = False, False

    def count(self, call: Call, outcome: float, tie: float) -> None:
        """Count an answer that was paid for."""
        self.stats = self.stats.after(outcome, tie)
        if call.member is not None:
            self._compare(call, (outcome > tie) - (outcome < tie))
        warning = self._repeats.add(call, outcome) if call.case is None else None
        if warning is not None:
            self.warn(warning)

    def _compare(self, call: Call, winner: int) -> None:
        """Compare an answer with those of the panel's other judges to the same question."""
        others = self._by_members.setdefault((call.case.id if call.case else str(call.id), call.first, call.second), [])
        stats = self.stats
        agreed = stats.agreed + others.count(winner)
        self.stats = replace(stats, compared=stats.compared + len(others), agreed=agreed)
        others.append(winner)

    def warn(self, text: str) -> None:
        """Pass a warning to the user, and keep it for the result."""
        self.warnings.append(text)
        self._warn(text)

    def so_far(self) -> StudyRun:
        found = self._study.verdict, replace(self.costs), self.stats, tuple(self.warnings), dict(self.skipped)
        return StudyRun(*found, self.used_up, self.needs_judge)

    def show_progress(self) -> None:
        """Call `progress`, after a question was closed."""
        progress, self._progress = self._progress, None  # if it raises, it is not called again
        if progress is not None:
            progress(self.so_far())
        self._progress = progress
