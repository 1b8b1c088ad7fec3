"""What the owner sees while a study runs: the verdict, items, judges, pairs and the last votes; what the judges did
(votes, shares of the evidence, what to look at, reasons); and all that is stored about one judge.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from shortlist.analysis.judges import judge_agreements
from shortlist.analysis.ranking import rank_items
from shortlist.analysis.votes import study_votes
from shortlist.core.stopping.base import Verdict
from shortlist.study.caveats import evidence_by_judge
from shortlist.study.events import DROPPED, EXPIRED, LEFT, VOIDED
from shortlist.study.rows import STATUSES, Row
from shortlist.study.rows import counted as counted_rows
from shortlist.study.sql import Database
from shortlist.study.study import Study
from shortlist.web.auth import Kind, has_link
from shortlist.web.display import Content, is_closed, load_display
from shortlist.web.judges import (
    Judge,
    conflicts_of,
    list_conflicts,
    list_judges,
    look_alikes,
    names_by_key,
    notes_of,
    with_names,
)
from shortlist.web.service import Agreements, OpenStudy

MOST_PAIRS = 2000
MOST_RECENT = 50
MOST_POINTS = 400  # of the error bound
SPANS, MOST_BUSY = 30, 12  # of time, and judges with a line of their own
BURST, BURST_SECONDS = 10, 12.0  # answers, faster than somebody can read ten pairs
CROWD, CROWD_SECONDS = 5, 15.0  # judges who come by the open link at the same moment
LARGE_SHARE = 0.5
ONE_SIDE, ENOUGH_VOTES = 0.9, 20
MOST_REMARKS = 200


def state_of(database: Database, opened: OpenStudy) -> str:
    """archived, done, closed, paused or open."""
    if opened.study.archived:
        return "archived"
    if opened.study.verdict.done:
        return "done"
    if is_closed(database, opened.id):
        return "closed"
    return "paused" if opened.study.paused else "open"


def dashboard(database: Database, opened: OpenStudy) -> dict[str, Any]:
    """The fields of `schemas.Dashboard`."""
    study = opened.study
    study.close_due()
    verdict, rows, history = study.examine(), study.rows, study.bound_history
    low, high = votes_left_range(verdict, study.problem.delta)
    filled, names, said = study.filled, names_by_key(database, opened.id), verdict.to_dict()
    return {
        "name": study.name,
        "state": state_of(database, opened),
        "verdict": {**said, "caveats": [with_names(caveat, names) for caveat in said["caveats"]]},
        "plain": plain_sentence(opened, verdict),
        "filled": sum(filled.values()) / len(filled),
        "next_votes": _next_votes(opened, verdict, filled),
        "published": load_display(database, opened.id).published,
        "claims": study.claims,
        "head": study.head._asdict(),
        "votes_left_low": low,
        "votes_left_high": high,
        "counts": study.counts,
        "advice": study.advice,
        "items": _items(opened, verdict, filled),
        "judges": _judges(database, opened, rows),
        "open_link": has_link(database, opened.id, Kind.open_link),
        "bound_history": [_point(*point) for point in history[:: 1 + len(history) // MOST_POINTS]],
        "pairs": _pairs(rows),
        "activity": _activity(rows, names),
        "recent": _recent(study, rows, names),
        "settings": _settings(opened),
    }


def votes_left_range(verdict: Verdict[str], delta: float) -> tuple[float | None, float | None]:
    """A rough range for the number of votes to go. It contained the true number in 89 % of simulated checks.

    Evidence grows by a random walk whose variance is about twice its drift, as log likelihood ratios do. The time to
    gain `missing` nats then has a relative spread of sqrt(2 / missing). Plans are cautious: many studies end sooner
    than planned, so the range reaches further down than up.
    """
    left = verdict.votes_left
    if verdict.done or left is None or not math.isfinite(left):
        return None, None
    missing = max(math.log(max(verdict.error_bound, delta) / delta), 0.5)
    spread = 1 + math.sqrt(2 / missing)
    return left / spread**2, left * spread


def plain_sentence(opened: OpenStudy, verdict: Verdict[str]) -> str:
    """The verdict for people who know nothing of statistics. A proof is stated with its assumption."""
    study, k = opened.study, opened.study.problem.k
    left = study.problem.left
    size = f"the best {k} of {left}" if k > 1 else f"the best of {left}"
    names = joined([opened.display.title(item) for item in verdict.top])
    are, votes = "are" if k > 1 else "is", f"{verdict.votes:,} vote{'' if verdict.votes == 1 else 's'}"
    if verdict.reason == "certified":
        error = f"{100 * verdict.error:.3g} %"
        return f"Proved: {names} {are} {size}. {_assumption(study)} is wrong with probability at most {error}."
    if verdict.reason == "no top":
        return f"There is no {size.removeprefix('the ')}: what is known about the items speaks against every choice."
    if verdict.done:
        return f"The vote limit is reached after {votes}, without a proof. The best guess: {names} {are} {size}."
    if not verdict.votes:
        state = "No vote counts yet" if study.counts["answered"] else "No votes yet"
        return f"{state}. This study looks for {size}."
    return f"Not proved yet. After {votes} the best guess is: {names} {are} {size}."


def _assumption(study: Study) -> str:
    problem = study.problem
    if problem.tolerance:
        most = f"{50 + 100 * problem.tolerance:g} %"
        return f"No other item beats one of these in more than {most} of all votes: this, for items in one order,"
    tops = joined([f"a top {size}" for size in range(problem.k, problem.k + len(study.withdrawn) + 1)])
    counting = ", counting withdrawn items" if study.withdrawn else ""
    return f"If there is {tops} that no other item beats on average{counting}, this"


def joined(names: Sequence[str]) -> str:
    """a, b and c."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def _next_votes(opened: OpenStudy, verdict: Verdict[str], filled: dict[str, float]) -> str:
    """The item on each side of the cutoff about which the proof has least."""
    if verdict.done or not verdict.votes:
        return ""
    sides = [item for item in filled if item in verdict.top], [item for item in filled if item not in verdict.top]
    inside, outside = (min(side, key=lambda item: filled[item]) for side in sides)
    title = opened.display.title
    return (
        f"The next votes are mostly about whether {title(inside)} belongs in ({100 * filled[inside]:.0f} % of the "
        f"evidence is there) and {title(outside)} does not ({100 * filled[outside]:.0f} %)."
    )


