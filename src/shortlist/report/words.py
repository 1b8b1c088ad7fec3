"""Numbers as people read them."""

import math
from datetime import UTC, datetime


def count(value: float) -> str:
    return f"{value:,.0f}"


def percent(share: float | None) -> str:
    """With what it takes to tell it from 0 and 100 %."""
    if share is None:
        return "–"
    if 0 < share < 0.0005 or 0.9995 < share < 1:
        return "< 0.1 %" if share < 0.5 else "> 99.9 %"
    return f"{100 * share:.1f} %"


def utility(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−") if math.isfinite(value) else "–"


def small(value: float | None) -> str:
    """An error bound or a p-value."""
    return "–" if value is None else f"{value:.2g}"


def day(seconds: float | None) -> str:
    return "–" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def plural(number: float, thing: str) -> str:
    return f"{count(number)} {thing}{'' if round(number) == 1 else 's'}"
