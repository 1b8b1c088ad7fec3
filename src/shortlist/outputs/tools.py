"""Files of evaluation tools that nest their outputs: promptfoo, Inspect, HELM, lm-eval, OpenAI evals."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from shortlist.core.draws import digest
from shortlist.core.problem import shown
from shortlist.outputs.documents import Document
from shortlist.outputs.rows import THOUGHT, Found, OutputProblem, Row, asked, fields, message_text, said

Record = Mapping[str, Any]
CUT = ("length", "max_tokens", "max_output_tokens", "model_length")  # why an answer ended before its end
ASSERTION, FAILED_CALL = 1, 2  # promptfoo's reasons of a failure: the first is about an answer, the second is none
STRIPPED = ("[output stripped]", "[prompt stripped]")
PROMPTFOO_TITLES = ("Status", "Score", "Named Scores", "Grader Reason", "Comment")
_HEADER = re.compile(r"\[([^\]]+)\] (.*)", re.DOTALL)
_OLD_MARK = re.compile(r"\[(PASS|FAIL|ERROR)\](?: \([\d.]+\))?\s*")
_OLD_REASON = re.compile(r"\n+(?:(?:Pass|Fail) Reason: |---\n).*\Z", re.DOTALL)
_LM_EVAL_FILE = re.compile(r"samples_(.+?)_(\d{4}-\d\d-\d\dT[\d.:-]+)")
_APART = re.compile(r"\Aattachment://\S+\Z")
_ENCRYPTED = re.compile(r"\[encrypted_text_\d+\]")  # how HELM hides questions in its public files
_HELM_MODEL = re.compile(r"[:,]model(?:_deployment)?=[^,]*")


def member(value: Any, *path: str | int) -> Any:
    """A member of members of JSON; None if there is none."""
    for step in path:
        if isinstance(value, Mapping) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, Sequence) and not isinstance(value, str) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def word(value: Any) -> str:
    """An id or a label as text."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # numbers become floats where a column has empty cells
    return "" if value is None else value if isinstance(value, str) else said(value).text


def message_of(error: Any) -> str:
    """The message of an error, however it is written."""
    told = member(error, "message") or member(error, "error", "message") or member(error, "code")
    return word(told or error) if error else ""


# --- promptfoo ---


def is_promptfoo(document: Document) -> bool:
    whole = document.whole or {}
    is_bare = (
        isinstance(whole.get("results"), list) and "version" in whole and bool(whole.keys() & {"table", "prompts"})
    )
    return is_bare or isinstance(member(whole, "results", "results"), list) or bool(_promptfoo_view(document))


def read_promptfoo(document: Document) -> Iterator[Found]:
    whole = document.whole or {}
    body = whole if isinstance(whole.get("results"), list) else whole.get("results")
    results, prompts = member(body, "results"), member(body, "prompts")
    if results is None:
        results, prompts = (
            _promptfoo_cells(_promptfoo_view(document)),
            member(_promptfoo_view(document), "head", "prompts"),
        )
    found = [(f"{document.file}, result {number}", one) for number, one in enumerate(results)]
    yield from _promptfoo_rows(found, prompts or [])


def _promptfoo_view(document: Document) -> Record:
    """The table that the web viewer lets people download."""
    whole = document.whole or {}
    for one in (whole, whole.get("table"), member(whole, "results", "table")):
        if isinstance(one, Mapping) and isinstance(one.get("body"), list) and member(one, "head", "prompts"):
            return one
    return {}


def _promptfoo_cells(view: Record) -> list[Record]:
    """The cells of the viewer's table as results; in newer versions they are results with a text."""
    return [
        {
            "promptIdx": column, "testIdx": row.get("testIdx", number),
            "vars": dict(zip(view["head"].get("vars") or (), row.get("vars") or (), strict=False)),
            "response": {"output": _unmarked(cell.get("text"))}, **cell,
        }
        for number, row in enumerate(view["body"])
        for column, cell in enumerate(row.get("outputs") or ())
        if isinstance(cell, Mapping)
    ]  # fmt: skip


def _unmarked(text: Any) -> Any:
    """Without the mark and the reason that older versions put before the output."""
    old = _OLD_MARK.match(text) if isinstance(text, str) else None
    return text[old.end() :].rpartition("\n---\n")[2] if old else text


def is_promptfoo_lines(document: Document) -> bool:
    return document.first.keys() >= {"promptIdx", "testIdx"}


def read_promptfoo_lines(document: Document) -> Iterator[Found]:
    yield from _promptfoo_rows(list(document.numbered()), [])


