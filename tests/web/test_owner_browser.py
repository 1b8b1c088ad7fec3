"""The owner's pages in a real browser: setting up items, the dashboard live and on a phone, results, presenting."""

from pathlib import Path

import pytest

import shortlist.web
from tests.web.browser import PHONE, Hands, until
from tests.web.server import Owner, Server, owner_key, take, vote
from tests.web.test_browser import sign_in
from tests.web.test_judge_page import axe
from tests.web.test_security import png

pytestmark = pytest.mark.slow
ITEMS = ["ant", "bee", "cat", "dog"]
ACCESS = Path(__file__).with_name("access.js").read_text()
TEMPLATES = Path(shortlist.web.__file__).parent / "templates"
SMALLEST = """() => Math.min(...[...document.querySelectorAll('main *')].filter((e) => e.checkVisibility() &&
  [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) && !e.closest('.hidden, title')).map((e) => {
    const svg = e.closest('svg')
    const scale = svg && e !== svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1
    return parseFloat(getComputedStyle(e).fontSize) * scale }))"""


def prefer(judge, study):
    """One vote for what comes first in the alphabet; False at the end."""
    turn = take(judge, study)
    for question in turn["questions"][:1]:
        vote(judge, question["id"], float(question["first"]["title"] < question["second"]["title"]))
    return turn["state"] == "open"


def text_of(page, place):
    return page.inner_text(place).strip()


def test_items_are_edited_moved_and_removed_before_the_study_is_created(server, owner, open_page, name, tmp_path):
    for item in ("red", "blue", "green"):
        (tmp_path / f"{item}.png").write_bytes(png())
    (tmp_path / "no picture.png").write_bytes(b"nothing")
    (tmp_path / "more.csv").write_text("name,text\nKite,a kiet\n")
    page = sign_in(open_page(), server)
    page.goto(f"{server.base}/new")
    page.fill("#name", name)
    page.fill("#k", "1")
    page.fill("#items", "Tram\nTram")
    assert "Tram is there twice" in text_of(page, "#count")
    page.fill("#items", "Tram")
    page.click("#one-by-one")
    assert page.input_value("#items") == ""
    pictures = [tmp_path / f"{item}.png" for item in ("red", "no picture", "blue", "green")]
    page.set_input_files("#pictures", pictures)  # one of them is refused, with its name
    until(
        page,
        "document.querySelector('#problem').textContent.toLowerCase().includes('no picture.png: this file is not')",
    )
    page.set_input_files("#file", tmp_path / "more.csv")
    page.wait_for_selector("#listed li >> nth=4")
    until(page, "[...document.querySelectorAll('#listed img')].every((picture) => picture.naturalWidth > 0)")
    page.click("#listed li:nth-child(3) .remove")  # blue
    page.fill("#listed li:nth-child(4) textarea", "a kite")
    page.click("#listed li:nth-child(4) .up")
    assert text_of(page, "#count") == "4 items"
    page.click("button[type=submit]")
    page.wait_for_url("**/studies/*")
    assert [item["name"] for item in owner.look(name)["items"]] == ["Tram", "red", "Kite", "green"]


def test_a_large_file_has_time_and_a_refusal_of_the_proxy_is_explained(server, open_page, tmp_path):
    """A film of 20 MB takes more than 20 seconds on the network of a hall; nginx refuses with a page of its own."""
    (tmp_path / "film.mp4").write_bytes(b"0000ftypisom")
    page = open_page()
    page.add_init_script("""const timeout = AbortSignal.timeout.bind(AbortSignal)
      AbortSignal.timeout = (ms) => { window.longest = Math.max(window.longest ?? 0, ms); return timeout(ms) }""")
    sign_in(page, server)
    page.goto(f"{server.base}/new")
    page.route("**/api/uploads", lambda route: route.fulfill(status=413, body="<html>413</html>"))
    page.set_input_files("#pictures", tmp_path / "film.mp4")
    until(page, "document.querySelector('#problem').textContent.includes('too large to be sent')")
    assert page.evaluate("window.longest") >= 300_000


