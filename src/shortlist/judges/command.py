"""A command as a judge: it reads a JSON object and prints a JSON object.

In:  {"id": "17", "first": "a", "second": "b", "first_text": null, "second_text": null,
      "case": {"id": "c3", "text": "..."}}
Out: {"winner": "first" | "second" | "tie" | a name}, {"outcome": 0.75} or {"skip": "why"}; other members are ignored.
"""

import asyncio
import hashlib
import json
import math
import os
import shlex
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from shortlist.core.outcomes import SHARES, share_of, winner_of
from shortlist.core.problem import shown, whole
from shortlist.errors import BadJudge, BadOutcome, JudgeUnavailable, JudgeUnclear, UnknownItem
from shortlist.judges.base import Ask, Call, Reply, Said, Skip

MOST_OUTPUT = 1 << 20  # bytes; an answer is one line
STDERR_KEPT = 2000  # bytes
LAST_WORDS = 0.5  # seconds for output that is still in the pipe when the command has ended


@dataclass(frozen=True)
class CommandJudge:
    """A program that is started for every call, or with `keep` once and then sent one line per call.

    A kept program answers each line with one line that repeats the `id`. `processes` of them are kept running, and
    each gets one call at a time. A program that is too slow, dies or answers another id is killed with its children
    and started again.
    """

    command: Sequence[str] | str
    name: str = ""
    keep: bool = False
    processes: int = 1

    def __post_init__(self) -> None:
        words = self.command
        if isinstance(words, str):
            try:
                words = shlex.split(words)
            except ValueError as reason:
                raise BadJudge(f"command {self.command!r} cannot be split into words: {reason}") from None
        if not words or not all(isinstance(word, str) and "\0" not in word for word in words):
            raise BadJudge(f"command {self.command!r} is not a command; give a string or a list of words")
        whole("processes", self.processes, 1)
        object.__setattr__(self, "command", tuple(words))
        object.__setattr__(self, "name", self.name or shlex.join(words))

    @property
    def default_name(self) -> str:
        return shlex.join(self.command)

    @property
    def settings(self) -> dict[str, Any]:
        """The words of the command, and a digest of every file that a word names: a program that was edited is another
        judge. Files ending in .log are left out, because a program writes them."""
        files = {}
        for place, word in enumerate(self.command):
            for path in {word, word.partition("=")[2]}:
                if path and not path.endswith(".log") and os.path.isfile(path):
                    files[f"{'program' if place < 2 and path == word else 'file'} {path}"] = _file_digest(path)
        return {"kind": "program", "command": list(self.command), **files}

    @property
    def max_parallel(self) -> int | None:
        return self.processes if self.keep else None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ask]:
        if not self.keep:
            yield self._ask_once
            return
        kept = _KeptProcesses(self.command)
        try:
            yield kept.ask
        finally:
            await kept.end()

    async def _ask_once(self, call: Call) -> Reply:
        process = await start_process(self.command)
        try:
            process.send(write_call(call), last=True)
            ended = await process.finish()
        finally:
            await process.end()
        if ended.status != 0:
            raise JudgeUnavailable(f"the command ended with status {ended.status}{process.complaint}", is_outage=False)
        return read_reply(ended.output, call)


def _file_digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "blake2b").hexdigest()
    except OSError as reason:
        raise BadJudge(f"cannot read {path}, which the command names: {reason.strerror}") from None


def write_call(call: Call) -> bytes:
    """The line that a command reads."""
    case = None if call.case is None else {"id": call.case.id, "text": call.case.text}
    if case is not None and call.case is not None and call.case.reference:
        case["reference"] = call.case.reference
    question = {
        "id": call.key,
        "first": call.first,
        "second": call.second,
        "first_text": call.first_text,
        "second_text": call.second_text,
        "case": case,
    }
    return json.dumps(question).encode() + b"\n"


