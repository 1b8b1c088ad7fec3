"""Recorded votes as a judge: each call draws one of the recorded votes on its pair, with replacement."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import numpy as np

from shortlist.core.draws import draw_number
from shortlist.core.families import Family, make_family
from shortlist.core.outcomes import flipped
from shortlist.errors import BadJudge
from shortlist.judges.base import Ask, Call, Reply, Skip
from shortlist.study.setups import fingerprint


class RecordedJudge:
    """Answers from recorded votes, given as three lists: the two items of each vote, and its outcome for the first.

    A question about a pair without votes is skipped; `create_study(allowed=judge.pairs)` never asks such a question.
    The same seed and the same questions give the same answers.
    """

    max_parallel: int | None = None

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
        rows = list(zip(first, second, map(float, outcome), strict=True))
        self.settings = {"kind": "recorded", "votes": fingerprint(rows), "seed": seed}
        self._family.check(np.asarray(outcome, dtype=np.float64))
        self._votes: dict[tuple[str, str], list[float]] = {}
        for one, other, value in zip(first, second, outcome, strict=True):
            pair = (one, other) if one < other else (other, one)
            seen = float(value) if one < other else flipped(float(value), self._family)
            self._votes.setdefault(pair, []).append(seen)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs that have votes."""
        return list(self._votes)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ask]:
        yield self._ask

    async def _ask(self, call: Call) -> Reply:
        pair = (call.first, call.second) if call.first < call.second else (call.second, call.first)
        votes = self._votes.get(pair)
        if votes is None:
            return Reply(Skip(f"no votes on {call.first!r} against {call.second!r} were recorded"))
        vote = votes[draw_number(len(votes), "vote", self._seed, call.key)]
        return Reply(vote if call.first < call.second else flipped(vote, self._family))
