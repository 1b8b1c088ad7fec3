"""Ways in that must not be: guessed and stolen tokens, other sites, scripts in items, files that are no pictures."""

import asyncio
import hashlib
import json
import re
import sqlite3
import zlib
from importlib.resources import files

import httpx
import pytest

from shortlist.errors import BadProblem, BadUpload
from shortlist.web.app import create_app
from shortlist.web.auth import Kind, create_token
from shortlist.web.display import Content, Display, check_address, prepare, render_markdown
from shortlist.web.service import RateLimit, Settings
from tests.web.server import form_token, take, vote

ITEMS = ["ant", "bee", "cat"]
REFUSED = (401, 429)  # the second to those who try often, as these tests do
ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt:alert(1))",
    "[click](&#106;avascript:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "[click](vbscript:x)",
    "![x](javascript:alert(1))",
    "![x](https://elsewhere.example/beacon.png)",
    "<a href='javascript:alert(1)'>x</a>",
    "<svg/onload=alert(1)>",
    '"><script>alert(1)</script>',
    '[x](https://a.example/"onmouseover=alert(1)//)',
    "`<b onclick=alert(1)>`",
    '<https://a.example/"><script>alert(1)</script>>',
    "[x]: javascript:alert(1)\n\n[x]",
    "<!--><script>alert(1)</script>-->",
    "| a |\n|--|\n| <iframe src=javascript:alert(1)> |",
]
HARMLESS = r'href="(https?://|mailto:)[^"<>]*"|rel="[a-z ]+"|target="_blank"|start="\d+"|style="text-align:\w+"'
ALLOWED = {
    "p", "a", "em", "strong", "code", "pre", "ul", "ol", "li", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "hr",
    "br", "table", "thead", "tbody", "tr", "th", "td", "s",
}  # fmt: skip


def plain(text):
    """A text that is not Markdown, as it is shown."""
    return Display(contents={"a": Content(text)}).card("a", None).html


@pytest.mark.parametrize("text", ATTACKS)
def test_markup_lets_nothing_through(text):
    for made in (render_markdown(text), plain(text)):
        tags = re.findall(r"<\s*/?\s*([a-zA-Z]+)([^>]*)>", made)
        assert {tag for tag, _ in tags} <= ALLOWED
        for _, attributes in tags:
            assert re.fullmatch(rf"( ({HARMLESS}))*\s*/?", attributes)


def test_markup_does_what_people_want():
    assert render_markdown("*a* **b**\n\n- c") == "<p><em>a</em> <strong>b</strong></p>\n<ul>\n<li>c</li>\n</ul>\n"
    assert 'href="https://a.example/"' in render_markdown("[a](https://a.example/)")
    assert plain("a < b & c") == "a &lt; b &amp; c"


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", "data:image/png;base64,AAAA", "//a.example/x.png", "https://a.example/x.png; script-src *",
     "https://u:p@a.example/x.png", "https:///x.png", "ftp://a.example/x", "/etc/passwd", "https://a.example:0x/",
     "x" * 50, "https://a.example/\n", "https://*/", "https://*.example/x.png", "http://a_b*c/"],
)  # fmt: skip
def test_only_addresses_of_pictures_are_pictures(address):
    with pytest.raises(BadProblem, match=r"address|one site"):
        check_address(address)


def test_a_stored_script_is_shown_and_not_run(owner, name):
    items = [{"name": f"{text[:150]} {i}", "text": text, "format": "markdown"} for i, text in enumerate(ATTACKS)]
    owner.create(name, items, instructions=ATTACKS[0], cases=[ATTACKS[1]])
    (ann,) = owner.judges(name, "<script>alert(2)</script>")
    turn = take(ann, name)
    for _ in range(10):
        question = turn["questions"][0]
        for side in ("first", "second"):
            assert not re.search(r"<(script|img|svg|iframe|b)\b", question[side]["html"])
        turn = vote(ann, question["id"], 0.5, 1).json()["next"]


def test_pages_write_names_as_text(server, owner, name):
    owner.create(name, ITEMS, instructions="<script>alert(1)</script>")
    (link,) = owner.links(name, "<img src=x onerror=alert(1)>")
    with server.client() as browser:
        browser.post("/api/sessions", json={"token": link.partition("#")[2]})
        page = browser.get(f"/judge/{name}")
    assert page.status_code == 200
    assert "<script>alert" not in page.text
    assert "<img src=x" not in page.text
    assert page.text.count("<script") == 1
    policy = page.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy


def test_only_the_sites_of_a_studys_pictures_are_allowed(server, owner, name):
    items = [{"name": "a", "image": "https://pictures.example/a.png"}, {"name": "b"}]
    owner.create(name, items)
    (link,) = owner.links(name, "Ann")
    with server.client() as browser:
        browser.post("/api/sessions", json={"token": link.partition("#")[2]})
        policy = browser.get(f"/judge/{name}").headers["content-security-policy"]
    assert "img-src 'self' https://pictures.example;" in policy


# --- tokens ---


