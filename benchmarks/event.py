"""A whole judging event, rehearsed: python benchmarks/event.py [sqlite | postgres] [--judges 60 --items 40 --scale 30]

Starts `shortlist serve` on loopback, one worker on SQLite or two on PostgreSQL, and plays judges as the page does: each
holds two pairs, keeps the one on the screen, and sends every answer until it is acknowledged. Time runs `scale` times
as fast, leases and the time for an undo too; rate limits, and what the page calls a burst, do not. Judges think for 2
seconds to 15 minutes; a tenth leave halfway; phones sleep and wake; the network is gone for a minute; the service is
killed twice; two judges stuff the box, and the owner voids who gives many times as many answers as the others. At the
end every answer is compared with what is stored: each counts, or was refused for a reason that its judge saw; none is
lost or doubled, none is late whose judge was at work; and the verdict is right.
"""

import argparse
import asyncio
import json
import math
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from shortlist import load_study

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.web import kill_worker, postgres
from tests.web.server import Owner, Server, owner_key

STUDY, K, GAP, STEP = "event", 3, 1.0, 0.1
LEASE, UNDO, THINK, SLEEP, OUTAGE = 600.0, 30.0, (2.0, 900.0), (30.0, 1500.0), 60.0  # seconds of the event
SLEEPERS, LEAVERS = 0.3, 0.1
FEW, MANY_TIMES = 20, 5  # answers that the owner does not look at, and how often the usual number is suspicious
AGAIN = 0.3


@dataclass
class Answer:
    """What a judge answered, and what they were told about it."""

    question: str
    judge: str
    outcome: float
    shown: float  # when the service last heard that it is on the screen
    told: str = ""
    sent: float = 0.0


@dataclass
class Event:
    """What everybody shares."""

    server: Server
    scale: float
    end: float
    answers: list[Answer] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    seen: Counter = field(default_factory=Counter)  # what became of requests
    offline: bool = False
    over: bool = False
    items: int = 0
    kills: int = 0

    def lasts(self, seconds):
        """Seconds of the event as seconds of this program."""
        return seconds / self.scale

    async def sleep(self, seconds):
        await asyncio.sleep(self.lasts(seconds))


class Page:
    """One judge's page: a queue of pairs, and answers that are sent until they are acknowledged."""

    def __init__(self, event, name, token):
        self.event, self.name, self.draws = event, name, random.Random(name)
        self.http = httpx.AsyncClient(base_url=event.server.base, headers={"authorization": token}, timeout=30)
        self.queue, self.state, self.shown = [], "open", 0.0
        self.held = set()  # ids of all pairs so far

    async def send(self, path, body):
        """As the page does: again and again. While the network is gone nothing arrives, or only the reply is lost."""
        while True:
            try:
                if self.event.offline:
                    raise httpx.TransportError("no network")
                begin = time.perf_counter()
                answer = await self.http.post(path, json=body)
                if answer.status_code not in (429, 503):
                    if path.endswith("/vote"):
                        self.event.seconds.append(time.perf_counter() - begin)
                    return answer
                self.event.seen[answer.status_code] += 1
            except httpx.TransportError:
                self.event.seen["no connection"] += 1
            await asyncio.sleep(AGAIN)

    async def take(self):
        self.follow((await self.send(f"/api/studies/{STUDY}/questions", {"hold": 2})).json())

    def follow(self, turn):
        before = self.queue[0]["id"] if self.queue else None
        self.state, self.queue = turn["state"], turn["questions"]
        self.queue.sort(key=lambda question: question["id"] != before)
        self.held |= {question["id"] for question in self.queue}
        self.shown = time.monotonic()

    async def look(self, seconds):
        """Think about the pair on the screen, and say from time to time that it is there."""
        until = time.monotonic() + self.event.lasts(seconds)
        while (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(left, self.event.lasts(LEASE / 3)))
            if until - time.monotonic() > 0 and self.queue:
                said = await self.send(f"/api/questions/{self.queue[0]['id']}/show", {"hold": 2})
                if said.status_code == 200:
                    self.follow(said.json())
                else:
                    self.event.seen["closed while shown"] += 1
                    await self.take()

    async def answer(self, outcome):
        question = self.queue.pop(0)
        given = Answer(question["id"], self.name, outcome, self.shown)
        self.event.answers.append(given)
        showing = self.queue[0]["id"] if self.queue else None
        body = {"outcome": outcome, "hold": 2, "showing": showing}
        said = await self.send(f"/api/questions/{question['id']}/vote", body)
        given.sent = time.monotonic()
        if said.status_code != 200:
            given.told = f"refused: {said.json()['detail']}"  # on the screen until it is closed
            return await self.take()
        given.told = said.json()["status"]
        self.follow(said.json()["next"])

    def preferred(self):
        first, second = (utility(self.queue[0][side]["title"]) for side in ("first", "second"))
        return float(self.draws.random() < 1 / (1 + math.exp(second - first)))


def utility(title):
    """Every item is a little better than the next, and the first K are better by a gap."""
    place = int(title.split()[1])
    return (GAP if place < K else 0.0) - STEP * place


