"""The owner's side over HTTP: error answers, pages of lists, files in and out, results, live news, a backup."""

import asyncio
import csv
import io
import json

import httpx
import openpyxl
import pillow_heif
import pytest
from PIL import Image

from shortlist import load_study
from shortlist.errors import BadUpload
from shortlist.study.maintenance import restore
from shortlist.verify import check
from shortlist.web.app import create_app
from shortlist.web.auth import Kind, create_token
from shortlist.web.display import KEPT_SIDE, THUMBNAIL_SIDE, prepare
from shortlist.web.service import Settings
from tests.web.server import form_token, take, vote
from tests.web.test_security import png

ITEMS = ["ant", "bee", "cat"]
GPS, ORIENTATION = 0x8825, 0x0112


# --- error answers, ETags, pages of lists, metrics ---


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("GET", "/api/studies/no such", None, 404, "no study"),
        ("POST", "/api/studies", {"name": "x", "items": [{"name": "a"}], "k": 1}, 422, "items: give at least 2"),
        ("POST", "/api/studies", {"name": "x", "items": [{"name": "a"}, {"name": ""}], "k": 1}, 422, "item 2 is empty"),
        ("POST", "/api/studies", {"name": "x", "items": [{"name": "a"}, {"name": "b"}]}, 422, "k is missing"),
        ("POST", "/api/studies", {"name": "x!", "items": [{"name": "a"}, {"name": "b"}], "k": 1}, 422, "use letters"),
        ("POST", "/api/studies", {"name": "x", "items": [{"name": "a"}, {"name": "b"}], "k": 1, "delta": 2}, 422,
         "delta must be less than 1"),
        ("PATCH", "/api/studies", None, 405, "Method Not Allowed"),
        ("POST", "/api/studies", "x" * 6_000_000, 413, "too large"),
    ],
)  # fmt: skip
def test_every_error_is_a_problem_document(owner, method, path, body, status, said):
    answer = owner.http.request(method, path, json=body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert set(problem) == {"type", "title", "status", "detail"}
    assert problem["status"] == status
    assert said in problem["detail"]
    assert "Input should" not in problem["detail"]
    assert "validation" not in problem["detail"]


def test_a_stranger_gets_a_problem_document_too(server):
    answer = httpx.get(f"{server.base}/api/studies")
    assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")


def test_an_answer_that_is_known_already_is_not_sent_again(owner, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    first = owner.http.get(f"/api/studies/{name}/votes")
    again = owner.http.get(f"/api/studies/{name}/votes", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    vote(ann, take(ann, name)["questions"][0]["id"], 1)
    changed = owner.http.get(f"/api/studies/{name}/votes", headers={"if-none-match": first.headers["etag"]})
    assert changed.status_code == 200
    assert changed.headers["etag"] != first.headers["etag"]


def test_long_lists_come_in_pages(owner, name):
    names = [f"{name} {number}" for number in range(5)]
    for study in names:
        owner.create(study, ITEMS)
    seen, before = [], None
    while len(seen) < 5:
        page = owner.http.get("/api/studies", params={"limit": 2, **({"before": before} if before else {})}).json()
        assert len(page["studies"]) == 2
        seen += [line["name"] for line in page["studies"]]
        before = page["next"]
    assert seen[:5] == names[::-1]
    assert owner.http.get("/api/studies", params={"limit": 1, "before": "no such"}).status_code == 404
    (ann,) = owner.judges(names[0], "Ann")
    for _ in range(5):
        vote(ann, take(ann, names[0])["questions"][0]["id"], 1)
    rows, after = [], 0
    while after is not None:
        page = owner.http.get(f"/api/studies/{names[0]}/votes", params={"limit": 2, "after": after}).json()
        rows, after = rows + page["votes"], page["next"]
    assert [row["id"] for row in rows] == [f"{names[0]}.{number}" for number in range(page["total"])]


def test_metrics_are_for_this_machine_or_a_key(tmp_path):
    app = create_app(Settings(f"sqlite:///{tmp_path / 's.db'}"))
    key = {"authorization": f"Bearer {create_token(app.state.service.database, Kind.owner_key)}"}

    async def scrape(address, headers=None):
        transport = httpx.ASGITransport(app, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return (await client.get("/metrics", headers=headers)).status_code

    async def scrapes():
        proxied = {"x-forwarded-for": "127.0.0.1"}
        return [await scrape("127.0.0.1"), await scrape("::1"), await scrape("192.168.0.9"),
                await scrape("127.0.0.1", proxied), await scrape("192.168.0.9", key)]  # fmt: skip

    codes = asyncio.run(scrapes())
    app.state.service.database.close()
    assert codes == [200, 200, 401, 401, 200]


# --- pictures, sound, films ---


def picture(kind, size=(40, 20), **options):
    file = io.BytesIO()
    Image.new("RGB", size, "red").save(file, kind, **options)
    return file.getvalue()


def with_place(kind):
    """A picture of a phone that was held upright: it says where it was taken."""
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    exif.get_ifd(GPS)[2] = (52.0, 31.0, 12.0)
    return picture(kind, exif=exif)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_picture_says_nothing_about_its_place(owner, kind):
    data = with_place(kind)
    with Image.open(io.BytesIO(data)) as before:
        assert before.getexif().get_ifd(GPS)  # it did
    made = prepare(data)
    with Image.open(io.BytesIO(made.data)) as after:
        assert not dict(after.getexif())
        assert after.size == (20, 40)  # upright, as it was taken
    assert b"Exif" not in made.data


def test_nothing_can_hide_behind_a_picture():
    assert b"<script>" not in prepare(picture("PNG") + b"<script>alert(1)</script>").data


def test_a_heic_picture_becomes_a_jpeg():
    file = io.BytesIO()
    pillow_heif.from_pillow(Image.new("RGB", (64, 64), "blue")).save(file, format="HEIF")
    made = prepare(file.getvalue())
    assert made.type == "image/jpeg"
    with Image.open(io.BytesIO(made.data)) as seen:
        assert seen.getpixel((5, 5))[2] > 200


@pytest.mark.parametrize("kind", ["JPEG", "WEBP", "PNG", "GIF"])
def test_the_size_of_every_kind_is_checked(kind):
    assert prepare(picture(kind)).type == f"image/{kind.lower()}"
    with pytest.raises(BadUpload, match="too large"):
        prepare(picture(kind, (12_100, 4)))


def test_a_picture_too_large_to_decode_is_refused_before_it_is():
    with pytest.raises(BadUpload, match="60 megapixels"):
        prepare(picture("PNG", (11_000, 11_000)))


def test_large_pictures_are_made_smaller_and_have_a_thumbnail(owner, server, name):
    sent = owner.http.post("/api/uploads", files={"file": ("a.jpg", picture("JPEG", (3000, 1500)), "image/jpeg")})
    address = sent.json()["address"]
    assert sent.json()["kind"] == "image"
    owner.create(name, [{"name": "a", "image": address}, {"name": "b"}])
    (ann,) = owner.judges(name, "Ann")
    question = take(ann, name)["questions"][0]
    card = next(question[side] for side in ("first", "second") if question[side]["image"])
    assert card["alt"] == "Picture of a"
    with server.client() as browser:
        browser.post("/api/sessions", json={"token": owner.links(name, "Bob")[0].partition("#")[2]})
        sizes = [Image.open(io.BytesIO(browser.get(card[part]).content)).size[0] for part in ("image", "thumbnail")]
    assert sizes == [KEPT_SIDE, THUMBNAIL_SIDE]


def test_the_picture_of_a_blind_item_has_words_that_do_not_name_it(owner, name):
    address = owner.http.post("/api/uploads", files={"file": ("a.png", png(), "image/png")}).json()["address"]
    owner.create(name, [{"name": "secret", "image": address}, {"name": "b", "text": "t"}], blind=True)
    (ann,) = owner.judges(name, "Ann")
    question = take(ann, name)["questions"][0]
    card = next(question[side] for side in ("first", "second") if question[side]["image"])
    assert card["title"] is None
    assert card["alt"] == "Picture of this item"


def test_sound_can_be_played_from_the_middle(owner, server, name):
    data = b"ID3" + bytes(range(256)) * 4
    sent = owner.http.post("/api/uploads", files={"file": ("a.mp3", data, "text/html")}).json()
    assert sent["kind"] == "audio"
    owner.create(name, [{"name": "a", "audio": sent["address"]}, {"name": "b", "video": "https://films.example/b.mp4"}])
    (link,) = owner.links(name, "Ann")
    with server.client() as browser:
        browser.post("/api/sessions", json={"token": link.partition("#")[2]})
        whole, part = (browser.get(sent["address"], headers=h) for h in ({}, {"range": "bytes=100-199"}))
        policy = browser.get(f"/judge/{name}").headers["content-security-policy"]
    assert (whole.status_code, whole.headers["content-type"]) == (200, "audio/mpeg")
    assert (part.status_code, part.content) == (206, data[100:200])
    assert part.headers["content-range"] == f"bytes 100-199/{len(data)}"
    assert "media-src 'self' https://films.example;" in policy


# --- items from files ---


def workbook(rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("file", "data"),
    [
        ("items.csv", b"Name,Description,Table\nKite,a kite,4\nTram,,5\n"),
        ("items.csv", "Name;Description\nKite;a kite\nTram;\n".encode("utf-8-sig")),
        ("items.xlsx", workbook([["Name", "Description", "Table"], ["Kite", "a kite", 4], ["Tram", None, 5]])),
        ("items.json", json.dumps([{"name": "Kite", "text": "a kite"}, "Tram"]).encode()),
    ],
)
def test_items_are_read_from_tables(owner, file, data):
    read = owner.http.post("/api/items/read", files={"file": (file, data)})
    assert read.status_code == 200, read.text
    parts = [{part: item[part] for part in ("name", "text")} for item in read.json()["items"]]
    assert parts == [{"name": "Kite", "text": "a kite"}, {"name": "Tram", "text": ""}]


def test_a_table_without_column_names_is_all_items(owner):
    read = owner.http.post("/api/items/read", files={"file": ("items.csv", b"Kite,a kite\nTram,a tram\n")}).json()
    assert [item["name"] for item in read["items"]] == ["Kite", "Tram"]
    assert "does not name the columns" in read["notes"][0]


@pytest.mark.parametrize(
    ("file", "data", "said"),
    [
        ("items.json", b'[{"name": "a", "colour": "red"}]', "item 1 of the file: colour"),
        ("items.json", b"{not json", "not valid JSON"),
        ("items.csv", b"text,image\na,b\n", "no column is called name"),
        ("items.csv", b"", "0 items"),
        ("items.json", b'["Kite", {"text": "no name"}]', "item 2 of the file: name is missing"),
        ("items.csv", b"name,text\n" + b"x" * 300 + b",a\n", "name is too long; use at most 200 characters"),
        ("items.xlsx", b"PK\x03\x04nonsense", "items.xlsx"),
    ],
)
def test_a_file_that_is_not_understood_is_refused_with_the_reason(owner, file, data, said):
    read = owner.http.post("/api/items/read", files={"file": (file, data)})
    assert read.status_code == 422
    assert said in read.json()["detail"]


@pytest.mark.parametrize("title", ["हिन्दी पोस्टर", "مسابقة", "ประกวดโปสเตอร์", "Plakáty"])
def test_a_study_is_named_in_any_script(server, owner, name, title):
    study = f"{title} {name}"
    owner.create(study, ["ant", "bee", "cat"])
    (ann,) = owner.judges(study, "Ann")
    vote(ann, take(ann, study)["questions"][0]["id"], 1)
    for part in ("votes.csv?all=true", "proof.jsonl"):
        saved = owner.http.get(f"/api/studies/{study}/{part}")
        assert saved.status_code == 200
        assert "attachment" in saved.headers["content-disposition"]


def test_a_study_may_have_thousands_of_items(owner, name):
    board = owner.create(name, [f"item {number}" for number in range(1500)], k=1200)
    assert len(board["items"]) == 1500


# --- files out ---


def test_the_votes_of_a_spreadsheet_run_nothing(server, owner, name):
    owner.create(name, ["=HYPERLINK(1)", "@cmd", "+ plus", "plain"], cases=["-case", "b"])
    (ann,) = owner.judges(name, "=Ann")
    for outcome in (1, 0, 0.5):
        vote(ann, take(ann, name)["questions"][0]["id"], outcome)
    take(ann, name)
    rows = list(csv.DictReader(io.StringIO(owner.http.get(f"/api/studies/{name}/votes.csv").text)))
    assert [row["outcome"] for row in rows] == ["1", "0", "0.5"]
    assert [row["id"] for row in rows] == [row.id for row in load_study(name, server.storage).rows[:3]]
    for row in rows:
        assert row["asked"] <= row["answered"]
        assert row["answered"].endswith("Z")
        assert row["status"] == "counted"
        assert row["case"]
        assert row["judge"] == "judge #1"
        for cell in row.values():
            assert not cell.startswith(("=", "+", "-", "@")), row
    everything = owner.http.get(f"/api/studies/{name}/votes.csv", params={"all": True}).text
    assert "pending" in everything


def test_the_proof_file_holds(owner, name):
    owner.create(name, ITEMS, delta=0.3)
    (ann,) = owner.judges(name, "Ann")
    while (turn := take(ann, name))["state"] == "open":
        question = turn["questions"][0]
        vote(ann, question["id"], float(question["first"]["title"] < question["second"]["title"]))
    assert check(owner.http.get(f"/api/studies/{name}/proof.jsonl").text)["verdict"]["top"] == ["ant"]


def test_a_backup_of_everything(server, owner, name, tmp_path):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    vote(ann, take(ann, name)["questions"][0]["id"], 1)
    sent = owner.http.get("/api/backup.db")
    assert sent.status_code == 200
    (tmp_path / "backup.db").write_bytes(sent.content)
    target = f"sqlite:///{tmp_path / 'new.db'}"
    assert name in restore(tmp_path / "backup.db", target)
    assert load_study(name, target).head == load_study(name, server.storage).head
    assert ann.get("/api/backup.db").status_code in (401, 429)


# --- results ---


@pytest.mark.parametrize("path", ["/results/nothing", "/studies/no study", "/nowhere", "/studies/<b>"])
def test_who_opens_a_wrong_address_sees_a_page_and_a_program_a_problem_document(server, path):
    with server.client() as anybody:
        page = anybody.get(path, headers={"accept": "text/html,*/*;q=0.8", "accept-language": "de"})
        assert page.status_code in (404, 422)
        assert page.headers["content-type"].startswith("text/html")
        assert "<h1>D" in page.text  # in German
        assert "<b>" not in page.text
        plain = anybody.get(path)
        assert (plain.status_code, plain.headers["content-type"]) == (page.status_code, "application/problem+json")


def test_results_are_secret_until_they_are_published(server, owner, name):
    address = owner.http.post("/api/uploads", files={"file": ("a.png", png(), "image/png")}).json()["address"]
    owner.create(name, [{"name": "ant", "image": address}, "bee", "cat"], k=2)
    (ann,) = owner.judges(name, "Ann")
    for _ in range(3):
        question = take(ann, name)["questions"][0]
        vote(ann, question["id"], float(question["first"]["title"] < question["second"]["title"]))
    load_study(name, server.storage).settle()
    places = (f"/results/{name}", f"/api/studies/{name}/results", address)
    with server.client() as stranger:
        assert [stranger.get(place).status_code for place in places] == [404] * 3
        assert stranger.get(f"/present/{name}").status_code == 401
        assert stranger.put(f"/api/studies/{name}/published", json={"published": True}).status_code == 401
        assert ann.put(f"/api/studies/{name}/published", json={"published": True}).status_code in (401, 429)
        made = owner.http.put(f"/api/studies/{name}/published", json={"published": True}).json()
        assert made == {"published": True, "page": f"/results/{name}"}
        assert [stranger.get(place).status_code for place in places] == [200] * 3
        seen = stranger.get(places[1]).json()
        assert "Ann" not in json.dumps(seen)
        assert seen["judges"] == 1
        assert [item["title"] for item in seen["items"] if item["top"]] == owner.look(name)["verdict"]["top"]
        assert "utility" not in json.dumps(seen)
        owner.http.put(f"/api/studies/{name}/published", json={"published": False})
        assert [stranger.get(place).status_code for place in places] == [404] * 3
        assert stranger.get("/results/no such study").status_code == 404


# --- live ---


def test_news_come_when_something_happens(owner, name):
    owner.create(name, ITEMS)
    (ann,) = owner.judges(name, "Ann")
    with owner.http.stream("GET", f"/api/studies/{name}/news") as news:
        assert news.headers["content-type"].startswith("text/event-stream")
        lines = (line for line in news.iter_lines() if line.startswith("event"))
        assert next(lines) == "event: changed"  # what there is
        vote(ann, take(ann, name)["questions"][0]["id"], 1)
        assert next(lines) == "event: changed"
    assert ann.get(f"/api/studies/{name}/news").status_code in (401, 429)


def test_a_cookie_of_another_site_publishes_nothing(server, owner, name):
    owner.create(name, ITEMS)
    with server.client() as browser:
        browser.post("/api/sessions", json={"token": server.new_owner_link().partition("#")[2]})
        good = {"x-form-token": form_token(browser)}
        place = f"/api/studies/{name}/published"
        for wrong in ({}, {**good, "origin": "https://evil.example"}):
            assert browser.put(place, json={"published": True}, headers=wrong).status_code == 403
        assert browser.put(place, json={"published": True}, headers=good).status_code == 200


def test_an_event_with_tracks_is_a_study_for_each_and_one_overview(owner, name):
    items = [{"name": item, "track": track} for track in ("Art", "Code") for item in ("ant", "bee", "cat")]
    made = owner.http.post("/api/events", json={"name": name, "items": items, "k": 1})
    assert made.status_code == 201, made.text
    assert [(track["track"], track["name"], track["items"]) for track in made.json()["tracks"]] == [
        ("Art", f"{name} - Art", 3), ("Code", f"{name} - Code", 3),
    ]  # fmt: skip
    people = [{"name": "Ann", "email": "ann@example.org"}, {"name": "Bob", "tracks": ["Code"]}]
    links = owner.http.post(f"/api/events/{name}/judges", json={"people": people}).json()["links"]
    assert [(link["judge"], link["study"]) for link in links] == [
        ("Ann", f"{name} - Art"), ("Ann", f"{name} - Code"), ("Bob", f"{name} - Code"),
    ]  # fmt: skip
    with owner.server.client(links[0]["link"].partition("#")[2]) as ann:
        vote(ann, take(ann, f"{name} - Art")["questions"][0]["id"], 1.0)
        assert (
            ann.post(f"/api/studies/{name} - Code/questions", json={"hold": 1}).status_code == 401
        )  # one link a track
    found = owner.http.get(f"/api/events/{name}").json()["tracks"]
    assert [track["event"] for track in found] == [name, name]
    assert {line["event"] for line in owner.http.get("/api/studies").json()["studies"][:2]} == {name}


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [({"k": 3}, 422, "needs more than that"), ({"name": "taken"}, 409, "already exists"),
     ({"items": [{"name": "a", "track": "Art"}, {"name": "b"}]}, 422, "has no track"),
     ({"from_study": "older"}, 422, "older study")],
)  # fmt: skip
def test_an_event_is_created_as_a_whole_or_not_at_all(owner, name, change, status, said):
    items = [{"name": item, "track": track} for track in ("Art", "Code") for item in ("ant", "bee", "cat")]
    if change.get("name"):
        change = {"name": name}
        owner.create(f"{name} - Code", ["x", "y"])
    refused = owner.http.post("/api/events", json={"name": name, "items": items, "k": 1, **change})
    assert (refused.status_code, said in refused.json()["detail"]) == (status, True), refused.text
    assert owner.http.get(f"/api/events/{name}").status_code == 404
    assert owner.http.get(f"/api/studies/{name} - Art").status_code == 404


def test_judges_of_an_unknown_track_or_with_a_taken_name_are_refused_before_any_is_added(owner, name):
    items = [{"name": item, "track": track} for track in ("Art", "Code") for item in ("ant", "bee", "cat")]
    owner.http.post("/api/events", json={"name": name, "items": items, "k": 1})
    owner.http.post(f"/api/studies/{name} - Code/judges", json={"names": ["Ann"]})
    for people in ([{"name": "Ann"}], [{"name": "Bob", "tracks": ["Art", "Music"]}]):
        assert owner.http.post(f"/api/events/{name}/judges", json={"people": people}).status_code in (409, 422)
    assert owner.http.get(f"/api/studies/{name} - Art/judges").json()["judges"] == []


def test_the_files_of_pages_come_compressed_and_a_judges_page_is_small(server, owner, name):
    owner.create(name, ITEMS)
    files = ("style.css", "api.js", "outbox.js", "judge.js")
    with server.client() as browser:
        answers = [browser.get(f"/static/{file}") for file in files]
    assert {answer.headers["content-encoding"] for answer in answers} == {"gzip"}
    assert sum(int(answer.headers["content-length"]) for answer in answers) < 30_000
