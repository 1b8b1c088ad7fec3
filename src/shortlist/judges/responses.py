"""What a chat endpoint sends back: an answer with its reasoning and tokens, or an error. Any of it may be missing."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from shortlist.judges.base import NO_TOKENS, Tokens

REASONING = ("reasoning_content", "reasoning")  # members of a message, as different servers call it


class Response(NamedTuple):
    """An HTTP response with its whole body."""

    status: int
    retry_after: str | None
    body: bytes


class Completion(NamedTuple):
    """A model's answer. `reasoning` is what the server keeps apart from the text; it is never a verdict."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    finish: str = ""
    model: str = ""  # as the server names it
    tokens: Tokens = NO_TOKENS
    choice: Mapping[str, Any] = {}


def read_completion(body: bytes) -> Completion | None:
    """The answer in a response; None if it is not a JSON object."""
    said = _json(body)
    if not isinstance(said, dict):
        return None
    choice = _first(said.get("choices"))
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    found = [_string(message.get(name)) for name in REASONING]
    return Completion(
        _text(message.get("content")), next(filter(None, found), ""), _string(message.get("refusal")),
        _string(choice.get("finish_reason")), _string(said.get("model")), _tokens(said.get("usage")), choice,
    )  # fmt: skip


def read_retry_after(value: str | None) -> float | None:
    """The seconds that a Retry-After header asks for, given as a number or a date. None if it cannot be read."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
            seconds = (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
        except (ValueError, OverflowError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def complaint(body: bytes) -> str:
    """The message of an error response, JSON or not."""
    said = _json(body)
    error = said.get("error", said.get("message")) if isinstance(said, dict) else None
    if isinstance(error, dict):
        error = error.get("message")
    return error if isinstance(error, str) else body.decode("utf-8", "replace")


def _json(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _first(choices: Any) -> dict[str, Any]:
    found = choices[0] if isinstance(choices, list) and choices else None
    return found if isinstance(found, dict) else {}


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _text(content: Any) -> str:
    """A string, or a list of parts, of which those with reasoning are left out."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type", "text") == "text"]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _tokens(usage: Any) -> Tokens:
    said = usage if isinstance(usage, dict) else {}
    details = said.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    counts = said.get("prompt_tokens"), said.get("completion_tokens"), cached
    return Tokens(*(count if type(count) is int and 0 <= count < 1 << 53 else 0 for count in counts))
