"""The command itself: one line for wrong calls, a link at the first start, several workers, death and restart."""

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from shortlist import load_study
from tests.web.server import Owner, Server, owner_key, take, vote

ROOT = Path(__file__).parent.parent.parent


def shortlist(*options, folder):
    command = [sys.executable, "-m", "shortlist", "serve", *map(str, options)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--workers", "2"), "SQLite lets one process write at a time"),
        (("--storage", "mysql://x/y"), "neither sqlite"),
        (("--log-level", "loud"), "choose debug, info, warning or error"),
        (("--host", "no.such.place.invalid"), "cannot listen"),
    ],
)
def test_wrong_calls_end_in_one_line(options, said, tmp_path):
    done = shortlist(*options, folder=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_port_that_is_taken_is_said(server, tmp_path):
    done = shortlist("--port", server.port, folder=tmp_path)
    assert done.returncode == 2
    assert "cannot listen" in done.stderr
    assert not list(tmp_path.iterdir())


def test_metrics_and_docs(server, owner, name):
    owner.create(name, ["a", "b", "c"])
    (ann,) = owner.judges(name, "Ann")
    vote(ann, take(ann, name)["questions"][0]["id"], 1)
    text = httpx.get(f"{server.base}/metrics").text
    lines = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if line[0] != "#"}
    counted = [value for key, value in lines.items() if key.startswith('shortlist_votes_total{status="counted"')]
    assert counted[0] >= 1
    route = "/api/questions/{id}/vote"
    total = sum(v for k, v in lines.items() if k.startswith("shortlist_requests_total") and route in k)
    infinite = [v for k, v in lines.items() if "_bucket" in k and route in k and '"+Inf"' in k]
    assert infinite == [total]
    assert name not in text
    contract = httpx.get(f"{server.base}/openapi.json").json()
    for place in ("/api/studies", "/api/studies/{name}", "/api/studies/{name}/questions", "/api/questions/{id}/vote",
                  "/api/questions/{id}/undo", "/api/studies/{name}/votes.csv", "/healthz"):  # fmt: skip
        assert place in contract["paths"]


@pytest.mark.slow
def test_two_workers_on_postgres(postgres_url, tmp_path):
    server = Server(postgres_url, tmp_path, "--workers", "2").start()
    try:
        owner = Owner(server, owner_key(server, server.owner_token))
        owner.http.headers["connection"] = "close"  # so that requests reach both workers
        owner.create("demo", ["ant", "bee", "cat", "dog"], delta=0.1)
        judges = owner.judges("demo", "Ann", "Bob")
        told = {}
        for judge in judges:
            judge.headers["connection"] = "close"
        while owner.look("demo")["state"] == "open":
            for judge in judges:
                for question in take(judge, "demo", 2)["questions"][:1]:
                    outcome = 1 if question["first"]["title"] < question["second"]["title"] else 0
                    assert vote(judge, question["id"], outcome).json()["status"] == "counted"
                    told[question["id"]] = outcome
        assert owner.look("demo")["verdict"]["top"] == ["ant"]
        owner.close()
        workers = {json.loads(line)["worker"] for line in server.err.read_text().splitlines() if '"request"' in line}
        assert len(workers) == 2
        server.stop()
        kept = load_study("demo", postgres_url).history
        assert {f"demo.{a.question.id}": a.outcome for a in kept if a.outcome is not None} == told
    finally:
        if server.process.poll() is None:
            server.kill()


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["sqlite", "postgres"])
def test_a_killed_worker_loses_no_acknowledged_vote(storage):
    """The benchmark, small: a worker is killed twice while judges vote."""
    command = [sys.executable, str(ROOT / "benchmarks" / "web.py"), storage, "--kill"]
    sizes = ["--votes", "240", "--judges", "8", "--think", "0.05"]
    done = subprocess.run([*command, *sizes], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    row = json.loads(done.stdout)
    assert row["acknowledged"] == row["stored"] == row["verdict_votes"] == 240
    assert (row["lost"], row["doubled"], row["misattributed"]) == (0, 0, 0)
    assert row["replay"] == "same"
    assert row["retries"] > 0
