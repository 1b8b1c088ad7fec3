"""Real processes, killed in the middle. Two runs of the sweep never end, so that there always is a middle."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.patience import PATIENCE

from .conftest import ENVIRONMENT, TINY, finish, log_lines, results, start, wait_for, write

pytestmark = pytest.mark.slow
ENDLESS = """
[[grid]]
instance = "equally-spaced"
gap = 1.5
n = [3, 4]
method = "bridge"

[[grid]]  # started after n = 4 and before n = 3; this gap takes hours to prove, vote by vote
instance = "equally-spaced"
gap = 1e-4
growth = 0.0
n = 5
method = "bridge"
runs = 2
seconds = 2

[[except]]
where = { n = 4 }
seconds = 3
"""
LONG = TINY.split("[[grid]]")[0].replace("runs = 3", "runs = 5") + ENDLESS
QUICK = "long/*/n=[34]/bridge"  # the cells that end
ARGUMENTS = "run", "long.toml", "--jobs", 2


def lines_in(folder):
    path = results(folder, "jsonl", "long")
    return path.read_bytes().count(b"\n") if path.exists() else 0


def alive(child):
    try:
        return child.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def workers_of(process):
    """The processes that compute runs."""
    children = psutil.Process(process.pid).children()
    return [child for child in children if alive(child) and "resource_tracker" not in str(child.cmdline())]


def start_and_wait(folder, lines, *more):
    """The command with so many runs finished, and its two processes, which leave Ctrl-C to it from now on."""
    write(folder / "long.toml", LONG)
    process = start(*ARGUMENTS, *more, folder=folder)
    wait_for(lambda: lines_in(folder) >= lines, process)
    assert lines_in(folder) == lines
    wait_for(lambda: len(workers_of(process)) == 2, process)
    workers = workers_of(process)
    wait_for(lambda: all(ignores(worker, signal.SIGINT) for worker in workers), process)
    return process, workers


def test_a_killed_sweep_resumes_and_ends_the_same(tmp_path, experiment, plain_table):
    for finished, options in ((3, ("--runs", 3)), (5, ())):
        process, workers = start_and_wait(tmp_path, finished, *options)
        process.kill()
        process.communicate()
        wait_for(lambda workers=workers: not any(map(alive, workers)))
        assert not results(tmp_path, name="long").exists()
    kept = results(tmp_path, "jsonl", "long").read_bytes()
    with results(tmp_path, "jsonl", "long").open("ab") as log:
        log.write(b'{"cell": "long/equally-spaced/n=3/bri')  # a line that the kill cut off
    experiment("run", "long.toml", "--jobs", 1, "--cell", QUICK)
    assert results(tmp_path, name="long").read_bytes() == plain_table(LONG, "long", QUICK)
    assert results(tmp_path, "jsonl", "long").read_bytes().startswith(kept)
    assert sorted((line["cell"], line["run"]) for line in log_lines(tmp_path, "long")) == [
        (f"long/equally-spaced/n={n}/bridge", run) for n in (3, 4) for run in range(5)
    ]


def test_a_worker_process_whose_parent_died_while_it_started_ends():
    code = "from experiments.engines import _settle_in\n_settle_in(0)\nwhile True: pass"  # nobody's parent is 0
    assert subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, timeout=PATIENCE).returncode == 1


def ignores(process, number):
    """Whether the process ignores a signal, or has ended."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except FileNotFoundError:
        return True
    mask = next((line.split()[1] for line in status.splitlines() if line.startswith("SigIgn")), "0")
    return bool(int(mask, 16) >> (number - 1) & 1) or "State:\tZ" in status


@pytest.mark.parametrize("order", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "kill"])
def test_an_interruption_says_how_to_resume(tmp_path, order):
    process, workers = start_and_wait(tmp_path, 5)
    if order == signal.SIGINT:  # a terminal sends it to the whole group
        os.killpg(process.pid, order)
    else:  # as `timeout` does it: to the process, then to its group
        process.send_signal(order)
        wait_for(lambda: ignores(process, order))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, order)
    code, said = finish(process)
    assert code == 130
    first, last = said.strip().splitlines()
    assert first == "5 of 12 runs are saved; resume with: python -m experiments run long.toml --jobs 2"
    assert last == "experiments: interrupted"
    wait_for(lambda: not any(map(alive, workers)))


def test_a_killed_worker_process_is_said_in_one_line(tmp_path):
    process, workers = start_and_wait(tmp_path, 5)
    workers[0].kill()
    code, said = finish(process)
    assert code == 2
    assert "was killed; the finished runs are saved" in said
    assert said.count("\n") == 1
