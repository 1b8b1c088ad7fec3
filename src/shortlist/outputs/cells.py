"""From rows to a table of cells: names of items, ids of cases, repeats, turns, and what is missing."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from shortlist.core.draws import digest
from shortlist.core.problem import shown
from shortlist.errors import BadOutputs
from shortlist.judges.base import Case
from shortlist.outputs.rows import (
    NO_OUTPUT,
    REFUSED,
    CaseText,
    Found,
    OutputProblem,
    Row,
    collapsed,
    said,
    without_thinking,
)
from shortlist.votes.cells import VERDICT_MARK

Missing = Literal["refuse", "drop", "lose"]
Thinking = Literal["drop", "keep"]
LONGEST_NAME = 80
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # could be commands to a terminal
STRIPPED = "the output was stripped"
PLACEHOLDERS = ("None", "nan", "NaN", "null", "NULL", "N/A", "undefined", "[object Object]")


@dataclass(frozen=True)
class OutputCase(Case):
    """A case with the benchmark it belongs to."""

    task: str = ""


@dataclass(frozen=True)
class Choice:
    """What of the files is taken."""

    missing: Missing = "refuse"
    turn: str | int = "last"
    repeat: str | int = "first"
    thinking: Thinking = "drop"


@dataclass
class Cells:
    """The table. `places` says which item and case a row was taken for."""

    items: tuple[str, ...] = ()
    cases: tuple[OutputCase, ...] = ()
    texts: dict[str, dict[str, str]] = field(default_factory=dict)
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: list[OutputProblem] = field(default_factory=list)
    places: dict[int, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Placed:
    """A row with the name of its item and the id of its case."""

    item: str
    case: str
    row: Row


def collect(
    files: Sequence[tuple[str, Sequence[Found]]],
    choice: Choice,
    only: Sequence[str] | None,
    problems: Iterable[OutputProblem] = (),
) -> Cells:
    """The table of all files. `problems` are those of opening the files."""
    cells = Cells(problems=[*problems, *(one for _, found in files for one in found if isinstance(one, OutputProblem))])
    described = _described(one for _, found in files for one in found if isinstance(one, CaseText))
    placed = [one for known in _by_format(files) for one in _place(known, described, cells.problems)]
    cells.places = {id(one.row): (one.item, one.case) for one in placed}
    placed = _only(placed, only)
    cells.items = tuple(dict.fromkeys(one.item for one in placed))
    questions = _case_texts(placed, described, choice, cells.problems)
    _fill(cells, _one_per_cell(placed, choice, cells.problems), choice)
    known = dict.fromkeys(one.case for one in placed) if choice.repeat != "all" else _repeated_cases(cells, placed)
    _make_cases(cells, known, questions)
    _complete(cells, choice)
    cells.problems += _about_texts(cells)
    return cells


def _by_format(files: Sequence[tuple[str, Sequence[Found]]]) -> list[list[Row]]:
    """Rows of one tool belong together: their items are named by what varies among them."""
    groups: dict[str, list[Row]] = {}
    for known, found in files:
        tool = known.partition(" ")[0] if known.startswith("promptfoo") else known
        groups.setdefault(tool, []).extend(one for one in found if isinstance(one, Row))
    return list(groups.values())


def _described(found: Iterable[CaseText]) -> dict[str, CaseText]:
    """What question files say about each case, taken together."""
    cases: dict[str, CaseText] = {}
    for one in found:
        before = cases.get(one.case, CaseText(one.case, ()))
        cases[one.case] = CaseText(one.case, before.asked or one.asked, before.references or one.references)
    return cases


# --- names of items, ids of cases ---


def _place(rows: Sequence[Row], described: Mapping[str, CaseText], problems: list[OutputProblem]) -> Iterator[Placed]:
    names, tasks = _item_names(rows), {row.task for row in rows}
    for row in rows:
        item, case = names[tuple(row.parts.items())], _case_id(row, described)
        if not item:
            problems.append(OutputProblem("no item", row.where, "the row names no item"))
        elif case is None:
            problems.append(
                OutputProblem(
                    "no case", row.where, f"the row of {item} has neither the id nor the text of a case", item
                )
            )
        else:
            yield Placed(item, f"{row.task}/{case}" if len(tasks) > 1 and row.task else case, row)


def _item_names(rows: Sequence[Row]) -> dict[tuple[tuple[str, str], ...], str]:
    """The name of each item: the parts that vary, or the first part if none does."""
    found = list(dict.fromkeys(tuple(row.parts.items()) for row in rows))
    kinds = list(dict.fromkeys(kind for parts in found for kind, _ in parts))
    values = {kind: {dict(parts).get(kind, "") for parts in found} for kind in kinds}
    if {"model", "file"} <= set(kinds):
        is_told = "" not in values["model"] and len(values["model"]) == len(found)
        telling = ["model"] if is_told else ["file"]
    else:
        telling = [kind for kind in kinds if len(values[kind]) > 1] or kinds[:1]
    names: dict[tuple[tuple[str, str], ...], str] = {}
    taken: dict[str, tuple[str, ...]] = {}
    for parts in found:
        told = tuple(dict(parts).get(kind, "") for kind in telling)
        names[parts] = _free(_short(", ".join(filter(None, told))), told, taken)
    return names


def _short(name: str) -> str:
    name = collapsed(_CONTROL.sub(" ", name))
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _free(name: str, told: tuple[str, ...], taken: dict[str, tuple[str, ...]]) -> str:
    """Long names may become equal when they are shortened; then they get a number."""
    number, free = 1, name
    while taken.setdefault(free, told) != told:
        number += 1
        free = f"{name} #{number}"
    return free


def _case_id(row: Row, described: Mapping[str, CaseText]) -> str | None:
    if row.case:
        return row.case
    text = collapsed("\n".join(row.asked))
    return digest(text) if text else None


def _only(placed: list[Placed], only: Sequence[str] | None) -> list[Placed]:
    if only is None:
        return placed
    items = dict.fromkeys(one.item for one in placed)
    only = [name for given in only for name in ([given] if given in items else map(str.strip, given.split(",")))]
    unknown = [name for name in only if name not in items]
    if unknown:
        raise BadOutputs(f"there is no item {shown(unknown[0])}; the items are {', '.join(map(shown, items))}")
    return [one for one in placed if one.item in set(only)]


# --- texts of cases ---


def _case_texts(
    placed: Sequence[Placed], described: Mapping[str, CaseText], choice: Choice, problems: list[OutputProblem]
) -> dict[str, tuple[str, str, str]]:
    """The text, the reference and the task of each case, and where the files do not agree about a text."""
    texts: dict[str, tuple[str, str, str]] = {}
    first: dict[str, Placed] = {}
    told: set[tuple[str, str]] = set()
    for one in placed:
        known = described.get(one.row.case or "", CaseText("", ()))
        asked = known.asked or one.row.asked
        text = _question(asked, max(len(one.row.answers), 1), choice.turn)
        right = "\n".join(known.references[: choice.turn if isinstance(choice.turn, int) else None])
        before, reference, task = texts.setdefault(one.case, (text, right or one.row.reference, one.row.task))
        if not before.strip() and text.strip():
            texts[one.case] = text, reference, task
            first[one.case] = one
        if text == before or not text.strip() or not before.strip():
            first.setdefault(one.case, one)
            continue
        name = "whitespace" if collapsed(text) == collapsed(before) else "case differs"
        if (name, one.case) not in told:
            told.add((name, one.case))
            there = first[one.case]
            said = f"{shown(text, 40)} here, {shown(before, 40)} for {there.item} ({there.row.where})"
            problems.append(OutputProblem(name, one.row.where, said, one.item, one.case))
    return texts


def _question(asked: Sequence[str], turns: int, turn: str | int) -> str:
    """What was asked up to the turn that is judged."""
    end = turn if isinstance(turn, int) else max(turns, len(asked)) if turn == "all" else turns
    shown_turns = asked[:end]
    if len(shown_turns) < 2:
        return "".join(shown_turns)
    return "\n\n".join(f"Turn {number}: {text}" for number, text in enumerate(shown_turns, 1))


def _make_cases(cells: Cells, known: Iterable[str], questions: Mapping[str, tuple[str, str, str]]) -> None:
    unsaid = []
    made = []
    for case in known:
        text, reference, task = questions[case.rpartition(" #")[0] if case not in questions else case]
        if not text.strip():
            unsaid.append(case)
        made.append(OutputCase(case, text if text.strip() else case, reference, task))
    if unsaid:
        others = {0: "", 1: ", nor one other"}.get(len(unsaid) - 1, f", nor {len(unsaid) - 1:,} others")
        said = f"no file says what case {shown(unsaid[0])} asks{others}"
        cells.problems.append(OutputProblem("no case text", f"case {unsaid[0]}", said, case=unsaid[0]))
    cells.cases = tuple(made)


# --- one output for each cell ---


def _one_per_cell(placed: Sequence[Placed], choice: Choice, problems: list[OutputProblem]) -> Iterator[Placed]:
    grouped: dict[tuple[str, str], list[Placed]] = {}
    for one in placed:
        grouped.setdefault((one.item, one.case), []).append(one)
    most: dict[str, tuple[int, Placed]] = {}
    for (item, case), rows in grouped.items():
        repeats = sorted(_without_doubles(rows, problems), key=lambda one: _order(one.row.repeat))
        if len(repeats) > most.get(item, (1, rows[0]))[0]:
            most[item] = len(repeats), repeats[1]
        if choice.repeat == "all":
            yield from (replace(one, case=f"{case} #{number}") for number, one in enumerate(repeats, 1))
        else:
            place = 0 if choice.repeat == "first" else int(choice.repeat) - 1
            yield from repeats[place : place + 1]
    taken = {"first": "the first is taken", "all": "each is a case of its own"}.get(
        str(choice.repeat), f"number {choice.repeat} is taken"
    )
    for item, (count, one) in most.items():
        said = f"{item} has up to {count} outputs on a case; {taken}"
        problems.append(OutputProblem("repeats", one.row.where, said, item, one.case))


def _order(repeat: str) -> tuple[int, str]:
    digits = re.search(r"\d+", repeat)
    return int(digits[0]) if digits else 0, repeat


def _without_doubles(rows: Sequence[Placed], problems: list[OutputProblem]) -> Iterator[Placed]:
    first: dict[str, Placed] = {}
    for one in rows:
        before = first.setdefault(one.row.repeat, one)
        if before is one:
            yield one
            continue
        is_same = before.row.answers == one.row.answers and before.row.error == one.row.error
        name, what = ("repeated row", "the same") if is_same else ("duplicate", "another")
        said = f"{one.item} has {what} output on case {shown(one.case)} at {before.row.where}"
        problems.append(OutputProblem(name, one.row.where, said, one.item, one.case))


def _repeated_cases(cells: Cells, placed: Sequence[Placed]) -> list[str]:
    """Each repeat of each case, in the order of the cases."""
    order = {case: number for number, case in enumerate(dict.fromkeys(one.case for one in placed))}
    found = {case for texts in cells.texts.values() for case in texts} | {
        str(one.case) for one in cells.problems if one.weight == NO_OUTPUT and one.case
    }
    return sorted(found, key=lambda case: (order[case.rpartition(" #")[0]], int(case.rpartition("#")[2])))


def _fill(cells: Cells, chosen: Iterable[Placed], choice: Choice) -> None:
    cells.texts = {item: {} for item in cells.items}
    several: dict[str, Placed] = {}
    for one in chosen:
        text = _text(one, choice, cells.problems)
        if len(one.row.answers) > 1:
            several.setdefault(one.item, one)
        if text is not None:
            cells.texts[one.item][one.case] = text
        if one.row.score is not None:
            cells.scores.setdefault(one.item, {})[one.case] = one.row.score
    for item, one in several.items():
        judged = {"last": "the last one is judged", "all": "all are judged together"}.get(
            str(choice.turn), f"number {choice.turn} is judged"
        )
        said = f"{item} answers {len(one.row.answers)} turns; {judged}"
        cells.problems.append(OutputProblem("turns", one.row.where, said, item, one.case))


def _text(one: Placed, choice: Choice, problems: list[OutputProblem]) -> str | None:
    """The output of a row as it is shown; None, with the reason, if there is none."""
    row = one.row

    def report(name: str, text: str) -> None:
        problems.append(
            OutputProblem(name, row.where, f"{one.item} on case {shown(one.case)}: {text}", one.item, one.case)
        )

    if row.error:
        report("stripped" if row.error.startswith(STRIPPED) else "error", shown(collapsed(row.error), 80).strip("'\""))
        return None
    if isinstance(choice.turn, int) and choice.turn > len(row.answers):
        report("no such turn", f"there are {len(row.answers)} turns")
        return None
    answers = (
        row.answers
        if choice.turn == "all"
        else row.answers[choice.turn - 1 :][:1]
        if isinstance(choice.turn, int)
        else row.answers[-1:]
    )
    texts = []
    for answer in answers:
        text, is_text = said(answer)
        if not is_text:
            report("not text", f"the output is {shown(answer, 40)}")
        bare = without_thinking(text)
        if bare != text and choice.thinking == "drop":
            if bare is None:
                report("unended thinking", "the thinking never ends, so there is no answer")
                return None
            report("thinking", f"{len(text) - len(bare):,} characters of thinking are left out")
            text = bare
        texts.append(text)
    if not any(text.strip() for text in texts):
        report("empty", "the output is empty")
        return None
    if texts[-1].strip() in PLACEHOLDERS:
        report("placeholder", f"the output is {texts[-1].strip()}")
    if row.is_cut:
        report("truncated", "the output was cut off at a limit")
    return texts[0] if len(texts) == 1 else _conversation(row.asked, texts)


def _conversation(asked: Sequence[str], answers: Sequence[str]) -> str:
    """All answers, numbered as the questions are in the text of the case."""
    return "\n\n".join(f"Turn {number}: {text}" for number, text in enumerate(answers, 1))


# --- what is missing ---


def _complete(cells: Cells, choice: Choice) -> None:
    """Report cells without an output, and do what the caller chose about them."""
    reported = {(one.item, one.case) for one in cells.problems if one.weight == NO_OUTPUT}
    holes = [(item, case.id) for case in cells.cases for item in cells.items if case.id not in cells.texts[item]]
    for item, case in holes:
        if (item, case) not in reported:
            said = f"{item} has no output on case {shown(case)}"
            cells.problems.append(OutputProblem("missing", f"{item}, case {case}", said, item, case))
    _refuse_tables(cells)
    if choice.missing == "lose":
        for item, case in holes:
            cells.texts[item][case] = ""
    elif choice.missing == "drop" and holes:
        left_out, whose = {case for _, case in holes}, Counter(item for item, _ in holes)
        names = ", ".join(f"{item} has none on {count:,}" for item, count in whose.most_common(5))
        said = f"{len(left_out):,} of {len(cells.cases):,} cases are left out: {names}"
        cells.problems.append(OutputProblem("dropped", "all files", said))
        cells.cases = tuple(case for case in cells.cases if case.id not in left_out)
        cells.texts = {item: {case.id: texts[case.id] for case in cells.cases} for item, texts in cells.texts.items()}
        if not cells.cases:
            cells.problems.append(OutputProblem("nothing", "all files", "no case has an output of every item"))


def _refuse_tables(cells: Cells) -> None:
    """A table that cannot be compared, for one reason that explains all the holes."""
    filled = Counter(case for texts in cells.texts.values() for case in texts)
    if not filled:
        if not any(one.weight == REFUSED for one in cells.problems):
            cells.problems.append(OutputProblem("nothing", "all files", "there are no outputs"))
    elif len(cells.items) == 1:
        cells.problems.append(OutputProblem("one item", "all files", f"there is only one item, {cells.items[0]}"))
    elif max(Counter(case for _, case in set(cells.places.values())).values()) == 1:
        cells.problems.append(OutputProblem("no shared case", "all files", "no case has outputs of two items"))


# --- what the texts look like ---


def _about_texts(cells: Cells) -> Iterator[OutputProblem]:
    twins: dict[tuple[str, ...], list[str]] = {}
    for item, texts in cells.texts.items():
        twins.setdefault(tuple(texts.get(case.id, "") for case in cells.cases), []).append(item)
    for items in twins.values():
        if len(items) > 1 and cells.cases:
            yield OutputProblem(
                "same item", items[0], f"{', '.join(items)} have the same output on every case", items[0]
            )
    for case in cells.cases:
        same: dict[str, list[str]] = {}
        for item in cells.items:
            if text := cells.texts[item].get(case.id):
                same.setdefault(text, []).append(item)
        for items in same.values():
            if len(items) > 1:
                yield OutputProblem(
                    "same output", f"case {case.id}", f"{', '.join(items)} have the same output", items[0], case.id
                )
    for item, texts in cells.texts.items():
        there = [text for text in texts.values() if text]
        if len(there) > 1 and len(set(there)) == 1:
            yield OutputProblem("one text", item, f"{item} has the same output on all {len(there):,} cases", item)
        for name, text in texts.items():
            if mark := VERDICT_MARK.search(text):
                yield OutputProblem(
                    "verdict mark", f"{item}, case {name}", f"the output of {item} contains {mark[0]}", item, name
                )
