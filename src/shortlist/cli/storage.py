"""Commands on a storage: list, check, repair, copy, back up, restore, rename, upgrade; archive or delete a study."""

import re
from glob import escape
from pathlib import Path

import typer

from shortlist.cli.options import JSON, STORAGE, console, print_json, working
from shortlist.cli.studies import NAME
from shortlist.errors import BadInput, BadStorage
from shortlist.study import maintenance
from shortlist.study.create import check_name, load_study
from shortlist.study.events import Head
from shortlist.study.maintenance import StudyCheck
from shortlist.study.schema import shown
from shortlist.study.sql import Database, open_database, upgrade_storage

HEAD = re.compile(r"(\d{1,18}):([0-9a-f]{8,64})")
URL = typer.Argument(..., metavar="URL", help="sqlite:///FILE or postgresql://USER@HOST/DATABASE.")
TARGET = typer.Argument(..., metavar="TO", help="Storage to copy to; made if it does not exist.")
storage = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="List, check, copy, back up and restore the studies of a storage.",
)


@storage.command("list")
def list_studies(storage: str = STORAGE, as_json: bool = JSON) -> None:
    """List the studies of a storage."""
    database = open_database(storage, create=False)
    archived = database.archived()
    names = [name for name in database.names() if name not in archived]
    if as_json:
        return print_json({"studies": names, "archived": archived})
    console().print("\n".join(names) or "no studies yet")
    if archived:
        console().print("\narchived:\n" + "\n".join(archived))


@storage.command()
def check(
    url: str = URL,
    name: str | None = typer.Argument(None, metavar="NAME", help="One study. Default: all of them."),
    head: str | None = typer.Option(
        None,
        metavar="NUMBER:HASH",
        help="With NAME: a head that an earlier check, `status` or a proof has shown. Only with it can be seen that "
        "the last events were removed.",
    ),
    as_json: bool = JSON,
) -> None:
    """Check that the events of studies are complete and unchanged, and that they can be applied.

    Of a SQLite storage the whole file is checked too. Exit code 2 if anything is damaged.
    """
    database, known = open_database(url, create=False), None if head is None else _head(head, name)
    with working("Checking the file"):
        tables = maintenance.check_tables(database)
    found = [_checked(database, one, known) for one in ([name] if name else database.names())]
    if as_json:
        print_json({"studies": [one._asdict() for one in found], "problem": tables})
    else:
        for one in found:
            console().print(_in_words(one), soft_wrap=True)
        if tables:
            console().print(f"{shown(url)}: {tables}", soft_wrap=True)
    if tables or any(one.problem for one in found):
        raise typer.Exit(2)


def _head(text: str, name: str | None) -> Head:
    """A head as it is printed: a number, and at least the first eight digits of a hash."""
    parts = HEAD.fullmatch(text)
    if parts is None or name is None:
        raise BadInput("--head needs a NAME, and looks like 120:59bc2a4214bd1d8e; `shortlist storage check` prints it")
    return Head(int(parts[1]), parts[2])


def _checked(database: Database, name: str, head: Head | None = None) -> StudyCheck:
    with working(f"Checking {name}"):
        return maintenance.check_study(database, name, head)


def _in_words(found: StudyCheck) -> str:
    if not found.problem:
        return f"{found.name}: all {found.events:,} events are in order; head {found.events}:{found.hash[:16]}"
    return (
        f"{found.name}: {found.problem}. {found.good:,} of {found.events:,} events are in order. To save those in "
        f"another storage, run: shortlist storage repair FROM TO {found.name}"
    )


@storage.command()
def repair(url: str = URL, target: str = TARGET, name: str = NAME, as_json: bool = JSON) -> None:
    """Copy a damaged study up to its last good event. The original stays as it is."""
    source = open_database(url, create=False)
    found = _checked(source, name)
    if not found.problem:
        raise BadInput(f"study {name!r} is not damaged; to copy it, use: shortlist storage copy")
    if not found.good:
        raise BadInput(f"nothing of study {name!r} can be saved: {found.problem}. Restore a backup")
    place = _other(url, target)
    with working(f"Copying {name}"):
        maintenance.copy_study(source, place, name, found.good)
    lost = found.events - found.good
    if as_json:
        return print_json({"study": name, "copied": found.good, "lost": lost, "problem": found.problem})
    console().print(
        f"Copied {found.good:,} events of {name} to {shown(target)}; {lost:,} events after them are missing."
    )