def _items(opened: OpenStudy, verdict: Verdict[str], filled: dict[str, float]) -> list[dict[str, Any]]:
    """In the order of the report: the answer first, and each side best first."""
    study = opened.study
    return [
        {
            "title": opened.display.title(place.item), "filled": filled.get(place.item, 0.0),
            "name": place.item, "utility": place.utility, "low": place.low, "high": place.high,
            "chance": place.chance, "proved": place.proved, "top": place.in_top,
            "votes": round(place.votes),
        }
        for place in rank_items(study.problem, study.items, study.tally, verdict).items
    ]  # fmt: skip


def _judges(database: Database, opened: OpenStudy, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """First the judges with a link, then all others who were asked or whose votes were imported."""
    people = {judge.key: judge for judge in list_judges(database, opened.id)}
    others = sorted({row.judge for row in rows if row.judge is not None} - set(people))
    known = [(key, judge.name, judge.active) for key, judge in people.items()]
    return [_judge(opened, *who) for who in known + [(name, name, False) for name in others]]


def agreements_of(opened: OpenStudy) -> Agreements:
    """Each judge costs a fit, so this is computed again only after 2 % more votes, or when votes were withdrawn."""
    study, last = opened.study, opened.agreements
    counted, withdrawn = study.counts["counted"], study.counts["undone"] + study.counts["voided"]
    if last is None or last.withdrawn != withdrawn or counted >= max(1.02 * last.counted, last.counted + 1):
        votes, _ = study_votes(study)
        utilities = np.array([study.utilities[item] for item in study.items])
        found = judge_agreements(study.problem, votes, utilities)
        gains = evidence_by_judge(counted_rows(study.rows), study.problem.family)
        total = sum(gains.values())
        shares = {judge: gain / total for judge, gain in gains.items()} if total else {}
        last = Agreements(counted, withdrawn, {one.judge: one for one in found}, shares)
        opened.agreements = last
    return last


def _judge(opened: OpenStudy, key: str, name: str, active: bool) -> dict[str, Any]:
    study, agreements = opened.study, agreements_of(opened)
    found, count = agreements.judges.get(key), Counter(row.status for row in study.rows_of(key))
    first = None if found is None or not found.position_bias.first.votes else found.position_bias.first
    return {
        "name": name, "active": active, "is_voided": key in study.voided,
        "counts": {status: count[status] for status in STATUSES},
        "share": agreements.shares.get(key),
        "agreement": found.agreement.share if found and found.agreement else None,
        "first_share": first and first.share, "first_low": first and first.low, "first_high": first and first.high,
    }  # fmt: skip


def _point(votes: int, error_bound: float, votes_left: float | None, filled: float) -> dict[str, Any]:
    left = votes_left if votes_left is not None and math.isfinite(votes_left) else None
    return {"votes": votes, "error_bound": error_bound, "votes_left": left, "filled": filled}


def _activity(rows: Sequence[Row], names: dict[str, str]) -> dict[str, Any]:
    """Answers of the busiest judges over time."""
    given = [
        (row.closed_at, names.get(row.judge or "", row.judge or ""))
        for row in rows
        if row.outcome is not None and row.closed_at is not None
    ]
    if not given:
        return {"start": 0.0, "span": 1.0, "judges": {}}
    start, end = min(given)[0], max(given)[0]
    span = max((end - start) / (SPANS - 1e-9), 1.0)
    busiest = {judge for judge, _ in Counter(judge for _, judge in given).most_common(MOST_BUSY)}
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * SPANS)
    for at, judge in given:
        counts[judge if judge in busiest else "others"][min(int((at - start) / span), SPANS - 1)] += 1
    return {"start": start, "span": span, "judges": dict(counts)}


