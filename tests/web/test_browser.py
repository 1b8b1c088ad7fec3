"""Whole studies in a real browser: by keyboard, by mouse and on a phone; lost networks, double clicks, reloads."""

import pytest

from shortlist import load_study
from shortlist.study.sql import Database
from shortlist.web.judges import names_by_key
from shortlist.web.service import study_id
from tests.web.browser import PHONE, Hands, settle, stop_clock, until
from tests.web.test_security import png

pytestmark = pytest.mark.slow
ITEMS = ["ant", "bee", "cat", "dog"]
FEW, LOOSE = ITEMS[:3], 0.4  # a proof after seven or eight answers


@pytest.fixture
def link(owner, name):
    owner.create(name, ITEMS, delta=0.2)
    return owner.links(name, "Ann")[0]


def sign_in(page, server):
    page.goto(server.new_owner_link())
    page.wait_for_url(f"{server.base}/")
    return page


def kept(server, name):
    """Who answered what, as it is stored, with names instead of pseudonyms."""
    history, database = load_study(name, server.storage).rows, Database(server.storage)
    names = names_by_key(database, study_id(database, name))
    database.close()
    return {(f"{name}.{a.question}", a.outcome, names[a.judge]) for a in history if a.outcome is not None}


def number_of(question):
    return int(question.rpartition(".")[2])


