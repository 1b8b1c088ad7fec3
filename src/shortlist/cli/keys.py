"""Single keys from a terminal."""

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from shortlist.errors import BadProblem

ARROWS = {b"\x1b[C": "right", b"\x1b[D": "left", b"\x1bOC": "right", b"\x1bOD": "left"}
REST = 0.05  # seconds for the rest of a key that sends several bytes


@contextmanager
def keyboard(instead: str) -> Iterator[int]:
    """The terminal that sends a key as soon as it is pressed; raises BadProblem, saying what to do instead, if there is
    none."""
    try:
        import termios
        import tty
    except ImportError:
        raise BadProblem(f"keys cannot be read one by one on this system; {instead}") from None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadProblem(f"this needs a terminal to show questions and read keys; {instead}")
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal)  # Ctrl-C stays what it is
        yield terminal
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def read_key(terminal: int) -> str:
    """The next key: a letter or digit, "left" or "right"; "" for any other, "q" when the terminal is gone."""
    try:
        pressed = os.read(terminal, 1)
    except OSError:
        return "q"
    if not pressed or pressed == b"\x04":
        return "q"
    if pressed == b"\x1b":
        pressed += _rest(terminal)
    return ARROWS.get(pressed) or (pressed.decode("ascii", "ignore").lower() if len(pressed) == 1 else "")


def _rest(terminal: int) -> bytes:
    """What follows Escape: all of it, so that no part of a long sequence counts as a key."""
    rest = b""
    while select.select([terminal], [], [], REST)[0]:
        rest += os.read(terminal, 1)
        if len(rest) > 1 and b"@" <= rest[-1:] <= b"~":
            break
    return rest
