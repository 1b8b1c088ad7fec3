"""What a judge is shown: the case that the items are compared on, and the content of each item.

A case is drawn at random for every question, so a judge that always answers the same still gives independent votes.
Case files: .txt has one case per line; .jsonl one object per line with "text" and optionally "id" and "reference", a
reference answer; .csv columns of these names. A case without an id gets one made from its text, so it keeps its id when
the file grows.
"""

import asyncio
import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from shortlist.core.draws import digest, draw_case
from shortlist.errors import BadCases, BadJudge
from shortlist.judges.base import Call, Case, Ended, start_thread
from shortlist.study.questions import Question
from shortlist.votes.items import TOO_LONG

Contents = Mapping[str, str] | Mapping[str, Mapping[str, str]] | Callable[[str, Case | None], str]


def read_cases(path: str | Path) -> tuple[Case, ...]:
    """The cases of a .txt, .jsonl or .csv file. Raises BadCases with the first line that cannot be read."""
    readers = {".txt": _text_lines, ".jsonl": _json_lines, ".csv": _csv_rows}
    reader = readers.get(Path(path).suffix.lower())
    if reader is None:
        raise BadCases(f"{path} is not a {', '.join(readers)} file; cases are read from these")
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
        raise BadCases(f"{path} contains no cases")
    return tuple(cases)


def check_cases(cases: Iterable[Case | str]) -> tuple[Case, ...]:
    """Cases from a list of cases or plain texts. Raises BadCases if two have the same id."""
    if isinstance(cases, str):
        raise BadCases("cases is one string; give a list of cases or texts, or read a file with read_cases")
    made = tuple(case if isinstance(case, Case) else _case({"text": case}) for case in cases)
    if not made:
        raise BadCases("the list of cases is empty; leave cases out, or give some")
    doubled = sorted({case.id for case in made if [other.id for other in made].count(case.id) > 1}, key=str)
    if doubled:
        raise BadCases(f"cases must differ; given more than once: {', '.join(map(str, doubled[:5]))}")
    return made


def check_texts(cases: Iterable[Case]) -> None:
    """Raise BadCases if two cases have the same text. They are one case, so for a claim about cases like these they
    must not serve two questions."""
    seen: dict[str, str] = {}
    for case in cases:
        if case.text and seen.setdefault(case.text, case.id) != case.id:
            raise BadCases(
                f"cases {seen[case.text]!r} and {case.id!r} have the same text, so they are one case, and for a claim "
                "about cases like these each case serves one question; remove one of them, or make the claim about "
                "these cases"
            )


def case_of(question: Question, seed: int, cases: Mapping[str, Case] | None) -> Case | None:
    """The case that a question drew when it was asked. A question that was asked without cases draws one now."""
    if question.case is None:
        return None if cases is None else draw_case(seed, question.id, list(cases.values()))
    if cases is None or question.case not in cases:
        raise BadCases(
            f"question {question.id} is pending on case {question.case!r}, which was not given; "
            "give the cases it was asked with, or skip it"
        )
    return cases[question.case]


def check_contents(contents: Contents, items: Sequence[str]) -> None:
    """Raise BadJudge unless every item has a content. What a function returns is checked when it is called."""
    if isinstance(contents, Mapping):
        missing = [item for item in items if item not in contents]
        if missing:
            raise BadJudge(f"no text for {', '.join(map(repr, missing[:5]))}; contents needs an entry for every item")
    elif not callable(contents):
        raise BadJudge("contents must map items to texts, items to texts by case id, or be a function (item, case)")


def text_of(contents: Contents | None, item: str, case: Case | None) -> str | None:
    """The text of an item, from a mapping; None without contents."""
    if contents is None:
        return None
    assert isinstance(contents, Mapping)
    return _look_up(contents[item], item, case)


class TextFunction:
    """Texts from a function (item, case). It may be slow, so it runs in threads, for several questions at a time. In
    one run it is called once for each item and case, unless it fails."""

    def __init__(self, function: Callable[[str, Case | None], str]) -> None:
        self._function = function
        self._texts: dict[tuple[str, str | None], asyncio.Future[Ended[str]]] = {}

    async def add_to(self, call: Call) -> Call:
        """The call with the texts of both items."""
        first, second = [await self._find(item, call.case) for item in (call.first, call.second)]
        return replace(call, first_text=first, second_text=second)

    async def _find(self, item: str, case: Case | None) -> str:
        place = item, None if case is None else case.id
        found = self._texts.get(place)
        if found is None or (found.done() and found.result()[1] is not None):
            found = self._texts[place] = asyncio.wrap_future(start_thread(self._function, item, case))
        text, failure = await asyncio.shield(found)  # others may be waiting for it too
        if failure is not None:
            raise failure
        return _checked(text, item)


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
        raise BadCases("the first line has no column `text`")
    for row in reader:
        if any(row.get(None) or ()):
            raise BadCases(f"line {reader.line_num} {TOO_LONG}")
        yield reader.line_num, _case(row, f"line {reader.line_num}: ")


def _case(entry: Any, where: str = "") -> Case:
    if not isinstance(entry, dict) or not isinstance(entry.get("text"), str) or not entry["text"].strip():
        raise BadCases(f"{where}a case needs a text, and can have an id")
    name = entry.get("id")
    if name is None or name == "":
        name = digest(entry["text"])
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise BadCases(f"{where}id {name!r} is not a valid id; give a string or a whole number")
    reference = entry.get("reference")
    if reference is not None and not isinstance(reference, str):
        raise BadCases(f"{where}the reference is not a text")
    return Case(str(name), entry["text"], reference or "")


def _look_up(entry: str | Mapping[str, str], item: str, case: Case | None) -> str:
    if not isinstance(entry, Mapping):
        return _checked(entry, item)
    if case is None or case.id not in entry:
        raise BadJudge(f"no text of {item!r} for case {case.id if case else None!r}; contents needs one for every case")
    return _checked(entry[case.id], item)


def _checked(text: object, item: str) -> str:
    if not isinstance(text, str):
        raise BadJudge(f"the text of {item!r} is a {type(text).__name__}; give a string")
    return text
