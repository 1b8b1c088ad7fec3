"""Write what the code blocks of pages print now into the pages: python -m tests.refresh_docs docs/tutorials/*.md

Use it after a change of messages or numbers that is meant, and look at the diff. An output with `…` stays as it is,
unless that is the hash of a record.
"""

import os
import re
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.docs_pages import FENCE, PEOPLE, Block, blocks_of, run_command, run_program, run_python


def refresh(page: Path) -> str:
    """The page with fresh outputs. Runs it in the current folder."""
    text, parts, end, printed = page.read_text(), [], 0, None
    names: dict[str, Any] = {"__name__": "__main__"}
    for found, block in zip(FENCE.finditer(text), blocks_of(page), strict=True):
        body, before, printed = found[4], printed, None
        if block.title:
            Path(block.title).write_text(block.code)
        elif block.language == "text" and block.follows and before is not None:
            body = before
        elif block.language == "python" and not block.parse:
            printed = run_python(block.code, names)
        elif block.language == "console" and not block.parse:
            body = _console(block)
        parts += [text[end : found.start(4)], body]
        end = found.end(4)
    return "".join([*parts, text[end:]])


def _console(block: Block) -> str:
    said = re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]
    return "".join(_command(part, *command) for part, command in zip(said, block.commands, strict=True))


def _command(part: str, command: str, documented: str) -> str:
    program, *words = shlex.split(command)
    if "…" in documented.replace("hash …", "") or words[:1] in ([name] for name in PEOPLE):
        return f"$ {part}"
    printed = run_program(words) if program == "python" else run_command(words)
    lines = [re.sub(r"hash [0-9a-f]{64}\.$", "hash …", line.rstrip()) for line in printed.splitlines()]
    return "\n".join([f"$ {part[: len(part) - len(documented)].rstrip()}", *lines, ""])


def main(pages: list[str]) -> None:
    os.environ["COLUMNS"] = "100"
    os.environ["PATH"] = (
        f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # judges are `python judge.py`
    )
    for page in [Path(name).resolve() for name in pages]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            fresh = refresh(page)
        page.write_text(fresh)


if __name__ == "__main__":
    main(sys.argv[1:])
