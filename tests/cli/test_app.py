"""What holds for every command: help, JSON, exit codes, quick start."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import shortlist.cli
from shortlist import create_study
from shortlist.cli.app import COMMANDS, app, load
from shortlist.study.maintenance import back_up
from tests.cli.terminal import Terminal

WITHOUT_JSON = {"judge": "a person at a terminal", "serve": "runs until it is stopped"}


def commands():
    """Every command that is not a group, with the words that call it."""

    def walk(command, path):
        if not hasattr(command, "list_commands"):
            yield " ".join(path), command
            return
        context = typer.Context(command)
        for name in command.list_commands(context):
            yield from walk(command.get_command(context, name), (*path, name))

    return dict(walk(typer.main.get_command(app), ()))


def test_help_lists_every_command_with_the_first_line_of_its_own_help(shortlist):
    listed = " ".join(shortlist("--help").out.replace("│", " ").split())
    for name, entry in COMMANDS.items():
        assert f"{name} {entry.help}" in listed
        assert load(name).help.splitlines()[0] == entry.help


def test_help_of_every_command_explains_every_option(shortlist):
    assert {name.split()[0] for name in commands()} == set(COMMANDS)
    for name, command in commands().items():
        assert f"Usage: shortlist {name}" in shortlist(*name.split(), "--help").out
        assert all(getattr(parameter, "help", None) for parameter in command.params), name


def test_every_command_can_print_json():
    without = {name for name, command in commands().items() if not any("--json" in p.opts for p in command.params)}
    assert without == set(WITHOUT_JSON)


def test_the_list_of_commands_needs_no_numerics():
    code = "import sys\nfrom shortlist.cli.app import main\nsys.argv = ['shortlist', '--help']\n"
    code += "try: main()\nexcept SystemExit: print(sorted({'numpy', 'scipy', 'sqlalchemy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


def test_imports_are_at_the_top():
    for file in Path(shortlist.cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef):
                assert not any(isinstance(inner, ast.Import | ast.ImportFrom) for inner in ast.walk(node)), file.name


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "shortlist", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("shortlist ")


def test_ctrl_c_ends_at_once_and_says_so(tmp_path):
    world = ["--instance", "equally-spaced", "-n", 4, "-k", 1, "--gap", 1]
    with Terminal(tmp_path, "simulate", *world, "--runs", 5000, "--jobs", 2) as terminal:
        terminal.wait_for(r"[1-9]\d*/5000")  # the processes are at work
        terminal.press(b"\x03")
        screen, code = terminal.finish()
    assert code == 130
    assert "shortlist: interrupted. To run it again: shortlist simulate --instance" in screen.splitlines()[-1]
    assert "Traceback" not in screen
    assert "5000/5000" not in screen


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("frobnicate", "No such command 'frobnicate'. See: shortlist --help"),
        ("demoo", "Did you mean 'demo'"),
        ("oracle -k 1", "Missing option '--utilities'. See: shortlist oracle --help"),
        ("simulate --instance sst -n four -k 1", "Invalid value for '-n': Input should be a valid integer"),
        ("simulate --instance sst -n 4 -k 1 --jobs 0", "jobs"),
        ("demo --delta 0", "delta"),
        ("serve --log-level loud", "choose one of debug, info, warning, error"),
        ("serve --workers 2", "use --workers 1, or a postgresql:// storage"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_two(shortlist, arguments, message):
    assert message in shortlist.refused(*arguments.split())


AWAY = "postgresql://ann:secret@127.0.0.1:1/studies"
NEEDS_STORAGE = {
    "run": "items.txt -k 1 --judge cat", "judge": "fruit", "serve": "--port 18765",
    "create": "items.txt -k 1 --name fruit",
    "set": "fruit --max-votes 9", "audit": "fruit", "status": "fruit", "ask": "fruit", "tell": "fruit 0 first",
    "import": "fruit votes.csv", "export": "fruit out.csv", "report": "fruit", "read": "fruit", "archive": "fruit",
    "unarchive": "fruit", "delete": "fruit --yes", "storage list": "", "storage rename": "fruit plums",
}  # fmt: skip
TAKES_URL = {
    "storage check": AWAY, "storage repair": f"{AWAY} sqlite:///x.db fruit", "storage copy": f"{AWAY} sqlite:///x.db",
    "storage upgrade": AWAY, "storage restore": f"{Path('b.db')} --storage {AWAY}",
}  # fmt: skip
REFUSES = {"storage backup"}  # PostgreSQL has pg_dump for that


def test_a_storage_that_does_not_respond_is_exit_code_four_and_the_command_to_resume(shortlist):
    """All commands that need a storage. Nothing listens there."""
    found = {name for name, command in commands().items() if any("--storage" in p.opts for p in command.params)}
    assert found | set(TAKES_URL) == set(NEEDS_STORAGE) | set(TAKES_URL) | REFUSES
    (shortlist.folder / "items.txt").write_text("a\nb\n")
    (shortlist.folder / "votes.csv").write_text("first,second,winner\na,b,a\n")
    create_study(["a", "b"], k=1, storage="sqlite:///full.db", name="fruit")
    back_up("sqlite:///full.db", Path("b.db"))
    for name, arguments in (NEEDS_STORAGE | TAKES_URL).items():
        words = [*name.split(), *arguments.split(), *(["--storage", AWAY] if name in NEEDS_STORAGE else [])]
        done = shortlist(*words, code=4)
        last = done.err.splitlines()[-1]
        assert last.startswith("shortlist: "), (name, last)
        assert f"To resume, run: shortlist {name}" in last
        assert "secret" not in done.err


def test_every_command_refuses_an_unknown_option_with_exit_code_two(shortlist):
    for name in commands():
        assert "No such option" in shortlist.refused(*name.split(), "--no-such-option")


def test_files_that_cannot_be_written_are_one_line(shortlist):
    study = create_study(["a", "b"], k=1, storage="sqlite:///shortlist.db", name="fruit")
    for _ in range(3):
        study.tell(study.ask(), 1.0)
    (shortlist.folder / "items.txt").write_text("a\nb\n")
    for words in (
        "export fruit no/where.csv", "export fruit --proof no/where.jsonl", "report fruit --out no/where.html",
        "storage backup no/where.db", "create items.txt -k 1 --name x --storage sqlite:///no/where.db",
    ):  # fmt: skip
        assert "Traceback" not in shortlist.refused(*words.split())


def test_an_answer_of_no_deletes_nothing(shortlist, monkeypatch):
    create_study(["a", "b"], k=1, storage="sqlite:///shortlist.db", name="fruit")
    monkeypatch.setattr("typer.confirm", lambda _: False)
    shortlist("delete", "fruit", code=130)
    assert shortlist.json("storage", "list")["studies"] == ["fruit"]


def test_a_command_whose_packages_are_missing_says_how_to_get_them(shortlist, monkeypatch):
    monkeypatch.setattr("shortlist.cli.app.find_spec", lambda name: None)
    assert "needs fastapi and uvicorn: pip install 'shortlist[web]'" in shortlist.refused("serve")
