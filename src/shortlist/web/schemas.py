"""What goes over the wire: the contract of /openapi.json."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from shortlist.web.access import NAME
from shortlist.web.judging import State, Status

HOLD = 5  # questions that a judge may hold


def _printable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("a text must not have NUL characters")
    return text


Text = Annotated[str, AfterValidator(_printable)]
ItemName = Annotated[Text, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]
PersonName = Annotated[
    str, StringConstraints(min_length=1, max_length=60, strip_whitespace=True, pattern=r"^[^\x00-\x1f\x7f]+$")
]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Problem(BaseModel):
    """What is wrong, and what would be right."""

    detail: str


class ItemIn(Strict):
    name: ItemName
    text: Annotated[Text, Field(max_length=20_000)] = ""
    format: Literal["text", "markdown"] = "text"
    image: Annotated[Text, Field(max_length=2000)] | None = Field(
        default=None, description="https://... or /uploads/ID"
    )
    answers: dict[str, Annotated[Text, Field(max_length=20_000)]] = Field(
        default_factory=dict, description="Texts by case: the case itself, or its id. Shown instead of `text`."
    )


class StudyIn(Strict):
    name: Annotated[str, Field(pattern=NAME)]
    items: Annotated[list[ItemIn], Field(min_length=2, max_length=1000)]
    k: Annotated[int, Field(ge=1, le=999)]
    delta: Annotated[float, Field(gt=0, lt=1)] = 0.05
    tolerance: Annotated[float, Field(ge=0, lt=0.5)] = 0.0
    max_votes: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    ties: bool = True
    blind: bool = False
    instructions: Annotated[Text, Field(max_length=5000)] = ""
    cases: Annotated[list[Annotated[Text, Field(min_length=1, max_length=20_000)]], Field(max_length=1000)] = []
    seed: Annotated[int, Field(ge=0, lt=2**31)] = Field(default=0, description="Of sides and cases.")


class StudyName(BaseModel):
    name: str
    state: str
    sentence: str


class Studies(BaseModel):
    studies: list[StudyName]


class StateIn(Strict):
    state: Literal["open", "paused", "closed"]


class SessionIn(Strict):
    token: Annotated[str, Field(max_length=200)]
    name: PersonName | None = Field(default=None, description="Of a judge who comes by an open link.")


class SessionOut(BaseModel):
    role: Literal["owner", "judge", "open"]
    page: str | None = Field(description="Where to go; None: say who you are first.")
    study: str | None


class Key(BaseModel):
    key: str = Field(description="Shown once. Send it as a bearer token.")


class JudgesIn(Strict):
    names: Annotated[list[PersonName], Field(min_length=1, max_length=200)]


class JudgeIn(Strict):
    judge: PersonName


class Link(BaseModel):
    judge: str | None = Field(description="None for the open link.")
    link: str = Field(description="Shown once: only its hash is kept.")


class Links(BaseModel):
    links: list[Link]


class Revoked(BaseModel):
    revoked: int = Field(description="How many links and sessions ended.")


class Take(Strict):
    hold: Annotated[int, Field(ge=1, le=HOLD)] = Field(
        default=1, description="How many questions to have on the table."
    )


class VoteIn(Strict):
    """Either an outcome from the first item's side (1 it is better, 0 the second is, 0.5 a tie), or a skip."""

    outcome: Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)] | None = None
    skip: Annotated[Text, Field(max_length=200)] | None = Field(default=None, description="Why there is no answer.")
    hold: Annotated[int, Field(ge=0, le=HOLD)] = Field(
        default=0, description="Questions to have on the table after it."
    )


class CardOut(BaseModel):
    title: str | None
    html: str = Field(description="Safe to show: made here from the item's text.")
    image: str | None


class QuestionOut(BaseModel):
    id: str
    first: CardOut = Field(description="To be shown on the left.")
    second: CardOut
    case: str | None


class Turn(BaseModel):
    """What a judge has to do next."""

    state: State
    message: str
    questions: list[QuestionOut]
    answered: int | None = Field(default=None, description="Votes of this judge so far.")
    progress: float | None = Field(description="Roughly how far the study is, from 0 to 1.")


class VoteOut(BaseModel):
    id: str
    status: Status
    next: Turn


class Upload(BaseModel):
    image: str = Field(description="The address to name as an item's image.")


class VerdictOut(BaseModel):
    sentence: str
    guarantee: str
    done: bool
    reason: str | None
    top: list[str]
    error_bound: float
    delta: float
    votes: int
    votes_left: float | None


class ItemOut(BaseModel):
    name: str
    utility: float
    low: float
    high: float
    chance: float
    certainly: Literal["in", "out", "undecided"]
    top: bool
    votes: int


class JudgeOut(BaseModel):
    name: str
    active: bool = Field(description="Has a link or session that is good.")
    voided: bool
    votes: int
    skips: int
    out: int
    undone: int
    agreement: float | None
    first_share: float | None
    first_low: float
    first_high: float


class PairOut(BaseModel):
    first: str
    second: str
    votes: int
    won: float


class BallotOut(BaseModel):
    id: str
    first: str
    second: str
    judge: str | None
    outcome: float
    at: float
    undone: bool


class Mark(BaseModel):
    votes: int
    error_bound: float


class Dashboard(BaseModel):
    name: str
    state: str
    verdict: VerdictOut
    votes_left_low: float | None
    votes_left_high: float | None
    out: int
    advice: str | None
    items: list[ItemOut]
    judges: list[JudgeOut]
    open_link: bool
    past: list[Mark]
    pairs: list[PairOut]
    recent: list[BallotOut]
    settings: dict[str, Any]


class Health(BaseModel):
    status: Literal["ok"]
    version: str


def problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The answers that say what is wrong; any request may be too big, too quick, or find the storage gone."""
    return {code: {"model": Problem} for code in (400, *codes, 413, 422, 429, 503)}
