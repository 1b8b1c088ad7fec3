"""A study as a proof that others can check: its settings, its records, and the verdict with every step that it rests on.

`shortlist.verify` checks such a file against the theorems, without the rest of this package. `replay_proof` also
repeats what was asked and bet: it follows from the records before and the seed, so bets made up later do not pass.
"""

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shortlist import verify
from shortlist.core import loop
from shortlist.core.betting import GRID_SHARE, Accounts, Ledger
from shortlist.core.draws import draw_number
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import pair_number, top_k
from shortlist.core.revisions import is_harder, place_import
from shortlist.core.stopping.chains import AnyPull, capped_pull, grid_level, pull
from shortlist.core.stopping.verdict import Verdict
from shortlist.core.units import find_units
from shortlist.errors import BadProblem, BadProof, NothingToAsk
from shortlist.study.ballots import open_ballot
from shortlist.study.claims import NO_CASES
from shortlist.study.create import load_spec, load_study
from shortlist.study.events import Asked, Changed, Entry, Event, Imported, Withdrawn, chain, load, origin
from shortlist.study.rows import RowTable
from shortlist.study.state import StudyState, apply, goes_back, next_question, pending_votes
from shortlist.study.storage import MemoryStorage
from shortlist.study.study import Study

ALMOST = 1e-9  # relative: bets of another machine may differ in their last digits


class Step(NamedTuple):
    """Evidence against v reached its level at this record. `by` has the items whose accounts it is; None: all that are
    absorbed by then."""

    v: int
    record: int
    kind: str  # bets, tolerant, grid or tolerant grid
    by: tuple[int, ...] | None = None


Pairs = set[tuple[int, int]]  # sources and targets
Marks = dict[tuple[int, int], tuple[int, str]]  # the record and the kind, by source and target


class _Saved(NamedTuple):
    """What was known before the study ended."""

    number: int
    marks: Marks
    chains: dict[int, list[Step]]


class _Tracer:
    """Follows a study record by record, and keeps the steps that its verdict rests on."""

    def __init__(self, start: StudyState) -> None:
        self.state, self.number = start, -1
        self.marks: Marks = {}
        self.chains: dict[int, list[Step]] = {}
        self.reached: int | None = None  # the record with the verdict
        self._saved = _Saved(-1, {}, {})
        self._since: list[tuple[int, Event]] = []  # the end

    def follow(self, number: int, event: Event) -> None:
        """One more record. A study that goes on after its end is followed again from there."""
        back = goes_back(event, self.state) if isinstance(event, Changed) else None
        if back is None:
            return self._note(number, event, apply(event, self.state))
        since, (at, self.marks, self.chains) = self._since, self._saved
        assert self.state.ended is not None
        self.state, self.reached = self.state.ended.before, None
        self._note(at, event, back)
        for later, other in since:
            self.follow(later, other)

    def _note(self, number: int, event: Event, state: StudyState) -> None:
        before, self.state, known = self.state, state, _certain(self.state.settled.verdict)
        if state.ended is not None and before.ended is None:
            self._saved, self._since = _Saved(self.number, dict(self.marks), dict(self.chains)), []
        if state.ended is not None and not isinstance(event, Changed):
            self._since.append((number, event))
        self.number = number
        if self.reached is not None:
            return
        if _forgets(event, before, state):
            self.chains, known = {}, set()
            self.marks = self.marks if isinstance(event, Withdrawn) else {}  # those that are left were made again
        self._note_marks(state.settled.evidence.kept_ledger)
        verdict = state.settled.verdict
        if verdict.reason == "certified" or _certain(verdict) - known:
            self.extend()
        if verdict.reason == "certified":
            self.reached = number

    def _note_marks(self, ledger: Ledger) -> None:
        proved = ledger.proved
        now = set(zip(proved.source.tolist(), proved.target.tolist(), strict=True))
        if now != self.marks.keys():
            by_grid = _grid_pairs(ledger, 0)
            new = {pair: (self.number, "grid" if pair in by_grid else "bets") for pair in sorted(now)}
            self.marks = {pair: self.marks.get(pair, mark) for pair, mark in new.items()}

    def extend(self) -> None:
        """With the steps by which the items that look best absorb others at this record."""
        pending, ledger = pending_votes(self.state), self.state.settled.evidence.kept_ledger
        search = _Search(self.number, ledger if pending is None else ledger.doubting(pending), self.marks)
        for u in top_k(ledger.belief.theta, ledger.k).tolist():
            self.chains[u] = search.grow(u, self.chains.get(u, []))