async def judge(event, name, token, kind):
    """An honest judge. `kind` is awake, sleeper or leaver."""
    page = Page(event, name, token)
    await asyncio.sleep(page.draws.random() * event.lasts(60))
    await page.take()
    leaves = event.end / 2 if kind.startswith("leaver") else math.inf
    while not event.over and page.state not in ("done", "closed"):
        if len(event.answers) > leaves:
            if kind == "leaver who closes the page" and page.queue:
                await page.send(f"/api/studies/{STUDY}/leave", {"showing": page.queue[0]["id"]})
            break
        if not page.queue:
            await asyncio.sleep(AGAIN)
            await page.take()
            continue
        await page.look(think(page.draws))
        if kind == "sleeper" and page.draws.random() < 0.15:
            await event.sleep(between(page.draws, *SLEEP))  # no sign of life meanwhile
            if page.draws.random() < 0.7:  # the page looks again when it wakes; some tap before it has
                await page.take()
        if page.queue:
            await page.answer(page.preferred())
    await page.http.aclose()


def between(draws, low, high):
    return low * (high / low) ** draws.random()


def think(draws):
    return between(draws, *THINK)


async def stuff(event, name, token):
    """As fast as the service lets it: the last item is always better; answers are changed, and others' stolen."""
    page = Page(event, name, token)
    worst = min((f"item {i:02}" for i in range(event.items)), key=utility)
    await page.take()
    while not event.over and page.state not in ("done", "closed"):
        if not page.queue:
            await asyncio.sleep(AGAIN)
            said = await page.send(f"/api/studies/{STUDY}/questions", {"hold": 2})
            if said.status_code != 200:
                event.seen["stuffer is out"] += 1
                break
            page.follow(said.json())
            continue
        question, sides = page.queue[0], [page.queue[0][side]["title"] for side in ("first", "second")]
        outcome = float(sides[0] == worst) if worst in sides else 1 - page.preferred()
        try:
            await page.answer(outcome)
        except (KeyError, TypeError):  # voided: what is said is no turn
            event.seen["stuffer is out"] += 1
            break
        other = await page.send(f"/api/questions/{question['id']}/vote", {"outcome": 1 - outcome})
        event.seen[f"changed answer: {other.status_code}"] += 1
        other_id = f"{STUDY}.{page.draws.randrange(40)}"
        if other_id not in page.held:
            stolen = await page.send(f"/api/questions/{other_id}/vote", {"outcome": 1.0})
            event.seen[f"question of another: {stolen.status_code}"] += 1
    await page.http.aclose()


async def flood(event, token, code):
    """Many names by the open link, which lets in three and asks for a code."""
    async with httpx.AsyncClient(base_url=event.server.base, timeout=30) as http:
        for number in range(20):
            given = {"token": token, "name": f"friend {chr(97 + number)}", "code": code if number % 2 else "guess"}
            try:
                said = await http.post("/api/sessions", json=given)
            except httpx.TransportError:
                continue
            http.cookies.clear()
            event.seen[f"open link: {said.status_code}"] += 1


async def watch_over(event, owner):
    """The owner looks at the table of judges, and voids who gives many times as many answers as the others."""
    while not event.over:
        await asyncio.sleep(1.0)
        try:
            judges = (await asyncio.to_thread(owner.http.get, f"/api/studies/{STUDY}/judges")).json()["judges"]
            usual = statistics.median(judge["votes"] for judge in judges)
            most = max(FEW, MANY_TIMES * usual)
            fast = [judge["name"] for judge in judges if judge["state"] == "active" and judge["votes"] > most]
            if fast:
                event.seen.update(f"flag of a judge who is voided: {flag}" for flag in _kinds(judges, fast))
                body = {"judges": fast}
                await asyncio.to_thread(owner.http.post, f"/api/studies/{STUDY}/judges/void", json=body)
        except (httpx.TransportError, KeyError):
            continue


def _kinds(judges, names):
    """What the page says about these judges, without its numbers."""
    flags = [flag for judge in judges if judge["name"] in names for flag in judge["flags"]]
    return [re.sub(r"\d+(\.\d+)?", "N", flag) for flag in flags if not flag.startswith("The name")]  # all look alike


async def disturb(event):
    """The network goes at a fifth of the votes, the service is killed at two fifths and at three."""
    for part in (0.2, 0.4, 0.6):
        while len(event.answers) < part * event.end and not event.over:
            await asyncio.sleep(0.1)
        if event.over:
            return
        if part == 0.2:
            event.offline = True
            await event.sleep(OUTAGE)
            event.offline = False
        else:
            await asyncio.to_thread(kill_worker, event.server)
            event.kills += 1


async def tell_progress(event, begin):
    while True:
        await asyncio.sleep(1.0)
        print(
            f"\r{len(event.answers):,} answers, {time.monotonic() - begin:.0f} s", end="", file=sys.stderr, flush=True
        )


