"""The options of `shortlist run` about the judge, and the judge they describe."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

import typer

from shortlist.cli.options import COLUMNS, load_single_votes, note
from shortlist.cli.outputs import FIELDS
from shortlist.core.families import Family
from shortlist.errors import BadJudge, NotInstalled
from shortlist.judges.base import Call, Case, Judge, RecordedJudge
from shortlist.judges.command import CommandJudge
from shortlist.judges.endpoint import EndpointJudge, write_prompt
from shortlist.votes.table import VoteTable

ME = "me"
JUDGE = "The judge: give one of --judge, --judge-url, --votes"

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
    None, help="Name of the model. Its API key is read from OPENAI_API_KEY and never stored.", rich_help_panel=JUDGE
)
PROMPT = typer.Option(
    None,
    help="File with the prompt for the model. It contains {first}, {second} and, with cases, {case}.",
    rich_help_panel=JUDGE,
)
TEMPERATURE = typer.Option(None, help="Temperature of the model. Default: that of the server.", rich_help_panel=JUDGE)
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
class JudgeOptions:
    """The options about the judge, as they were given."""

    command: str | None
    keep: int | None
    url: str | None
    model: str | None
    prompt: Path | None
    temperature: float | None
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
        return self._language_model(cases)

    def _check(self) -> None:
        if sum(given is not None for given in (self.command, self.url, self.votes)) != 1:
            raise BadJudge('give exactly one judge: --judge "COMMAND", --judge-url URL --model NAME, or --votes FILE')
        for option, value, belongs, kind in (
            ("--keep", self.keep, self.command, "--judge"),
            ("--model", self.model, self.url, "--judge-url"),
            ("--prompt", self.prompt, self.url, "--judge-url"),
            ("--temperature", self.temperature, self.url, "--judge-url"),
            ("--map", self.columns or None, self.votes, "--votes"),
            ("--unit", self.unit, self.votes, "--votes"),
        ):
            if value is not None and belongs is None:
                raise BadJudge(f"{option} works only with {kind}; leave it out")

    def _program(self, command: str) -> CommandJudge:
        judge = CommandJudge(command, self.name or "", self.keep is not None, self.keep or 1)
        if shutil.which(judge.command[0]) is None:
            raise BadJudge(f"there is no program {judge.command[0]!r}; give the name or path of one that can be run")
        return judge

    def _language_model(self, cases: Sequence[Case] | None) -> EndpointJudge:
        if self.model is None:
            raise BadJudge("--judge-url needs a model; give --model NAME")
        if find_spec("httpx") is None:
            raise NotInstalled("a language model as judge", "httpx", "llm")
        prompt = None if self.prompt is None else _read(self.prompt)
        judge = EndpointJudge(str(self.url), self.model, prompt, self.temperature, name=self.name or "")
        write_prompt(prompt, Call(0, "", "", case=cases[0] if cases else None))  # refuses a prompt that cannot work
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


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as reason:
        raise BadJudge(f"cannot read {path}: {getattr(reason, 'strerror', None) or reason}") from None
