"""A language model behind an OpenAI-compatible HTTP endpoint as a judge. Needs the extra `llm`.

Keys are read from the environment when a request is signed. They are not kept in a variable that a traceback could
show.
"""

import hashlib
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from shortlist.core.draws import digest
from shortlist.core.outcomes import SHARES, winner_of
from shortlist.core.problem import real, whole
from shortlist.errors import BadJudge, JudgeFailed, JudgeUnavailable, JudgeUnclear, NotInstalled
from shortlist.judges.base import Ask, Call, Case, Reply, Said
from shortlist.judges.meter import Pricing
from shortlist.judges.prompts import (
    CASE_PROMPT,
    KINDS,
    PLAIN_PROMPT,
    SCHEMA,
    Completion,
    PromptStyle,
    Response,
    VerdictKind,
    check_fit,
    check_pattern,
    check_style,
    check_template,
    complaint,
    default_prompt,
    read_completion,
    read_grades,
    read_json,
    read_letters,
    read_logprob,
    read_pattern,
    read_retry_after,
    shown_fields,
    without_reasoning,
    write_prompt,
)

if TYPE_CHECKING:
    import httpx

PATH = "/chat/completions"
MOST_BYTES = 4 << 20
CONNECT_LIMIT = 20.0  # seconds
TRY_AGAIN = frozenset({408, 409, 425, 429})  # and everything from 500
CUT_OFF = ("length", "content_filter")  # a verdict in such an answer may be one that the model only considered
OURS = ("messages", "model", "stream", "n")  # what a request is made of, so options cannot replace it
SECRET = ("authorization", "api-key", "x-api-key", "cookie", "proxy-authorization")  # headers that hold a key
TOP_TOKENS = 5
LIMITS = ("max_tokens", "max_completion_tokens")  # the older spelling, which most servers know, and the newer one
FORMS: tuple[dict[str, Any] | None, ...] = (SCHEMA, {"type": "json_object"}, None)  # not every server knows the first
ABOUT_REQUEST = (400, 413, 422)
REMEDIES = {
    401: "check the key",
    403: "check the key and its permissions",
    404: "check the base URL and the model's name",
}
ReadVerdict = Callable[[str], Any]


