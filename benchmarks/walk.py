"""An event, walked step by step in a real browser: python benchmarks/walk.py [FOLDER | --load]

Starts `shortlist serve` in an empty folder and does what an organiser and six judges on phones do: create a study,
print the sheet of QR codes, judge, correct a text, withdraw an item, void a judge, publish, and reveal the answer.
Every page is pictured wide and on a phone, light and dark, in FOLDER, and examined by axe. At the end: what axe found,
how many bytes the judge's page takes, and how long the first pair takes at 1.6 Mbit/s and 150 ms. With `--load` only
these two are measured.
"""

import json
import math
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import axe_playwright_python
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.web.browser import PHONE, launch
from tests.web.server import Owner, Server, owner_key

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
STUDY, EVENT = "Poster contest", "Hack day"
POSTERS = {
    "Harbour": "Cranes in the evening light, with the date in large letters.",
    "Orchard": "Apples and a ladder, drawn with a thick pencil.",
    "Lantern": "A row of paper lanterns over a dark street.",
    "Compass": "A compass whose needle points at the stage.",
    "Kite": "A child with a red kite above the rofs.",
    "Pebble": "Grey pebbles that spell the name of the town.",
}
JUDGES = ["Ann", "Bob", "Cleo", "Dan", "Eve", "Fay"]
LOOKS = {"wide": {"viewport": {"width": 1200, "height": 800}}, "phone": PHONE}
SLOW = {"offline": False, "latency": 150, "downloadThroughput": 1.6e6 / 8, "uploadThroughput": 1.6e6 / 8}
READ = 0.4  # seconds that a judge takes at least: a second tap within 0.3 does not count
LIMIT = 60_000  # ms that something may take before the walk gives up


class Walk:
    def __init__(self, server, browser, folder):
        self.server, self.browser, self.folder = server, browser, folder
        self.found, self.began = {}, time.perf_counter()

    def say(self, step):
        print(f"{time.perf_counter() - self.began:6.1f} s  {step}", flush=True)

    def page(self, state=None, **options):
        context = self.browser.new_context(storage_state=state, **options)
        context.set_default_timeout(LIMIT)
        page = context.new_page()
        page.on("pageerror", lambda error: self.found.setdefault("errors of pages", []).append(str(error)))
        return page

    def shoot(self, name, address, state=None, until="main", prepare=None):
        """The page in all four looks, as who has this state sees it."""
        for look, options in LOOKS.items():
            for scheme in ("light", "dark"):
                page = self.page(state, color_scheme=scheme, reduced_motion="reduce", **options)
                page.goto(address)
                page.wait_for_selector(until)
                if prepare:
                    prepare(page)
                page.wait_for_timeout(300)
                page.screenshot(path=self.folder / f"{name}-{look}-{scheme}.png", full_page=True)
                page.evaluate(AXE)
                wrong = page.evaluate("async () => (await axe.run()).violations.map((rule) => rule.id)")
                if wrong:
                    self.found[f"{name}, {look}, {scheme}"] = wrong
                page.context.close()


class Phone:
    """A judge on a phone, who likes the earlier posters better, mostly."""

    def __init__(self, walk, link, name):
        self.draws, self.page = random.Random(name), walk.page(**PHONE)
        self.page.goto(link)
        self.page.wait_for_selector("#pair:not([hidden]), #end:not([hidden])")

    def answer(self):
        """One answer; False if nothing is asked."""
        if not self.page.is_visible("#pair"):
            return False
        order = [*POSTERS]
        first, second = (order.index(self.page.inner_text(f"#{side} .title").strip()) for side in ("first", "second"))
        is_first = self.draws.random() < 1 / (1 + math.exp(1.1 * (first - second)))
        before = self.page.get_attribute("#pair", "data-question")
        self.page.wait_for_timeout(1000 * READ)
        if not self.page.is_visible("#pair"):  # the study has ended meanwhile
            return True
        self.page.tap(f".choose[data-outcome='{int(is_first)}']")
        deadline = time.monotonic() + LIMIT / 1000
        while self.page.is_visible("#pair") and self.page.get_attribute("#pair", "data-question") == before:
            self.page.wait_for_timeout(20)
            assert time.monotonic() < deadline, "the page does not go on"
        return True


