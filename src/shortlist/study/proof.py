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
from shortlist.core.betting import GRID_SHARE, Ledger
from shortlist.core.draws import draw_number
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import pair_number, top_k
from shortlist.core.revisions import place_import
from shortlist.core.stopping.chains import grid_level, pull
from shortlist.core.stopping.verdict import Verdict
from shortlist.core.units import find_units
from shortlist.errors import BadProblem, BadProof, NothingToAsk
from shortlist.study.ballots import open_ballot
from shortlist.study.claims import NO_CASES
from shortlist.study.create import load_spec, load_study
from shortlist.study.events import Asked, Entry, Event, Imported, Withdrawn, chain, load, origin
from shortlist.study.rows import RowTable
from shortlist.study.state import StudyState, apply, next_question, pending_votes
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


class _Tracer:
    """Follows a study record by record, and keeps the steps that its verdict rests on."""

    def __init__(self) -> None:
        self.marks: Marks = {}
        self.chains: dict[int, list[Step]] = {}
        self.reached: int | None = None  # the record with the verdict

    def follow(self, number: int, event: Event, before: StudyState, state: StudyState) -> None:
        if self.reached is not None:
            return
        known = _certain(before.settled.verdict)
        if _forgets(event):
            self.chains, known = {}, set()
        if isinstance(event, Imported) and event.is_sorted:
            self.marks = {}  # those of the grid are made again
        self._note_marks(number, state.settled.evidence.kept_ledger)
        verdict = state.settled.verdict
        if verdict.reason == "certified":
            self.reached = number
        if verdict.reason == "certified" or _certain(verdict) - known:
            self.extend(number, state)

    def _note_marks(self, number: int, ledger: Ledger) -> None:
        proved = ledger.proved
        now = set(zip(proved.source.tolist(), proved.target.tolist(), strict=True))
        if now != self.marks.keys():
            by_grid = _grid_pairs(ledger, 0)
            self.marks = {
                pair: self.marks.get(pair, (number, "grid" if pair in by_grid else "bets")) for pair in sorted(now)
            }

    def extend(self, number: int, state: StudyState) -> None:
        """With the steps by which the items that look best absorb others at this record."""
        pending, ledger = pending_votes(state), state.settled.evidence.kept_ledger
        search = _Search(number, ledger if pending is None else ledger.doubting(pending), self.marks)
        for u in top_k(ledger.belief.theta, ledger.k).tolist():
            self.chains[u] = search.grow(u, self.chains.get(u, []))


class _Search:
    """Which items absorb which others at one record, step by step."""

    def __init__(self, number: int, ledger: Ledger, marks: Marks) -> None:
        self.number, self.ledger, self.marks = number, ledger, marks
        self.n, self.tolerance = ledger.problem.n, ledger.problem.tolerance
        kinds = (False, True) if self.tolerance else (False,)
        self.pulls = [pull(self.n, ledger.accounts(tolerant)) for tolerant in kinds]
        self.grids = [_grid_pairs(ledger, kind) for kind in range(len(kinds))]

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
            return Step(v, self.number, ("bets", "tolerant")[kind])
        for x in reached:
            if kind == 0 and (x, v) in self.marks:
                return Step(v, *self.marks[x, v], (x,))
            if (x, v) in self.grids[kind]:
                return Step(v, self.number, ("grid", "tolerant grid")[kind], (x,))
        return None


def _forgets(event: Event) -> bool:
    """Whether what was reported before goes: a vote was withdrawn, or imports look sorted."""
    return (isinstance(event, Withdrawn) and bool(event.votes)) or (isinstance(event, Imported) and event.is_sorted)


def _certain(verdict: Verdict[Any]) -> set[Any]:
    return {*verdict.certainly_in, *verdict.certainly_out}


def _grid_pairs(ledger: Ledger, kind: int) -> Pairs:
    """The accounts of the grid that are enough by themselves; 0 is plain, 1 is tolerant."""
    if ledger.imports is None:
        return set()
    source, target, wealth = ledger.grids()[kind]
    is_enough = wealth >= grid_level(ledger.problem, ledger.problem.delta * GRID_SHARE)
    return set(zip(source[is_enough].tolist(), target[is_enough].tolist(), strict=True))


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
    tracer, state = _Tracer(), study.start
    with one_thread():
        for entry in entries:
            before, state = state, apply(entry.event, state)
            tracer.follow(entry.number, entry.event, before, state)
        if tracer.reached is None and entries:
            tracer.extend(len(entries) - 1, state)
    verdict, deltas = study.examine(), [study.problem.delta]
    is_proved = verdict.reason == "certified"
    return {
        "top": list(verdict.top) if is_proved else None,
        "certainly_in": list(verdict.certainly_in),
        "certainly_out": list(verdict.certainly_out),
        "delta": deltas[-1],
        "error": max(deltas),
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
