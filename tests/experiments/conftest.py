"""Shared by the tests of experiments: a sweep of a second, and the command as users call it."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = [str(Path(sys.executable).parent / "shortlist"), "experiment"]
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
    """A sweep of eight cells and 21 runs, as a file."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


def experiment(*arguments, folder, code=0):
    """The command in a folder of its own; its results are in experiments/results there."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def refused(*arguments, folder):
    """What is said in one line when the command refuses."""
    done = experiment(*arguments, folder=folder, code=2)
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    return done.stderr


def results(folder, ending="csv", name="tiny"):
    return folder / "experiments" / "results" / f"{name}.{ending}"


def log_lines(folder, name="tiny"):
    return [json.loads(line) for line in results(folder, "jsonl", name).read_text().splitlines()]


def wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)
