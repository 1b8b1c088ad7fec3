"""Find the best 3 of twelve prompts over 200 cases; the judge is a model behind an OpenAI-compatible endpoint.

The model is a small stand-in that runs on this machine, so the example costs nothing and needs no network. To use a
real model, remove `stand_in` and give `EndpointJudge` the URL and the name of your model.
"""

import hashlib
import json
import os
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import shortlist

QUALITY = {
    "plain question": 0.0, "polite question": 0.2, "role play": 0.8, "one example": 0.9, "three examples": 2.9,
    "step by step": 2.7, "reason then check": 3.2, "bullet points": 0.6, "strict format": 0.7,
    "short answer": 0.3, "long answer": 0.5, "self critique": 0.8,
}  # fmt: skip
CASES = [f"customer question number {number}" for number in range(200)]


def write_answer(prompt: str, case: shortlist.Case | None) -> str:
    """Return the output of a prompt on a case. A real program calls a model here, or looks up stored outputs."""
    assert case is not None
    luck = hashlib.blake2b(f"{prompt} {case.id}".encode(), digest_size=2).digest()
    return f"An answer to {case.text}, worth {QUALITY[prompt] + int.from_bytes(luck) / 65536 * 3:.3f} points."


class StandIn(BaseHTTPRequestHandler):
    """A model that recognises the better answer, but one time in three prefers the answer shown first."""

    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        with suppress(ConnectionError):  # pending calls are cancelled when the study is done
            super().handle()

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = request["messages"][0]["content"]
        first, second = (float(points) for points in re.findall(r"worth ([0-9.]+) points", text))
        lazy = hashlib.blake2b(text.encode(), digest_size=1).digest()[0] % 3 == 0
        verdict = "[[A]]" if lazy or first > second else "[[B]]"
        answer = {"choices": [{"message": {"role": "assistant", "content": f"It is worth more.\n{verdict}"}}]}
        body = json.dumps({**answer, "usage": {"prompt_tokens": len(text) // 4, "completion_tokens": 8}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def stand_in() -> Iterator[str]:
    """Serve the stand-in and yield its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def main() -> None:
    os.environ["NO_PROXY"] = "127.0.0.1"
    with tempfile.TemporaryDirectory() as folder, stand_in() as url:
        study = shortlist.create_study(
            list(QUALITY), k=3, delta=0.05, storage=f"sqlite:///{Path(folder) / 'studies.db'}", name="prompts"
        )
        judge = shortlist.EndpointJudge(url, "stand-in", temperature=0.0, key_variable=None)
        run = shortlist.run_study(
            study, judge, cases=CASES, contents=write_answer, position="both", workers=8, warn=print
        )
    print(run.verdict)
    print(f"{run.costs.calls:,} calls, {run.costs.saved:,} saved by the cache, {run.costs.prompt_tokens:,} tokens read")
    print(f"The order of the two answers changed the verdict on {run.stats.flip_rate:.0%} of the questions.")


if __name__ == "__main__":
    main()
