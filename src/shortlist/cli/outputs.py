"""`shortlist outputs`: how files of outputs are read. The same options serve `shortlist run`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

from shortlist.cli.options import JSON, console, note, print_json, working
from shortlist.errors import BadCases, BadOutputs, BadVotes, NotInstalled
from shortlist.judges.base import Case
from shortlist.judges.cases import read_cases
from shortlist.judges.pending import KnownAnswer
from shortlist.outputs.documents import Document, find_paths, open_document
from shortlist.outputs.formats import ITEM, NAMES, TARGETS, Wanted, find_column, recognise
from shortlist.outputs.read import ACCEPTABLE, Outputs, inspect_outputs
from shortlist.outputs.rows import NOTE
from shortlist.votes.files import STANDARD_INPUT
from shortlist.votes.formats import plain_title, read_map
from shortlist.votes.items import read_items

PANEL = "Outputs"
MAYBE_ITEMS = (".csv", ".tsv", ".jsonl")  # files of these kinds are items or outputs


class Missing(StrEnum):
    """What to do about an item that has no output on a case."""

    refuse = "refuse"
    drop = "drop"
    lose = "lose"


class Thinking(StrEnum):
    """What to do about thinking in an output."""

    drop = "drop"
    keep = "keep"


PATHS = typer.Argument(
    ...,
    metavar="PATH",
    help="Outputs: files of promptfoo, Inspect, HELM, lm-eval, Arena-Hard, MT-bench, AlpacaEval, OpenAI and Anthropic "
    "batches, Phoenix; tables; or folders. - is standard input.",
)
FIELDS = "Fields of the outputs, if they are not recognised: item=FIELD,case=FIELD,text=FIELD,output=FIELD. Also "
FIELDS += "reference, score, repeat, error. @file is the name of the file, @folder that of its folder."
MAP = typer.Option(None, "--map", help=FIELDS)
MISSING = typer.Option(
    Missing.refuse,
    help="If an item has no output on a case: refuse to start, drop the case, or let the item lose there.",
    rich_help_panel=PANEL,
)
TURN = typer.Option(
    "last", help="Which turn of a conversation is judged: last, all, or a number.", rich_help_panel=PANEL
)
REPEAT = typer.Option(
    "first",
    help="Which of several outputs of an item on a case is judged: first, a number, or all: each is a case of its own.",
    rich_help_panel=PANEL,
)
ONLY = typer.Option(None, metavar="ITEM,...", help="Read only these items.", rich_help_panel=PANEL)
WIDE = typer.Option(
    False, "--wide", help="Every column of a table that is not about the case is an item.", rich_help_panel=PANEL
)
THINKING = typer.Option(
    Thinking.drop, help="Drop or keep what an output has between `<think>` and `</think>`.", rich_help_panel=PANEL
)
FORMAT = typer.Option(
    None, metavar="NAME", help=f"The format, if it is not recognised right: {', '.join(NAMES)}.", rich_help_panel=PANEL
)
FILTER = typer.Option(None, metavar="NAME", help="lm-eval: judge what this filter made.", rich_help_panel=PANEL)
ACCEPT = typer.Option(
    None,
    metavar="NAME,...",
    help=f"Go on with these problems: {', '.join(name.replace(' ', '-') for name in ACCEPTABLE)}.",
    rich_help_panel=PANEL,
)


@dataclass(frozen=True)
class OutputOptions:
    """The options about outputs, as they were given."""

    columns: list[str] | None
    missing: Missing
    turn: str
    repeat: str
    only: list[str] | None
    wide: bool
    thinking: Thinking
    format: str | None
    filter: str | None
    accept: list[str] | None

    def inspect(self, paths: Sequence[Path]) -> Outputs:
        """The outputs with every problem."""
        with working("Reading the outputs"):
            return inspect_outputs(
                paths, map=read_map(self.columns or (), TARGETS, BadOutputs), missing=self.missing.value,
                turn=self.turn, repeat=self.repeat, only=self.only, wide=self.wide, thinking=self.thinking.value,
                format=self.format, filter=self.filter,
                accept=[name.strip() for given in self.accept or () for name in given.split(",")],
            )  # fmt: skip

    @property
    def are_given(self) -> bool:
        """Was anything said that makes sense for outputs alone?"""
        asked = self.columns, self.only, self.format, self.filter, self.accept
        chosen = self.missing != "refuse" or self.turn != "last" or self.repeat != "first" or self.thinking != "drop"
        return self.wide or chosen or any(asked)


def outputs(
    paths: list[Path] = PATHS,
    columns: list[str] | None = MAP,
    missing: Missing = MISSING,
    turn: str = TURN,
    repeat: str = REPEAT,
    only: list[str] | None = ONLY,
    wide: bool = WIDE,
    thinking: Thinking = THINKING,
    format: str | None = FORMAT,
    filter: str | None = FILTER,
    accept: list[str] | None = ACCEPT,
    as_json: bool = JSON,
) -> None:
    """Show how files of outputs are read.

    Prints the format of each file, how many outputs each item has, and every problem with its place and the way out.
    Nothing is changed and no judge is called.
    """
    options = OutputOptions(columns, missing, turn, repeat, only, wide, thinking, format, filter, accept)
    found = options.inspect(paths)
    print_json(found.as_dict()) if as_json else console().print(str(found))


@dataclass(frozen=True)
class Material:
    """What a run compares: items, what they are, the cases, and answers that need no judge."""

    names: Sequence[str]
    contents: Mapping[str, Any] | None
    cases: Sequence[Case] | None
    known_answer: KnownAnswer | None = None
    has_repeats: bool = False
    files: frozenset[str] = frozenset()  # items whose content is the path of a file


def read_material(paths: Sequence[Path], cases: Path | None, options: OutputOptions) -> Material:
    """Items and cases, from a file of items or from outputs. Every output is checked here, before the first call."""
    if not (options.are_given or holds_outputs(paths)):
        listed = read_items(paths[0])
        found_cases = None if cases is None else read_cases(cases)
        return Material(listed.names, listed.contents, found_cases, files=listed.files)
    found = options.inspect(paths).check()
    if cases is not None:
        raise BadCases("outputs bring their own cases; leave out --cases")
    notes = sorted({one.name for one in found.problems if one.weight == NOTE})
    if notes:
        note(f"about the outputs: {', '.join(notes)}; `shortlist outputs` shows where")
    return Material(found.items, found.texts, found.cases, found.known_answer, found.has_repeats)


def holds_outputs(paths: Sequence[Path]) -> bool:
    """Are these outputs, and not a file or folder of items?"""
    path = paths[0]
    if len(paths) > 1 or str(path) == STANDARD_INPUT:
        return True
    if path.is_dir():
        return _is_folder_of_outputs(path)
    if path.suffix.lower() in MAYBE_ITEMS:
        return _is_recognised(path)
    return path.suffix.lower() in (".json", ".eval", ".gz", ".parquet", ".xlsx")


def _is_folder_of_outputs(path: Path) -> bool:
    """A folder of items has the items as files; one of outputs has files that are recognised, or only folders."""
    found = find_paths(path)
    if found == [path]:
        return not any(file.is_file() and not file.name.startswith(".") for file in path.iterdir())
    return all(map(_is_recognised, found))


def _is_recognised(path: Path) -> bool:
    try:
        document = open_document(path)
    except (BadVotes, NotInstalled, OSError):
        return False
    known = recognise(document, Wanted())
    return known is not None and not (known.name == "long" and _are_items(document))


def _are_items(document: Document) -> bool:
    """A table of items has a column `content`, or names each item once and no case."""
    titles = {plain_title(str(name)) for name in document.first}
    names = [record.get(find_column(document.first, ITEM) or "") for record in document.records]
    return "content" in titles or ("case" not in titles and len(set(map(str, names))) == len(names))
