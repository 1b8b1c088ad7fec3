"""The command itself: one line for wrong calls, a link at the first start, several workers, death and restart."""

import importlib.util
import json
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from shortlist import load_study
from shortlist.cli import main
from tests.faults import Scene
from tests.web.server import Owner, Server, owner_key, take, vote

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def serve(monkeypatch, tmp_path, capsys):
    """`shortlist serve` with these options in this process and in a folder of its own; it must not begin to serve."""

    def call(*options):
        monkeypatch.setattr(sys, "argv", ["shortlist", "serve", *map(str, options)])
        monkeypatch.chdir(tmp_path)
        with pytest.raises(SystemExit) as ended:
            sys.exit(main())
        return ended.value.code, *capsys.readouterr()

    return call


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--workers", "2"), "SQLite allows only one server process"),
        (("--storage", "mysql://x/y"), "neither sqlite"),
        (("--log-level", "loud"), "choose one of debug, info, warning, error"),
        (("--host", "no.such.place.invalid"), "cannot listen"),
    ],
)
def test_wrong_calls_end_in_one_line(serve, options, said):
    code, out, err = serve(*options)
    assert code == 2
    assert said in err
    assert err.count("\n") == 1
    assert out == ""


def test_a_port_that_is_taken_is_said(server, serve, tmp_path):
    code, _, err = serve("--port", server.port)
    assert code == 2
    assert "cannot listen" in err
    assert not list(tmp_path.iterdir())


def test_a_new_link_for_the_owner(server, serve):
    code, out, _ = serve("--storage", server.storage, "--address", server.base, "--owner-link")
    assert not code
    address, _, token = out.strip().partition("#")
    assert address == f"{server.base}/join"
    assert owner_key(server, token)


def numbers(text):
    """The lines of /metrics: name with labels, and value."""
    lines = (line.rpartition(" ") for line in text.splitlines() if line[0] != "#")
    return {name: float(value) for name, _, value in lines}


def total(found, name, *parts):
    return sum(value for key, value in found.items() if key.startswith(name) and all(part in key for part in parts))


def test_metrics_and_docs(server, owner, name):
    owner.create(name, ["a", "b", "c"])
    (ann,) = owner.judges(name, "Ann")
    vote(ann, take(ann, name)["questions"][0]["id"], 1)
    text = httpx.get(f"{server.base}/metrics").text
    found, route = numbers(text), 'route="/api/questions/{id}/vote"'
    assert total(found, "shortlist_votes_total", 'status="answered"') >= 1
    requests = total(found, "shortlist_requests_total", route)
    assert total(found, "shortlist_request_seconds_bucket", route, 'le="+Inf"') == requests
    assert total(found, "shortlist_request_seconds_sum", route) > 0
    assert name not in text
    contract = httpx.get(f"{server.base}/openapi.json").json()
    for place in ("/api/studies", "/api/studies/{name}", "/api/studies/{name}/questions", "/api/questions/{id}/vote",
                  "/api/questions/{id}/show", "/api/questions/{id}/undo", "/api/studies/{name}/votes.csv",
                  "/healthz"):  # fmt: skip
        assert place in contract["paths"]


