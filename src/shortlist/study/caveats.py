"""Caveats: signs in the votes that an assumption of the proof may not hold, with what to do about each.

They are not tests: a proof holds or not whatever they say. They name what a reader must know before relying on it.
"""

import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

import numpy as np

from shortlist.core.families import Family
from shortlist.core.pairs import cycle_across
from shortlist.core.problem import Problem
from shortlist.study.claims import AnswerTable, Facts
from shortlist.study.rows import Correction, Row, RowTable

REPEATS = 5  # repeated questions; with fewer, the same answers again say nothing
FEW_CASES = 30
FEW_JUDGES = 20
ONE_SIDE, ENOUGH_VOTES = 0.9, 20  # of a judge's answers that prefer one side, and how many answers that takes
SORTED = (
    "Imported votes look sorted by winner, so nothing that was bet on imported votes counts, only how often each item "
    "won. Import votes in the order in which they were cast."
)
REPEATED = (
    "{:,} imported rows were counted before and left out. If they are other votes, import them with a column that "
    "tells votes apart (id=, or --map id=COLUMN)."
)
FROM_STUDY = "study "  # what the source of votes begins with that were taken over from another study
TAKEN_OVER = (
    "{:,} votes were taken over from {}. This is valid if you decided it without regard to the results, if items were "
    "left out or added for reasons that have nothing to do with the votes, and if questions that stayed unanswered "
    "there did not depend on the answers. If you report both studies, the chances of a wrong answer add up."
)


def find_caveats(
    votes: Sequence[Row], family: Family, listed: int | None = 0, public: bool = False, min_judges: int = 1
) -> tuple[str, ...]:
    """The caveats about the votes that count. `listed`: how many cases the questions draw from; None if each case
    served one question, so it is as good as a new one. `public`: the claim is about the public that the judges come
    from. A proof that rests on several judges may have one who gave more than half of the evidence."""
    few = ("" if listed is None else _few_cases(votes, listed), _few_judges(votes) if public else "")
    one_judge = "" if min_judges > 1 else _one_judge(votes, family)
    found = _same_answers(votes), *few, one_judge, *_one_side(votes, family), *_look_alikes(votes)
    return tuple(caveat for caveat in found if caveat)


def import_caveats(table: RowTable) -> tuple[str, ...]:
    """What to know about imported votes: those that do not count, and why."""
    taken_over = Counter(row.source for row in table.rows if row.source.startswith(FROM_STUDY))
    unused = sum(row.question is None and row.weight == 0 for row in table.rows)
    found = (
        table.is_sorted and SORTED,
        unused and f"{unused:,} imported votes count for nothing: they share a unit with votes that count already.",
        table.repeated and REPEATED.format(table.repeated),
        *(TAKEN_OVER.format(votes, source) for source, votes in taken_over.items()),
    )
    return tuple(caveat for caveat in found if caveat)


def mixed_caveats(table: RowTable, has_cases: bool) -> tuple[str, ...]:
    """What to know if votes on drawn cases, or recorded votes, count together with others."""
    others = sum(row.status == "counted" and row.case is None and row.weight > 0 for row in table.rows)
    if not (has_cases and others):
        return ()
    return (
        f"The result is about the drawn cases, or recorded votes, and about {others:,} other "
        f"vote{'' if others == 1 else 's'}: the same top must be right for both.",
    )


def correction_caveats(corrections: Sequence[Correction]) -> tuple[str, ...]:
    """What was corrected after there were votes on it."""
    return tuple(
        f"The {' and '.join(one.parts)} of {one.item!r} {'were' if len(one.parts) > 1 else 'was'} corrected after "
        f"{one.votes:,} vote{'' if one.votes == 1 else 's'} on it ({_utc(one.at)}). Votes before and after count as "
        "votes on the same item, which holds if the correction changes nobody's answer. If it may, start a new study."
        for one in corrections
        if one.votes
    )


def withdrawal_caveats(withdrawals: Sequence[Correction], problem: Problem) -> tuple[str, ...]:
    """Which items were withdrawn after the first vote, and what that costs."""
    if not withdrawals:
        return ()
    gone = "; ".join(
        f"{one.item!r} after {one.votes:,} vote{'' if one.votes == 1 else 's'} on it ({_utc(one.at)})"
        for one in withdrawals
    )
    return (
        f"Withdrawn: {gone}. The votes stay in the record, and the answer is among the other items. The price: a "
        f"proved answer is wrong with probability at most {100 * problem.stated_delta:.3g} % instead "
        f"of {100 * problem.accepted_delta:.3g} %.",
    )


