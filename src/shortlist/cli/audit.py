"""`shortlist audit`: put questions that a judge has answered to people, and compare.

People's answers are lines of a file, not votes of the study: they never enter its proof.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer
from rich.columns import Columns
from rich.console import Console, Group
from rich.panel import Panel
from rich.text import Text

from shortlist.analysis.audit import ALPHA, Answer, Audit, Draws, Unit, audit, lengths_of, units_of
from shortlist.cli.judge_options import ME
from shortlist.cli.keyboard import read_key, shortened, single_keys
from shortlist.cli.options import JSON, STORAGE, count_of, print_json, say
from shortlist.cli.outputs import Missing, OutputOptions, Thinking, read_material
from shortlist.cli.studies import NAME
from shortlist.errors import BadVotes
from shortlist.judges.base import Case
from shortlist.judges.setup import set_up_materials
from shortlist.judges.texts import load_texts
from shortlist.study.create import load_study
from shortlist.study.study import Study
from shortlist.votes.read import read_votes

HELP = "1 or ←  left is better   2 or →  right is better   t  tie   s  skip   u  undo   q  quit"
KEYS = {"1": 1.0, "left": 1.0, "2": 0.0, "right": 0.0, "t": 0.5}
LISTED = 10  # disagreements


def audit_command(
    name: str = NAME,
    paths: list[Path] = typer.Argument(
        None, metavar="[PATH]...", help="Outputs or items of the run, if its texts are not kept."
    ),
    person: str = typer.Option(ME, "--as", help="Your name. It is stored with your answers."),
    people: Path | None = typer.Option(None, help="A vote file with answers of people, instead of asking now."),
    file: Path | None = typer.Option(None, help="Where answers are kept. Default: NAME.audit.jsonl."),
    number: int = typer.Option(60, "--answers", min=1, help="Ask at most this many questions in all."),
    judge: list[str] | None = typer.Option(None, help="Audit this judge. Default: all language models and programs."),
    cases: Path | None = typer.Option(None, help="The cases of the run, if PATH is a file of items."),
    storage: str = STORAGE,
    as_json: bool = JSON,
) -> None:
    """Compare a judge with people.

    Draws questions that the judge has answered, at random and at the cutoff. You answer them without seeing the judge's
    answers or the names of the items. Every answer is saved; run the command again to continue. Without a terminal it
    shows the result so far. Keys: 1 or left arrow, 2 or right arrow, t for a tie, s to skip, u to undo, q to quit.
    """
    study = load_study(name, storage)
    contents, listed = _materials(study, paths, cases)
    units = units_of(study, judge, lengths_of(contents, listed))
    draws = Draws(units, study.verdict.top, study.seed)
    kept = file or Path(f"{name}.audit.jsonl")
    if people is None and not as_json and sys.stdin.isatty() and sys.stdout.isatty():
        with single_keys(name) as terminal:
            _Sitting(study, person, draws, kept, contents or {}, listed, terminal).run(number)
    if people is None:
        answers = [entry.answer for entry in read_entries(kept, study) if not entry.is_skipped]
    else:
        answers = _matched(people, study, units)
    found = audit(study, units, answers)
    if as_json:
        print_json({"study": name, **found.to_dict()})
    else:
        _print(found, {case.id: case.text for case in listed or ()})


def _materials(
    study: Study, paths: Sequence[Path] | None, cases: Path | None
) -> tuple[Mapping[str, Any] | None, Sequence[Case] | None]:
    """The texts and cases that the judge was shown: kept with the study, or from the files of the run."""
    if not paths:
        return load_texts(study)
    options = OutputOptions(None, Missing.refuse, "last", "first", None, False, Thinking.drop, None, None, None)
    found = read_material(paths, cases, options)
    set_up_materials(study, found.contents, found.cases)
    return found.contents, found.cases


class Entry(NamedTuple):
    """A line of the file of answers: an answer, or a question that was skipped."""

    answer: Answer
    is_skipped: bool


def read_entries(file: Path, study: Study) -> list[Entry]:
    """The lines of a file of answers, oldest first; what was undone is left out."""
    entries = list[Entry]()
    for place, line in enumerate(file.read_text(encoding="utf-8").splitlines() if file.exists() else (), 1):
        try:
            entry = json.loads(line)
            if entry.get("undone"):
                _undo(entries, entry["person"])
                continue
            share = entry.pop("share")
            entries.append(Entry(Answer(**entry, share=0.5 if share is None else float(share)), share is None))
        except (ValueError, LookupError, TypeError, AttributeError):
            raise BadVotes(f"{file}, line {place}: not an answer of an audit; remove the line") from None
    unknown = {item for entry in entries for item in (entry.answer.low, entry.answer.high)} - {*study.items}
    if unknown:
        raise BadVotes(f"{file} has answers about {sorted(unknown)[0]!r}, which is not an item of this study")
    return entries


def _undo(entries: list[Entry], person: str) -> None:
    """Take back a person's last answer, with the later draws that it served again."""
    mine = [place for place, entry in enumerate(entries) if entry.answer.person == person]
    while mine:
        last = entries.pop(mine.pop())
        if not any(entries[place].answer.question == last.answer.question for place in mine):
            break


