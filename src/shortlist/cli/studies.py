"""Commands on a stored study: create, status, ask, tell, import, export, storage upgrade."""

import math
from pathlib import Path
from typing import Any

import typer

from shortlist.cli.options import (
    DELTA,
    FAMILY,
    JSON,
    MAP,
    METHOD,
    RULE,
    SIGMA,
    SKIP_BAD,
    STORAGE,
    TOLERANCE,
    VOTES,
    FamilyName,
)
from shortlist.cli.output import console, print_json
from shortlist.cli.votes import load_votes, note_order
from shortlist.errors import BadProblem, BadVotes, StudyDiffers, StudyExists

NAME = typer.Argument(..., help="The study's name.")


def create(
    items: Path = typer.Argument(..., help="Text file with an item a line; CSV, TSV or JSON lines; or a folder."),
    name: str = typer.Option(..., help="What to find the study by."),
    k: int = typer.Option(..., "-k", help="How many items are wanted."),
    delta: float = DELTA,
    tolerance: float = TOLERANCE,
    max_votes: int = typer.Option(None, help="End with the best answer so far after that many votes."),
    method: str = METHOD,
    rule: str = RULE,
    family: FamilyName = FAMILY,
    sigma: float = SIGMA,
    seed: int = typer.Option(0, help="Of sides and of what is drawn."),
    storage: str = STORAGE,
    as_json: bool = JSON,
) -> None:
    """Create a study, to be asked and told."""
    from shortlist.judges.items import read_items

    study = new_study(
        read_items(items).names, k, delta, storage=storage, name=name, tolerance=tolerance, max_votes=max_votes,
        method=method, rule=rule, family=family.value, sigma=sigma, seed=seed,
    )  # fmt: skip
    show_study(study, as_json)


def new_study(*arguments: Any, **options: Any) -> Any:
    """`create_study`, with words for the command line where the name is taken."""
    from shortlist.study.create import create_study

    try:
        return create_study(*arguments, **options)
    except StudyExists as taken:
        raise BadProblem(f"there is a study called {taken.name!r} already; choose another --name") from None
    except StudyDiffers as other:
        raise BadProblem(
            f"there is a study called {other.name!r} already, and {'; '.join(other.differences)}; "
            "give the same items and options to go on with it, or another --name"
        ) from None


def status(name: str = NAME, storage: str = STORAGE, as_json: bool = JSON) -> None:
    """Where a study stands: the verdict, its guarantee, who is in, out and undecided."""
    show_study(_load(name, storage), as_json)


def ask(
    name: str = NAME,
    judge: str = typer.Option(None, help="Who is asked."),
    count: int = typer.Option(1, min=1, help="How many questions to have out at once."),
    lease: float = typer.Option(None, help="Seconds after which an unanswered question is given up."),
    storage: str = STORAGE,
    as_json: bool = JSON,
) -> None:
    """The next questions to put to a judge."""
    questions = _load(name, storage).ask(count, judge=judge, lease=lease)
    if as_json:
        return print_json(
            {"questions": [{key: getattr(q, key) for key in ("id", "first", "second")} for q in questions]}
        )
    for question in questions:
        console().print(f"question {question.id}: {question.first} or {question.second}?")


def tell(
    name: str = NAME,
    question: int = typer.Argument(..., help="The number that `ask` gave."),
    answer: str = typer.Argument(
        ..., help="first, second, tie, skip, an item's name, or a number from the first's side."
    ),
    storage: str = STORAGE,
    as_json: bool = JSON,
) -> None:
    """Answer a question."""
    study = _load(name, storage)
    tell_answer(study, question, answer)
    show_study(study, as_json)


def tell_answer(study: Any, question: int, answer: str) -> None:
    """An item's name comes before the words for sides, should an item be called `first`."""
    if answer in study.items:
        study.tell(question, winner=answer)
    elif answer == "skip":
        study.skip(question)
    elif answer in ("first", "second"):
        study.tell(question, winner=getattr(study.question(question), answer))
    else:
        study.tell(question, "tie" if answer == "tie" else _number(answer))


def _number(answer: str) -> float:
    try:
        return float(answer)
    except ValueError:
        raise BadProblem(f"{answer!r} is no answer; say first, second, tie, skip, an item's name or a number") from None


