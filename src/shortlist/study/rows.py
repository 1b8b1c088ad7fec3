"""The table of a study: a row with a status for every question asked and every vote imported.

All code that shows or counts votes reads this table: `study.votes`, `status`, exports, reports, the dashboard, checks.
It is folded from the events one by one, so it always agrees with them.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from itertools import zip_longest
from typing import Any, Literal, NamedTuple, Protocol, get_args

from shortlist.core.stopping.base import Verdict, html_table
from shortlist.errors import NotInstalled
from shortlist.study.events import (
    Archived,
    Asked,
    Changed,
    Configured,
    Corrected,
    Entry,
    Imported,
    JudgeSetup,
    Late,
    Lost,
    Materials,
    Paused,
    Reopened,
    Settled,
    Shown,
    Skipped,
    TakenOver,
    TextShown,
    Told,
    Withdrawn,
)

Status = Literal["counted", "answered", "pending", "skipped", "lost", "late", "undone", "voided"]
STATUSES: tuple[Status, ...] = get_args(Status)
EXPORTED = "shortlist-"  # the ids of exported votes begin like this


class Row(NamedTuple):
    """One question or one imported vote. `outcome` is seen from `first`, which was shown first."""

    question: int | None  # None for an imported vote
    first: str
    second: str
    outcome: float | None  # None while pending, and if skipped or lost
    judge: str | None
    case: str | None
    unit: str | tuple[str, ...] | None  # votes of one unit are not independent; None: the vote is its own unit
    bet: float | None
    asked_at: float | None  # seconds since 1970
    closed_at: float | None
    status: Status
    reason: str = ""  # why it was skipped or lost
    source: str = ""  # of an import
    answered: int = -1  # the number of the event that gave the outcome: the order in which votes came in
    weight: float = 1.0  # of the bet; 0 for a vote that its unit leaves out, or whose judge bets nothing any more
    place: int | None = None  # on the judge's ballot, from 0
    digest: str = ""  # of an imported row, or the id that another study's export gave it

    @property
    def is_vote(self) -> bool:
        """Whether it has an outcome, counted or not."""
        return self.outcome is not None

    @property
    def id(self) -> str:
        """What an export calls this vote. It is the same in every export, and an import knows by it which votes are
        the study's own. A vote that came from another study keeps the id that it had there."""
        if self.digest.startswith(EXPORTED):
            return self.digest
        parts = self.question, self.asked_at, self.closed_at if self.question is None else None
        text = repr((*parts, self.first, self.second, self.judge, self.digest)).encode("utf-8", "backslashreplace")
        return EXPORTED + hashlib.blake2b(text, digest_size=8).hexdigest()


class Correction(NamedTuple):
    """What judges are shown of an item was corrected, after so many votes on it."""

    item: str
    parts: tuple[str, ...]
    at: float  # seconds since 1970
    votes: int


