"""Read outputs from the files of other tools: `read_outputs`, and `inspect_outputs` for a dry run."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, get_args

from shortlist.core.outcomes import SHARES
from shortlist.core.problem import shown
from shortlist.errors import BadOutputs, BadVotes, NotInstalled
from shortlist.judges.base import Call
from shortlist.outputs.cells import Cells, Choice, Missing, OutputCase, Thinking, collect
from shortlist.outputs.documents import Document, find_paths, open_document
from shortlist.outputs.formats import NAMES, TARGETS, Wanted, read_document
from shortlist.outputs.rows import KINDS, NO_OUTPUT, REFUSED, CaseText, Found, OutputProblem, Row
from shortlist.outputs.tools import is_lm_eval, newest_lm_eval
from shortlist.votes.read import count

IN_ERROR, IN_REPORT = 3, 3  # how many places are listed
ACCEPTABLE = ("bad line", "case differs", "duplicate")
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class FileRead(NamedTuple):
    """What a file was understood as."""

    file: str
    kind: str
    format: str
    rows: int
    items: int
    cases: int


@dataclass(frozen=True, repr=False)
class Outputs:
    """Outputs of items on cases.

    items, cases: in the order of the files. A case has an id, a text, and if known a reference.
    texts: the outputs, by item and case id. With `missing="lose"` a missing output is an empty text.
    files: what each file was understood as.
    problems: everything that matters to a run, each with a name, a place and a way out.
    """

    items: tuple[str, ...]
    cases: tuple[OutputCase, ...]
    texts: dict[str, dict[str, str]]
    files: tuple[FileRead, ...]
    problems: tuple[OutputProblem, ...]
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    missing: Missing = "refuse"
    accepted: frozenset[str] = frozenset()
    has_repeats: bool = False  # repeats of one case are cases of their own

    @property
    def refused(self) -> tuple[OutputProblem, ...]:
        """The problems that a run must not start with."""
        stops = {REFUSED, NO_OUTPUT} if self.missing == "refuse" else {REFUSED}
        return tuple(one for one in self.problems if one.weight in stops and one.name not in self.accepted)

    def known_answer(self, call: Call) -> float | None:
        """The first item's share of the win where no judge needs to be asked: equal outputs are a tie, and with
        `missing="lose"` a missing one loses. None for all other calls."""
        if call.first_text is not None and call.first_text == call.second_text:
            return SHARES["tie"]
        if self.missing == "lose" and "" in (call.first_text, call.second_text):
            return SHARES["second" if call.first_text == "" else "first"]
        return None

    def check(self) -> "Outputs":
        """These outputs. Raises BadOutputs if a run must not start with them."""
        refused = self.refused
        if refused:
            first = "; ".join(f"{one.where}: {one.text}" for one in refused[:IN_ERROR])
            more = f"; and {len(refused) - IN_ERROR:,} more" if len(refused) > IN_ERROR else ""
            raise BadOutputs(f"{first}{more}. {refused[0].remedy} `shortlist outputs` shows all problems")
        return self

    def as_dict(self) -> dict[str, Any]:
        """Everything but the texts, in types that JSON has."""
        problems = [{**one._asdict(), "weight": one.weight, "remedy": one.remedy} for one in self.problems]
        return {
            "items": list(self.items),
            "cases": [{"id": one.id, "text": one.text, "reference": one.reference or None} for one in self.cases],
            "cells": sum(map(len, self.texts.values())),
            "lengths": {item: {case: len(text) for case, text in by.items()} for item, by in self.texts.items()},
            "files": [one._asdict() for one in self.files],
            "problems": problems,
            "refused": len(self.refused),
            "ready": not self.refused,
        }

    def __repr__(self) -> str:
        return f"<Outputs of {len(self.items)} items on {len(self.cases)} cases, {len(self.problems)} problems>"

    def __str__(self) -> str:
        lines = [
            f"{one.file}: {one.kind}, read as {one.format}: {count(one.rows, 'row')}, {count(one.items, 'item')}, "
            f"{count(one.cases, 'case')}"
            for one in self.files
        ]
        lines += [
            "",
            f"  {count(len(self.items), 'item')} on {count(len(self.cases), 'case')}",
            *self._table(),
            *self._problems(),
        ]
        end = "All outputs are there: ready for `shortlist run`."
        if self.refused:
            end = f"Not ready for `shortlist run`: {len(self.refused):,} of these problems must be solved first."
        return "\n".join([*lines, "", f"  {end}"])

    def _table(self) -> list[str]:
        if not self.items:
            return []
        width = max(4, *map(len, self.items))
        lines = ["", f"  {'item':<{width}}  outputs  none there  median length"]
        for item in self.items:
            texts = [text for text in self.texts[item].values() if text]
            length = f"{median(map(len, texts)):,.0f}" if texts else "-"
            lines.append(f"  {item:<{width}}  {len(texts):>7,}  {len(self.cases) - len(texts):>10,}  {length:>13}")
        return lines

    def _problems(self) -> list[str]:
        lines, refused = [], set(self.refused)
        for name in sorted({one.name for one in self.problems}, key=list(KINDS).index):
            those = [one for one in self.problems if one.name == name]
            mark = "problem" if refused & set(those) else "note"
            lines += ["", f"  {mark}: {name}, {count(len(those), 'place')}"]
            lines += [f"    {one.where}: {one.text}" for one in those[:IN_REPORT]]
            lines += [f"    and {len(those) - IN_REPORT:,} more; --json lists them all"] * (len(those) > IN_REPORT)
            lines.append(f"    {those[0].remedy}")
        return lines


def read_outputs(
    paths: Paths,
    *,
    map: Mapping[str, str] | None = None,
    missing: Missing = "refuse",
    turn: str | int = "last",
    repeat: str | int = "first",
    only: Sequence[str] | None = None,
    wide: bool = False,
    thinking: Thinking = "drop",
    format: str | None = None,
    filter: str | None = None,
    accept: Sequence[str] = (),
) -> Outputs:
    """Read the outputs of items on cases from files of promptfoo, Inspect, HELM, lm-eval, Arena-Hard, MT-bench,
    AlpacaEval, OpenAI, Anthropic, Phoenix, from tables and folders (docs/guides/outputs.md). The path `-` is standard
    input.

    map: fields by part, as in {"item": "run", "output": "pred.answer"}; the parts are item, case, text, output,
        reference, score, repeat and error. "@file" and "@folder" stand for the name of the file and of its folder.
    missing: what to do about an item without an output on a case. "refuse" raises BadOutputs, "drop" leaves such cases
        out, "lose" lets it lose to every output that is there.
    turn: of several turns "last", "all" as one conversation, or a number.
    repeat: of several outputs of an item on a case "first", a number, or "all": each is a case of its own.
    only: the items to keep.
    wide: every column of a table that is not about the case is an item.
    thinking: "drop" or "keep" what stands between <think> and </think>.
    format, filter: the format, if it is not recognised right; which filter of lm-eval to take.
    accept: problems to go on with: "duplicate" takes the first output, "case differs" the first text, "bad line" leaves
        lines out that cannot be read.

    Raises BadOutputs unless every item has an output on every case.
    """
    return inspect_outputs(
        paths, map=map, missing=missing, turn=turn, repeat=repeat, only=only, wide=wide, thinking=thinking,
        format=format, filter=filter, accept=accept,
    ).check()  # fmt: skip


def inspect_outputs(
    paths: Paths,
    *,
    map: Mapping[str, str] | None = None,
    missing: Missing = "refuse",
    turn: str | int = "last",
    repeat: str | int = "first",
    only: Sequence[str] | None = None,
    wide: bool = False,
    thinking: Thinking = "drop",
    format: str | None = None,
    filter: str | None = None,
    accept: Sequence[str] = (),
) -> Outputs:
    """A dry run of `read_outputs`: what was understood, and every problem. Raises BadOutputs for wrong options only."""
    accepted = frozenset(name.replace("-", " ") for name in accept)
    _check_options(map or {}, missing, thinking, format, accepted)
    choice = Choice(
        missing, _number("turn", turn, ("last", "all")), _number("repeat", repeat, ("first", "all")), thinking
    )
    listed = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    documents, problems = _open(Path(one) for one in listed)
    wanted = Wanted(map or {}, format, filter, wide)
    read = [(one, *read_document(one, wanted)) for one in documents]
    cells = collect([(known, found) for _, known, found in read], choice, only, problems)
    files = tuple(_file(document, known, found, cells) for document, known, found in read)
    return Outputs(
        cells.items, cells.cases, cells.texts, files, tuple(cells.problems), cells.scores, missing, accepted,
        choice.repeat == "all",
    )  # fmt: skip


def _check_options(
    told: Mapping[str, str], missing: str, thinking: str, format: str | None, accepted: frozenset[str]
) -> None:
    for name, value, known in (
        ("missing", missing, get_args(Missing)),
        ("thinking", thinking, get_args(Thinking)),
        ("format", format, (None, *NAMES)),
        *(("accept", one, ACCEPTABLE) for one in sorted(accepted)),
        *(("map", one, TARGETS) for one in told),
    ):
        if value not in known:
            raise BadOutputs(f"{name} is {shown(value)}; choose one of {', '.join(filter(None, known))}")


def _number(name: str, value: str | int, words: Sequence[str]) -> str | int:
    if value in words:
        return value
    if not str(value).isdigit() or int(value) < 1:
        raise BadOutputs(f"{name} is {shown(value)}; give {', '.join(words)} or a number from 1")
    return int(value)


def _open(paths: Iterable[Path]) -> tuple[list[Document], list[OutputProblem]]:
    """The files, each once, and those that cannot be read."""
    documents: list[Document] = []
    problems: list[OutputProblem] = []
    for path in dict.fromkeys(file for given in paths for file in find_paths(given)):
        try:
            documents.append(open_document(path))
        except NotInstalled as reason:
            problems.append(OutputProblem("not installed", str(path), str(reason)))
        except (BadVotes, OSError) as reason:
            problems.append(OutputProblem("unreadable", str(path), str(reason)))
    lm_eval = [one for one in documents if is_lm_eval(one)]
    kept, older = newest_lm_eval(lm_eval)
    left_out = {id(one) for one in lm_eval} - {id(one) for one in kept}
    return [one for one in documents if id(one) not in left_out], [*problems, *older]


def _file(document: Document, known: str, found: Sequence[Found], cells: Cells) -> FileRead:
    rows = [one for one in found if isinstance(one, Row)]
    places = [cells.places[id(one)] for one in rows if id(one) in cells.places]
    cases = {case for _, case in places} or {one.case for one in found if isinstance(one, CaseText)}
    return FileRead(
        document.file,
        document.kind,
        known,
        len(document.records) if not rows else len(rows),
        len({item for item, _ in places}),
        len(cases),
    )
