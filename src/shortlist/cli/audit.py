"""`shortlist audit`: put questions that a judge has answered to people, and compare.

People's answers are lines of a file, not votes of the study: they never enter its proof.
"""

import json
import secrets
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

import typer
from jinja2 import Environment, PackageLoader
from rich.columns import Columns
from rich.console import Console, Group
from rich.panel import Panel
from rich.text import Text

from shortlist.analysis.audit import ALPHA, Answer, Audit, AuditDraws, Unit, audit, lengths_of, units_of
from shortlist.cli.judge_options import ME
from shortlist.cli.keyboard import read_key, shortened, single_keys
from shortlist.cli.options import JSON, STORAGE, count_of, print_json, say
from shortlist.cli.outputs import Missing, OutputOptions, Thinking, read_material
from shortlist.cli.studies import NAME
from shortlist.errors import BadProblem, BadVotes
from shortlist.judges.base import Case
from shortlist.judges.run_log import load_texts
from shortlist.judges.setup import set_up_materials
from shortlist.study.create import load_study
from shortlist.study.study import Study
from shortlist.votes.read import read_votes

HELP = "1 or ←  left is better   2 or →  right is better   t  tie   s  skip   u  undo   q  quit"
KEYS = {"1": 1.0, "left": 1.0, "2": 0.0, "right": 0.0, "t": 0.5}
LISTED = 10  # disagreements
LONGEST_NAME, LONGEST_FORM = 80, 1_000
POLICY = (
    "default-src 'none'; img-src data:; style-src 'nonce-{0}'; script-src 'nonce-{0}'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff"}


def audit_command(
    name: str = NAME,
    paths: list[Path] = typer.Argument(
        None, metavar="[PATH]...", help="Outputs or items of the run, if its texts are not kept."
    ),
    person: str = typer.Option(ME, "--as", help="Your name. It is stored with your answers."),
    people: Path | None = typer.Option(None, help="A vote file with answers of people, instead of asking now."),
    file: Path | None = typer.Option(None, help="Where answers are kept. Default: NAME.audit.jsonl."),
    number: int = typer.Option(60, "--answers", min=1, help="Ask at most this many questions in all."),
    browser: bool = typer.Option(False, "--browser", help="Answer on a web page instead of in the terminal."),
    host: str = typer.Option("127.0.0.1", help="With --browser: address to listen on. 0.0.0.0 accepts other machines."),
    port: int = typer.Option(0, min=0, max=65535, help="With --browser: port to listen on. Default: a free one."),
    judge: list[str] | None = typer.Option(None, help="Audit this judge. Default: all language models and programs."),
    cases: Path | None = typer.Option(None, help="The cases of the run, if PATH is a file of items."),
    storage: str = STORAGE,
    as_json: bool = JSON,
) -> None:
    """Compare a judge with people.

    Draws questions that the judge has answered, at random and at the cutoff. You answer them without seeing the judge's
    answers or the names of the items. Every answer is saved; run the command again to continue. Without a terminal it
    shows the result so far. Keys: 1 or left arrow, 2 or right arrow, t for a tie, s to skip, u to undo, q to quit.
    With --browser you answer on a web page; colleagues can open it too.
    """
    study = load_study(name, storage)
    contents, listed = _materials(study, paths, cases)
    units = units_of(study, judge, lengths_of(contents, listed))
    draws = AuditDraws(units, study.verdict.top, study.seed)
    kept = file or Path(f"{name}.audit.jsonl")
    sitting = Sitting(study, draws, kept, contents or {}, {case.id: case for case in listed or ()}, number)
    if browser:
        _sit_in_browsers(sitting, person, host, port)
    elif people is None and not as_json and sys.stdin.isatty() and sys.stdout.isatty():
        with single_keys(name) as terminal:
            _sit_at_terminal(sitting, person, terminal)
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


class Turn(NamedTuple):
    """A question that is put to a person: a pair on a case, from what it was drawn, and which of the two is shown
    first. `number` counts this person's draws, `answered` their answers."""

    question: tuple[str, str, str | None]
    stream: str
    low_first: bool
    number: int
    answered: int

    @property
    def shown(self) -> tuple[str, str]:
        low, high, _ = self.question
        return (low, high) if self.low_first else (high, low)


class Sitting(NamedTuple):
    """An audit that is going on: what is asked, what is shown, and where answers are kept."""

    study: Study
    draws: AuditDraws
    file: Path
    contents: Mapping[str, Any]
    cases: Mapping[str, Case]
    wanted: int

    def turn(self, person: str) -> Turn:
        """What this person is asked next. A question that is drawn again is answered as before."""
        while True:
            mine = [entry for entry in read_entries(self.file, self.study) if entry.answer.person == person]
            known = {entry.answer.question: entry.answer.share for entry in mine if not entry.is_skipped}
            question, stream, low_first = self.draws.draw(person, len(mine))
            turn = Turn(question, stream, low_first, len(mine), len(known))
            if question not in known or self.is_done(turn):
                return turn
            self._write(person, turn, known[question])

    def is_done(self, turn: Turn) -> bool:
        return turn.answered >= self.wanted

    def answer(self, person: str, turn: Turn, key: str) -> bool:
        """Save what a key says: a preference, a tie, a skip, or that the last answer is taken back. False if none."""
        if key == "u" and turn.number:
            self._append({"person": person, "undone": True})
        elif key == "s":
            self._write(person, turn, None)
        elif key in KEYS:
            self._write(person, turn, KEYS[key] if turn.low_first else 1 - KEYS[key])
        else:
            return False
        return True

    def _write(self, person: str, turn: Turn, share: float | None) -> None:
        low, high, case = turn.question
        self._append({"person": person, "low": low, "high": high, "case": case, "share": share, "stream": turn.stream})

    def _append(self, entry: Mapping[str, Any]) -> None:
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def case_text(self, turn: Turn) -> str | None:
        case = turn.question[2]
        about = self.cases.get(case) if case is not None else None
        return case if about is None else about.text

    def text(self, turn: Turn, item: str) -> str:
        """What the item shows; its name only if there is nothing else."""
        content = self.contents.get(item)
        if isinstance(content, Mapping):
            content = content.get(turn.question[2] or "")
        return item if content is None else str(content)


