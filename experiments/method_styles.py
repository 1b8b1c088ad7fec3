"""Labels, colours and markers of methods and axes, the same in every figure and distinct without colour."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from experiments.sweep import LOWER_BOUND, W_STAR
from experiments.tables import Row
from shortlist.plots import AMBER, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY


class MethodStyle(NamedTuple):
    label: str
    colour: str  # of Okabe and Ito's palette for colour-blind readers, and greys
    marker: str
    line: Literal["-", "--", ":", "-."] = "-"


METHOD_STYLES = {
    "bridge": MethodStyle("bridge (ours)", BLUE, "o"),
    "sharpen": MethodStyle("sharpen", SKY, "p"),
    "learn-then-prove": MethodStyle("learn-then-prove (ours)", BLUE, "d"),
    "oracle-tracking": MethodStyle("oracle-tracking (Algorithm 1)", ORANGE, "s"),
    "oracle": MethodStyle("oracle", "#000000", "*"),
    "online-oracle": MethodStyle("online oracle", AMBER, "D"),
    "seeks": MethodStyle("SEEKS", GREEN, "^"),
    "seeks-v2": MethodStyle("SEEKS-v2", SKY, "v"),
    "active-ranking": MethodStyle("Active Ranking", PURPLE, "P"),
    "active-ranking-tight": MethodStyle("Active Ranking, tight", PURPLE, "X", ":"),
    "borda-lucb": MethodStyle("Borda-LUCB", "#8C6D1F", "<", "-."),
    "track-and-stop": MethodStyle("track-and-stop", GREY, ">", "-."),
    "uniform": MethodStyle("uniform", GREY, "h", ":"),
    "t3c": MethodStyle("T3C", ORANGE, "^"),
    "eb-tci": MethodStyle("EB-TCI", ORANGE, "v", "--"),
    "top-two": MethodStyle("top-two", ORANGE, "D", ":"),
    "information-gain": MethodStyle("information gain", GREEN, "P"),
    "asap": MethodStyle("ASAP", GREEN, "X", "--"),
    "crowd-bt": MethodStyle("Crowd-BT", GREEN, "<", ":"),
    "gavel": MethodStyle("gavel", GREEN, ">", "-."),
    "adjacent": MethodStyle("adjacent", AMBER, "s"),
    "swiss": MethodStyle("Swiss", AMBER, "*", "--"),
    "round-robin": MethodStyle("uniform (round robin)", "#000000", "h", ":"),
    LOWER_BOUND: MethodStyle("lower bound for any method", GREY, "", "--"),
    W_STAR: MethodStyle("best allocation $w^*$", GREY, ""),
}
AXES = {
    "n": "number of items $n$", "k": "number wanted $k$", "delta": "allowed error $\\delta$",
    "alpha": "learning-rate exponent $\\alpha$", "comparisons": "mean comparisons",
    "milliseconds": "milliseconds per decision", "times_bound": "comparisons / lower bound",
    "exact": "share of runs with exactly the top $k$", "proofs": "mean votes to a proof", "votes": "votes",
}  # fmt: skip
WORLDS = {
    "random-utilities": "random utilities", "equally-spaced": "equally spaced", "sst": "SST", "near-ties": "near ties",
    "normal:1.0": "normal, spread 1", "normal:1.5": "normal, spread 1.5",
}  # fmt: skip


def world_of(row: Row) -> str:
    """The name of a row's world, with its stopping rule if it has one of its own."""
    name = f"{WORLDS.get(row['instance'], row['instance'])}, n = {row['n']}, k = {row['k']}"
    return f"{name}, {row['stopping']}" if row["stopping"] else name


def style_of(method: str) -> MethodStyle:
    return METHOD_STYLES.get(method, MethodStyle(method, GREY, "."))


def methods(rows: Iterable[Row]) -> list[str]:
    """The methods of the rows, in the order of METHOD_STYLES."""
    found = dict.fromkeys(row["method"] for row in rows)
    return sorted(
        found, key=lambda method: list(METHOD_STYLES).index(method) if method in METHOD_STYLES else len(METHOD_STYLES)
    )


def runs(rows: Sequence[Row], method: str) -> str:
    """How many runs a point of this method averages."""
    counts = [int(row["runs"]) for row in rows if row["method"] == method]
    least, most = min(counts), max(counts)
    plural = "run" if most == 1 else "runs"
    return f"{most} {plural}" if least == most else f"{least}–{most} {plural}"
