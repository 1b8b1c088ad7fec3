# ruff: noqa: F811 - the fixtures are those of test_browser.py
"""The judge's page and the owner's page of judges in a real browser: what must not go wrong at an event."""

import csv
import re
from pathlib import Path

import axe_playwright_python
import pytest

from shortlist import load_study
from tests.web.browser import PHONE, Hands, settle, until
from tests.web.server import take, vote
from tests.web.test_browser import ITEMS, kept, link, number_of, sign_in  # noqa: F401
from tests.web.test_security import png

pytestmark = pytest.mark.slow
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
CODE = "```\n" + "a long line of code " * 30 + "\n```"


def axe(page):
    """What axe finds on the page."""
    page.evaluate(AXE)
    found = page.evaluate("async () => (await axe.run()).violations")
    return [(rule["id"], [node["html"][:120] for node in rule["nodes"]]) for rule in found]


def test_why_an_answer_does_not_count_stays_readable(server, owner, open_page, link, name):
    page = open_page()
    hands = Hands(page, link)
    question, study = hands.ready(), load_study(name, server.storage)
    study.show(number_of(question), lease=-1)
    study.close_due()  # another judge's request
    hands.answer(1)
    hands.sent()
    for _ in range(2):
        hands.answer(1)
    hands.sent()
    page.clock.fast_forward(60_000)
    assert "came after its time was over" in page.inner_text("#notices")
    assert axe(page) == []
    page.click("#more")
    until(page, "document.querySelector('#my-answers').textContent.includes('does not count')")
    page.click("#mine-close")
    page.click("#notices button")
    assert page.locator("#notices li").count() == 0


@pytest.mark.parametrize(
    ("status", "body"), [(502, ""), (403, "<html>Sign in to the network</html>"), (200, "<html></html>"), (200, "")]
)
def test_what_a_proxy_or_a_network_says_is_no_refusal(server, open_page, link, name, status, body):
    """While the service starts again, Caddy answers 502 with nothing in it."""
    page = open_page()
    hands = Hands(page, link)
    hands.ready()
    page.route("**/vote", lambda route: route.fulfill(status=status, body=body), times=1)
    hands.answer(1)
    page.wait_for_selector("#network:not([hidden])")
    page.clock.fast_forward(2000)
    hands.sent()
    assert page.locator("#notices li").count() == 0
    assert kept(server, name) == {(question, outcome, "Ann") for question, outcome in hands.said}


def test_answers_are_kept_when_a_link_ends_before_they_are_sent(server, owner, open_page, link, name):
    page = open_page()
    hands = Hands(page, link)
    hands.ready()
    page.context.set_offline(True)
    hands.answer(1)
    hands.answer(0)
    owner.http.post(f"/api/studies/{name}/judges/revoke", json={"judge": "Ann"})
    page.context.set_offline(False)
    until(page, "document.querySelector('#message').textContent.includes('before your last 2 answers were sent')")
    assert not kept(server, name)
    page.goto(owner.http.post(f"/api/studies/{name}/judges/link", json={"judge": "Ann"}).json()["link"])
    page.wait_for_url("**/judge/*")
    hands.ready()
    hands.sent()
    assert kept(server, name) == {(question, outcome, "Ann") for question, outcome in hands.said}


def test_a_phone_that_slept_too_long_says_so_when_it_wakes(server, open_page, link, name):
    page = open_page(**PHONE)
    hands = Hands(page, link, "phone")
    question, study = hands.ready(), load_study(name, server.storage)
    study.show(number_of(question), lease=-1)
    study.close_due()
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_selector("#notices li")
    assert "this page was away for too long" in page.inner_text("#notices")
    assert hands.ready() not in (None, question)


