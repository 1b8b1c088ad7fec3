"""The `shortlist` command: a table of commands that are imported when they are used, and how they fail."""

import re
import shlex
import signal
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from shortlist import __version__
from shortlist.errors import NotInstalled, ShortlistError

PASSWORD = re.compile(r"(://[^/\s:@]*:)[^@\s]*@")
RESUME = "To resume, run: "
UNAVAILABLE = 4  # the exit code if the same command may work later
FIND, STUDY, FILES, SIMULATE = "Find the best items", "Work with a study", "Work with vote files", "Simulate"


class Entry(NamedTuple):
    """A command: `target` is `module:name` inside this package, `help` the first line of its docstring."""

    target: str
    panel: str
    help: str


COMMANDS = {
    "demo": Entry("report:demo", FIND, "Find the best 3 of 12 prompts with simulated judges, and write a report."),
    "run": Entry("run:run", FIND, "Find the best k items with a program, a language model or recorded votes as judge."),
    "outputs": Entry("outputs:outputs", FIND, "Show how files of outputs are read."),
    "read": Entry("report:read", STUDY, "Read what judges said."),
    "judge": Entry("run:judge", FIND, "Judge pairs in the terminal."),
    "serve": Entry("serve:serve", FIND, "Start the web service, where people judge pairs in their browsers."),
    "create": Entry("studies:create", STUDY, "Create a study."),
    "set": Entry(
        "studies:set_limits",
        STUDY,
        "Change the vote budget, delta or the number of judges of a study, or withdraw an item.",
    ),
    "audit": Entry("audit:audit_command", STUDY, "Compare a judge with people."),
    "status": Entry("studies:status", STUDY, "Show the current result of a study."),
    "ask": Entry("studies:ask", STUDY, "Get the next questions to put to a judge."),
    "tell": Entry("studies:tell", STUDY, "Answer a question."),
    "import": Entry("studies:import_votes", STUDY, "Add votes from a file to a study."),
    "export": Entry("studies:export", STUDY, "Write the votes of a study, or its proof, to a file."),
    "verify": Entry("studies:verify", STUDY, "Check a proof."),
    "report": Entry("report:report", STUDY, "Write an HTML report on a study or on a vote file."),
    "archive": Entry("storage:archive", STUDY, "Make a study read-only, and list it apart from the others."),
    "unarchive": Entry("storage:unarchive", STUDY, "Take a study out of the archive."),
    "delete": Entry("storage:delete", STUDY, "Delete a study with all its votes."),
    "storage": Entry("storage:storage", STUDY, "List, check, copy, back up and restore the studies of a storage."),
    "certify": Entry("compute:certify", FILES, "Show what a vote file proves about the top k."),
    "votes": Entry("compute:votes", FILES, "Show how a vote file is parsed."),
    "replay": Entry("compute:replay", FILES, "Estimate how many votes a method would have needed on a vote file."),
    "simulate": Entry("compute:simulate", SIMULATE, "Run a method on simulated items and count its comparisons."),
    "oracle": Entry("compute:oracle", SIMULATE, "Compute the fewest comparisons any method needs, and where they go."),
}
WEB = ("fastapi", "uvicorn")


class LazyGroup(TyperGroup):
    """A group that imports a command when it is called, so that `shortlist --help` is quick."""

    def get_command(self, ctx: object, cmd_name: str) -> TyperCommand | TyperGroup | None:
        return load(cmd_name) if cmd_name in COMMANDS else None

    def format_help(self, ctx: object, formatter: object) -> None:
        listed = TyperGroup(
            name=self.name,
            commands=dict(self.commands),
            params=self.params,
            help=self.help,
            rich_markup_mode=self.rich_markup_mode,
        )
        listed.format_help(ctx, formatter)  # type: ignore[arg-type]  # typer does not export these types


def load(name: str) -> TyperCommand | TyperGroup:
    """Import a command. Raises NotInstalled if it needs an extra that is missing."""
    if name == "serve" and any(find_spec(package) is None for package in WEB):
        raise NotInstalled("the web service", " and ".join(WEB), "web")
    module, _, target = COMMANDS[name].target.partition(":")
    found = getattr(import_module(f"shortlist.cli.{module}"), target)
    if not isinstance(found, typer.Typer):
        function, found = found, typer.Typer(add_completion=False, rich_markup_mode="markdown")
        found.command(name)(function)
    command = typer.main.get_command(found)
    assert isinstance(command, TyperCommand | TyperGroup)
    return command


app = typer.Typer(
    cls=LazyGroup,
    rich_markup_mode="markdown",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, _entry in COMMANDS.items():
    app.command(_name, help=_entry.help, rich_help_panel=_entry.panel)(lambda: None)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"shortlist {__version__}")
        raise typer.Exit


@app.callback()
def shortlist(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    """Find the best k of n items from as few pairwise comparisons as possible, with a bound on the error.

    Start with `shortlist demo`. Every command explains its options with --help.
    """


def main() -> None:
    """Run the command. What goes wrong is one line on standard error, and the exit code says which kind it is."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # `timeout`, systemd and containers end a command with it
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = app(prog_name="shortlist", standalone_mode=False)
    except ShortlistError as error:
        _fail(_with_resume(error), error.exit_code)
    except typer.Abort:
        _fail("interrupted", 130)
    except KeyboardInterrupt:
        _interrupted()
    except BrokenPipeError:
        sys.exit(1)
    except Exception as error:
        if not hasattr(error, "format_message"):  # only typer's errors about the call have it
            raise
        _wrong_call(error.format_message(), getattr(error, "ctx", None))
    if code == 130:  # typer turns Ctrl-C into this code and prints nothing
        _interrupted()
    sys.exit(code if isinstance(code, int) else 0)


def this_command() -> str:
    """The command that runs, to be run again. A password in a URL is not printed."""
    return shlex.join(["shortlist", *(PASSWORD.sub(r"\1***@", word) for word in sys.argv[1:])])


def _with_resume(error: ShortlistError) -> str:
    """What is wrong and, if the same command may work later, that command."""
    if error.exit_code != UNAVAILABLE or RESUME in str(error):
        return str(error)
    return f"{str(error).rstrip('.')}. {RESUME}{this_command()}"


def _wrong_call(message: str, context: typer.Context | None) -> NoReturn:
    said = " ".join(message.split())
    if not said:  # called without a command: the help is printed already
        sys.exit(2)
    _fail(said if context is None else f"{said.rstrip('.')}. See: {context.command_path} --help", 2)


def _interrupted() -> NoReturn:
    _fail(f"interrupted. To run it again: {this_command()}", 130)


def _fail(message: str, code: int) -> NoReturn:
    print(f"shortlist: {message}", file=sys.stderr)
    sys.exit(code)