def test_secrets_are_hashed_at_rest(server, owner, name):
    owner.create(name, ITEMS)
    link = owner.links(name, "Ann")[0]
    secret = link.partition("#")[2].partition(".")[2]
    with sqlite3.connect(server.storage.removeprefix("sqlite:///")) as database:
        dump = "\n".join(database.iterdump())
    database.close()
    assert secret not in dump
    assert owner.key.partition(".")[2] not in dump
    assert hashlib.sha256(secret.encode()).hexdigest() in dump


def test_wrong_tokens_are_refused(server, owner, key, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    judge = ann.headers["authorization"].removeprefix("Bearer ")
    id_, _, secret = key.partition(".")
    other = secret[:-1] + ("A" if secret[-1] != "A" else "B")
    for wrong in ("x", f"{id_}.", f"{id_}.{other}", f"{'0' * 16}.{secret}", judge, f"{key}' OR 1=1", "é" * 30):
        answer = httpx.get(f"{server.base}/api/studies", headers={"authorization": f"Bearer {wrong}".encode()})
        assert answer.status_code in REFUSED
    assert ann.get(f"/api/studies/{name}").status_code in REFUSED
    assert owner.http.post(f"/api/studies/{name}/questions", json={}).status_code in REFUSED  # an owner is no judge


def test_a_judge_of_one_study_is_none_of_another(owner, name):
    owner.create(name, ITEMS)
    owner.create(f"{name} b", ITEMS)
    (ann,) = owner.judges(name, "Ann")
    (bob,) = owner.judges(f"{name} b", "Ann")
    question = take(bob, f"{name} b")["questions"][0]["id"]
    assert vote(ann, question, 1).status_code in REFUSED
    assert ann.post(f"/api/studies/{name} b/questions", json={}).status_code in REFUSED


def test_links_can_be_ended(server, owner, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    token = ann.headers["authorization"].removeprefix("Bearer ")
    with server.client() as browser:
        browser.post("/api/sessions", json={"token": token})
        assert browser.get(f"/judge/{name}").status_code == 200
        assert owner.http.post(f"/api/studies/{name}/judges/revoke", json={"judge": "Ann"}).json() == {"revoked": 2}
        assert browser.get(f"/judge/{name}").status_code in REFUSED
        assert browser.post("/api/sessions", json={"token": token}).status_code in REFUSED
    assert ann.post(f"/api/studies/{name}/questions", json={}).status_code in REFUSED
    fresh = owner.http.post(f"/api/studies/{name}/judges/link", json={"judge": "Ann"}).json()["link"]
    with server.client() as browser:
        assert browser.post("/api/sessions", json={"token": fresh.partition("#")[2]}).status_code == 200


def test_an_open_link_gives_every_judge_a_name_of_their_own(server, owner, name):
    owner.create(name, ITEMS)
    token = owner.http.post(f"/api/studies/{name}/open-link").json()["link"].partition("#")[2]
    with server.client() as one, server.client() as other:
        assert one.post("/api/sessions", json={"token": token}).json()["role"] == "open"
        assert one.post("/api/sessions", json={"token": token, "name": "Ann"}).json()["role"] == "judge"
        assert one.post("/api/sessions", json={"token": token}).json()["role"] == "judge"  # known again
        assert other.post("/api/sessions", json={"token": token, "name": "Ann"}).status_code == 409
    assert owner.http.delete(f"/api/studies/{name}/open-link").json() == {"revoked": 1}
    with server.client() as late:
        assert late.post("/api/sessions", json={"token": token, "name": "Cat"}).status_code in REFUSED


def test_the_owners_link_is_good_once(server, key):
    with server.client() as thief:
        assert thief.post("/api/sessions", json={"token": server.owner_token}).status_code in REFUSED


def test_cookies_are_locked_and_nothing_secret_is_logged(server, owner, key, name):
    owner.create(name, ITEMS)
    link = owner.links(name, "Ann")[0]
    token = link.partition("#")[2]
    with server.client() as browser:
        cookie = browser.post("/api/sessions", json={"token": token}).headers["set-cookie"]
        secure = browser.post("/api/sessions", json={"token": token}, headers={"x-forwarded-proto": "https"})
        browser.get(f"/judge/{name}")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie
    assert "Secure" in secure.headers["set-cookie"]
    assert "strict-transport-security" in secure.headers
    logged = server.err.read_text()
    for secret in (token, key, cookie.split("=")[1].split(";")[0], server.owner_token, name, "Ann"):
        assert secret not in logged
    for line in logged.splitlines():
        assert {"time", "level", "worker", "event"} <= set(json.loads(line))


# --- other sites ---


def test_a_cookie_alone_changes_nothing(server, owner, name):
    owner.create(name, ITEMS)
    link = owner.links(name, "Ann")[0]
    with server.client() as browser:
        browser.post("/api/sessions", json={"token": link.partition("#")[2]})
        good = {"x-form-token": form_token(browser, f"/judge/{name}")}
        place = f"/api/studies/{name}/questions"
        for wrong in (
            {}, {"x-form-token": "0" * 64}, {"x-form-token": "é".encode()}, {**good, "origin": "https://evil.example"},
            {**good, "sec-fetch-site": "cross-site"}, {**good, "origin": "null"},
        ):  # fmt: skip
            assert browser.post(place, json={}, headers=wrong).status_code == 403
        assert browser.post(place, json={}, headers={**good, "origin": server.base}).status_code == 200
    assert owner.look(name)["counts"]["pending"] == 1
    with server.client() as browser:
        wrong = {"origin": "https://evil.example"}
        assert browser.post("/api/sessions", json={"token": link}, headers=wrong).status_code == 403


# --- uploads ---


def png(side=2):
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = side.to_bytes(4, "big") * 2 + b"\x08\x02\x00\x00\x00"
    rows = zlib.compress(b"".join(b"\x00" + b"\xff\x00\x00" * min(side, 9) for _ in range(min(side, 9))))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    "data",
    [b"", b"GIF89a", b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", b"<html>",
     b"%PDF-1.7" * 9, b"\x89PNG\r\n\x1a\n" + b"<script>" * 9, b"MZ" * 40, png(20_000)],
)  # fmt: skip
def test_only_pictures_are_taken(owner, data):
    with pytest.raises(BadUpload):
        prepare(data)
    sent = owner.http.post("/api/uploads", files={"file": ("innocent.png", data, "image/png")})
    assert sent.status_code == 422


def test_a_picture_is_for_the_studys_judges_alone(server, owner, name):
    image = owner.http.post("/api/uploads", files={"file": ("x.html", png(), "text/html")}).json()["address"]
    owner.create(name, [{"name": "a", "image": image}, {"name": "b"}])
    owner.create(f"{name} b", ITEMS)
    seen = []
    for study in (name, f"{name} b"):
        (link,) = owner.links(study, "Ann")
        with server.client() as browser:
            browser.post("/api/sessions", json={"token": link.partition("#")[2]})
            seen.append(browser.get(image))
    assert [answer.status_code for answer in seen] == [200, 404]
    assert seen[0].headers["content-type"] == "image/png"  # whatever the sender called it
    assert "sandbox" in seen[0].headers["content-security-policy"]
    assert seen[0].headers["x-content-type-options"] == "nosniff"
    assert httpx.get(server.base + image).status_code == 404
    again = [{"name": "a", "image": image}, {"name": "b"}]
    taken = owner.http.post("/api/studies", json={"name": f"{name} c", "items": again, "k": 1})
    assert taken.status_code == 422


def test_big_requests_are_turned_away(server, owner):
    big = png() + b"\x00" * 21_000_000
    assert owner.http.post("/api/uploads", files={"file": ("x.png", big, "image/png")}).status_code == 413
    assert owner.http.post("/api/studies", content=b"[" * 6_000_000).status_code == 413

    def endless():
        for _ in range(100):
            yield b"x" * 100_000

    streamed = owner.http.post("/api/studies", content=endless(), headers={"content-type": "application/json"})
    assert streamed.status_code == 413


# --- rates ---


def test_rates_fill_up_again():
    now = [0.0]
    rate = RateLimit(2.0, lambda: now[0])
    assert [rate.allow("a") for _ in range(12)] == [True] * 10 + [False] * 2
    assert rate.allow("b")
    now[0] = 1.0
    assert [rate.allow("a") for _ in range(3)] == [True, True, False]


def test_guessing_is_slowed_down(tmp_path):
    app = create_app(Settings(f"sqlite:///{tmp_path / 's.db'}"))
    service = app.state.service
    service.failures.clock = lambda: 0.0  # so that nothing fills up while this runs
    key = create_token(service.database, Kind.owner_key)

    async def guess():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            guesses = [{"token": f"{number:016x}.{'A' * 43}"} for number in range(40)]
            codes = [(await client.post("/api/sessions", json=guess)).status_code for guess in guesses]
            neighbour = await client.get("/api/studies", headers={"authorization": f"Bearer {key}"})
        return codes, neighbour.status_code

    codes, neighbour = asyncio.run(guess())
    service.database.close()
    assert codes == [401] * 10 + [429] * 30
    assert neighbour == 200  # whoever has a good token is not kept waiting


def test_no_other_machine_is_ever_called(server, owner, name):
    """Every connection and name look-up of the service goes through an audit hook that writes it down."""
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    vote(ann, take(ann, name)["questions"][0]["id"], 1)
    for page in ("/", "/docs", "/join", "/openapi.json", "/static/style.css", "/healthz", "/metrics"):
        assert httpx.get(server.base + page).status_code in (200, 401), page
    assert server.calls.read_text() == "started\n"


def test_static_pages_name_no_other_site():
    for folder in ("static", "templates"):
        for file in files("shortlist.web").joinpath(folder).iterdir():
            found = set(re.findall(r"https?://[\w.]+", file.read_text()))
            assert found <= {"http://www.w3.org"}, file.name