def test_an_item_that_is_withdrawn_while_it_is_shown(server, owner, open_page, link, name):
    """The pair stays on the screen, and its answer is kept; the next pair is replaced if it is about the item."""
    page = open_page()
    hands = Hands(page, link)
    question, (item, _) = hands.ready(), hands.titles()
    owner.http.post(f"/api/studies/{name}/items/withdraw", json={"item": item})
    with page.expect_response("**/show"):  # the page looks whether the next pair is still needed
        page.clock.fast_forward(20_000)
    assert hands.answer(1) == question
    hands.sent()
    assert kept(server, name) == {(question, 1.0, "Ann")}
    for _ in range(3):
        assert hands.ready()
        assert item not in hands.titles()
        hands.answer(1)
        hands.sent()
    assert page.locator("#notices li").count() == 0


def test_a_judge_who_is_not_let_in_and_one_who_comes_too_late(owner, open_page, name):
    owner.create(name, ITEMS)
    limits = {"approve": True, "max_judges": 1}
    link = owner.http.post(f"/api/studies/{name}/open-link", json=limits).json()["link"]
    pages = [open_page(**PHONE), open_page(**PHONE)]
    for page, who in zip(pages, ("Eve 🎉 שלום", "Bob"), strict=True):
        page.goto(link)
        page.fill("#name", who)
        page.keyboard.press("Enter")
        page.wait_for_selector("#end:not([hidden]), #problem:not(:empty)")
    assert "The organiser lets judges in" in pages[0].inner_text("#message")
    assert "all 1 places of this link are taken" in pages[1].inner_text("#problem").lower()
    given = {"judges": ["Eve 🎉 שלום"], "admit": False}
    assert owner.http.post(f"/api/studies/{name}/judges/admit", json=given).status_code == 200
    pages[0].clock.fast_forward(3000)
    until(pages[0], "document.querySelector('#message').textContent.includes('has not let you in')")
    pages[1].click("button[type=submit]")  # the place is free again
    pages[1].wait_for_selector("#end:not([hidden])")


def test_a_waiting_pair_that_became_useless_is_replaced_before_it_is_shown(server, owner, open_page, name):
    owner.create(name, ["ant", "bee", "cat"], delta=0.2)
    (link,) = owner.links(name, "Ann")
    page = open_page()
    hands = Hands(page, link)
    on_screen = hands.ready()
    hands.sent()
    study = load_study(name, server.storage)
    study.skip(next(held for held in study.pending_of("judge #1") if held.id != number_of(on_screen)))
    waiting = study.ask(judge="judge #1", pair=("ant", "cat"), lease=600, shown=False)
    for _ in range(40):
        study.tell(study.ask(judge="Bob", pair=("ant", "cat")), winner="ant")
    with page.expect_response("**/show"):
        page.clock.fast_forward(20_000)
    study.refresh()
    assert study.row(waiting.id).reason == "no longer needed"
    assert hands.answer(1) == on_screen
    assert hands.question != f"{name}.{waiting.id}"


def test_a_reason_that_is_typed_is_the_reason(server, owner, open_page, link, name):
    page = open_page()
    hands = Hands(page, link)
    question = hands.ready()
    settle(page)
    page.keyboard.press("s")
    page.fill("#reason", "the photo is upside down")
    page.keyboard.press("Enter")
    hands.moved(question)
    hands.sent()
    row = load_study(name, server.storage).row(number_of(question))
    assert (row.status, row.reason) == ("skipped", "other")
    page.click("summary")
    page.fill("#note", "brighter colours")
    question = hands.ready()
    settle(page)
    page.click(".choose >> nth=0")
    hands.moved(question)
    hands.sent()
    load_study(name, server.storage).settle()
    judges = sign_in(open_page(), server)
    judges.goto(f"{server.base}/studies/{name}/judges")
    until(judges, "document.querySelector('#remarks').textContent.includes('upside down')")
    assert "brighter colours" in judges.inner_text("#remarks")


