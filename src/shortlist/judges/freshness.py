"""Does a judge that is asked the same thing again ever say something else?

A repeat is a call about a pair in an order that the judge has answered before. If on every pair both answers had a
chance of at least DOUBT, then each repeat would differ from the answer before it with at least that chance, whatever
came earlier. So a bet that repeats differ only with chance FIXED multiplies its stake by (1 - FIXED)/(1 - DOUBT) for
each repeat that does not and by FIXED/DOUBT for each that does, and is fair or worse: by Ville's inequality it
ever wins ALARM times its stake with probability at most 1/ALARM. Seventeen repeats without a change do.
"""

import math

from shortlist.judges.judge import Asked

DOUBT = 0.25  # a pair worth asking about often is at least that uncertain
FIXED = 0.01  # a fixed opinion may still slip now and then
ALARM = 100.0
SEVERAL = 3  # pairs; one clear pair says nothing about the judge


class Freshness:
    """Watches the answers of one judge without cases."""

    def __init__(self, judge: str, n_items: int) -> None:
        self._judge, self._several = judge, min(SEVERAL, n_items * (n_items - 1) // 2)
        self._last: dict[tuple[str, str], float] = {}
        self._pairs: set[frozenset[str]] = set()
        self._log_wealth = 0.0
        self._repeats = self._changes = 0
        self._has_warned = False

    def note(self, asked: Asked, outcome: float) -> str | None:
        """One more answer; returns once, as soon as there is reason to, why these votes may not be fresh."""
        shown = asked.first, asked.second
        before = self._last.get(shown)
        self._last[shown] = outcome
        if before is not None:
            self._repeat(frozenset(shown), before != outcome)
        enough = self._log_wealth >= math.log(ALARM) and len(self._pairs) >= self._several
        if not enough or self._has_warned:
            return None
        self._has_warned = True
        return self._warning()

    def _repeat(self, pair: frozenset[str], changed: bool) -> None:
        self._pairs.add(pair)
        self._repeats, self._changes = self._repeats + 1, self._changes + changed
        self._log_wealth += math.log(FIXED / DOUBT if changed else (1 - FIXED) / (1 - DOUBT))

    def _warning(self) -> str:
        return (
            f"judge {self._judge!r} was asked {self._repeats} times about a pair in an order it had answered before, "
            f"on {len(self._pairs)} pairs, and said something else {self._changes} times. If it always says the same, "
            "asking again gives no new votes and the error bound means nothing: give the study cases, or the judge "
            "some randomness. If these items are just that different, all is well"
        )
