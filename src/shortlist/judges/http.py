"""Calls to a chat endpoint with httpx. The key is looked up when a request is signed, and is kept in no variable that a
traceback could show."""

import json
import math
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx

from shortlist.errors import BadJudge, JudgeFailed, JudgeUnavailable, JudgeUnclear
from shortlist.judges.judge import Ask, Asked, Reply, Tokens
from shortlist.judges.prompt import read_verdict, write_prompt

if TYPE_CHECKING:
    from shortlist.judges.endpoint import EndpointJudge

MOST_BYTES = 4 << 20
CONNECT_LIMIT = 20.0  # seconds
TRY_AGAIN = frozenset({408, 409, 425, 429})  # and everything from 500
WAYS_OUT = {
    401: "check the key",
    403: "check the key and what it may do",
    404: "check the base URL and the model's name",
}


class Answered(NamedTuple):
    """An HTTP response, read to its end."""

    status: int
    retry_after: str | None
    body: bytes


@asynccontextmanager
async def connect(judge: "EndpointJudge") -> AsyncIterator[Ask]:
    """A function that asks the model, on connections that are shared."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
    timeout = httpx.Timeout(None, connect=CONNECT_LIMIT)  # the whole call is timed from outside
    async with httpx.AsyncClient(limits=limits, timeout=timeout) as client:
        yield partial(_ask, client, judge)


async def _ask(client: httpx.AsyncClient, judge: "EndpointJudge", asked: Asked) -> Reply:
    message = {"role": "user", "content": write_prompt(judge.prompt, asked)}
    body: dict[str, Any] = {"model": judge.model, "messages": [message], **judge.options}
    if judge.temperature is not None:
        body["temperature"] = judge.temperature
    answered = await _post(client, judge, json.dumps(body).encode())
    if not 200 <= answered.status < 300:
        raise _refused(judge, answered)
    return _read(judge, answered.body, asked)


async def _post(client: httpx.AsyncClient, judge: "EndpointJudge", body: bytes) -> Answered:
    if not _can_be_sent(judge.key_variable):
        raise BadJudge(f"the key in {judge.key_variable} has characters that cannot be sent; check the variable")
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    sign = partial(_sign, judge.key_variable)
    try:
        async with client.stream("POST", judge.url, content=body, headers=headers, auth=sign) as response:
            found = bytearray()
            async for chunk in response.aiter_bytes():
                found += chunk
                if len(found) > MOST_BYTES:
                    raise JudgeUnclear(f"the endpoint sent more than {MOST_BYTES:,} bytes")
            return Answered(response.status_code, response.headers.get("retry-after"), bytes(found))
    except httpx.TimeoutException:
        raise JudgeUnavailable(f"no connection to {judge.base_url} within {CONNECT_LIMIT:g} seconds") from None
    except httpx.DecodingError:
        raise JudgeUnclear("the endpoint sent a body that cannot be unpacked") from None
    except httpx.UnsupportedProtocol:
        raise BadJudge(f"{judge.base_url} cannot be called; give an http or https URL") from None
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as reason:
        what = _clean(judge, str(reason)) or type(reason).__name__
        raise JudgeUnavailable(f"no answer from {judge.base_url}: {what}") from None


def _sign(variable: str | None, request: httpx.Request) -> httpx.Request:
    if variable is not None and os.environ.get(variable, "").strip():
        request.headers["Authorization"] = f"Bearer {os.environ[variable].strip()}"
    return request


def _can_be_sent(variable: str | None) -> bool:
    key = "" if variable is None else os.environ.get(variable, "").strip()
    return key.isascii() and key.isprintable()


def _clean(judge: "EndpointJudge", text: str, last: bool = False) -> str:
    """The first or last words of a text for a message, without the key if the server repeats it."""
    key = "" if judge.key_variable is None else os.environ.get(judge.key_variable, "").strip()
    line = " ".join((text.replace(key, "***") if key else text).split())
    return line[-200:] if last else line[:200]


def _refused(judge: "EndpointJudge", answered: Answered) -> Exception:
    status = answered.status
    said = _clean(judge, _complaint(answered.body))
    text = f"{judge.base_url} answered {status}" + (f": {said}" if said else "")
    if status in TRY_AGAIN or status >= 500:
        return JudgeUnavailable(text, read_retry_after(answered.retry_after))
    if status in (401, 403) and judge.key_variable is not None and not os.environ.get(judge.key_variable, "").strip():
        return JudgeFailed(f"{text}; set {judge.key_variable} to your key")
    return JudgeFailed(f"{text}; {WAYS_OUT.get(status, 'check the base URL, the model and the options')}")


def read_retry_after(value: str | None) -> float | None:
    """The seconds a Retry-After header asks for: a number, or a date. None if it makes no sense."""
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


def _complaint(body: bytes) -> str:
    """What an error response says, be it JSON or not."""
    said = _json(body)
    error = said.get("error", said.get("message")) if isinstance(said, dict) else None
    if isinstance(error, dict):
        error = error.get("message")
    return error if isinstance(error, str) else body.decode("utf-8", "replace")


def _read(judge: "EndpointJudge", body: bytes, asked: Asked) -> Reply:
    said = _json(body)
    if not isinstance(said, dict):
        raise JudgeUnclear(f"the endpoint sent no JSON object but {_clean(judge, _complaint(body))!r}")
    tokens = _tokens(said.get("usage"))
    choice = _first(said.get("choices"))
    message = choice.get("message")
    text = _text(message.get("content")) if isinstance(message, dict) else ""
    verdict = read_verdict(text)
    if verdict is None:
        raise JudgeUnclear(f"the model gave no verdict: {_why(judge, choice, text or _complaint(body))}", tokens)
    return Reply({"first": asked.first, "second": asked.second}.get(verdict, verdict), tokens)


def _why(judge: "EndpointJudge", choice: dict[str, Any], text: str) -> str:
    message = choice.get("message")
    refusal = message.get("refusal") if isinstance(message, dict) else None
    if isinstance(refusal, str) and refusal:
        return f"it refused, {_clean(judge, refusal)!r}"
    if choice.get("finish_reason") in ("length", "content_filter"):
        return f"its answer was cut off ({choice['finish_reason']})"
    return f"it ended with {_clean(judge, text, last=True)!r}"


def _json(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _first(choices: Any) -> dict[str, Any]:
    found = choices[0] if isinstance(choices, list) and choices else None
    return found if isinstance(found, dict) else {}


def _text(content: Any) -> str:
    """A string, or a list of parts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _tokens(usage: Any) -> Tokens:
    counts = [usage.get(name) if isinstance(usage, dict) else None for name in ("prompt_tokens", "completion_tokens")]
    return Tokens(*(count if type(count) is int and 0 <= count < 1 << 53 else 0 for count in counts))
