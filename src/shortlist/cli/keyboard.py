"""A person judges in the terminal: two items on the screen, one key per answer.

Judges do not see results while they judge, so results cannot influence them.
"""

import os
import select
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from rich.columns import Columns
from rich.console import Console, Group
from rich.panel import Panel
from rich.text import Text

from shortlist.errors import (
    AlreadyAnswered,
    BadProblem,
    LateAnswer,
    NeedsJudges,
    NothingToAsk,
    ShortlistError,
    StudyDone,
)
from shortlist.judges.base import Case
from shortlist.judges.calls import StoragePatience
from shortlist.judges.cases import case_of
from shortlist.judges.pending import RunLease
from shortlist.judges.setup import set_up_materials
from shortlist.study.questions import BALLOT_LEASE, Question
from shortlist.study.study import Study

try:
    import termios
    import tty
except ImportError:  # Windows
    HAS_KEYS = False
else:
    HAS_KEYS = True

LEASE = BALLOT_LEASE  # seconds after which an unanswered question is lost
MOST = 2000  # characters of a content that are shown
_CONTROL = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n\r"}
_CONTROL |= {ord("\r"): "", **dict.fromkeys(range(127, 160), "\ufffd")}
ESCAPE_TIME = 0.05  # seconds for the rest of a key that sends several bytes
HELP = "1 or ←  left is better   2 or →  right is better   t  tie   s  skip   u  undo   q  quit"
SIDES = {"1": "first", "left": "first", "2": "second", "right": "second"}
ARROWS = {b"\x1b[C": "right", b"\x1b[D": "left", b"\x1bOC": "right", b"\x1bOD": "left"}


def judge_in_terminal(
    study: Study,
    judge: str,
    contents: Mapping[str, str] | Mapping[str, Mapping[str, str]] | None,
    cases: Sequence[Case] | None,
    patience: float,
    shows_texts: bool = True,
) -> None:
    """Ask the person at the terminal until there is a verdict or they quit. `patience`: for so many seconds the storage
    may not respond."""
    if study.problem.family.is_measured:
        raise BadProblem(f"this study measures differences; enter them with: shortlist tell {study.name} NUMBER VALUE")
    with single_keys(shlex.quote(study.name)) as terminal, RunLease(study, patience) as lease:
        set_up_materials(study, contents, cases, shows_texts)
        _Session(study, judge, contents or {}, cases, lease, patience, terminal).run()


@contextmanager
def single_keys(study: str) -> Iterator[int]:
    """The terminal, in the mode that sends each key at once. Raises BadProblem if there is none."""
    instead = f"in a script, use `shortlist ask {study}` and `shortlist tell {study} NUMBER ANSWER`"
    if not HAS_KEYS:
        raise BadProblem(f"this system cannot read single keys; {instead}")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadProblem(f"judging needs a terminal; {instead}")
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal)  # Ctrl-C still interrupts
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
        pressed += _escape_sequence(terminal)
    return ARROWS.get(pressed) or (pressed.decode("ascii", "ignore").lower() if len(pressed) == 1 else "")


def _escape_sequence(terminal: int) -> bytes:
    """What follows Escape, to its end, so that no part of a long sequence counts as a key."""
    rest = b""
    while select.select([terminal], [], [], ESCAPE_TIME)[0]:
        rest += os.read(terminal, 1)
        if len(rest) > 1 and b"@" <= rest[-1:] <= b"~":
            break
    return rest


