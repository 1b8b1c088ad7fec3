"""What the commands share: options, on the command line or from a TOML file (`--config`), reading vote files, and
printing results for people or as JSON.

An option on the command line wins over the same option in the file.
"""

import json
import math
import re
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from shortlist.core.families import FAMILIES, Family
from shortlist.core.sampling import DEFAULT_SAMPLING, SAMPLING_RULES
from shortlist.core.stopping import STOPPING_RULES
from shortlist.core.stopping.base import Verdict
from shortlist.errors import BadInput, BadVotes
from shortlist.study.claims import SENTENCES, CasesClaim
from shortlist.study.events import Configured, fingerprint
from shortlist.study.schema import shown
from shortlist.study.study import Study
from shortlist.votes.formats import read_map
from shortlist.votes.read import read_votes
from shortlist.votes.table import VoteTable

ADVANCED = "Advanced options"
FAR = 1e7  # votes; an estimate beyond it only means that the items are too close
NOT_IN_A_FILE = ("config", "help")
SECRET = re.compile(r"auth|key|secret|password|cookie", re.IGNORECASE)
WITH_NAMES = {"header": ":", "query": "=", "option": "="}  # options of the form NAME: VALUE

K = typer.Option(..., "-k", help="How many items to find.")
DELTA = typer.Option(0.05, help="Allowed probability that the answer is wrong.")
TOLERANCE = typer.Option(
    0.0,
    help="Accept an answer whose members may lose to an outsider by at most this margin in win probability (gaussian: "
    "in the unit of the differences).",
)
MAX_VOTES = typer.Option(None, help="Vote budget. When it is used up, the study ends with the best answer so far.")
JSON = typer.Option(False, "--json", help="Print one JSON object instead of text.")
FAMILY = typer.Option(
    "bradley-terry",
    help=f"What one vote is: {' or '.join(FAMILIES)}. bradley-terry: a win, tie or grade between 0 and 1. "
    "gaussian: a measured difference.",
    rich_help_panel=ADVANCED,
)
SIGMA = typer.Option(
    1.0, help="Gaussian family: standard deviation of a measured difference.", rich_help_panel=ADVANCED
)
SAMPLING = typer.Option(
    DEFAULT_SAMPLING,
    help=f"Sampling rule, which chooses the next pair: {', '.join(SAMPLING_RULES)}.",
    rich_help_panel=ADVANCED,
)
STOPPING = typer.Option(
    None,
    help=f"Stopping rule, which decides when the answer is proved: {', '.join(STOPPING_RULES)}. "
    "Default: cuts; edges for the public, with a tolerance, several judges, measured differences or bridge; glr for "
    "the sampling rules of the paper.",
    rich_help_panel=ADVANCED,
)
FILE_STOPPING = typer.Option(
    "edges", help=f"Stopping rule, which decides what is proved: {', '.join(STOPPING_RULES)}.", rich_help_panel=ADVANCED
)
ITEMS = typer.Argument(
    ...,
    metavar="ITEMS",
    help="Items: a text file with one item per line, a CSV, TSV or JSON Lines file with columns name and content, or a "
    "folder of files.",
)
CASES = typer.Option(
    None,
    help="Cases (such as prompts) on which the items are compared: a .txt, .jsonl or .csv file. Each question draws "
    "one at random.",
)


class Claim(StrEnum):
    """What a proof is about if the items are compared on cases."""

    these = "these"
    like_these = "like-these"

    @property
    def words(self) -> CasesClaim:
        return "these" if self is Claim.these else "like these"


CASES_CLAIM = typer.Option(
    Claim.these,
    help="With cases, prove a result about these cases, or about cases like these. For like-these each case serves one "
    "question, and the study ends when all cases are used.",
)


class JudgesClaim(StrEnum):
    """What a proof is about if judges differ."""

    each = "each"
    public = "public"


