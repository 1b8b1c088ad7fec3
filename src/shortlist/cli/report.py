"""`shortlist report`: a study, or a vote file, as one HTML file."""

from pathlib import Path

import typer

from shortlist.analysis.analysis import PARTS, Analysis, analyse_study, analyse_votes
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
    progress_bar,
)
from shortlist.core.families import make_family
from shortlist.errors import BadInput
from shortlist.report.page import write_report
from shortlist.study.create import load_study

REPORT = "report.html"


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
        found = analyse_study(study)
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
