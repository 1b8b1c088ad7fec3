"""A real Dask cluster of separate processes on the loopback."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import shortlist

from .conftest import COMMAND, experiment, log_lines, refused, results, wait_for
from .test_kill import LONG, lines_in

pytestmark = pytest.mark.slow
DASK = str(Path(sys.executable).parent / "dask")


class Cluster:
    """A scheduler and the workers that are started with `add`; each says where it is in a log file."""

    def __init__(self, folder):
        self.folder, self.processes = folder, []
        self.address = None
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        wait_for(lambda: re.search(r"Scheduler at:\s+(tcp://\S+)", self.said()))
        self.address = re.search(r"Scheduler at:\s+(tcp://\S+)", self.said())[1]

    def _start(self, *arguments, environment=None):
        with (self.folder / "cluster.log").open("a") as log:
            process = subprocess.Popen(
                [DASK, *arguments], stdout=log, stderr=log, cwd=self.folder, env={**os.environ, **(environment or {})}
            )
        self.processes.append(process)
        return process

    def said(self):
        return (self.folder / "cluster.log").read_text()

    def add(self, threads=1, **environment):
        known = self.said().count("Registered to:")
        options = ["--nthreads", str(threads), "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
        worker = self._start("worker", self.address, *options, environment=environment)
        wait_for(lambda: self.said().count("Registered to:") > known)
        return worker

    def stop(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait(timeout=20)


@pytest.fixture
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.stop()


@pytest.fixture
def long(tmp_path):
    (tmp_path / "long.toml").write_text(LONG)
    return ["run", "long.toml"]


def on(cluster, arguments, folder):
    command = [*COMMAND, *arguments, "--cluster", cluster.address]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_cluster_plays_what_this_machine_plays(cluster, tmp_path, tiny):
    cluster.add()
    cluster.add(threads=2)
    here = tmp_path / "here"
    here.mkdir()
    experiment("run", tiny, "--jobs", 1, folder=here)
    experiment("run", tiny, "--cluster", cluster.address, folder=tmp_path)
    assert results(tmp_path).read_bytes() == results(here).read_bytes()
    assert len(log_lines(tmp_path)) == 20


def under_way(cluster, tmp_path, long):
    """One worker, and a run that has played something with it."""
    worker, process = cluster.add(), on(cluster, long, tmp_path)
    wait_for(lambda: lines_in(tmp_path) >= 1)
    return worker, process


def test_a_worker_that_is_killed_is_made_up_for(cluster, tmp_path, long):
    victim = cluster.add()
    cluster.add()
    process = on(cluster, long, tmp_path)
    wait_for(lambda: lines_in(tmp_path) >= 2)
    victim.send_signal(signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert lines_in(tmp_path) == 16


def test_a_cluster_that_lost_all_its_workers_is_not_waited_for(cluster, tmp_path, long):
    worker, process = under_way(cluster, tmp_path, long)
    worker.send_signal(signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "lost its last worker; the finished runs are saved" in said
    assert said.count("\n") == 1


def test_ctrl_c_leaves_a_cluster_alone(cluster, tmp_path, long):
    _, process = under_way(cluster, tmp_path, long)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "of 16 runs are saved; go on with: shortlist experiment run long.toml --cluster tcp://" in said
    assert said.count("\n") == 2
    assert json.loads(experiment(*long, "--cluster", cluster.address, "--json", folder=tmp_path).stdout)["played"] < 16


def test_a_scheduler_that_dies_is_said_and_nothing_is_lost(cluster, tmp_path, long):
    _, process = under_way(cluster, tmp_path, long)
    cluster.processes[0].kill()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "the finished runs are saved" in said.splitlines()[-1]
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("change", "message"),
    [("version", "has shortlist 0.0.1, and this is shortlist"), ("experiments", "a worker cannot play experiments")],
)
def test_workers_with_another_shortlist_are_refused(cluster, tmp_path, tiny, change, message):
    other = tmp_path / "other" / "shortlist"
    left_out = ("__pycache__", *(["experiments"] if change == "experiments" else []))
    shutil.copytree(Path(shortlist.__file__).parent, other, ignore=shutil.ignore_patterns(*left_out))
    init = other / "__init__.py"
    init.write_text(init.read_text().replace(f'__version__ = "{shortlist.__version__}"', '__version__ = "0.0.1"'))
    cluster.add(PYTHONPATH=str(other.parent))
    assert message in refused("run", tiny, "--cluster", cluster.address, folder=tmp_path)
    assert not results(tmp_path).exists()


def test_a_cluster_without_workers_is_refused(cluster, tmp_path, tiny):
    assert "has no workers" in refused("run", tiny, "--cluster", cluster.address, folder=tmp_path)


def test_somebody_else_answers(tmp_path, tiny):
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_greet, args=(server,), daemon=True).start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert "no Dask scheduler at tcp" in refused("run", tiny, "--cluster", f"tcp://{address}", folder=tmp_path)
        assert "wants a certificate" in refused("run", tiny, "--cluster", f"tls://{address}", folder=tmp_path)


def _greet(server):
    """As an SSH server does."""
    with contextlib.suppress(OSError):
        while True:
            line, _ = server.accept()
            line.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")
            line.close()