def _matched(file: Path, study: Study, units: Sequence[Unit]) -> list[Answer]:
    """The votes of a file that are about questions the judge has answered."""
    table, place = read_votes(file, skip_bad=True), {item: number for number, item in enumerate(study.items)}
    asked, answers = {unit.question for unit in units}, list[Answer]()
    has_cases = any(unit.case is not None for unit in units)
    for row in range(len(table)):
        first, second = table.items[table.first[row]], table.items[table.second[row]]
        if first not in place or second not in place:
            continue
        is_low = place[first] < place[second]
        share = (1 + float(table.outcome[row] > 0.5) - float(table.outcome[row] < 0.5)) / 2
        case = table.case[row] if has_cases and table.case is not None else None
        low, high = (first, second) if is_low else (second, first)
        person = (table.judge[row] if table.judge is not None else None) or "people"
        answers.append(Answer(str(person), low, high, case, share if is_low else 1 - share))
    found = [answer for answer in answers if answer.question in asked]
    if not found:
        raise BadVotes(f"{file} has no vote on a pair and case that the judge has answered; compare the names of both")
    return found


class _Sitting:
    """One person at the terminal."""

    def __init__(
        self, study: Study, person: str, draws: Draws, file: Path, contents: Mapping[str, Any],
        cases: Sequence[Case] | None, terminal: int,
    ) -> None:  # fmt: skip
        self._study, self._person, self._draws, self._file, self._contents = study, person, draws, file, contents
        self._cases = {case.id: case for case in cases or ()}
        self._terminal, self._out = terminal, Console(highlight=False, markup=False)

    def run(self, wanted: int) -> None:
        self._out.print(Text(HELP, style="dim"))
        while True:
            mine = [entry for entry in read_entries(self._file, self._study) if entry.answer.person == self._person]
            known = {entry.answer.question: entry.answer.share for entry in mine if not entry.is_skipped}
            question, stream, low_first = self._draws.draw(self._person, len(mine))
            if question in known:
                self._write(question, known[question], stream)
            elif len(known) >= wanted or not self._ask(question, stream, low_first, len(mine) > 0):
                break
        self._out.print(f"\n{count_of(len(known), 'answer')} saved in {self._file}.\n")

    def _ask(self, question: tuple[str, str, str | None], stream: str, low_first: bool, has_more: bool) -> bool:
        """Show a question and do what the next key says; False to quit."""
        self._show(question, low_first)
        while (key := read_key(self._terminal)) != "q":
            if key == "u" and has_more:
                self._append({"person": self._person, "undone": True})
                self._out.print(Text("  undone: choose again", style="yellow"))
                return True
            if key == "s" or key in KEYS:
                share = None if key == "s" else KEYS[key] if low_first else 1 - KEYS[key]
                self._write(question, share, stream)
                return True
        return False

    def _write(self, question: tuple[str, str, str | None], share: float | None, stream: str) -> None:
        low, high, case = question
        entry = {"person": self._person, "low": low, "high": high, "case": case, "share": share, "stream": stream}
        self._append(entry)

    def _append(self, entry: Mapping[str, Any]) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def _show(self, question: tuple[str, str, str | None], low_first: bool) -> None:
        low, high, case = question
        width = max(20, self._out.width // 2 - 1)
        sides = zip((low, high) if low_first else (high, low), ("1 ←", "2 →"), strict=True)
        panels = [
            Panel(Text(self._text(item, case)), title=Text(key), width=width, padding=(0, 1)) for item, key in sides
        ]
        about = self._cases.get(case) if case is not None else None
        shown = case if about is None else shortened(about.text)
        head = [] if shown is None else [Panel(Text(shown), title=Text("case"), padding=(0, 1))]
        self._out.print(Group(*head, Columns(panels, padding=(0, 0), expand=False)))

    def _text(self, item: str, case: str | None) -> str:
        """What the item shows; its name only if there is nothing else."""
        content = self._contents.get(item)
        if isinstance(content, Mapping):
            content = content.get(case or "")
        return item if content is None else shortened(content)


def _print(found: Audit, cases: Mapping[str, str]) -> None:
    say(found.sentence, "", "bold")
    if found.agreement is not None:
        say(
            f"{count_of(found.answers, 'answer')} of {found.people} {'person' if found.people == 1 else 'people'}. "
            f"Drawn at random they agree on {found.agreement:.0%}: between {found.low:.0%} and {found.high:.0%}, with "
            f"{1 - ALPHA:.0%} confidence whenever you look."
        )
    if found.at_the_line.votes:
        say(f"At the cutoff: {found.at_the_line.share:.0%} of {found.at_the_line.votes:.0f} answers.")
    for split in found.splits:
        share = split.agreement
        say(f"  {split.name}: {share.share:.0%} of {share.votes:.0f} ({share.low:.0%} to {share.high:.0%})")
    if found.people_in or found.people_out:
        proved = [f"in the top: {', '.join(found.people_in)}"] if found.people_in else []
        proved += [f"not in the top: {', '.join(found.people_out)}"] if found.people_out else []
        say(f"Proved by the people's answers alone: {'; '.join(proved)}.")
    for answer, unit in found.disagreements[:LISTED]:
        judge, other = (unit.low, unit.high) if unit.share > 0.5 else (unit.high, unit.low)
        text = None if unit.case is None else cases.get(unit.case, unit.case)
        where = "" if text is None else f" on {' '.join(text.split())[:60]!r}"
        say(f"  Disagreement{where}: the judge prefers {judge}, {answer.person} prefers {other}.")
    if len(found.disagreements) > LISTED:
        say(f"  and {len(found.disagreements) - LISTED} more disagreements; --json lists them all.")