def set_up(walk, owner):
    base = walk.server.base
    walk.shoot("stranger", base)
    walk.say("open the owner's link")
    owner.goto(walk.server.new_owner_link())
    owner.wait_for_url(f"{base}/")
    state = owner.context.storage_state()
    walk.shoot("home-empty", base, state, "#empty:not([hidden])")
    walk.say("create a study of six posters")
    owner.goto(f"{base}/new")
    owner.fill("#name", STUDY)
    owner.fill("#k", "2")
    owner.fill("#items", "\n".join(f"{name} | {text}" for name, text in POSTERS.items()))
    owner.fill("#judges", "6")
    walk.say(f"  advice: {owner.inner_text('#advice')}")
    owner.fill("#instructions", "Which poster would you rather see in the street?")
    walk.shoot("new", f"{base}/new", state, "#count", lambda page: page.fill("#items", "# Design\nHarbour\nOrchard"))
    owner.click("button[type=submit]")
    owner.wait_for_url("**/studies/*")
    return state


def invite(walk, owner):
    walk.say("make links for six judges, and print them")
    owner.goto(f"{walk.server.base}/studies/{STUDY}/judges")
    owner.fill("#names", "\n".join(f"{name}, {name.lower()}@example.org" for name in JUDGES))
    owner.click("text=Make links")
    owner.wait_for_selector("#sheet svg >> nth=5")
    owner.screenshot(path=walk.folder / "sheet.png", full_page=True)
    owner.pdf(path=walk.folder / "sheet.pdf")
    links = owner.locator("#sheet .secret").all_inner_texts()
    owner.fill("#code", "harbour")
    owner.click("#open-link")
    owner.wait_for_selector("#sheet svg >> nth=6")
    return links, owner.locator("#sheet .secret").all_inner_texts()[-1]


def judge(walk, phones, rounds):
    given = 0
    for _ in range(rounds):
        given += sum(phone.answer() for phone in phones)
    walk.say(f"  {given} answers on {len(phones)} phones")
    return given


def correct(walk, owner):
    walk.say("correct a typing error, and withdraw an item after the first vote")
    owner.goto(f"{walk.server.base}/studies/{STUDY}")
    owner.click("#edit-items")
    owner.fill("#edit-list li:nth-child(5) textarea", "A child with a red kite above the roofs.")
    owner.click("#edit-save")
    owner.wait_for_selector("#caveats:has-text('corrected')")
    owner.click("#edit-items")
    owner.click("#edit-list li:nth-child(6) button >> text=Withdraw")
    owner.click("#confirm-ok")
    owner.wait_for_selector("#edit-list li:nth-child(6):has-text('withdrawn')")
    owner.screenshot(path=walk.folder / "edit.png")
    owner.click("#edit-cancel")


def void(walk, owner):
    walk.say("void a judge, after a look at what it does")
    owner.goto(f"{walk.server.base}/studies/{STUDY}/judges")
    owner.check("[aria-label='Select Fay']")
    owner.click("#void")
    owner.wait_for_selector("#confirm[open]")
    walk.say(f"  {owner.inner_text('#confirm-text')}".replace("\n", " "))
    owner.screenshot(path=walk.folder / "void.png")
    owner.click("#confirm-ok")
    owner.wait_for_selector("#panelists tr:has-text('voided')")


def finish(walk, owner, phones):
    while judge(walk, phones, 6):
        pass
    owner.goto(f"{walk.server.base}/studies/{STUDY}")
    owner.wait_for_selector(".verdict.done")
    walk.say(f"  {owner.inner_text('#sentence')}")
    walk.say("publish the results, and reveal the answer")
    owner.click("#publish")
    owner.wait_for_selector("#results-link:not([hidden])")


def shoot_end(walk, state, phones):
    base = walk.server.base
    walk.shoot("dashboard-done", f"{base}/studies/{STUDY}", state, ".verdict.done")
    walk.shoot("results", f"{base}/results/{STUDY}", None, "#top li")
    walk.shoot(
        "present", f"{base}/present/{STUDY}", state, "#top li", lambda page: [page.click("#reveal") for _ in "12"]
    )
    walk.shoot("judge-end", f"{base}/judge/{STUDY}", phones[0].page.context.storage_state(), "#end:not([hidden])")
    walk.shoot("home", base, state, "#studies li")
    walk.shoot("docs", f"{base}/docs", state, ".operation")