@dataclass(frozen=True)
class EndpointJudge:
    """`model` at `base_url`, such as http://localhost:8000/v1.

    prompt: a template with {first}, {second} and, with cases, {case}. It may also show {reference}, the case's
        reference answer, and {criteria}.
    temperature: sent with each request; by default the server chooses.
    key_variable: the environment variable with the API key, read for every call; None sends no key.
    options: more members of the request, such as {"seed": 1}. They cannot replace the messages.
    name: by default made from the model, the prompt and all else that decides answers.
    system: the system prompt. It may show {criteria}.
    prompt_style: "arena-hard", "mt-bench", "alpaca-eval" or "prometheus": the prompt uses the field names of this tool,
        and the verdict is read as it reads it.
    criteria: what to judge by.
    verdict: how the model gives its verdict. "letters": [[A]], [[B]] or [[C]] for a tie. "grades": [[A>>B]] counts 1,
        [[A>B]] 0.75, [[A=B]] 0.5, [[B>A]] 0.25, [[B>>A]] 0. "json": a JSON object with a `winner`. "logprob": one
        token, and the vote is the first letter's part of the probability of both. Or a function of the model's text
        that returns "first", "second", "tie", a number, or None if there is no verdict.
    pattern: a regular expression that finds the verdict. Its group is A, B, C or tie; or it has groups named first,
        second and tie.
    max_tokens: how many tokens the model may write, its reasoning included.
    headers, query: more headers, and what is added to the URL. A value such as "$NAME" is read from the environment
        when a request is sent, and not stored.
    key_header: the header that carries the key. Other headers than Authorization carry it as it is.
    rpm, tpm: at most so many requests and tokens a minute.
    price: what tokens cost, such as Price(input=0.15, output=0.60) for a million.
    """

    base_url: str
    model: str
    prompt: str | None = None
    temperature: float | None = None
    key_variable: str | None = "OPENAI_API_KEY"
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    max_parallel: int | None = None
    system: str | None = None
    prompt_style: str | None = None
    criteria: str | None = None
    verdict: VerdictKind | ReadVerdict | None = None
    pattern: str | None = None
    max_tokens: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    key_header: str = "Authorization"
    rpm: float | None = None
    tpm: float | None = None
    price: Pricing | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "base_url", _checked_url(self.base_url))
        _check_verdict(self)
        if self.prompt is not None:
            check_template(self.prompt, self.style, self.criteria)
        if self.temperature is not None:
            real("temperature", self.temperature)
        _check_request(self)
        try:
            name = self.default_name
        except (TypeError, ValueError) as reason:
            raise BadJudge(f"options cannot be written as JSON: {reason}") from None
        if not self.name:
            object.__setattr__(self, "name", name)

    @cached_property
    def style(self) -> PromptStyle:
        return check_style(self.prompt_style, self.prompt is not None)

    @property
    def kind(self) -> VerdictKind | ReadVerdict:
        """How verdicts are given: as chosen, or as in the prompt's style."""
        return self.style.verdict if self.verdict is None else self.verdict

    @property
    def default_name(self) -> str:
        settings = [self.prompt, self.temperature, dict(self.options)]
        words = json.dumps([*settings, more] if (more := self._more_settings) else settings, sort_keys=True)
        return f"{self.model}-{digest(self.base_url, self.model, words)}"

    @property
    def settings(self) -> dict[str, Any]:
        """All that decides its answers: other settings are another judge."""
        return {
            "kind": "endpoint",
            "base_url": self.base_url,
            "model": self.model,
            "prompt": [PLAIN_PROMPT, CASE_PROMPT] if self.prompt is None else self.prompt,
            "temperature": self.temperature,
            "options": dict(self.options),
            **self._more_settings,
        }

    @property
    def _more_settings(self) -> dict[str, Any]:
        """Settings that are mentioned only if they are made."""
        kind = self.kind if isinstance(self.kind, str) else f"function {getattr(self.kind, '__qualname__', self.kind)}"
        chosen = {
            "system": self.system, "prompt_style": self.prompt_style, "criteria": self.criteria,
            "verdict": None if kind == "letters" else kind, "pattern": self.pattern, "max_tokens": self.max_tokens,
            "headers": dict(self.headers) or None, "query": dict(self.query) or None,
        }  # fmt: skip
        return {name: value for name, value in chosen.items() if value is not None}

    @property
    def url(self) -> str:
        return self.base_url + PATH

    @property
    def shows_references(self) -> bool:
        """Whether the prompt shows the case's reference answer, which then decides answers too."""
        return self.prompt is not None and "reference" in shown_fields(self.prompt, self.style)

    def check_cases(self, cases: Sequence[Case] | None) -> None:
        """Raise BadJudge unless the prompt fits these cases."""
        check_fit(self.prompt, self.style, cases)

    def request(self, call: Call) -> dict[str, Any]:
        """The body of the request for a call, without the limit of tokens."""
        prompt = self.prompt
        if prompt is None:
            ending = self.kind if isinstance(self.kind, str) and self.pattern is None else "letters"
            prompt = default_prompt(call.case is not None, ending, self.criteria is not None)
        else:
            check_fit(prompt, self.style, None if call.case is None else [call.case])
        messages = [{"role": "user", "content": write_prompt(prompt, call, self.style, self.criteria)}]
        if self.system is not None:
            system = self.system.replace("{criteria}", self.criteria or "{criteria}")
            messages.insert(0, {"role": "system", "content": system})
        body: dict[str, Any] = {"model": self.model, "messages": messages, **self.options}
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if self.kind == "json":
            body["response_format"] = SCHEMA
        elif self.kind == "logprob":
            body |= {"logprobs": True, "top_logprobs": TOP_TOKENS}
        return body

    @property
    def limit(self) -> int | None:
        """How many tokens the model may write."""
        return 1 if self.kind == "logprob" else self.max_tokens

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ask]:
        try:
            httpx = import_module("httpx")
        except ImportError:
            raise NotInstalled("a language model as a judge", "httpx", "llm") from None
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        timeout = httpx.Timeout(None, connect=CONNECT_LIMIT)  # the time limit of a call covers the rest
        async with httpx.AsyncClient(limits=limits, timeout=timeout) as client:
            yield _Session(httpx, client, self).ask


class Shape(NamedTuple):
    """How a request asks for two things that servers spell differently: places in LIMITS and FORMS."""

    limit: int
    form: int


def _check_verdict(judge: EndpointJudge) -> None:
    style, kind = judge.style, judge.kind
    if isinstance(kind, str) and kind not in KINDS:
        raise BadJudge(f"verdict is {kind!r}; choose one of {', '.join(KINDS)}, or give a function")
    if judge.pattern is not None:
        check_pattern(judge.pattern)
        if judge.verdict is not None:
            raise BadJudge("both a kind of verdict and a regular expression are given; leave one of them out")
    if kind == "logprob" and judge.max_tokens not in (None, 1):
        raise BadJudge("with verdict logprob the model writes one token; leave out max_tokens")
    if kind in ("grades", "json") and style.answers != ("A", "B"):
        raise BadJudge(f"a prompt in the style {judge.prompt_style} asks for one letter; choose letters or logprob")


