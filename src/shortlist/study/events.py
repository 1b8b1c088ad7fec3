"""The events of a study. Events are only added, never changed; the state of a study is a fold over them.

An event has everything that the fold needs, with item numbers. An undo is a new event.
"""

import hashlib
import json
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from shortlist.core.tally import Block

Drawing = Literal["replaced", "once", "recorded"]  # how a case was drawn: with replacement, or used once


class Asked(NamedTuple):
    """A question was asked. A fair coin chose `first`, and `bet` was fixed at that moment."""

    question: int
    first: int
    second: int
    bet: float
    judge: str | None = None
    case: str | None = None
    lease: float | None = None  # when it expires, in seconds since 1970; None is never
    run: str | None = None  # the run that works on it
    pool: int = 0  # how many cases there were to draw from, used ones too
    drawing: Drawing | None = None  # how the case was drawn
    shown: bool = True  # False: prefetched, and the judge has not seen it yet
    place: int | None = None  # on the judge's ballot, from 0; None if it is on no ballot
    weight: float = 1.0  # of the bet; 0 if nothing is bet, because with a tolerance both sides bet even if `bet` is 0
    cells: int = (
        0  # of a table of answers that never change, which the answer is the mean of: one order of showing, or 2
    )


class Shown(NamedTuple):
    """The judge sees the question, or still does: its lease begins again. Other leases of a judge with a name are
    extended to this one, because the judge is there."""

    question: int
    lease: float | None = None


class TakenOver(NamedTuple):
    """A run continues with a question that another run left pending."""

    question: int
    run: str


class Told(NamedTuple):
    """The answer, from the side of the first item. Until it is settled, the judge may take it back."""

    question: int
    outcome: float
    settles: float | None = None  # when it becomes final by itself, in seconds since 1970; None is at once


class Settled(NamedTuple):
    """The answer is final and counts."""

    question: int


class Reopened(NamedTuple):
    """The judge took an answer back before it was settled. The question is pending again, with the same bet, sides and
    case; from now on it can only be answered or lost."""

    question: int


EXPIRED = "lease ran out"
VOIDED = "judge voided"
LEFT = "judge left"
DROPPED = "no longer needed"
CONFLICT = "conflict of interest"
ENDED = "the study was done"


class Skipped(NamedTuple):
    """The question was closed without an answer and without an effect on the evidence: by the judge, or because it was
    prefetched and never shown. A question of a ballot is lost instead, unless it is struck out when the ballot is
    opened because the judge must not see it."""

    question: int
    reason: str = ""


class Lost(NamedTuple):
    """The question was closed without an answer and counts as lost by both items for good: its answer might have come,
    had it been another."""

    question: int
    reason: str = ""


class Late(NamedTuple):
    """An answer that came after its question was closed. It is stored but not counted."""

    question: int
    outcome: float


class CountedVote(NamedTuple):
    """A vote as it was counted. An imported vote has no question."""

    question: int | None
    first: int
    second: int
    outcome: float
    bet: float
    weight: float = 1.0
    judge: str | None = None


class Withdrawn(NamedTuple):
    """Votes that no longer support any item. With a judge: that judge is voided. Without one: the judges of these votes
    bet nothing on these pairs from now on."""

    votes: tuple[CountedVote, ...]
    judge: str | None = None

    @property
    def question(self) -> int | None:
        """The question that the event is about; None if there are several."""
        return self.votes[0].question if len(self.votes) == 1 else None