def test_an_item_is_withdrawn_after_the_first_vote(server, owner, open_page, name):
    """The answer is then among the others, the price is on the page, and judges see the item no more."""
    owner.create(name, ITEMS, 1, delta=0.2, min_judges=1)
    (ann,) = owner.judges(name, "Ann")
    while prefer(ann, name):
        pass
    page = sign_in(open_page(), server)
    page.goto(f"{server.base}/studies/{name}")
    until(page, "document.querySelector('#sentence').textContent.startsWith('Proved: ant')")
    page.click("#edit-items")
    page.click("#edit-list li:first-child button >> text=Withdraw")
    page.click("#confirm-ok")
    until(page, "document.querySelector('#edit-list li').textContent.includes('withdrawn')")
    assert axe(page) == []
    page.click("#edit-cancel")
    while prefer(ann, name):
        pass
    until(page, "document.querySelector('#sentence').textContent.startsWith('Proved: bee is the best of 3')")
    assert "a top 1 and a top 2" in text_of(page, "#sentence")
    assert "40 %" in text_of(page, "#sentence")  # 0.2 (1 + 1/1)
    assert "Withdrawn: 'ant' after" in text_of(page, "#caveats")
    assert "withdrawn" in text_of(page, "#ratings li:last-child")
    assert not [row for row in owner.look(name)["recent"][:3] if "ant" in (row["first"], row["second"])]


def test_the_dashboard_follows_by_itself(server, owner, open_page, name):
    """Its clock stands still: what it shows, it was told."""
    owner.create(name, ITEMS, delta=0.2)
    (ann,) = owner.judges(name, "Ann")
    page = sign_in(open_page(), server)
    page.goto(f"{server.base}/studies/{name}")
    until(page, "document.querySelector('#sentence').textContent.startsWith('No votes yet')")
    assert text_of(page, "#filled-text") == "0 % of the proof is filled"
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 1)
    while prefer(ann, name):
        pass
    until(page, "document.querySelector('#sentence').textContent.startsWith('Proved: ant is the best of 4')")
    assert text_of(page, "#filled-text") == "100 % of the proof is filled"
    words = page.inner_text("main").lower()
    for word in ("utility", "edge theorem", "ledger", "nats"):
        assert word not in words
    owner.http.post(f"/api/studies/{name}/judges", json={"names": ["Bob"]})
    page.wait_for_selector("#judges tr >> nth=1")  # what others do with the study is seen too


def test_a_dashboard_that_loads_slowly_rests_before_the_next_look(server, owner, open_page, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    page, looks = sign_in(open_page(), server), []
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 1)

    def slow(route):
        looks.append(route.request.url)
        page.clock.fast_forward(1000)
        route.continue_()

    page.route(f"**/api/studies/{name.replace(' ', '%20')}", slow)
    page.goto(f"{server.base}/studies/{name}")
    until(page, "document.querySelector('#sentence').textContent.startsWith('No votes yet')")
    before = len(looks)
    for _ in range(2):
        prefer(ann, name)
    page.wait_for_timeout(300)
    assert len(looks) == before  # it was told, and rests
    page.clock.fast_forward(3000)
    until(page, "document.querySelector('#activity').textContent.includes('Ann')")
    assert len(looks) == before + 1


def test_a_page_that_is_not_up_to_date_says_so(browser, tmp_path):
    server = Server(f"sqlite:///{tmp_path / 's.db'}", tmp_path).start()
    try:
        owner = Owner(server, owner_key(server, server.owner_token))
        owner.create("demo", ITEMS)
        page = browser.new_context().new_page()
        page.goto(server.new_owner_link())
        page.wait_for_url(f"{server.base}/")
        page.goto(f"{server.base}/studies/demo")
        page.wait_for_selector("#ratings svg")
        assert not page.is_visible("#stale")
        assert server.stop() == 0  # though the page still listens
        page.wait_for_selector("#stale:not([hidden])")
        assert "not up to date" in text_of(page, "#stale")
        assert "as it was at" in text_of(page, "#stale")
        server.start()
        page.wait_for_selector("#stale", state="hidden")
        owner.close()
        page.context.close()
    finally:
        server.end()


def test_the_dashboard_can_be_read_on_a_phone(server, owner, open_page, name):
    long = "An item with a rather long name that begins with what matters"
    owner.create(name, [f"{number} {long}" for number in range(11)] + ["Aword" * 40], k=3)
    (ann,) = owner.judges(name, "A judge with a long name as well")
    for _ in range(8):
        prefer(ann, name)
    page = sign_in(open_page(**PHONE), server)
    page.goto(f"{server.base}/studies/{name}")
    page.wait_for_selector("#judges tr")
    page.wait_for_selector("#progress-plot svg")
    assert page.evaluate(SMALLEST) >= 12
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out of the screen"
    first = page.locator("#ratings .name").first
    assert first.evaluate("e => getComputedStyle(e).textOverflow") == "ellipsis"  # cut at its end, not at its start
    assert first.bounding_box()["x"] >= 0


