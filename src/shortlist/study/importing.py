"""From rows of votes to the event that imports them: which rows are new, which are one unit, their bets and weights."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from shortlist.core import loop
from shortlist.core.families import Family
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import Flags, Ints, pair_number
from shortlist.core.revisions import place_import
from shortlist.core.tally import Block
from shortlist.core.units import Units, find_units, is_shared, looks_sorted
from shortlist.errors import BadProblem, BadVotes
from shortlist.study.events import Imported
from shortlist.study.rows import EXPORTED, Row, RowTable, counted, labels_of
from shortlist.study.state import StudyState

SURELY_EQUAL = 20  # votes with equal outcomes that are not equal by chance


@dataclass(frozen=True)
class ImportRows:
    """Checked rows of an import, with item numbers, in the order of the file."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    outcome: tuple[float, ...]
    judge: tuple[str | None, ...]
    unit: tuple[str | tuple[str, ...] | None, ...]
    id: tuple[str | None, ...]

    def digests(self, items: Sequence[str]) -> list[str]:
        """A digest per row: of everything but its outcome, and without an id how many rows of this import were alike
        before it. Which rows were imported before must not depend on outcomes, or of new votes only some outcomes would
        count. So the pair has no order in it: a file may have the winner first."""
        seen: Counter[tuple[object, ...]] = Counter()
        found = []
        for first, second, _, *rest, id in zip(*vars(self).values(), strict=True):
            row = (*sorted((items[first], items[second])), *rest, id)
            text = repr((*row, seen[row] if id is None else 0)).encode("utf-8", "backslashreplace")
            found.append(hashlib.blake2b(text, digest_size=8).hexdigest())
            seen[row] += 1
        return found

    @property
    def exported_ids(self) -> tuple[str | None, ...]:
        """The ids that were given by an export of a study."""
        return tuple(id if id is not None and id.startswith(EXPORTED) else None for id in self.id)

    def joined(self, other: "ImportRows") -> "ImportRows":
        """These rows, then the other's."""
        return ImportRows(*(one + more for one, more in zip(vars(self).values(), vars(other).values(), strict=True)))

    def select(self, places: Sequence[int]) -> "ImportRows":
        return ImportRows(*(tuple(column[place] for place in places) for column in vars(self).values()))

    @property
    def block(self) -> Block:
        first, second = np.asarray(self.first, np.int64), np.asarray(self.second, np.int64)
        return Block(first, second, np.asarray(self.outcome, np.float64), np.ones(len(first)))


def make_import(rows: ImportRows, source: str, study: StudyState, table: RowTable, items: Sequence[str]) -> Imported:
    """The event. A row that was counted before is left out. A unit that was seen before counts for nothing, and so does
    a vote on a pair on which its judge bets nothing any more."""
    state, given = study.settled, len(rows.first)
    rows = _without_own(rows, table)
    digests = rows.digests(items)
    same = _compare(rows, digests, table, state.problem.family)
    _check_repeated(rows, same, items)
    new = [place for place, is_same in enumerate(same) if not is_same]
    repeated, rows = given - len(new), rows.select(new)
    digests = [digests[place] for place in new]
    _check_relabelled(rows, table, items, state.problem.family)
    if "ledger" not in state.stopping.wants:
        return _independent(rows, source, state, table, digests, repeated)
    earlier = earlier_rows(table, items)
    is_sorted = look_sorted(state.problem.family, earlier, rows)
    order, fixed = fix_bets(rows, earlier, is_sorted, study, table)
    return _event(rows.select(order), source, fixed, [digests[place] for place in order], repeated, is_sorted)


def fix_bets(
    rows: ImportRows, earlier: ImportRows, is_sorted: bool, study: StudyState, table: RowTable
) -> tuple[list[int], tuple[list[float], list[float], list[float]]]:
    """The order in which the rows are counted, and in this order their bets, their weights and their shares in the
    grid. They follow from the votes before and from what the rows are about."""
    state = study.settled
    order, units = _find_units(state.problem.n, earlier, rows)
    units, rows = units.trusting_no_order() if is_sorted else units, rows.select(order.tolist())
    is_new = _are_new(rows, units, table.seen_units)
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