def _promptfoo_rows(found: Sequence[tuple[str, Record]], prompts: Sequence[Any]) -> Iterator[Found]:
    """In the order of tests and prompts; a file has them as they ended. Prompts with equal names get numbers."""
    results = sorted(((where, one) for where, one in found if isinstance(one, Mapping)), key=lambda one: _order(one[1]))
    numbers: dict[tuple[str, ...], set[Any]] = {}
    for _, one in results:
        numbers.setdefault(tuple(_promptfoo_parts(one, prompts).values()), set()).add(one.get("promptIdx"))
    for where, one in results:
        parts = _promptfoo_parts(one, prompts)
        if len(numbers[tuple(parts.values())]) > 1:
            parts["prompt"] = f"{parts['prompt']} (prompt {one.get('promptIdx')})"
        yield _promptfoo_row(where, one, {name: part for name, part in parts.items() if part})


def _order(result: Record) -> tuple[int, int]:
    test, prompt = result.get("testIdx"), result.get("promptIdx")
    return test if isinstance(test, int) else 0, prompt if isinstance(prompt, int) else 0


def _promptfoo_parts(result: Record, prompts: Sequence[Any]) -> dict[str, str]:
    number = result.get("promptIdx")
    prompt = prompts[number] if isinstance(number, int) and number < len(prompts) else result.get("prompt")
    provider = result.get("provider") or member(prompt, "provider")
    label = member(prompt, "label") or member(prompt, "display") or member(prompt, "raw") or prompt
    return {"provider": word(member(provider, "label") or member(provider, "id") or provider), "prompt": word(label)}


def _promptfoo_row(where: str, result: Record, parts: Mapping[str, str]) -> Row:
    given, raw = result.get("vars") or member(result, "testCase", "vars") or {}, member(result, "prompt", "raw")
    values = {name: value for name, value in given.items() if name != "sessionId" and not name.startswith("_")}
    output, test = member(result, "response", "output"), word(result.get("testIdx"))
    output = result.get("output") if output is None else output
    failed = result.get("failureReason") == FAILED_CALL or (output is None and bool(result.get("error")))
    said_error = result.get("error") or member(result, "response", "error") or "the call failed"
    error = message_of(said_error) if failed else ""
    text = fields(values) if values else "" if raw in STRIPPED else word(raw)
    case = digest(json.dumps(values, sort_keys=True)) if values else f"test {test}" if test else None
    if output in STRIPPED:
        output, error = None, "the output was stripped when the file was written"
    return Row(
        where, parts, case, (output,), (text,),
        score=result.get("score"), repeat=f"test {test}" if values and test else "", error=error, record=result,
    )  # fmt: skip


def is_promptfoo_table(document: Document) -> bool:
    names = () if document.table is None else document.table.names
    heads = [number for number, name in enumerate(names) if _HEADER.fullmatch(name)]
    return bool(heads) and (len(heads) > 1 or names[heads[0] + 1 : heads[0] + 3] == PROMPTFOO_TITLES[:2])


def read_promptfoo_table(document: Document) -> Iterator[Found]:
    table = document.table
    assert table is not None
    heads = {number: found for number, name in enumerate(table.names) if (found := _HEADER.fullmatch(name))}
    before = [number for number in range(min(heads)) if table.names[number] != "Description"]
    variables = {table.names[number]: table.column(number) for number in before}
    for number, head in heads.items():
        parts = {"provider": head[1], "prompt": head[2]}
        has_status = table.names[number + 1 : number + 2] == ("Status",)
        status = table.column(number + 1) if has_status else None
        for row, cell in enumerate(table.column(number)):
            values = {name: _unescaped(word(column[row])) for name, column in variables.items()}
            mark = word(status[row]) if status is not None else None
            yield from _promptfoo_cell(document.where(row), parts, values, word(cell), mark, document.records[row])


def _promptfoo_cell(
    where: str, parts: Record, values: Record, cell: str, status: str | None, record: Record
) -> Iterator[Found]:
    old = _OLD_MARK.match(cell) if status is None else None
    if old:
        status, cell = old[1], _OLD_REASON.sub("", cell[old.end() :])
        yield OutputProblem("old table", where, f"the cell holds a mark, {status}, beside the output")
    error = _unescaped(cell) or "the call failed" if status == "ERROR" else ""
    case = digest(json.dumps(values, sort_keys=True))
    yield Row(where, parts, case, (_unescaped(cell),), (fields(values) if values else "",), error=error, record=record)


def _unescaped(cell: str) -> str:
    """Without the apostrophe that keeps spreadsheets from taking a cell for a formula."""
    return cell[1:] if re.match(r"'[=+\-@\t\r]", cell) else cell


# --- Inspect ---


def is_inspect(document: Document) -> bool:
    evaluation = (document.whole or {}).get("eval")
    return isinstance(evaluation, Mapping) and "model" in evaluation and "task" in evaluation