def tab_to(page, target):
    """As somebody without a mouse gets there."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("target => document.activeElement === document.querySelector(target)", target):
            return
    raise AssertionError(f"{target} cannot be reached with the Tab key")


def create_by_keyboard(page, name):
    tab_to(page, "a[href='/new']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/new")
    tab_to(page, "#name")
    page.keyboard.type(name)
    tab_to(page, "#items")
    page.keyboard.insert_text("\n".join(FEW))
    tab_to(page, "#k")
    page.keyboard.press("Control+a")
    page.keyboard.type("1")
    tab_to(page, "#delta")
    page.keyboard.press("Control+a")
    page.keyboard.type(str(LOOSE))
    tab_to(page, "input[name=alone]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")


def create_by_hand(page, name):
    page.click("a[href='/new']")
    page.fill("#name", name)
    page.fill("#items", "\n".join(FEW))
    page.fill("#k", "1")
    page.fill("#delta", str(LOOSE))
    page.check("input[value=alone]")
    page.click("button[type=submit]")


@pytest.mark.parametrize("how", ["keyboard", "mouse", "phone"])
def test_a_whole_study(server, open_page, name, how):
    owner = open_page(**(PHONE if how == "phone" else {}))
    sign_in(owner, server)
    (create_by_keyboard if how == "keyboard" else create_by_hand)(owner, name)
    owner.wait_for_url("**/studies/*")
    owner.click("text=Invite and manage judges")
    owner.click("#open-link")
    link = owner.inner_text("#sheet .secret")
    owner.go_back()
    page = open_page(**(PHONE if how == "phone" else {}))
    page.goto(link)
    assert "#" not in page.url  # the secret is out of the address at once
    page.fill("#name", "Ann")
    page.keyboard.press("Enter")
    page.wait_for_url("**/judge/*")
    hands = Hands(page, page.url, how)
    hands.judge_all()
    assert page.inner_text("#message") == "The top 1 is proved. Thank you for your answers."
    assert kept(server, name) == {(question, outcome, "Ann") for question, outcome in hands.said}
    owner.wait_for_selector("#state[data-state=done]")
    assert owner.inner_text("#sentence").startswith(
        "Proved: ant is the best of 3. If there is a top 1 that no other item beats"
    )
    assert owner.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out of the screen"


def test_two_judges_at_once(server, owner, open_page, name):
    owner.create(name, FEW, delta=LOOSE)
    links = zip(("Ann", "Bob"), owner.links(name, "Ann", "Bob"), strict=True)
    hands = {judge: Hands(open_page(), link) for judge, link in links}
    while [hand for hand in hands.values() if hand.ready()]:
        for hand in hands.values():
            hand.prefer()
    for hand in hands.values():
        hand.sent()
    assert kept(server, name) == {(q, outcome, judge) for judge, hand in hands.items() for q, outcome in hand.said}
    assert {hand.page.inner_text("#message") for hand in hands.values()} == {
        "The top 1 is proved. Thank you for your answers."
    }


def test_undo_skip_and_reload(server, open_page, link, name):
    page = open_page()
    hands = Hands(page, link)
    first = hands.answer(1)
    hands.sent()
    before = hands.question
    page.keyboard.press("u")
    hands.moved(before)
    assert hands.question == first  # not settled: the same question is open again
    assert load_study(name, server.storage).row(number_of(first)).status == "pending"
    hands.answer(1)
    hands.sent()
    load_study(name, server.storage).settle()  # as half a minute does
    before = hands.question
    page.keyboard.press("u")
    hands.moved(before)
    page.wait_for_selector("#notices li")
    assert "already counted" in page.inner_text("#notices")
    assert load_study(name, server.storage).row(number_of(first)).status == "undone"
    hands.said.clear()
    hands.answer(0)
    hands.sent()
    question = hands.question
    page.keyboard.press("s")
    page.click("text=Something is missing")
    hands.moved(question)
    hands.sent()
    question = hands.question
    page.reload()
    assert hands.ready() == question
    assert page.inner_text("#answered").startswith("1 answer")
    page.goto(f"{server.base}/docs")
    page.go_back()
    assert hands.ready() == question
    counted = {(q, o) for q, o, _ in kept(server, name)}
    assert counted == {(first, 1.0), *hands.said}  # the one taken back is on record


def test_a_pair_is_kept_while_it_is_on_the_screen(server, open_page, link, name):
    page = open_page()
    hands = Hands(page, link)
    question, study = hands.ready(), load_study(name, server.storage)
    study.show(number_of(question), lease=-1)  # the time is over, and nobody has noticed
    with page.expect_response("**/show") as renewed:
        page.clock.fast_forward(200_000)
    assert renewed.value.ok
    study.close_due()
    assert hands.answer(1) == question
    hands.sent()
    study.refresh()
    assert study.row(number_of(question)).status == "answered"
    assert study.is_shown(number_of(hands.question))


def test_keys_do_nothing_while_writing(open_page, link, owner, name):
    page = open_page()
    hands = Hands(page, link)
    question = hands.ready()
    settle(page)
    page.keyboard.press("s")
    page.fill("#reason", "")
    page.type("#reason", "1 2 t u s")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+1")
    assert hands.question == question
    assert owner.look(name)["verdict"]["votes"] == 0


def test_a_double_click_is_one_vote(server, open_page, link, name):
    page = open_page()
    hands = Hands(page, link, "mouse")
    question = hands.ready()
    stop_clock(page)  # else a slow machine makes two single clicks of it
    page.dblclick("#first")
    hands.moved(question)
    hands.sent()
    assert kept(server, name) == {(question, 1.0, "Ann")}


def test_ten_seconds_offline_lose_nothing(server, open_page, link, name):
    page = open_page()
    hands = Hands(page, link)
    hands.answer(1)
    hands.sent()
    page.context.set_offline(True)
    hands.answer(0)
    hands.answer(1)  # the next pair was here already
    page.wait_for_selector("#network:not([hidden])")
    assert "saved" in page.inner_text("#network")
    page.clock.fast_forward(10_000)
    assert len(kept(server, name)) == 1
    page.context.set_offline(False)
    hands.sent()
    hands.answer(1)
    hands.sent()
    assert kept(server, name) == {(question, outcome, "Ann") for question, outcome in hands.said}


def test_answers_that_wait_survive_a_reload(server, open_page, link, name):
    page = open_page()
    hands = Hands(page, link)
    hands.ready()
    page.route("**/vote", lambda route: route.abort())
    hands.answer(1)
    page.wait_for_selector("#network:not([hidden])")
    page.unroute("**/vote")
    page.reload()
    hands.ready()
    hands.sent()
    assert kept(server, name) == {(question, outcome, "Ann") for question, outcome in hands.said}


def test_an_answer_whose_reply_was_lost_counts_once(server, open_page, link, name):
    page, lost = open_page(), []

    def swallow(route):
        lost.append(route.fetch())
        route.abort()

    hands = Hands(page, link)
    hands.ready()
    page.route("**/vote", swallow, times=1)
    hands.answer(1)
    hands.sent()
    assert lost[0].ok
    assert kept(server, name) == {(question, outcome, "Ann") for question, outcome in hands.said}


def test_two_windows_of_one_judge(server, open_page, link, name):
    one = Hands(open_page(), link)
    one.ready()
    other = Hands(one.page.context.new_page(), one.page.url)
    assert one.ready() == other.ready()
    one.answer(1)
    one.sent()
    other.answer(0)
    other.page.wait_for_selector("#notices li")
    other.sent()
    assert kept(server, name) == {(question, outcome, "Ann") for question, outcome in one.said}


def test_the_owner_takes_back_and_voids(server, owner, open_page, link, name):
    hands = Hands(open_page(), link)
    hands.answer(1)
    hands.answer(1)
    hands.sent()
    load_study(name, server.storage).settle()  # as half a minute does
    page = sign_in(open_page(), server)
    page.goto(f"{server.base}/studies/{name}")
    page.click("#recent button >> nth=0")
    assert "The vote no longer counts for the preferred item" in page.inner_text("#confirm-text")
    page.click("#confirm-ok")
    page.wait_for_selector("#recent tr.gone")
    page.click("text=Void")
    page.click("#confirm-ok")
    page.wait_for_selector("#judges tr.gone")
    assert owner.look(name)["verdict"]["votes"] == 0
    hands.answer(1)
    hands.page.wait_for_selector("#end:not([hidden])")
    assert "ended" in hands.page.inner_text("#message")


def test_the_owner_changes_the_limits(server, owner, open_page, name):
    owner.create(name, ITEMS, max_votes=2)
    (link,) = owner.links(name, "Ann")
    hands = Hands(open_page(), link)
    hands.answer(1)
    hands.answer(1)
    hands.sent()
    load_study(name, server.storage).settle()
    page = sign_in(open_page(), server)
    page.goto(f"{server.base}/studies/{name}")
    until(page, "document.querySelector('#state').textContent === 'done'")
    assert page.input_value("#limit-votes") == "2"
    page.fill("#limit-votes", "50")
    page.clock.fast_forward(5000)  # what is typed stays while the page reads the study again
    page.click("#limits button")
    until(page, "document.querySelector('#state').textContent === 'open'")
    page.fill("#limit-delta", "0.01")
    page.click("#limits button")
    assert "a proof still states the largest value" in page.inner_text("#confirm-text")
    page.click("#confirm-ok")
    until(page, "document.querySelector('#claims').textContent.includes('was lowered to 0.01')")
    page.fill("#limit-delta", "0.2")
    page.click("#limits button")
    page.click("#confirm-ok")
    until(page, "document.querySelector('#limits-problem').textContent.includes('can only be made smaller')")
    settings = owner.look(name)["settings"]
    assert (settings["max_votes"], settings["delta"]) == (50, 0.01)


def test_a_claim_about_cases_is_offered_where_there_are_cases(server, owner, open_page, name):
    page = sign_in(open_page(), server)
    page.goto(f"{server.base}/new")
    page.fill("#name", name)
    page.fill("#items", "a\nb\nc")
    page.fill("#k", "1")
    assert not page.is_visible("#cases-claim")
    page.fill("#cases", "one\ntwo")
    page.check("input[value='like these']")
    page.click("text=Create study")
    page.wait_for_url(f"{server.base}/studies/*")
    assert owner.look(name)["settings"]["cases_claim"] == "like these"


def test_the_owner_says_how_many_judges_a_proof_needs(server, owner, open_page, name):
    page = sign_in(open_page(), server)
    for part, choose, number in (("a", lambda: None, 2), ("b", lambda: page.fill("#min_judges", "3"), 3),
                                 ("c", lambda: page.check("input[value=alone]"), 1),
                                 ("d", lambda: page.fill("#tolerance", "0.1"), 1)):  # fmt: skip
        page.goto(f"{server.base}/new")
        page.fill("#name", f"{name} {part}")
        page.fill("#items", "a\nb\nc")
        page.fill("#k", "1")
        choose()
        assert page.is_visible("#min_judges") == (number > 1)
        page.click("text=Create study")
        page.wait_for_url(f"{server.base}/studies/*")
        assert owner.look(f"{name} {part}")["settings"]["min_judges"] == number
    page.goto(f"{server.base}/studies/{name} a")
    until(page, "document.querySelector('#limit-judges').value === '2'")
    page.fill("#limit-judges", "1")
    page.click("#limits button")
    until(page, "document.querySelector('#settings').textContent.includes('one judge is enough for a proof')")
    assert owner.look(f"{name} a")["settings"]["min_judges"] == 1


def test_nothing_that_people_write_is_run(server, owner, open_page, name):
    attack = "<img src=x onerror='window.ran = 1'><script>window.ran = 1</script>"
    items = [{"name": f"{attack} {i}", "text": f"{attack} [x](javascript:window.ran=1)", "format": f}
             for i, f in enumerate(("text", "markdown", "text"))]  # fmt: skip
    owner.create(name, items, instructions=attack, cases=[attack])
    (link,) = owner.links(name, attack[:55])
    hands = Hands(open_page(), link)
    for _ in range(3):
        hands.answer(1)
        assert hands.page.locator("#pair img:visible, #pair script, #pair a[href^=javascript]").count() == 0
    hands.sent()
    load_study(name, server.storage).settle()
    page = sign_in(open_page(), server)
    page.wait_for_selector("#studies li")
    page.goto(f"{server.base}/studies/{name}")
    page.wait_for_selector("#recent tr")
    for seen in (hands.page, page):
        assert seen.evaluate("window.ran") is None
        assert seen.inner_text("body").count("<script>") > 0  # shown as what it is


def test_pictures_are_uploaded_and_shown(server, owner, open_page, name, tmp_path):
    for item in ("red", "blue"):
        (tmp_path / f"{item}.png").write_bytes(png())
    page = sign_in(open_page(), server)
    page.goto(f"{server.base}/new")
    page.fill("#name", name)
    page.fill("#k", "1")
    page.set_input_files("#pictures", [tmp_path / "red.png", tmp_path / "blue.png"])
    page.wait_for_selector("#listed li >> nth=1")
    assert page.inner_text("#count") == "2 items"
    page.check("[name=blind]")
    page.click("button[type=submit]")
    page.wait_for_url("**/studies/*")
    (link,) = owner.links(name, "Ann")
    hands = Hands(open_page(), link)
    hands.ready()
    assert hands.titles() == ["", ""]
    until(hands.page, "() => [...document.querySelectorAll('.card img')].every((image) => image.naturalWidth > 0)")


def test_a_page_without_a_session_shows_nothing(server, open_page, name, link):
    page = open_page()
    for path in ("/", "/new", f"/studies/{name}", f"/judge/{name}"):
        assert page.goto(server.base + path).status == 401
        assert page.inner_text("h1") == "Please use your link"