def _without_own(rows: ImportRows, table: RowTable) -> ImportRows:
    """Without votes that an export of this study wrote, or that came into it before with another study's export."""
    exported = rows.exported_ids
    if not any(exported):
        return rows
    known, new = table.ids, list[int]()
    for place, id in enumerate(exported):
        if id is None or id not in known:
            new.append(place)
            known.add(id or "")
    return rows.select(new)


def _are_new(rows: ImportRows, units: Units, seen: set[str]) -> Flags:
    """Whether no label of a row's unit was seen before."""
    is_seen = np.array([not seen.isdisjoint(labels_of(unit)) for unit in rows.unit], dtype=np.bool_)
    return np.asarray(~np.isin(units.number, units.number[is_seen]))


def _compare(rows: ImportRows, digests: Sequence[str], table: RowTable, family: Family) -> list[bool | None]:
    """Whether each row has the outcome of the one that was imported before in its place; None if there was none."""
    found: list[bool | None] = []
    here = dict[str, tuple[int, float]]()  # an id may also be twice in one import
    for digest, first, outcome in zip(digests, rows.first, rows.outcome, strict=True):
        before, earlier = (table.digests.get(digest) or here.get(digest)) or (first, None)
        seen = earlier if earlier is None or before == first else family.flip(earlier)
        found.append(None if seen is None else math.isclose(seen, outcome, abs_tol=1e-9))
        here.setdefault(digest, (first, outcome))
    return found


def _check_repeated(rows: ImportRows, same: Sequence[bool | None], items: Sequence[str]) -> None:
    """Raise BadVotes if a row differs from the one that was imported before in its place: these are other votes, or in
    another order. Rows of a unit that was seen weigh nothing, so they may differ."""
    for place, is_same in enumerate(same):
        if rows.unit[place] is None and is_same is False:
            pair = f"{items[rows.first[place]]!r} and {items[rows.second[place]]!r}"
            raise BadVotes(
                f"row {place + 1} ({pair}) was imported before with another outcome. If these are new votes, give each "
                "an id that no earlier vote has, and import again with ids what was left out before: else votes count "
                "by their outcome. If the file has grown, keep the earlier rows first, in the same order"
            )


Votes = dict[tuple[int, int], list[tuple[float, str | None]]]  # by pair: outcomes as seen from its lower item, judges


def _check_relabelled(rows: ImportRows, table: RowTable, items: Sequence[str], family: Family) -> None:
    """Raise BadVotes if these are the votes of an earlier import, or the study's own, with other labels: the same
    outcomes on the same pairs in the same order, though units, judges or ids say that they are others. So many equal
    outcomes come about by chance with a probability of at most 2^-20, so little depends on outcomes here."""
    number = {item: place for place, item in enumerate(items)}

    def votes_of(these: Iterable[Row]) -> Votes:
        votes = ((number[row.first], number[row.second], row.outcome or 0.0, row.judge) for row in these)
        return _by_pair(votes, family)

    imports: dict[int, list[Row]] = {}
    for row in table.rows:
        if row.question is None and not (row.answered in table.with_ids and any(rows.id)):
            imports.setdefault(row.answered, []).append(row)
    single = list(imports.values())
    new = _by_pair(zip(rows.first, rows.second, rows.outcome, rows.judge, strict=True), family)
    for before in [*single, list(chain.from_iterable(single))] if len(single) > 1 else single:
        if _are_the_same(new, votes_of(before)):
            raise BadVotes(
                f"these votes were imported before, {f'from {before[0].source!r}, ' if before[0].source else ''}with "
                "other units, judges or ids: all outcomes are equal, in the same order. Each vote counts once. If they "
                "are other votes, import all of them into a new study, with an id for each vote"
            )
    everything = counted(table.rows)
    own = votes_of(row for row in everything if row.question is not None)
    imported = _joined(votes_of(row for row in everything if row.question is None), new)
    if own and (_are_the_same(own, imported) or _are_the_same(votes_of(everything), new) or _are_the_same(own, new)):
        raise BadVotes(
            "these are this study's own votes: all outcomes are equal, in the same order. They count already. If they "
            "are other votes, import all of them into a new study; an export keeps the ids by which a study knows its "
            "votes (column vote_id)"
        )


