"""A command that is running: what goes in, what comes out, and that nothing of it stays."""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from shortlist.errors import BadJudge, JudgeUnavailable, JudgeUnclear

MOST_OUTPUT = 1 << 20  # bytes; an answer is a line
STDERR_KEPT = 2000  # bytes
LAST_WORDS = 0.5  # seconds for output that is still in the pipe when the command has ended


class Ended(NamedTuple):
    """A command that has run to its end."""

    status: int
    output: bytes


class Process(asyncio.SubprocessProtocol):
    """One command in a process group of its own, which is killed when the command ends or `end` is called.

    asyncio's own `wait` would also wait for a pipe that a child of the command keeps open.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._output, self._errors = bytearray(), bytearray()
        self._exited: asyncio.Future[int] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        self._news = asyncio.Event()
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._errors = (self._errors + data)[-STDERR_KEPT:]
            return
        self._output += data
        self._news.set()
        if len(self._output) > MOST_OUTPUT:
            self._kill()

    def process_exited(self) -> None:
        self._kill()
        self._exited.set_result(self._transport.get_returncode())

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set_result(None)
        self._news.set()

    @property
    def is_alive(self) -> bool:
        return not self._exited.done()

    @property
    def complaint(self) -> str:
        """The end of what the command wrote to its standard error."""
        text = " ".join(self._errors.decode("utf-8", "replace").split())
        return f": {text[-300:]}" if text else ""

    def send(self, line: bytes, last: bool = False) -> None:
        """Write a line to the command, and if it is the last one, close its standard input."""
        pipe = self._transport.get_pipe_transport(0)
        pipe.write(line)
        if last:
            pipe.write_eof()

    async def finish(self) -> Ended:
        """Wait until the command has ended."""
        status = await asyncio.shield(self._exited)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._closed), LAST_WORDS)
        self._check_size()
        return Ended(status, bytes(self._output))

    async def read_line(self) -> bytes:
        """The next line of output. Raises JudgeUnavailable if the command ends before it is complete."""
        while b"\n" not in self._output:
            self._check_size()
            if self._closed.done():
                raise JudgeUnavailable(f"the command ended with status {self._exited.result()}{self.complaint}")
            self._news.clear()
            await self._news.wait()
        line, _, rest = self._output.partition(b"\n")
        self._output = rest
        return bytes(line)

    async def end(self) -> None:
        """Kill what is left of the command and its children."""
        self._kill()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._exited), LAST_WORDS)
        self._transport.close()

    def _check_size(self) -> None:
        if len(self._output) > MOST_OUTPUT:
            raise JudgeUnclear(f"the command printed more than {MOST_OUTPUT:,} bytes")

    def _kill(self) -> None:
        if self._exited.done():  # its number may belong to somebody else by now
            return
        with suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(self._transport.get_pid(), signal.SIGKILL)  # a session of its own: group and process agree
            else:
                self._transport.kill()


async def start_process(command: Sequence[str]) -> Process:
    """Run a command. Raises BadJudge if there is no such program."""
    loop = asyncio.get_running_loop()
    try:
        _, process = await loop.subprocess_exec(Process, *command, start_new_session=True)
    except (FileNotFoundError, PermissionError, NotADirectoryError) as reason:
        raise BadJudge(f"cannot run {command[0]!r}: {reason.strerror}; give a program that can be run") from None
    except (OSError, ValueError) as reason:
        raise JudgeUnavailable(f"cannot run {command[0]!r}: {reason}") from None
    return process
