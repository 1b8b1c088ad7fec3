"""Does a judge that is asked the same thing again ever answer differently?

A repeat is a call about a pair in an order that the judge has answered before. If on every pair both answers had a
probability of at least DOUBT, each repeat would differ from the answer before it with at least that probability,
independent of what came earlier. So a bet that repeats differ only with probability FIXED multiplies its stake by
(1 - FIXED)/(1 - DOUBT) for each repeat that agrees and by FIXED/DOUBT for each that differs, and its expected gain is
zero or less: by Ville's inequality it ever reaches ALARM times its stake with probability at most 1/ALARM. Seventeen
repeats without a change reach it.
"""

import math

from shortlist.judges.base import Call

DOUBT = 0.25  # a pair worth asking about often is at least that uncertain
FIXED = 0.01  # a fixed opinion may still slip now and then
ALARM = 100.0
SEVERAL = 3  # pairs; one clear pair says nothing about the judge


class RepeatCheck:
    """Checks the answers of one judge without cases."""

    def __init__(self, judge: str, n_items: int) -> None:
        self._judge, self._several = judge, min(SEVERAL, n_items * (n_items - 1) // 2)
        self._last: dict[tuple[str, str], float] = {}
        self._pairs: set[frozenset[str]] = set()
        self._log_wealth = 0.0
        self._repeats = self._changes = 0
        self._has_warned = False

    def add(self, call: Call, outcome: float) -> str | None:
        """Count one more answer. Returns a warning once, as soon as there is reason to doubt that votes are new."""
        shown = call.first, call.second
        before = self._last.get(shown)
        self._last[shown] = outcome
        if before is not None:
            changed = before != outcome
            self._pairs.add(frozenset(shown))
            self._repeats, self._changes = self._repeats + 1, self._changes + changed
            self._log_wealth += math.log(FIXED / DOUBT if changed else (1 - FIXED) / (1 - DOUBT))
        if self._has_warned or self._log_wealth < math.log(ALARM) or len(self._pairs) < self._several:
            return None
        self._has_warned = True
        return (
            f"judge {self._judge!r} was asked {self._repeats} times about a pair in an order it had answered before, "
            f"on {len(self._pairs)} pairs, and changed its answer {self._changes} times. If it always gives the same "
            "answer, asking again adds no information and the error bound is not valid: give the study cases, or the "
            "judge some randomness. If the items really differ that clearly, ignore this warning"
        )
