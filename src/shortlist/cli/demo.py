"""`shortlist demo`: the whole story on simulated judges."""

from pathlib import Path
from typing import Any

import typer

from shortlist.cli.options import JSON
from shortlist.cli.output import console, print_json
from shortlist.cli.report import REPORT, check_out, write
from shortlist.errors import NotInstalled

PROMPTS = {
    "plain question": -1.6, "polite question": -1.3, "role play": 0.2, "one example": 0.5, "three examples": 1.9,
    "step by step": 1.6, "reason then check": 2.2, "bullet points": -0.6, "strict format": -0.2,
    "short answer": -1.0, "long answer": -0.8, "self critique": 0.0,
}  # fmt: skip
WANTED, JUDGES = 3, ("ann", "bob", "cleo")


def demo(
    delta: float = typer.Option(0.05, help="Allowed error."),
    seed: int = typer.Option(1, help="Seed of the simulated judges."),
    out_file: Path = typer.Option(None, "--out", help="File of the report; report.html if left out."),
    no_report: bool = typer.Option(False, "--no-report", help="Write no report."),
    as_json: bool = JSON,
) -> None:
    """Find the best 3 of 12 prompts with simulated judges who often disagree, and write a report."""
    import numpy as np
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    from shortlist.study.create import create_study

    wanted = None if no_report or (as_json and out_file is None) else out_file or Path(REPORT)
    if wanted is not None:
        check_out(wanted)
    quality = np.array(list(PROMPTS.values()))
    place = {name: number for number, name in enumerate(PROMPTS)}
    study = create_study(list(PROMPTS), k=WANTED, delta=delta, seed=seed, name="demo")
    rng = np.random.default_rng(seed)
    out = console()
    if not as_json:
        out.print(
            f"Twelve prompts, and judges who prefer the better one only most of the time. Which {WANTED} are best?"
        )
    columns = TextColumn("evidence"), BarColumn(30), TextColumn("{task.fields[votes]:>6,} votes")
    screen = Console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("", total=1.0, votes=0)
        while not study.verdict.done:
            question = study.ask(judge=JUDGES[rng.integers(len(JUDGES))])
            better = quality[place[question.first]] - quality[place[question.second]]
            verdict = study.tell(question, float(rng.random() < 1 / (1 + np.exp(-better))))
            share = verdict.votes / (verdict.votes + (verdict.votes_left or np.inf))
            bar.update(task, completed=share, votes=verdict.votes)
    verdict = study.verdict
    if as_json:
        if wanted is not None:
            write(study, wanted)
        return print_json({**vars(verdict), "utilities": study.utilities})
    right = set(verdict.top) == set(sorted(PROMPTS, key=lambda name: -PROMPTS[name])[:WANTED])
    out.print(f"\n{verdict}", style="bold")
    out.print(f"Guarantee: {verdict.guarantee}.")
    out.print(f"The simulation knows the truth: this is {'right' if right else 'wrong'}.\n")
    counts = dict.fromkeys(PROMPTS, 0)
    for answer in study.history:
        counts[answer.question.first] += 1
        counts[answer.question.second] += 1
    out.print(f"   {'prompt':<20}{'utility':>8}{'votes':>8}", style="dim")
    for name, utility in sorted(study.utilities.items(), key=lambda entry: -entry[1]):
        mark, style = ("●", "green") if name in verdict.top else (" ", None)
        out.print(f" {mark} {name:<20}{utility:>+8.2f}{counts[name]:>8,}", style=style)
    out.print("\nVotes went where they decide something: to the items near the line.")
    if wanted is not None:
        _report(study, wanted)


def _report(study: Any, path: Path) -> None:
    """Without matplotlib the demo is still the demo."""
    try:
        write(study, path)
    except NotInstalled as reason:
        console().print(f"No report: {reason}.")
    else:
        console().print(f"The whole story, with plots: {path}")
