"""Read a CSV file of votes. Every row is understood, or nothing is.

Two columns name the items: first/second, left/right, model_a/model_b, item_a/item_b or a/b. One says how it went:
`outcome` (a number from the first item's side) or `winner` (first, second, the column's name, an item's name, tie).
An optional `weight` says how many votes a row stands for.
"""

import csv
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shortlist.errors import BadOutcome, BadVotes
from shortlist.families import BradleyTerry, Family
from shortlist.pairs import Floats, Ints

ITEM_COLUMNS = (("first", "second"), ("left", "right"), ("model_a", "model_b"), ("item_a", "item_b"), ("a", "b"))
TIES = frozenset({"tie", "draw", "equal", "tie (bothbad)", "tie (both bad)", "both_bad"})


class VoteTable(NamedTuple):
    """Votes as arrays, and the names behind the item numbers in order of first appearance."""

    items: tuple[str, ...]
    first: Ints
    second: Ints
    outcome: Floats
    weight: Floats


def read_votes(path: str | Path, family: Family | None = None) -> VoteTable:
    """The votes of a CSV file, in file order. Raises BadVotes naming the first line that makes no sense."""
    speaks = BradleyTerry() if family is None else family
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows = [(reader.line_num, row) for row in reader]
            columns = {(name or "").strip().lower(): name for name in reader.fieldnames or ()}
    except (OSError, UnicodeDecodeError, csv.Error) as reason:
        raise BadVotes(f"cannot read {path}: {getattr(reason, 'strerror', None) or reason}") from None
    ends = next((names for names in ITEM_COLUMNS if all(name in columns for name in names)), None)
    if ends is None or not ("outcome" in columns or "winner" in columns):
        raise BadVotes(
            f"{path} has columns {', '.join(columns) or 'none'}; needed are two item columns such as first,second "
            "and one of outcome, winner, separated by commas"
        )
    if not rows:
        raise BadVotes(f"{path} holds no votes")
    votes = []
    for line, row in rows:
        try:
            votes.append(_read_row(row, columns, ends, speaks))
        except (BadVotes, BadOutcome) as reason:
            raise BadVotes(f"{path}, line {line}: {reason}") from None
    return _table(votes)


def _read_row(
    row: dict[str | None, Any], columns: dict[str, str], ends: tuple[str, str], family: Family
) -> tuple[str, str, float, float]:
    if None in row or None in row.values():
        raise BadVotes("the row has more or fewer fields than the header")
    first, second = (row[columns[end]].strip() for end in ends)
    if not first or not second or first == second:
        raise BadVotes(f"{first!r} against {second!r} is no pair; name two different items")
    weight = _number(row[columns["weight"]]) if "weight" in columns else 1.0
    if not 0 <= weight < math.inf:
        raise BadVotes(f"weight {weight} is not the number of votes that the row stands for")
    if "outcome" in columns:
        outcome = _number(row[columns["outcome"]])
    else:
        outcome = _from_winner(row[columns["winner"]].strip(), (first, second), ends, family)
    family.check(np.array([outcome]))
    return first, second, outcome, weight


def _from_winner(winner: str, items: tuple[str, str], ends: tuple[str, str], family: Family) -> float:
    word = winner.lower()
    if family.win is None:
        raise BadVotes(f"a winner is no measured difference; the {family.name} family needs an outcome column")
    if word in TIES:
        return family.tie
    losing = float(family.flip(np.asarray(family.win)))
    for place, outcome in enumerate((family.win, losing)):
        if winner == items[place] or word in {names[place] for names in ITEM_COLUMNS}:
            return outcome
    raise BadVotes(f"winner {winner!r} is neither item, nor {ends[0]}, {ends[1]} or tie")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadVotes(f"{text!r} is not a number") from None


def _table(votes: list[tuple[str, str, float, float]]) -> VoteTable:
    numbers: dict[str, int] = {}
    for first, second, _, _ in votes:
        numbers.setdefault(first, len(numbers))
        numbers.setdefault(second, len(numbers))
    ends = np.array([(numbers[first], numbers[second]) for first, second, _, _ in votes], dtype=np.int64)
    values = np.array([(outcome, weight) for _, _, outcome, weight in votes])
    return VoteTable(tuple(numbers), ends[:, 0], ends[:, 1], values[:, 0], values[:, 1])
