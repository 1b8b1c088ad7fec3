"""The bodies of requests and answers: the contract of /openapi.json."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StringConstraints

from shortlist.web.auth import NAME
from shortlist.web.display import Card, Content

HOLD = 5  # questions that a judge may hold
MOST_ITEMS = 5000
MOST_JUDGES = 1000  # in one request


def _printable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("a text must not contain NUL characters")
    return text


Text = Annotated[str, AfterValidator(_printable)]
TrackName = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^\w[\w .\-]{0,39}$")]
ItemName = Annotated[Text, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]
Address = Annotated[Text, Field(max_length=2000)]
PersonName = Annotated[
    str, StringConstraints(min_length=1, max_length=60, strip_whitespace=True, pattern=r"^[^\x00-\x1f\x7f]+$")
]


class JudgingState(StrEnum):
    open = "open"
    waiting = "waiting"  # the questions that are pending may be enough; some judges have not answered yet
    finished = "finished"  # this judge has had their ballot, or as many questions as each judge gets
    approval = "approval"  # the owner has to let this judge in
    refused = "refused"  # the owner did not let this judge in
    entry = "entry"  # other judges have to finish their ballots first
    others = "others"  # a proof needs several judges, and more votes of this one would add nothing now
    paused = "paused"
    closed = "closed"
    done = "done"


class Status(StrEnum):
    """What became of an answer."""

    answered = "answered"  # stored; it counts when it is settled, and until then an undo is free
    counted = "counted"
    skipped = "skipped"
    lost = "lost"  # skipped after an undo or on a ballot: it counts as a loss for both items
    reopened = "reopened"  # undone before it was settled: the same question is open again
    undone = "undone"  # undone after it was settled: it supports no item any more
    late = "late"  # stored but not counted: the judge's time for this question was over


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ProblemDocument(BaseModel):
    """What is wrong, and what to do about it (RFC 9457)."""

    type: Literal["about:blank"]
    title: str = Field(description="The meaning of the status.")
    status: int
    detail: str


class ItemIn(Strict):
    name: ItemName
    text: Annotated[Text, Field(max_length=20_000)] = ""
    format: Literal["text", "markdown"] = "text"
    image: Address | None = Field(default=None, description="https://... or /uploads/ID")
    audio: Address | None = Field(default=None, description="A sound: https://... or /uploads/ID")
    video: Address | None = Field(default=None, description="A film: https://... or /uploads/ID")
    answers: dict[str, Annotated[Text, Field(max_length=20_000)]] = Field(
        default_factory=dict, description="Texts by case (its text or its id), shown instead of `text` on that case."
    )
    track: TrackName | None = Field(default=None, description="The group of the item, for an event with tracks.")


class StudyIn(Strict):
    name: Annotated[str, Field(pattern=NAME)]
    items: Annotated[list[ItemIn], Field(min_length=2, max_length=MOST_ITEMS)]
    k: Annotated[int, Field(ge=1, lt=MOST_ITEMS)] = Field(description="How many items to find.")
    delta: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.05, description="The largest accepted probability of a wrong answer."
    )
    tolerance: Annotated[float, Field(ge=0, lt=0.5)] = Field(
        default=0.0, description="Accept members that may lose to an outsider by this margin in win probability."
    )
    max_votes: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    ties: bool = True
    blind: bool = Field(default=False, description="Hide the names of items that have a text or a picture.")
    instructions: Annotated[Text, Field(max_length=5000)] = ""
    cases: Annotated[list[Annotated[Text, Field(min_length=1, max_length=20_000)]], Field(max_length=1000)] = []
    cases_claim: Literal["these", "like these"] = Field(
        default="these",
        description="What a proof is about: these cases, or cases like these. For the second, each case serves one "
        "question, and no more is asked when all are used.",
    )
    judges_claim: Literal["each", "public"] = Field(
        default="each",
        description="What a proof is about: each judge who answered, or the public that the judges come from. For the "
        "second, each judge is asked once, with one ballot, and many more judges are needed.",
    )
    ballot_size: Annotated[int, Field(ge=1, le=100)] = Field(
        default=10, description="How many pairs a judge is asked about at most, if the claim is about the public."
    )
    min_judges: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None,
        description="Every step of a proof rests on at least this many judges. 1: one judge is enough. Default: 2, or "
        "1 with a tolerance, which does not go with more.",
    )
    from_study: Annotated[str, Field(pattern=NAME)] | None = Field(
        default=None, description="An older study, whose uploaded files may be used here."
    )
    takes_over: bool = Field(
        default=False,
        description="Take over the votes of `from_study`, all of them that are about two items of this study. Valid if "
        "you decide it without regard to the results; the verdict says so.",
    )
    seed: Annotated[int, Field(ge=0, lt=2**31)] = Field(
        default=0, description="Seed of the random order of a pair and of the random cases."
    )


def content_of(item: ItemIn) -> Content:
    """What judges see of an item."""
    media = {kind: getattr(item, kind) or None for kind in ("image", "audio", "video")}
    return Content(item.text, item.format, answers=dict(item.answers), **media)


class StudyItems(BaseModel):
    items: list[ItemIn]
    titles: dict[str, str] = Field(description="Names that were corrected, by the name that the study knows.")
    can_edit: bool = Field(description="Whether items can still be added, removed and moved: nothing was asked yet.")
    withdrawn: list[str] = Field(description="Items that were withdrawn after the first question.")


class StudyItemsIn(Strict):
    items: Annotated[list[ItemIn], Field(min_length=2, max_length=MOST_ITEMS)]
    k: Annotated[int, Field(ge=1, lt=MOST_ITEMS)] | None = Field(default=None, description="How many items to find.")


class CorrectionIn(Strict):
    """What to correct of an item; what is left out stays."""

    item: ItemName = Field(description="The name that the study knows the item by.")
    name: ItemName | None = None
    text: Annotated[Text, Field(max_length=20_000)] | None = None
    image: Address | None = None


class WithdrawIn(Strict):
    item: ItemName = Field(description="The name that the study knows the item by.")


class StudyLine(BaseModel):
    name: str
    state: str
    sentence: str
    event: str | None = Field(default=None, description="The event that the study is a track of.")


class Track(StudyLine):
    """One study of an event."""

    track: str
    items: int
    votes: int
    judges: int = Field(description="Judges who have answered.")
    filled: float = Field(description="The share of the proof that is filled, from 0 to 1.")


class EventOut(BaseModel):
    name: str
    tracks: list[Track]


class Studies(BaseModel):
    studies: list[StudyLine]
    next: str | None = Field(description="Pass it as `before` to get the next page; null on the last one.")


class StateIn(Strict):
    state: Literal["open", "paused", "closed", "archived"]


class SettingsIn(BaseModel):
    """The settings to change; what is left out stays. Other settings are refused with the reason."""

    model_config = ConfigDict(extra="allow")
    max_votes: Annotated[int, Field(ge=1, le=10_000_000)] | None = Field(
        default=None,
        description="The vote budget; null is no limit. A study whose budget was used up goes on, and all answers "
        "count. A budget of no more than the votes so far ends the study.",
    )
    delta: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None,
        description="It can only be made smaller. After the first question a proof still states the largest delta that "
        "was in force.",
    )
    min_judges: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None,
        description="On how many judges a proof rests at least. When it rises, everything is worked out again; when it "
        "falls, what is proved stays. From 1 it can rise only before the first question.",
    )


class SessionIn(Strict):
    token: Annotated[str, Field(max_length=200)]
    name: PersonName | None = Field(default=None, description="The name of a judge who comes by an open link.")
    code: Annotated[str, Field(max_length=40)] | None = Field(
        default=None, description="The code of the open link, if it has one."
    )


class SessionOut(BaseModel):
    role: Literal["owner", "viewer", "judge", "open"]
    page: str | None = Field(description="The page to go to; null if a name is needed first.")
    study: str | None
    needs_code: bool = Field(default=False, description="A code must be sent too.")


class Key(BaseModel):
    key: str = Field(description="Shown only once. Send it as a bearer token.")


class Person(Strict):
    name: PersonName
    email: Annotated[str, Field(max_length=200, pattern=r"^[^@\s\x00]+@[^@\s\x00]+$")] | None = None


class JudgesIn(Strict):
    names: Annotated[list[PersonName], Field(max_length=MOST_JUDGES)] = []
    people: Annotated[list[Person], Field(max_length=MOST_JUDGES)] = Field(
        default=[], description="Names with e-mail addresses. The service sends no mail; the addresses are for yours."
    )


class JudgeIn(Strict):
    judge: PersonName


class JudgeNames(Strict):
    judges: Annotated[list[PersonName], Field(min_length=1, max_length=MOST_JUDGES)]


class Qr(BaseModel):
    """A QR code: dark squares as an SVG path in a square of this size, with its margin."""

    size: int
    path: str


class TrackJudge(Person):
    tracks: Annotated[list[TrackName], Field(max_length=100)] = Field(
        default=[], description="The tracks that this person judges, with a link for each; empty is all tracks."
    )


class TrackJudges(Strict):
    people: Annotated[list[TrackJudge], Field(min_length=1, max_length=MOST_JUDGES)]


class Link(BaseModel):
    judge: str | None = Field(description="null for the open link and for viewers.")
    study: str
    link: str = Field(description="Shown only once: the service stores only its hash.")
    email: str | None = None
    qr: Qr


class Links(BaseModel):
    links: list[Link]


class OpenLinkIn(Strict):
    """Who may come by the open link. What is left out is not limited."""

    code: Annotated[Text, StringConstraints(min_length=3, max_length=40, strip_whitespace=True)] | None = Field(
        default=None, description="Judges must type it. Show it in the room, and the link alone lets nobody in."
    )
    max_judges: Annotated[int, Field(ge=1, le=100_000)] | None = None
    max_votes: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="How many answers each judge who comes by the open link may give."
    )
    approve: StrictBool = Field(default=False, description="Judges wait until the owner lets them in.")


class AdmitIn(JudgeNames):
    admit: StrictBool = True


class ConflictIn(Strict):
    """None of these judges is shown any of these items."""

    judges: Annotated[list[PersonName], Field(min_length=1, max_length=MOST_JUDGES)]
    items: Annotated[list[ItemName], Field(min_length=1, max_length=1000)]


class ConflictsIn(Strict):
    conflicts: Annotated[list[ConflictIn], Field(max_length=5000)]


class ConflictOut(BaseModel):
    judge: str
    item: str
    declared: bool = Field(description="Declared by the judge.")


class Panelist(BaseModel):
    """A judge as the owner sees them."""

    name: str
    pseudonym: str = Field(description="The name that the votes are stored under.")
    email: str | None
    state: Literal["active", "waiting", "refused", "voided"]
    open_link: bool = Field(description="Came by the open link.")
    active: bool = Field(description="Has a link or a session that works.")
    joined: float = Field(description="In seconds since 1970.")
    votes: int = Field(description="Answers that count or will count.")
    skips: int
    lost: int = Field(description="Pairs that were shown and not answered in time, or taken back and left.")
    late: int = Field(description="Answers that came after their time and do not count.")
    share: float | None = Field(description="Their share of all evidence that votes have given so far.")
    flags: list[str] = Field(description="What to look at, one sentence each.")


class Remark(BaseModel):
    """A reason that a judge gave with a vote or a skip."""

    judge: str
    first: str
    second: str
    outcome: float | None
    text: str


class Panel(BaseModel):
    """The judges of a study, for the owner."""

    judges: list[Panelist]
    open_link: bool
    viewer_link: bool
    limits: OpenLinkIn
    conflicts: list[ConflictOut]
    remarks: list[Remark] = Field(description="The newest reasons, newest first.")
    items: list[str]


class VoidIn(JudgeNames):
    preview: StrictBool = Field(default=False, description="Only say what it would do.")


class Effect(BaseModel):
    done: bool
    votes: int
    error_bound: float
    proved: int = Field(description="How many items are proved to be in or out.")
    votes_left: float | None
    sentence: str


class VoidOut(BaseModel):
    judges: list[str]
    votes: int = Field(description="Votes that are withdrawn.")
    pending: int = Field(description="Questions that count as lost by both items.")
    before: Effect
    after: Effect


class Pseudonym(BaseModel):
    pseudonym: str = Field(description="The votes stay under this name.")


class OwnAnswer(BaseModel):
    id: str
    first: str
    second: str
    outcome: float | None
    status: str
    reason: str = Field(description="Why there is no vote.")
    note: str = Field(description="What the judge wrote.")
    asked_at: float | None
    closed_at: float | None


class PersonalData(BaseModel):
    """Everything that the service stores about a judge."""

    name: str
    pseudonym: str
    email: str | None
    joined: float
    conflicts: list[str]
    answers: list[OwnAnswer]


class Revoked(BaseModel):
    revoked: int = Field(description="How many links and sessions stopped working.")


class Take(Strict):
    hold: Annotated[int, Field(ge=1, le=HOLD)] = Field(default=1, description="How many questions to have pending.")


class Leave(Strict):
    showing: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="The id of the question that was on the screen."
    )


class VoteIn(Strict):
    """Either an outcome (1 if the first item is better, 0 if the second is, 0.5 for a tie) or a reason to skip."""

    outcome: Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)] | None = None
    skip: Annotated[Text, Field(max_length=200)] | None = Field(default=None, description="Why there is no answer.")
    note: Annotated[Text, Field(max_length=500)] = Field(
        default="", description="The judge's own words, for the owner. They are stored beside the votes."
    )
    conflict: list[Literal["first", "second"]] = Field(
        default=[], max_length=2, description="Items in which the judge has an interest. They are not shown them again."
    )
    hold: Annotated[int, Field(ge=0, le=HOLD)] = Field(
        default=0, description="How many questions to have pending after it."
    )
    showing: Annotated[str, Field(max_length=200)] | None = Field(
        default=None,
        description="The id of the question that is on the screen now; else the first of the next ones is.",
    )


class QuestionOut(BaseModel):
    id: str
    first: Card = Field(description="Show it on the left.")
    second: Card
    case: str | None = Field(description="What the two are compared on.")
    place: int | None = Field(description="The place on the judge's ballot, from 0; null if there are no ballots.")


class Turn(BaseModel):
    """What the judge does next."""

    state: JudgingState
    message: str
    questions: list[QuestionOut] = Field(description="Show the first; its lease has begun. Keep the others for later.")
    answered: int = Field(description="Votes of this judge so far.")
    progress: float | None = Field(
        description="Roughly how much of the study, or of the judge's ballot, is done, from 0 to 1."
    )
    ballot: int | None = Field(default=None, description="How many pairs the judge's ballot has.")
    needed: int | None = Field(default=None, description="About how many more votes the study needs, of all judges.")
    left: int | None = Field(default=None, description="About how many more answers are expected of this judge.")
    undo: list[str] = Field(
        default=[],
        description="Ids of this judge's answers that are not settled, newest last. An undo of these is free.",
    )


class VoteOut(BaseModel):
    id: str
    status: Status
    reason: str = Field(default="", description="Why an answer does not count.")
    next: Turn


class Upload(BaseModel):
    kind: Literal["image", "audio", "video"]
    address: str = Field(description="Use it as the `image`, `audio` or `video` of an item.")


class ItemsOut(BaseModel):
    """Items that were read from a file, to be looked at before they are used."""

    items: list[ItemIn]
    notes: list[str] = Field(description="What to know about how the file was read.")


class VerdictOut(BaseModel):
    """The same as `Verdict.to_dict()` in Python and `--json` on the command line."""

    done: bool
    reason: Literal["certified", "budget", "no top"] | None = Field(
        description="certified: the answer is proved. budget: all votes of the limit are used."
    )
    top: list[str] = Field(description="The answer so far, best first.")
    error_bound: float | None = Field(
        description="The smallest delta at which this answer would be proved, had it been chosen beforehand."
    )
    certainly_in: list[str] = Field(description="Items that are proved to be in the top k.")
    certainly_out: list[str] = Field(description="Items that are proved not to be in the top k.")
    undecided: list[str]
    votes: int
    votes_left: float | None = Field(description="An estimate; null while it is too early.")
    guarantee: str = Field(description="What is proved, and under which assumptions. Empty while nothing is proved.")
    statistic: float | None = Field(description="Only for the stopping rule glr.")
    threshold: float | None = Field(description="Only for the stopping rule glr.")
    caveats: list[str] = Field(description="What to know before relying on the result, one sentence each.")
    error: float = Field(description="If the answer is proved, it is wrong with at most this probability.")
    sentence: str


class Counts(BaseModel):
    """How many questions and imported votes have each status."""

    counted: int
    answered: int = Field(description="Answered, but not settled: the judge may still undo it at no cost.")
    pending: int = Field(description="Asked, and not answered yet.")
    skipped: int
    lost: int = Field(description="Shown and not answered in time: a loss for both items.")
    late: int = Field(description="Answered too late: stored, but not counted.")
    undone: int
    voided: int = Field(description="Votes of judges that were voided.")


class ItemOut(BaseModel):
    name: str
    utility: float = Field(description="The rating, 0 for the average item.")
    low: float = Field(description="Lower end of a 95 % interval of the rating.")
    high: float
    chance: float = Field(description="The estimated probability that the item is in the top k.")
    proved: Literal["in", "out", "withdrawn"] | None
    top: bool = Field(description="In the answer so far.")
    votes: int
    filled: float = Field(description="How much of the proof about this item is there, from 0 to 1.")
    title: str = Field(description="The name as it is shown, which may have been corrected.")


class JudgeOut(BaseModel):
    name: str
    active: bool = Field(description="Has a link or a session that works.")
    is_voided: bool
    counts: Counts
    share: float | None = Field(description="Their share of all evidence that votes have given so far.")
    agreement: float | None = Field(
        description="The share of their votes for the item that the other judges' votes rate higher; ties are left out."
    )
    first_share: float | None = Field(
        description="The share of their votes for the item shown first; ties are left out."
    )
    first_low: float | None = Field(description="Lower end of a 95 % interval of `first_share`.")
    first_high: float | None


class PairOut(BaseModel):
    first: str
    second: str
    votes: int
    won: float = Field(description="Votes that the first item won; a tie is a half.")


class RecentVote(BaseModel):
    id: str
    first: str
    second: str
    judge: str | None
    outcome: float
    at: float = Field(description="When it was answered, in seconds since 1970.")
    status: Literal["counted", "undone", "voided"]


class BoundPoint(BaseModel):
    votes: int
    error_bound: float
    votes_left: float | None
    filled: float = Field(description="The share of the proof that was filled, from 0 to 1.")


class Activity(BaseModel):
    """When judges answered: answers in equal spans of time, oldest first."""

    start: float = Field(description="Seconds since 1970.")
    span: float = Field(description="Seconds.")
    judges: dict[str, list[int]] = Field(description="The busiest judges, by name; `others` are all others.")


class SettingsOut(BaseModel):
    k: int
    delta: float
    tolerance: float
    max_votes: int | None
    sampling: str = Field(description="The sampling rule.")
    stopping: str = Field(description="The stopping rule.")
    ties: bool
    blind: bool
    instructions: str
    cases: list[str]
    cases_claim: Literal["these", "like these"]
    judges_claim: Literal["each", "public"]
    ballot_size: int
    min_judges: int


class HeadOut(BaseModel):
    """The end of a study's record. Published, it lets anyone check later that the record was not changed."""

    events: int
    hash: str


