"""A server of a language model as a process of its own, to be killed: python -m tests.judges.server_process PORT FILE
[silent]. It writes a line to FILE for every answer that it has generated, before it sends it. A silent one accepts
connections and sends nothing."""

import os
import socket
import sys
from http.server import BaseHTTPRequestHandler

from tests.judges.server import Endpoint, Server, say


def main(port, file, *options):
    if options == ("silent",):
        waiting = socket.create_server(("127.0.0.1", int(port)), backlog=64)
        print("ready", flush=True)
        kept = []
        while True:
            kept.append(waiting.accept())

    behave = say("I think so.\n{better}", usage={"prompt_tokens": 10, "completion_tokens": 3})
    endpoint = Endpoint("", None)
    paid = os.open(file, os.O_APPEND | os.O_CREAT | os.O_WRONLY)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            endpoint.take(self)
            os.write(paid, (repr(self.prompt) + "\n").encode())
            behave(self)

        def log_message(self, *_):
            pass

    server = Server(("127.0.0.1", int(port)), Handler)
    server.daemon_threads = True
    print("ready", flush=True)
    server.serve_forever(poll_interval=0.01)


if __name__ == "__main__":
    main(*sys.argv[1:])
