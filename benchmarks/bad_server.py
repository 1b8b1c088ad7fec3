"""A run against a server of a language model that does everything wrong, from the command line.

    python benchmarks/bad_server.py

starts a scripted server in a process of its own. It refuses, cuts answers off, thinks aloud and never ends, limits the
rate, sends malformed JSON and empty answers, takes a request and sends nothing, answers 500 to everything for 60
seconds, and dies. The run is interrupted and killed; each time the same command goes on. The server keeps an account of
every answer that it generated. At the end: what it was paid for, what is stored, what was paid twice, and under which
name each fault was reported. Takes three minutes.
"""

import argparse
import collections
import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SHORTLIST = Path(sys.executable).with_name("shortlist")
ITEMS, CASES, WORKERS, OUTAGE = 6, 40, 4, 60.0
USAGE = {"prompt_tokens": 100, "completion_tokens": 10}
EVERY = 6  # requests from one fault to the next
Message = dict[str, Any]


class Handler(BaseHTTPRequestHandler):
    """Answers well, but for every sixth request, which meets the next of FAULTS."""

    account: Path  # a line for each answer that was generated, written before it is sent
    numbers = itertools.count(1)
    lock = threading.Lock()
    down_until = 0.0
    has_been_down = False

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.prompt = body["messages"][-1]["content"]
        with self.lock:
            number = next(self.numbers)
        if time.monotonic() < Handler.down_until:
            return self.refuse(500, b'{"error": {"message": "internal error"}}')
        name = list(FAULTS)[number // EVERY % len(FAULTS)]
        if number % EVERY or (name == DOWN and Handler.has_been_down):
            return self.answer({"content": self.verdict})
        self.note(fault=name, asked=self.prompt)
        FAULTS[name](self)

    def note(self, **line: Any) -> None:
        with self.lock, self.account.open("a") as account:
            account.write(json.dumps(line) + "\n")

    @property
    def verdict(self) -> str:
        """The longer output wins."""
        first, second = (self.prompt.partition(f"[Answer {side}]\n")[2].partition("\n[End")[0] for side in "AB")
        return "[[A]]" if len(first) > len(second) else "[[B]]"

    def answer(self, message: Message, finish: str = "stop") -> None:
        """What is generated has to be paid for."""
        self.note(prompt=self.prompt, verdict="[[" in str(message.get("content")))
        choice = {"message": {"role": "assistant", **message}, "finish_reason": finish}
        self.say(200, json.dumps({"choices": [choice], "usage": USAGE}).encode())

    def refuse(self, status: int, body: bytes, **headers: str) -> None:
        self.say(status, body, **headers)

    def say(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def go_down(self) -> None:
        Handler.has_been_down, Handler.down_until = True, time.monotonic() + OUTAGE
        self.refuse(500, b'{"error": {"message": "internal error"}}')

    def log_message(self, *_: Any) -> None:
        pass


DOWN = "500 for 60 seconds"
FAULTS: dict[str, Callable[[Handler], None]] = {
    "refuses": lambda server: server.answer({"content": None, "refusal": "I will not compare people."}),
    "cuts the answer off": lambda server: server.answer({"content": "Let me"}, "length"),
    "thinks and never ends": lambda server: server.answer({"content": "<think>perhaps"}),
    "thinks, then answers": lambda server: server.answer({"content": f"<think>[[A]]</think>{server.verdict}"}),
    "limits the rate": lambda server: server.refuse(429, b"{}", Retry_After="1"),
    "malformed JSON": lambda server: server.refuse(200, b'{"choices": [{"mess'),
    "an empty answer": lambda server: server.answer({"content": ""}),
    "sends nothing": lambda server: time.sleep(3600),
    DOWN: Handler.go_down,
}
NAMED = {
    "refuses": "it refused", "cuts the answer off": "cut off (length)", "thinks and never ends": "no end",
    "malformed JSON": "not send a JSON object", "an empty answer": "answer is empty",
    "sends nothing": "no answer within", "500 for 60 seconds": "waiting for the judge",
    "dies": "no answer from",
}  # fmt: skip


class QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a run that was killed
            super().handle_error(request, client_address)


def serve(port: int, account: Path) -> None:
    Handler.account, Handler.protocol_version = account, "HTTP/1.1"
    Handler.has_been_down = "down" in account.with_suffix(".once").read_text()
    QuietServer(("127.0.0.1", port), Handler).serve_forever()


class Server:
    """The server's process. `paid` is its account."""

    def __init__(self, folder: Path) -> None:
        self._account = folder / "account.jsonl"
        self._account.touch()
        self._account.with_suffix(".once").write_text("")
        with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as found:
            self._port = found.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}/v1"
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen([sys.executable, __file__, "--serve", str(self._port), str(self._account)])
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port)):
                return
            time.sleep(0.05)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def die(self) -> None:
        """Come back after three seconds, without a second outage."""
        self.kill()
        self._account.with_suffix(".once").write_text("down")
        time.sleep(3)
        self.start()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._account.read_text().splitlines()]

    @property
    def paid(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if "prompt" in line]


