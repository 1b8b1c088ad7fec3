"""Judges: pseudonyms, the open link and its limits, conflicts of interest, viewers, what to look at, void with a
preview, and personal data. Everything over HTTP, with a real service."""

import re
import sqlite3
import time
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from shortlist import load_study
from shortlist.cli.app import app
from shortlist.web import display
from shortlist.web.app import own_addresses
from shortlist.web.display import Words, choose_language
from shortlist.web.judges import look_alikes
from shortlist.web.routes.judges import qr_code
from tests.web.server import Server, form_token, owner_key, take, vote

ITEMS = ["ant", "bee", "cat", "dog"]
REFUSED = (401, 403, 404, 429)  # the last: many wrong tokens in a short time
TEMPLATES = Path(display.__file__).parent / "templates"
STATIC = Path(display.__file__).parent / "static"


def open_token(owner, name, **limits):
    made = owner.http.post(f"/api/studies/{name}/open-link", json=limits)
    assert made.status_code == 201, made.text
    return made.json()["link"].partition("#")[2]


def enter(owner, token, judge=None, **given):
    """A browser of its own, and what it was told."""
    browser = owner.server.client()
    owner.clients.append(browser)  # closed with it
    body = {"token": token, **({"name": judge} if judge else {}), **given}
    return browser, browser.post("/api/sessions", json=body)


def judging(name, browser):
    return browser.post(
        f"/api/studies/{name}/questions",
        json={"hold": 1},
        headers={"x-form-token": form_token(browser, f"/judge/{name}")},
    ).json()


def panel(owner, name):
    found = owner.http.get(f"/api/studies/{name}/judges")
    assert found.status_code == 200, found.text
    return found.json()


def answers(judge, name, count, choose=lambda question: 1):
    turn = take(judge, name)
    for _ in range(count):
        question = turn["questions"][0]
        turn = vote(judge, question["id"], choose(question), 1).json()["next"]
    return turn


# --- names and personal data ---


def test_names_are_never_in_events_and_can_be_erased(server, owner, name):
    """Votes have a pseudonym from the start, so an erasure changes no event and no hash."""
    owner.create(name, ITEMS)
    people = [{"name": "Ann Example", "email": "ann@example.org"}, {"name": "Bob"}]
    links = owner.http.post(f"/api/studies/{name}/judges", json={"people": people}).json()["links"]
    ann = server.client(links[0]["link"].partition("#")[2])
    question = take(ann, name)["questions"][0]
    said = ann.post(f"/api/questions/{question['id']}/vote", json={"outcome": 1, "note": "I am Ann, and I like it"})
    assert said.status_code == 200
    question = take(ann, name)["questions"][0]
    ann.post(f"/api/questions/{question['id']}/vote", json={"skip": "other", "note": "Ann made it"})
    study = load_study(name, server.storage)
    study.settle()
    assert {row.judge for row in study.rows} == {"judge #1"}
    data = owner.http.get(f"/api/studies/{name}/judges/data", params={"judge": "Ann Example"}).json()
    assert (data["name"], data["email"], data["pseudonym"]) == ("Ann Example", "ann@example.org", "judge #1")
    assert [answer["note"] for answer in data["answers"]] == ["I am Ann, and I like it", "Ann made it"]
    assert [remark["text"] for remark in panel(owner, name)["remarks"]] == ["Ann made it", "I am Ann, and I like it"]
    before, board = load_study(name, server.storage).head, owner.look(name)
    assert [judge["name"] for judge in board["judges"]] == ["Ann Example", "Bob"]
    made = owner.http.post(f"/api/studies/{name}/judges/erase", json={"judge": "Ann Example"})
    assert made.json() == {"pseudonym": "judge #1"}
    with sqlite3.connect(server.storage.removeprefix("sqlite:///")) as database:
        dump = "\n".join(line for line in database.iterdump())
    database.close()
    assert "Ann Example" not in dump
    assert "ann@example.org" not in dump
    assert "I like it" not in dump
    after = load_study(name, server.storage)
    assert (after.head, after.votes) == (before, study.votes)
    assert ann.post(f"/api/studies/{name}/questions", json={}).status_code in REFUSED
    assert [judge["name"] for judge in owner.look(name)["judges"]] == ["judge #1", "Bob"]
    ann.close()