def _sit_at_terminal(sitting: Sitting, person: str, terminal: int) -> None:
    out = Console(highlight=False, markup=False)
    out.print(Text(HELP, style="dim"))
    turn = sitting.turn(person)
    while not sitting.is_done(turn):
        _show(out, sitting, turn)
        while (key := read_key(terminal)) != "q" and not sitting.answer(person, turn, key):
            pass
        if key == "q":
            break
        if key == "u":
            out.print(Text("  undone: choose again", style="yellow"))
        turn = sitting.turn(person)
    out.print(f"\n{count_of(turn.answered, 'answer')} saved in {sitting.file}.\n")


def _show(out: Console, sitting: Sitting, turn: Turn) -> None:
    width = max(20, out.width // 2 - 1)
    panels = [
        Panel(Text(shortened(sitting.text(turn, item))), title=Text(key), width=width, padding=(0, 1))
        for item, key in zip(turn.shown, ("1 ←", "2 →"), strict=True)
    ]
    case = sitting.case_text(turn)
    head = [] if case is None else [Panel(Text(shortened(case)), title=Text("case"), padding=(0, 1))]
    out.print(Group(*head, Columns(panels, padding=(0, 0), expand=False)))


def _sit_in_browsers(sitting: Sitting, person: str, host: str, port: int) -> None:
    """A page for each person who has the link, until Ctrl-C. Who opens it says their name first, or has it in the
    link."""
    try:
        server = AuditServer((host, port), sitting)
    except OSError as reason:
        raise BadProblem(f"cannot listen on {host}, port {port}: {reason.strerror}; choose another --port") from None
    link, is_here = f"http://{host}:{server.server_port}{server.path}", host in ("127.0.0.1", "localhost")
    say(f"Open this link and answer: {link}{'?' + urlencode({'as': person}) if is_here else ''}", "")
    if host == "0.0.0.0":
        say("On other machines, write this machine's address instead of 0.0.0.0.", "")
    say("Whoever has the link can answer. Press Ctrl-C to stop and to see the result.", "")
    with suppress(KeyboardInterrupt), server:
        server.serve_forever()
    say("", "")


class AuditServer(ThreadingHTTPServer):
    """Serves an audit at a path that nobody can guess."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], sitting: Sitting) -> None:
        super().__init__(address, AuditPage)
        self.sitting, self.path, self.one_at_a_time = sitting, f"/{secrets.token_urlsafe(16)}", Lock()
        templates = Environment(loader=PackageLoader("shortlist", "cli"), autoescape=True)
        self.template = templates.get_template("audit.html.j2")


class AuditPage(BaseHTTPRequestHandler):
    """The page of one person: a form with two answers and buttons. It works without scripts."""

    server: AuditServer

    def do_GET(self) -> None:
        person = self._person()
        if person is not None:
            with self.server.one_at_a_time:
                turn = self.server.sitting.turn(person) if person else None
            self._send(person, turn)

    def do_POST(self) -> None:
        person, sitting = self._person(), self.server.sitting
        if not person:
            return
        size = int(self.headers.get("Content-Length", "0"))
        given = dict(parse_qsl(self.rfile.read(min(size, LONGEST_FORM)).decode("utf-8", "replace")))
        number, key = given.get("number"), given.get("key", "")
        with self.server.one_at_a_time:
            turn = sitting.turn(person)
            if number == str(turn.number) and (key == "u" or not sitting.is_done(turn)):  # else it was sent twice
                sitting.answer(person, turn, key)
        self.send_response(303)
        self.send_header("Location", f"{self.server.path}?{urlencode({'as': person})}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _person(self) -> str | None:
        """Whose page it is; empty if they have not said, None for a wrong link, which is answered here."""
        asked = urlsplit(self.path)
        if not secrets.compare_digest(asked.path.encode(), self.server.path.encode()):
            self.send_error(404, "Not found", "Open the whole link that shortlist audit has printed.")
            return None
        return dict(parse_qsl(asked.query)).get("as", "").strip()[:LONGEST_NAME]

    def _send(self, person: str, turn: Turn | None) -> None:
        sitting, nonce = self.server.sitting, secrets.token_urlsafe(16)
        texts = [] if turn is None else [sitting.text(turn, item) for item in turn.shown]
        page = self.server.template.render(
            person=person, turn=turn, texts=texts, case=None if turn is None else sitting.case_text(turn),
            is_done=turn is not None and sitting.is_done(turn), wanted=sitting.wanted, nonce=nonce,
        ).encode("utf-8", "replace")  # fmt: skip
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.send_header("Content-Security-Policy", POLICY.format(nonce))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: Any) -> None:
        """The terminal is for the result."""


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
