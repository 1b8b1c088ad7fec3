"""Runs played by the workers of a Dask cluster. What they yield is what processes of this machine would."""

import logging
import re
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from shortlist.errors import BadExperiment, NotInstalled, RunsFailed
from shortlist.experiments.engines import Engine, Played, Task, outcome
from shortlist.experiments.measures import measure_run
from shortlist.experiments.origin import Origin, origin
from shortlist.threads import one_thread

REACH = 8.0  # seconds to find a scheduler, and its first worker
ALONE = 20.0  # seconds a cluster may be without workers: one that is killed is often started again
LOOK = 1.0  # seconds between two looks at whether there are any
NAP = 0.02
LONG = 2**20  # bytes that a scheduler does not greet with


@contextmanager
def cluster(address: str) -> Iterator[Engine]:
    """The workers of the scheduler at an address such as tcp://host:8786; all must have this very code."""
    dask = _dask()
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
            yield lambda tasks: _from_cluster(client, address, tasks)
        finally:
            client.close(timeout=2)


@contextmanager
def _quiet() -> Iterator[None]:
    """Dask logs what it meets at length; here a failure is said once, in one line."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(before)


def _dask() -> Any:
    try:
        return import_module("distributed")
    except ImportError:
        raise NotInstalled("a cluster", "dask.distributed", "cluster") from None


def _knock(address: str) -> None:
    """Whether a scheduler is there, before Dask tries for long: one speaks first, unless it does so in secret."""
    found = re.fullmatch(r"(tcp|tls)://\[?([^/]+?)\]?:(\d{1,5})", address)
    if found is None or int(found[3]) > 65535:
        raise BadExperiment(f"{address!r} is no address of a cluster; one looks like tcp://host:8786")
    with socket.create_connection((found[2], int(found[3])), timeout=REACH) as line:
        if found[1] == "tls":
            return
        size = line.recv(8, socket.MSG_WAITALL)
        if len(size) < 8:
            raise ConnectionError("it hangs up")
        if int.from_bytes(size, "little") > LONG:
            raise ConnectionError("somebody else answers")


def _check_keys(dask: Any, address: str) -> None:
    if address.startswith("tls:") and dask.Security().get_connection_args("client").get("ssl_context") is None:
        raise BadExperiment(f"{address} wants a certificate and a key; name them in Dask's own settings")


def _check_workers(client: Any, address: str) -> None:
    deadline = time.monotonic() + REACH
    while not client.nthreads():
        if time.monotonic() > deadline:
            raise RunsFailed(f"the scheduler at {address} has no workers; start some with: dask worker {address}")
        time.sleep(NAP)
    try:
        origins = client.run(origin)
    except Exception as reason:  # Dask brings home whatever went wrong over there as this
        raise RunsFailed(f"a worker cannot play experiments ({reason}); install {origin()} there") from None
    for worker, found in origins.items():
        _check_origin(f"worker {worker}", found)


def _check_origin(who: str, found: Origin) -> None:
    if found != origin():
        raise RunsFailed(f"{who} has {found}, and this is {origin()}; install the same everywhere")


def _from_cluster(client: Any, address: str, tasks: Sequence[Task]) -> Iterator[Played]:
    futures = {client.submit(_work, *task.order, pure=False): task for task in tasks}
    finished, watch = _dask().as_completed(futures, loop=client.loop), _Watch(client, address)
    for _ in tasks:
        while not finished.has_ready():
            time.sleep(NAP)
            watch.look()
        future = next(finished)
        task = futures.pop(future)  # and with the last word of it, the workers forget it too
        yield task, _from_future(task, future)


class _Watch:
    """Says so when nobody is left to play."""

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


def _from_future(task: Task, future: Any) -> dict[str, Any]:
    if future.status not in ("finished", "error"):
        raise RunsFailed(f"the cluster gave up {task} ({future.status}); the finished runs are saved, run this again")
    try:
        played = outcome(task, future.result)
    except _dask().KilledWorker:
        raise RunsFailed(f"several workers died while they played {task}; have they enough memory?") from None
    _check_origin("a worker", Origin(played["version"], played["commit"]))
    return played


def _work(definition: dict[str, Any], number: int) -> dict[str, Any]:
    _keep_to_one_thread()
    return measure_run(definition, number)


@cache
def _keep_to_one_thread() -> Any:
    """For good: runs in several threads of one worker would give each other's setting back."""
    return one_thread().__enter__()
