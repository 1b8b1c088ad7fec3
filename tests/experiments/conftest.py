"""Shared by the tests of experiments: a sweep of a second, and the command as users call it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments import __main__ as command
from tests.patience import PATIENCE, wait_until

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "experiments"]
# The command is called in other folders, and finds the experiments all the same.
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
TINY = """
title = "Tiny"
id = ["instance", "n", "method"]

[figure]
kind = "lines"
x = "n"
across = "instance"

[all]
k = 1
delta = 0.2
growth = 0.05
alpha = 0.2
seed = 7
runs = 3
seconds = 0.1

[[grid]]
instance = "equally-spaced"
gap = 1.5
n = [3, 4]
method = ["bridge", "oracle-tracking", "lower-bound"]

[[grid]]
instance = "random-utilities"
n = 3
method = ["bridge", "lower-bound"]

[[except]]
where = { method = "lower-bound", instance = "equally-spaced" }
runs = 1
"""


@pytest.fixture
def tiny(tmp_path):
    """A sweep of eight cells and 20 runs, as a file."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture
def experiment(tmp_path, monkeypatch, capfd):
    """Call the command in this process, in a folder of its own; results are in experiments/results there."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments, code=0):
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", ["experiments", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            command.main()
        printed = capfd.readouterr()
        assert end.value.code == code, printed.err
        return printed

    return call


@pytest.fixture
def refused(experiment):
    """Call the command and return the one line that it prints when it refuses."""

    def call(*arguments):
        printed = experiment(*arguments, code=2)
        assert printed.err.count("\n") == 1
        assert printed.out == ""
        return printed.err

    return call


@pytest.fixture(scope="session")
def plain_table(tmp_path_factory):
    """The table of a sweep that one process runs without an interruption."""
    known = {}

    def of(text, name, cells=None):
        if (text, cells) not in known:
            folder = tmp_path_factory.mktemp("plain")
            sweep = command.load_sweep(str(write(folder / f"{name}.toml", text)))
            command.runner.run_sweep(sweep, command.runner.choose(sweep, cells, None), folder, command.engines.local(1))
            known[text, cells] = (folder / f"{name}.csv").read_bytes()
        return known[text, cells]

    return of


def write(path, text):
    path.write_text(text)
    return path


def start(*arguments, folder, command=COMMAND):
    """Start the command as a process, in a session of its own."""
    return subprocess.Popen(
        [*command, *map(str, arguments)], cwd=folder, env=ENVIRONMENT, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def finish(process):
    """The exit code and standard error of a process that ends by itself."""
    _, said = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in said
    return process.returncode, said


def results(folder, ending="csv", name="tiny"):
    return folder / "experiments" / "results" / f"{name}.{ending}"


def log_lines(folder, name="tiny"):
    return [json.loads(line) for line in results(folder, "jsonl", name).read_text().splitlines()]


def wait_for(condition, process=None):
    """Wait until the condition holds; a process that ends before is a failure."""

    def is_over():
        if condition():
            return True
        if process is not None and process.poll() is not None:
            assert condition(), process.communicate()
        return False

    wait_until(is_over)
