"""`shortlist judge`: a person answers a study at the keyboard."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from shortlist.cli.keys import keyboard
from shortlist.cli.options import STORAGE
from shortlist.errors import BadProblem


def judge(
    name: str = typer.Argument(..., help="The study's name."),
    who: str = typer.Option("me", "--as", help="Your name, kept with your votes."),
    items: Path = typer.Option(None, help="The file or folder of items, if it has contents to show."),
    cases: Path = typer.Option(None, help=".txt, .jsonl or .csv of what to compare the items on; drawn at random."),
    storage: str = STORAGE,
) -> None:
    """Answer a study's questions at the keyboard. Saved at every key; the same command again goes on."""
    from shortlist.judges.cases import read_cases
    from shortlist.judges.items import read_items
    from shortlist.study.create import load_study

    study = load_study(name, storage)
    contents = None if items is None else read_items(items).contents
    judge_by_hand(study, who, contents, None if cases is None else read_cases(cases))


def judge_by_hand(study: Any, who: str, contents: Mapping[str, str] | None, cases: Sequence[Any] | None) -> None:
    """Ask the person at the terminal until there is a verdict or they leave."""
    from shortlist.cli.session import Session
    from shortlist.judges.shift import Shift

    if study.problem.family.win is None:
        raise BadProblem(f"this study measures differences; say them with: shortlist tell {study.name} NUMBER VALUE")
    quoted = shlex.quote(study.name)
    instead = f"in a script use `shortlist ask {quoted}` and `shortlist tell {quoted} NUMBER ANSWER`"
    with keyboard(instead) as terminal, Shift(study) as shift:
        Session(study, who, contents or {}, cases, shift, terminal).go()