class _Search:
    """Which items absorb which others at one record, step by step."""

    def __init__(self, number: int, ledger: Ledger, marks: Marks) -> None:
        self.number, self.ledger, self.marks = number, ledger, marks
        self.n, self.tolerance = ledger.problem.n, ledger.problem.tolerance
        kinds = (False, True) if self.tolerance else (False,)
        self.pulls: list[AnyPull] = [pull(self.n, ledger.accounts(tolerant)) for tolerant in kinds]
        self.grids = [_grid_pairs(ledger, kind) for kind in range(len(kinds))]
        self.alone: Pairs = set()  # accounts that are enough by themselves, each judge up to a cap
        if ledger.has_caps:
            self.pulls, self.alone = [capped_pull(ledger, ledger.problem.delta)], _capped_pairs(ledger)

    def grow(self, u: int, chain: Sequence[Step]) -> list[Step]:
        """The chain of u with every step that can be added. One step of it may be tolerant, to several items."""
        found = self._closed(u, chain)
        if self.tolerance:
            found = self._closed(u, found + self._steps([u, *(step.v for step in found)], 1))
        return found

    def _closed(self, u: int, chain: Sequence[Step]) -> list[Step]:
        found = list(chain)
        while new := self._steps([u, *(step.v for step in found)], 0):
            found += new
        return found

    def _steps(self, reached: Sequence[int], kind: int) -> list[Step]:
        """The next steps from these items, all of one kind: 0 is plain, 1 is tolerant."""
        inside = np.zeros((self.n, 1), dtype=np.bool_)
        inside[list(reached)] = True
        enough = (self.pulls[kind].on(inside)[:, 0] >= self.ledger.enough).tolist()
        found = (self._step(v, reached, kind, enough[v]) for v in range(self.n) if not inside[v, 0])
        return [step for step in found if step is not None]

    def _step(self, v: int, reached: Sequence[int], kind: int, is_enough: bool) -> Step | None:
        if is_enough:
            return Step(v, self.number, ("bets", "tolerant")[kind], self._givers(reached, v))
        for x in reached:
            if (x, v) in self.alone:
                return Step(v, self.number, "bets", (x,))
            if kind == 0 and (x, v) in self.marks:
                return Step(v, *self.marks[x, v], (x,))
            if (x, v) in self.grids[kind]:
                return Step(v, self.number, ("grid", "tolerant grid")[kind], (x,))
        return None

    def _givers(self, reached: Sequence[int], v: int) -> tuple[int, ...] | None:
        """With caps for judges only the accounts that won count, because a judge may have won in one that lost."""
        if not self.ledger.has_caps:
            return None
        wealth = self.ledger.wealth(np.array(reached), np.full(len(reached), v))
        return tuple(x for x, won in zip(reached, wealth.tolist(), strict=True) if won > 0)


def _forgets(event: Event, before: StudyState, state: StudyState) -> bool:
    """Whether what was reported before goes: a vote was withdrawn, imports look sorted, or a setting is harder."""
    if isinstance(event, Changed):
        return is_harder(state.settled.problem, before.settled.problem)
    return (isinstance(event, Withdrawn) and bool(event.votes)) or (isinstance(event, Imported) and event.is_sorted)


def _certain(verdict: Verdict[Any]) -> set[Any]:
    return {*verdict.certainly_in, *verdict.certainly_out}


def _grid_pairs(ledger: Ledger, kind: int) -> Pairs:
    """The accounts of the grid that are enough by themselves; 0 is plain, 1 is tolerant."""
    grids = ledger.grids()
    return _enough(grids[kind], grid_level(ledger.problem, ledger.problem.delta * GRID_SHARE)) if grids else set()


def _capped_pairs(ledger: Ledger) -> Pairs:
    """The accounts that are enough by themselves, with each judge's gains up to a cap."""
    source, target, wealth = ledger.capped(ledger.problem.delta).accounts()
    left = wealth - ledger.accounts().losses(ledger.problem.n)[target]
    return _enough(Accounts(source, target, left), ledger.enough)


def _enough(accounts: Accounts, level: float) -> Pairs:
    won = accounts.wealth >= level
    return set(zip(accounts.source[won].tolist(), accounts.target[won].tolist(), strict=True))


def make_proof(study: Study) -> str:
    """The study as a proof: what is proved so far, at any time. Raises BadProblem if it is of a kind without proofs."""
    if study.stopping.name != "edges" or study.problem.family.is_measured:
        raise BadProblem(
            "only studies with the stopping rule edges and wins, ties or grades as votes have a proof that others can "
            f"check; this one has {study.stopping.name} and {study.problem.family.name} votes"
        )
    study.refresh()
    spec, entries = study.storage.spec(study.name), study.entries
    if not spec:
        raise BadProblem("a study with a rule of your own has no proof that others can check; use a built-in rule")
    written = study.storage.written(study.name)[: len(entries)]
    lines, last = [_line({**verify.FORMAT, "spec": spec})], origin(spec)
    for entry, (kind, body) in zip(entries, written, strict=True):
        now = chain(last, entry.number, entry.at, kind, body)
        record = {"number": entry.number, "at": entry.at, "kind": kind, "body": json.loads(body), "previous": last}
        lines.append(_line({**record, "hash": now}))
        last = now
    verdict = _proved(study, entries)
    return "\n".join([*lines, _line({"verdict": verdict, "hash": verify.sha(lines[0], last, _line(verdict))}), ""])


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _proved(study: Study, entries: Sequence[Entry]) -> dict[str, Any]:
    """The verdict with its chains."""
    tracer = _Tracer(study.start)
    with one_thread():
        for entry in entries:
            tracer.follow(entry.number, entry.event)
        if tracer.reached is None and entries:
            tracer.number = len(entries) - 1
            tracer.extend()
    verdict, problem = study.examine(), study.problem
    is_proved = verdict.reason == "certified"
    return {
        "top": list(verdict.top) if is_proved else None,
        "certainly_in": list(verdict.certainly_in),
        "certainly_out": list(verdict.certainly_out),
        "delta": problem.delta,
        "error": problem.stated_delta,
        "record": len(entries) - 1 if tracer.reached is None else tracer.reached,
        "chains": [[u, chain] for u, chain in tracer.chains.items() if chain],
    }


def write_proof(study: Study, file: str | Path) -> None:
    """Write the proof of a study to a file: see `make_proof`. Raises BadProof if it cannot be written."""
    text = make_proof(study)
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as reason:
        raise BadProof(f"cannot write {file}: {reason.strerror or reason}") from None
