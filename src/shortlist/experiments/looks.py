"""How methods and axes look and are called in every figure: told apart in print, without colour too."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from shortlist.experiments.results import Row
from shortlist.experiments.sweep import LOWER_BOUND, W_STAR
from shortlist.plots.style import AMBER, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY


class Look(NamedTuple):
    label: str
    colour: str  # Okabe and Ito's, which all eyes can tell apart, and greys
    marker: str
    line: Literal["-", "--", ":", "-."] = "-"


LOOKS = {
    "bridge": Look("bridge (ours)", BLUE, "o"),
    "oracle-tracking": Look("oracle-tracking (Algorithm 1)", ORANGE, "s"),
    "oracle": Look("oracle", "#000000", "*"),
    "online-oracle": Look("online oracle", AMBER, "D"),
    "seeks": Look("SEEKS", GREEN, "^"),
    "seeks-v2": Look("SEEKS-v2", SKY, "v"),
    "active-ranking": Look("Active Ranking", PURPLE, "P"),
    "active-ranking-tight": Look("Active Ranking, tight", PURPLE, "X", ":"),
    "borda-lucb": Look("Borda-LUCB", "#8C6D1F", "<", "-."),
    "track-and-stop": Look("track-and-stop", GREY, ">", "-."),
    "uniform": Look("uniform", GREY, "h", ":"),
    LOWER_BOUND: Look("lower bound for any method", GREY, "", "--"),
    W_STAR: Look("best allocation $w^*$", GREY, ""),
}
AXES = {
    "n": "number of items $n$", "k": "number wanted $k$", "delta": "allowed error $\\delta$",
    "alpha": "learning-rate exponent $\\alpha$", "comparisons": "mean comparisons",
    "milliseconds": "milliseconds a decision", "times_bound": "comparisons / lower bound",
}  # fmt: skip
WORLDS = {"random-utilities": "random utilities", "equally-spaced": "equally spaced", "sst": "SST"}


def look(method: str) -> Look:
    return LOOKS.get(method, Look(method, GREY, "."))


def methods(rows: Iterable[Row]) -> list[str]:
    """In the order of LOOKS, whatever comes first in the table."""
    found = dict.fromkeys(row["method"] for row in rows)
    return sorted(found, key=lambda method: list(LOOKS).index(method) if method in LOOKS else len(LOOKS))


def runs(rows: Sequence[Row], method: str) -> str:
    """How many runs a point of this method is the mean of."""
    counts = [int(row["runs"]) for row in rows if row["method"] == method]
    least, most = min(counts), max(counts)
    plural = "run" if most == 1 else "runs"
    return f"{most} {plural}" if least == most else f"{least}–{most} {plural}"