def write_outputs(path: Path) -> None:
    rows = [
        {"model": f"model {item}", "id": f"c{case}", "prompt": f"Explain {case}.", "response": f"About {case}: {said}"}
        for item in range(ITEMS)
        for case in range(CASES)
        for said in ["x" * (1 + (7 * case + 13 * item) % 40 + 9 * item)]
    ]
    path.write_text("\n".join(map(json.dumps, rows)))


def replies(storage: Sequence[str], file: Path) -> list[dict[str, Any]]:
    subprocess.run([SHORTLIST, "read", *storage, "--export", file], check=True, capture_output=True)
    return [json.loads(line) for line in file.read_text().splitlines()]


def runs(command: Sequence[str], server: Server) -> Iterator[tuple[str, str]]:
    """The same command until it ends by itself, and what each run said."""
    faults: dict[str, tuple[int, Callable[[subprocess.Popen[str]], None]]] = {
        "interrupted": (25, lambda run: run.send_signal(signal.SIGINT)),
        "killed": (50, lambda run: run.kill()),
        "server dies": (80, lambda _: server.die()),
    }
    for name, (answers, strike) in faults.items():
        run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while len(server.paid) < answers and run.poll() is None:
            time.sleep(0.02)
        strike(run)
        said = run.communicate()[1]
        yield f"{name}: exit code {run.returncode}", said
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, said = run.communicate()
    found = json.loads(out)
    yield f"again: exit code {run.returncode}, {found['reason']}", said


def main() -> None:
    parser = argparse.ArgumentParser(description="A run against a server that does everything wrong.")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        return serve(int(given.serve[0]), Path(given.serve[1]))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_outputs(folder / "outputs.jsonl")
        server, storage = Server(folder), ["bad", "--storage", f"sqlite:///{folder}/bad.db"]
        command = [
            str(SHORTLIST), "run", str(folder / "outputs.jsonl"), "-k", "2", "--judge-url", server.url, "--model",
            "bad", "--key-variable", "none", "--price", "1,1", "--max-tokens", "50", "--workers", str(WORKERS),
            "--time-limit", "3", "--json", "--name", *storage,
        ]  # fmt: skip
        said = list[str]()
        try:
            for line, words in runs(command, server):
                print(line, flush=True)
                said += words.splitlines()
            report(server.lines, replies(storage, folder / "replies.jsonl"), said)
        finally:
            server.kill()


def report(lines: list[dict[str, Any]], stored: list[dict[str, Any]], said: list[str]) -> None:
    account = [line for line in lines if "prompt" in line]
    played = collections.Counter(line["fault"] for line in lines if "fault" in line)
    limited = {line["asked"] for line in lines if line.get("fault") == "limits the rate"}
    generated = [one for one in stored if one["prompt_tokens"]]
    decided = [(one["first"], one["second"], one["case"]) for one in stored if one["outcome"] is not None]
    asked = collections.Counter(one["prompt"] for one in account if one["verdict"])
    print(f"answers that the server generated: {len(account):,}, stored with what they cost: {len(generated):,}")
    print(f"verdicts stored: {len(decided):,}, the same question twice: {len(decided) - len(set(decided))}")
    print(f"verdicts that the server gave twice for one prompt: {sum(asked.values()) - len(asked)}")
    for fault, word in NAMED.items():
        reasons = [one["reason"] for one in stored if word in one["reason"]] + [line for line in said if word in line]
        named = " ".join(reasons[-1].split())[:100] if reasons else "NOT NAMED"
        print(f"  {fault}: played {played.get(fault, 1)} times; {named}")
    print(f"  limits the rate: played {len(limited)} times; {len(limited & set(asked))} asked again and answered")


if __name__ == "__main__":
    os.environ["PYTHONUNBUFFERED"] = "1"
    main()
