"""A real HTTP server that speaks like a chat endpoint, or misbehaves on purpose."""

import json
import re
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def send(handler, status, body, **headers):
    """A complete response."""
    handler.send_response(status)
    for name, value in {"Content_Type": "application/json", "Content_Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def say(text, usage=None, finish="stop", **message):
    """A behaviour: answer with this text; `{better}` is what the judge should have said."""

    def behave(handler):
        is_choice = isinstance(text, str) and "{better}" in text
        content = text.replace("{better}", better(handler.prompt)) if is_choice else text
        choice = {"message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
        send(handler, 200, json.dumps({"choices": [choice], "usage": usage}).encode())

    return behave


def fail(status, body=b"{}", **headers):
    return lambda handler: send(handler, status, body, **headers)


def better(prompt):
    """The mark of the answer that comes first in the alphabet."""
    first = re.search(r"\[Answer A\]\n(.*?)\n\[End", prompt, re.DOTALL)[1]
    second = re.search(r"\[Answer B\]\n(.*?)\n\[End", prompt, re.DOTALL)[1]
    return "[[A]]" if first < second else "[[B]]"


class Endpoint:
    """What was asked, and how to behave: `script` for the first requests, then `always`."""

    def __init__(self, url, over):
        self.url, self.over = url, over
        self.requests = []
        self.script = []
        self.always = say("I think so.\n{better}", usage={"prompt_tokens": 10, "completion_tokens": 3})
        self.lock = threading.Lock()

    def take(self, handler):
        length = int(handler.headers.get("Content-Length", 0))
        body = json.loads(handler.rfile.read(length))
        handler.prompt = body["messages"][-1]["content"]
        with self.lock:
            self.requests.append({"headers": dict(handler.headers), "body": body, "path": handler.path})
            return self.script.pop(0) if self.script else self.always


class Server(ThreadingHTTPServer):
    """Says nothing of callers that hang up, which a run does at its end."""

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving():
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.over = over
            endpoint.take(self)(self)

        def log_message(self, *_):
            pass

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    over = threading.Event()
    endpoint = Endpoint(f"http://127.0.0.1:{server.server_address[1]}/v1", over)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield endpoint
    finally:
        over.set()
        server.shutdown()
        server.server_close()
