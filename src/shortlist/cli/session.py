"""One person at one terminal: two items on the screen, one key for an answer.

Whoever judges sees no results, so that these cannot sway them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.columns import Columns
from rich.console import Console, Group
from rich.panel import Panel
from rich.text import Text

from shortlist.cli.keys import read_key
from shortlist.errors import AlreadyAnswered, LateAnswer, NothingToAsk, ShortlistError, StudyDone
from shortlist.judges.cases import case_of

LEASE = 3600.0  # seconds after which a question that somebody walked away from is given up
MOST = 2000  # letters of a content
KEYS = "1 or ←  left is better   2 or →  right is better   t  tie   s  skip   u  undo   q  leave"
SIDES = {"1": "first", "left": "first", "2": "second", "right": "second"}


class Session:
    """From the first question to the last."""

    def __init__(
        self, study: Any, who: str, contents: Mapping[str, str], cases: Sequence[Any] | None, shift: Any, terminal: int
    ) -> None:
        self._study, self._who, self._contents, self._shift = study, who, contents, shift
        self._cases = None if cases is None else {case.id: case for case in cases}
        self._terminal, self._out = terminal, Console(highlight=False, markup=False)
        self._told: list[Any] = []
        self._left = shift.take_over(who)

    def go(self) -> None:
        self._out.print(Text(KEYS, style="dim"))
        try:
            while (question := self._next()) is not None and self._answer(question):
                pass
        except KeyboardInterrupt:
            pass
        verdict = self._study.refresh()
        self._out.print(f"\n{len(self._told):,} answer{'' if len(self._told) == 1 else 's'} saved, thank you.", end=" ")
        self._out.print(str(verdict) if verdict.done else "The same command goes on.", soft_wrap=True)

    def _next(self) -> Any:
        if self._left:
            return self._left.pop(0)
        ids = tuple(self._cases or ())
        try:
            return self._study.ask(judge=self._who, lease=LEASE, cases=ids, run=self._shift.sign)
        except StudyDone:
            return None
        except NothingToAsk as reason:
            self._out.print(f"\n{reason}", soft_wrap=True)
            return None

    def _answer(self, question: Any) -> bool:
        """Show a question and do what the next key says; False to leave."""
        self._show(question)
        while True:
            key = read_key(self._terminal)
            self._shift.beat()
            if key == "q":
                return False
            if key == "u":
                self._undo()
            elif key in SIDES or key in ("t", "s"):
                self._say(question, key)
                return True

    def _say(self, question: Any, key: str) -> None:
        try:
            if key == "s":
                self._study.skip(question, "skipped")
                self._out.print(Text("  skipped", style="dim"))
                return
            if key == "t":
                self._study.tell(question, "tie")
            else:
                self._study.tell(question, winner=getattr(question, SIDES[key]))
        except (AlreadyAnswered, LateAnswer) as reason:
            self._out.print(Text(f"  {reason}", style="yellow"))
            return
        self._told.append(question)
        said = "tie" if key == "t" else getattr(question, SIDES[key])
        self._out.print(Text(f"  {said}   ({self._study.verdict.votes:,} votes in all)", style="green"))

    def _undo(self) -> None:
        if not self._told:
            self._out.print(Text("  nothing to take back since you came", style="yellow"))
            return
        try:
            self._study.undo(self._told[-1])
        except ShortlistError as reason:
            self._out.print(Text(f"  {reason}", style="yellow"))
            return
        gone = self._told.pop()
        self._out.print(Text(f"  taken back: {gone.first} or {gone.second}", style="yellow"))

    def _show(self, question: Any) -> None:
        width = max(20, self._out.width // 2 - 1)
        sides = ((question.first, "1 ←"), (question.second, "2 →"))
        panels = [Panel(self._body(item), title=Text(key), width=width, padding=(0, 1)) for item, key in sides]
        case = case_of(question, self._study.seed, self._cases)
        head = [] if case is None else [Panel(Text(_short(case.text)), title=Text("on this"), padding=(0, 1))]
        self._out.print(Group(Text(""), *head, Columns(panels, padding=(0, 0), expand=False)))

    def _body(self, item: str) -> Text:
        content = self._contents.get(item)
        name = Text(item, style="bold")
        return name if content is None else Text.assemble(name, "\n\n", _short(content))


def _short(text: str) -> str:
    return text.strip() if len(text) <= MOST else f"{text[:MOST].strip()} … and {len(text) - MOST:,} letters more"