class Dashboard(BaseModel):
    name: str
    state: Literal["open", "paused", "closed", "done", "archived"]
    verdict: VerdictOut
    plain: str = Field(description="The verdict in words for everybody.")
    filled: float = Field(description="The share of the proof that is filled, from 0 to 1.")
    next_votes: str = Field(description="What the next votes are for; empty when nothing more is asked.")
    published: bool = Field(description="Whether everybody who has the address may see the results.")
    claims: list[str] = Field(description="What a proof of this study is about, one sentence for each claim.")
    head: HeadOut
    votes_left_low: float | None = Field(description="A rough range of the votes left.")
    votes_left_high: float | None
    counts: Counts
    advice: str | None
    items: list[ItemOut]
    judges: list[JudgeOut]
    open_link: bool
    bound_history: list[BoundPoint] = Field(description="The error bound after so many votes.")
    pairs: list[PairOut]
    activity: Activity
    recent: list[RecentVote]
    settings: SettingsOut


class PublishedIn(Strict):
    published: StrictBool


class Published(BaseModel):
    published: bool
    page: str | None = Field(description="Where the results are.")


class ResultItem(BaseModel):
    title: str
    top: bool
    proved: Literal["in", "out", "withdrawn"] | None
    image: str | None
    votes: int


class Results(BaseModel):
    name: str
    state: Literal["open", "paused", "closed", "done", "archived"]
    plain: str = Field(description="The verdict in words for everybody.")
    guarantee: str
    caveats: list[str]
    claims: list[str]
    is_proved: bool
    k: int
    votes: int
    judges: int = Field(description="How many judges gave a vote that counts.")
    items: list[ResultItem] = Field(description="The answer first, best first; then the others.")
    head: HeadOut


class VoteOfPage(BaseModel):
    id: str | None = Field(description="null for an imported vote.")
    first: str
    second: str
    outcome: float | None
    judge: str | None
    case: str | None
    status: str
    reason: str
    asked: str | None
    answered: str | None


class VotePage(BaseModel):
    votes: list[VoteOfPage]
    next: int | None = Field(description="Pass it as `after` to get the next page; null on the last one.")
    total: int


class Health(BaseModel):
    status: Literal["ok"]
    version: str


def problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of a route. Any request may be invalid, too large or too frequent, or find no storage."""
    return {code: {"model": ProblemDocument} for code in (400, *codes, 413, 422, 429, 503)}