def test_a_judge_sees_their_own_answers_and_nothing_else(server, owner, name):
    items = [{"name": item, "text": f"text {item}"} for item in ITEMS]
    owner.create(name, items, blind=True)
    ann, bob = owner.judges(name, "Ann", "Bob")
    answers(ann, name, 2)
    answers(bob, name, 1)
    mine = ann.get(f"/api/studies/{name}/me")
    assert mine.status_code == 200
    seen = [answer for answer in mine.json()["answers"] if answer["status"] != "pending"]
    assert [answer["status"] for answer in seen] == ["answered", "answered"]
    assert not set(ITEMS) & {answer[side] for answer in seen for side in ("first", "second")}  # blind here too
    assert "Bob" not in mine.text


# --- the open link ---


def test_an_open_link_with_a_code_and_limits(server, owner, name):
    owner.create(name, ITEMS)
    token = open_token(owner, name, code="Harbour 7", max_judges=2, max_votes=3)
    browser, said = enter(owner, token)
    assert (said.json()["role"], said.json()["needs_code"]) == ("open", True)
    assert browser.post("/api/sessions", json={"token": token, "name": "Ann"}).status_code == 401
    assert browser.post("/api/sessions", json={"token": token, "name": "Ann", "code": "x"}).status_code == 401
    assert (
        browser.post("/api/sessions", json={"token": token, "name": "Ann", "code": "harbour7"}).json()["role"]
        == "judge"
    )
    _, said = enter(owner, token, "Bob", code="HARBOUR 7")
    assert said.status_code == 200
    _, said = enter(owner, token, "Cleo", code="HARBOUR 7")
    assert said.status_code == 409
    assert "all 2 places" in said.json()["detail"]
    headers = {"x-form-token": form_token(browser, f"/judge/{name}")}
    turn = browser.post(f"/api/studies/{name}/questions", json={"hold": 2}, headers=headers).json()
    for left in (3, 2, 1):
        assert turn["state"] == "open"
        assert len(turn["questions"]) == min(left, 2)  # not more than the judge may answer
        place = f"/api/questions/{turn['questions'][0]['id']}/vote"
        turn = browser.post(place, json={"outcome": 1, "hold": 2}, headers=headers).json()["next"]
    assert turn["state"] == "finished"
    (ann,) = owner.judges(name, "Ann with her own link")
    answers(ann, name, 4)  # the limit is for those who come by the open link


def test_a_thousand_judges_do_not_come_by_a_link_for_ten(server, owner, name):
    owner.create(name, ITEMS)
    token = open_token(owner, name, max_judges=10)
    codes = [enter(owner, token, f"Judge {letter}")[1].status_code for letter in "abcdefghijklmnop"]
    assert codes == [200] * 10 + [409] * 6
    assert len(panel(owner, name)["judges"]) == 10


def test_a_waiting_room(server, owner, name):
    owner.create(name, ITEMS)
    token = open_token(owner, name, approve=True)
    (ann, _), (bob, _) = enter(owner, token, "Ann"), enter(owner, token, "Bob")
    assert judging(name, ann)["state"] == "approval"
    assert [judge["state"] for judge in panel(owner, name)["judges"]] == ["waiting", "waiting"]
    owner.http.post(f"/api/studies/{name}/judges/admit", json={"judges": ["Ann"]})
    owner.http.post(f"/api/studies/{name}/judges/admit", json={"judges": ["Bob"], "admit": False})
    assert judging(name, ann)["state"] == "open"
    assert (judging(name, bob)["state"], judging(name, bob)["questions"]) == ("refused", [])


