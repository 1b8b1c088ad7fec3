"""What the owner sees while a study runs: the verdict, items, judges, pairs and the last votes."""

import math
from typing import Any

from shortlist.certificates.verdict import Verdict
from shortlist.findings.sides import wilson
from shortlist.findings.standing import standing
from shortlist.study.sql import Database
from shortlist.study.study import Study
from shortlist.web.marks import past
from shortlist.web.people import all_judges, has_open_link
from shortlist.web.sheet import is_closed
from shortlist.web.shelf import Opened
from shortlist.web.watch import Tab, Watch, agreement, counts

MOST_PAIRS = 2000


def state_of(database: Database, opened: Opened) -> str:
    if opened.study.verdict.done:
        return "done"
    if is_closed(database, opened.id):
        return "closed"
    return "paused" if opened.study.paused else "open"


def dashboard(database: Database, opened: Opened) -> dict[str, Any]:
    study, watch = opened.study, opened.watch
    study.refresh()
    verdict = study.examine()
    with watch.lock:
        watch.fold(database.since(study.name, watch.read))
        pairs = counts(watch.boxes)
        judges = _judges(database, opened)
        recent = _recent(study, watch)
    low, high = votes_left_range(verdict, study.problem.delta)
    return {
        "name": study.name,
        "state": state_of(database, opened),
        "verdict": _verdict(verdict, study),
        "votes_left_low": low,
        "votes_left_high": high,
        "out": len(study.out),
        "advice": study.advice,
        "items": _items(study, verdict),
        "judges": judges,
        "open_link": has_open_link(database, opened.id),
        "past": [{"votes": votes, "error_bound": bound} for votes, bound in past(database, opened.id)],
        "pairs": _pairs(study, pairs),
        "recent": recent,
        "settings": _settings(opened),
    }


def votes_left_range(verdict: Verdict[str], delta: float) -> tuple[float | None, float | None]:
    """A rough range around the votes to go, which held the truth in 89 % of simulated looks.

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


def _verdict(verdict: Verdict[str], study: Study) -> dict[str, Any]:
    return {
        "sentence": str(verdict),
        "guarantee": verdict.guarantee,
        "done": verdict.done,
        "reason": verdict.reason,
        "top": list(verdict.top),
        "error_bound": float(verdict.error_bound),
        "delta": study.problem.delta,
        "votes": verdict.votes,
        "votes_left": _finite(verdict.votes_left),
    }


def _items(study: Study, verdict: Verdict[str]) -> list[dict[str, Any]]:
    """In the order of the report: the answer first, and each side best first."""
    return [
        {
            "name": place.item, "utility": place.utility, "low": place.low, "high": place.high,
            "chance": place.chance, "certainly": place.certain or "undecided", "top": place.inside,
            "votes": round(place.votes),
        }
        for place in standing(study.problem, study.items, study.tally, verdict).places
    ]  # fmt: skip


def _judges(database: Database, opened: Opened) -> list[dict[str, Any]]:
    """Those with a link first, then any other who voted."""
    watch, known = opened.watch, all_judges(database, opened.id)
    active = {person.name: person.active for person in known}
    others = [name for name in watch.tabs if name is not None and name not in active]
    return [_judge(watch, name, active.get(name, False)) for name in [*active, *others]]


def _judge(watch: Watch, name: str, active: bool) -> dict[str, Any]:
    tab = watch.tabs.get(name, Tab())
    first = wilson(tab.first_wins, tab.votes)
    return {
        "name": name, "active": active, "voided": name in watch.voided, "votes": tab.votes, "skips": tab.skips,
        "out": tab.out, "undone": tab.undone, "agreement": agreement(watch.boxes.values(), name),
        "first_share": first.share if tab.votes else None, "first_low": first.low, "first_high": first.high,
    }  # fmt: skip


def _pairs(study: Study, pairs: Any) -> list[dict[str, Any]]:
    most = sorted(pairs, key=lambda row: -row[2])[:MOST_PAIRS]
    return [
        {"first": study.items[i], "second": study.items[j], "votes": votes, "won": won} for i, j, votes, won in most
    ]


def _recent(study: Study, watch: Watch) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{study.name}.{ballot.question}", "first": study.items[ballot.first],
            "second": study.items[ballot.second], "judge": ballot.judge, "outcome": ballot.outcome, "at": ballot.at,
            "undone": ballot.question in watch.undone,
        }
        for ballot in reversed(watch.recent)
    ]  # fmt: skip


def _settings(opened: Opened) -> dict[str, Any]:
    problem, sheet = opened.study.problem, opened.sheet
    return {
        "k": problem.k, "delta": problem.delta, "tolerance": problem.tolerance, "max_votes": problem.max_votes,
        "ties": sheet.ties, "blind": sheet.blind, "instructions": sheet.instructions,
        "cases": [case.text for case in sheet.cases],
    }  # fmt: skip


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