class _Session:
    """One sitting, from the first question to the last."""

    def __init__(
        self, study: Study, judge: str, contents: Mapping[str, Any], cases: Sequence[Case] | None, lease: RunLease,
        patience: float, terminal: int,
    ) -> None:  # fmt: skip
        self._study, self._judge, self._contents, self._lease = study, judge, contents, lease
        self._cases = None if cases is None else {case.id: case for case in cases}
        self._terminal, self._out = terminal, Console(highlight=False, markup=False)
        self._told: list[Question] = []
        self._patience = StoragePatience(patience, lambda said: self._say(f"  {said}", "yellow"))
        self._needs_judge = False
        self._has_ballot = study.judges_claim == "public"
        self._left = [] if self._has_ballot else lease.take_over(judge)

    def run(self) -> None:
        self._say(HELP, "dim")
        try:
            while (question := self._next()) is not None and self._answer(question):
                pass
        except KeyboardInterrupt:
            self._end()
            raise
        self._end()

    def _end(self) -> None:
        """Say what was saved, and what is left."""
        left = len(self._study.pending_of(self._judge)) if self._has_ballot else 0
        verdict = self._study.verdict if left else self._patience(partial(self._study.settle, self._judge))
        saved = f"{len(self._told):,} answer{'' if len(self._told) == 1 else 's'} saved, thank you."
        self._out.print(f"\n{saved} {str(verdict) if verdict.done else self._what_is_left(left)}", soft_wrap=True)
        for caveat in verdict.caveats:
            self._out.print(f"  Caveat: {caveat}", soft_wrap=True)

    def _what_is_left(self, left: int) -> str:
        if self._needs_judge:
            name = shlex.quote(self._study.name)
            return f"Another judge continues with: shortlist judge {name} --as NAME"
        if not self._has_ballot:
            return "Run the same command again to continue."
        if not left:
            return "There is nothing more to do for you."
        pairs = "1 of your pairs is" if left == 1 else f"{left} of your pairs are"
        return f"{pairs} left. Run the same command within an hour to answer, or it counts as lost."

    def _say(self, text: str, style: str) -> None:
        self._out.print(Text(text, style=style))

    def _next(self) -> Question | None:
        if self._left:
            return self._left.pop(0)
        try:
            return self._patience(self._ask)
        except StudyDone:
            return None
        except NothingToAsk as reason:
            self._needs_judge = isinstance(reason, NeedsJudges)
            if not self._study.settle(self._judge).done:  # their last answer may be all that is missing
                self._out.print(f"\n{reason}", soft_wrap=True)
            return None

    def _ask(self) -> Question:
        return self._study.ask(judge=self._judge, lease=LEASE, cases=tuple(self._cases or ()), run=self._lease.id)

    def _answer(self, question: Question) -> bool:
        """Show a question and do what the next key says; False to quit."""
        self._show(question)
        while True:
            key = read_key(self._terminal)
            self._patience(self._lease.renew)
            if key == "q":
                return False
            if key == "u":
                if self._undo(question):
                    return True
            elif key in SIDES or key in ("t", "s"):
                self._tell(question, key)
                return True

    def _tell(self, question: Question, key: str) -> None:
        outages, study = self._patience.outages, self._study
        said = "skipped" if key == "s" else "tie" if key == "t" else str(getattr(question, SIDES[key]))
        try:
            if key == "s":
                self._patience(partial(study.skip, question, said))
                is_lost = study.row(question.id).status == "lost"
                self._say("  skipped; this counts as a loss for both" if is_lost else "  skipped", "dim")
                return
            if key == "t":
                self._patience(partial(study.tell, question, "tie", settle=False))
            else:
                self._patience(partial(study.tell, question, winner=said, settle=False))
        except (AlreadyAnswered, LateAnswer) as reason:
            if outages == self._patience.outages:  # else it was stored, and only the word of it was lost
                return self._say(f"  {reason}", "yellow")
            if key == "s":
                return self._say("  skipped", "dim")
        self._told.append(question)
        counts = self._study.counts
        self._say(f"  {said}   ({counts['counted'] + counts['answered']:,} votes in total)", "green")

    def _undo(self, current: Question) -> bool:
        """Undo the last answer; True if another question than the current one follows: the undone one, or a new one if
        the current one is closed because it is about the same pair."""
        if not self._told:
            self._say("  nothing to undo in this session", "yellow")
            return False
        try:
            self._patience(partial(self._study.undo, self._told[-1]))
        except ShortlistError as reason:
            self._say(f"  {reason}", "yellow")
            return False
        undone = self._told.pop()
        if not self._study.is_pending(undone.id):
            self._say(
                f"  undone: {undone.first} or {undone.second}; the vote still counts against one of them", "yellow"
            )
            return not self._study.is_pending(current.id)
        self._study.show(undone, LEASE)
        self._left[:0] = [undone, current]
        self._say(f"  undone: {undone.first} or {undone.second}; choose again", "yellow")
        return True

    def _show(self, question: Question) -> None:
        width = max(20, self._out.width // 2 - 1)
        sides = ((question.first, "1 ←"), (question.second, "2 →"))
        case = case_of(question, self._study.seed, self._cases)
        panels = [Panel(self._body(item, case), title=Text(key), width=width, padding=(0, 1)) for item, key in sides]
        head = [] if case is None else [Panel(Text(shortened(case.text)), title=Text("case"), padding=(0, 1))]
        place = "" if question.place is None else f"{question.place + 1} of {len(self._study.rows_of(self._judge))}"
        self._out.print(Group(Text(place, style="dim"), *head, Columns(panels, padding=(0, 0), expand=False)))

    def _body(self, item: str, case: Case | None) -> Text:
        content = self._contents.get(item)
        if isinstance(content, Mapping):
            content = None if case is None else content.get(case.id)
        name = Text(item, style="bold")
        return name if content is None else Text.assemble(name, "\n\n", shortened(content))


def shortened(text: str, most: int = MOST) -> str:
    """The text, or its beginning if it is long. Commands to the terminal in it are shown, not obeyed."""
    text = text.translate(_CONTROL)
    return text.strip() if len(text) <= most else f"{text[:most].strip()} … and {len(text) - most:,} more characters"
