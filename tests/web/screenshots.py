"""The pictures of the docs: python -m tests.web.screenshots [report | pages]"""

import math
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.web.browser import PHONE, Hands, launch
from tests.web.server import Owner, Unlimited, owner_key, take, vote

DOCS = Path(__file__).parent.parent.parent / "docs" / "images"
WORDS = [
    "Tram", "Lantern", "Harbour", "Orchard", "Compass", "Kite", "Meadow", "Anchor", "Beacon", "Willow", "Pebble",
    "Ember",
]  # fmt: skip
TEXT = "{} in **two colours**, with\n\n- a short title\n- the date below"
PROPOSALS = [{"name": f"{word} poster", "format": "markdown", "text": TEXT.format(word)} for word in WORDS]


def judge(client, name, votes, draws):
    """Somebody who likes the first words of the list better, mostly."""
    turn = take(client, name)
    for _ in range(votes):
        if turn["state"] != "open":
            return
        question = turn["questions"][0]
        first, second = (WORDS.index(question[side]["title"].split()[0]) for side in ("first", "second"))
        outcome = float(draws.random() < 1 / (1 + math.exp(0.5 * (first - second))))
        turn = vote(client, question["id"], outcome, 1).json()["next"]


def main(which):
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        if which != ["report"]:
            shoot_pages(folder, playwright)
        if which != ["pages"]:
            shoot_report(folder, playwright)


def shoot_report(folder, playwright):
    """The report of the demo, down to its first figure."""
    file = Path(folder) / "report.html"
    subprocess.run([sys.executable, "-m", "shortlist", "demo", "--out", str(file)], check=True, capture_output=True)
    browser = launch(playwright)
    page = browser.new_context(viewport={"width": 760, "height": 600}).new_page()
    page.goto(file.as_uri())
    box = page.locator("figure, main img, main svg").first.bounding_box()
    clip = {"x": 0, "y": 0, "width": 760, "height": box["y"] + box["height"] + 12}
    page.screenshot(path=DOCS / "report.png", clip=clip, full_page=True)
    browser.close()


def shoot_pages(folder, playwright):
    server = Unlimited(f"sqlite:///{folder}/s.db", folder).start()
    browser = launch(playwright)
    try:
        shoot(server, browser)
        shoot_results_and_event(server, browser)
    finally:
        browser.close()
        server.stop()


def shoot(server, browser):
    owner = Owner(server, owner_key(server, server.new_owner_link().partition("#")[2]))
    name = "Summer poster"
    owner.create(name, PROPOSALS, 3, instructions="Which would you rather see in the street?", seed=4)
    judges, draws = owner.judges(name, "Ann", "Bob", "Cleo"), random.Random(1)
    for _ in range(200):
        board = owner.look(name)
        if board["verdict"]["done"] or board["filled"] > 0.4:
            break
        for client in judges:
            judge(client, name, 3, draws)
    page = browser.new_context(viewport={"width": 1000, "height": 1300}).new_page()
    page.goto(server.new_owner_link())
    page.wait_for_url(f"{server.base}/")
    page.goto(f"{server.base}/studies/{name}")
    page.wait_for_selector("#ratings svg")
    page.wait_for_timeout(500)
    page.screenshot(path=DOCS / "web-dashboard.png")
    page.goto(f"{server.base}/present/{name}")
    page.wait_for_selector("#top li")
    page.click("#reveal")
    page.click("#reveal")
    page.set_viewport_size({"width": 1000, "height": 620})
    page.screenshot(path=DOCS / "web-present.png")
    small = browser.new_context(**{**PHONE, "device_scale_factor": 1.5}).new_page()
    small.goto(server.new_owner_link())
    small.wait_for_url(f"{server.base}/")
    small.goto(f"{server.base}/studies/{name}")
    small.wait_for_selector("#ratings svg")
    small.screenshot(path=DOCS / "web-dashboard-phone.png")
    links = owner.http.post(f"/api/studies/{name}/judges", json={"names": ["Dan", "Eve"]}).json()["links"]
    page.goto(f"{server.base}/studies/{name}/judges")
    page.fill("#names", "Fay, fay@example.org\nGus\nHal")
    page.click("text=Make links")
    page.wait_for_selector("#sheet svg >> nth=2")
    page.locator("#sheet-part").screenshot(path=DOCS / "web-judges.png")
    wide = browser.new_context(viewport={"width": 1000, "height": 620}).new_page()
    Hands(wide, links[0]["link"]).ready()
    wide.screenshot(path=DOCS / "web-judge.png")
    phone = browser.new_context(**{**PHONE, "device_scale_factor": 1.5}, color_scheme="dark").new_page()
    Hands(phone, links[1]["link"]).ready()
    phone.screenshot(path=DOCS / "web-phone.png")
    owner.close()


def shoot_results_and_event(server, browser):
    """A study from which an item was withdrawn, when it is proved, and an event with two tracks."""
    owner = Owner(server, owner_key(server, server.new_owner_link().partition("#")[2]))
    name, event = "Poster contest", "Hack day"
    owner.create(name, WORDS[:6], 2, seed=1)
    judges, draws = owner.judges(name, "Ann", "Bob", "Cleo"), random.Random(1)
    for client in judges:
        judge(client, name, 6, draws)
    owner.http.post(f"/api/studies/{name}/items/withdraw", json={"item": WORDS[5]})
    while not owner.look(name)["verdict"]["done"]:
        for client in judges:
            judge(client, name, 5, draws)
    owner.http.put(f"/api/studies/{name}/published", json={"published": True})
    tracks = {"Design": ["Robot arm", "Smart mirror", "Solar bag"], "Code": ["Bus finder", "Chess tutor"]}
    items = [{"name": item, "track": track} for track, listed in tracks.items() for item in listed]
    owner.http.post("/api/events", json={"name": event, "k": 1, "items": items})
    page = browser.new_context(viewport={"width": 900, "height": 500}).new_page()
    page.goto(server.new_owner_link())
    page.wait_for_url(f"{server.base}/")
    for address, place, sign in (("results", name, "#top li"), ("events", event, "#tracks li")):
        page.goto(f"{server.base}/{address}/{place}")
        page.wait_for_selector(sign)
        page.screenshot(
            path=DOCS / f"web-{address.removesuffix('s') if place == event else address}.png", full_page=True
        )
    owner.close()


if __name__ == "__main__":
    main(sys.argv[1:])
