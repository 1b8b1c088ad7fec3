"""`shortlist report`: a study, or a file of votes, as one HTML file."""

from pathlib import Path
from typing import Any

import typer

from shortlist.cli.commands import RuleName
from shortlist.cli.options import DELTA, FAMILY, JSON, MAP, SIGMA, SKIP_BAD, STORAGE, TOLERANCE, FamilyName
from shortlist.cli.output import console, print_json, progress_bar
from shortlist.cli.votes import load_votes, note_order
from shortlist.errors import BadInput

REPORT = "report.html"


def report(
    name: str = typer.Argument(None, help="The study's name; or give --votes."),
    out: Path = typer.Option(None, help="File to write; report.html if left out. With --json none is written."),
    storage: str = STORAGE,
    votes: Path = typer.Option(None, help="Report on a file of votes instead; needs -k."),
    k: int = typer.Option(None, "-k", help="With --votes: how many items are wanted."),
    delta: float = DELTA,
    rule: RuleName = typer.Option(RuleName.edges, help="With --votes: which certificate."),
    tolerance: float = TOLERANCE,
    family: FamilyName = FAMILY,
    sigma: float = SIGMA,
    columns: list[str] = MAP,
    skip_bad: bool = SKIP_BAD,
    as_json: bool = JSON,
) -> None:
    """Write a report: verdict, utilities, error bound over time, who beat whom, and whether to trust it. The options
    from -k to --skip-bad are for --votes; a study knows its own."""
    if (name is None) == (votes is None):
        raise BadInput("name a study, or give --votes FILE -k K, and one of the two")
    if votes is not None and k is None:
        raise BadInput("a file of votes does not say how many items are wanted; give -k")
    path = None if as_json and out is None else out or Path(REPORT)
    if path is not None:
        check_out(path)
    if votes is None:
        found = _study(name, storage)
    else:
        found = _votes(votes, k, delta, rule.value, tolerance, family.value, sigma, columns, skip_bad)
    if path is not None:
        write(found, path)
    if as_json:
        return print_json(found.to_json())
    console().print(str(found.verdict))
    console().print(f"Report written to {path}")


def check_out(path: Path) -> None:
    """Better now than after the work."""
    if path.is_dir():
        raise BadInput(f"{path} is a folder; give the name of a file")
    if not path.absolute().parent.is_dir():
        raise BadInput(f"there is no folder {path.parent}; make it first, or write elsewhere")


def write(source: Any, path: Path) -> None:
    """With a bar: some parts take seconds."""
    from shortlist.findings.findings import PARTS, findings_of
    from shortlist.plots.style import matplotlib
    from shortlist.report.page import write_report

    matplotlib("a report")
    with progress_bar("report", len(PARTS) + 1) as show:
        found = findings_of(source)
        for finished, part in enumerate(PARTS, 1):
            getattr(found, part)
            show(finished)
        write_report(found, path)


def _study(name: str, storage: str) -> Any:
    from shortlist.findings.findings import study_findings
    from shortlist.study.create import load_study

    return study_findings(load_study(name, storage))


def _votes(
    votes: Path, k: int, delta: float, rule: str, tolerance: float, family: str, sigma: float,
    columns: list[str] | None, skip_bad: bool,
) -> Any:  # fmt: skip
    from shortlist.families import make_family
    from shortlist.findings.findings import vote_findings

    speaks = make_family(family, sigma)
    table = load_votes(votes, speaks, columns, skip_bad)
    if rule == RuleName.edges.value:
        note_order(votes, table, speaks)
    return vote_findings(
        table, k, delta, name=votes.name, rule=rule, family=family, sigma=sigma, tolerance=tolerance
    )  # fmt: skip
