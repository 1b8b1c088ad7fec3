"""Real processes, killed in the middle."""

import os
import signal
import subprocess
import time

import psutil
import pytest

from .conftest import COMMAND, TINY, experiment, log_lines, results, wait_for

pytestmark = pytest.mark.slow
LONG = TINY.split("[[grid]]")[0] + '[[grid]]\ninstance = "equally-spaced"\ngap = 0.1\nn = [4, 5]\nmethod = "bridge"\n'
LONG = (
    LONG.replace("runs = 3", "runs = 8")
    .replace("delta = 0.2", "delta = 0.01")
    .replace("growth = 0.05", "growth = 0.004")
)


def lines_in(folder):
    path = results(folder, "jsonl", "long")
    return path.read_bytes().count(b"\n") if path.exists() else 0


def children_of(process):
    return psutil.Process(process.pid).children()


def alive(child):
    try:
        return child.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "long.toml").write_text(LONG)
    experiment("run", "long.toml", "--jobs", 2, folder=folder)
    return results(folder, name="long").read_bytes()


def start(folder):
    (folder / "long.toml").write_text(LONG)
    command = [*COMMAND, "run", "long.toml", "--jobs", "2"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, text=True, start_new_session=True, **pipes)


def test_a_killed_sweep_goes_on_and_ends_the_same(undisturbed, tmp_path):
    finished = 0
    for more in (2, 3):
        process = start(tmp_path)
        wait_for(lambda wanted=finished + more: lines_in(tmp_path) >= wanted)
        workers = children_of(process)
        process.kill()
        process.communicate(timeout=20)
        assert process.returncode == -signal.SIGKILL
        wait_for(lambda workers=workers: not any(map(alive, workers)))
        finished = lines_in(tmp_path)
        assert not results(tmp_path, name="long").exists()
    kept = results(tmp_path, "jsonl", "long").read_bytes()
    assert 5 <= finished < 16
    experiment("run", "long.toml", "--jobs", 2, folder=tmp_path)
    assert results(tmp_path, name="long").read_bytes() == undisturbed
    assert results(tmp_path, "jsonl", "long").read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    assert sorted((line["cell"], line["run"]) for line in log_lines(tmp_path, "long")) == [
        (f"long/equally-spaced/n={n}/bridge", run) for n in (4, 5) for run in range(8)
    ]


@pytest.mark.parametrize("order", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "kill"])
def test_an_interruption_says_how_to_go_on(tmp_path, order):
    process = start(tmp_path)
    wait_for(lambda: lines_in(tmp_path) >= 1)
    process.send_signal(order)
    if order == signal.SIGTERM:  # as `timeout` does it
        time.sleep(0.05)
        os.killpg(process.pid, order)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    first, last = said.strip().splitlines()
    assert first.startswith(f"{lines_in(tmp_path)} of 16 runs are saved")
    assert first.endswith("go on with: shortlist experiment run long.toml --jobs 2")
    assert last == "shortlist: interrupted"


def test_a_killed_worker_process_is_said_in_one_line(tmp_path):
    process = start(tmp_path)
    wait_for(lambda: lines_in(tmp_path) >= 1)
    worker = next(child for child in children_of(process) if any("spawn_main" in word for word in child.cmdline()))
    worker.kill()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "was killed; the finished runs are saved" in said
    assert said.count("\n") == 1
