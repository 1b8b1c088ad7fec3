"""A real `shortlist serve` on a free port, and clients that talk to it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import httpx

from shortlist.study.sql import Database
from shortlist.web.auth import Kind, create_token
from shortlist.web.service import VARIABLE, Settings
from tests.patience import PATIENCE

PORTS = 5  # to try: another process may take a free port first
AUDIT = """
import sys
log = open({path!r}, "a", buffering=1)
log.write("started\\n")
KINDS = ("socket.connect", "socket.getaddrinfo", "socket.sendto")
sys.addaudithook(lambda kind, args: kind in KINDS and log.write(f"{{kind}} {{args}}\\n"))
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, storage, folder, *options):
        self.storage, self.folder, self.options = storage, Path(folder), options
        self.port = None
        self.out, self.err = self.folder / "out.txt", self.folder / "err.txt"
        self.process = None

    @property
    def base(self):
        return f"http://127.0.0.1:{self.port}"

    def command(self):
        command = [sys.executable, "-m", "shortlist", "serve", "--storage", self.storage, "--port", str(self.port)]
        return [*command, *self.options]

    def environment(self):
        return {}

    def start(self):
        """Starts on a new port, or again on the port it had."""
        for _ in range(PORTS if self.port is None else 1):
            self.port = self.port or free_port()
            self._launch()
            if self._wait_until_ready():
                return self
            self.port = None
        raise AssertionError(f"the service did not start: {self.err.read_text()}")

    def _launch(self):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **self.environment()}
        with self.out.open("a") as out, self.err.open("a") as err:
            self.process = subprocess.Popen(
                self.command(), stdout=out, stderr=err, env=environment, start_new_session=True
            )

    def _wait_until_ready(self):
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            try:
                if httpx.get(f"{self.base}/healthz").status_code == 200:
                    return True
            except httpx.TransportError:
                time.sleep(0.05)
            assert time.monotonic() < deadline, f"the service hangs: {self.err.read_text()}"
        return False

    def stop(self, order=signal.SIGINT):
        """Stops it as Ctrl-C does, or with another signal; returns the exit code."""
        self.process.send_signal(order)
        return self.process.wait(PATIENCE)

    def kill(self):
        """Kills all processes of the service at once, as a power cut does."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def end(self):
        """Whatever its state, nothing is left."""
        if self.process is not None and self.process.poll() is None:
            self.kill()

    @property
    def owner_token(self):
        """Of the link that was printed at the first start."""
        return re.search(r"/join#(\S+)", self.out.read_text())[1]

    def client(self, key=None):
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        return httpx.Client(base_url=self.base, headers=headers, timeout=PATIENCE)

    def new_owner_link(self):
        """What `shortlist serve --owner-link` prints, without a new process."""
        database = Database(self.storage)
        try:
            return f"{self.base}/join#{create_token(database, Kind.owner_link)}"
        finally:
            database.close()


class Audited(Server):
    """Writes down every connection and every look-up of a name that the service makes."""

    @property
    def calls(self):
        return self.folder / "calls.txt"

    def environment(self):
        (self.folder / "sitecustomize.py").write_text(AUDIT.format(path=str(self.calls)))
        return {"PYTHONPATH": os.pathsep.join([str(self.folder), os.environ.get("PYTHONPATH", "")])}


class Unlimited(Server):
    """Started as a worker is, but without rate limits."""

    def command(self):
        app = ["--factory", "shortlist.web.app:create_app", "--port", str(self.port), "--no-access-log"]
        return [sys.executable, "-m", "uvicorn", *app]

    def environment(self):
        settings = Settings(self.storage, token_rate=1e6, address_rate=1e6, failure_rate=1e6)
        return {VARIABLE: json.dumps(asdict(settings))}


def owner_key(server, token):
    """What a program gets from the owner's link: a session, and with it a key."""
    with server.client() as client:
        assert client.post("/api/sessions", json={"token": token}).json()["role"] == "owner"
        made = client.post("/api/keys", headers={"x-form-token": form_token(client)})
        assert made.status_code == 201, made.text
        return made.json()["key"]


def form_token(client, page="/"):
    return re.search(r'name="form-token" content="(\w+)"', client.get(page).text)[1]


class Owner:
    """The owner at work, by the API."""

    def __init__(self, server, key):
        self.server, self.key, self.http = server, key, server.client(key)
        self.clients = [self.http]

    def create(self, name, items, k=1, min_judges=1, **options):
        """Most tests have one judge, so one is enough for a proof."""
        listed = [{"name": item} if isinstance(item, str) else item for item in items]
        body = {"name": name, "items": listed, "k": k, "min_judges": min_judges, **options}
        made = self.http.post("/api/studies", json=body)
        assert made.status_code == 201, made.text
        return made.json()

    def links(self, study, *names):
        """The links of new judges."""
        made = self.http.post(f"/api/studies/{study}/judges", json={"names": names})
        assert made.status_code == 201, made.text
        return [entry["link"] for entry in made.json()["links"]]

    def judges(self, study, *names):
        """Clients of new judges, by the tokens of their links."""
        clients = [self.server.client(link.partition("#")[2]) for link in self.links(study, *names)]
        self.clients += clients
        return clients

    def close(self):
        for client in self.clients:
            client.close()

    def look(self, study):
        seen = self.http.get(f"/api/studies/{study}")
        assert seen.status_code == 200, seen.text
        return seen.json()


def take(judge, study, hold=1):
    turn = _send(judge, f"/api/studies/{study}/questions", {"hold": hold})
    assert turn.status_code == 200, turn.text
    return turn.json()


def vote(judge, question, outcome, hold=0):
    return _send(judge, f"/api/questions/{question}/vote", {"outcome": outcome, "hold": hold})


def _send(judge, path, body):
    """As the page does: a judge who is too quick for the service waits."""
    while (said := judge.post(path, json=body)).status_code == 429:
        time.sleep(0.05)
    return said