async def crowd(event, tokens, open_token, owner, given):
    names = list(tokens)
    honest, stuffers = names[:-2], names[-2:]
    kinds = dict.fromkeys(honest, "awake")
    leavers = honest[: round(LEAVERS * len(honest))]
    kinds |= {
        name: f"leaver who {'closes the page' if i % 2 else 'puts the phone away'}" for i, name in enumerate(leavers)
    }
    kinds |= dict.fromkeys(honest[len(leavers) : len(leavers) + round(SLEEPERS * len(honest))], "sleeper")
    judges = [asyncio.create_task(judge(event, name, tokens[name], kinds[name])) for name in honest]
    cheats = [asyncio.create_task(stuff(event, name, tokens[name])) for name in stuffers]
    others = [
        asyncio.create_task(task)
        for task in (flood(event, open_token, "harbour"), watch_over(event, owner), disturb(event))
    ]
    progress = asyncio.create_task(tell_progress(event, time.monotonic()))
    await asyncio.wait(judges, timeout=given.limit)
    event.over = True
    await asyncio.gather(*judges)
    await asyncio.gather(*cheats, *others)
    progress.cancel()
    return kinds


def play(server, given):
    owner = Owner(server, owner_key(server, server.owner_token))
    items = [f"item {i:02}" for i in range(given.items)]
    owner.create(STUDY, items, K, min_judges=3, ties=False)
    names = [f"judge {i:02}" for i in range(given.judges)]
    tokens = {
        name: client.headers["authorization"] for name, client in zip(names, owner.judges(STUDY, *names), strict=True)
    }
    limits = {"code": "harbour", "max_judges": 3, "max_votes": 5}
    open_token = owner.http.post(f"/api/studies/{STUDY}/open-link", json=limits).json()["link"].partition("#")[2]
    event = Event(server, given.scale, given.expected, items=given.items)
    begin = time.monotonic()
    kinds = asyncio.run(crowd(event, tokens, open_token, owner, given))
    took = time.monotonic() - begin
    owner.http.get(f"/api/studies/{STUDY}")
    owner.close()
    return event, kinds, took


def check(url, event, kinds, lease):
    """Every answer against what is stored."""
    study = load_study(STUDY, url)
    study.settle()
    rows = {f"{STUDY}.{row.question}": row for row in study.rows}
    told = [entry for entry in study.entries if type(entry.event).__name__ == "Told"]
    given = Counter(answer.question for answer in event.answers)
    kept = {id: row for id, row in rows.items() if row.outcome is not None}
    acknowledged = [answer for answer in event.answers if answer.told in ("answered", "counted", "late")]
    wrong = [a for a in acknowledged if a.question not in kept or kept[a.question].outcome != a.outcome]
    late = [answer for answer in event.answers if answer.told == "late"]
    unfair = [a for a in late if a.sent - a.shown < 0.95 * lease]
    verdict = study.examine()
    refusals = Counter(re.sub(r"\d+", "N", a.told) for a in event.answers if a.told.startswith("refused"))
    return {
        "answers": len(event.answers), "stored": len(kept), "statuses": dict(study.counts),
        "not told": sum(not answer.told for answer in event.answers), "lost or changed": len(wrong),
        "doubled": sum(n > 1 for n in given.values()) + len(told) - len({entry.event.question for entry in told}),
        "late": dict(Counter(kinds.get(answer.judge, "stuffer") for answer in late)),
        "late though shown in time": len(unfair), "refused": dict(refusals), "requests": dict(event.seen),
        "proved": verdict.reason == "certified", "right": set(verdict.top) == {f"item {i:02}" for i in range(K)},
        "voided": len(study.voided), "verdict": str(verdict),
    }  # fmt: skip


def measure(url, folder, given):
    workers = 1 if given.storage == "sqlite" else 2
    lease = LEASE / given.scale
    times = ("--lease", str(lease), "--undo", str(UNDO / given.scale))
    server = Server(url, folder, "--workers", str(workers), "--log-level", "warning", *times).start()
    try:
        event, kinds, took = play(server, given)
        server.stop()
    finally:
        server.end()
    ordered = sorted(event.seconds)
    return {
        "storage": given.storage, "workers": workers, "judges": given.judges, "items": given.items,
        "seconds": round(took, 1), "kills": event.kills, "load": os.getloadavg()[0],
        **{f"p{q}_ms": round(1e3 * ordered[int(q / 100 * (len(ordered) - 1))], 1) for q in (50, 95, 99)},
        **check(url, event, kinds, lease),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("storage", choices=["sqlite", "postgres"], nargs="?", default="sqlite")
    parser.add_argument("--judges", type=int, default=60)
    parser.add_argument("--items", type=int, default=40)
    parser.add_argument("--scale", type=float, default=30.0, help="how many times as fast as an event")
    parser.add_argument("--expected", type=int, default=2500, help="answers that are expected; halfway is half of them")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which judges go home")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = f"sqlite:///{folder / 's.db'}" if given.storage == "sqlite" else stack.enter_context(postgres(folder))
        print(json.dumps(measure(url, folder, given), indent=1))


if __name__ == "__main__":
    main()
