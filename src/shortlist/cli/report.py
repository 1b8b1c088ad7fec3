"""`shortlist report`: a study, or a vote file, as one HTML file. `shortlist demo`: a complete study with one.
`shortlist read`: what judges said, question by question.
"""

import json
import math
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.columns import Columns
from rich.console import Console, Group
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from shortlist.analysis.analysis import PARTS, Analysis, analyse_study, analyse_votes
from shortlist.analysis.votes import decisive_votes, decisive_words, replies_to
from shortlist.cli.keyboard import read_key, shortened, single_keys
from shortlist.cli.options import (
    DELTA,
    FAMILY,
    FILE_STOPPING,
    JSON,
    MAP,
    SIGMA,
    SKIP_BAD,
    STORAGE,
    TOLERANCE,
    UNIT,
    console,
    count_of,
    load_votes,
    note,
    print_json,
    print_verdict,
    progress_bar,
    say,
)
from shortlist.cli.studies import NAME, print_study_items
from shortlist.core.families import make_family
from shortlist.errors import BadInput
from shortlist.judges.run_log import load_texts
from shortlist.report.page import write_report
from shortlist.study.create import create_study, load_study
from shortlist.study.storage import JudgeReply
from shortlist.study.study import Study

REPORT = "report.html"
PROMPTS = {
    "plain question": -1.6, "polite question": -1.3, "role play": 0.2, "one example": 0.5, "three examples": 1.9,
    "step by step": 1.6, "reason then check": 2.2, "bullet points": -0.6, "strict format": -0.2,
    "short answer": -1.0, "long answer": -0.8, "self critique": 0.0,
}  # fmt: skip
WANTED, JUDGES = 3, ("ann", "bob", "cleo")
MOST = 3_000  # letters of a text on the screen


def report(
    name: str | None = typer.Argument(None, metavar="NAME", help="Name of the study. Or give --votes."),
    out: Path | None = typer.Option(None, help="File to write. Default: report.html, or none with --json."),
    storage: str = STORAGE,
    votes: Path | None = typer.Option(None, help="Report on this vote file instead of a study. Needs -k."),
    k: int | None = typer.Option(None, "-k", help="With --votes: how many items to find."),
    delta: float = DELTA,
    stopping: str = FILE_STOPPING,
    tolerance: float = TOLERANCE,
    family: str = FAMILY,
    sigma: float = SIGMA,
    columns: list[str] | None = MAP,
    unit: str | None = UNIT,
    skip_bad: bool = SKIP_BAD,
    as_json: bool = JSON,
) -> None:
    """Write an HTML report on a study or on a vote file.

    It shows the verdict, the ratings, the error bound over time, who beat whom, and checks of the votes. The options
    -k, --delta, --tolerance, --stopping, --family, --sigma, --map, --unit and --skip-bad need --votes: a study has its
    own settings.
    """
    if (name is None) == (votes is None):
        raise BadInput("give either the name of a study, or --votes FILE -k K")
    path = None if as_json and out is None else out or Path(REPORT)
    if path is not None:
        check_out(path)
    if votes is None:
        study = load_study(str(name), storage)
        study.settle()
        found = analyse_study(study, *load_texts(study), decisive_words(study))
    elif k is None:
        raise BadInput("a vote file does not say how many items to find; give -k")
    else:
        found = _analyse_votes(votes, k, delta, stopping, tolerance, family, sigma, columns, skip_bad, unit)
    if path is not None:
        write(found, path)
    if as_json:
        return print_json({**found.to_dict(), **found.verdict.to_dict()})
    console().print(str(found.verdict))
    console().print(f"Report written to {path}")


def check_out(path: Path) -> None:
    """Refuse a path that cannot be written, before the work begins."""
    if path.is_dir():
        raise BadInput(f"{path} is a folder; give the name of a file")
    if not path.absolute().parent.is_dir():
        raise BadInput(f"there is no folder {path.parent}; create it first, or write to another one")


def write(found: Analysis, path: Path) -> None:
    """Write the report, with a progress bar: some parts take seconds."""
    with progress_bar("report", len(PARTS) + 1) as show:
        for finished, part in enumerate(PARTS, 1):
            getattr(found, part)
            show(finished)
        write_report(found, path)


def _analyse_votes(
    votes: Path, k: int, delta: float, stopping: str, tolerance: float, family: str, sigma: float,
    columns: list[str] | None, skip_bad: bool, unit: str | None,
) -> Analysis:  # fmt: skip
    kind = make_family(family, sigma)
    table = load_votes(votes, kind, columns, skip_bad, unit)
    found = analyse_votes(table, k, delta, name=votes.name, stopping=stopping, family=kind, tolerance=tolerance)
    for caveat in found.verdict.caveats:
        note(caveat)
    return found


