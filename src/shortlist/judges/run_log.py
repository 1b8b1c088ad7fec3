"""What is kept of a run: its costs, how its judge treats positions and repeats, its warnings and skips; what judges
said, stored with the study (every try that may have to be paid for, with tokens, time and cost); and the texts and
cases that they were shown. `shortlist serve` and `shortlist audit` show the same to people, as the service stores it
(web/display.py).
"""

import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from sqlalchemy import insert, select

from shortlist.core.outcomes import outcome_of
from shortlist.core.stopping.base import Verdict
from shortlist.errors import BadOutcome, UnknownItem
from shortlist.judges.base import NO_TOKENS, Call, Case, Said, Skip, Tokens
from shortlist.judges.prompts import PICTURE
from shortlist.judges.setup import RunSetup
from shortlist.study.events import fingerprint
from shortlist.study.schema import displays, studies
from shortlist.study.sql import Database
from shortlist.study.storage import JudgeReply, storable
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


class Try(NamedTuple):
    """One try of a call, and what came of it."""

    attempt: int
    at: float  # seconds since 1970
    seconds: float
    answer: Any  # a Skip with the reason if there was none
    said: Said
    tokens: Tokens = NO_TOKENS
    cost: float | None = None


class ReplyLog:
    """Collects what the judge said, and stores it. Used from one thread. With `keep_texts` False, only numbers and
    digests are kept."""

    def __init__(self, study: Study, setup: RunSetup, keep_texts: bool) -> None:
        self._study, self._setup, self._keep_texts = study, setup, keep_texts
        self._known = set(study.storage.texts(study.name)) if keep_texts else set[str]()  # texts that are stored
        self._texts: dict[str, str] = {}
        self.unstored: list[JudgeReply] = []

    def add(self, call: Call, tries: tuple[Try, ...]) -> None:
        for one in tries:
            self.unstored.append(self._row(call, one))

    def store(self) -> None:
        """Store what was collected; it can be tried again."""
        if not self.unstored:
            return
        self._study.storage.add_replies(self._study.name, self.unstored, self._texts)
        self._known |= self._texts.keys()
        self._texts, self.unstored = {}, []

    def lines(self) -> list[dict[str, Any]]:
        """What is not stored yet, for a file."""
        texts = [self._texts, *({} for _ in self.unstored[1:])]
        return [{"reply": reply._asdict(), "texts": shown} for reply, shown in zip(self.unstored, texts, strict=False)]

    def _row(self, call: Call, one: Try) -> JudgeReply:
        is_skip, outcome = isinstance(one.answer, Skip), None
        with suppress(BadOutcome, UnknownItem):
            outcome = None if is_skip else outcome_of(one.answer, call.first, call.second, self._study.problem.family)
        text, reasoning = (storable(said) if self._keep_texts else None for said in (one.said.text, one.said.reasoning))
        first, second = (call.first_text or call.first, call.second_text or call.second)
        case = None if call.case is None else self._digest(call.case.text)
        return JudgeReply(
            call.id, self._setup.judge, "" if call.member is None else self._setup.members[call.member][0],
            None if call.case is None else call.case.id, call.first, call.second, outcome,
            one.answer.reason if is_skip else "", one.attempt, one.at, one.seconds, one.said.request, one.said.model,
            text, reasoning, one.tokens.prompt, one.tokens.cached, one.tokens.completion, one.cost,
            self._digest(first), self._digest(second), case,
        )  # fmt: skip

    def _digest(self, text: str) -> str | None:
        """The digest of a text, which is stored once."""
        if not self._keep_texts:
            return None
        kept = storable(f"[picture of {len(text):,} letters]" if text.startswith(PICTURE) else text)
        digest = fingerprint(kept)
        if digest not in self._known:
            self._texts[digest] = kept
        return digest


def save_texts(study: Study, contents: Mapping[str, Any] | None, cases: Sequence[Case] | None) -> None:
    """Keep what judges are shown, unless something is kept already or the study is in memory. People will not see the
    names of items that have a text."""
    database = study.storage
    if not isinstance(database, Database) or (contents is None and cases is None):
        return
    shown = {item: _content((contents or {}).get(item, "")) for item in study.items}
    body = {
        "instructions": "", "ties": True, "blind": True, "cases": [_case(case) for case in cases or ()],
        "contents": shown,
    }  # fmt: skip
    with database.changing() as connection:
        number = connection.scalar(select(studies.c.id).where(studies.c.name == study.name))
        if connection.scalar(select(displays.c.study).where(displays.c.study == number)) is None:
            connection.execute(insert(displays), {"study": number, "body": json.dumps(body), "closed": False})


def _case(case: Case) -> dict[str, str]:
    return {"id": case.id, "text": case.text, "reference": case.reference}


def _content(content: str | Mapping[str, str]) -> dict[str, Any]:
    by_case = dict(content) if isinstance(content, Mapping) else {}
    text = content if isinstance(content, str) else ""
    return {"text": text, "format": "text", "image": None, "answers": by_case}


def load_texts(study: Study) -> tuple[dict[str, Any] | None, tuple[Case, ...] | None]:
    """The texts of items, by case if they differ, and the cases that are kept with a study; None where there are
    none."""
    database, body = study.storage, None
    if isinstance(database, Database):
        with database.reading() as connection:
            found = select(displays.c.body).join(studies, studies.c.id == displays.c.study)
            body = connection.scalar(found.where(studies.c.name == study.name))
    if body is None:
        return None, None
    kept = json.loads(body)
    texts = {item: one["answers"] or one["text"] for item, one in kept["contents"].items()}
    cases = tuple(Case(**case) for case in kept["cases"])
    return (texts if any(texts.values()) else None), (cases or None)
