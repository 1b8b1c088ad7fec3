"""A command as a judge: a JSON object in, a JSON object out.

In:  {"id": "17", "first": "a", "second": "b", "first_text": null, "second_text": null,
      "case": {"id": "c3", "text": "..."}}
Out: {"winner": "first" | "second" | "tie" | a name}, {"outcome": 0.75} or {"skip": "why"}; other members are ignored.
"""

import json
import math
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from shortlist.checks import whole
from shortlist.errors import BadJudge, JudgeUnavailable, JudgeUnclear
from shortlist.judges.judge import Ask, Asked, Reply, Skip
from shortlist.judges.process import Process, start_process


@dataclass(frozen=True)
class CommandJudge:
    """A program that is run for every question, or with `keep` once and then fed a line per question.

    A kept program answers with one line that repeats the question's id; with `processes`, that many are kept, and each
    is asked one thing at a time. One that is too slow, dies or loses step is killed with its children and started
    anew.
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
                raise BadJudge(f"command {self.command!r} cannot be understood: {reason}") from None
        if not words or not all(isinstance(word, str) and "\0" not in word for word in words):
            raise BadJudge(f"command {self.command!r} is no command; give a string or a list of words")
        whole("processes", self.processes, 1)
        object.__setattr__(self, "command", tuple(words))
        object.__setattr__(self, "name", self.name or shlex.join(words))

    @property
    def at_once(self) -> int | None:
        return self.processes if self.keep else None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ask]:
        if not self.keep:
            yield self._ask_anew
            return
        staff = _Staff(self.command)
        try:
            yield staff.ask
        finally:
            await staff.dismiss()

    async def _ask_anew(self, asked: Asked) -> Reply:
        process = await start_process(self.command)
        try:
            process.send(written(asked), last=True)
            ended = await process.finish()
        finally:
            await process.end()
        if ended.status != 0:
            raise JudgeUnavailable(f"the command ended with status {ended.status}{process.complaint}")
        return read_reply(ended.output, asked)


class _Staff:
    """Programs that are kept running."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._idle: list[Process] = []

    async def ask(self, asked: Asked) -> Reply:
        process = await self._somebody()
        try:
            process.send(written(asked))
            reply = read_reply(await process.read_line(), asked, must_repeat_id=True)
        except BaseException:
            await process.end()
            raise
        self._idle.append(process)
        return reply

    async def _somebody(self) -> Process:
        while self._idle:
            process = self._idle.pop()
            if process.is_alive:
                return process
            await process.end()
        return await start_process(self._command)

    async def dismiss(self) -> None:
        while self._idle:
            await self._idle.pop().end()


def written(asked: Asked) -> bytes:
    """What a command is told: one line."""
    case = None if asked.case is None else {"id": asked.case.id, "text": asked.case.text}
    question = {
        "id": asked.call,
        "first": asked.first,
        "second": asked.second,
        "first_text": asked.first_text,
        "second_text": asked.second_text,
        "case": case,
    }
    return json.dumps(question).encode() + b"\n"


def read_reply(output: bytes, asked: Asked, must_repeat_id: bool = False) -> Reply:
    """What a command's output says: one JSON object, or one in its last line. Raises JudgeUnclear."""
    said = _object(output)
    if said is None:
        raise JudgeUnclear(f"the command printed no JSON object but {_excerpt(output)}")
    if (must_repeat_id or "id" in said) and said.get("id") != asked.call:
        raise JudgeUnclear(f"the command answered id {said.get('id')!r} when it was asked {asked.call!r}")
    given = [word for word in ("winner", "outcome", "skip") if said.get(word) is not None]
    if len(given) != 1:
        raise JudgeUnclear(f"the command must print one of winner, outcome and skip; it printed {_excerpt(output)}")
    read = {"winner": _winner, "outcome": _number, "skip": _skip}[given[0]]
    return Reply(read(said[given[0]], asked))


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


def _winner(word: Any, asked: Asked) -> str:
    sides = {"first": asked.first, "second": asked.second}
    meant = {sides.get(word)} | {item for item in sides.values() if item == word} if isinstance(word, str) else set()
    meant.discard(None)
    if word == "tie":
        return "tie"
    if len(meant) > 1:
        raise JudgeUnclear(f"{word!r} is both a side and the item on the other side; print an outcome instead")
    if not meant:
        raise JudgeUnclear(f"winner {_short(word)} is neither first, second, tie nor one of the two items")
    return str(meant.pop())


def _number(value: Any, asked: Asked) -> float:
    try:
        number = math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise JudgeUnclear(f"outcome {_short(value)} is no finite number")
    return number


def _skip(reason: Any, asked: Asked) -> Skip:
    return Skip(reason[:300] if isinstance(reason, str) else _short(reason))


def _short(value: Any) -> str:
    return repr(str(value)[:100])


def _excerpt(output: bytes) -> str:
    text = " ".join(output[:2000].decode("utf-8", "replace").split())
    return repr(text[:100]) if text else "nothing"