def demo(
    delta: float = typer.Option(0.05, help="Allowed probability that the answer is wrong."),
    seed: int = typer.Option(1, help="Random seed of the simulated judges."),
    out_file: Path | None = typer.Option(None, "--out", help="File of the report. Default: report.html."),
    no_report: bool = typer.Option(False, "--no-report", help="Do not write a report."),
    as_json: bool = JSON,
) -> None:
    """Find the best 3 of 12 prompts with simulated judges, and write a report.

    The judges often disagree. The demo asks about one pair of prompts at a time until the answer is proved. It needs
    no network and takes a few seconds.
    """
    path = None if no_report or (as_json and out_file is None) else out_file or Path(REPORT)
    if path is not None:
        check_out(path)
    study = create_study(list(PROMPTS), k=WANTED, delta=delta, seed=seed, name="demo")
    if not as_json:
        console().print(
            f"Which {WANTED} of these {len(PROMPTS)} prompts are best? Simulated judges compare two at a time.\n"
        )
    _play(study, seed)
    if path is not None:
        write(analyse_study(study), path)
    if as_json:
        return print_json({**study.verdict.to_dict(), "utilities": study.utilities})
    _print(study)
    if path is not None:
        console().print(f"\nThe report with all plots: {path}")


def _play(study: Study, seed: int) -> None:
    """Answer questions until there is a verdict: the better prompt wins more often, not always."""
    rng = np.random.default_rng(seed)
    columns = TextColumn("evidence"), BarColumn(30), TextColumn("{task.fields[votes]:>6,} votes")
    screen = Console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("", total=1.0, votes=0)
        while not study.verdict.done:
            question = study.ask(judge=JUDGES[rng.integers(len(JUDGES))])
            better = PROMPTS[question.first] - PROMPTS[question.second]
            verdict = study.tell(question, float(rng.random() < 1 / (1 + np.exp(-better))))
            share = verdict.votes / (verdict.votes + (verdict.votes_left or np.inf))
            bar.update(task, completed=share, votes=verdict.votes)


def _print(study: Study) -> None:
    best = sorted(PROMPTS, key=lambda name: -PROMPTS[name])[:WANTED]
    right = set(study.verdict.top) == set(best)
    print_verdict(study.verdict)
    say(f"The simulation knows the true answer: this one is {'right' if right else 'wrong'}.")
    print_study_items(study, study.verdict)
    console().print("\nMost votes went to the items near the cutoff, where they matter most.")


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
    help="decisive: votes that decided the line between the top and the rest, the weightiest first. flips: pairs on a "
    "case on which the two orders, or two judges of a panel, chose different winners. ties: ties. unclear: no verdict.",
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
    if which is Which.decisive:
        return list(replies_to(decisive_votes(study), replies))
    groups: dict[Hashable, list[JudgeReply]] = {}
    for reply in replies:
        is_question = which is not Which.flips or reply.case is None  # else the two orders may be two questions
        pair = reply.judge, reply.case, frozenset((reply.first, reply.second))
        groups.setdefault(reply.question if is_question else pair, []).append(reply)
    chosen: dict[Which, Callable[[Sequence[JudgeReply]], bool]] = {
        Which.all: lambda group: True,
        Which.flips: _is_flip,
        Which.ties: lambda group: any(reply.outcome == 0.5 for reply in group),
        Which.unclear: lambda group: any(reply.outcome is None for reply in group),
    }
    return [group for group in groups.values() if chosen[which](group)]


def _is_flip(group: Sequence[JudgeReply]) -> bool:
    """Whether two answers about one pair chose different winners."""
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
        order = f", shown first: {reply.first}" if len({one.first for one in group}) > 1 else ""
        yield Text(f"{judge}: {_verdict(reply)}{order} ({reply.seconds:.1f} s{tokens}{cost}{again})", style="green")
        if reply.reasoning:
            yield Text(f"thought: {shortened(reply.reasoning, MOST)}", style="dim")
        yield Text("(texts are not kept)" if reply.text is None else shortened(reply.text, MOST))


def _verdict(reply: JudgeReply) -> str:
    if reply.outcome is None:
        return f"no verdict, {reply.reason}"
    words = {1.0: reply.first, 0.0: reply.second, 0.5: "tie"}
    return words.get(reply.outcome, f"{reply.outcome:.2f} for {reply.first}")


def _text(texts: dict[str, str], digest: str | None) -> str:
    return "(not kept)" if digest is None else shortened(texts.get(digest, "(not kept)"), MOST)
