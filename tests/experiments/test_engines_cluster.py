"""A real Dask cluster of separate processes on the loopback."""

import contextlib
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
from experiments import engines
from tests.patience import PATIENCE

from .conftest import ENVIRONMENT, ROOT, TINY, finish, log_lines, results, start, wait_for, write
from .test_engines_killed import LONG, lines_in

pytestmark = pytest.mark.slow
# The command, but as patient with a slow machine as these tests are.
PATIENT = f"""
from experiments import __main__ as command, engines
engines.FIRST_WORKER = engines.ALONE = {PATIENCE}
command.main()
"""
DASK = str(Path(sys.executable).parent / "dask")


class Cluster:
    """A scheduler and its workers, which say what they do in a log file."""

    def __init__(self, folder):
        self.log, self.workers = folder / "cluster.log", []
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        wait_for(lambda: self._address() is not None, self.scheduler)
        self.address = self._address()[1]

    def _address(self):
        return re.search(r"Scheduler at:\s+(tcp://\S+)", self.log.read_text())

    def _start(self, *arguments, **environment):
        with self.log.open("a") as log:
            return subprocess.Popen(
                [DASK, *arguments], stdout=log, stderr=log, cwd=self.log.parent, env={**ENVIRONMENT, **environment}
            )

    def count(self, message):
        return self.log.read_text().count(message)

    def add(self, threads=1, **environment):
        """Start a worker and wait until the scheduler knows it."""
        known = self.count("Registered to:")
        options = ["--nthreads", str(threads), "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
        worker = self._start("worker", self.address, *options, **environment)
        self.workers.append(worker)
        wait_for(lambda: self.count("Registered to:") > known, worker)
        return worker

    def dismiss(self):
        """Kill all workers and wait until the scheduler has forgotten them."""
        kill(*self.workers)
        self.workers.clear()
        wait_for(lambda: self.count("Remove worker") == self.count("Register worker"), self.scheduler)


def kill(*processes):
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    kill(*made.workers, made.scheduler)


@pytest.fixture
def cluster(scheduler):
    """The scheduler, without workers."""
    yield scheduler
    scheduler.dismiss()


@pytest.fixture
def on(cluster):
    """The options that run a sweep on the cluster."""
    return "--cluster", cluster.address


def under_way(cluster, on, folder, threads=1):
    """A worker with the two runs that never end, as far as it has threads, and the command that waits for it."""
    worker = cluster.add(threads)
    process = start(
        "run", write(folder / "long.toml", LONG), *on, folder=folder, command=[sys.executable, "-c", PATIENT]
    )
    wait_for(lambda: lines_in(folder) == (10 if threads > 2 else 5), process)
    return worker, process


def test_a_cluster_computes_what_this_machine_computes(cluster, on, experiment, plain_table, tmp_path, tiny):
    cluster.add(threads=2)
    experiment("run", tiny, *on)
    assert results(tmp_path).read_bytes() == plain_table(TINY, "tiny")
    assert len(log_lines(tmp_path)) == 20


def test_the_runs_of_a_killed_worker_are_given_to_another(cluster, on, tmp_path):
    victim, process = under_way(cluster, on, tmp_path)
    kill(victim)
    cluster.add(threads=3)  # one more than there are runs that never end
    wait_for(lambda: lines_in(tmp_path) == 10, process)
    process.send_signal(signal.SIGINT)
    assert finish(process)[0] == 130


def test_a_cluster_that_lost_all_its_workers_is_not_waited_for(cluster, on, tmp_path, refused, monkeypatch):
    """The command runs in this process; a thread kills the worker when it is in a run that never ends."""
    monkeypatch.setattr(engines, "ALONE", 0.0)
    monkeypatch.setattr(engines, "LOOK", 0.05)
    worker = cluster.add()

    def strike():
        wait_for(lambda: lines_in(tmp_path) >= 5)
        kill(worker)

    killer = threading.Thread(target=strike)
    killer.start()
    said = refused("run", write(tmp_path / "long.toml", LONG), *on)
    killer.join()
    assert "lost its last worker; the finished runs are saved" in said


def test_ctrl_c_leaves_a_cluster_alone(cluster, on, experiment, plain_table, tmp_path, tiny):
    worker, process = under_way(cluster, on, tmp_path, threads=3)
    process.send_signal(signal.SIGINT)
    code, said = finish(process)
    assert code == 130
    assert "10 of 12 runs are saved; resume with: python -m experiments run" in said
    assert said.count("\n") == 2
    experiment("run", tiny, *on)
    assert results(tmp_path).read_bytes() == plain_table(TINY, "tiny")
    assert worker.poll() is None


def test_a_scheduler_that_dies_is_said_and_nothing_is_lost(tmp_path_factory, tmp_path):
    cluster = Cluster(tmp_path_factory.mktemp("dying"))
    try:
        _, process = under_way(cluster, ("--cluster", cluster.address), tmp_path)
    finally:
        kill(cluster.scheduler, *cluster.workers)
    code, said = finish(process)
    assert code == 2
    assert "the finished runs are saved" in said.splitlines()[-1]
    assert lines_in(tmp_path) == 5


def test_a_worker_with_another_version_is_refused(cluster, on, tmp_path, tiny, refused):
    other = tmp_path / "other" / "shortlist"
    shutil.copytree(Path(shortlist.__file__).parent, other, ignore=shutil.ignore_patterns("__pycache__"))
    init = other / "__init__.py"
    init.write_text(init.read_text().replace(f'__version__ = "{shortlist.__version__}"', '__version__ = "0.0.1"'))
    cluster.add(PYTHONPATH=os.pathsep.join([str(other.parent), str(ROOT)]))
    assert "has shortlist 0.0.1, and this is shortlist" in refused("run", tiny, *on)
    assert not results(tmp_path).exists()


def test_a_worker_without_the_experiments_is_refused(cluster, on, tmp_path, tiny, refused):
    cluster.add(PYTHONPATH=str(Path(shortlist.__file__).parents[1]))
    assert "a worker cannot import the experiments" in refused("run", tiny, *on)
    assert not results(tmp_path).exists()


def test_a_cluster_without_workers_is_refused(on, tiny, refused, monkeypatch):
    monkeypatch.setattr(engines, "FIRST_WORKER", 0.0)
    assert "has no workers" in refused("run", tiny, *on)


def test_another_program_answers(tiny, refused):
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_greet, args=(server,), daemon=True).start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert "no Dask scheduler at tcp" in refused("run", tiny, "--cluster", f"tcp://{address}")
        assert "needs a certificate" in refused("run", tiny, "--cluster", f"tls://{address}")


def _greet(server):
    """As an SSH server does."""
    with contextlib.suppress(OSError):
        while True:
            line, _ = server.accept()
            line.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")
            line.close()