def import_votes(
    name: str = NAME,
    votes: Path = VOTES,
    columns: list[str] = MAP,
    skip_bad: bool = SKIP_BAD,
    storage: str = STORAGE,
    as_json: bool = JSON,
) -> None:
    """Count votes from a file in a study. For each pair they must be complete, not picked by outcome, and in the order
    in which they were cast, not sorted."""
    study = _load(name, storage)
    table = load_votes(votes, study.problem.family, columns, skip_bad)
    if (table.weight != 1).any():
        raise BadVotes(f"{votes} counts votes in a weight column; a study takes single votes")
    note_order(votes, table, study.problem.family)
    first, second = ([table.items[i] for i in side.tolist()] for side in (table.first, table.second))
    study.import_votes(first, second, table.outcome.tolist(), table.judge or (), votes.name)
    show_study(study, as_json)


def export(
    name: str = NAME,
    votes: Path = typer.Argument(..., help="File to write: .csv, .tsv, .jsonl, .json or .parquet."),
    storage: str = STORAGE,
    as_json: bool = JSON,
) -> None:
    """Write all votes that were not taken back to a file, in the order they were given."""
    from shortlist.io.table import make_table
    from shortlist.io.write import write_votes

    study = _load(name, storage)
    rows = study.votes
    if not rows:
        raise BadVotes(f"the study {name!r} has no votes yet")
    first, second, outcome, judge = zip(*rows, strict=True)
    write_votes(votes, make_table(first, second, outcome, judge=judge))
    if as_json:
        return print_json({"votes": len(rows), "taken_back": study.n_taken_back, "file": str(votes)})
    console().print(f"{len(rows):,} votes written to {votes}")
    if study.n_taken_back:
        console().print(
            f"Not in it: {study.n_taken_back:,} taken back. What certify says of the file is proved only if that was "
            "not done for how they came out."
        )


storage_app = typer.Typer(no_args_is_help=True, help="Look after a storage.")


@storage_app.command()
def upgrade(
    url: str = typer.Argument(..., help="sqlite:///FILE or postgresql://USER@HOST/DATABASE."), as_json: bool = JSON
) -> None:
    """Bring a database's tables to this version."""
    from shortlist.study.sql import upgrade_storage

    before, after = upgrade_storage(url)
    if as_json:
        return print_json({"before": before, "after": after})
    console().print(f"schema {before or 'none'} -> {after}")


@storage_app.command("list")
def list_studies(storage: str = STORAGE, as_json: bool = JSON) -> None:
    """The studies of a storage."""
    from shortlist.study.create import open_storage

    names = open_storage(storage, create=False).names()
    print_json({"studies": names}) if as_json else console().print("\n".join(names) or "no studies yet")


def _load(name: str, storage: str) -> Any:
    from shortlist.study.create import load_study

    return load_study(name, storage)


def show_study(study: Any, as_json: bool) -> None:
    """Where a study stands."""
    verdict, utilities, chances = study.examine(), study.utilities, study.chances()
    if as_json:
        state = {"name": study.name, "paused": study.paused, "out": len(study.out), "advice": study.advice}
        return print_json({**vars(verdict), **state, "utilities": utilities, "chances": chances})
    out = console()
    out.print(str(verdict))
    out.print(f"  Guarantee: {verdict.guarantee}.")
    if not verdict.done and verdict.votes_left is not None and math.isfinite(verdict.votes_left):
        out.print(f"  About {verdict.votes_left:,.0f} more votes. Questions that are out: {len(study.out)}.")
    if study.advice:
        out.print(f"  {study.advice[0].upper()}{study.advice[1:]}.")
    marks = dict.fromkeys(verdict.certainly_in, "in") | dict.fromkeys(verdict.certainly_out, "out")
    width = max(len("item"), *map(len, study.items))
    out.print(f"\n  {'item':<{width}}  utility   chance  certainly")
    for place, item in enumerate(sorted(study.items, key=lambda item: -utilities[item])):
        if place == len(verdict.top):
            out.print("  " + "-" * (width + 28))
        out.print(f"  {item:<{width}}  {utilities[item]:+7.2f}  {chances[item]:>7.1%}  {marks.get(item, '')}".rstrip())
