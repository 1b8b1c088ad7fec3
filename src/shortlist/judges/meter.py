"""Which calls may be made now, and what they cost: so many requests and tokens a minute, and a ceiling on money.

Tokens are guessed from letters before a call, and corrected by what the server says it counted. The ceiling counts
calls under way with the most that they can cost, so it holds whatever they turn out to cost. Waiting for admission is
not part of a call's time limit. Prices come from numbers, a file, or the package genai-prices.
"""

import asyncio
import time
import tomllib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from shortlist.core.problem import real
from shortlist.errors import BadJudge, NotInstalled, OutOfMoney
from shortlist.judges.base import Call, Judge, PanelJudge, Tokens

MILLION = 1_000_000
LIST = "genai-prices"  # the package with published prices


class Pricing(Protocol):
    """What tokens cost."""

    def cost(self, tokens: Tokens) -> float: ...


class Price(NamedTuple):
    """Prices of a million tokens: read, written, and read from the server's cache."""

    input: float
    output: float
    cached: float | None = None

    def cost(self, tokens: Tokens) -> float:
        cached = min(tokens.cached, tokens.prompt)
        rate = self.input if self.cached is None else self.cached
        return (self.input * (tokens.prompt - cached) + rate * cached + self.output * tokens.completion) / MILLION


@dataclass(frozen=True)
class ListedPrice:
    """The published price of a model, in US dollars, as the package genai-prices knows it. Raises BadJudge for a model
    that it does not know."""

    model: str

    def __post_init__(self) -> None:
        self.cost(Tokens(1, 1))

    def cost(self, tokens: Tokens) -> float:
        try:
            prices = import_module("genai_prices")
        except ImportError:
            raise NotInstalled("published prices", LIST, "prices") from None
        usage = prices.Usage(
            input_tokens=tokens.prompt, output_tokens=tokens.completion, cache_read_tokens=tokens.cached or None
        )
        try:
            return float(prices.calc_price(usage, self.model).total_price)
        except LookupError:
            raise BadJudge(
                f"{LIST} does not know the model {self.model!r}; give its price with --price IN,OUT"
            ) from None


def read_price(text: str) -> Price:
    """A price given as IN,OUT or IN,OUT,CACHED, for a million tokens. Raises BadJudge."""
    try:
        return _checked([float(part) for part in text.split(",")])
    except (TypeError, ValueError):
        raise BadJudge(f"price {text!r} cannot be read; give IN,OUT for a million tokens, such as 0.15,0.60") from None


def read_prices(path: Path) -> dict[str, Price]:
    """Prices by model from a TOML file: a table for each model with input, output and optionally cached."""
    try:
        found: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return {
            model: _checked([entry["input"], entry["output"], entry.get("cached")]) for model, entry in found.items()
        }
    except OSError as reason:
        raise BadJudge(f"cannot read {path}: {reason.strerror}") from None
    except (ValueError, LookupError, TypeError, AttributeError) as reason:
        raise BadJudge(
            f'{path} is not a file of prices: {reason}; write ["MODEL"], input = 0.15, output = 0.60'
        ) from None


def _checked(parts: list[Any]) -> Price:
    if parts and parts[-1] is None:
        parts = parts[:-1]
    if not 2 <= len(parts) <= 3 or any(isinstance(part, str) or real("price", part) < 0 for part in parts):
        raise ValueError("a price has two or three numbers that are not negative")
    return Price(*map(float, parts))


MINUTE = 60.0  # seconds
LETTERS = 4  # in a token, roughly
PICTURE_TOKENS = 1_000  # in a picture, roughly
MOST_PICTURE_TOKENS = 40_000
TEMPLATE_TOKENS = 256  # that a server may add to the messages, at most
WRITTEN = 300  # tokens that a model writes, before any answer has said
LOOK = 0.02  # seconds between looks whether there is money for a call again
ROUNDING = 1e-9


@dataclass
class Admission:
    """A call that may be made: the tokens that it is counted with, and the most that it can cost."""

    at: float
    tokens: float = 0.0
    most: float | None = None  # None if no price is known, or no limit of what is written


class Rate:
    """At most `requests` calls and `tokens` tokens in any minute."""

    def __init__(self, requests: float | None, tokens: float | None) -> None:
        self._requests, self._tokens = requests, tokens
        self._admitted: deque[Admission] = deque()

    def wait(self, now: float, tokens: float) -> float:
        """Seconds until a call of so many tokens may be made; 0 if now. A call larger than the limit goes alone."""
        while self._admitted and self._admitted[0].at <= now - MINUTE:
            self._admitted.popleft()
        kept = list(self._admitted)
        if self._requests is not None:
            too_many = len(kept) - int(max(self._requests, 1)) + 1
            if too_many > 0:
                return kept[too_many - 1].at + MINUTE - now
        if self._tokens is None:
            return 0.0
        used = sum(one.tokens for one in kept)
        for one in kept:
            if used + tokens <= self._tokens:
                return 0.0
            used -= one.tokens
            if used + tokens <= self._tokens or used <= 0:
                return one.at + MINUTE - now
        return 0.0

    def admit(self, admission: Admission) -> None:
        self._admitted.append(admission)