def test_names_that_look_alike_and_bursts_are_flagged(server, owner, name):
    owner.create(name, ITEMS)
    token = open_token(owner, name)
    began = time.monotonic()
    for judge in ("Bob", "B0b", "bob 2", "Вob", "Carolina", "Karolina", "Dan"):
        assert enter(owner, token, judge)[1].status_code == 200
    (eve,), entered = owner.judges(name, "Eve"), time.monotonic()
    answers(eve, name, 12)
    answered = time.monotonic()
    flags = {judge["name"]: " ".join(judge["flags"]) for judge in panel(owner, name)["judges"]}
    assert "looks like" in flags["Bob"]
    assert all(other in flags["Bob"] for other in ("B0b", "bob 2", "Вob"))
    assert flags["Carolina"].startswith("The name looks like Karolina.")
    assert "looks like" not in flags["Dan"]
    assert "within 15 seconds of 6 others" in flags["Dan"] or entered - began > 15  # this machine is slower
    assert "Gave 10 answers within" in flags["Eve"] or answered - entered > 12


def test_which_names_look_alike():
    assert look_alikes(["Ann", "Bob", "Anna", "Dan", "Jan"]) == []  # short names differ in one letter all the time
    assert look_alikes(["Ann", "ann", "A n n", "Änn 3", "Bo"]) == [["A n n", "Ann", "ann", "Änn 3"]]
    assert look_alikes(["Marcus", "Markus", "Marcos"]) == [["Marcos", "Marcus", "Markus"]]


# --- conflicts of interest ---


@pytest.mark.parametrize("claim", ["each", "public"])
def test_a_judge_is_never_shown_what_they_have_an_interest_in(server, owner, name, claim):
    owner.create(name, [*ITEMS, "eel", "fox"], judges_claim=claim)
    ann, bob = owner.judges(name, "Ann", "Bob")
    lines = [{"judges": ["Ann", "Bob"], "items": ["ant"]}, {"judges": ["Bob"], "items": ["bee"]}]
    set_ = owner.http.put(f"/api/studies/{name}/judges/conflicts", json={"conflicts": lines})
    assert set_.status_code == 200, set_.text
    for judge, hidden in ((ann, {"ant"}), (bob, {"ant", "bee"})):
        seen, turn = set(), take(judge, name, 2)
        for _ in range(12):
            if turn["state"] != "open":
                break
            seen |= {question[side]["title"] for question in turn["questions"] for side in ("first", "second")}
            turn = vote(judge, turn["questions"][0]["id"], 1, 2).json()["next"]
        assert seen
        assert not seen & hidden
    study = load_study(name, server.storage)
    struck = [row for row in study.rows if row.reason == "conflict of interest"]
    assert bool(struck) == (claim == "public")  # a ballot is drawn without a look at the judge, and then struck out
    assert all(row.status == "skipped" for row in struck)
    unknown = {"conflicts": [{"judges": ["Ann"], "items": ["gnu"]}]}
    assert owner.http.put(f"/api/studies/{name}/judges/conflicts", json=unknown).status_code == 422


@pytest.mark.parametrize("claim", ["each", "public"])
def test_an_interest_that_is_declared_while_judging(server, owner, name, claim):
    """The pair is skipped, prefetched ones with that item are closed: dropped, or on a ballot lost."""
    owner.create(name, ["ant", "bee", "cat"], judges_claim=claim, ballot_size=6)
    (ann,) = owner.judges(name, "Ann")
    turn = take(ann, name, 3)
    item = turn["questions"][0]["first"]["title"]
    body = {"skip": "knows the author", "conflict": ["first"], "hold": 3}
    said = ann.post(f"/api/questions/{turn['questions'][0]['id']}/vote", json=body).json()
    assert said["status"] == ("lost" if claim == "public" else "skipped")
    seen = {question[side]["title"] for question in said["next"]["questions"] for side in ("first", "second")}
    assert item not in seen
    held = load_study(name, server.storage).rows_of("judge #1")
    closed = [row for row in held if item in (row.first, row.second)]
    assert {row.status for row in closed} == ({"lost"} if claim == "public" else {"skipped"})
    assert panel(owner, name)["conflicts"] == [{"judge": "Ann", "item": item, "declared": True}]


# --- void with a preview ---


