"""Show the lines `name: what it is` of a docstring as a list of arguments."""

import re
from typing import Any

import griffe

LINE = re.compile(r"(\w+): ")


class Arguments(griffe.Extension):
    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        if func.docstring:
            func.docstring.value = gather(func.docstring.value, {one.name for one in func.parameters})


def gather(text: str, names: set[str]) -> str:
    """The same text, with all such lines at its end under `Args:`."""
    blocks = text.split("\n\n")
    about = [block for block in blocks if (found := LINE.match(block)) and found[1] in names]
    if not about:
        return text
    lines = "\n".join(about).splitlines()
    indented = [f"    {line}" if LINE.match(line) else f"        {line.strip()}" for line in lines]
    return "\n\n".join([*(block for block in blocks if block not in about), "\n".join(["Args:", *indented])])
