"""Recorded votes as a judge. Each recorded vote answers at most one question of a study.

The study draws which one: the ids of the recorded votes are the cases of their pair, and each case is used once. So
the record of the study shows which vote answered which question, and no vote is used twice, also after a kill.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

import numpy as np

from shortlist.core.families import Family, make_family
from shortlist.core.outcomes import flipped
from shortlist.errors import BadJudge
from shortlist.judges.base import Ask, Call, Reply, Skip
from shortlist.study.setups import fingerprint

Pair = tuple[str, str]


class RecordedJudge:
    """Answers from recorded votes, given as lists: the two items of each vote, and its outcome for the first.

    `unit` labels votes that are not independent, such as votes on one case: a question uses up the whole unit, on
    every pair, and its answer is the unit's first vote on that pair. A vote without a label (None) is its own unit.
    Pairs without votes are never asked.
    """

    max_parallel: int | None = None

    def __init__(
        self,
        first: Sequence[str],
        second: Sequence[str],
        outcome: Sequence[float],
        *,
        unit: Sequence[str | None] | None = None,
        family: str | Family = "bradley-terry",
        name: str = "recorded",
    ) -> None:
        labels = [None] * len(first) if unit is None else list(unit)
        if not len(first) == len(second) == len(outcome) == len(labels) > 0:
            raise BadJudge("first, second, outcome and unit must be lists of the same length, with at least one vote")
        self.name = name
        rows = list(zip(first, second, map(float, outcome), labels, strict=True))
        self.settings = {"kind": "recorded", "votes": fingerprint(rows)}
        self.unit_name = "vote" if all(label is None for label in labels) else "unit"
        self._family = make_family(family)
        self._family.check(np.asarray(outcome, dtype=np.float64))
        self._votes: dict[Pair, dict[str, float]] = {}
        for row, (one, other, value, label) in enumerate(zip(first, second, outcome, labels, strict=True), 1):
            seen = float(value) if one < other else flipped(float(value), self._family)
            votes = self._votes.setdefault(_sorted(one, other), {})
            votes.setdefault(f"vote {row}" if label is None else f"unit {label}", seen)

    @property
    def pairs(self) -> list[Pair]:
        """The pairs that have votes."""
        return list(self._votes)

    def votes_on(self, items: Iterable[str]) -> dict[Pair, tuple[str, ...]]:
        """The ids of the recorded votes, or of their units, on each pair of these items."""
        known = set(items)
        return {pair: tuple(votes) for pair, votes in self._votes.items() if known.issuperset(pair)}

    def ids(self, items: Iterable[str]) -> list[str]:
        """All these ids, each once."""
        return list(dict.fromkeys(vote for votes in self.votes_on(items).values() for vote in votes))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ask]:
        yield self._ask

    async def _ask(self, call: Call) -> Reply:
        vote = None if call.case is None else self._votes.get(_sorted(call.first, call.second), {}).get(call.case.id)
        if vote is None:
            return Reply(Skip(f"no recorded vote belongs to {call}"))
        return Reply(vote if call.first < call.second else flipped(vote, self._family))


def _sorted(one: str, other: str) -> Pair:
    return (one, other) if one < other else (other, one)
