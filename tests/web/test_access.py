"""Owner, viewer, judge and stranger try every route. The table of who may do what is in docs/guides/web.md."""

import re
from pathlib import Path

import pytest

from shortlist.web.app import ROUTERS
from shortlist.web.routes.pages import page
from tests.web.server import Owner, Unlimited, owner_key, take

GUIDE = Path(__file__).parent.parent.parent / "docs" / "guides" / "web.md"
ROLES = ("viewer", "judge", "stranger", "owner")  # the last one ends links
REFUSED = (401, 403, 404, 429)
SLOW = ("/api/studies/{name}/report.html",)  # the same check as for votes.csv, and it takes seconds


def table():
    """Who may use each route, by method and path, as the guide says."""
    rows = re.findall(r"^\| `([A-Z]+) (\S+)` \| ([a-z, ]+) \|", GUIDE.read_text(), re.MULTILINE)
    return {(method, path): set(who.split(", ")) for method, path, who in rows}


def routes():
    found = [route for router in (*ROUTERS, page) for route in router.routes if hasattr(route, "methods")]
    return {(method, route.path) for route in found for method in route.methods if method != "HEAD"}


def test_every_route_is_in_the_table():
    assert table().keys() == routes()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A study with a picture, and a client for each role."""
    folder = tmp_path_factory.mktemp("access")
    server = Unlimited(f"sqlite:///{folder / 's.db'}", folder).start()
    owner = Owner(server, owner_key(server, server.new_owner_link().partition("#")[2]))
    owner.create("demo", ["ant", "bee", "cat"])
    (judge,) = owner.judges("demo", "Ann")
    take(judge, "demo")
    viewer = server.client()
    link = owner.http.post("/api/studies/demo/viewer-link").json()["link"]
    assert viewer.post("/api/sessions", json={"token": link.partition("#")[2]}).status_code == 200
    signed_in = server.client()  # the owner in a browser, for pages
    signed_in.post("/api/sessions", json={"token": server.new_owner_link().partition("#")[2]})
    at_work = server.client()  # the judge in a browser
    at_work.post("/api/sessions", json={"token": judge.headers["authorization"].removeprefix("Bearer ")})
    clients = {"owner": owner.http, "viewer": viewer, "judge": judge, "stranger": server.client()}
    pages = {"owner": signed_in, "viewer": viewer, "judge": at_work, "stranger": clients["stranger"]}
    yield clients, pages
    for client in {*clients.values(), *pages.values()}:
        client.close()
    owner.close()
    server.end()


@pytest.mark.parametrize("role", ["judge", "owner"])
def test_a_cookie_alone_changes_nothing_at_any_route(place, role):
    """What another site could make a browser send: the cookie, without the page's form token."""
    browser, tried = place[1][role], 0
    for (method, path), allowed in sorted(table().items()):
        if method == "GET" or role not in allowed or (method, path) == ("POST", "/api/sessions"):
            continue
        address = path.replace("{name}", "demo").replace("{id}", "demo.0")
        said = browser.request(method, address, content=b"{}", headers={"content-type": "application/json"})
        assert (said.status_code, said.json()["detail"]) == (403, "this page is out of date; reload it"), (method, path)
        tried += 1
    assert tried == sum(method != "GET" and role in who for (method, _), who in table().items()) - 1


@pytest.mark.parametrize("role", ROLES)
def test_each_role_may_do_what_the_table_says(place, role):
    """A body that is not valid is refused as such (422) only to who may use the route."""
    clients, pages = place
    for (method, path), allowed in sorted(table().items()):
        if path in SLOW or (method, path) == ("DELETE", "/api/sessions"):  # who signs out can try nothing more
            continue
        address = path.replace("{name}", "demo").replace("{id}", "0" * 24 if "uploads" in path else "demo.0")
        client = (clients if path.startswith("/api") else pages)[role]
        body = None if method == "GET" else {"content": b"[]", "headers": {"content-type": "application/json"}}
        with client.stream(method, address, **(body or {})) as answer:
            status = answer.status_code
        if address == f"/uploads/{'0' * 24}":
            assert status == 404  # there is none, and nobody is told more
        elif role in allowed:
            assert status not in (401, 403), (role, method, path, status)
            assert status < 500, (role, method, path, status)
        else:
            assert status in REFUSED, (role, method, path, status)
