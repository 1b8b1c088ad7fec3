"""What calls to language models cost: prices for tokens, from numbers, a file, or the package genai-prices."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from shortlist.core.problem import real
from shortlist.errors import BadJudge, NotInstalled
from shortlist.judges.base import Tokens

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