JUDGES_CLAIM = typer.Option(
    JudgesClaim.each,
    help=f"What a proof is about. each: {SENTENCES['each']} public: {SENTENCES['public']} The second needs many more "
    "judges, often 100 or more.",
)
BALLOT_SIZE = typer.Option(
    10, min=1, help="With --judges-claim public: how many pairs a judge is asked about at most.",
    rich_help_panel=ADVANCED,
)  # fmt: skip
MIN_JUDGES = typer.Option(
    1,
    min=1,
    help="Every step of a proof rests on at least this many judges, so that no single judge decides. More than 1 needs "
    "the stopping rule edges and no tolerance.",
)
VOTES = typer.Argument(
    ...,
    metavar="VOTES",
    help="Vote file: CSV, TSV, JSON, JSON Lines or Parquet. `shortlist votes FILE` shows how it is parsed.",
)
COLUMNS = (
    "Column names of the vote file, if they are not recognised: first=colA,second=colB,winner=colC. Also outcome, "
    "loser, weight, judge, case, id."
)
MAP = typer.Option(None, "--map", help=COLUMNS)
UNIT = typer.Option(
    None,
    "--unit",
    metavar="NAME",
    help="Which rows share a source of chance and so count as one vote together: case, judge, the name of a column, "
    "two of these joined by a comma, or row. row says that every row drew its case and judge afresh. Default: case if "
    "the file has such a column, else row.",
)
SKIP_BAD = typer.Option(False, "--skip-bad", help="Leave out rows that cannot be read, instead of stopping.")
STORAGE = typer.Option(
    "sqlite:///shortlist.db",
    "--storage",
    envvar="SHORTLIST_STORAGE",
    help="Database with the studies: sqlite:///FILE or postgresql://USER@HOST/DATABASE.",
)


def load_votes(
    path: Path, family: Family, columns: list[str] | None, skip_bad: bool, unit: str | None = None
) -> VoteTable:
    """Read a vote file; rows that are left out are reported on standard error."""
    table = read_votes(path, family, columns=read_map(columns or ()), skip_bad=skip_bad, unit=unit)
    if table.left_out:
        note(f"left out {count_of(len(table.left_out), 'row')} that could not be read")
    return table


def load_single_votes(
    path: Path, family: Family, columns: list[str] | None, skip_bad: bool, reader: str, unit: str | None = None
) -> VoteTable:
    """Read a vote file in which every row is one vote. `reader` is who needs that, for the error message."""
    table = load_votes(path, family, columns, skip_bad, unit)
    if (table.weight != 1).any():
        raise BadVotes(f"{path} has a weight column; {reader} needs one row per vote")
    return table


def note(text: str) -> None:
    """One line on standard error."""
    print(f"shortlist: {text}", file=sys.stderr)


def console() -> Console:
    return Console(highlight=False, markup=False, soft_wrap=True)


def say(text: str, indent: str = "  ", style: str | None = None) -> None:
    """Print a sentence. A terminal gets it wrapped at words, a pipe in one line."""
    out = console()
    width = out.width if out.is_terminal else sys.maxsize
    lines = textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    out.print("\n".join(lines), style=style)