def test_an_interest_is_declared_in_the_dialog(server, owner, open_page, link, name):
    page = open_page()
    hands = Hands(page, link)
    question, (item, _) = hands.ready(), hands.titles()
    settle(page)
    page.keyboard.press("s")
    page.click("text=I have an interest in A")
    hands.moved(question)
    for _ in range(4):
        assert hands.ready()
        assert item not in hands.titles()
        hands.answer(1)
        hands.sent()


def test_nothing_but_an_answer_is_taken_for_one(server, owner, open_page, name):
    """Keys in a code block, clicks on a picture, selected text, and what scrolls by itself."""
    uploaded = owner.http.post("/api/uploads", files={"file": ("x.png", png(), "image/png")}).json()
    address = next(value for value in uploaded.values() if value.startswith("/uploads/"))
    items = [
        {"name": "code", "text": CODE, "format": "markdown"},
        {"name": "photo", "image": address, "text": "a text"},
    ]
    owner.create(name, items)
    page = open_page()
    hands = Hands(page, owner.links(name, "Ann")[0])
    question = hands.ready()
    settle(page)
    page.focus(".card pre")
    for key in ("ArrowRight", "ArrowLeft", "1"):
        page.keyboard.press(key)
    page.click(".card .picture")
    page.wait_for_selector("#zoom img")  # visible when it is loaded
    assert axe(page) == []
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Escape")
    page.evaluate("getSelection().selectAllChildren(document.querySelectorAll('.card .text')[1])")
    page.keyboard.press("ArrowLeft")
    assert hands.question == question
    page.evaluate("getSelection().removeAllRanges()")
    hands.answer(1)
    hands.sent()
    assert len(kept(server, name)) == 1


def test_two_windows_without_a_network_lose_nothing_and_three_answers_are_taken_back(server, open_page, link, name):
    one = Hands(open_page(), link)
    one.ready()
    context = one.page.context
    other = Hands(context.new_page(), one.page.url)
    assert other.ready() == one.question
    context.set_offline(True)
    first = one.answer(1)
    other.answer(0)  # the same pair: the first answer stays
    second = other.answer(1)  # the next pair, which both windows have
    context.set_offline(False)
    for hands in (one, other):
        hands.sent()
    assert {(question, outcome) for question, outcome, _ in kept(server, name)} == {(first, 1.0), (second, 1.0)}
    one.page.reload()
    one.ready()
    third = one.answer(1)
    one.sent()
    for question in (third, second, first):
        before = one.question
        one.page.keyboard.press("u")
        one.moved(before)
        assert one.question == question
    study = load_study(name, server.storage)
    assert [study.row(number_of(question)).status for question in (first, second, third)] == ["pending"] * 3
    for question in (first, second, third):
        assert one.answer(0) == question
    one.sent()


def swipe(page, card, far):
    page.evaluate("""([card, far]) => {
      const place = document.querySelector(card), { x, y, width } = place.getBoundingClientRect()
      const touch = (dx) => new Touch({ identifier: 1, target: place, clientX: x + width / 2 + dx, clientY: y + 20 })
      const send = (kind, dx, touches) => place.dispatchEvent(new TouchEvent(kind, { bubbles: true, cancelable: true,
        touches: touches ? [touch(dx)] : [], changedTouches: [touch(dx)] }))
      for (const dx of [0, far / 2, far]) send(dx ? 'touchmove' : 'touchstart', dx, true)
      send('touchend', far, false)
    }""", [card, far])  # fmt: skip


def test_a_phone_in_german(server, owner, open_page, name):
    items = [{"name": f"{item} שלום", "text": "טקסט מימין לשמאל"} for item in ITEMS]
    owner.create(name, items, instructions="Welches Plakat?")
    page = open_page(**PHONE, locale="de-DE")
    hands = Hands(page, owner.links(name, "Änn")[0], "phone")
    question = hands.ready()
    assert "A ist besser" in page.inner_text("#buttons")
    assert page.get_attribute("#first .text", "dir") == "auto"
    assert page.evaluate("getComputedStyle(document.querySelector('#first .text')).direction") == "rtl"
    settle(page)
    page.tap("#first .title")  # a tap on the card is not an answer on a phone
    swipe(page, "#first", 40)
    assert hands.question == question
    swipe(page, "#second", 140)
    hands.moved(question)
    hands.sent()
    assert kept(server, name) == {(question, 0.0, "Änn")}
    assert axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.tap("#more")
    page.tap("#finish")
    assert "Danke!" in page.inner_text("#message")
    page.tap("#go-on")
    hands.ready()