def read_inspect(document: Document) -> Iterator[Found]:
    whole = document.whole or {}
    status, samples = whole.get("status"), whole.get("samples")
    if status != "success":
        yield OutputProblem("unfinished run", document.file, f"its status is {word(status) or 'not known'}")
    if not samples:
        yield OutputProblem("nothing", document.file, "the log has no samples")
    evaluation = whole["eval"]
    parts = {
        "model": word(evaluation["model"]),
        "task": word(evaluation["task"]),
        "solver": word(evaluation.get("solver")),
        "arguments": word(evaluation.get("task_args") or None),
    }
    for sample in samples or ():
        yield from _sample(document, {name: part for name, part in parts.items() if part}, sample, evaluation)


def _sample(document: Document, parts: Mapping[str, str], sample: Record, evaluation: Record) -> Iterator[Found]:
    case, epoch = word(sample.get("id")), word(sample.get("epoch", 1))
    where = f"{document.file}, {sample.get('sample_file') or f'sample {case}, epoch {epoch}'}"
    kept = sample.get("attachments") or {}
    choice = member(sample, "output", "choices", 0)
    output = _attached(message_text(member(choice, "message")) or member(sample, "output", "completion"), kept)
    error = message_of(sample.get("error") or member(sample, "output", "error"))
    question = _attached(sample.get("input"), kept)
    is_apart = bool(_APART.search(said(output).text))
    if (not error and "output" not in sample) or is_apart or _APART.search(asked(question)):
        yield OutputProblem("split sample", where, "its texts are in further files of the archive", case=case)
    scores = sample.get("scores") or ({"score": sample["score"]} if sample.get("score") else {})
    target = sample.get("target")
    yield Row(
        where, parts, case, (None if is_apart else output,), (asked(question),),
        reference="\n".join(map(word, target)) if isinstance(target, list) else word(target),
        score={name: member(score, "value") for name, score in scores.items()} or None, repeat=epoch, error=error,
        is_cut=member(choice, "stop_reason") in CUT, record={**sample, "eval": evaluation},
    )  # fmt: skip


def _attached(value: Any, kept: Mapping[str, Any]) -> Any:
    """The value with its texts that are kept apart."""
    if isinstance(value, str) and value.startswith("attachment://"):
        return kept.get(value.removeprefix("attachment://"), value)
    if isinstance(value, list):
        return [_attached(one, kept) for one in value]
    return {name: _attached(one, kept) for name, one in value.items()} if isinstance(value, dict) else value


# --- HELM ---


def is_helm(document: Document) -> bool:
    return (document.whole or {}).keys() >= {"adapter_spec", "request_states"}


def read_helm(document: Document) -> Iterator[Found]:
    whole = document.whole or {}
    model = word(member(whole, "adapter_spec", "model") or member(whole, "adapter_spec", "model_deployment"))
    task = _HELM_MODEL.sub("", document.folder)
    for number, state in enumerate(whole["request_states"]):
        where = f"{document.file}, request state {number}"
        if state.get("reference_index") is not None:
            yield OutputProblem("multiple choice", where, "each option was asked about in a request of its own")
            return
        yield from _helm_row(where, {"model": model}, task, state)


def _helm_row(where: str, parts: Mapping[str, str], task: str, state: Record) -> Iterator[Found]:
    instance, result = state.get("instance"), state.get("result")
    completion = member(result, "completions", 0)
    output, changed = said(member(completion, "text")).text.lstrip(" "), member(instance, "perturbation", "name")
    question = member(instance, "input", "text") or asked(member(instance, "input", "messages"))
    case = " ".join(filter(None, (word(member(instance, "id")), word(changed))))
    letters = state.get("output_mapping") or {}
    if output.strip() in letters:
        yield OutputProblem("letter", where, f"{output.strip()} is {letters[output.strip()]!r}", case=case)
        output = letters[output.strip()]
    if thought := word(member(completion, "thinking", "text")):
        output = THOUGHT.format(thought) + output
    if _ENCRYPTED.search(word(question)):
        yield OutputProblem("encrypted", where, f"its text is {shown(question, 40)}", case=case)
    failed = isinstance(result, Mapping) and result.get("success") is False
    references = member(instance, "references") or []
    right = [word(member(one, "output", "text")) for one in references if "correct" in (member(one, "tags") or ())]
    yield Row(
        where, parts, case, (output if completion else None,), (word(question),), task,
        reference="\n".join(right), repeat=word(state.get("train_trial_index")),
        error=(word(member(result, "error")) or "the request failed") if failed else "",
        is_cut=member(completion, "finish_reason", "reason") in CUT, record=state,
    )  # fmt: skip


# --- lm-eval ---


def is_lm_eval(document: Document) -> bool:
    return "doc_id" in document.first and bool(document.first.keys() & {"resps", "filtered_resps"})


