"""From rows of votes to the event that imports them: which rows are new, which are one unit, their bets and weights."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shortlist.core import loop
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import Flags, pair_number
from shortlist.core.revisions import place_import
from shortlist.core.tally import Block
from shortlist.core.units import find_units, is_shared, looks_sorted
from shortlist.errors import BadProblem, BadVotes
from shortlist.study.events import Imported
from shortlist.study.rows import RowTable
from shortlist.study.state import StudyState


@dataclass(frozen=True)
class ImportRows:
    """Checked rows of an import, with item numbers, in the order of the file."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    outcome: tuple[float, ...]
    judge: tuple[str | None, ...]
    unit: tuple[str | None, ...]
    id: tuple[str | None, ...]

    def digests(self, items: Sequence[str]) -> list[str]:
        """A digest per row: of everything but its outcome, and how many rows of this import were alike before it.
        Which rows were imported before must not depend on outcomes, or of new votes only some outcomes would count."""
        seen: Counter[tuple[object, ...]] = Counter()
        found = []
        for first, second, _, *rest in zip(*vars(self).values(), strict=True):
            row = (items[first], items[second], *rest)
            text = repr((*row, seen[row])).encode("utf-8", "backslashreplace")
            found.append(hashlib.blake2b(text, digest_size=8).hexdigest())
            seen[row] += 1
        return found

    def select(self, places: Sequence[int]) -> "ImportRows":
        return ImportRows(*(tuple(column[place] for place in places) for column in vars(self).values()))

    @property
    def block(self) -> Block:
        first, second = np.asarray(self.first, np.int64), np.asarray(self.second, np.int64)
        return Block(first, second, np.asarray(self.outcome, np.float64), np.ones(len(first)))


def make_import(rows: ImportRows, source: str, study: StudyState, table: RowTable, items: Sequence[str]) -> Imported:
    """The event. A row that was counted before is left out. A unit that was seen before counts for nothing, and so does
    a vote on a pair on which its judge bets nothing any more."""
    state = study.settled
    digests = rows.digests(items)
    _check_repeated(rows, digests, table, items)
    new = [place for place, digest in enumerate(digests) if table.digests.get(digest) != rows.outcome[place]]
    repeated, rows = len(digests) - len(new), rows.select(new)
    digests = [digests[place] for place in new]
    if "ledger" not in state.stopping.wants:
        return _independent(rows, source, state, table, digests, repeated)
    is_sorted = look_sorted(rows, state, table, items)
    order, fixed = fix_bets(rows, is_sorted, study, table)
    return _event(rows.select(order), source, fixed, [digests[place] for place in order], repeated, is_sorted)


def fix_bets(
    rows: ImportRows, is_sorted: bool, study: StudyState, table: RowTable
) -> tuple[list[int], tuple[list[float], list[float], list[float]]]:
    """The order in which the rows are counted, and in this order their bets, their weights and their shares in the
    grid. They follow from the votes before and from what the rows are about."""
    state, block = study.settled, rows.block
    order, units = find_units(state.problem.n, block.first, block.second, rows.unit)
    units, rows = units.trusting_no_order() if is_sorted else units, rows.select(order.tolist())
    seen = table.units | table.used_cases  # a case that a question was about is a unit that was seen
    is_new = np.array([unit is None or unit not in seen for unit in rows.unit], dtype=np.bool_)
    if study.spent:
        is_new &= _may_bet(rows, study)
    if not len(rows.first):
        return [], ([], [], [])
    with one_thread():
        placed = place_import(state, rows.block, units, is_new)
    assert placed.bets is not None
    assert placed.weights is not None
    share = np.where(is_new, units.share, 0.0)
    return order.tolist(), (placed.bets.tolist(), placed.weights.tolist(), share.tolist())


def _check_repeated(rows: ImportRows, digests: Sequence[str], table: RowTable, items: Sequence[str]) -> None:
    """Raise BadVotes if a row differs from the one that was imported before in its place: these are other votes, or in
    another order. Rows of a unit that was seen weigh nothing, so they may differ."""
    for place, digest in enumerate(digests):
        if rows.unit[place] is None and table.digests.get(digest, rows.outcome[place]) != rows.outcome[place]:
            pair = f"{items[rows.first[place]]!r} and {items[rows.second[place]]!r}"
            raise BadVotes(
                f"row {place + 1} ({pair}) was imported before with another outcome. If these are new votes, give each "
                "an id that no earlier vote has. If the file has grown, keep the earlier rows first, in the same order"
            )


def _may_bet(rows: ImportRows, study: StudyState) -> Flags:
    n, votes = study.settled.problem.n, zip(rows.first, rows.second, rows.judge, strict=True)
    return np.array([not study.bets_nothing(judge, pair_number(n, i, j)) for i, j, judge in votes], np.bool_)


def _independent(
    rows: ImportRows, source: str, state: loop.State, table: RowTable, digests: Sequence[str], repeated: int
) -> Imported:
    """The event for a stopping rule that takes every vote as independent, and makes no bets."""
    if is_shared(rows.unit) or table.units.intersection(unit for unit in rows.unit if unit is not None):
        raise BadProblem(
            f"stopping rule {state.stopping.name} takes every vote as independent; use edges for votes that share a "
            "unit, or say that every row is a unit of its own (--unit row)"
        )
    size = len(rows.first)
    return _event(rows, source, ([0.0] * size, [1.0] * size, [1.0] * size), digests, repeated, False)


def _event(
    rows: ImportRows,
    source: str,
    fixed: Sequence[Sequence[float]],
    digests: Sequence[str],
    repeated: int,
    is_sorted: bool,
) -> Imported:
    bets, weights, share = map(tuple, fixed)
    votes = rows.first, rows.second, rows.outcome, rows.judge
    return Imported(*votes, source, rows.unit, bets, weights, share, tuple(digests), repeated, is_sorted)


def look_sorted(rows: ImportRows, state: loop.State, table: RowTable, items: Sequence[str]) -> bool:
    """Whether these votes, or all imported votes with them, look sorted: small files may each be too short to tell."""
    block, family, number = rows.block, state.problem.family, {item: place for place, item in enumerate(items)}
    earlier = [row for row in table.rows if row.question is None]
    first = np.array([*(number[row.first] for row in earlier), *block.first], dtype=np.int64)
    second = np.array([*(number[row.second] for row in earlier), *block.second], dtype=np.int64)
    outcome = np.array([*(row.outcome for row in earlier), *block.outcome], dtype=np.float64)
    return looks_sorted(family, *block[:3]) or looks_sorted(family, first, second, outcome)