def test_at_200_percent_the_cards_can_be_read(owner, open_page, name):
    owner.create(
        name, [{"name": item, "text": "words " * 80} for item in ITEMS], instructions="Choose.", cases=["a case"]
    )
    page = open_page(viewport={"width": 640, "height": 360}, device_scale_factor=2)
    Hands(page, owner.links(name, "Ann")[0]).ready()
    heights = page.evaluate(
        "[...document.querySelectorAll('.card')].map((card) => card.getBoundingClientRect().height)"
    )
    assert min(heights) >= 128
    cut = "[...document.querySelectorAll('.card')].filter((card) => card.scrollHeight > card.clientHeight + 1).length"
    assert page.evaluate(cut) == 0  # all of a card is on the page, which scrolls


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(server, owner, open_page, name, scheme):
    items = [{"name": "code", "text": CODE, "format": "markdown"}, {"name": "b", "text": "B"}, {"name": "c"}]
    owner.create(name, items, blind=True, instructions="Choose.", cases=["a case"])
    ann, bob = owner.judges(name, "Ann", "Bob")
    for judge in (ann, bob):
        question = take(judge, name)["questions"][0]
        vote(judge, question["id"], 1)
        judge.post(
            f"/api/questions/{take(judge, name)['questions'][0]['id']}/vote", json={"skip": "other", "note": "x"}
        )
    token = owner.http.post(f"/api/studies/{name}/open-link", json={"code": "abc", "approve": True}).json()["link"]
    waiting = open_page(color_scheme=scheme)
    waiting.goto(token)
    waiting.wait_for_selector("#who:not([hidden])")
    assert axe(waiting) == []
    waiting.fill("#name", "Cleo")
    waiting.fill("#code", "ABC")
    waiting.keyboard.press("Enter")
    waiting.wait_for_url("**/judge/*")
    waiting.wait_for_selector("#end:not([hidden])")
    assert "The organiser lets judges in" in waiting.inner_text("#message")
    assert axe(waiting) == []
    page = open_page(color_scheme=scheme)
    hands = Hands(page, owner.links(name, "Dan")[0])
    hands.ready()
    assert axe(page) == []
    settle(page)
    page.keyboard.press("s")
    assert axe(page) == []
    page.keyboard.press("Escape")
    page.click("#more")
    assert axe(page) == []
    judges = sign_in(open_page(color_scheme=scheme, **(PHONE if scheme == "dark" else {})), server)
    judges.goto(f"{server.base}/studies/{name}/judges")
    judges.wait_for_selector("#waiting li")
    judges.fill("#names", "Eve, eve@example.org\nFay")
    judges.click("text=Make links")
    judges.wait_for_selector("#sheet svg")
    assert axe(judges) == []
    assert judges.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_links_are_copied_saved_and_printed(server, owner, open_page, name, tmp_path):
    """Over plain http browsers have no clipboard API; then the old way copies, or the page says that it cannot."""
    owner.create(name, ITEMS)
    page = open_page(accept_downloads=True)
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    sign_in(page, server)
    page.goto(f"{server.base}/studies/{name}/judges")
    page.fill("#names", "Ann\nBob, bob@example.org\n=Eve <eve@example.org>")
    page.click("text=Make links")
    page.wait_for_selector("#sheet li >> nth=2")
    links = page.locator("#sheet .secret").all_inner_texts()
    page.click("#sheet-actions button >> nth=0")
    until(page, "document.querySelector('#sheet-actions button').textContent === 'Copied'")
    page.focus("#names")
    page.keyboard.press("Control+v")
    pasted = page.input_value("#names").splitlines()
    assert [line.split("\t") for line in pasted] == [["Ann", links[0]], ["Bob", links[1]], ["=Eve", links[2]]]
    page.evaluate("document.execCommand = () => false")
    page.click("#sheet li button >> nth=0")
    until(page, "document.querySelector('#sheet li button').textContent.startsWith('Copying is not allowed here')")
    assert page.locator("#sheet li").first.inner_text().startswith(f"Ann\n\n{name}")
    page.emulate_media(media="print")
    assert [page.is_visible(part) for part in ("#sheet svg", "#sheet-actions", "#sheet button")] == [True, False, False]
    page.emulate_media(media="null")
    page.fill("#names", "\n".join(f"Judge {number}" for number in range(7)))
    page.click("text=Make links")
    page.wait_for_selector("#sheet li >> nth=9")
    assert (
        len(re.findall(rb"/Type /Page\b", page.pdf(format="A4", prefer_css_page_size=True))) == 2
    )  # nine on a page, and none is empty
    with page.expect_download() as saved:
        page.click("text=Download CSV")
    saved.value.save_as(tmp_path / "links.csv")
    rows = list(csv.reader((tmp_path / "links.csv").read_text().splitlines()))
    assert rows[0] == ["name", "email", "link"]
    assert [row[:2] for row in rows[1:4]] == [["Ann", ""], ["Bob", "bob@example.org"], ["'=Eve", "eve@example.org"]]
    assert page.locator("#sheet svg path").count() == 10


