"""`shortlist read`: what judges said, question by question."""

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer
from rich.columns import Columns
from rich.console import Group
from rich.panel import Panel
from rich.text import Text

from shortlist.analysis.decisive import decisive_votes
from shortlist.cli.keyboard import read_key, single_keys
from shortlist.cli.options import STORAGE, console, count_of, say
from shortlist.cli.studies import NAME
from shortlist.study.create import load_study
from shortlist.study.storage import JudgeReply
from shortlist.study.study import Study

MOST = 3_000  # letters of a text on the screen


class Which(StrEnum):
    """Which questions are shown."""

    all = "all"
    decisive = "decisive"
    flips = "flips"
    ties = "ties"
    unclear = "unclear"


WHICH = typer.Option(
    Which.all,
    "--only",
    help="decisive: votes that decided the line between the top and the rest, the weightiest first. flips: questions "
    "on which the two orders, or two judges of a panel, chose different winners. ties: ties. unclear: no verdict.",
)


def read(
    name: str = NAME,
    which: Which = WHICH,
    item: list[str] | None = typer.Option(None, help="Only questions about this item; twice for a pair."),
    judge: str | None = typer.Option(None, help="Only this judge."),
    case: str | None = typer.Option(None, help="Only this case."),
    export: Path | None = typer.Option(None, metavar="FILE", help="Write JSON lines to this file instead."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON lines: one object for each reply."),
    storage: str = STORAGE,
) -> None:
    """Read what judges said.

    Shows both outputs side by side, and the judge's words. In a terminal, press n or space for the next question, p for
    the one before, q to quit. Programs and language models are kept; `run --keep-texts no` keeps numbers only.
    """
    study = load_study(name, storage)
    replies, texts = study.storage.replies(study.name), study.storage.texts(study.name)
    shown = [
        group
        for group in _groups(study, replies, which)
        if _fits(group[0], item or (), case) and (judge is None or judge in (group[0].judge, group[0].member))
    ]
    lines = (json.dumps(as_line(reply, texts), ensure_ascii=False) for group in shown for reply in group)
    if export is not None:
        export.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return say(f"{count_of(sum(map(len, shown)), 'answer')} written to {export}.", "")
    if as_json:
        return print("\n".join(lines))
    if not shown:
        return say(_nothing(study, replies), "")
    _walk(shown, texts, study.name)


def _nothing(study: Study, replies: Sequence[JudgeReply]) -> str:
    if replies:
        return (
            f"No question of {study.name!r} fits; `shortlist read` without filters shows all {len(replies):,} replies."
        )
    return f"{study.name!r} has no replies. They are kept for language models and programs that `shortlist run` asks."


def _groups(study: Study, replies: Sequence[JudgeReply], which: Which) -> list[list[JudgeReply]]:
    """The replies that are shown, by question."""
    by_question: dict[int, list[JudgeReply]] = {}
    for reply in replies:
        by_question.setdefault(reply.question, []).append(reply)
    if which is Which.decisive:
        numbers = [row.question for row in decisive_votes(study) if row.question is not None]
        return [by_question[number] for number in numbers if number in by_question]
    chosen: dict[Which, Callable[[Sequence[JudgeReply]], bool]] = {
        Which.all: lambda group: True,
        Which.flips: _is_flip,
        Which.ties: lambda group: any(reply.outcome == 0.5 for reply in group),
        Which.unclear: lambda group: any(reply.outcome is None for reply in group),
    }
    return [group for group in by_question.values() if chosen[which](group)]


def _is_flip(group: Sequence[JudgeReply]) -> bool:
    """Whether two answers to one question chose different winners."""
    first = group[0].first
    seen = [
        reply.outcome if reply.first == first else 1.0 - reply.outcome for reply in group if reply.outcome is not None
    ]
    return len({math.copysign(1, one - 0.5) if one != 0.5 else 0.0 for one in seen}) > 1


def _fits(reply: JudgeReply, items: Sequence[str], case: str | None) -> bool:
    return set(items) <= {reply.first, reply.second} and (case is None or case == reply.case)


def as_line(reply: JudgeReply, texts: dict[str, str]) -> dict[str, Any]:
    """A reply with the texts that were shown, as it is exported."""
    shown = {part: texts.get(getattr(reply, part) or "") for part in ("first_text", "second_text", "case_text")}
    return {**reply._asdict(), **shown}


def _walk(groups: Sequence[Sequence[JudgeReply]], texts: dict[str, str], name: str) -> None:
    """Show all questions, in a terminal one after the other."""
    out = console()
    if not (out.is_terminal and sys.stdin.isatty()):
        for place, group in enumerate(groups, 1):
            out.print(_page(group, texts, place, len(groups), out.width))
        return
    place = 0
    with single_keys(name) as terminal:
        while place < len(groups):
            out.clear()
            out.print(_page(groups[place], texts, place + 1, len(groups), out.width))
            out.print(Text("n  next   p  previous   q  quit", style="dim"))
            key = read_key(terminal)
            if key == "q":
                return
            place = max(place - 1, 0) if key in ("p", "left") else place + 1


def _page(group: Sequence[JudgeReply], texts: dict[str, str], place: int, total: int, width: int) -> Group:
    one = group[0]
    title = Text(f"{place:,} of {total:,}: question {one.question}, {one.first} or {one.second}", style="bold")
    half = max(20, width // 2 - 1)
    sides = ((one.first, one.first_text), (one.second, one.second_text))
    panels = [Panel(Text(_text(texts, digest)), title=Text(item), width=half, padding=(0, 1)) for item, digest in sides]
    case = [] if one.case is None else [Panel(Text(_text(texts, one.case_text)), title=Text(f"case {one.case}"))]
    return Group(title, *case, Columns(panels, padding=(0, 0), expand=False), *_words(group), Text())


def _words(group: Sequence[JudgeReply]) -> Iterator[Text]:
    """What the judge said, each reply under a line with its verdict, time and cost."""
    for reply in group:
        cost = "" if reply.cost is None else f", cost {reply.cost:.6f}"
        tokens = f", {reply.prompt_tokens:,} + {reply.completion_tokens:,} tokens" if reply.prompt_tokens else ""
        again = f", try {reply.attempt}" if reply.attempt > 1 else ""
        judge = reply.member or reply.judge
        yield Text(f"{judge}: {_verdict(reply)} ({reply.seconds:.1f} s{tokens}{cost}{again})", style="green")
        if reply.reasoning:
            yield Text(f"thought: {_short(reply.reasoning)}", style="dim")
        yield Text("(texts are not kept)" if reply.text is None else _short(reply.text))


def _verdict(reply: JudgeReply) -> str:
    if reply.outcome is None:
        return f"no verdict, {reply.reason}"
    words = {1.0: reply.first, 0.0: reply.second, 0.5: "tie"}
    return words.get(reply.outcome, f"{reply.outcome:.2f} for {reply.first}")


def _text(texts: dict[str, str], digest: str | None) -> str:
    return "(not kept)" if digest is None else _short(texts.get(digest, "(not kept)"))


def _short(text: str) -> str:
    return text.strip() if len(text) <= MOST else f"{text[:MOST].strip()} … and {len(text) - MOST:,} more letters"