@storage.command()
def copy(
    url: str = URL,
    target: str = TARGET,
    names: list[str] | None = typer.Argument(None, metavar="[NAME]...", help="Studies. Default: all of them."),
    new: str | None = typer.Option(
        None, "--as", metavar="NEW", help="With one NAME: what the copy is called. FROM and TO may be the same then."
    ),
    as_json: bool = JSON,
) -> None:
    """Copy studies to another storage: all of them or, if anything is wrong, none.

    Events and their hashes stay the same.
    """
    if new is not None and len(names or ()) != 1:
        raise BadInput("--as needs exactly one NAME")
    source = open_database(url, create=False)
    place = _other(url, target) if new is None else open_database(target)
    with working("Copying"):
        if new is not None and names:
            copied = {new: maintenance.copy_study(source, place, names[0], new=check_name(new))}
        else:
            copied = maintenance.copy_studies(source, place, names or source.names())
    if as_json:
        return print_json({"copied": copied})
    for name, events in copied.items():
        console().print(f"Copied {name}: {events:,} events.")


def _other(url: str, target: str) -> Database:
    if url == target:
        raise BadInput("the source and the target are the same storage; give another one")
    return open_database(target)


@storage.command()
def backup(
    file: Path = typer.Argument(..., metavar="FILE", help="File to write."),
    storage: str = STORAGE,
    as_json: bool = JSON,
) -> None:
    """Write a copy of a SQLite storage to a file, while judges vote. For PostgreSQL use pg_dump."""
    with working("Writing the backup"):
        maintenance.back_up(storage, file)
    if as_json:
        return print_json({"backup": str(file)})
    console().print(f"Backup written to {file}.")


@storage.command()
def restore(
    file: Path = typer.Argument(..., metavar="FILE", help="A file that `shortlist storage backup` wrote."),
    storage: str = STORAGE,
    as_json: bool = JSON,
) -> None:
    """Copy all studies of a backup into an empty storage, after checking that the backup is not damaged."""
    if not file.exists():
        raise BadStorage(f"there is no file {file}")
    with working("Checking and copying the backup"):
        names = maintenance.restore(file, storage)
    if as_json:
        return print_json({"restored": names})
    console().print(f"Restored {len(names)} {'study' if len(names) == 1 else 'studies'} to {shown(storage)}.")


@storage.command()
def rename(
    name: str = NAME,
    new: str = typer.Argument(..., metavar="NEW", help="The new name."),
    storage: str = STORAGE,
    as_json: bool = JSON,
) -> None:
    """Give a study another name."""
    if waiting := files_of(name, "unsaved-*"):
        raise BadInput(
            f"paid answers of {name} wait in {waiting[0]} for the next run; run the study first, or delete the file"
        )
    maintenance.rename_study(open_database(storage, create=False), name, check_name(new))
    if as_json:
        return print_json({"before": name, "after": new})
    console().print(f"{name} is now called {new}.")
    if kept := files_of(name, "audit"):
        console().print(f"{kept[0]} keeps its name; `shortlist audit {new} --file {kept[0]}` reads it.")


@storage.command()
def upgrade(url: str = URL, as_json: bool = JSON) -> None:
    """Upgrade the tables of a database to this version of shortlist."""
    before, after = upgrade_storage(url)
    if as_json:
        return print_json({"before": before, "after": after})
    console().print(f"schema {before or 'none'} -> {after}")


def archive(name: str = NAME, storage: str = STORAGE, as_json: bool = JSON) -> None:
    """Make a study read-only, and list it apart from the others.

    Nothing can be added until `shortlist unarchive`. Reports, exports and proofs still work.
    """
    _set_archived(name, storage, True, as_json)


def unarchive(name: str = NAME, storage: str = STORAGE, as_json: bool = JSON) -> None:
    """Take a study out of the archive."""
    _set_archived(name, storage, False, as_json)


def _set_archived(name: str, storage: str, archived: bool, as_json: bool) -> None:
    load_study(name, storage).archive(archived)
    if as_json:
        return print_json({"study": name, "archived": archived})
    console().print(f"{name} is archived: it can only be read." if archived else f"{name} is open again.")


def delete(
    name: str = NAME,
    storage: str = STORAGE,
    yes: bool = typer.Option(False, "--yes", help="Do not ask first."),
    as_json: bool = JSON,
) -> None:
    """Delete a study with all its votes.

    This cannot be undone.
    """
    database = open_database(storage, create=False)
    database.spec(name)
    if not yes and not typer.confirm(f"Delete {name} with all its votes? This cannot be undone."):
        raise typer.Abort
    maintenance.delete_study(database, name)
    kept = [str(file) for file in (*files_of(name, "audit"), *files_of(name, "unsaved-*"))]
    if as_json:
        return print_json({"deleted": name, "files": kept})
    console().print(f"Deleted {name}.")
    if kept:
        console().print(f"Answers in files of this folder are still there: {', '.join(kept)}")


def files_of(name: str, kind: str) -> list[Path]:
    """Files in the current folder that belong to a study."""
    return sorted(Path().glob(f"{escape(name)}.{kind}.jsonl"))