def _utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def table_caveats(
    table: AnswerTable, facts: Facts, items: Sequence[str], k: int, top: Collection[str]
) -> tuple[str, ...]:
    """What to know about answers that decide pairs by themselves: exact ties that matter, circles, what was refused."""
    ends = np.array(sorted(facts), dtype=np.int64).reshape(-1, 2)
    circle = [items[item] for item in cycle_across(len(items), k, ends[:, 0], ends[:, 1])]
    found = []
    if circle:
        ahead = [f"{one} is ahead of {other}" for one, other in zip(circle, [*circle[1:], circle[0]], strict=True)]
        found.append(
            f"Over all cases {', '.join(ahead[:-1])} and {ahead[-1]}: no set of {k} is ahead of all other items. "
            "Choose another k, or judge by another question."
        )
    equal = [(items[low], items[high]) for low, high in table.ties(len(items)) if (low, high) in facts]
    ties = [(low, high) for low, high in equal if (low in top) != (high in top)]
    if ties and not circle:
        low, high = ties[0]
        more = f" (and {len(ties) - 1} more such pairs)" if len(ties) > 1 else ""
        found.append(
            f"{low} and {high} are exactly equal over all cases{more}; {low} is in the top because it is listed first."
        )
    if table.refused:
        found.append(f"{table.refused:,} questions that the judge did not answer clearly count as ties.")
    found += [
        f"Judge {judge!r} gave two answers to the same question on a case, so its answers decide no pair by themselves."
        for judge in sorted(map(str, table.changed))
    ]
    return tuple(found)


def other_studies(count: int) -> tuple[str, ...]:
    """What to know if the storage has several studies of the same items."""
    if count < 2:
        return ()
    return (
        f"{count:,} studies of these items are in this storage. If you report one of them, report all: the best of "
        "several studies is not a proof (docs/guarantee.md, After a look at the results).",
    )


def _same_answers(votes: Sequence[Row]) -> str:
    answers: dict[tuple[str, str, str], list[float | None]] = defaultdict(list)
    for vote in votes:
        if vote.judge is not None and vote.case is None:
            answers[vote.judge, vote.first, vote.second].append(vote.outcome)
    repeats = sum(len(given) - 1 for given in answers.values())
    if repeats < REPEATS or any(len(set(given)) > 1 for given in answers.values()):
        return ""
    total = repeats + len(answers)
    return (
        f"All {repeats:,} questions that were put to the same judge again, in the same order, got the same answer. If "
        f"the judge always answers the same, these {total:,} votes are only {len(answers):,}, and nothing is proved. "
        "Give the study cases, or ask more judges."
    )


def _few_cases(votes: Sequence[Row], listed: int) -> str:
    cases = max(listed, len({vote.case for vote in votes if vote.case is not None}))
    if not 0 < cases < FEW_CASES:
        return ""
    return f"The votes are about {cases} case{'' if cases == 1 else 's'}. The result holds for these, not for others."


def _few_judges(votes: Sequence[Row]) -> str:
    judges = len({vote.judge for vote in votes})
    if not 0 < judges < FEW_JUDGES:
        return ""
    return (
        f"Only {judges} judge{'' if judges == 1 else 's'} answered. So few speak for a public only if they were drawn "
        "from it at random. Ask more judges, and do not choose them by what they like."
    )


def _one_judge(votes: Sequence[Row], family: Family) -> str:
    gains = evidence_by_judge(votes, family)
    total = sum(gains.values())
    if len(gains) < 2 or not total:
        return ""
    judge, most = gains.most_common(1)[0]
    if most <= total / 2:
        return ""
    who = "One judge without a name" if judge is None else f"Judge {judge!r}"
    return f"{who} gave {100 * most / total:.0f} % of the evidence. Ask other judges to make the result less personal."


def evidence_by_judge(votes: Sequence[Row], family: Family) -> Counter[str | None]:
    """What each judge's votes have won for the accounts that bet on them, in nats. Losses do not count."""
    gains: Counter[str | None] = Counter()
    placed = [vote for vote in votes if vote.bet is not None and vote.outcome is not None]
    if not placed:
        return gains
    bets, outcomes = (np.array([getattr(vote, part) for vote in placed], np.float64) for part in ("bet", "outcome"))
    seen = np.where(bets > 0, outcomes, family.flip(outcomes))
    weights = np.array([vote.weight for vote in placed])
    won = weights * np.maximum(family.log_factor(np.abs(bets), 0.0, seen), 0.0)
    for vote, gain in zip(placed, won.tolist(), strict=True):
        gains[vote.judge] += gain
    return gains


def _look_alikes(votes: Sequence[Row]) -> list[str]:
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted({vote.judge for vote in votes if vote.judge is not None}):
        letters = unicodedata.normalize("NFKC", name).casefold()
        plain = "".join(letter for letter in letters if unicodedata.category(letter)[0] not in "CZ")
        groups[plain].append(name)
    return [
        f"Judges {' and '.join(map(repr, names))} count as {len(names)}, though their names differ only in capitals, "
        "spaces or signs that cannot be seen. If they are one judge, void all of them but one."
        for names in groups.values()
        if len(names) > 1
    ]


def _one_side(votes: Sequence[Row], family: Family) -> list[str]:
    sides: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for vote in votes:
        if vote.judge is not None and vote.outcome is not None and vote.outcome != family.tie:
            sides[vote.judge][vote.outcome < family.tie] += 1
    found = []
    for judge, (first, second) in sides.items():
        share = max(first, second) / (first + second)
        if first + second >= ENOUGH_VOTES and share > ONE_SIDE:
            side = "first" if first > second else "second"
            found.append(
                f"Judge {judge!r} preferred the item shown {side} in {100 * share:.0f} % of {first + second:,} "
                "answers. Such votes say little about the items; check how the judge reads the question."
            )
    return found
