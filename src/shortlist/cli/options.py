"""Options that several commands share."""

from enum import StrEnum

import typer


class FamilyName(StrEnum):
    bradley_terry = "bradley-terry"
    gaussian = "gaussian"


DELTA = typer.Option(0.05, help="Allowed probability of a wrong answer.")
TOLERANCE = typer.Option(0.0, help="How much better an outsider may be, in win probability (gaussian: in its units).")
JSON = typer.Option(False, "--json", help="One JSON object on standard output.")
FAMILY = typer.Option(FamilyName.bradley_terry, help="What a vote is: a win, tie or grade; or a measured difference.")
SIGMA = typer.Option(1.0, help="Gaussian: noise of a difference.")
VOTES = typer.Argument(..., help="CSV, TSV, JSON or Parquet file of votes; `shortlist votes FILE` says how it is read.")
MAP = typer.Option(
    None,
    "--map",
    help="Columns with other names, e.g. first=colA,second=colB,winner=colC; also outcome, loser, weight, judge, case.",
)
SKIP_BAD = typer.Option(False, "--skip-bad", help="Leave out rows that are not understood; else they are an error.")
STORAGE = typer.Option(
    "sqlite:///shortlist.db",
    "--storage",
    envvar="SHORTLIST_STORAGE",
    help="Where studies are kept: sqlite:///FILE or postgresql://USER@HOST/DATABASE.",
)
METHOD = typer.Option("bridge", help="How to ask: bridge, oracle-tracking, track-and-stop or uniform.")
RULE = typer.Option(None, help="When to stop: edges, glr or posterior; left out, what goes with the method.")