def tracks(walk, owner, state):
    walk.say("an event with two tracks")
    owner.goto(f"{walk.server.base}/new")
    owner.fill("#name", EVENT)
    owner.fill("#k", "1")
    owner.fill("#items", "# Design\nRobot arm\nSmart mirror\nSolar bag\n# Code\nBus finder\nChess tutor")
    owner.click("button[type=submit]")
    owner.wait_for_url("**/events/*")
    walk.shoot("event", f"{walk.server.base}/events/{EVENT}", state, "#tracks li")


def measure(walk, link):
    """Bytes of the judge's page, and the time until its first pair on a slow line."""
    page, sizes = walk.page(**PHONE), []
    line = page.context.new_cdp_session(page)
    line.send("Network.enable")
    line.send("Network.emulateNetworkConditions", SLOW)
    line.on("Network.loadingFinished", lambda one: sizes.append(one["encodedDataLength"]))
    page.goto(link)  # the first visit: it joins and loads everything
    page.wait_for_selector("#pair:not([hidden])")
    total, state = sum(sizes), page.context.storage_state()
    seconds = []
    for _ in range(5):
        again = walk.page(state, **PHONE)  # nothing is cached
        slow = again.context.new_cdp_session(again)
        slow.send("Network.enable")
        slow.send("Network.emulateNetworkConditions", SLOW)
        begin = time.perf_counter()
        again.goto(f"{walk.server.base}/judge/{STUDY}", wait_until="commit")
        again.wait_for_selector("#pair:not([hidden])")
        seconds.append(round(time.perf_counter() - begin, 2))
        again.context.close()
    load = round(os.getloadavg()[0], 1)
    return {"judge_page_bytes": round(total), "first_pair_seconds": sorted(seconds), "load": load}


def play(walk, folder):
    """The whole event; what was measured and found."""
    owner = walk.page(**LOOKS["wide"])
    state = set_up(walk, owner)
    links, open_link = invite(walk, owner)
    numbers = measure(walk, links[0])
    walk.shoot("join", open_link, None, "form")
    phones = [Phone(walk, link, name) for link, name in zip(links, JUDGES, strict=True)]
    seen = phones[1].page.context.storage_state()
    walk.shoot("judge", f"{walk.server.base}/judge/{STUDY}", seen, "#pair:not([hidden])")
    judge(walk, phones, 3)
    correct(walk, owner)
    walk.shoot("dashboard", f"{walk.server.base}/studies/{STUDY}", state, "#ratings svg")
    void(walk, owner)
    walk.shoot("judges", f"{walk.server.base}/studies/{STUDY}/judges", state, "#panelists tr")
    finish(walk, owner, phones[:-1])
    shoot_end(walk, state, phones)
    tracks(walk, owner, state)
    return {**numbers, "found": walk.found, "pictures": len(list(folder.glob("*.png")))}


def load(walk):
    """Only how large the judge's page is, and how long its first pair takes."""
    owner = Owner(walk.server, owner_key(walk.server, walk.server.owner_token))
    owner.create(STUDY, [{"name": name, "text": text} for name, text in POSTERS.items()], 2)
    (link,) = owner.links(STUDY, *JUDGES[:1])
    owner.close()
    return measure(walk, link)


def main():
    with tempfile.TemporaryDirectory() as data, sync_playwright() as playwright:
        is_load = sys.argv[1:] == ["--load"]
        folder = Path(sys.argv[1] if sys.argv[1:] and not is_load else data)
        folder.mkdir(exist_ok=True)
        server = Server(f"sqlite:///{data}/shortlist.db", data).start()
        browser = launch(playwright)
        try:
            walk = Walk(server, browser, folder)
            print(json.dumps(load(walk) if is_load else play(walk, folder), indent=1))
        finally:
            browser.close()
            server.end()


if __name__ == "__main__":
    main()