def print_json(value: Mapping[str, object]) -> None:
    """Print one JSON object; infinity and NaN become null."""
    print(json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_verdict(verdict: Verdict[str]) -> None:
    """The verdict, its caveats, its guarantee if something is proved, and what is missing for a proof."""
    say(str(verdict), "", "bold" if verdict.done else None)
    for caveat in verdict.caveats:
        say(f"Caveat: {caveat}")
    if verdict.guarantee:
        say(f"Guarantee: {verdict.guarantee.rstrip('.')}.")
    if not verdict.done:
        say(_missing(verdict))


def _missing(verdict: Verdict[str]) -> str:
    if verdict.threshold is not None and not math.isfinite(verdict.threshold):
        return "Some items are not connected to the others by any votes, so nothing can be proved yet."
    if verdict.votes_left is None:
        return "There are too few votes to estimate how many more are needed."
    if verdict.votes_left >= FAR:
        return "The items at the cutoff are too close to separate. Set a tolerance to accept near ties."
    return "The estimate of votes to go assumes that the next pairs are chosen well."


def print_items(
    verdict: Verdict[str], ratings: Mapping[str, float], votes: Mapping[str, float], chances: Mapping[str, float]
) -> None:
    """One row per item, best first, with a rule at the cutoff. Chances are shown where they are given."""
    out, width = console(), max(len("item"), *map(len, ratings))
    proved = dict.fromkeys(verdict.certainly_in, "in") | dict.fromkeys(verdict.certainly_out, "out")
    gone = {item for item in ratings if not verdict.is_left(item)}
    proved |= dict.fromkeys(gone, "withdrawn")
    out.print(f"\n  {'item':<{width}}   rating    votes   chance  proved", style="dim")
    for place, item in enumerate(sorted(ratings, key=lambda item: (item in gone, -ratings[item]))):
        if place == len(verdict.top):
            out.print("  " + "-" * (width + 36))
        figures = f"{ratings[item]:+7.2f}  {votes[item]:>7,.0f}  {chances[item]:>7.1%}"
        row = f"  {item:<{width}}  {figures}  {proved.get(item, '')}".rstrip()
        out.print(row, style="green" if item in verdict.top else None)
    say("rating: 0 is the average item. chance: estimated probability of being in the top, not a proof.", style="dim")


def exit_with(verdict: Verdict[str]) -> None:
    """End with the exit code of a search: 0 if the answer is proved, 3 if not."""
    if verdict.reason != "certified":
        raise typer.Exit(3)


def count_of(number: int, word: str) -> str:
    """`1 vote`, `2 votes`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on standard error, for steps that may take seconds."""
    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield
        return
    with screen.status(f"{what} …"):
        yield


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on standard error; yields a function that takes the number finished."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    screen = Console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task(title, total=total)

        def show(finished: int) -> None:
            bar.update(task, completed=finished)

        yield show


def take_config(context: typer.Context, path: Path | None) -> Path | None:
    """Let the options that are not given on the command line have the values of the file."""
    if path is not None and not context.resilient_parsing:
        context.default_map = {**(context.default_map or {}), **_options(path, context.command.params)}
    return path


CONFIG = typer.Option(
    None,
    metavar="FILE",
    is_eager=True,
    callback=take_config,
    help="TOML file with options by their names, such as shortlist.toml. An option given here wins over the file.",
)


def record_config(study: Study, path: Path | None) -> str | None:
    """Keep the digest of the file with the study. Returns a note if an earlier run had another file."""
    if path is None:
        return None
    digest, earlier = fingerprint(path.read_text(encoding="utf-8")), study.setups.configs
    if earlier[-1:] == (digest,):
        return None
    study.record([Configured(digest)])
    return f"{path} is not what the last run with a file had; both digests are kept" if earlier else None


def _options(path: Path, params: list[Any]) -> dict[str, Any]:
    by_name = {name: param for param in params for name in _names(param) if name not in NOT_IN_A_FILE}
    found: dict[str, Any] = {}
    for name, value in _pairs(_read(path), path):
        plain = name.replace("_", "-")
        if plain not in by_name:
            raise BadInput(f"{path}: there is no option {name!r}; {_hint(plain, list(by_name))}")
        param = by_name[plain]
        if param.name in found:
            raise BadInput(f"{path}: {name!r} is given twice")
        found[param.name] = _value(path, plain, value, param)
    return found


def _names(param: Any) -> list[str]:
    """How an option, or the argument, is called in a file."""
    return [option.lstrip("-").replace("_", "-") for option in param.opts]


def _read(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as reason:
        raise BadInput(f"cannot read {path}: {reason.strerror}") from None
    except ValueError as reason:
        raise BadInput(f"{path} is not TOML: {reason}") from None


def _pairs(values: Mapping[str, Any], path: Path) -> list[tuple[str, Any]]:
    """Names and values. Tables only group them."""
    found: list[tuple[str, Any]] = []
    for name, value in values.items():
        found += value.items() if isinstance(value, dict) else [(name, value)]
    if nested := [name for name, value in found if isinstance(value, dict)]:
        raise BadInput(f"{path}: {nested[0]!r} is a table inside a table; write options in tables of one level")
    return found


def _hint(name: str, known: list[str]) -> str:
    if SECRET.search(name):
        return "a key does not belong in a file; name its environment variable with key-variable"
    close = get_close_matches(name, known, 1)
    return f"did you mean {close[0]!r}?" if close else "names are those of `shortlist run --help`, without the dashes"


def _value(path: Path, name: str, value: Any, param: Any) -> Any:
    is_list, is_switch = getattr(param, "multiple", False) or param.nargs == -1, getattr(param, "is_flag", False)
    parts = value if isinstance(value, list) else [value]
    if any(not isinstance(part, str | int | float) or isinstance(part, bool) != is_switch for part in parts):
        raise BadInput(f"{path}: {name} = {value!r} is not {'true or false' if is_switch else 'a text or a number'}")
    if isinstance(value, list) and not is_list:
        raise BadInput(f"{path}: {name} has one value, not a list")
    for part in map(str, parts):
        _refuse_secrets(path, name, part)
    return [str(part) for part in parts] if is_list else value if is_switch else str(value)


def _refuse_secrets(path: Path, name: str, value: str) -> None:
    title, sign, rest = value.partition(WITH_NAMES.get(name, "\0"))
    is_secret = sign and SECRET.search(title) and not rest.strip().startswith("$")
    if is_secret or (name == "storage" and shown(value) != value):
        raise BadInput(
            f"{path}: {name} has a secret, which does not belong in a file; give it on the command line, or use an "
            "environment variable (key-variable, or $NAME as the value of a header)"
        )
