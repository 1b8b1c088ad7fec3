"""Read a CSV file of votes. Every row is understood, or nothing is.

Two columns name the items: first/second, left/right, model_a/model_b, item_a/item_b or a/b. One says how it went:
`outcome` (a number from the first item's side) or `winner` (first, second, the column's name, an item's name, tie).
An optional `weight` says how many votes a row stands for.
"""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from shortlist.errors import BadVotes
from shortlist.pairs import Floats, Ints

ITEM_COLUMNS = (("first", "second"), ("left", "right"), ("model_a", "model_b"), ("item_a", "item_b"), ("a", "b"))
TIES = frozenset({"tie", "draw", "equal", "tie (bothbad)", "both_bad"})


class VoteTable(NamedTuple):
    """Votes as arrays, and the names behind the item numbers in order of first appearance."""

    items: tuple[str, ...]
    first: Ints
    second: Ints
    outcome: Floats
    weight: Floats


def read_votes(path: str | Path) -> VoteTable:
    """The votes of a CSV file, in file order. Raises BadVotes naming the first line that makes no sense."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
            columns = {(name or "").strip().lower(): name for name in reader.fieldnames or ()}
    except (OSError, UnicodeDecodeError, csv.Error) as reason:
        raise BadVotes(f"cannot read {path}: {reason}") from None
    ends = next((names for names in ITEM_COLUMNS if all(name in columns for name in names)), None)
    if ends is None or not ("outcome" in columns or "winner" in columns):
        raise BadVotes(
            f"{path} has columns {', '.join(columns) or 'none'}; needed are two item columns such as first,second "
            "and one of outcome, winner"
        )
    if not rows:
        raise BadVotes(f"{path} holds no votes")
    return _table([_read_row(number, row, columns, ends) for number, row in enumerate(rows, start=2)])


def _read_row(
    line: int, row: dict[str, str | None], columns: dict[str, str], ends: tuple[str, str]
) -> tuple[str, str, float, float]:
    first, second = ((row[columns[end]] or "").strip() for end in ends)
    if not first or not second or first == second:
        raise BadVotes(f"line {line}: {first!r} against {second!r} is no pair; name two different items")
    weight = row[columns["weight"]] if "weight" in columns else "1"
    if "outcome" in columns:
        outcome = _number(line, row[columns["outcome"]])
    else:
        outcome = _from_winner(line, (row[columns["winner"]] or "").strip(), (first, second), ends)
    return first, second, outcome, _number(line, weight)


def _from_winner(line: int, winner: str, items: tuple[str, str], ends: tuple[str, str]) -> float:
    word = winner.lower()
    if word in TIES:
        return 0.5
    for outcome, item, end, place in ((1.0, items[0], ends[0], "first"), (0.0, items[1], ends[1], "second")):
        if winner == item or word in (end, place):
            return outcome
    raise BadVotes(f"line {line}: winner {winner!r} is neither item, nor {ends[0]}, {ends[1]} or tie")


def _number(line: int, text: str | None) -> float:
    try:
        return float(text or "")
    except ValueError:
        raise BadVotes(f"line {line}: {text!r} is not a number") from None


def _table(votes: list[tuple[str, str, float, float]]) -> VoteTable:
    numbers: dict[str, int] = {}
    for first, second, _, _ in votes:
        numbers.setdefault(first, len(numbers))
        numbers.setdefault(second, len(numbers))
    ends = np.array([(numbers[first], numbers[second]) for first, second, _, _ in votes], dtype=np.int64)
    values = np.array([(outcome, weight) for _, _, outcome, weight in votes])
    return VoteTable(tuple(numbers), ends[:, 0], ends[:, 1], values[:, 0], values[:, 1])
