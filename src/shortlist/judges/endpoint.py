"""A language model behind an OpenAI-compatible HTTP endpoint as a judge. Needs the extra `llm`."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from shortlist.checks import real
from shortlist.errors import BadJudge, NotInstalled
from shortlist.judges.judge import Ask
from shortlist.judges.prompt import check_template
from shortlist.study.dice import digest

PATH = "/chat/completions"


@dataclass(frozen=True)
class EndpointJudge:
    """`model` at `base_url`, such as http://localhost:8000/v1.

    prompt: shows {first}, {second} and, with cases, {case}; the answer must contain [[A]], [[B]] or [[C]] (tie).
    temperature: left out, the server's own.
    key_variable: the environment variable that holds the key, read for every call and kept nowhere; None sends none.
    options: more members of the request, such as {"max_tokens": 500}.
    name: made from the model, the prompt and the options if left out, so that other settings never reuse its answers.
    """

    base_url: str
    model: str
    prompt: str | None = None
    temperature: float | None = None
    key_variable: str | None = "OPENAI_API_KEY"
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    at_once: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "base_url", _checked_url(self.base_url))
        if self.prompt is not None:
            check_template(self.prompt)
        if self.temperature is not None:
            real("temperature", self.temperature)
        try:
            settings = json.dumps([self.prompt, self.temperature, dict(self.options)], sort_keys=True)
        except (TypeError, ValueError) as reason:
            raise BadJudge(f"options cannot be written as JSON: {reason}") from None
        if not self.name:
            object.__setattr__(self, "name", f"{self.model}-{digest(self.base_url, self.model, settings)}")

    @property
    def url(self) -> str:
        return self.base_url + PATH

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ask]:
        try:
            from shortlist.judges.http import connect
        except ImportError:
            raise NotInstalled("a language model as a judge", "httpx", "llm") from None
        async with connect(self) as ask:
            yield ask


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 0) >= 0
    except (ValueError, AttributeError, TypeError):
        usable = False
    if not usable:
        raise BadJudge("the base URL is none; give one such as http://localhost:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadJudge("the base URL may hold no password and no ?query; put the key into an environment variable")
    return url.rstrip("/").removesuffix(PATH)