def test_a_void_of_several_judges_says_beforehand_what_it_does(server, owner, name):
    owner.create(name, ITEMS, k=1, delta=0.3, min_judges=2)
    ann, bob, eve = owner.judges(name, "Ann", "Bob", "Eve")
    better = lambda question: float(question["first"]["title"] < question["second"]["title"])  # noqa: E731
    for _ in range(6):
        for judge in (ann, bob, eve):
            if take(judge, name)["state"] == "open":
                answers(judge, name, 1, better)
    load_study(name, server.storage).settle()
    take(ann, name)
    head = load_study(name, server.storage).head
    asked = {"judges": ["Ann", "Eve"], "preview": True}
    effect = owner.http.post(f"/api/studies/{name}/judges/void", json=asked).json()
    assert load_study(name, server.storage).head == head  # only a look
    rows = load_study(name, server.storage).rows
    given = sum(row.judge in ("judge #1", "judge #3") and row.status == "counted" for row in rows)
    assert effect["votes"] == given > 0
    done = owner.http.post(f"/api/studies/{name}/judges/void", json={"judges": ["Ann", "Eve"]}).json()
    assert done == effect
    board = owner.look(name)
    assert board["verdict"]["votes"] == effect["after"]["votes"]
    assert board["verdict"]["error_bound"] == pytest.approx(effect["after"]["error_bound"])
    assert len(board["verdict"]["certainly_in"]) + len(board["verdict"]["certainly_out"]) == effect["after"]["proved"]
    assert {judge["name"] for judge in board["judges"] if judge["is_voided"]} == {"Ann", "Eve"}
    assert "judge voided" in {row.reason for row in load_study(name, server.storage).rows}
    assert panel(owner, name)["remarks"] == []  # the service closed it, and nobody gave a reason
    assert owner.http.post(f"/api/studies/{name}/judges/void", json={"judges": ["Nobody"]}).status_code == 404


# --- roles ---


def test_a_viewer_looks_and_changes_nothing(server, owner, name):
    owner.create(name, ITEMS)
    owner.create(f"{name} b", ITEMS)
    token = owner.http.post(f"/api/studies/{name}/viewer-link").json()["link"].partition("#")[2]
    (ann,) = owner.judges(name, "Ann")
    answers(ann, name, 2)
    load_study(name, server.storage).settle()
    with server.client() as viewer:
        said = viewer.post("/api/sessions", json={"token": token}).json()
        assert (said["role"], said["page"]) == ("viewer", f"/studies/{name}")
        page = viewer.get(f"/studies/{name}")
        assert page.status_code == 200
        assert "form-token" not in page.text
        for path in (f"/api/studies/{name}", f"/api/studies/{name}/votes.csv"):
            assert viewer.get(path).status_code == 200
        for path in ("/", "/new", f"/studies/{name} b", f"/studies/{name}/judges", f"/judge/{name}", "/api/studies",
                     f"/api/studies/{name} b", f"/api/studies/{name}/judges", f"/api/studies/{name}/me",
                     f"/api/studies/{name}/judges/data?judge=Ann"):  # fmt: skip
            assert viewer.get(path).status_code in REFUSED, path
        for method, path, body in changes(name):
            assert viewer.request(method, path, json=body).status_code in REFUSED, path
        assert httpx.get(f"{server.base}/api/studies", headers={"authorization": f"Bearer {token}"}).status_code == 401
        owner.http.delete(f"/api/studies/{name}/viewer-link")
        assert viewer.get(f"/api/studies/{name}").status_code in REFUSED


def changes(name):
    """Every request that changes something about judges, with a good body."""
    study = f"/api/studies/{name}"
    ann = {"judge": "Ann"}
    return [
        ("PUT", f"{study}/state", {"state": "closed"}), ("PUT", f"{study}/settings", {"max_votes": 9}),
        ("POST", f"{study}/void", ann), ("POST", f"{study}/judges", {"names": ["Zoe"]}),
        ("POST", f"{study}/judges/link", ann), ("POST", f"{study}/judges/links", {"judges": ["Ann"]}),
        ("POST", f"{study}/judges/revoke", ann), ("POST", f"{study}/judges/admit", {"judges": ["Ann"]}),
        ("PUT", f"{study}/judges/conflicts", {"conflicts": []}), ("POST", f"{study}/judges/void", {"judges": ["Ann"]}),
        ("POST", f"{study}/judges/erase", ann), ("POST", f"{study}/open-link", {}), ("PUT", f"{study}/open-link", {}),
        ("DELETE", f"{study}/open-link", None), ("POST", f"{study}/viewer-link", None),
        ("DELETE", f"{study}/viewer-link", None), ("POST", "/api/keys", None),
    ]  # fmt: skip


