"""Where runs are computed: in processes of this machine (joblib), or by the workers of a Dask cluster.

An engine takes tasks and yields each with its result, in the order in which they finish.
"""

import logging
import os
import re
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from typing import Any, NamedTuple

from experiments.errors import BadExperiment, RunsFailed
from experiments.measures import measure_run
from experiments.provenance import Provenance, provenance
from experiments.sweep import Cell
from shortlist.core.linalg import one_thread
from shortlist.errors import NotInstalled, ShortlistError

REACH = 8.0  # seconds to find a scheduler
FIRST_WORKER = 8.0  # seconds to wait for its first worker
ALONE = 20.0  # seconds a cluster may be without workers: a worker that is killed is often restarted
LOOK = 1.0  # seconds between two checks for that
NAP = 0.02
PARENT_CHECK = 0.2  # seconds between a process's checks that its parent is alive
LONG = 2**20  # bytes; the greeting of a scheduler is shorter


class Task(NamedTuple):
    """One run of a cell."""

    cell: Cell
    number: int

    @property
    def order(self) -> tuple[dict[str, Any], int]:
        """The arguments of `measure_run`."""
        return self.cell.definition, self.number

    def __str__(self) -> str:
        return f"cell {self.cell.id}, run {self.number}"


Played = tuple[Task, dict[str, Any]]
Runs = Generator[Played, None, None]
Engine = Callable[[Sequence[Task]], Runs]


@contextmanager
def local(jobs: int) -> Iterator[Engine]:
    """Processes of this machine; with one job, this process itself."""
    yield _here if jobs == 1 else partial(_in_processes, _load("joblib", "more than one job"), jobs)