@pytest.mark.slow
@pytest.mark.parametrize("order", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_it_starts_and_stops(tmp_path, order):
    server = Server(f"sqlite:///{tmp_path / 's.db'}", tmp_path).start()
    try:
        assert owner_key(server, server.owner_token)
        assert server.stop(order) == 0
        assert "All votes are saved" in server.out.read_text()
    finally:
        server.end()


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize("storage", ["sqlite", "postgres"])
def test_a_vote_is_stored_once_though_the_storage_was_away(storage, request, tmp_path):
    """The page sends an answer again after status 503. Here the client does."""
    url = f"sqlite:///{tmp_path / 's.db'}" if storage == "sqlite" else request.getfixturevalue("postgres_url")
    server, scene = Server(url, tmp_path).start(), Scene(tmp_path, url)
    try:
        owner = Owner(server, owner_key(server, server.owner_token))
        owner.create("demo", ["a", "b", "c"])
        (judge,) = owner.judges("demo", "ann")
        question = take(judge, "demo")["questions"][0]["id"]
        scene.vanish()
        said = vote(judge, question, 1.0)
        assert (said.status_code, said.json()["detail"]) == (503, "the storage does not answer; try again")
        assert owner.http.get("/healthz").status_code == 503
        scene.come_back()
        assert [vote(judge, question, 1.0).status_code for _ in range(2)] == [200, 200]
        assert owner.http.get("/healthz").status_code == 200
        owner.close()
    finally:
        server.end()
    study = load_study("demo", url)
    study.settle()
    assert study.counts["counted"] == 1


def test_two_workers_on_postgres(postgres_url, tmp_path):
    """A study that two workers serve in turns; a scrape of either counts the requests of both."""
    server = Server(postgres_url, tmp_path, "--workers", "2").start()
    try:
        owner = Owner(server, owner_key(server, server.owner_token))
        owner.http.headers["connection"] = "close"  # so that requests reach both workers
        owner.create("demo", ["ant", "bee", "cat", "dog"], delta=0.1)
        judges = owner.judges("demo", "Ann", "Bob")
        told, taken = {}, 0
        for judge in judges:
            judge.headers["connection"] = "close"
        while owner.look("demo")["state"] == "open" or len(workers(server)) < 2:
            for judge in judges:
                taken += 1
                for question in take(judge, "demo", 2)["questions"][:1]:
                    outcome = 1 if question["first"]["title"] < question["second"]["title"] else 0
                    assert vote(judge, question["id"], outcome).json()["status"] == "answered"
                    told[question["id"]] = outcome
        assert owner.look("demo")["verdict"]["top"] == ["ant"]
        owner.close()
        for _ in range(4):  # whichever worker answers
            found = numbers(httpx.get(f"{server.base}/metrics").text)
            assert total(found, "shortlist_votes_total", 'status="answered"') == len(told)
            for route, count in (("/api/questions/{id}/vote", len(told)), ("/api/studies/{name}/questions", taken)):
                assert total(found, "shortlist_requests_total", f'route="{route}"') == count
                assert total(found, "shortlist_request_seconds_count", f'route="{route}"') == count
        assert server.stop() == 0
        kept = load_study("demo", postgres_url).rows
        assert {f"demo.{a.question}": a.outcome for a in kept if a.outcome is not None} == told
    finally:
        server.end()


def workers(server):
    """Those that have answered so far, by the log."""
    return {json.loads(line)["worker"] for line in server.err.read_text().splitlines() if '"request"' in line}


def load_benchmark():
    """The benchmark of the service as a module, though benchmarks are programs."""
    found = importlib.util.spec_from_file_location("benchmark_web", ROOT / "benchmarks" / "web.py")
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("votes", "judges"),
    [pytest.param(120, 8, marks=pytest.mark.slow), pytest.param(1200, 20, marks=pytest.mark.sweep)],
)
@pytest.mark.parametrize("storage", ["sqlite", "postgres"])
def test_a_killed_worker_loses_no_acknowledged_vote(storage, votes, judges, request, tmp_path):
    """The benchmark, small: a worker is killed twice while judges vote."""
    url = f"sqlite:///{tmp_path / 's.db'}" if storage == "sqlite" else request.getfixturevalue("postgres_url")
    given = SimpleNamespace(storage=storage, votes=votes, judges=judges, think=0.05, near=0.02, kill=True)
    row = load_benchmark().measure(url, tmp_path, given)
    assert row["acknowledged"] == row["stored"] == row["verdict_votes"] == votes
    assert (row["lost"], row["doubled"], row["misattributed"]) == (0, 0, 0)
    assert row["replay"] == "same"
    assert row["kills"] == 2
    assert row["retries"] > 0 or storage == "postgres"  # there another worker may answer all that is asked meanwhile