def test_judges_and_strangers_change_nothing_about_judges(server, owner, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    (link,) = owner.links(name, "Bob")
    answers(ann, name, 1)
    head = load_study(name, server.storage).head
    with server.client() as stranger, server.client() as cookie:
        cookie.post("/api/sessions", json={"token": link.partition("#")[2]})
        for method, path, body in changes(name):
            for client in (ann, stranger, cookie):
                assert client.request(method, path, json=body).status_code in REFUSED, path
        for path in (
            f"/api/studies/{name}/judges",
            f"/api/studies/{name}/judges/data?judge=Ann",
            f"/studies/{name}/judges",
        ):
            for client in (ann, stranger, cookie):
                assert client.get(path).status_code in REFUSED, path
        for client in (stranger, cookie):  # a cookie alone changes nothing
            assert client.post(f"/api/studies/{name}/leave", json={}).status_code in REFUSED
        assert stranger.get(f"/api/studies/{name}/me").status_code in REFUSED
    assert load_study(name, server.storage).head == head


def test_a_judge_with_a_link_of_one_study_has_no_data_of_another(owner, name):
    owner.create(name, ITEMS)
    owner.create(f"{name} b", ITEMS)
    (ann,) = owner.judges(name, "Ann")
    owner.judges(f"{name} b", "Ann")
    assert ann.get(f"/api/studies/{name} b/me").status_code in REFUSED
    assert ann.post(f"/api/studies/{name} b/leave", json={}).status_code in REFUSED


# --- leases ---


def test_when_a_page_is_closed_its_pair_is_kept_for_a_short_while(server, owner, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    (question,) = take(ann, name)["questions"]

    def lease():
        study = load_study(name, server.storage)
        return study._state.unsettled[int(question["id"].rpartition(".")[2])].asked.lease - study._sync.now()

    assert 590 < lease() <= 600
    left = ann.post(f"/api/studies/{name}/leave", json={"showing": question["id"]})
    assert left.status_code == 204
    assert 50 < lease() <= 60
    assert take(ann, name)["questions"] == [question]  # it was a reload
    assert 590 < lease() <= 600


def test_ballots_are_opened_a_few_at_a_time(server, owner, name):
    owner.create(name, ITEMS, judges_claim="public")
    judges = owner.judges(name, *(f"Judge {letter}" for letter in "abcdefg"))
    states = [take(judge, name)["state"] for judge in judges]
    assert states == ["open"] * 5 + ["entry"] * 2
    assert "one after another" in take(judges[5], name)["message"]
    turn = take(judges[0], name)
    while turn["state"] == "open":
        turn = vote(judges[0], turn["questions"][0]["id"], 1, 1).json()["next"]
    assert [take(judge, name)["state"] for judge in judges[5:]] == ["open", "entry"]


# --- addresses ---


def test_every_link_has_the_address_that_people_use(tmp_path):
    """Behind a proxy that changes the Host header, and with a browser that says where it is."""
    address = "https://judging.example.org"
    server = Server(f"sqlite:///{tmp_path / 's.db'}", tmp_path, "--address", f"{address}/").start()
    try:
        assert f"{address}/join#" in server.out.read_text()
        key = owner_key(server, server.owner_token)
        with server.client(key) as owner:
            items = [{"name": item} for item in ITEMS]
            owner.post("/api/studies", json={"name": "demo", "items": items, "k": 1})
            made = owner.post("/api/studies/demo/judges", json={"names": ["Ann"]}).json()["links"][0]
            links = [
                made["link"],
                *(owner.post(f"/api/studies/demo/{kind}-link").json()["link"] for kind in ("open", "viewer")),
            ]
            assert all(link.startswith(f"{address}/join#") for link in links)
        token = {"token": links[0].partition("#")[2]}
        for origin, status in ((address, 200), ("https://evil.example", 403)):
            with server.client() as browser:
                said = browser.post("/api/sessions", json=token, headers={"origin": origin})
                assert said.status_code == status
        assert "--address" in said.json()["detail"]
        assert "Host header" in said.json()["detail"]
    finally:
        server.end()


def test_a_service_for_all_machines_says_where_it_is(tmp_path):
    server = Server(f"sqlite:///{tmp_path / 's.db'}", tmp_path, "--host", "0.0.0.0").start()
    server.end()
    said = server.out.read_text()
    found = own_addresses()
    assert not any(address.startswith(("127.", "::1")) for address in found)
    for address in found:
        assert address in said
    assert ("Other machines" in said) == bool(found)


def test_a_wrong_address_is_refused(tmp_path):
    for address in ("judging.example.org", "https://x.example/path", "ftp://x.example", "https://a@x.example"):
        said = CliRunner().invoke(app, ["serve", "--storage", f"sqlite:///{tmp_path / 's.db'}", "--address", address])
        assert said.exit_code != 0


def test_a_qr_code_is_a_path_of_bars():
    code = qr_code("https://judging.example.org/join#abc")
    assert re.fullmatch(r"(M\d+ \d+h\d+v1h-\d+z)+", code.path)


# --- words ---


def test_the_best_language_is_chosen():
    for header, language in (
        (None, "en"), ("", "en"), ("de", "de"), ("de-CH,de;q=0.9,en;q=0.8", "de"), ("fr, en;q=0.5, de;q=0.7", "de"),
        ("en-GB, de", "en"), ("*", "en"), ("de;q=0, en", "en"), ("de;q=x", "en"), ("\x00;;,,", "en"),
    ):  # fmt: skip
        assert choose_language(header) == language, header


def test_all_languages_have_all_words():
    first = display.load("en")
    for language in display.languages():
        other = display.json.loads((display.FOLDER / f"{language}.json").read_text("utf-8"))
        assert {page: set(texts) for page, texts in other.items()} == {
            page: set(texts) for page, texts in first.items()
        }
        for page, texts in first.items():
            for name, text in texts.items():
                assert places(text) == places(other[page][name]), f"{language} {page}.{name}"


def places(text):
    forms = [text] if isinstance(text, str) else text.values()
    return [set(re.findall(r"\{(\w+)\}", form)) for form in forms]


def test_every_word_that_is_used_exists_and_every_word_is_used():
    code = "".join(file.read_text() for file in (*TEMPLATES.iterdir(), *STATIC.glob("*.js")))
    routes = Path(display.__file__).parent / "routes"
    code += (routes / "questions.py").read_text() + (routes / "pages.py").read_text()
    known = {f"{page}.{name}" for page, texts in display.load("en").items() for name in texts}
    used = set(re.findall(r"""["'`](\w+\.[\w.]+\w)["'`]""", code)) & {*known} | {
        name for name in known if name.startswith(("judge.state.", "judge.status."))
    }
    asked = set(re.findall(r"""\bt\(["'](\w+\.[\w.]+)["']""", code))
    assert asked <= known
    assert used == known


def test_pages_speak_the_language_of_the_browser(server, owner, name):
    owner.create(name, ITEMS)
    (link,) = owner.links(name, "Ann")
    with server.client() as browser:
        browser.post("/api/sessions", json={"token": link.partition("#")[2]})
        german = browser.get(f"/judge/{name}", headers={"accept-language": "de-AT,de;q=0.9"}).text
        english = browser.get(f"/judge/{name}").text
    assert '<html lang="de">' in german
    assert "A ist besser" in german
    assert "A is better" not in german
    assert '<html lang="en">' in english
    assert Words("de")("judge.answers", n=1) == "1 Antwort"
    assert Words("de")("judge.answers", n=2) == "2 Antworten"
