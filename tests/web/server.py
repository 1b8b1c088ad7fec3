"""A real `shortlist serve` on a port of its own, and clients that talk to it."""

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

from shortlist.web.settings import VARIABLE, Settings

READY = 60.0  # seconds; a busy machine is slow to import


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, storage, folder, *options):
        self.storage, self.port, self.options = storage, free_port(), options
        self.base = f"http://127.0.0.1:{self.port}"
        self.out, self.err = Path(folder) / "out.txt", Path(folder) / "err.txt"
        self.process = None

    def command(self):
        command = [sys.executable, "-m", "shortlist", "serve", "--storage", self.storage, "--port", str(self.port)]
        return [*command, *self.options]

    def environment(self):
        return {}

    def start(self):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **self.environment()}
        with self.out.open("a") as out, self.err.open("a") as err:
            self.process = subprocess.Popen(
                self.command(), stdout=out, stderr=err, env=environment, start_new_session=True
            )
        deadline = time.monotonic() + READY
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.err.read_text()
            try:
                if httpx.get(f"{self.base}/healthz").status_code == 200:
                    return self
            except httpx.TransportError:
                time.sleep(0.1)
        raise AssertionError(f"the service did not start: {self.err.read_text()}")

    def stop(self):
        """In good order; returns the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)

    def kill(self):
        """As if the power went: all processes of the service at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)

    @property
    def owner_token(self):
        return re.search(r"/join#(\S+)", self.out.read_text())[1]

    def client(self, key=None):
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        return httpx.Client(base_url=self.base, headers=headers, timeout=30)

    def new_owner_link(self):
        command = [sys.executable, "-m", "shortlist", "serve", "--storage", self.storage, "--owner-link"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.strip().partition("#")[2]


class Unlimited(Server):
    """As a worker is started, but without limits on rates."""

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

    def create(self, name, items, k=1, **options):
        listed = [{"name": item} if isinstance(item, str) else item for item in items]
        made = self.http.post("/api/studies", json={"name": name, "items": listed, "k": k, **options})
        assert made.status_code == 201, made.text
        return made.json()

    def judges(self, study, *names):
        """Clients of new judges, by the tokens of their links."""
        made = self.http.post(f"/api/studies/{study}/judges", json={"names": names})
        assert made.status_code == 201, made.text
        clients = [self.server.client(link["link"].partition("#")[2]) for link in made.json()["links"]]
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
    turn = judge.post(f"/api/studies/{study}/questions", json={"hold": hold})
    assert turn.status_code == 200, turn.text
    return turn.json()


def vote(judge, question, outcome, hold=0):
    return judge.post(f"/api/questions/{question}/vote", json={"outcome": outcome, "hold": hold})