def _check_request(judge: EndpointJudge) -> None:
    made = [*OURS, *(["temperature"] if judge.temperature is not None else [])]
    made += LIMITS if judge.limit is not None else ()
    made += {"json": ["response_format"], "logprob": ["logprobs", "top_logprobs"]}.get(str(judge.kind), [])
    doubled = [name for name in made if name in judge.options]
    if doubled:
        raise BadJudge(f"options cannot set {', '.join(doubled)}, which the request has already; leave it out")
    if judge.max_tokens is not None:
        whole("max_tokens", judge.max_tokens, 1)
    for name, rate in (("rpm", judge.rpm), ("tpm", judge.tpm)):
        if rate is not None and real(name, rate) <= 0:
            raise BadJudge(f"{name} is {rate}; give a number above 0, or leave it out")
    for name, value in judge.headers.items():
        if name.lower() in SECRET and not value.startswith("$"):
            raise BadJudge(f"header {name} holds a key; put it into an environment variable and give $VARIABLE")
        if not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name):
            raise BadJudge(f"{name!r} cannot be the name of a header")


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 0) >= 0
    except (ValueError, AttributeError, TypeError):
        usable = False
    if not usable:
        raise BadJudge("the base URL cannot be used; give one such as http://localhost:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadJudge("the base URL must not contain a password or a ?query; put the key into an environment variable")
    return url.rstrip("/").removesuffix(PATH)


class _Session:
    """The calls of one run: its connections, and how the server wants requests to be spelled."""

    def __init__(self, httpx: Any, client: "httpx.AsyncClient", judge: EndpointJudge) -> None:
        self._httpx, self._client, self._judge = httpx, client, judge
        self._shape, self._has_worked = Shape(0, 0), False

    async def ask(self, call: Call) -> Reply:
        body, shape = self._judge.request(call), self._shape
        response = await self._post(sent := self._shaped(body, shape))
        while (other := self._other(response, shape)) is not None:
            shape = self._shape = max(self._shape, other)
            response = await self._post(sent := self._shaped(body, shape))
        if not 200 <= response.status < 300:
            raise _refused(self._judge, response, self._has_worked)
        self._has_worked = True
        return _read(self._judge, response.body, call, request_digest(sent))

    def _shaped(self, body: dict[str, Any], shape: "Shape") -> bytes:
        limit, form = self._judge.limit, FORMS[shape.form]
        body = body if limit is None else {**body, LIMITS[shape.limit]: limit}
        if self._judge.kind == "json":
            others = {name: value for name, value in body.items() if name != "response_format"}
            body = others if form is None else {**body, "response_format": form}
        return json.dumps(body).encode()

    def _other(self, response: Response, shape: "Shape") -> "Shape | None":
        """What else may be sent if the server complains about how something was asked for."""
        said = complaint(response.body) if response.status in (*ABOUT_REQUEST, 500) else ""
        if self._judge.kind == "json" and "response_format" in said and shape.form + 1 < len(FORMS):
            return shape._replace(form=shape.form + 1)
        if self._judge.limit is not None and response.status == 400 and LIMITS[1] in said and shape.limit == 0:
            return shape._replace(limit=1)
        return None

    async def _post(self, body: bytes) -> Response:
        httpx, judge = self._httpx, self._judge
        if not all(value.isascii() and value.isprintable() for value in _secrets(judge)):
            raise BadJudge(
                f"the key in {judge.key_variable} contains characters that cannot be sent; check the variable"
            )
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        query = {name: _resolved(value) for name, value in judge.query.items()} or None
        sign = partial(_sign, judge)
        try:
            async with self._client.stream(
                "POST", judge.url, content=body, headers=headers, params=query, auth=sign
            ) as stream:
                found = bytearray()
                async for chunk in stream.aiter_bytes():
                    found += chunk
                    if len(found) > MOST_BYTES:
                        raise JudgeUnclear(f"the endpoint sent more than {MOST_BYTES:,} bytes")
                return Response(stream.status_code, stream.headers.get("retry-after"), bytes(found))
        except httpx.ConnectError as reason:
            raise JudgeUnavailable(f"no answer from {judge.base_url}: {_clean(judge, str(reason))}") from None
        except httpx.TimeoutException:
            raise JudgeUnavailable(f"no connection to {judge.base_url} within {CONNECT_LIMIT:g} seconds") from None
        except httpx.DecodingError:
            raise JudgeUnclear("the endpoint sent a body that cannot be unpacked") from None
        except httpx.UnsupportedProtocol:
            raise BadJudge(f"{judge.base_url} cannot be called; give an http or https URL") from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as reason:
            what = _clean(judge, str(reason)) or type(reason).__name__
            said = Said(request=request_digest(body))  # it was sent, and may have to be paid for
            raise JudgeUnavailable(f"no answer from {judge.base_url}: {what}", said=said) from None


def request_digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def _resolved(value: str) -> str:
    """The value of a header or of a part of the query; "$NAME" stands for an environment variable."""
    return os.environ.get(value[1:], "").strip() if value.startswith("$") else value


def _sign(judge: EndpointJudge, request: "httpx.Request") -> "httpx.Request":
    for name, value in judge.headers.items():
        request.headers[name] = _resolved(value)
    if judge.key_variable is not None and os.environ.get(judge.key_variable, "").strip():
        key = os.environ[judge.key_variable].strip()
        is_bearer = judge.key_header.lower() == "authorization"
        request.headers[judge.key_header] = f"Bearer {key}" if is_bearer else key
    return request


def _secrets(judge: EndpointJudge) -> Iterator[str]:
    """The keys that requests carry."""
    named = [f"${judge.key_variable}"] if judge.key_variable is not None else []
    for value in (*named, *judge.headers.values(), *judge.query.values()):
        if value.startswith("$") and (found := _resolved(value)):
            yield found


def _clean(judge: EndpointJudge, text: str, last: bool = False) -> str:
    """The start or end of a text for an error message, without a key that the server repeats."""
    line = " ".join(_without_keys(judge, text).split())
    return line[-200:] if last else line[:200]


def _without_keys(judge: EndpointJudge, text: str) -> str:
    for key in _secrets(judge):
        text = text.replace(key, "***")
    return text


def _refused(judge: EndpointJudge, response: Response, has_worked: bool) -> Exception:
    """The error for a status that is not a success. If other calls of this run have worked, a request that the server
    does not take is about this question, such as one that is too long."""
    status = response.status
    said = _clean(judge, complaint(response.body))
    text = f"{judge.base_url} answered {status}" + (f": {said}" if said else "")
    if status in TRY_AGAIN or status >= 500:
        return JudgeUnavailable(text, read_retry_after(response.retry_after), may_be_the_question=status == 500)
    if status in ABOUT_REQUEST and has_worked:
        return JudgeUnclear(text, is_final=True)
    if status in (401, 403) and judge.key_variable is not None and not os.environ.get(judge.key_variable, "").strip():
        return JudgeFailed(f"{text}; set {judge.key_variable} to your key")
    return JudgeFailed(f"{text}; {REMEDIES.get(status, 'check the base URL, the model and the options')}")


def _read(judge: EndpointJudge, body: bytes, call: Call, request: str) -> Reply:
    said = read_completion(body)
    if said is None:
        kept = Said(_clean(judge, body.decode("utf-8", "replace")), request=request)
        what = _clean(judge, complaint(body))
        raise JudgeUnclear(f"the endpoint did not send a JSON object but {what!r}", said=kept)
    text, reasoning = (_without_keys(judge, part) for part in (said.text or said.refusal, said.reasoning))
    kept = Said(text, reasoning, request, said.model)
    answer = _answer(judge, said)
    if answer is None:
        raise JudgeUnclear(f"the model gave no verdict: {_why(judge, said, complaint(body))}", said.tokens, kept)
    is_share = isinstance(answer, float) and answer in SHARES.values()
    return Reply(winner_of(answer, call.first, call.second) if is_share else answer, said.tokens, kept)


def _answer(judge: EndpointJudge, said: Completion) -> Any:
    """The verdict; None if there is none. What was cut off has none, but one token is all that logprob asks for."""
    kind = judge.kind
    if kind == "logprob" and judge.pattern is None:
        return None if said.finish == "content_filter" else read_logprob(said.choice, judge.style.answers)
    text = None if said.finish in CUT_OFF else without_reasoning(said.text)
    if text is None:
        return None
    if judge.pattern is not None:
        return read_pattern(re.compile(judge.pattern), text)
    if not isinstance(kind, str):
        return kind(text)
    if judge.style.answers != ("A", "B"):
        return dict(zip(judge.style.answers, (1.0, 0.0), strict=True)).get(text)
    return {"letters": read_letters, "grades": read_grades, "json": read_json}[kind](text)


def _why(judge: EndpointJudge, said: Completion, complaint: str) -> str:
    if said.refusal:
        return f"it refused, {_clean(judge, said.refusal)!r}"
    if judge.kind == "logprob" and said.finish != "content_filter":
        if not isinstance(said.choice.get("logprobs"), dict):
            return "the server sends no log-probabilities, so choose another kind of verdict"
        return f"the two letters have less than half of the probability; it wrote {_clean(judge, said.text)!r}"
    if said.finish in CUT_OFF:
        return f"its answer was cut off ({said.finish})"
    if without_reasoning(said.text) is None:
        return "its reasoning has no end, so it was cut off"
    if said.choice and not said.text.strip():
        return "its answer is empty"
    return f"it ended with {_clean(judge, said.text or complaint, last=True)!r}"