def test_results_are_published_and_presented(server, owner, open_page, name):
    owner.create(name, ITEMS, k=2, delta=0.2)
    (ann,) = owner.judges(name, "Ann")
    while prefer(ann, name):
        pass
    page, stranger = sign_in(open_page(), server), open_page(**PHONE)
    assert stranger.goto(f"{server.base}/results/{name}").status == 404
    assert stranger.inner_text("main") == "There is no such page\n\nThere are no published results under this name."
    page.goto(f"{server.base}/studies/{name}")
    page.click("#publish")
    page.wait_for_selector("#results-link:not([hidden])")
    assert stranger.goto(f"{server.base}/results/{name}").status == 200
    best, second = owner.look(name)["verdict"]["top"]
    assert {best, second} == {"ant", "bee"}
    said = f"Proved: {best} and {second} are the best 2 of 4"
    until(stranger, "said => document.querySelector('#sentence').textContent.startsWith(said)", said)
    assert stranger.locator("#top li").count() == 2
    assert stranger.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.click("#present")
    page.wait_for_selector("#top li")
    assert page.inner_text("#top").split() == ["?", "?"]
    page.click("#reveal")
    assert page.inner_text("#top").split() == ["?", second]
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#top").split() == [best, second]
    assert text_of(page, "#sentence").startswith(said)


@pytest.mark.parametrize(
    ("items", "k", "judges", "claim", "said"),
    [
        (12, 1, 50, "public", "at least 77 % of votes"),
        (8, 3, 100, "public", "at least 88 % of votes"),
        (12, 3, 200, "public", "at least 69 % of votes"),
        (12, 1, 20, "public", "the likely answer and no proof"),
        (12, 3, 10, "each", "about 840 votes in all, 84 for each of 10 judges"),
        (40, 3, 10, "each", ""),
    ],
)
def test_an_organiser_hears_what_to_expect_before_the_first_vote(server, open_page, items, k, judges, claim, said):
    """The cells of docs/guides/public.md: the least gap at which half of the events end with a proof."""
    page = sign_in(open_page(), server)
    page.goto(f"{server.base}/new")
    page.fill("#items", "\n".join(f"item {number}" for number in range(items)))
    page.fill("#k", str(k))
    page.check(f"[name=judges_claim][value={claim}]")
    page.fill("#judges", str(judges))
    assert said in page.inner_text("#advice") if said else not page.is_visible("#advice")


def test_items_are_changed_on_the_dashboard(server, owner, open_page, name):
    owner.create(name, ["Kiet", "Tram", "Bus"])
    (ann,) = owner.judges(name, "Ann")
    page = sign_in(open_page(), server)
    page.goto(f"{server.base}/studies/{name}")
    page.wait_for_selector("#ratings svg")
    page.click("#edit-items")
    page.click("#edit-list li:nth-child(3) .remove")
    page.click("#edit-add")
    page.keyboard.type("Ferry")
    page.click("#edit-add")
    page.keyboard.type("Walk")
    page.fill("#edit-k", "2")
    page.click("#edit-save")
    until(page, "[...document.querySelectorAll('#ratings .name')].some((name) => name.textContent === 'Walk')")
    assert owner.look(name)["settings"]["k"] == 2
    prefer(ann, name)
    page.click("#edit-items")
    page.wait_for_selector("#edit[open]")
    assert not page.is_visible("#edit-add")
    page.fill("#edit-list li:nth-child(1) input", "Kite")
    page.click("#edit-save")
    until(page, "[...document.querySelectorAll('#ratings .name')].some((name) => name.textContent === 'Kite')")
    assert [item["name"] for item in owner.look(name)["items"] if item["title"] == "Kite"] == ["Kiet"]