class RowTable:
    """The rows after the events read so far. `read` is the number of the next event."""

    def __init__(self, items: Sequence[str]) -> None:
        self.items = items
        self.rows: list[Row] = []
        self.read = 0
        self._place: dict[int, int] = {}  # of a question
        self._of_judge: dict[str, list[int]] = {}
        self._counts: Counter[Status] = Counter()
        self.digests: dict[str, tuple[int, float]] = {}  # of imported rows, with their first items and outcomes
        self.units: set[str] = set()  # of imported rows
        self.repeated = 0  # rows that imports left out because they were counted before
        self.is_sorted = False  # did an import look sorted?
        self.with_ids: set[int] = set()  # imports whose votes had ids, by the number of their event
        self.used_cases: set[str] = set()  # by any question, whatever became of it
        self.corrections: list[Correction] = []
        self.withdrawals: list[Correction] = []  # of items

    @property
    def counts(self) -> dict[Status, int]:
        """How many rows have each status."""
        return {status: self._counts[status] for status in STATUSES}

    @property
    def seen_units(self) -> set[str]:
        """Units that may not be used again: those of imported rows, and the cases of questions."""
        return self.units | self.used_cases

    @property
    def ids(self) -> set[str]:
        """What exports call the votes of this study, whatever became of them."""
        return {row.id for row in self.rows}

    def of_question(self, question: int) -> Row:
        return self.rows[self._place[question]]

    def of_judge(self, judge: str) -> list[Row]:
        return [self.rows[place] for place in self._of_judge.get(judge, ())]

    def fold(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            FOLDS[type(entry.event)](self, entry.event, entry)
            self.read = entry.number + 1

    def _asked(self, event: Asked, entry: Entry) -> None:
        self._place[event.question] = len(self.rows)
        if event.case is not None:
            self.used_cases.add(event.case)
        first, second = self.items[event.first], self.items[event.second]
        self._append(
            Row(
                event.question, first, second, None, event.judge, event.case, None, event.bet, entry.at, None,
                "pending", weight=event.weight, place=event.place,
            )
        )  # fmt: skip

    def _told(self, event: Told, entry: Entry) -> None:
        status = "counted" if event.settles is None else "answered"
        self._change(
            self._place[event.question], outcome=event.outcome, closed_at=entry.at, status=status, answered=entry.number
        )

    def _settled(self, event: Settled, entry: Entry) -> None:
        self._change(self._place[event.question], status="counted")

    def _reopened(self, event: Reopened, entry: Entry) -> None:
        self._change(self._place[event.question], outcome=None, closed_at=None, status="pending", answered=-1)

    def _skipped(self, event: Skipped, entry: Entry) -> None:
        self._change(self._place[event.question], closed_at=entry.at, status="skipped", reason=event.reason)

    def _lost(self, event: Lost, entry: Entry) -> None:
        self._change(self._place[event.question], closed_at=entry.at, status="lost", reason=event.reason)

    def _late(self, event: Late, entry: Entry) -> None:
        place = self._place[event.question]
        self._change(place, outcome=event.outcome, status="late", answered=entry.number)

    def _withdrawn(self, event: Withdrawn, entry: Entry) -> None:
        if event.judge is None:
            for vote in event.votes:
                assert vote.question is not None  # an imported vote can only be voided with its judge
                self._change(self._place[vote.question], status="undone")
            return
        for place in self._of_judge.get(event.judge, ()):
            if self.rows[place].status == "counted":
                self._change(place, status="voided")

    def _imported(self, event: Imported, entry: Entry) -> None:
        names = ([self.items[i] for i in side] for side in (event.first, event.second))
        ids = [id or digest for id, digest in zip_longest(event.id, event.digest)]
        columns = (event.outcome, event.judge, event.unit, event.bet, event.weight, ids)
        for first, second, outcome, judge, unit, bet, weight, digest in zip(*names, *columns, strict=True):
            self._append(
                Row(
                    None, first, second, outcome, judge, None, unit, bet, None, entry.at, "counted",
                    source=event.source, answered=entry.number, weight=weight, digest=digest,
                )
            )  # fmt: skip
        self.digests.update(zip(event.digest, zip(event.first, event.outcome, strict=True), strict=True))
        self.units.update(label for unit in event.unit for label in labels_of(unit))
        self.repeated += event.repeated
        self.is_sorted = self.is_sorted or event.is_sorted
        if event.has_ids:
            self.with_ids.add(entry.number)

    def _corrected(self, event: Corrected, entry: Entry) -> None:
        self.corrections.append(Correction(event.item, event.parts, entry.at, self._votes_on(event.item)))

    def _changed(self, event: Changed, entry: Entry) -> None:
        for number in event.settings.get("withdrawn", ())[len(self.withdrawals) :]:
            item = self.items[number]
            self.withdrawals.append(Correction(item, ("withdrawn",), entry.at, self._votes_on(item)))

    def _votes_on(self, item: str) -> int:
        return sum(row.is_vote and item in (row.first, row.second) for row in self.rows)

    def _nothing(
        self, event: Shown | TakenOver | Paused | Archived | Materials | TextShown | JudgeSetup | Configured,
        entry: Entry,
    ) -> None:  # fmt: skip
        """The event is not about votes."""

    def _append(self, row: Row) -> None:
        if row.judge is not None:
            self._of_judge.setdefault(row.judge, []).append(len(self.rows))
        self.rows.append(row)
        self._counts[row.status] += 1

    def _change(self, place: int, **changes: Any) -> None:
        self._counts[self.rows[place].status] -= 1
        self.rows[place] = self.rows[place]._replace(**changes)
        self._counts[self.rows[place].status] += 1


FOLDS: dict[type[Any], Callable[[RowTable, Any, Entry], None]] = {
    Asked: RowTable._asked, Shown: RowTable._nothing, TakenOver: RowTable._nothing, Told: RowTable._told,
    Settled: RowTable._settled, Reopened: RowTable._reopened, Skipped: RowTable._skipped, Lost: RowTable._lost,
    Late: RowTable._late, Withdrawn: RowTable._withdrawn, Imported: RowTable._imported, Paused: RowTable._nothing,
    Corrected: RowTable._corrected, Archived: RowTable._nothing, Changed: RowTable._changed,
    Materials: RowTable._nothing,
    TextShown: RowTable._nothing, JudgeSetup: RowTable._nothing, Configured: RowTable._nothing,
}  # fmt: skip


def labels_of(unit: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """The labels of a unit; none if the vote is its own unit."""
    return () if unit is None else unit if isinstance(unit, tuple) else (unit,)


def counted(rows: Iterable[Row]) -> list[Row]:
    """The votes that count, in the order in which they arrived."""
    return sorted((row for row in rows if row.status == "counted"), key=lambda row: row.answered)


def as_frame(rows: Sequence[Row]) -> Any:
    """The rows as a pandas DataFrame."""
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise NotInstalled("a data frame", "pandas", "frames") from None
    return pandas.DataFrame.from_records(rows, columns=Row._fields)


class Summary(Protocol):
    """The parts of a study that are shown."""

    items: tuple[str, ...]

    @property
    def verdict(self) -> Verdict[str]: ...
    @property
    def utilities(self) -> dict[str, float]: ...
    @property
    def rows(self) -> Sequence[Row]: ...


def study_html(study: Summary) -> str:
    """The verdict and a table of items: first the answer, then the rest, each best first."""
    verdict, utilities = study.verdict, study.utilities
    votes = Counter(item for row in counted(study.rows) for item in (row.first, row.second))
    items = sorted(study.items, key=lambda item: (item not in verdict.top, -utilities[item]))
    rows = [
        (str(rank), item, f"{utilities[item]:+.2f}", f"{votes[item]:,}", verdict.status(item))
        for rank, item in enumerate(items, 1)
    ]
    return html_table(verdict, ("rank", "item", "rating", "votes", "status"), rows)
