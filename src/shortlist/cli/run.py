"""`shortlist run`: a study from a file of items, answered by a program, a language model or recorded votes."""

import re
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn

import typer

from shortlist.cli.choice import ME, Choice, recorded_pairs
from shortlist.cli.options import DELTA, FAMILY, JSON, MAP, METHOD, RULE, SIGMA, STORAGE, TOLERANCE, FamilyName
from shortlist.cli.output import console, print_json
from shortlist.cli.studies import new_study, show_study
from shortlist.errors import BadJudge, JudgeFailed


class Order(StrEnum):
    random = "random"
    both = "both"


def run(
    items: Path = typer.Argument(
        ..., help="Text file with an item a line; CSV, TSV or JSON lines with name and content; or a folder of files."
    ),
    k: int = typer.Option(..., "-k", help="How many items are wanted."),
    judge: str = typer.Option(
        None, help='A program that reads a question and prints an answer, both JSON: "python judge.py". Or: me.'
    ),
    keep: int = typer.Option(
        None, min=1, help="Keep so many of that program running and feed them lines; else one is started per call."
    ),
    judge_url: str = typer.Option(
        None, help="A language model at an OpenAI-compatible URL, such as http://localhost:8000/v1. Needs --model."
    ),
    model: str = typer.Option(None, help="Its model; the key is read from OPENAI_API_KEY and kept nowhere."),
    prompt: Path = typer.Option(None, help="File with a prompt that shows {first}, {second} and, with cases, {case}."),
    temperature: float = typer.Option(None, help="The model's; left out, the server's own."),
    votes: Path = typer.Option(None, help="A file of recorded votes, drawn with replacement."),
    columns: list[str] = MAP,
    judge_name: str = typer.Option(None, help="What the judge's answers are remembered under."),
    cases: Path = typer.Option(None, help=".txt, .jsonl or .csv of what to compare the items on; drawn at random."),
    order: Order = typer.Option(Order.random, help="Show sides by fair coin, or ask in both orders and take the mean."),
    delta: float = DELTA,
    tolerance: float = TOLERANCE,
    max_votes: int = typer.Option(None, help="End with the best answer so far after that many votes."),
    max_calls: int = typer.Option(None, min=1, help="Ask nothing new after so many calls; the same command goes on."),
    workers: int = typer.Option(8, min=1, help="Questions to have out at once."),
    retries: int = typer.Option(3, min=0, help="Tries after the first, for one call."),
    time_limit: float = typer.Option(300.0, help="Seconds for one try."),
    method: str = METHOD,
    rule: str = RULE,
    family: FamilyName = FAMILY,
    sigma: float = SIGMA,
    seed: int = typer.Option(0, help="Of sides, cases and what is drawn."),
    name: str = typer.Option(None, help="What to find the study by; left out, the name of ITEMS."),
    storage: str = STORAGE,
    as_json: bool = JSON,
) -> None:
    """Find the best k items with a judge. Saved at every vote: the same command again goes on."""
    from shortlist.cli.live import RunDisplay
    from shortlist.families import make_family
    from shortlist.judges.cases import read_cases
    from shortlist.judges.items import read_items
    from shortlist.judges.runner import run_study

    listed = read_items(items)
    given = None if cases is None else read_cases(cases)
    choice = Choice(judge, keep, judge_url, model, prompt, temperature, votes, columns, judge_name)
    answering = choice.make(listed.names, given, make_family(family.value, sigma), seed)
    allowed = None if votes is None else recorded_pairs(answering, len(listed.names))
    if answering is None and as_json:
        raise BadJudge("--judge me answers at the keyboard and has no --json; leave one out")
    study = new_study(
        listed.names, k, delta, storage=storage, name=name or _name(items), load_if_exists=True, tolerance=tolerance,
        max_votes=max_votes, method=method, rule=rule, family=family.value, sigma=sigma, allowed=allowed, seed=seed,
    )  # fmt: skip
    title = f"{study.name} in {_place(storage)}: best {k} of {len(listed.names)}, error at most {delta:g}"
    if answering is None:
        from shortlist.cli.judge import judge_by_hand

        return judge_by_hand(study, judge_name or ME, listed.contents, given)
    print(f"{'going on with' if study.verdict.votes else 'new study'} {title}", file=sys.stderr)
    with RunDisplay(study, title) as display:
        _warn_of_others(study, answering.name, display)
        try:
            found = run_study(
                study, answering, workers=workers, cases=given, contents=listed.contents, position=order.value,
                retries=retries, time_limit=time_limit, max_calls=max_calls, progress=display.show, warn=display.warn,
            )  # fmt: skip
        except JudgeFailed as failure:
            message = f"{failure}. All {study.verdict.votes:,} votes are saved; the same command goes on"
            raise JudgeFailed(message) from None
        except KeyboardInterrupt:
            display.__exit__(None, None, None)
            _leave(study)
    _show(study, found, as_json)


def _name(items: Path) -> str:
    """A name for the study from that of its items."""
    return re.sub(r"[^\w .-]", "-", items.resolve().stem).lstrip(" .-")[:100] or "study"


def _place(storage: str) -> str:
    from shortlist.study.engine import shown

    return shown(storage)


def _warn_of_others(study: Any, judge: str, display: Any) -> None:
    others = sorted({str(question.judge) for question in study.out if question.judge != judge})
    if others:
        display.warn(
            f"questions are out with {', '.join(others)} and count as lost until they are answered; let that judge go "
            f"on, or close them: shortlist tell {shlex.quote(study.name)} NUMBER skip"
        )


def _leave(study: Any) -> NoReturn:
    print(f"stopped; all {study.verdict.votes:,} votes are saved. To go on:", file=sys.stderr)
    print(f"  {shlex.join(['shortlist', *sys.argv[1:]])}", file=sys.stderr)
    sys.exit(130)


def _show(study: Any, found: Any, as_json: bool) -> None:
    if as_json:
        return print_json(
            {
                **vars(study.examine()),
                "name": study.name,
                "costs": vars(found.costs),
                "first_share": found.stats.first_share,
                "flip_rate": found.stats.flip_rate,
                "warnings": list(found.warnings),
                "utilities": study.utilities,
            }
        )
    show_study(study, False)
    costs, share = found.costs, found.stats.first_share
    calls = f"{costs.calls:,} calls, {costs.saved:,} saved, {costs.retries:,} retries, {costs.skips:,} skipped"
    sides = "" if share is None else f"; what was shown first won {share:.0%}"
    console().print(f"\n  This run: {calls}{sides}.")
    if not study.verdict.done:
        console().print("  The same command goes on.")
