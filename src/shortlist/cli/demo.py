"""`shortlist demo`: a complete study with simulated judges."""

from pathlib import Path

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from shortlist.analysis.analysis import analyse_study
from shortlist.cli.options import JSON, console, print_json, print_verdict, say
from shortlist.cli.report import REPORT, check_out, write
from shortlist.cli.studies import print_study_items
from shortlist.study.create import create_study
from shortlist.study.study import Study

PROMPTS = {
    "plain question": -1.6, "polite question": -1.3, "role play": 0.2, "one example": 0.5, "three examples": 1.9,
    "step by step": 1.6, "reason then check": 2.2, "bullet points": -0.6, "strict format": -0.2,
    "short answer": -1.0, "long answer": -0.8, "self critique": 0.0,
}  # fmt: skip
WANTED, JUDGES = 3, ("ann", "bob", "cleo")


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