def test_a_new_study_from_an_old_one(server, owner, open_page, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    for _ in range(4):
        prefer(ann, name)
    page = sign_in(open_page(), server)
    page.goto(f"{server.base}/studies/{name}")
    page.click("text=New study from this one")
    page.wait_for_selector("#listed li >> nth=3")
    page.fill("#name", f"{name} 2")
    page.fill("#items", "eel")
    page.fill("#k", "1")
    page.check("[name=takes_over]")
    page.click("button[type=submit]")
    page.wait_for_url("**/studies/*2")
    until(page, "document.querySelector('#caveats').textContent.includes('taken over')")
    board = owner.look(f"{name} 2")
    assert (board["counts"]["counted"], len(board["items"])) == (owner.look(name)["counts"]["counted"], 5)


def test_judges_see_that_a_study_is_open_again(owner, open_page, name):
    owner.create(name, ITEMS)
    page = open_page()
    hands = Hands(page, owner.links(name, "Ann")[0])
    hands.answer(1)
    hands.sent()
    owner.http.put(f"/api/studies/{name}/state", json={"state": "closed"})
    hands.answer(1)
    hands.sent()
    page.wait_for_selector("#end:not([hidden])")
    owner.http.put(f"/api/studies/{name}/state", json={"state": "open"})
    page.clock.fast_forward(60_000)
    page.wait_for_selector("#pair:not([hidden])")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(server, owner, open_page, name, scheme):
    """Every template, wide and light or on a phone and dark, and the dialogs of the dashboard. And every control has a
    name, and every text a contrast of at least 4.5 (AA)."""
    owner.create(name, ITEMS, k=2)
    (ann,) = owner.judges(name, "Ann")
    for _ in range(4):
        prefer(ann, name)
    owner.http.put(f"/api/studies/{name}/published", json={"published": True})
    event = {"name": f"{name} event", "k": 1, "items": [{"name": item, "track": "Art"} for item in ITEMS]}
    assert owner.http.post("/api/events", json=event).status_code == 201
    links = {part: owner.http.post(f"/api/studies/{name}/{part}-link").json()["link"] for part in ("viewer", "open")}
    look = {"color_scheme": scheme, "reduced_motion": "reduce", **(PHONE if scheme == "dark" else {})}
    page, viewer, judge = (open_page(**look) for _ in range(3))
    assert examined_at(judge, server.base, "h1") == []  # a stranger
    sign_in(page, server)
    addresses = {
        "home": ("/", "#studies li"), "study": (f"/studies/{name}", "#progress-plot svg"),
        "results": (f"/results/{name}", "#top li"), "present": (f"/present/{name}", "#top li"),
        "new": (f"/new?from={name}", "#listed li >> nth=3"), "docs": ("/docs", "#schemas table"),
        "judges": (f"/studies/{name}/judges", "#panelists tr"), "event": (f"/events/{name} event", "#tracks li"),
    }  # fmt: skip
    for path, sign in addresses.values():
        assert examined_at(page, server.base + path, sign) == []
    assert examined_at(judge, links["open"], "#who:not([hidden])") == []
    judge.fill("#name", "Bob")
    judge.keyboard.press("Enter")
    judge.wait_for_selector("#pair:not([hidden])")
    assert examined(judge) == []
    assert examined_at(viewer, links["viewer"], "#progress-plot svg") == []
    assert examined_at(viewer, f"{server.base}/results/{name} event", "h1") == []
    assert {*addresses, "problem", "stranger", "join", "judge", "base"} == {
        file.stem
        for file in TEMPLATES.glob("[!_]*.html")  # parts of pages begin with _
    }
    page.goto(f"{server.base}/studies/{name}")
    page.click("#recent button >> nth=0")
    assert axe(page) == []
    page.click("#confirm button:not(.danger)")
    page.click("#edit-items")
    page.wait_for_selector("#edit[open]")
    assert axe(page) == []


def examined_at(page, address, sign):
    page.goto(address)
    page.wait_for_selector(sign)
    if address.endswith("/docs"):  # axe takes long for a thousand lines that are made by the same few
        page.evaluate("for (const e of document.querySelectorAll('.operation:nth-child(n+9)')) e.remove()")
        page.evaluate("for (const e of document.querySelectorAll('#schemas > :nth-child(n+20)')) e.remove()")
    return examined(page)


def examined(page):
    """What axe finds, and what it allows: texts whose contrast is below 4.5, however large, and more than one h1."""
    assert page.evaluate("document.documentElement.lang") == "en"
    assert page.locator("h1").count() == 1
    assert page.evaluate(ACCESS) == {"unnamed": [], "faint": []}
    return axe(page)


def test_tracks_are_set_up_judged_and_seen_together(server, owner, open_page, name):
    page = sign_in(open_page(), server)
    page.goto(f"{server.base}/new")
    page.fill("#name", name)
    page.fill("#k", "1")
    page.fill("#items", "# Art\nant\nbee\n# Code\nant\ncat")
    assert text_of(page, "#tracks").startswith("2 tracks: Art, Code.")
    assert text_of(page, "#count") == "4 items"
    page.click("button[type=submit]")
    page.wait_for_url("**/events/*")
    page.fill("#names", "Ann, ann@example.org\nBob: Code")
    page.click("#add button[type=submit]")
    page.wait_for_selector("#sheet li >> nth=2")
    assert page.locator("#sheet svg").count() == 3
    assert axe(page) == []
    link = page.inner_text("#sheet li:first-child .secret")
    hands = Hands(open_page(), link)
    hands.ready()
    hands.prefer()
    hands.sent()
    until(page, "document.querySelector('#tracks li').textContent.includes('1 vote') || document.hidden")
    page.goto(server.base)
    page.wait_for_selector(f"text=All tracks of {name}")