def read_reply(output: bytes, call: Call, must_repeat_id: bool = False) -> Reply:
    """Read the output of a command: one JSON object, or one in its last line. Raises JudgeUnclear."""
    said = _object(output)
    if said is None:
        raise JudgeUnclear(f"the command did not print a JSON object but {_excerpt(output)}")
    if (must_repeat_id or "id" in said) and said.get("id") != call.key:
        raise JudgeUnclear(f"the command answered id {said.get('id')!r} to call {call.key!r}")
    given = [word for word in ("winner", "outcome", "skip") if said.get(word) is not None]
    if len(given) != 1:
        raise JudgeUnclear(
            f"the command must print exactly one of winner, outcome and skip; it printed {_excerpt(output)}"
        )
    read = {"winner": _winner, "outcome": _number, "skip": _skip}[given[0]]
    return Reply(read(said[given[0]], call), said=Said(output.decode("utf-8", "replace").strip()))


def _object(output: bytes) -> dict[str, Any] | None:
    text = output.decode("utf-8", "replace").strip()
    for part in (text, text.rpartition("\n")[2]):
        try:
            said = json.loads(part)
        except (ValueError, RecursionError):
            continue
        if isinstance(said, dict):
            return said
    return None


def _winner(word: Any, call: Call) -> str:
    try:
        if not isinstance(word, str):
            raise UnknownItem(word)
        share = share_of(word, call.first, call.second, SHARES.get(word))
    except BadOutcome:
        raise JudgeUnclear(f"{shown(word)} is both a side and an item on the other side; print an outcome") from None
    except UnknownItem:
        raise JudgeUnclear(f"winner {shown(word)} is not first, second, tie or one of the two items") from None
    return winner_of(share, call.first, call.second)


def _number(value: Any, call: Call) -> float:
    try:
        number = math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise JudgeUnclear(f"outcome {shown(value)} is not a finite number")
    return number


def _skip(reason: Any, call: Call) -> Skip:
    return Skip(reason[:300] if isinstance(reason, str) else shown(reason))


def _excerpt(output: bytes) -> str:
    text = " ".join(output[:2000].decode("utf-8", "replace").split())
    return repr(text[:100]) if text else "nothing"


class Ended(NamedTuple):
    """A command that has ended."""

    status: int
    output: bytes


class Process(asyncio.SubprocessProtocol):
    """A running command in its own process group, which is killed when the command ends or `end` is called.

    asyncio's `Process.wait` also waits for pipes that a child of the command keeps open, so it is not used.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._output, self._errors = bytearray(), bytearray()
        self._exited: asyncio.Future[int] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        self._changed = asyncio.Event()
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._errors = (self._errors + data)[-STDERR_KEPT:]
            return
        self._output += data
        self._changed.set()
        if len(self._output) > MOST_OUTPUT:
            self._kill()

    def process_exited(self) -> None:
        self._kill()
        self._exited.set_result(self._transport.get_returncode())

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set_result(None)
        self._changed.set()

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
                raise JudgeUnavailable(
                    f"the command ended with status {self._exited.result()}{self.complaint}", is_outage=False
                )
            self._changed.clear()
            await self._changed.wait()
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
        if self._exited.done():  # the process id may have been reused
            return
        with suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(self._transport.get_pid(), signal.SIGKILL)  # its own session, so the group has its id
            else:
                self._transport.kill()


async def start_process(command: Sequence[str]) -> Process:
    """Start a command. Raises BadJudge if there is no such program."""
    loop = asyncio.get_running_loop()
    try:
        _, process = await loop.subprocess_exec(Process, *command, start_new_session=True)
    except (FileNotFoundError, PermissionError, NotADirectoryError) as reason:
        raise BadJudge(f"cannot run {command[0]!r}: {reason.strerror}; give an executable program") from None
    except (OSError, ValueError) as reason:
        raise JudgeUnavailable(f"cannot run {command[0]!r}: {reason}", is_outage=False) from None
    return process


class _KeptProcesses:
    """Processes that stay between calls."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._idle: list[Process] = []

    async def ask(self, call: Call) -> Reply:
        process = await self._idle_process()
        try:
            process.send(write_call(call))
            reply = read_reply(await process.read_line(), call, must_repeat_id=True)
        except BaseException:
            await process.end()
            raise
        self._idle.append(process)
        return reply

    async def _idle_process(self) -> Process:
        while self._idle:
            process = self._idle.pop()
            if process.is_alive:
                return process
            await process.end()
        return await start_process(self._command)

    async def end(self) -> None:
        while self._idle:
            await self._idle.pop().end()
