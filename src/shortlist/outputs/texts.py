"""What an item answered and what it was asked, as text: parts of messages, conversations, thinking."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

THOUGHT = "<think>{}</think>\n"  # how thinking that a file keeps apart is written into the text
_ENDED = re.compile(r"<(think|thinking)>.*?</\1>|\[THINK\].*?\[/THINK\]|◁think▷.*?◁/think▷", re.DOTALL | re.IGNORECASE)
_END = re.compile(r"</(?:think|thinking)>|\[/THINK\]|◁/think▷", re.IGNORECASE)
_BEGIN = re.compile(r"<(?:think|thinking)>|\[THINK\]|◁think▷", re.IGNORECASE)
VERDICT_MARK = re.compile(r"\[\[\s*(?:[ABC]|[AB]\s*[<>=]{1,2}\s*[AB])\s*\]\]|\[RESULT\]\s*[AB]\b", re.IGNORECASE)
THINKING_PARTS = ("reasoning", "thinking", "redacted_thinking")


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
    if isinstance(content, Sequence) and content and all(map(_is_part, content)):
        return Said("".join(map(_part, content)))
    return Said(json.dumps(content, ensure_ascii=False, default=str), isinstance(content, int | float))


def _is_part(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, Mapping) and isinstance(part.get("type"), str))


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
