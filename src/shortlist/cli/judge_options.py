"""The options of `shortlist run` about the judge, and the judge they describe."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from shortlist.cli.options import COLUMNS, load_single_votes, note
from shortlist.cli.outputs import FIELDS, Material
from shortlist.core.families import Family
from shortlist.errors import BadJudge, NotInstalled
from shortlist.judges.base import Case, Judge, PanelJudge, RecordedJudge
from shortlist.judges.command import CommandJudge
from shortlist.judges.endpoint import EndpointJudge
from shortlist.judges.meter import LIST, ListedPrice, Pricing, read_price, read_prices
from shortlist.votes.items import picture_url
from shortlist.votes.table import VoteTable

ME = "me"
JUDGE = "The judge: give one of --judge, --judge-url, --votes"
MODELS = "A language model as judge"
MONEY = "Money"

COMMAND = typer.Option(
    None,
    help='Program that judges: it reads a question and prints an answer, both as JSON, such as "python judge.py". '
    'Or "me" to judge in the terminal.',
    rich_help_panel=JUDGE,
)
KEEP = typer.Option(
    None,
    min=1,
    help="Keep this many copies of the program running, one question per line. Default: start it again for every "
    "question.",
    rich_help_panel=JUDGE,
)
URL = typer.Option(
    None,
    help="Language model that judges: an OpenAI-compatible URL, such as http://localhost:8000/v1.",
    rich_help_panel=JUDGE,
)
MODEL = typer.Option(
    None, help="Name of the model. Give several for a panel of judges (--panel).", rich_help_panel=JUDGE
)
PROMPT = typer.Option(
    None,
    help="File with the prompt for the model. It contains {first}, {second} and, with cases, {case}. It may contain "
    "{reference} and {criteria}.",
    rich_help_panel=MODELS,
)
TEMPERATURE = typer.Option(None, help="Temperature of the model. Default: that of the server.", rich_help_panel=MODELS)
SYSTEM = typer.Option(None, help="File with the system prompt.", rich_help_panel=MODELS)
CRITERIA = typer.Option(
    None, metavar="TEXT", help="What to judge by; @FILE reads it from a file.", rich_help_panel=MODELS
)


class Style(StrEnum):
    """Tools whose prompts can be used as they are."""

    arena_hard = "arena-hard"
    mt_bench = "mt-bench"
    alpaca_eval = "alpaca-eval"
    prometheus = "prometheus"


class Kind(StrEnum):
    """How a model gives its verdict."""

    letters = "letters"
    grades = "grades"
    json = "json"
    logprob = "logprob"


class Panel(StrEnum):
    """What a panel of judges answers."""

    random = "random"
    mean = "mean"


STYLE = typer.Option(
    None,
    help="The prompt was written for this tool: its names of the fields are used, and its kind of verdict.",
    rich_help_panel=MODELS,
)
VERDICT = typer.Option(
    None,
    help="How the model gives its verdict. letters: [[A]], [[B]], [[C]] for a tie. grades: [[A>>B]] to [[B>>A]], "
    "counted as 1, 0.75, 0.5, 0.25, 0. json: a JSON object. logprob: the probability of the two letters. Default: "
    "letters.",
    rich_help_panel=MODELS,
)
PATTERN = typer.Option(
    None,
    metavar="REGEX",
    help="Regular expression that finds the verdict: its group is A, B, C or tie.",
    rich_help_panel=MODELS,
)
MAX_TOKENS = typer.Option(
    None, min=1, help="How many tokens the model may write, its reasoning included.", rich_help_panel=MODELS
)
REQUEST_OPTION = typer.Option(
    None, metavar="NAME=JSON", help="One more member of the request, such as seed=1. Can be repeated.",
    rich_help_panel=MODELS,
)  # fmt: skip
HEADER = typer.Option(
    None,
    metavar="'NAME: VALUE'",
    help="One more header. The value $VARIABLE is read from the environment and not stored. Can be repeated.",
    rich_help_panel=MODELS,
)
QUERY = typer.Option(
    None, metavar="NAME=VALUE", help="Added to the URL, such as api-version=2024-10-21.", rich_help_panel=MODELS
)
KEY_VARIABLE = typer.Option(
    None,
    metavar="NAME",
    help="Environment variable with the API key, which is never stored; none sends no key. Default: OPENAI_API_KEY.",
    rich_help_panel=MODELS,
)
KEY_HEADER = typer.Option(
    "Authorization", help="Header that carries the key, such as api-key for Azure.", rich_help_panel=MODELS
)
RPM = typer.Option(None, help="At most so many requests a minute, for each model.", rich_help_panel=MODELS)
TPM = typer.Option(None, help="At most so many tokens a minute, for each model.", rich_help_panel=MODELS)
PRICE = typer.Option(
    None,
    metavar="IN,OUT",
    help="Price of a million tokens, read and written; a third number is for those read from a cache.",
    rich_help_panel=MONEY,
)
PRICES = typer.Option(
    None,
    metavar="FILE",
    help=f"TOML file with prices by model; {LIST} takes published prices from that package.",
    rich_help_panel=MONEY,
)
MAX_COST = typer.Option(
    None,
    help="Never spend more on this study, in all its runs. Needs a price and --max-tokens. Run the same command with a "
    "higher ceiling to continue.",
    rich_help_panel=MONEY,
)
ESTIMATE = typer.Option(
    False,
    "--estimate",
    help="Ask nothing. Say how many calls the run will need and what they will cost, from low to high, by simulation.",
    rich_help_panel=MONEY,
)


class Answer(StrEnum):
    """Yes or no."""

    yes = "yes"
    no = "no"


KEEP_TEXTS = typer.Option(
    Answer.yes, help="Keep what the judge says and was shown, for `shortlist read`.", rich_help_panel=MODELS
)
PANEL = typer.Option(
    Panel.random,
    help="With several models. random: each question goes to one of them, drawn at random. mean: to all of them, and "
    "the vote is their mean. Both prove something about the mean of the models.",
    rich_help_panel=MODELS,
)
RECORDED = typer.Option(
    None, help="Vote file that judges: each of its votes answers at most one question.", rich_help_panel=JUDGE
)


class Unit(StrEnum):
    """Which votes of a file are not independent."""

    row = "row"
    case = "case"
    judge = "judge"


UNIT = typer.Option(
    None,
    help="Vote file that judges: votes of one unit are used up together, because they are not independent. row: every "
    "vote is independent. Default: case if the file has cases, else row.",
    rich_help_panel=JUDGE,
)
RECORDED_MAP = typer.Option(None, "--map", help=f"{COLUMNS} Without --votes: {FIELDS}", rich_help_panel=JUDGE)
JUDGE_NAME = typer.Option(
    None,
    help="Name of the judge. Default: made from what decides its answers, such as model and prompt.",
    rich_help_panel=JUDGE,
)
AS_NEW_JUDGE = typer.Option(
    False,
    "--as-new-judge",
    help="The judge was changed, such as its prompt: continue under another name. Earlier votes stay votes of the "
    "earlier judge.",
    rich_help_panel=JUDGE,
)


@dataclass(frozen=True)
class ModelOptions:
    """The options about language models, as they were given."""

    urls: list[str] | None
    models: list[str] | None
    prompt: Path | None
    temperature: float | None
    system: Path | None
    criteria: str | None
    style: Style | None
    verdict: Kind | None
    pattern: str | None
    max_tokens: int | None
    options: list[str] | None
    headers: list[str] | None
    query: list[str] | None
    key_variables: list[str] | None
    key_header: str
    rpm: float | None
    tpm: float | None
    panel: Panel
    price: str | None
    prices: str | None

    def check_unused(self) -> None:
        """Raise BadJudge if one of these is given and another kind of judge is chosen."""
        for option, value in vars(self).items():
            if option not in ("key_header", "panel") and value:
                name = {"urls": "judge-url", "models": "model", "pattern": "verdict-pattern"}.get(option, option)
                raise BadJudge(f"--{name.replace('_', '-').rstrip('s')} works only with --judge-url; leave it out")

    def make(self, name: str) -> EndpointJudge | PanelJudge:
        """The judge: one language model, or a panel of several."""
        if not self.models:
            raise BadJudge("--judge-url needs a model; give --model NAME")
        if find_spec("httpx") is None:
            raise NotInstalled("a language model as judge", "httpx", "llm")
        urls = _for_each(self.urls or [], self.models, "--judge-url")
        keys = _for_each(self.key_variables or ["OPENAI_API_KEY"], self.models, "--key-variable")
        parts = zip(urls, self.models, keys, strict=True)
        judges = [self._one(*part, name if len(self.models) == 1 else "") for part in parts]
        return judges[0] if len(judges) == 1 else PanelJudge(judges, self.panel.value, name)

    def _one(self, url: str, model: str, key: str, name: str) -> EndpointJudge:
        criteria = _read(Path(self.criteria[1:])) if self.criteria and self.criteria.startswith("@") else self.criteria
        return EndpointJudge(
            url, model, None if self.prompt is None else _read(self.prompt), self.temperature,
            None if key == "none" else key, _members(self.options or ()), name,
            system=None if self.system is None else _read(self.system), criteria=criteria,
            prompt_style=None if self.style is None else self.style.value,
            verdict=None if self.verdict is None else self.verdict.value, pattern=self.pattern,
            max_tokens=self.max_tokens, headers=_pairs(self.headers or (), ":", "--header 'NAME: VALUE'"),
            query=_pairs(self.query or (), "=", "--query NAME=VALUE"), key_header=self.key_header, rpm=self.rpm,
            tpm=self.tpm, price=self._price(model),
        )  # fmt: skip

    def _price(self, model: str) -> Pricing | None:
        if self.price is not None and self.prices is not None:
            raise BadJudge("give --price or --prices, not both")
        if self.price is not None:
            return read_price(self.price)
        if self.prices is None or self.prices == LIST:
            return None if self.prices is None else ListedPrice(model)
        known = read_prices(Path(self.prices))
        if model not in known:
            raise BadJudge(f"{self.prices} has no price for {model!r}; it has {', '.join(sorted(known)) or 'none'}")
        return known[model]


def _for_each(given: list[str], models: list[str], option: str) -> list[str]:
    if len(given) not in (1, len(models)):
        raise BadJudge(f"give {option} once, or once for each of the {len(models)} models")
    return given * len(models) if len(given) == 1 else given


def _pairs(given: Sequence[str], sign: str, usage: str) -> dict[str, str]:
    split = [one.partition(sign) for one in given]
    if not all(name.strip() and found for name, found, _ in split):
        raise BadJudge(f"write it as {usage}")
    return {name.strip(): value.strip() for name, _, value in split}


def _members(given: Sequence[str]) -> dict[str, Any]:
    """Members of a request; a value that is not JSON is a text."""
    found: dict[str, Any] = {}
    for name, value in _pairs(given, "=", "--option NAME=JSON").items():
        try:
            found[name] = json.loads(value)
        except (ValueError, RecursionError):
            found[name] = value
    return found


@dataclass(frozen=True)
class JudgeOptions:
    """The options about the judge, as they were given."""

    command: str | None
    keep: int | None
    model: ModelOptions
    votes: Path | None
    columns: list[str] | None
    unit: Unit | None
    name: str | None

    def make(self, items: Sequence[str], cases: Sequence[Case] | None, family: Family) -> Judge | None:
        """The judge; None is the person at the keyboard. Raises BadJudge before anything is written."""
        self._check()
        if self.votes is not None:
            if cases is not None:
                raise BadJudge("recorded votes were given on their own cases; leave out --cases")
            return self._recorded(self.votes, items, family)
        if self.command is not None:
            return None if self.command == ME else self._program(self.command)
        judge = self.model.make(self.name or "")
        if self.model.verdict in (Kind.grades, Kind.logprob) and family.is_measured:
            raise BadJudge("grades and probabilities are not measured differences; choose --verdict letters")
        judge.check_cases(cases)  # refuses a prompt that cannot work
        return judge

    def _check(self) -> None:
        if sum(map(bool, (self.command, self.model.urls, self.votes))) != 1:
            raise BadJudge('give exactly one judge: --judge "COMMAND", --judge-url URL --model NAME, or --votes FILE')
        for option, value, belongs, kind in (
            ("--keep", self.keep, self.command, "--judge"),
            ("--map", self.columns or None, self.votes, "--votes"),
            ("--unit", self.unit, self.votes, "--votes"),
        ):
            if value is not None and belongs is None:
                raise BadJudge(f"{option} works only with {kind}; leave it out")
        if not self.model.urls:
            self.model.check_unused()

    def _program(self, command: str) -> CommandJudge:
        judge = CommandJudge(command, self.name or "", self.keep is not None, self.keep or 1)
        if shutil.which(judge.command[0]) is None:
            raise BadJudge(f"there is no program {judge.command[0]!r}; give the name or path of one that can be run")
        return judge

    def _recorded(self, path: Path, items: Sequence[str], family: Family) -> RecordedJudge:
        table = load_single_votes(path, family, self.columns, False, "a judge")
        columns, unit = table.columns(), self._unit(path, table)
        judge = RecordedJudge(
            columns["first"], columns["second"], columns["outcome"],
            unit=None if unit is Unit.row else columns[unit], family=family, name=self.name or path.name,
        )  # fmt: skip
        votes = judge.ids(items)
        if not votes:
            raise BadJudge(f"{path} has no votes between two of the items; use the same names in both files")
        if unit is not Unit.row:
            note(
                f"{path} is used by {unit}: a question uses up all votes of a {unit}, {len(votes):,} units in all; "
                "--unit row counts every vote by itself"
            )
        return judge

    def _unit(self, path: Path, table: VoteTable) -> Unit:
        labels = {Unit.case: table.case, Unit.judge: table.judge}
        unit = self.unit or (Unit.row if table.case is None else Unit.case)
        if unit is not Unit.row and labels[unit] is None:
            raise BadJudge(f"{path} has no {unit} column; name it with --map {unit}=COLUMN, or give another --unit")
        return unit


def recorded_pairs(judge: Judge | None, items: Sequence[str]) -> list[tuple[str, str]] | None:
    """The pairs that recorded votes can answer; None if all."""
    if not isinstance(judge, RecordedJudge):
        return None
    pairs = judge.votes_on(items)
    return None if len(pairs) == len(items) * (len(items) - 1) // 2 else sorted(pairs)


def with_pictures(listed: Material, judge: Judge | None) -> Material:
    """What a run compares, with pictures as data URLs if a language model judges: a path would tell it nothing."""
    members = judge.judges if isinstance(judge, PanelJudge) else [judge]
    if not listed.files or not any(isinstance(one, EndpointJudge) for one in members):
        return listed
    shown = {
        item: picture_url(text) if item in listed.files else text for item, text in (listed.contents or {}).items()
    }
    return replace(listed, contents=shown)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as reason:
        raise BadJudge(f"cannot read {path}: {getattr(reason, 'strerror', None) or reason}") from None
