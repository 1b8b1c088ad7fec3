"""Recorded votes as a judge: a question about a pair draws one of the votes on that pair, with replacement."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import numpy as np

from shortlist.errors import BadJudge
from shortlist.families import Family, make_family
from shortlist.judges.judge import Ask, Asked, Reply, Skip, turn
from shortlist.study.dice import draw_number


class RecordedJudge:
    """Votes as three lists: the items of each vote, and its outcome from its first item's side.

    A pair without votes is skipped; `create_study(allowed=judge.pairs)` never asks one. The same seed and questions
    give the same answers.
    """

    at_once: int | None = None

    def __init__(
        self,
        first: Sequence[str],
        second: Sequence[str],
        outcome: Sequence[float],
        *,
        family: str | Family = "bradley-terry",
        seed: int = 0,
        name: str = "recorded",
    ) -> None:
        if not len(first) == len(second) == len(outcome) > 0:
            raise BadJudge("first, second and outcome must be three lists of the same length, with at least one vote")
        self.name = name
        self._seed, self._family = seed, make_family(family)
        self._family.check(np.asarray(outcome, dtype=np.float64))
        self._votes: dict[tuple[str, str], list[float]] = {}
        for one, other, value in zip(first, second, outcome, strict=True):
            pair = (one, other) if one < other else (other, one)
            seen = float(value) if one < other else turn(float(value), self._family)
            self._votes.setdefault(pair, []).append(seen)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs that have votes."""
        return list(self._votes)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ask]:
        yield self._answer

    async def _answer(self, asked: Asked) -> Reply:
        pair = (asked.first, asked.second) if asked.first < asked.second else (asked.second, asked.first)
        votes = self._votes.get(pair)
        if votes is None:
            return Reply(Skip(f"no votes on {asked.first!r} against {asked.second!r} were recorded"))
        vote = votes[draw_number(len(votes), "vote", self._seed, asked.call)]
        return Reply(vote if asked.first < asked.second else turn(vote, self._family))
