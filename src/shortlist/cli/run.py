"""`shortlist run`: a study from a file of items, answered by a program, a language model or recorded votes."""

import re
import shlex
import shutil
import sys
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import typer

from shortlist.cli.options import FAMILY, JSON, MAP, METHOD, RULE, SIGMA, STORAGE, FamilyName
from shortlist.cli.output import console, print_json
from shortlist.cli.studies import new_study, show_study
from shortlist.errors import BadJudge, JudgeFailed, NotInstalled

ME = "me"


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
    delta: float = typer.Option(0.05, help="Allowed probability of a wrong answer."),
    tolerance: float = typer.Option(0.0, help="How much better an outsider may be, in win probability."),
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
    from shortlist.judges.cases import read_cases
    from shortlist.judges.items import read_items
    from shortlist.judges.runner import run_study

    listed = read_items(items)
    given = None if cases is None else read_cases(cases)
    answering, allowed = _judge(judge, keep, judge_url, model, prompt, temperature, votes, columns, judge_name,
                                family.value, sigma, listed.names, seed, given)  # fmt: skip
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


def _judge(
    command: str | None, keep: int | None, url: str | None, model: str | None, prompt: Path | None,
    temperature: float | None, votes: Path | None, columns: list[str], name: str | None, family: str, sigma: float,
    items: tuple[str, ...], seed: int, cases: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """The judge, None for the person at the keyboard, and the pairs it can be asked about, None for all."""
    if sum(given is not None for given in (command, url, votes)) != 1:
        raise BadJudge('who judges? give one of --judge "COMMAND", --judge-url URL --model NAME, --votes FILE')
    for option, value, belongs in (
        ("--keep", keep, command), ("--model", model, url), ("--prompt", prompt, url),
        ("--temperature", temperature, url), ("--map", columns or None, votes),
    ):  # fmt: skip
        if value is not None and belongs is None:
            raise BadJudge(f"{option} is for another kind of judge; leave it out")
    if votes is not None:
        return _recorded(votes, columns, name, family, sigma, items, seed)
    if command == ME:
        return None, None
    if command is not None:
        return _program(command, keep, name), None
    if model is None:
        raise BadJudge("--judge-url needs a model; give --model NAME")
    return _language_model(str(url), model, prompt, temperature, name, cases), None


def _program(command: str, keep: int | None, name: str | None) -> Any:
    from shortlist.judges.command import CommandJudge

    judge = CommandJudge(command, name or "", keep is not None, keep or 1)
    if shutil.which(judge.command[0]) is None:
        raise BadJudge(f"there is no program {judge.command[0]!r}; give one that can be run, or its path")
    return judge


def _language_model(
    url: str, model: str, prompt: Path | None, temperature: float | None, name: str | None, cases: Any
) -> Any:
    from shortlist.judges.endpoint import EndpointJudge
    from shortlist.judges.judge import Asked
    from shortlist.judges.prompt import write_prompt

    if find_spec("httpx") is None:
        raise NotInstalled("a language model as a judge", "httpx", "llm")
    text = None if prompt is None else _read(prompt)
    judge = EndpointJudge(url, model, text, temperature, name=name or "")
    write_prompt(text, Asked(0, "", "", case=cases[0] if cases else None))  # does it show what it must?
    return judge


def _recorded(
    path: Path, columns: list[str], name: str | None, family: str, sigma: float, items: tuple[str, ...], seed: int
) -> tuple[Any, Any]:
    from shortlist.cli.votes import load_votes
    from shortlist.families import make_family
    from shortlist.judges.recorded import RecordedJudge

    speaks = make_family(family, sigma)
    table = load_votes(path, speaks, columns, False)
    if (table.weight != 1).any():
        raise BadJudge(f"{path} counts votes in a weight column; a judge draws single votes")
    rows = [
        (table.items[i], table.items[j], value)
        for i, j, value in zip(table.first.tolist(), table.second.tolist(), table.outcome.tolist(), strict=True)
    ]
    ours = [row for row in rows if row[0] in items and row[1] in items and row[0] != row[1]]
    if not ours:
        raise BadJudge(f"{path} has no votes between two of the items; are they called the same there?")
    judge = RecordedJudge(*zip(*ours, strict=True), family=speaks, seed=seed, name=name or path.name)
    return judge, sorted(judge.pairs)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as reason:
        raise BadJudge(f"cannot read {path}: {getattr(reason, 'strerror', None) or reason}") from None


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
