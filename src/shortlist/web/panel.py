"""What the owner sees of the judges: votes, shares of the evidence, what to look at, reasons; and all that is stored
about one judge."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from shortlist.study.events import DROPPED, EXPIRED, LEFT, VOIDED
from shortlist.study.rows import Row
from shortlist.study.sql import Database
from shortlist.web.dashboard import agreements_of
from shortlist.web.judges import Judge, conflicts_of, list_conflicts, list_judges, look_alikes, notes_of
from shortlist.web.service import OpenStudy

BURST, BURST_SECONDS = 10, 12.0  # answers, faster than somebody can read ten pairs
CROWD, CROWD_SECONDS = 5, 15.0  # judges who come by the open link at the same moment
LARGE_SHARE = 0.5
ONE_SIDE, ENOUGH_VOTES = 0.9, 20
MOST_REMARKS = 200


def panel(database: Database, opened: OpenStudy) -> dict[str, Any]:
    """The fields of `schemas.Panel` that come from the votes and the judges."""
    opened.study.close_due()
    people = list_judges(database, opened.id)
    flags = _flags(opened, people)
    names, by_id = {judge.key: judge.name for judge in people}, {judge.id: judge.name for judge in people}
    conflicts = [
        {"judge": by_id[judge], "item": item, "declared": declared}
        for judge, item, declared in list_conflicts(database, opened.id)
    ]
    return {
        "judges": [_judge(opened, judge, flags[judge.key]) for judge in people],
        "conflicts": conflicts,
        "remarks": _remarks(opened, notes_of(database, opened.id), names),
    }


def _judge(opened: OpenStudy, judge: Judge, flags: list[str]) -> dict[str, Any]:
    count = Counter(row.status for row in opened.study.rows_of(judge.key))
    return {
        "name": judge.name, "pseudonym": judge.key, "email": judge.email,
        "state": "voided" if judge.key in opened.study.voided else judge.state, "open_link": judge.is_open,
        "active": judge.active, "joined": judge.created, "votes": count["counted"] + count["answered"],
        "skips": count["skipped"], "lost": count["lost"], "late": count["late"],
        "share": agreements_of(opened).shares.get(judge.key), "flags": flags,
    }  # fmt: skip


def _remarks(opened: OpenStudy, notes: dict[int, str], names: dict[str, str]) -> list[dict[str, Any]]:
    """What judges wrote, and why they skipped, newest first. The judge's own words say more than the kind of skip."""
    found = []
    for row in reversed(opened.study.rows):
        text = notes.get(-1 if row.question is None else row.question) or (row.reason if _is_skip(row) else "")
        if text and row.status not in ("pending", "answered"):
            named = names.get(row.judge or "", row.judge or "")
            found.append(
                {"judge": named, "first": row.first, "second": row.second, "outcome": row.outcome, "text": text}
            )
        if len(found) == MOST_REMARKS:
            break
    return found


def _is_skip(row: Row) -> bool:
    """Whether the judge skipped it; the service closes questions too."""
    return row.status in ("skipped", "lost") and row.reason not in (DROPPED, EXPIRED, LEFT, VOIDED)


def _flags(opened: OpenStudy, people: Sequence[Judge]) -> dict[str, list[str]]:
    flags: dict[str, list[str]] = {judge.key: [] for judge in people}
    keys = {judge.name: judge.key for judge in people}
    for group in look_alikes(keys):
        for name in group:
            others = ", ".join(other for other in group if other != name)
            flags[keys[name]].append(f"The name looks like {others}.")
    for judge in people:
        flags[judge.key] += [text for text in (_crowd(judge, people), *_habits(opened, judge.key)) if text]
    return flags


def _crowd(judge: Judge, people: Sequence[Judge]) -> str:
    near = [other for other in people if other.is_open and abs(other.created - judge.created) <= CROWD_SECONDS]
    if not judge.is_open or len(near) < CROWD:
        return ""
    return f"Came by the open link within {CROWD_SECONDS:.0f} seconds of {len(near) - 1} others."


def _habits(opened: OpenStudy, key: str) -> list[str]:
    """What stands out in the votes of one judge."""
    agreements = agreements_of(opened)
    found, share = agreements.judges.get(key), agreements.shares.get(key, 0.0)
    texts = [_burst(opened.study.rows_of(key))]
    if share > LARGE_SHARE and len(agreements.shares) > 1:
        texts.append(f"Gave {100 * share:.0f} % of the evidence.")
    first = None if found is None else found.position_bias.first
    if first is not None and first.votes >= ENOUGH_VOTES and max(first.share, 1 - first.share) > ONE_SIDE:
        side = "A" if first.share > ONE_SIDE else "B"
        texts.append(f"Chose {side} in {100 * max(first.share, 1 - first.share):.0f} % of {first.votes:.0f} answers.")
    return texts


def _burst(rows: Sequence[Row]) -> str:
    """The most answers in the shortest time."""
    times = sorted(row.closed_at for row in rows if row.outcome is not None and row.closed_at is not None)
    spans = [late - early for early, late in zip(times, times[BURST - 1 :], strict=False)]
    if not spans or min(spans) > BURST_SECONDS:
        return ""
    return f"Gave {BURST} answers within {max(min(spans), 0.1):.1f} seconds."


def personal_data(database: Database, opened: OpenStudy, judge: Judge) -> dict[str, Any]:
    """The fields of `schemas.PersonalData`."""
    notes = notes_of(database, opened.id, judge.id)
    answers = [
        {
            "id": f"{opened.study.name}.{row.question}", "first": row.first, "second": row.second,
            "outcome": row.outcome, "status": row.status, "reason": row.reason,
            "note": notes.get(row.question, ""), "asked_at": row.asked_at, "closed_at": row.closed_at,
        }
        for row in opened.study.rows_of(judge.key)
        if row.question is not None
    ]  # fmt: skip
    return {
        "name": judge.name, "pseudonym": judge.key, "email": judge.email, "joined": judge.created,
        "conflicts": sorted(conflicts_of(database, judge.id)), "answers": answers,
    }  # fmt: skip
