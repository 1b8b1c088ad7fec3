"""Formats of outputs: how each is recognised, and what is what in it.

docs/guides/outputs.md has the same table. The first format that fits is taken.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from shortlist.core.problem import shown
from shortlist.errors import BadVotes
from shortlist.outputs import tools
from shortlist.outputs.documents import QUESTIONS, Document, open_document
from shortlist.outputs.rows import (
    CaseText,
    Found,
    OutputProblem,
    Row,
    asked,
    fields,
    is_chat,
    mended,
    message_text,
    said,
)
from shortlist.outputs.tools import CUT, Record, member, message_of, word
from shortlist.votes.formats import plain_title

ITEM = ("item", "model", "model_name", "name", "generator", "system")
CASE = ("case", "case_id", "question_id", "prompt_id", "id", "uid")
TEXT = ("text", "prompt", "question", "instruction", "input", "query")
OUTPUT = ("output", "response", "completion", "answer")
REFERENCE = ("reference", "reference_answer", "target", "expected", "ideal", "gold")
MT_BENCH_ERRORS = ("$ERROR$", "ERROR")
TARGETS = ("item", "case", "text", "output", "reference", "score", "repeat", "error")
FROM_PATH = ("@file", "@folder")


@dataclass(frozen=True)
class Wanted:
    """What the caller says about the files."""

    map: Mapping[str, str] = field(default_factory=dict)
    format: str | None = None
    filter: str | None = None
    wide: bool = False


class Format(NamedTuple):
    """A format. `fits` looks at the first record, `read` gives rows."""

    name: str
    fits: Callable[[Document], bool]
    read: Callable[[Document, Wanted], Iterator[Found]]


def _has(*names: str) -> Callable[[Document], bool]:
    return lambda document: document.first.keys() >= set(names)


def _plain(read: Callable[[Document], Iterator[Found]]) -> Callable[[Document, Wanted], Iterator[Found]]:
    return lambda document, _: read(document)


# --- answers of chat models: Arena-Hard, MT-bench, AlpacaEval ---


def _arena_hard(document: Document) -> Iterator[Found]:
    for where, record in document.numbered():
        messages = [one for one in record["messages"] if isinstance(one, Mapping)]
        questions = tuple(said(one.get("content")).text for one in messages if one.get("role") == "user")
        answers = tuple(_arena_answer(one.get("content")) for one in messages if one.get("role") == "assistant")
        yield Row(where, {"model": word(record["model"])}, word(record["uid"]), answers, questions, record=record)


def _arena_answer(content: Any) -> Any:
    """An object with the answer and perhaps a thought; in older files a text."""
    if not isinstance(content, Mapping) or "answer" not in content:
        return content
    return message_text({"content": content["answer"], "reasoning": content.get("thought")})


def _turns(record: Record) -> Any:
    return member(record, "choices", 0, "turns")


def _is_arena_hard_2024(document: Document) -> bool:
    return _has("question_id", "model_id", "choices")(document) and isinstance(
        member(_turns(document.first), 0), Mapping
    )


def _mt_bench(document: Document) -> Iterator[Found]:
    """Also Arena-Hard of 2024, whose turns are objects."""
    for where, record in document.numbered():
        for number, choice in enumerate(record.get("choices") or ()):
            turns = [
                member(turn, "content") if isinstance(turn, Mapping) else turn for turn in choice.get("turns") or ()
            ]
            error = next(("the call failed" for turn in turns if turn in MT_BENCH_ERRORS), "")
            yield Row(
                where, {"model": word(record["model_id"])}, word(record["question_id"]), tuple(turns),
                repeat=str(number + 1), error=error, record=record,
            )  # fmt: skip


def _is_questions(document: Document) -> bool:
    first = document.first
    return not first.keys() & {"model", "model_id", *OUTPUT} and (
        first.keys() >= {"question_id", "turns"} or first.keys() >= {"uid", "prompt"}
    )


def _questions(document: Document) -> Iterator[Found]:
    for _, record in document.numbered():
        turns = record.get("turns") or [record.get("prompt")]
        texts = tuple(said(member(turn, "content") if isinstance(turn, Mapping) else turn).text for turn in turns)
        reference = record.get("reference")
        answers = reference if isinstance(reference, list) else [reference]
        case = word(record.get("question_id", record.get("uid")))
        yield CaseText(case, texts, tuple(map(word, answers)) if reference else ())


def _alpaca_eval(document: Document) -> Iterator[Found]:
    fallback = document.folder if document.stem in ("model_outputs", "outputs") else document.stem
    times = Counter[tuple[str, str]]()  # an instruction that a list has twice was answered twice
    for where, record in document.numbered():
        text = word(record["instruction"])
        if word(record.get("input")).strip():
            text = f"{text}\n\n{record['input']}"
        item = word(record.get("generator")) or fallback
        times[item, text] += 1
        yield Row(
            where, {"generator": item}, None, (record["output"],), (text,), repeat=str(times[item, text]), record=record
        )


# --- batches ---


def _is_openai_batch(document: Document) -> bool:
    return _has("custom_id", "response")(document) or (
        _has("custom_id", "error")(document) and "result" not in document.first
    )


def _batch_parts(document: Document, models: Iterable[Any]) -> dict[str, str]:
    """The model, if the file has one only, and the file."""
    named = sorted({word(model) for model in models if model})
    return {"model": named[0] if len(named) == 1 else "", "file": document.stem}


def _openai_batch(document: Document) -> Iterator[Found]:
    parts = _batch_parts(document, (member(one, "response", "body", "model") for one in document.records))
    for where, record in document.numbered():
        body, status = member(record, "response", "body"), member(record, "response", "status_code")
        failed = record.get("error") or member(body, "error")
        error = message_of(failed) if failed else "" if status in (200, None) and body else f"status {status}"
        choices = member(body, "choices")
        answers = [message_text(one["message"]) if "message" in one else one.get("text") for one in choices or ()]
        if choices is None:
            answers = [_response_text(member(body, "output"))]
        ended = member(choices, 0, "finish_reason") or member(body, "incomplete_details", "reason")
        for number, answer in enumerate(answers or [None]):
            case = word(record.get("custom_id"))
            yield Row(
                where, parts, case, (answer,), repeat=str(number + 1), error=error, is_cut=ended in CUT, record=record
            )


def _response_text(output: Any) -> str | None:
    """The text of a body of the Responses API: messages among other things."""
    if not isinstance(output, list):
        return None
    return "".join(
        said(one.get("content")).text for one in output if isinstance(one, Mapping) and one.get("type") == "message"
    )


def _is_anthropic_batch(document: Document) -> bool:
    return "custom_id" in document.first and isinstance(member(document.first, "result", "type"), str)


def _anthropic_batch(document: Document) -> Iterator[Found]:
    parts = _batch_parts(document, (member(one, "result", "message", "model") for one in document.records))
    for where, record in document.numbered():
        result = record.get("result") or {}
        kind, message = result.get("type"), result.get("message")
        error = "" if kind == "succeeded" else f"{kind} {message_of(result.get('error'))}".strip()
        yield Row(
            where, parts, word(record.get("custom_id")), (member(message, "content"),), error=error,
            is_cut=member(message, "stop_reason") in CUT, record=record,
        )  # fmt: skip


def _is_requests(document: Document) -> bool:
    return "custom_id" in document.first and bool(document.first.keys() & {"body", "params"})


def _requests(document: Document) -> Iterator[Found]:
    for _, record in document.numbered():
        body = record.get("body") or record.get("params")
        question = member(body, "messages") or member(body, "input") or member(body, "prompt")
        yield CaseText(word(record.get("custom_id")), (asked(question),))


# --- experiments and plain tables ---


def _phoenix(document: Document) -> Iterator[Found]:
    for where, record in document.numbered():
        notes = record.get("annotations")
        scores = {word(one.get("name")): one.get("score") for one in notes or () if isinstance(one, Mapping)}
        reference = _parsed(record.get("reference_output"))
        yield Row(
            where, {"file": document.stem}, word(record["example_id"]), (_parsed(record.get("output")),),
            (asked(_parsed(record.get("input"))),), repeat=word(record["repetition_number"]),
            reference=fields(reference) if isinstance(reference, Mapping) and reference else word(reference),
            score=scores or None, error=word(record.get("error")), record=record,
        )  # fmt: skip


def _parsed(cell: Any) -> Any:
    """An object that a table holds as JSON text; anything else as it is."""
    if not isinstance(cell, str) or not cell.lstrip().startswith("{"):
        return cell
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return cell


def find_column(record: Record, known: Sequence[str]) -> str | None:
    """The first of these columns that the record has; capitals and blanks do not matter."""
    titles: dict[str, str] = {}
    for name in record:
        titles.setdefault(plain_title(str(name)), name)
    return next((titles[name] for name in known if name in titles), None)


def _is_long(document: Document) -> bool:
    item, output = find_column(document.first, ITEM), find_column(document.first, OUTPUT)
    return item is not None and output is not None and not isinstance(document.first[item], Mapping | list)


def _long(document: Document) -> Iterator[Found]:
    titles = dict.fromkeys(name for record in document.records for name in record)
    columns = {part: find_column(titles, known) for part, known in KNOWN.items()}
    others = [name for name in titles if plain_title(name) in OUTPUT and name != columns["output"]]
    if others:
        text = f"outputs are read from {columns['output']}, and {', '.join(others)} is not read"
        yield OutputProblem("unread column", document.file, text)
    used = {part: name for part, name in columns.items() if name is not None}
    yield from _doubled(document, used.values())
    yield from _by_columns(document, used)


KNOWN = {
    "item": ITEM, "case": CASE, "text": TEXT, "output": OUTPUT, "reference": REFERENCE, "score": ("score",),
    "repeat": ("repeat", "epoch", "repetition"), "error": ("error",),
}  # fmt: skip


def _doubled(document: Document, used: Iterable[str]) -> Iterator[Found]:
    """Columns of one name, of which only one could be read."""
    names = [] if document.table is None else list(document.table.names)
    for name in dict.fromkeys(used):
        if names.count(name) > 1:
            yield OutputProblem(
                "doubled column", document.file, f"there are {names.count(name)} columns with the name {name}"
            )


def _by_columns(document: Document, columns: Mapping[str, str]) -> Iterator[Found]:
    for where, record in document.numbered():
        found = {part: _look_up(document, record, name) for part, name in columns.items()}
        yield _mapped(Row(where, {"file": document.stem}, None, (None,), record=record), found)


def _mapped(row: Row, found: Mapping[str, Any]) -> Row:
    """The row with parts that were read from named fields."""
    changes: dict[str, Any] = {}
    for part, value in found.items():
        if part == "item":
            changes["parts"] = {"item": word(value).strip()} if word(value).strip() else {}
        elif part == "case":
            changes["case"] = word(value).strip() or None
        elif part == "text":
            changes["asked"] = (asked(_parsed(value)),) if value is not None else ()
        elif part == "output":
            changes["answers"] = (message_text(value[-1]) if is_chat(value) else value,)
        elif part in ("reference", "repeat", "error"):
            changes[part] = word(value)
        else:
            changes[part] = value
    return replace(row, **changes)


def _look_up(document: Document, record: Record, path: str) -> Any:
    """A field by its name, or by the names on the way to it, such as response.body.model."""
    if path in FROM_PATH:
        return document.stem if path == "@file" else document.folder
    if path in record:
        return record[path]
    steps = [int(step) if step.isdigit() else step for step in path.split(".")]
    return member(record, *steps)


def _is_wide(document: Document) -> bool:
    others = len(_wide_items(document))
    return document.table is not None and len(document.records) > 0 and others >= 2 and others < len(document.first)


def _wide_items(document: Document) -> list[str]:
    known = {
        find_column(document.first, CASE),
        find_column(document.first, TEXT),
        find_column(document.first, REFERENCE),
    }
    return [name for name in document.first if name not in known and name]


def _wide(document: Document) -> Iterator[Found]:
    parts = {"case": CASE, "text": TEXT, "reference": REFERENCE}
    columns = {part: name for part, known in parts.items() if (name := find_column(document.first, known)) is not None}
    yield from _doubled(document, document.first)
    for item in _wide_items(document):
        for found in _by_columns(document, {**columns, "output": item}):
            yield replace(found, parts={"item": item}) if isinstance(found, Row) else found


def _is_votes(document: Document) -> bool:
    names = document.first.keys()
    marks = ({"g1_winner", "g2_winner"}, {"generator_1", "generator_2"}, {"model_a", "model_b"}, {"games", "model"})
    return any(names >= mark for mark in marks)


def _votes(document: Document) -> Iterator[Found]:
    yield OutputProblem("votes", document.file, "the file has votes")


def _is_ratings(document: Document) -> bool:
    return document.first.keys() >= {"question_id", "model", "judgment", "score"}


def _ratings(document: Document) -> Iterator[Found]:
    yield OutputProblem("ratings", document.file, "the file has a judge's ratings of single answers")


FORMATS = (
    Format("promptfoo", tools.is_promptfoo, _plain(tools.read_promptfoo)),
    Format("promptfoo lines", tools.is_promptfoo_lines, _plain(tools.read_promptfoo_lines)),
    Format("promptfoo table", tools.is_promptfoo_table, _plain(tools.read_promptfoo_table)),
    Format("Inspect", tools.is_inspect, _plain(tools.read_inspect)),
    Format("HELM", tools.is_helm, _plain(tools.read_helm)),
    Format("lm-eval", tools.is_lm_eval, lambda document, wanted: tools.read_lm_eval(document, wanted.filter)),
    Format("votes", _is_votes, _plain(_votes)),
    Format("ratings", _is_ratings, _plain(_ratings)),
    Format("Arena-Hard", _has("uid", "model", "messages"), _plain(_arena_hard)),
    Format("Arena-Hard 2024", _is_arena_hard_2024, _plain(_mt_bench)),
    Format("MT-bench", _has("question_id", "model_id", "choices"), _plain(_mt_bench)),
    Format("questions", _is_questions, _plain(_questions)),
    Format("AlpacaEval", _has("instruction", "output"), _plain(_alpaca_eval)),
    Format("OpenAI batch", _is_openai_batch, _plain(_openai_batch)),
    Format("Anthropic batch", _is_anthropic_batch, _plain(_anthropic_batch)),
    Format("batch requests", _is_requests, _plain(_requests)),
    Format("OpenAI evals", tools.is_openai_evals, _plain(tools.read_openai_evals)),
    Format("Phoenix", _has("example_id", "repetition_number", "output"), _plain(_phoenix)),
    Format("folder", lambda document: document.kind == "folder", _plain(_long)),
    Format("long", _is_long, _plain(_long)),
)
NAMES = (*(known.name for known in FORMATS), "wide", "mapped")


def recognise(document: Document, wanted: Wanted) -> Format | None:
    """The format of a file; None if there is nothing to go by."""
    wide = Format("wide", _is_wide, _plain(_wide))
    if wanted.format is not None:
        return next((known for known in (*FORMATS, wide) if known.name == wanted.format), None)
    if wanted.wide and _is_wide(document):
        return wide
    return next((known for known in FORMATS if document.records and known.fits(document)), None)


def read_document(document: Document, wanted: Wanted) -> tuple[str, list[Found]]:
    """The name of the format, and what the file has."""
    bad: list[Found] = [
        OutputProblem("bad line", f"{document.file}, line {line}" if line else document.file, reason)
        for line, reason in document.bad
    ]
    known = recognise(document, wanted)
    if known is None and (inner := _inner_list(document)) is not None:
        document = inner
        known = recognise(document, wanted)
    if known is None and wanted.map and document.records:
        return "mapped", [*bad, *_mended(_read_mapped(document, wanted.map))]
    if known is None:
        return "unknown", [*bad, _unknown(document)]
    found = [_overridden(document, one, wanted.map) for one in _guarded(document, known.read(document, wanted))]
    if known.name in ("MT-bench", "Arena-Hard", "Arena-Hard 2024"):
        found += _guarded(document, _beside(document))
    return known.name, [*bad, *_mended(found)]


def _inner_list(document: Document) -> Document | None:
    """The records of an object that has one list of records, such as {"data": [...]}."""
    lists = {
        name: value
        for name, value in (document.whole or {}).items()
        if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value)
    }
    if len(lists) != 1:
        return None
    ((name, records),) = lists.items()
    places = tuple(f"{name} {number}" for number in range(len(records)))
    return replace(document, whole=None, records=tuple(records), places=places)


def _mended(found: Iterable[Found]) -> Iterator[Found]:
    """Rows without halves of characters, each with a note."""
    for one in found:
        if isinstance(one, Row):
            changes = {part: getattr(one, part) for part in ("parts", "case", "answers", "asked", "reference", "error")}
            if (whole := mended(changes)) != changes:
                yield OutputProblem("broken character", one.where, "a text has half of a character", case=whole["case"])
                one = replace(one, **whole)
        yield one


def _guarded(document: Document, rows: Iterator[Found]) -> Iterator[Found]:
    """A file that looks like a format and is built otherwise ends in a problem that says where."""
    last = document.file
    try:
        for one in rows:
            last = one.where if isinstance(one, Row) else last
            yield one
    except BadVotes as reason:
        yield OutputProblem("unreadable", document.file, str(reason))
    except (AttributeError, LookupError, TypeError, ValueError) as reason:
        after = "" if last == document.file else f" after {last}"
        text = f"it looks like a known format, but is built otherwise{after} ({type(reason).__name__}: {reason})"
        yield OutputProblem("unknown format", document.file, text)


def _read_mapped(document: Document, told: Mapping[str, str]) -> Iterator[Found]:
    """The fields of the map; what it does not name is recognised. Without an id, a case is known by its text."""
    missing = [name for name in told.values() if not _is_there(document, name)]
    if missing:
        yield _without(document, missing[0])
        return
    known = {part: find_column(document.first, names) for part, names in KNOWN.items()}
    if "text" in told:
        del known["case"]
    columns = {part: name for part, name in {**known, **told}.items() if name}
    yield from _doubled(document, columns.values())
    yield from _by_columns(document, columns) if "output" in columns else [_unknown(document)]


def _is_there(document: Document, name: str) -> bool:
    return not name or any(_look_up(document, record, name) is not None for record in document.records)


def _without(document: Document, name: str) -> OutputProblem:
    return OutputProblem(
        "unknown format", document.file, f"there is no field {name!r}; its fields are {_listed(document.first)}"
    )


def _unknown(document: Document) -> OutputProblem:
    if not document.records:
        return OutputProblem("nothing", document.file, "there are no records in it")
    if _is_wide(document) and (find_column(document.first, CASE) or find_column(document.first, TEXT)):
        said = f"its columns are {_listed(document.first)}; they may be items, with one row for each case"
        return OutputProblem("wide table", document.file, said)
    fields = f"its fields are {_listed(document.first)}"
    if document.whole and all(isinstance(one, Mapping) and "0" in one for one in document.whole.values()):
        fields = "it has a member for each column; write it row by row, in pandas with to_json(orient='records')"
    return OutputProblem("unknown format", document.file, fields)


def _listed(names: Iterable[str]) -> str:
    known = [shown(str(name), 40).strip("'\"") for name in names]
    return ", ".join(known[:20]) + (f" and {len(known) - 20} more" if len(known) > 20 else "")


def _overridden(document: Document, found: Found, told: Mapping[str, str]) -> Found:
    """With the parts that the map takes from elsewhere. A part that is mapped to nothing is not read."""
    if not isinstance(found, Row) or not told:
        return found
    return _mapped(
        found, {part: _look_up(document, found.record, name) if name else None for part, name in told.items()}
    )


def _beside(document: Document) -> Iterator[Found]:
    """The questions and reference answers that lie beside the answers, as these tools keep them."""
    folder = document.path.resolve().parent
    if folder.name != "model_answer":
        return
    if (folder.parent / QUESTIONS).is_file():
        yield from _questions(open_document(folder.parent / QUESTIONS))
    for file in sorted((folder.parent / "reference_answer").glob("*.jsonl")):
        answers = [one for one in _mt_bench(open_document(file)) if isinstance(one, Row)]
        yield from (CaseText(str(one.case), (), tuple(map(word, one.answers))) for one in answers)
