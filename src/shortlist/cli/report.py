"""`shortlist report`: a study, or a vote file, as one HTML file. `shortlist demo`: a complete study with one."""

from pathlib import Path

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from shortlist.analysis.analysis import PARTS, Analysis, analyse_study, analyse_votes
from shortlist.analysis.decisive import decisive_words
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
    load_votes,
    note,
    print_json,
    print_verdict,
    progress_bar,
    say,
)
from shortlist.cli.studies import print_study_items
from shortlist.core.families import make_family
from shortlist.errors import BadInput
from shortlist.judges.texts import load_texts
from shortlist.report.page import write_report
from shortlist.study.create import create_study, load_study
from shortlist.study.study import Study

REPORT = "report.html"
PROMPTS = {
    "plain question": -1.6, "polite question": -1.3, "role play": 0.2, "one example": 0.5, "three examples": 1.9,
    "step by step": 1.6, "reason then check": 2.2, "bullet points": -0.6, "strict format": -0.2,
    "short answer": -1.0, "long answer": -0.8, "self critique": 0.0,
}  # fmt: skip
WANTED, JUDGES = 3, ("ann", "bob", "cleo")


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
