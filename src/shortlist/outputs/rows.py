"""What readers of outputs give: rows, cases, and what is wrong, each with its place. And what an item answered and was
asked, as text: parts of messages, conversations, thinking."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

REFUSED, NO_OUTPUT, NOTE = "refused", "no output", "note"
THOUGHT = "<think>{}</think>\n"  # how thinking that a file keeps apart is written into the text
_ENDED = re.compile(r"<(think|thinking)>.*?</\1>|\[THINK\].*?\[/THINK\]|◁think▷.*?◁/think▷", re.DOTALL | re.IGNORECASE)
_END = re.compile(r"</(?:think|thinking)>|\[/THINK\]|◁/think▷", re.IGNORECASE)
_BEGIN = re.compile(r"<(?:think|thinking)>|\[THINK\]|◁think▷", re.IGNORECASE)
THINKING_PARTS = ("reasoning", "thinking", "redacted_thinking")


class Kind(NamedTuple):
    """A kind of problem: what it means for a run, and what to do."""

    weight: str
    remedy: str


KINDS = {
    "unreadable": Kind(REFUSED, "Repair the file, or leave it out."),
    "not installed": Kind(REFUSED, "Install what it names, or let the tool write JSON."),
    "bad line": Kind(REFUSED, "Repair the line, or remove it."),
    "unknown format": Kind(
        REFUSED,
        "Name the fields: --map item=FIELD,case=FIELD,text=FIELD,output=FIELD. @file is the name of the file, "
        "@folder that of its folder, a.b is the member b of a.",
    ),
    "wide table": Kind(REFUSED, "If every other column is an item, give --wide."),
    "votes": Kind(REFUSED, "These are votes, not outputs: shortlist votes FILE and shortlist certify FILE read them."),
    "ratings": Kind(REFUSED, "Ratings of single answers are neither outputs nor votes. Give the answers themselves."),
    "doubled column": Kind(REFUSED, "Rename the columns, or leave out all but one of them."),
    "multiple choice": Kind(
        REFUSED, "The options were scored by likelihood, so there is no text to judge. Leave the file out."
    ),
    "encrypted": Kind(REFUSED, "HELM hides these questions in its public files. Leave the file out."),
    "duplicate": Kind(
        REFUSED,
        "Remove one of them, or take the first with --accept duplicate. If the files are different items: --map "
        "item=@file.",
    ),
    "case differs": Kind(
        REFUSED,
        "If it is one case all the same, --accept case-differs shows the text that was read first. To take the text "
        "from another field: --map text=FIELD.",
    ),
    "no case": Kind(
        REFUSED, "Name the field with the id of the case or with its text: --map case=FIELD or text=FIELD."
    ),
    "no item": Kind(REFUSED, "Name the field with the item: --map item=FIELD, or @file for the name of the file."),
    "no shared case": Kind(
        REFUSED, "The ids do not match. Name another field: --map case=FIELD, or match by text with --map case= ."
    ),
    "one item": Kind(REFUSED, "Give the outputs of at least two items; several paths can be given."),
    "nothing": Kind(REFUSED, "Give files with outputs."),
    "missing": Kind(NO_OUTPUT, "--missing drop leaves such cases out; --missing lose lets a missing output lose."),
    "error": Kind(NO_OUTPUT, "Ask the item again, or as for a missing output: --missing drop or --missing lose."),
    "empty": Kind(NO_OUTPUT, "As for a missing output: --missing drop or --missing lose."),
    "unended thinking": Kind(NO_OUTPUT, "There is no answer: --missing drop or lose; or show it with --thinking keep."),
    "no such turn": Kind(NO_OUTPUT, "Choose another --turn, or --missing drop or --missing lose."),
    "stripped": Kind(NO_OUTPUT, "Write the file again without the setting that strips outputs."),
    "split sample": Kind(NO_OUTPUT, "Write the log as .json: inspect log convert --to json."),
    "thinking": Kind(NOTE, "Thinking is not shown to the judge; --thinking keep shows it."),
    "truncated": Kind(NOTE, "The output was cut off at its limit and is judged as it is."),
    "not text": Kind(NOTE, "It is shown as JSON. To show one member: --map output=FIELD.MEMBER."),
    "repeats": Kind(NOTE, "--repeat N takes another one, --repeat all makes each repeat a case of its own."),
    "turns": Kind(NOTE, "--turn N judges another turn, --turn all the whole conversation."),
    "filters": Kind(NOTE, "The whole response is judged; --filter NAME judges what a filter made of it."),
    "same output": Kind(NOTE, "Equal outputs are a tie without a call."),
    "same item": Kind(
        NOTE, "No judge can tell them apart. Leave one out with --only, or set --tolerance or --max-votes."
    ),
    "placeholder": Kind(
        NOTE, "Programs write this where there is no output. If there is none, leave the cell empty or remove the row."
    ),
    "broken character": Kind(NOTE, "Half of a character is shown as \ufffd. A text was cut off in the middle of it."),
    "one text": Kind(NOTE, "An item that answers every case alike may be broken, or made to please a judge."),
    "verdict mark": Kind(NOTE, "An output that contains a verdict may sway the judge. Read it first."),
    "whitespace": Kind(NOTE, "Texts that differ in blanks only are taken for one case."),
    "no case text": Kind(NOTE, "The judge is shown the id. To show the text, also give the file with the requests."),
    "repeated row": Kind(NOTE, "The same output twice counts once."),
    "unfinished run": Kind(NOTE, "The run did not end as it should; outputs may be missing."),
    "further calls": Kind(NOTE, "The first call of a sample is its output; later ones may be those of a grader."),
    "older run": Kind(NOTE, "Only the newest file of a model and task is read."),
    "letter": Kind(NOTE, "The letter is shown as the option that it stands for."),
    "old table": Kind(NOTE, "Marks and reasons were cut out of the cells. JSON keeps them apart: write .json."),
    "unread column": Kind(NOTE, "To read another one: --map output=COLUMN."),
    "dropped": Kind(NOTE, "What is proved is about the cases that are left."),
}


class OutputProblem(NamedTuple):
    """Something about the outputs that matters to a run. `name` is a key of KINDS."""

    name: str
    where: str
    text: str
    item: str | None = None
    case: str | None = None

    @property
    def weight(self) -> str:
        return KINDS[self.name].weight

    @property
    def remedy(self) -> str:
        return KINDS[self.name].remedy


@dataclass(frozen=True)
class Row:
    """One output as a file has it.

    parts: what the item can be named by, such as model and task; the parts that vary make its name.
    case: its id; None if it has only a text.
    answers: the content of each turn; most have one.
    asked: what each turn asked; empty if the file does not say.
    """

    where: str
    parts: Mapping[str, str]
    case: str | None
    answers: tuple[Any, ...]
    asked: tuple[str, ...] = ()
    task: str = ""
    reference: str = ""
    score: Any = None
    repeat: str = ""
    error: str = ""
    is_cut: bool = False
    record: Mapping[str, Any] = field(default_factory=dict)


def mended(value: Any) -> Any:
    """A value of JSON without halves of characters, which cannot be stored or shown."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value
    if isinstance(value, list | tuple):
        return type(value)(map(mended, value))
    return {mended(name): mended(one) for name, one in value.items()} if isinstance(value, Mapping) else value