def _load(package: str, purpose: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise NotInstalled(purpose, package, "cluster") from None


def _here(tasks: Sequence[Task]) -> Runs:
    yield from map(_play, tasks)


def _play(task: Task) -> Played:
    return task, _outcome(task, partial(measure_run, *task.order))


def _outcome(task: Task, result: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The result of a task, or an error that names the task."""
    try:
        return result()
    except ShortlistError as reason:
        raise RunsFailed(f"{task}: {reason}; the finished runs are saved") from None


def _in_processes(joblib: Any, jobs: int, tasks: Sequence[Task]) -> Runs:
    pool = joblib.Parallel(
        jobs, backend="loky", return_as="generator_unordered", batch_size=1, max_nbytes=None,
        initializer=_settle_in, initargs=(os.getpid(),),
    )  # fmt: skip
    finished = pool(joblib.delayed(_play)(task) for task in tasks)
    try:
        for played in finished:  # noqa: UP028 - `yield from` would close it here, with a warning
            yield played
    except BrokenProcessPool:
        raise RunsFailed("a worker process was killed; the finished runs are saved, run this again") from None
    finally:
        with warnings.catch_warnings(action="ignore"):  # about the runs that an interruption cancels
            finished.close()


def _settle_in(parent: int) -> None:
    """In a worker process: leave Ctrl-C and `kill` of the group to the parent, and exit when the parent is gone.

    The parent's number is passed: a parent that is killed while this process starts is not its parent any more.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def leave() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK)
        os._exit(1)

    threading.Thread(target=leave, daemon=True).start()


@contextmanager
def cluster(address: str) -> Iterator[Engine]:
    """The workers of the scheduler at an address such as tcp://host:8786. All must have exactly this code."""
    dask = _load("distributed", "a cluster")
    with _quiet():
        try:
            _knock(address)
            _check_keys(dask, address)
            client = dask.Client(address, timeout=REACH, set_as_default=False)
        except OSError as reason:
            said = reason.strerror or next(iter(str(reason).splitlines()), "no answer")
            raise RunsFailed(f"no Dask scheduler at {address}: {said}; start one with: dask scheduler") from None
        try:
            _check_workers(client, address)
            yield partial(_from_cluster, dask, client, address)
        finally:
            client.close(timeout=2)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's log: a failure is reported once, in one line."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(before)


def _knock(address: str) -> None:
    """Check for a scheduler quickly, before Dask tries for long. A scheduler sends a greeting, except over TLS."""
    found = re.fullmatch(r"(tcp|tls)://\[?([^/]+?)\]?:(\d{1,5})", address)
    if found is None or int(found[3]) > 65535:
        raise BadExperiment(f"{address!r} is not the address of a cluster; an address looks like tcp://host:8786")
    with socket.create_connection((found[2], int(found[3])), timeout=REACH) as line:
        if found[1] == "tls":
            return
        size = line.recv(8, socket.MSG_WAITALL)
        if len(size) < 8:
            raise ConnectionError("it closes the connection")
        if int.from_bytes(size, "little") > LONG:
            raise ConnectionError("another program answers")


def _check_keys(dask: Any, address: str) -> None:
    if address.startswith("tls:") and dask.Security().get_connection_args("client").get("ssl_context") is None:
        raise BadExperiment(f"{address} needs a certificate and a key; set them in Dask's configuration")


def _check_workers(client: Any, address: str) -> None:
    deadline = time.monotonic() + FIRST_WORKER
    while not client.nthreads():
        if time.monotonic() > deadline:
            raise RunsFailed(f"the scheduler at {address} has no workers; start some with: dask worker {address}")
        time.sleep(NAP)
    try:
        found = client.run(provenance)
    except Exception as reason:  # Dask raises whatever the worker raised
        raise RunsFailed(
            f"a worker cannot import the experiments ({reason}); start it in the repository of {provenance()}"
        ) from None
    for worker, code in found.items():
        _check_code(f"worker {worker}", code)


def _check_code(who: str, found: Provenance) -> None:
    if found != provenance():
        raise RunsFailed(f"{who} has {found}, and this is {provenance()}; use the same code everywhere")


def _from_cluster(dask: Any, client: Any, address: str, tasks: Sequence[Task]) -> Runs:
    futures = {client.submit(_work, *task.order, pure=False): task for task in tasks}
    finished, watch = dask.as_completed(futures, loop=client.loop), _Watch(client, address)
    for _ in tasks:
        while not finished.has_ready():
            time.sleep(NAP)
            watch.look()
        future = next(finished)
        task = futures.pop(future)  # without a reference to the future, the workers forget its result
        yield task, _from_future(dask, task, future)


class _Watch:
    """Raises RunsFailed when the cluster has had no worker for a while."""

    def __init__(self, client: Any, address: str) -> None:
        self._client, self._address = client, address
        self._looked = self._seen = time.monotonic()

    def look(self) -> None:
        now = time.monotonic()
        if now - self._looked < LOOK:
            return
        self._looked = now
        try:
            self._seen = now if self._client.nthreads() else self._seen
        except (OSError, TimeoutError):
            raise RunsFailed(f"the scheduler at {self._address} is gone; the finished runs are saved") from None
        if now - self._seen > ALONE:
            raise RunsFailed(
                f"the cluster at {self._address} lost its last worker; the finished runs are saved, "
                "start a worker and run this again"
            )


def _from_future(dask: Any, task: Task, future: Any) -> dict[str, Any]:
    if future.status not in ("finished", "error"):
        raise RunsFailed(f"the cluster gave up {task} ({future.status}); the finished runs are saved, run this again")
    try:
        played = _outcome(task, future.result)
    except dask.KilledWorker:
        raise RunsFailed(f"several workers died during {task}; do they have enough memory?") from None
    _check_code("a worker", Provenance(played["version"], played["commit"]))
    return played


def _work(definition: dict[str, Any], number: int) -> dict[str, Any]:
    _keep_to_one_thread()
    return measure_run(definition, number)


@cache
def _keep_to_one_thread() -> Any:
    """Permanently: runs in several threads of one worker would reset each other's setting."""
    return one_thread().__enter__()