class Meter:
    """Admits the calls of a run. Judges of a panel have rates and prices of their own. `spent` is what the study has
    cost before."""

    def __init__(self, judge: Judge, ceiling: float | None = None, spent: float = 0.0) -> None:
        self._judges: Sequence[Judge] = judge.judges if isinstance(judge, PanelJudge) else [judge]
        self._rates = [Rate(getattr(one, "rpm", None), getattr(one, "tpm", None)) for one in self._judges]
        self._written = [float(getattr(one, "limit", None) or WRITTEN) for one in self._judges]
        self.ceiling, self.spent, self.is_closed = ceiling, spent, False
        self._reserved, self._largest = 0.0, 0.0
        if ceiling is not None:
            self._check(ceiling)

    def _check(self, ceiling: float) -> None:
        if real("max_cost", ceiling) <= 0:
            raise BadJudge(f"max_cost is {ceiling}; give an amount of money above 0")
        for one in self._judges:
            if getattr(one, "price", None) is None:
                raise BadJudge(
                    f"a ceiling on money needs the price of {one.name!r}; give --price IN,OUT or --prices FILE"
                )
            if getattr(one, "limit", None) is None:
                raise BadJudge("a ceiling on money needs a limit on what a call can cost; give --max-tokens N")

    @property
    def is_counted(self) -> bool:
        """Whether calls are requests that have to be paid for."""
        return any(hasattr(one, "request") for one in self._judges)

    @property
    def has_room(self) -> bool:
        """Whether the next call can be paid for, judged by the largest so far."""
        if self.ceiling is None:
            return True
        return not self.is_closed and self.spent + self._reserved + self._largest <= self.ceiling + ROUNDING

    async def admit(self, call: Call) -> Admission | None:
        """Wait until the call may be made. None if the judge is not one whose calls are counted. Raises OutOfMoney."""
        place = call.member or 0
        request = getattr(self._judges[place], "request", None)
        if request is None:
            return None
        body, rate = request(call), self._rates[place]
        tokens, most = self._written[place] + guess_tokens(body), self._most(place, body)
        await self._wait_for_money(most)
        while (wait := rate.wait(time.monotonic(), tokens)) > 0:
            await asyncio.sleep(wait)
        admission = Admission(time.monotonic(), tokens, most)
        rate.admit(admission)
        return admission

    def settle(self, call: Call, admission: Admission | None, tokens: Tokens, is_paid: bool) -> float | None:
        """Correct the guesses by what the server counted. Returns the cost; None if it is not known. A call that may
        have to be paid for, and of which the server said nothing, costs the most that it can."""
        if admission is None:
            return None
        place, price = call.member or 0, self._price(call.member or 0)
        if any(tokens):
            admission.tokens = float(tokens.prompt + tokens.completion)
            self._written[place] += (tokens.completion - self._written[place]) / 4
        cost = price.cost(tokens) if price is not None and any(tokens) else admission.most if is_paid else 0.0
        if self.ceiling is not None:
            self._reserved -= admission.most or 0.0
            self.spent += cost or 0.0
        return cost

    async def _wait_for_money(self, most: float | None) -> None:
        """Reserve the most that a call can cost, as soon as there is so much left."""
        if self.ceiling is None or most is None:
            return
        self._largest = max(self._largest, most)
        while self.spent + self._reserved + most > self.ceiling + ROUNDING:
            if self._reserved <= ROUNDING:
                self.is_closed = True
                raise OutOfMoney(f"the next call may cost {most:.4g}, and {self.ceiling - self.spent:.4g} is left")
            await asyncio.sleep(LOOK)
        self._reserved += most

    def _most(self, place: int, body: Mapping[str, Any]) -> float | None:
        price, limit = self._price(place), getattr(self._judges[place], "limit", None)
        if price is None or limit is None:
            return None
        return price.cost(Tokens(most_tokens(body), limit))

    def _price(self, place: int) -> Pricing | None:
        return getattr(self._judges[place], "price", None)


def _parts(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for message in body["messages"]:
        content = message["content"]
        found += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return found


def guess_tokens(body: Mapping[str, Any]) -> float:
    """Roughly how many tokens the messages of a request have."""
    return sum(len(part["text"]) / LETTERS if part["type"] == "text" else PICTURE_TOKENS for part in _parts(body))


def most_tokens(body: Mapping[str, Any]) -> int:
    """The most tokens that a request can have: a token is at least one byte."""
    sizes = [len(part["text"].encode()) if part["type"] == "text" else MOST_PICTURE_TOKENS for part in _parts(body)]
    return sum(sizes) + len(str(body.get("response_format", ""))) + TEMPLATE_TOKENS
