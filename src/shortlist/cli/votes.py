"""`shortlist votes`: what would be read from a file of votes, before anything is done with it."""

import sys
from pathlib import Path
from typing import Any

from shortlist.cli.options import FAMILY, JSON, MAP, SIGMA, VOTES, FamilyName
from shortlist.cli.output import console, print_json


def votes(
    votes: Path = VOTES,
    columns: list[str] = MAP,
    family: FamilyName = FAMILY,
    sigma: float = SIGMA,
    as_json: bool = JSON,
) -> None:
    """What is understood of a file of votes: format, columns, counts, and every row that is not."""
    from shortlist.families import make_family
    from shortlist.io.formats import read_map
    from shortlist.io.votes import inspect_votes

    reading = inspect_votes(votes, make_family(family.value, sigma), columns=read_map(columns or ()))
    print_json(reading.as_dict()) if as_json else console().print(str(reading))


def note_order(path: Path, table: Any, family: Any) -> None:
    """For a command that takes votes in the order of the file: say so if it cannot be the order of casting."""
    from shortlist.io.order import looks_sorted

    if (table.weight == 1).all() and looks_sorted(table, family):
        proved = "what follows is proved only of votes in the order they were cast"
        print(f"shortlist: {path} looks sorted by winner; {proved}", file=sys.stderr)


def load_votes(path: Path, family: Any, columns: list[str] | None, skip_bad: bool) -> Any:
    """The votes for a command that needs them; rows left out are told on standard error."""
    from shortlist.io.formats import read_map
    from shortlist.io.votes import read_votes

    table = read_votes(path, family, columns=read_map(columns or ()), skip_bad=skip_bad)
    if table.left_out:
        print(f"shortlist: left out {len(table.left_out):,} rows that were not understood", file=sys.stderr)
    return table
