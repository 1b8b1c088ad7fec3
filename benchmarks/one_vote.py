"""Trace one vote through the package: its calls, functions, files, switches between files, and stops.

    python benchmarks/one_vote.py [--json]

One vote goes through `run_study` with a plain function as the judge, one through HTTP (POST /api/questions/ID/vote,
in process). Both studies are in an SQLite file. Some votes make the sampling rule plan anew and pass more code, so
the script traces many. It prints the vote with the fewest calls and the median of all.

A call is a Python function of the package that starts or resumes in any thread, as `sys.setprofile` reports it.
Comprehensions, generator expressions and lambdas belong to their function. Methods that Python generates, such as the
`__init__` of a dataclass, are not counted. A stop is a series of calls inside one file, named after its first function.
"""

import argparse
import asyncio
import itertools
import json
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import httpx

import shortlist
from shortlist.web import app as web
from shortlist.web.app import owner_link

PACKAGE = f"{Path(shortlist.__file__).parent}/"
ITEMS = [f"item {number:02}" for number in range(20)]
WANTED, SEED = 5, 1
BEFORE, TRACED = 50, 50  # votes before the first that is traced, and how many are
COUNTS = ("calls", "functions", "files", "switches")


class Call(NamedTuple):
    """A function of the package that started or resumed."""

    file: str
    function: str
    line: int


class Recorder:
    """The calls of each vote, in this thread and in threads that start while the recorder is installed."""

    def __init__(self) -> None:
        self.votes: list[list[Call]] = []
        self._calls: list[Call] | None = None

    def begin(self) -> None:
        self._calls = []

    def end(self) -> None:
        if self._calls is not None:
            self.votes.append(self._calls)
        self._calls = None

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or self._calls is None or code.co_name.startswith("<"):
            return
        if code.co_filename.startswith(PACKAGE):
            self._calls.append(Call(code.co_filename.removeprefix(PACKAGE), code.co_qualname, code.co_firstlineno))


@contextmanager
def recorded() -> Iterator[Recorder]:
    recorder = Recorder()
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    try:
        yield recorder
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def counts(calls: list[Call]) -> dict[str, int]:
    files = [call.file for call in calls]
    switches = sum(before != after for before, after in itertools.pairwise(files))
    return dict(zip(COUNTS, (len(calls), len(set(calls)), len(set(files)), switches), strict=True))


def summary(votes: list[list[Call]]) -> dict[str, Any]:
    """The vote with the fewest calls, its stops, and the median of all votes."""
    shortest, each = min(votes, key=len), [counts(calls) for calls in votes]
    stops = [f"{file}:{next(calls).function}" for file, calls in itertools.groupby(shortest, lambda call: call.file)]
    median = {name: round(statistics.median(count[name] for count in each)) for name in COUNTS}
    return {**counts(shortest), "median": median, "stops": stops}


def better(first: str, second: str) -> float:
    """A judge who always prefers the item with the lower number."""
    return float(first < second)


def vote_in_run(storage: str) -> dict[str, Any]:
    """Trace `run_study`; a vote lasts from the end of the one before to its own end."""
    votes = BEFORE + TRACED
    study = shortlist.create_study(ITEMS, WANTED, storage=storage, name="run", seed=SEED, max_votes=votes + 1)
    count = itertools.count(1)
    with recorded() as recorder:

        def progress(_: object) -> None:
            recorder.end()
            if BEFORE <= next(count) < votes:
                recorder.begin()

        shortlist.run_study(study, better, workers=1, progress=progress, warn=lambda _: None)
    return summary(recorder.votes)


async def vote_by_http(storage: str) -> dict[str, Any]:
    """Trace the requests of a judge who holds two questions, as the judging page does."""
    token = owner_link(storage, "").partition("#")[2]
    app = web.create_app(web.Settings(storage, token_rate=1e6, address_rate=1e6))
    with recorded() as recorder:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
            judge = await _join(client, token)
            turn = await _post(client, "/api/studies/web/questions", judge, {"hold": 2})
            for number in range(BEFORE + TRACED):
                question = turn["questions"][0]
                outcome = better(question["first"]["title"], question["second"]["title"])
                if number >= BEFORE:
                    recorder.begin()
                vote = {"outcome": outcome, "hold": 2}
                turn = (await _post(client, f"/api/questions/{question['id']}/vote", judge, vote))["next"]
                recorder.end()
    return summary(recorder.votes)


async def _join(client: httpx.AsyncClient, token: str) -> dict[str, str]:
    """The headers of a judge of a new study."""
    await _post(client, "/api/sessions", {}, {"token": token})
    page = (await client.get("/")).text
    form_token = page.partition('name="form-token" content="')[2].partition('"')[0]
    key = (await _post(client, "/api/keys", {"x-form-token": form_token}))["key"]
    client.cookies.clear()
    owner, items = {"authorization": f"Bearer {key}"}, [{"name": item} for item in ITEMS]
    await _post(client, "/api/studies", owner, {"name": "web", "items": items, "k": WANTED})
    links = (await _post(client, "/api/studies/web/judges", owner, {"names": ["ann"]}))["links"]
    return {"authorization": f"Bearer {links[0]['link'].partition('#')[2]}"}


async def _post(client: httpx.AsyncClient, path: str, headers: dict[str, str], body: Any = None) -> Any:
    answer = await client.post(path, headers=headers, json=body)
    answer.raise_for_status()
    return answer.json()


def _show(name: str, found: dict[str, Any]) -> None:
    print(f"{name}: {_said(found)} (median of {TRACED} votes: {_said(found['median'])})")
    for number, stop in enumerate(found["stops"], 1):
        print(f"{number:5}  {stop}")


def _said(found: dict[str, Any]) -> str:
    return ", ".join(f"{found[name]} {name}" for name in COUNTS)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        storage = f"sqlite:///{folder}/studies.db"
        found = {"run": vote_in_run(storage), "http": asyncio.run(vote_by_http(storage))}
    if chosen.json:
        print(json.dumps(found, indent=2))
    else:
        _show("One vote in run_study", found["run"])
        _show("One vote by HTTP", found["http"])


if __name__ == "__main__":
    main()
