"""What the owner sees while a study runs: the verdict, items, judges, pairs and the last votes."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from shortlist.analysis.judges import JudgeAgreement, judge_agreements
from shortlist.analysis.ranking import rank_items
from shortlist.analysis.votes import study_votes
from shortlist.core.stopping.verdict import Verdict
from shortlist.study.rows import STATUSES, Row
from shortlist.study.sql import Database
from shortlist.study.study import Study
from shortlist.web.auth import has_open_link, list_judges
from shortlist.web.display import is_closed
from shortlist.web.service import Agreements, OpenStudy

MOST_PAIRS = 2000
MOST_RECENT = 50
MOST_POINTS = 400  # of the error bound


def state_of(database: Database, opened: OpenStudy) -> str:
    """open, paused, closed or done."""
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
    return {
        "name": study.name,
        "state": state_of(database, opened),
        "verdict": verdict.to_dict(),
        "claims": study.claims,
        "head": study.head._asdict(),
        "votes_left_low": low,
        "votes_left_high": high,
        "counts": study.counts,
        "advice": study.advice,
        "items": _items(study, verdict),
        "judges": _judges(database, opened, rows),
        "open_link": has_open_link(database, opened.id),
        "bound_history": [_point(*point) for point in history[:: 1 + len(history) // MOST_POINTS]],
        "pairs": _pairs(rows),
        "recent": _recent(study, rows),
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


def _items(study: Study, verdict: Verdict[str]) -> list[dict[str, Any]]:
    """In the order of the report: the answer first, and each side best first."""
    return [
        {
            "name": place.item, "utility": place.utility, "low": place.low, "high": place.high,
            "chance": place.chance, "proved": place.proved, "top": place.in_top,
            "votes": round(place.votes),
        }
        for place in rank_items(study.problem, study.items, study.tally, verdict).items
    ]  # fmt: skip


def _judges(database: Database, opened: OpenStudy, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """First the judges with a link, then all others who were asked or whose votes were imported."""
    active = {judge.name: judge.active for judge in list_judges(database, opened.id)}
    others = sorted({row.judge for row in rows if row.judge is not None} - set(active))
    found = _agreements(opened).judges
    return [_judge(opened.study, name, active.get(name, False), found.get(name)) for name in [*active, *others]]


def _agreements(opened: OpenStudy) -> Agreements:
    """Each judge costs a fit, so this is computed again only after 2 % more votes, or when votes were withdrawn."""
    study, last = opened.study, opened.agreements
    counted, withdrawn = study.counts["counted"], study.counts["undone"] + study.counts["voided"]
    if last is None or last.withdrawn != withdrawn or counted >= max(1.02 * last.counted, last.counted + 1):
        votes, _ = study_votes(study)
        utilities = np.array([study.utilities[item] for item in study.items])
        found = judge_agreements(study.problem, votes, utilities)
        last = Agreements(counted, withdrawn, {one.judge: one for one in found})
        opened.agreements = last
    return last


def _judge(study: Study, name: str, active: bool, found: JudgeAgreement | None) -> dict[str, Any]:
    count = Counter(row.status for row in study.rows_of(name))
    first = None if found is None or not found.position_bias.first.votes else found.position_bias.first
    return {
        "name": name, "active": active, "is_voided": name in study.voided,
        "counts": {status: count[status] for status in STATUSES},
        "agreement": found.agreement.share if found and found.agreement else None,
        "first_share": first and first.share, "first_low": first and first.low, "first_high": first and first.high,
    }  # fmt: skip


def _point(votes: int, error_bound: float, votes_left: float | None) -> dict[str, Any]:
    left = votes_left if votes_left is not None and math.isfinite(votes_left) else None
    return {"votes": votes, "error_bound": error_bound, "votes_left": left}


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


def _recent(study: Study, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The last answers, newest first."""
    answered = [row for row in rows if row.question is not None and row.status in ("counted", "undone", "voided")]
    return [
        {
            "id": f"{study.name}.{row.question}", "first": row.first, "second": row.second, "judge": row.judge,
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