def test_the_owner_lets_in_looks_and_voids(server, owner, open_page, name):
    owner.create(name, ITEMS)
    (eve,) = owner.judges(name, "Eve")
    turn = take(eve, name)
    for _ in range(12):
        turn = vote(eve, turn["questions"][0]["id"], 1, 1).json()["next"]
    token = owner.http.post(f"/api/studies/{name}/open-link", json={"approve": True}).json()["link"]
    cleo = open_page()
    cleo.goto(token)
    cleo.fill("#name", "Cleo")
    cleo.keyboard.press("Enter")
    cleo.wait_for_selector("#end:not([hidden])")
    page = sign_in(open_page(), server)
    page.goto(f"{server.base}/studies/{name}/judges")
    page.click("text=Let all in")
    cleo.clock.fast_forward(3000)
    cleo.wait_for_selector("#pair:not([hidden])")
    assert "Gave 10 answers within" in page.inner_text("#panelists")
    page.fill("#conflicts", "Cleo, Eve: ant, bee")
    page.click("#conflicts-form button")
    until(page, "document.querySelector('#conflicts').value === 'Eve: ant, bee\\nCleo: ant, bee'")
    page.check("input[aria-label='Select Eve']")
    page.click("#void")
    page.wait_for_selector("#confirm[open]")
    assert "12 votes no longer count for the items they preferred" in page.inner_text("#confirm-text")
    page.click("#confirm-ok")
    page.wait_for_selector("#panelists tr.gone")
    assert load_study(name, server.storage).voided == {"judge #1"}
    page.click("button[aria-label='Erase the name of Cleo']")
    page.click("#confirm-ok")
    until(page, "!document.querySelector('#panelists').textContent.includes('Cleo')")


def test_the_page_is_light(server, owner, open_page, name):
    """All that a judge's browser loads until the first pair, below 100 kB."""
    owner.create(name, ITEMS)
    page, sizes = open_page(), []
    page.on("response", lambda response: sizes.append(len(response.body())) if response.ok else None)
    Hands(page, owner.links(name, "Ann")[0]).ready()
    page.wait_for_load_state("networkidle")
    assert 10_000 < sum(sizes) < 100_000
