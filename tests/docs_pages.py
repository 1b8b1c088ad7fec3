"""The code blocks of a page of the docs, and how they are tried out (CONTRIBUTING.md, "Docs")."""

import ast
import asyncio
import io
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from inspect import CO_COROUTINE
from pathlib import Path
from typing import Any

import pytest
import typer

from experiments.__main__ import app as experiments
from shortlist.cli.app import app, main
from tests.patience import PATIENCE

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^( *)```(\w*)([^\n]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
PARSE = "<!-- test: parse -->"
NUMBERS = "<!-- test: numbers differ -->"
PEOPLE = ("serve", "judge")  # these wait for people


@dataclass(frozen=True)
class Block:
    language: str
    title: str  # a file of that name
    code: str
    parse: bool  # must not be run: waits for people, needs a server, takes long
    follows: bool  # is what the block before it prints
    numbers_differ: bool  # on another processor, which rounds the last digit in another way

    @property
    def commands(self) -> list[tuple[str, str]]:
        """Each command, without its comment, and what it is said to print."""
        if self.language == "sh":
            return [(line, "") for line in self._lines(self.code)]
        parts = re.split(r"^\$ ", self.code, flags=re.MULTILINE)[1:]
        return [(self._lines(part)[0], part[len(self._first(part)) :]) for part in parts]

    def _lines(self, text: str) -> list[str]:
        joined = (re.sub(r"\s+# .*| *\\$", "", line) for line in text.replace("\\\n", " ").splitlines())
        return [line.strip() for line in joined if line.strip() and not line.startswith("#")]

    def _first(self, part: str) -> str:
        found = re.match(r"(?:.*\\\n)*.*\n?", part)
        return found[0] if found else part


def blocks_of(page: Path) -> list[Block]:
    text, blocks, end = page.read_text(), [], 0
    for found in FENCE.finditer(text):
        blocks.append(_block(text[end : found.start()].strip(), *found.groups()))
        end = found.end()
    return blocks


def _block(before: str, indent: str, language: str, info: str, body: str) -> Block:
    title = re.search(r'title="([^"]+)"', info)
    code = re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
    follows = not before or re.fullmatch(r".*(prints|output).*", before, re.IGNORECASE) is not None
    return Block(language, title[1] if title else "", code, before.endswith(PARSE), follows, before.endswith(NUMBERS))


def run_page(page: Path) -> None:
    """Write its files, run its Python and its commands, in order and in the current folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed: str | None = None  # by the Python just before
    for block in blocks_of(page):
        if block.language == "text" and block.follows and printed is not None:
            check_output(printed, block.code)
        printed = None
        if block.title:
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(block.code)
        elif block.language == "python" and not block.parse:
            printed = run_python(block.code, names)
        elif block.language in ("console", "sh"):
            try_commands(block)


def run_python(code: str, names: dict[str, Any]) -> str:
    compiled = compile(code, "<docs>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with redirect_stdout(io.StringIO()) as out:
        waiting = eval(compiled, names)
        if compiled.co_flags & CO_COROUTINE:
            asyncio.run(waiting)
    return out.getvalue()


def try_commands(block: Block) -> None:
    for command, documented in block.commands:
        program, *words = shlex.split(command)
        run = block.language == "console" and not block.parse
        if program in ("shortlist", ".venv/bin/shortlist"):
            parse(app, words)
            if run and words[0] not in PEOPLE:
                check_output(run_command(words), documented, block.numbers_differ)
        elif program == "python" and words[:2] == ["-m", "experiments"]:
            parse(experiments, words[2:])
        elif program == "python" and run:
            check_output(run_program(words), documented)
        else:
            check_names(program, words)


def check_names(program: str, words: list[str]) -> None:
    """What the command names exists in the repository."""
    if program == "make":
        assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), words
    files = [word.split("::")[0] for word in words if re.match(r"(tests|benchmarks|examples)/", word)]
    assert all((ROOT / file).exists() for file in files), words


def parse(program: typer.Typer, words: list[str]) -> None:
    """Fail unless the real command line takes these words. Nothing is run."""
    command: Any = typer.main.get_command(program)
    while hasattr(command, "list_commands") and words and not words[0].startswith("-"):
        name, *words = words
        found = command.get_command(typer.Context(command), name)
        assert found is not None, f"no command {name}"
        command = found
    if "--help" not in words and "--version" not in words:
        command.make_context("shortlist", list(words))


def run_command(words: list[str]) -> str:
    """What the command prints, run in this process."""
    before, sys.argv = sys.argv, ["shortlist", *words]
    out = io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(out), pytest.raises(SystemExit) as end:
            main()
    finally:
        sys.argv = before
    assert end.value.code in (0, 1, 3), f"{words}: {out.getvalue()}"
    return out.getvalue()


def run_program(words: list[str]) -> str:
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


def check_output(printed: str, documented: str, numbers_differ: bool = False) -> None:
    """Every documented line is printed, in this order; `…` stands for anything."""
    lines = [line.strip() for line in documented.splitlines() if line.strip() and line.strip() != "…"]
    patterns = [re.escape(" ".join(line.split())).replace("…", ".*?") for line in lines]
    if numbers_differ:
        patterns = [re.sub(r"\d+(?:(?:,|\\\.)\d+)*", r"[\\d,.]+", pattern) for pattern in patterns]
    pattern = ".*".join(patterns)
    assert re.search(pattern, " ".join(printed.split()), re.DOTALL), f"documented:\n{documented}\nprinted:\n{printed}"