def results_of(database: Database, opened: OpenStudy) -> dict[str, Any]:
    """The fields of `schemas.Results`: what everybody may see, without ratings of single judges or votes."""
    study = opened.study
    study.close_due()
    verdict, display = study.examine(), opened.display
    ranked = rank_items(study.problem, study.items, study.tally, verdict).items
    return {
        "name": study.name, "state": state_of(database, opened), "plain": plain_sentence(opened, verdict),
        "guarantee": verdict.guarantee, "caveats": verdict.caveats, "claims": study.claims,
        "is_proved": verdict.reason == "certified", "k": study.problem.k, "votes": verdict.votes,
        "judges": len({row.judge for row in study.rows if row.status == "counted"}), "head": study.head._asdict(),
        "items": [
            {
                "title": display.title(place.item), "top": place.in_top, "proved": place.proved,
                "image": display.contents.get(place.item, Content()).image, "votes": round(place.votes),
            }
            for place in ranked
        ],
    }  # fmt: skip


def _pairs(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The pairs with most votes."""
    won: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        if row.status == "counted" and row.outcome is not None:
            if row.first < row.second:
                won[row.first, row.second].append(row.outcome)
            else:
                won[row.second, row.first].append(1 - row.outcome)
    most = sorted(won.items(), key=lambda entry: -len(entry[1]))[:MOST_PAIRS]
    return [{"first": one, "second": other, "votes": len(wins), "won": sum(wins)} for (one, other), wins in most]


def _recent(study: Study, rows: Sequence[Row], names: dict[str, str]) -> list[dict[str, Any]]:
    """The last answers, newest first."""
    answered = [row for row in rows if row.question is not None and row.status in ("counted", "undone", "voided")]
    return [
        {
            "id": f"{study.name}.{row.question}", "first": row.first, "second": row.second,
            "judge": names.get(row.judge or "", row.judge),
            "outcome": row.outcome, "at": row.closed_at, "status": row.status,
        }
        for row in sorted(answered, key=lambda row: -row.answered)[:MOST_RECENT]
    ]  # fmt: skip


def _settings(opened: OpenStudy) -> dict[str, Any]:
    study, problem, display = opened.study, opened.study.problem, opened.display
    return {
        "k": problem.k, "delta": problem.delta, "tolerance": problem.tolerance, "max_votes": problem.max_votes,
        "sampling": study.sampling.name, "stopping": study.stopping.name, "ties": display.ties, "blind": display.blind,
        "instructions": display.instructions, "cases": [case.text for case in display.cases],
        "cases_claim": study.cases_claim, "judges_claim": study.judges_claim, "ballot_size": study.ballot_size,
        "min_judges": problem.min_judges,
    }  # fmt: skip


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
        "judges": [_watched(opened, judge, flags[judge.key]) for judge in people],
        "conflicts": conflicts,
        "remarks": _remarks(opened, notes_of(database, opened.id), names),
    }


def _watched(opened: OpenStudy, judge: Judge, flags: list[str]) -> dict[str, Any]:
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