def _joined(one: Votes, other: Votes) -> Votes:
    return {pair: [*one.get(pair, ()), *other.get(pair, ())] for pair in {**one, **other}}


def _are_the_same(one: Votes, other: Votes) -> bool:
    """Whether enough votes are equal, so that they are not equal by chance."""
    return min(_total(one), _total(other)) >= SURELY_EQUAL and _holds_all(one, other)


def _total(votes: Votes) -> int:
    return sum(map(len, votes.values()))


def _by_pair(votes: Iterable[tuple[int, int, float, str | None]], family: Family) -> Votes:
    found: Votes = {}
    for first, second, outcome, judge in votes:
        seen = outcome if first < second else float(family.flip(outcome))
        found.setdefault((min(first, second), max(first, second)), []).append((seen, judge))
    return found


def _holds_all(one: Votes, other: Votes) -> bool:
    """Whether the votes of one of the two are those with which the other begins, on each pair."""
    less, more = sorted((one, other), key=_total)
    return all(
        len(few) <= len(more.get(pair, ())) and all(map(_may_be_the_same, few, more[pair]))
        for pair, few in less.items()
    )


def _may_be_the_same(one: tuple[float, str | None], other: tuple[float, str | None]) -> bool:
    return math.isclose(one[0], other[0], abs_tol=1e-9) and (one[1] == other[1] or None in (one[1], other[1]))


def _find_units(n: int, earlier: ImportRows, rows: ImportRows) -> tuple[Ints, Units]:
    """As `find_units`, with the units of all imports compared: if they do not all have the same rows, how many a unit
    has may depend on answers, also where each import has one kind of unit."""
    joined, before = earlier.joined(rows), len(earlier.first)
    order, units = find_units(n, *joined.block[:2], joined.unit)
    is_here = order >= before
    return order[is_here] - before, units.select(is_here)


def _may_bet(rows: ImportRows, study: StudyState) -> Flags:
    n, votes = study.settled.problem.n, zip(rows.first, rows.second, rows.judge, strict=True)
    return np.array([not study.bets_nothing(judge, pair_number(n, i, j)) for i, j, judge in votes], np.bool_)


def _independent(
    rows: ImportRows, source: str, state: loop.State, table: RowTable, digests: Sequence[str], repeated: int
) -> Imported:
    """The event for a stopping rule that takes every vote as independent, and makes no bets."""
    if is_shared(rows.unit) or table.seen_units.intersection(label for unit in rows.unit for label in labels_of(unit)):
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
    ids = rows.exported_ids
    return Imported(
        *votes, source, rows.unit, bets, weights, share, tuple(digests), repeated, is_sorted, ids, any(rows.id)
    )


def earlier_rows(table: RowTable, items: Sequence[str]) -> ImportRows:
    """The rows of earlier imports. Their ids are not kept."""
    number = {item: place for place, item in enumerate(items)}
    found = [
        (number[row.first], number[row.second], row.outcome, row.judge, row.unit, None)
        for row in table.rows
        if row.question is None and row.outcome is not None
    ]
    return ImportRows(*zip(*found, strict=True)) if found else ImportRows((), (), (), (), (), ())


def look_sorted(family: Family, earlier: ImportRows, rows: ImportRows) -> bool:
    """Whether these votes, or all imported votes with them, look sorted: small files may each be too short to tell."""
    return any(looks_sorted(family, *votes.block[:3]) for votes in (rows, earlier.joined(rows)))
