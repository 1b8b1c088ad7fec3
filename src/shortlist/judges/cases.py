"""Cases: what the items are compared on. Drawn at random for every question, they make a judge's votes fresh.

Files: .txt has a case per line; .jsonl an object per line with "text" and perhaps "id"; .csv a column `text` and
perhaps `id`. A case without an id gets one made from its text, so that it keeps it when the file grows.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from shortlist.dice import digest, draw_case
from shortlist.errors import BadCases
from shortlist.judges.judge import Case
from shortlist.study.questions import Question


def read_cases(path: str | Path) -> tuple[Case, ...]:
    """The cases of a .txt, .jsonl or .csv file. Raises BadCases naming the first line that makes no sense."""
    readers = {".txt": _text_lines, ".jsonl": _json_lines, ".csv": _csv_rows}
    reader = readers.get(Path(path).suffix.lower())
    if reader is None:
        raise BadCases(f"{path} is no {', '.join(readers)} file; cases are read from these")
    found: dict[str, int] = {}
    cases = []
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            for line, case in reader(file):
                if case.id in found:
                    raise BadCases(f"line {line} repeats the case of line {found[case.id]}")
                found[case.id] = line
                cases.append(case)
    except (OSError, UnicodeDecodeError, csv.Error, BadCases) as reason:
        raise BadCases(f"cannot read {path}: {getattr(reason, 'strerror', None) or reason}") from None
    if not cases:
        raise BadCases(f"{path} holds no cases")
    return tuple(cases)


def check_cases(cases: Iterable[Case | str]) -> tuple[Case, ...]:
    """Cases from cases or plain texts; their ids must differ."""
    if isinstance(cases, str):
        raise BadCases("cases is one string; give a list of cases or texts, or read a file with read_cases")
    made = tuple(case if isinstance(case, Case) else _case({"text": case}) for case in cases)
    if not made:
        raise BadCases("the list of cases is empty; leave cases out, or give some")
    doubled = sorted({case.id for case in made if [other.id for other in made].count(case.id) > 1}, key=str)
    if doubled:
        raise BadCases(f"cases must differ; given more than once: {', '.join(map(str, doubled[:5]))}")
    return made


def case_of(question: Question, seed: int, cases: Mapping[str, Case] | None) -> Case | None:
    """The case that a question drew when it was asked. One that was asked without any draws now."""
    if question.case is None:
        return None if cases is None else draw_case(seed, question.id, list(cases.values()))
    if cases is None or question.case not in cases:
        raise BadCases(
            f"question {question.id} is out on case {question.case!r}, which is not given; "
            "give the cases it was asked with, or skip it"
        )
    return cases[question.case]


def _text_lines(file: Iterable[str]) -> Iterator[tuple[int, Case]]:
    for number, line in enumerate(file, 1):
        if line.strip():
            yield number, _case({"text": line.strip()})


def _json_lines(file: Iterable[str]) -> Iterator[tuple[int, Case]]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            raise BadCases(f"line {number} is not JSON") from None
        yield number, _case(entry, f"line {number}: ")


def _csv_rows(file: Iterable[str]) -> Iterator[tuple[int, Case]]:
    reader = csv.DictReader(file, skipinitialspace=True)
    if "text" not in (reader.fieldnames or ()):
        raise BadCases("the first line names no column `text`")
    for row in reader:
        yield reader.line_num, _case(row, f"line {reader.line_num}: ")


def _case(entry: Any, where: str = "") -> Case:
    if not isinstance(entry, dict) or not isinstance(entry.get("text"), str) or not entry["text"].strip():
        raise BadCases(f"{where}a case needs a text, and may have an id")
    name = entry.get("id")
    if name is None or name == "":
        name = digest(entry["text"])
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise BadCases(f"{where}id {name!r} is no name; give a string or a whole number")
    return Case(str(name), entry["text"])