def read_lm_eval(document: Document, chosen: str | None) -> Iterator[Found]:
    found = _LM_EVAL_FILE.match(document.stem)
    task, model = found[1] if found else "", _lm_eval_model(document)
    names = list(dict.fromkeys(word(record.get("filter")) for record in document.records))
    if chosen is not None and chosen not in names:
        yield OutputProblem(
            "nothing", document.file, f"there is no filter {chosen!r}; its filters are {', '.join(names)}"
        )
        return
    if len(names) > 1 and chosen is None:
        yield OutputProblem(
            "filters", document.file, f"each response stands there {len(names)} times, for {', '.join(names)}"
        )
    taken = chosen or names[0]
    documents: dict[str, set[str]] = {}
    for record in document.records:
        documents.setdefault(word(record.get("doc_hash")), set()).add(word(record["doc_id"]))
    for where, record in document.numbered():
        if _is_likelihood(record):
            yield OutputProblem("multiple choice", where, "its responses are likelihoods")
            return
        if word(record.get("filter")) == taken:
            hashed = word(record.get("doc_hash"))
            is_own = hashed and len(documents[hashed]) == 1  # else equal documents, which only their numbers tell apart
            case = hashed if is_own else word(record["doc_id"])
            yield from _responses(where, model, task, case, record, chosen is not None)


def _responses(where: str, model: str, task: str, case: str, record: Record, filtered: bool) -> Iterator[Found]:
    """One row for each repeat."""
    inner = member(record, "resps", 0)
    filtered = filtered or "resps" not in record
    responses = record.get("filtered_resps") if filtered else inner if isinstance(inner, list) else [inner]
    scores = {name: record.get(name) for name in record.get("metrics") or () if isinstance(name, str)}
    for number, response in enumerate(responses if isinstance(responses, list) else [responses]):
        yield Row(
            where, {"model": model}, case, (response,), (asked(_argument(record, 0)),), task,
            reference=word(record.get("target")), score=scores or None, repeat=str(number + 1), record=record,
        )  # fmt: skip


def _lm_eval_model(document: Document) -> str:
    """The results beside the file name the model. If they do not, the folder is named after it, or the file itself by
    versions that wrote no folder."""
    for results in sorted(document.path.resolve().parent.glob("results*.json"), reverse=True):
        with suppress(OSError, ValueError, RecursionError):
            model = member(json.loads(results.read_text(encoding="utf-8")), "model_name")
            if isinstance(model, str) and model:
                return model
    return (document.folder if _LM_EVAL_FILE.match(document.stem) else document.stem).replace("__", "/")


def _argument(record: Record, number: int) -> Any:
    """An argument of the first request, which older versions write as a list."""
    arguments = record.get("arguments")
    first = member(arguments, "gen_args_0") if isinstance(arguments, Mapping) else member(arguments, 0)
    value = member(first, f"arg_{number}") if isinstance(first, Mapping) else member(first, number)
    return value[0] if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str) else value


def _is_likelihood(record: Record) -> bool:
    return isinstance(_argument(record, 1), str)


def newest_lm_eval(documents: Sequence[Document]) -> tuple[list[Document], list[OutputProblem]]:
    """Of several files of one model and task the newest, because each is a run of its own."""
    newest: dict[tuple[str, str], tuple[str, Document]] = {}
    for document in documents:
        if found := _LM_EVAL_FILE.match(document.stem):
            key = str(document.path.resolve().parent), found[1]
            newest[key] = max(newest.get(key, ("", document)), (found[2], document), key=lambda one: one[0])
    latest = {id(document) for _, document in newest.values()}
    kept = [one for one in documents if id(one) in latest or not _LM_EVAL_FILE.match(one.stem)]
    older = [one for one in documents if one not in kept]
    return kept, [
        OutputProblem("older run", one.file, "a newer run of the same model and task is there") for one in older
    ]


# --- OpenAI evals ---


def is_openai_evals(document: Document) -> bool:
    return isinstance(member(document.first, "spec"), Mapping) and "completion_fns" in document.first["spec"]


def read_openai_evals(document: Document) -> Iterator[Found]:
    model = ", ".join(map(word, document.first["spec"]["completion_fns"] or ["not named"]))
    right = {
        word(one.get("sample_id")): member(one, "data", "correct")
        for one in document.records
        if one.get("type") == "match"
    }
    seen: dict[str, str] = {}
    for where, record in document.numbered():
        case = word(record.get("sample_id"))
        if record.get("type") != "sampling":
            continue
        if case in seen:
            yield OutputProblem("further calls", where, f"sample {case} was sampled before, at {seen[case]}", case=case)
            continue
        seen[case] = where
        sampled = member(record, "data", "sampled")
        question = asked(member(record, "data", "prompt"))
        one = Row(where, {"model": model}, case, (sampled,), (question,), score=right.get(case), record=record)
        for number, text in enumerate(sampled if isinstance(sampled, list) else [sampled]):
            yield replace(one, answers=(text,), repeat=str(number + 1))
