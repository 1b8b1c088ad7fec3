"""The `shortlist` command and its ways to fail: exit code 2 and one line."""

import sys

import typer

from shortlist import __version__
from shortlist.cli import commands, experiment, studies
from shortlist.cli.demo import demo
from shortlist.cli.judge import judge
from shortlist.cli.report import report
from shortlist.cli.run import run
from shortlist.cli.serve import serve
from shortlist.cli.votes import votes
from shortlist.errors import ShortlistError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command()(run)
app.command()(judge)
app.command()(commands.certify)
app.command()(commands.oracle)
app.command()(commands.simulate)
app.command()(commands.replay)
app.add_typer(experiment.app, name="experiment")
app.command()(votes)
app.command()(studies.create)
app.command()(studies.status)
app.command()(studies.ask)
app.command()(studies.tell)
app.command("import")(studies.import_votes)
app.command()(studies.export)
app.command()(report)
app.command()(serve)
app.add_typer(studies.storage_app, name="storage")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"shortlist {__version__}")
        raise typer.Exit


@app.callback()
def shortlist(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """The best k of n items from as few noisy pairwise comparisons as possible, and how sure that is."""


def main() -> None:
    """Run the command; whatever is wrong with the input ends in one line on standard error."""
    try:
        code = app(standalone_mode=False)
    except ShortlistError as error:
        _fail(str(error), 2)
    except typer.Abort:
        _fail("interrupted", 130)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except BrokenPipeError:
        sys.exit(1)
    except Exception as error:
        message = getattr(error, "format_message", None)  # what typer raises for a wrong call
        if message is None:
            raise
        said = message().replace("\n", " ").strip()
        _fail(said, 2) if said else sys.exit(2)  # without a command, help was printed
    if code == 130:  # typer answers Ctrl-C itself, silently
        _fail("interrupted", 130)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> None:
    print(f"shortlist: {message}", file=sys.stderr)
    sys.exit(code)
