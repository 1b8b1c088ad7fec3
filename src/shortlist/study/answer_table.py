"""The answers of judges that are always the same: a table of cells, and which pairs the known cells decide.

A cell is what a judge answers to a pair, on a case, in an order of showing. A run stores every answer on a case and
uses it again, so its answers are such a table, and the claim about these cases is about the means of the table. Where
the known cells decide which of two items has the larger mean, whatever the other cells are, this is a fact
(core/facts.py): no vote is needed, and nothing can be wrong about it. Exact ties go to the item that is listed first.

A cell to which the judge gave no clear answer twice counts as a tie, once all other cells of the pair are known.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

from shortlist.core.pairs import pair_items, pair_number
from shortlist.study.events import CONFLICT, DROPPED, EXPIRED, LEFT, VOIDED, Asked

REFUSALS = 2  # skips after which a cell counts as a tie
NO_REFUSALS = (EXPIRED, VOIDED, LEFT, DROPPED, CONFLICT)  # reasons of skips that are not the judge's

LOW_FIRST, HIGH_FIRST, BOTH_LOW, BOTH_HIGH = "0123"  # which orders an answer is about, and whose side it is seen from
Key = tuple[str | None, int]  # judge and pair
Facts = frozenset[tuple[int, int]]  # items that are ahead of others


class PairCells(NamedTuple):
    """What one judge answered on one pair, by order and case; `skips` counts what was not answered. `ahead` is 1 if the
    known cells put the pair's lower item ahead, -1 the higher one, 0 if they do not decide yet. `tied`: all cells are
    known, and the items are equal."""

    answers: dict[str, float] = {}  # noqa: RUF012 - never changed in place
    skips: dict[str, int] = {}  # noqa: RUF012
    ahead: int = 0
    tied: bool = False
    refused: int = 0  # cells that count as ties because they were not answered

    def decide(self, size: int) -> "PairCells":
        """With what the known cells decide, among `size` cases in both orders."""
        known, parts = _units(self.answers), self._parts()
        refused = _units(place for place, times in self.skips.items() if times >= REFUSALS) - known
        if known and len(known) + len(refused) == 2 * size:  # refused cells are ties, so only the known ones matter
            margin = math.fsum([*parts, -len(known) / 2])
            return self._replace(ahead=1 if margin >= 0 else -1, tied=margin == 0, refused=len(refused))
        lower, higher = math.fsum([*parts, -size]), math.fsum([len(known), -size, *(-part for part in parts)])
        return self._replace(ahead=1 if lower >= 0 else -1 if higher > 0 else 0, tied=False, refused=0)

    def _parts(self) -> list[float]:
        """Numbers that add up, without rounding, to the lower item's share of all known cells."""
        parts = list[float]()
        for place, value in self.answers.items():
            order, case = place[0], place[1:]
            others = {LOW_FIRST: (BOTH_LOW, BOTH_HIGH), HIGH_FIRST: (BOTH_LOW, BOTH_HIGH), BOTH_HIGH: (BOTH_LOW,)}
            if any(other + case in self.answers for other in others.get(order, ())):
                continue  # the same cells are known from an answer about both orders
            weight = 1 if order in (LOW_FIRST, HIGH_FIRST) else 2
            parts += [weight * value] if order in (LOW_FIRST, BOTH_LOW) else [weight, -weight * value]
        return parts


def _units(places: Iterable[str]) -> set[str]:
    """The cells that these answers are about, one for each order and case."""
    found = set[str]()
    for place in places:
        found |= {place} if place[0] in (LOW_FIRST, HIGH_FIRST) else {LOW_FIRST + place[1:], HIGH_FIRST + place[1:]}
    return found


class AnswerTable(NamedTuple):
    """The cells that are known. `changed` are judges who answered the same cell in two ways: their answers are not a
    table, so they decide nothing."""

    pairs: dict[Key, PairCells] = {}  # noqa: RUF012 - never changed in place
    changed: frozenset[str | None] = frozenset()

    def answered(self, asked: Asked, cases: Collection[str] | None, n: int, outcome: float) -> "AnswerTable":
        """With one more answer; `cases` is the list of the study. Returns itself if there is nothing new."""
        if not _is_cell(asked, cases):
            return self
        key, place = _key(asked, n), _place(asked)
        cells = self.pairs.get(key, PairCells())
        before = cells.answers.get(place)
        if before == outcome:
            return self
        if before is not None:
            return self._replace(changed=self.changed | {asked.judge})
        return self._with(key, cells._replace(answers={**cells.answers, place: outcome}), cases)

    def skipped(self, asked: Asked, cases: Collection[str] | None, n: int, reason: str) -> "AnswerTable":
        """With one more question that the judge did not answer."""
        if not _is_cell(asked, cases) or reason in NO_REFUSALS:
            return self
        key, place = _key(asked, n), _place(asked) if asked.cells == 1 else f"{BOTH_LOW}{asked.case}"
        cells = self.pairs.get(key, PairCells())
        skips = {**cells.skips, place: cells.skips.get(place, 0) + 1}
        return self._with(key, cells._replace(skips=skips), cases)

    def _with(self, key: Key, cells: PairCells, cases: Collection[str] | None) -> "AnswerTable":
        return self._replace(pairs={**self.pairs, key: cells.decide(len(cases or ()))})

    def facts(self, n: int, min_judges: int, spent: Collection[Key], voided: Collection[str]) -> Facts:
        """Which items are ahead of which, by the tables of at least so many judges. What an undo touched does not
        count, nor does a judge who is voided."""
        found = Counter[tuple[int, int]]()
        for (judge, pair), cells in self.pairs.items():
            if cells.ahead and not (judge in self.changed or judge in voided or (judge, pair) in spent):
                low, high = pair_items(n, pair)
                found[(low, high) if cells.ahead > 0 else (high, low)] += 1
        return frozenset(ends for ends, judges in found.items() if judges >= min_judges)

    def ties(self, n: int) -> list[tuple[int, int]]:
        """The pairs that are exactly equal for some judge, the item that is listed first before the other."""
        return sorted({pair_items(n, pair) for (_, pair), cells in self.pairs.items() if cells.tied})

    @property
    def refused(self) -> int:
        """How many cells count as ties because the judge did not answer them."""
        return sum(cells.refused for cells in self.pairs.values())


def _is_cell(asked: Asked, cases: Collection[str] | None) -> bool:
    """Whether the question is about a cell of the table over these cases."""
    return asked.cells > 0 and cases is not None and asked.pool == len(cases) and asked.case in cases


def _key(asked: Asked, n: int) -> Key:
    return asked.judge, pair_number(n, asked.first, asked.second)


def _place(asked: Asked) -> str:
    orders = LOW_FIRST + HIGH_FIRST if asked.cells == 1 else BOTH_LOW + BOTH_HIGH
    return orders[asked.first > asked.second] + str(asked.case)