class Imported(NamedTuple):
    """Imported votes, unit by unit, with the bets and weights that were fixed before each unit was read.

    `weight` is for the accounts that bet, `share` for the grid. `repeated` rows were left out because their digests
    are those of rows counted before. `is_sorted`: the votes look sorted by winner. A unit may have several labels
    (core/units.py). `id` has the ids that an export of a study gave its votes, and None elsewhere. `has_ids`: the votes
    had ids of some kind.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    outcome: tuple[float, ...]
    judge: tuple[str | None, ...]
    source: str = ""
    unit: tuple[str | tuple[str, ...] | None, ...] = ()
    bet: tuple[float, ...] = ()
    weight: tuple[float, ...] = ()
    share: tuple[float, ...] = ()
    digest: tuple[str, ...] = ()
    repeated: int = 0
    is_sorted: bool = False
    id: tuple[str | None, ...] = ()
    has_ids: bool = False

    @property
    def block(self) -> Block:
        first, second = np.asarray(self.first, np.int64), np.asarray(self.second, np.int64)
        outcome, bets, weights = (np.asarray(part, np.float64) for part in (self.outcome, self.bet, self.weight))
        return Block(first, second, outcome, np.ones(len(first)), bets, weights)


class Paused(NamedTuple):
    """The owner paused the study, or opened it again."""

    paused: bool


class Archived(NamedTuple):
    """The owner archived the study, or took it out of the archive. Nothing else is added while it is archived."""

    archived: bool


class Changed(NamedTuple):
    """The owner changed settings, by name: `max_votes` (None is no limit) or `delta`. What is not named stays."""

    settings: dict[str, Any]


class Materials(NamedTuple):
    """What judges are shown from now on, as digests; None where nothing is said about it."""

    texts: dict[str, str] | None  # by item
    cases: dict[str, str] | None  # by id; empty without cases


class TextShown(NamedTuple):
    """The digest of a text that a function of item and case returned, when a judge was first shown it."""

    item: str
    case: str | None
    digest: str


class Corrected(NamedTuple):
    """The owner corrected what judges are shown of an item, such as a typing error. Earlier votes still count."""

    item: str
    parts: tuple[str, ...]  # what was corrected, such as name and text


class JudgeSetup(NamedTuple):
    """A judge answers with these settings, and its votes are stored under the name `judge`."""

    judge: str
    given: str  # the judge's own name
    settings: dict[str, str]  # digests
    panel: tuple[str, ...] = ()  # the judges of a panel, whose answers are votes of this one
    how: str = ""  # of a panel: one of them answers, drawn at random, or the mean of all is taken


class Configured(NamedTuple):
    """A run took its options from a file with this digest."""

    digest: str


Event: TypeAlias = (
    Asked | Shown | TakenOver | Told | Settled | Reopened | Skipped | Lost | Late | Withdrawn | Imported | Paused
    | Archived | Changed | Materials | Corrected | TextShown | JudgeSetup | Configured
)  # fmt: skip
KINDS: dict[str, type[Any]] = {
    "asked": Asked, "shown": Shown, "taken over": TakenOver, "told": Told, "settled": Settled, "reopened": Reopened,
    "skipped": Skipped, "lost": Lost, "late": Late, "withdrawn": Withdrawn, "imported": Imported, "paused": Paused,
    "archived": Archived, "changed": Changed, "materials": Materials, "corrected": Corrected, "text shown": TextShown,
    "judge setup": JudgeSetup, "configured": Configured,
}  # fmt: skip
NAMES = {kind: name for name, kind in KINDS.items()}


class Entry(NamedTuple):
    """An event with its number and the time it was added, in seconds since 1970.

    In a database each event also holds the hash of the one before. In memory both hashes are empty.
    """

    number: int
    at: float
    event: Event
    previous: str = ""
    hash: str = ""


class Head(NamedTuple):
    """The end of a study's chain of events. Whoever knows it can tell whether any event before it was changed."""

    events: int
    hash: str


def origin(spec: str) -> str:
    """What the first event holds as the hash before it: the hash of what the study was created with."""
    return hashlib.sha256(spec.encode("utf-8", "backslashreplace")).hexdigest()


def chain(previous: str, number: int, at: float, kind: str, body: str) -> str:
    """The hash of an event. It covers the hash of the event before, so it covers all events until then."""
    return hashlib.sha256("\n".join((previous, str(number), repr(at), kind, body)).encode()).hexdigest()


def dump(event: Event) -> tuple[str, str]:
    """The event's kind, and the rest of it as JSON."""
    return NAMES[type(event)], json.dumps(event._asdict(), separators=(",", ":"))


def load(kind: str, body: str) -> Event:
    """The event that `dump` wrote. Raises ValueError if these are not an event's."""
    try:
        fields = json.loads(body)
        if kind == "withdrawn":
            fields["votes"] = tuple(CountedVote(*vote) for vote in fields["votes"])
        if kind == "imported":
            fields["unit"] = [tuple(unit) if isinstance(unit, list) else unit for unit in fields["unit"]]
        if kind not in ("asked", "told"):  # by far the most; they have no tuples
            fields = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
        made: Event = KINDS[kind](**fields)
    except (LookupError, TypeError, AttributeError) as reason:
        raise ValueError(f"not an event: {kind}") from reason
    return made


class Setups(NamedTuple):
    """What the votes of a study were given on: digests of the texts and cases that judges were shown, and of the
    settings they answered with. A run compares them with what it comes with (judges/setup.py)."""

    texts: dict[str, str] | None = None  # by item; None if no run has said
    cases: dict[str, str] | None = None  # by id; empty: the items are compared without cases
    shown: dict[str, dict[str | None, str]] = {}  # noqa: RUF012  by item and case id, from a function; never changed
    judges: tuple[JudgeSetup, ...] = ()  # one for each name that votes are stored under, the newest last
    configs: tuple[str, ...] = ()  # digests of the files that runs took their options from, each once, the newest last

    def with_materials(self, event: Materials) -> "Setups":
        texts = self.texts if event.texts is None else event.texts
        return self._replace(texts=texts, cases=self.cases if event.cases is None else event.cases)

    def with_text(self, event: TextShown) -> "Setups":
        texts = {**self.shown.get(event.item, {}), event.case: event.digest}
        return self._replace(shown={**self.shown, event.item: texts})

    def with_judge(self, event: JudgeSetup) -> "Setups":
        others = [other for other in self.judges if other.judge != event.judge]
        return self._replace(judges=(*others, event))

    def with_config(self, event: Configured) -> "Setups":
        return self._replace(configs=(*(one for one in self.configs if one != event.digest), event.digest))

    def text_of(self, item: str, case: str | None) -> str | None:
        """The digest of the text that judges were shown for an item on a case."""
        shown = self.shown.get(item, {}).get(case)
        return shown if shown is not None or self.texts is None else self.texts.get(item)


def fingerprint(value: Any) -> str:
    """32 letters that stand for a value that JSON can hold. Raises TypeError or ValueError if it cannot."""
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).hexdigest()
