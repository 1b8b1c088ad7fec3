"""Numbers as people read them."""

import math
from datetime import UTC, datetime

from shortlist.findings.trust import percent


def count(value: float) -> str:
    return f"{value:,.0f}"


def chance(share: float) -> str:
    """A probability estimated from draws, which never know 0 and 1."""
    if not 0.0005 <= share <= 0.9995:
        return "<\u00a00.1\u00a0%" if share < 0.5 else ">\u00a099.9\u00a0%"
    return percent(share)


def utility(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−") if math.isfinite(value) else "–"


def small(value: float | None) -> str:
    """An error bound or a p-value."""
    return "–" if value is None else f"{value:.2g}"


def day(seconds: float | None) -> str:
    return "–" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def plural(number: float, thing: str) -> str:
    return f"{count(number)} {thing}{'' if round(number) == 1 else 's'}"