class CaseText(NamedTuple):
    """A case that a file of questions or requests describes: what each turn asked, and the right answers."""

    case: str
    asked: tuple[str, ...]
    references: tuple[str, ...] = ()


Found = Row | CaseText | OutputProblem


class Said(NamedTuple):
    """A text; `is_text` is False if it was something else, which is written as JSON."""

    text: str
    is_text: bool = True


def said(content: Any) -> Said:
    """The text of a message's content: a string, or a list of parts."""
    if content is None:
        return Said("")
    if isinstance(content, str):
        return Said(content)
    if isinstance(content, float) and math.isnan(content):  # how pandas writes an empty cell
        return Said("")
    is_parts = isinstance(content, Sequence) and any(isinstance(part, Mapping) for part in content)
    if is_parts and all(map(_is_part, content)) and not all(map(_is_tool_call, content)):
        return Said("".join(map(_part, content)))
    return Said(json.dumps(content, ensure_ascii=False, default=str), isinstance(content, int | float))


def _is_part(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, Mapping) and isinstance(part.get("type"), str))


def _is_tool_call(part: Any) -> bool:
    return isinstance(part, Mapping) and part["type"] in ("function", "tool_use", "function_call")


def _part(part: Any) -> str:
    """A part of a message. Pictures and calls of tools have no text."""
    if isinstance(part, str):
        return part
    kind = part["type"]
    if kind in THINKING_PARTS:
        thought = part.get(kind) or part.get("summary")
        return THOUGHT.format(thought) if isinstance(thought, str) else ""
    found = part.get("text", part.get("refusal"))
    return found if isinstance(found, str) else ""


def message_text(message: Any) -> Any:
    """The content of a message, with the thinking that some servers put beside it."""
    if not isinstance(message, Mapping):
        return message
    thought = message.get("reasoning_content") or message.get("reasoning")
    content = message.get("content")
    if content in (None, "") and isinstance(message.get("refusal"), str):
        content = message["refusal"]
    return THOUGHT.format(thought) + said(content).text if isinstance(thought, str) and thought else content


def is_chat(value: Any) -> bool:
    """Is it a list of messages?"""
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) and "role" in one for one in value)


def asked(value: Any) -> str:
    """What was asked: a text, a conversation, or anything else as JSON. Instructions to the system are left out,
    because they belong to the item."""
    if isinstance(value, str) and value.lstrip().startswith('[{"role"'):
        with suppress(ValueError):
            value = json.loads(value)
    if is_chat(value):
        return conversation([one for one in value if one["role"] not in ("system", "developer")])
    if isinstance(value, Mapping):
        return fields(value)
    return said(value).text


def conversation(messages: Sequence[Mapping[str, Any]]) -> str:
    """One message as it is, several with who said them."""
    texts = [(str(one["role"]), said(one.get("content")).text) for one in messages]
    return texts[0][1] if len(texts) == 1 else "\n\n".join(f"{role}: {text}" for role, text in texts)


def fields(values: Mapping[str, Any]) -> str:
    """One value as it is, several with their names."""
    texts = {name: said(value).text for name, value in values.items()}
    return (
        next(iter(texts.values())) if len(texts) == 1 else "\n".join(f"{name}: {text}" for name, text in texts.items())
    )


def without_thinking(text: str) -> str | None:
    """The answer that follows or surrounds the thinking; None if the thinking never ends."""
    answer = _ENDED.sub("", text)
    answer = _END.split(answer)[-1]  # some servers cut off the mark at the beginning
    return None if _BEGIN.search(answer) else answer.strip() if answer != text else text


def collapsed(text: str) -> str:
    """The text with single blanks, for comparing."""
    return " ".join(text.split())
