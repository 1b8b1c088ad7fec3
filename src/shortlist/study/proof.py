"""A study as a proof that others can check: its settings, its records, and the verdict with every step it rests on.

`shortlist.verify` checks such a file against the theorems, without the rest of this package. `replay_proof` also
repeats what was asked and bet: it follows from the records before and the seed, so bets made up later do not pass.
"""

import copy
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shortlist import verify
from shortlist.core.betting import GRID_SHARE, Accounts, Ledger
from shortlist.core.draws import draw_number
from shortlist.core.linalg import one_thread
from shortlist.core.pairs import Flags, pair_number
from shortlist.core.revisions import is_harder
from shortlist.core.sampling.ballot import with_bets
from shortlist.core.stopping.base import Verdict
from shortlist.core.stopping.chains import AnyPull, capped_pull, grid_level, pull
from shortlist.core.stopping.cuts import Network, Search
from shortlist.core.units import is_shared
from shortlist.errors import BadProblem, BadProof, NothingToAsk
from shortlist.study.claims import NO_CASES
from shortlist.study.create import load_study
from shortlist.study.events import Asked, Changed, Entry, Event, Imported, Withdrawn, chain, load, origin
from shortlist.study.importing import ImportRows, earlier_rows, fix_bets, look_sorted
from shortlist.study.questions import open_ballot, questions_of
from shortlist.study.rows import RowTable
from shortlist.study.state import StudyState, apply, goes_back, next_question, pending_votes
from shortlist.study.storage import MemoryStorage
from shortlist.study.study import Study

PROOF = "proof"  # the name of a study that is read from a proof
SAID = ("top", "certainly_in", "certainly_out")
ALMOST = 1e-9  # relative: bets of another machine may differ in their last digits


class Step(NamedTuple):
    """Evidence against v reached its level at this record. `by` has the items whose accounts it is; None: all that are
    absorbed by then."""

    v: int
    record: int
    kind: (
        str  # bets, tolerant, grid, tolerant grid, table: known answers alone, or withdrawn: the item behind all others
    )
    by: tuple[int, ...] | None = None
    delta: float | None = None  # a smaller one whose level it reached: with caps for judges that may be easier


Pairs = set[tuple[int, int]]  # sources and targets
Marks = dict[tuple[int, int], tuple[int, str]]  # the record and the kind, by source and target


class _Tracer:
    """Follows a study record by record, and keeps the steps that its verdict rests on."""

    def __init__(self, start: StudyState) -> None:
        self.state, self.number = start, -1
        self.steps: _Absorbed | _Rejected = _Rejected() if start.settled.stopping.name == "cuts" else _Absorbed()
        self.reached: int | None = None  # the record with the verdict
        self._saved = -1, self.steps  # before the study ended
        self._since: list[tuple[int, Event]] = []  # the end

    def follow(self, number: int, event: Event) -> None:
        """One more record. A study that goes on after its end is followed again from there."""
        back = goes_back(event, self.state) if isinstance(event, Changed) else None
        if back is None:
            return self._note(number, event, apply(event, self.state))
        since, (at, self.steps) = self._since, self._saved
        assert self.state.ended is not None
        self.state, self.reached = self.state.ended.before, None
        self._note(at, event, back)
        for later, other in since:
            self.follow(later, other)

    def _note(self, number: int, event: Event, state: StudyState) -> None:
        before, self.state, known = self.state, state, _certain(self.state.settled.verdict)
        if state.ended is not None and before.ended is None:
            self._saved, self._since = (self.number, copy.deepcopy(self.steps)), []
        if state.ended is not None and not isinstance(event, Changed):
            self._since.append((number, event))
        self.number = number
        if self.reached is not None:
            return
        if _forgets(event, before, state):
            keeps = isinstance(event, Withdrawn) or (isinstance(event, Changed) and "withdrawn" in event.settings)
            self.steps.forget(keeps)
            known = set()
        self.steps.note_marks(number, *self._ledgers())
        verdict = state.settled.verdict
        if verdict.done or _certain(verdict) - known:
            self.extend()
        if verdict.done:  # what happens later does not change it, also if the vote budget ended the study
            self.reached = number

    def extend(self) -> None:
        """With the steps that can be made at this record."""
        self.steps.extend(self.number, *self._ledgers(), self.state.settled.verdict)

    def _ledgers(self) -> tuple[Ledger, Ledger]:
        """The ledger, and the same with pending questions as lost."""
        pending, ledger = pending_votes(self.state), self.state.settled.evidence.kept_ledger
        return ledger, ledger if pending is None else ledger.doubting(pending)


class _Absorbed:
    """The steps of `edges`: a chain for each item that looked best, and the marks."""

    def __init__(self) -> None:
        self.marks: Marks = {}
        self.chains: dict[int, list[Step]] = {}

    def forget(self, keeps_marks: bool) -> None:
        self.chains = {}
        self.marks = self.marks if keeps_marks else {}  # those that are left were made again

    def note_marks(self, number: int, ledger: Ledger, sure: Ledger) -> None:
        now = _ends(ledger.proved) - _ends(ledger.facts)
        if now != self.marks.keys():
            by_grid = _grid_pairs(ledger, 0)
            new = {pair: (number, "grid" if pair in by_grid else "bets") for pair in sorted(now)}
            self.marks = {pair: self.marks.get(pair, mark) for pair, mark in new.items()}

    def extend(self, number: int, ledger: Ledger, sure: Ledger, verdict: Verdict[int]) -> None:
        """With the steps by which the items that look best absorb others at this record."""
        searches = [_Search(number, sure, self.marks)]
        if ledger.has_caps and verdict.error_bound < ledger.problem.delta:
            searches.append(_Search(number, sure, {}, verdict.error_bound))
        for search in searches:
            for u in ledger.top.tolist():
                self.chains[u] = search.grow(u, self.chains.get(u, []))

    @property
    def written(self) -> dict[str, Any]:
        return {"chains": [[u, chain] for u, chain in self.chains.items() if chain]}


class _Rejected:
    """The steps of `cuts`: pairs (x, y) so that all sets with x outside and y inside were rejected, each with its
    record, its kind, and the place in `paid` of how what is lost across these sets is paid."""

    def __init__(self) -> None:
        self.steps: dict[tuple[int, int], tuple[int, str, int]] = {}
        self.paid: list[list[tuple[int, int, float, float]]] = [[]]

    def forget(self, keeps_marks: bool) -> None:
        self.steps, self.paid = {}, [[]]

    def note_marks(self, number: int, ledger: Ledger, sure: Ledger) -> None:
        """With what is new at this record: facts, marks, accounts of the grid. Marks rest on what was known before."""
        by_grid = _grid_pairs(ledger, 0)
        self._add(number, "withdrawn" if ledger.problem.withdrawn else "table", _ends(ledger.facts))
        if new := _ends(ledger.proved) - self.steps.keys() - by_grid:
            network = self._network(sure)
            flows = [(x, y, network.flow(_only(sure, x), y).through) for x, y in sorted(new)]
            for x, y, flow in flows:
                self._add(number, "cut", {(x, y)}, network.paid(flow))
        self._add(number, "grid", by_grid)

    def extend(self, number: int, ledger: Ledger, sure: Ledger, verdict: Verdict[int]) -> None:
        """With what is outside if one of the items is that look best: by direct accounts, and for a proof by least
        cuts."""
        network, level = self._network(sure), ledger.enough
        search = Search(network, ledger.belief.theta)
        for u in search.members:
            pull, paid = network.pull(_only(sure, u)), network.paid(network.flow(_only(sure, u)).through)
            for other in [None, *(search.others if verdict.done else ())]:
                out = self._outside(sure, u)
                if other is not None and not out[other]:
                    value, _, flow = network.flow(out, other)
                    self._add(number, "cut", {(u, other)} if value >= level else set(), network.paid(flow))
                while (new := (pull.on(out[:, None])[:, 0] >= level) & ~out).any():
                    self._add(number, "cut", {(u, v) for v in np.flatnonzero(new).tolist()}, paid)
                    out = self._outside(sure, u)

    def _network(self, ledger: Ledger) -> Network:
        """The accounts of the ledger, with all that is known instead of its marks."""
        ends = np.array([*self.steps], dtype=np.int64).reshape(-1, 2)
        return Network(ledger.with_only_marks(ends[:, 0], ends[:, 1]))

    def _outside(self, ledger: Ledger, u: int) -> Flags:
        """The items that are known to be outside if u is."""
        found = [u]
        for x in found:
            found += [y for z, y in self.steps if z == x and y not in found]
        return np.isin(np.arange(ledger.problem.n), found)

    def _add(
        self, number: int, kind: str, pairs: Pairs, paid: list[tuple[int, int, float, float]] | None = None
    ) -> None:
        new = sorted(pairs - self.steps.keys())
        if new and paid and not any(one is paid for one in self.paid):
            self.paid.append(paid)
        place = next((at for at, one in enumerate(self.paid) if one is paid), 0)
        self.steps |= dict.fromkeys(new, (number, kind, place))

    @property
    def written(self) -> dict[str, Any]:
        return {"chains": [[*pair, *step] for pair, step in self.steps.items()], "paid": self.paid}


def _only(ledger: Ledger, item: int) -> Flags:
    only: Flags = np.arange(ledger.problem.n) == item
    return only


class _Search:
    """Which items absorb which others at one record, step by step."""

    def __init__(self, number: int, ledger: Ledger, marks: Marks, delta: float | None = None) -> None:
        """`delta`: one that is smaller than that of the study."""
        self.number, self.ledger, self.marks, self.delta = number, ledger, marks, delta
        self.level = ledger.enough if delta is None else ledger.level(delta)
        self.n, self.tolerance = ledger.problem.n, ledger.problem.tolerance
        kinds = (False, True) if self.tolerance else (False,)
        self.pulls: list[AnyPull] = [pull(self.n, ledger.accounts(tolerant)) for tolerant in kinds]
        self.grids = [_grid_pairs(ledger, kind) for kind in range(len(kinds))]
        self.facts = _ends(ledger.facts)
        self.fact = "withdrawn" if ledger.problem.withdrawn else "table"
        self.alone: Pairs = set()  # accounts that are enough by themselves, each judge up to a cap
        if ledger.has_caps:
            used = delta or ledger.problem.delta
            self.pulls, self.alone = [capped_pull(ledger, used)], _capped_pairs(ledger, used)

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
        enough = (self.pulls[kind].on(inside)[:, 0] >= self.level).tolist()
        found = (self._step(v, reached, kind, enough[v]) for v in range(self.n) if not inside[v, 0])
        return [step for step in found if step is not None]

    def _step(self, v: int, reached: Sequence[int], kind: int, is_enough: bool) -> Step | None:
        if is_enough:
            return Step(v, self.number, ("bets", "tolerant")[kind], self._givers(reached, v), self.delta)
        for x in reached:
            if (x, v) in self.facts:
                return Step(v, self.number, self.fact, (x,))
            if (x, v) in self.alone:
                return Step(v, self.number, "bets", (x,), self.delta)
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
    is_same = before.table is state.table and not isinstance(event, Withdrawn)
    if not (is_same or before.facts <= state.facts):
        return True
    return (isinstance(event, Withdrawn) and bool(event.votes)) or (isinstance(event, Imported) and event.is_sorted)


def _certain(verdict: Verdict[Any]) -> set[Any]:
    return {*verdict.certainly_in, *verdict.certainly_out}


def _grid_pairs(ledger: Ledger, kind: int) -> Pairs:
    """The accounts of the grid that are enough by themselves; 0 is plain, 1 is tolerant."""
    grids = ledger.grids()
    return _enough(grids[kind], grid_level(ledger.problem, ledger.problem.delta * GRID_SHARE)) if grids else set()


def _capped_pairs(ledger: Ledger, delta: float) -> Pairs:
    """The accounts that are enough by themselves, with each judge's gains up to a cap."""
    source, target, wealth = ledger.capped(delta).accounts()
    left = wealth - ledger.accounts().losses(ledger.problem.n)[target]
    return _enough(Accounts(source, target, left), ledger.level(delta))


def _enough(accounts: Accounts, level: float) -> Pairs:
    won = accounts.wealth >= level
    return _ends(Accounts(accounts.source[won], accounts.target[won], accounts.wealth[won]))


def _ends(accounts: Accounts) -> Pairs:
    return set(zip(accounts.source.tolist(), accounts.target.tolist(), strict=True))


def make_proof(study: Study) -> str:
    """The study as a proof: what is proved so far, at any time. Raises BadProblem if it is of a kind without proofs."""
    if study.stopping.name not in verify.KINDS or study.problem.family.is_measured:
        raise BadProblem(
            "only studies with the stopping rule edges or cuts, and wins, ties or grades as votes, have a proof that "
            f"others can check; this one has {study.stopping.name} and {study.problem.family.name} votes"
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
        **tracer.steps.written,
    }


def write_proof(study: Study, file: str | Path) -> None:
    """Write the proof of a study to a file: see `make_proof`. Raises BadProof if it cannot be written."""
    text = make_proof(study)
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as reason:
        raise BadProof(f"cannot write {file}: {reason.strerror or reason}") from None


def is_proof(file: str | Path) -> bool:
    """Whether the file looks like a proof."""
    try:
        with Path(file).open(encoding="utf-8") as lines:
            return str(verify.FORMAT["format"]) in lines.readline(200)
    except (OSError, UnicodeDecodeError):
        return False


def check_proof(file: str | Path) -> dict[str, Any]:
    """What the proof in a file proves, by `shortlist.verify`. Raises BadProof."""
    try:
        return verify.check(_read(file))
    except verify.Bad as reason:
        raise BadProof(f"{file} proves nothing: {reason}") from None


def _read(file: str | Path) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as reason:
        raise BadProof(f"cannot read {file}: {getattr(reason, 'strerror', None) or reason}") from None


def read_study(file: str | Path) -> Study:
    """The study of a proof, in memory. It is not checked here."""
    start, *records, _ = map(json.loads, _read(file).splitlines())
    place = MemoryStorage()
    place.create(PROOF, start["spec"])
    with place.writing(PROOF) as writer:
        writer.add([Entry(one["number"], one["at"], load(one["kind"], _line(one["body"]))) for one in records], "")
    return load_study(PROOF, place)


def certify_proof(file: str | Path) -> Verdict[str]:
    """The verdict of the study whose proof is in a file, after it was checked and replayed. Raises BadProof."""
    replay_proof(file)
    return read_study(file).examine()


class Replayed(NamedTuple):
    """What a replay found to follow from the records before and the seed."""

    questions: int  # whose pair, side and bet were repeated
    chosen: int  # whose side and bet were repeated; their pair was chosen by the caller, or others were to be avoided
    cases: int  # drawn from a list whose names are not in the proof: only that they are drawn by the seed
    imports: int  # whose bets and weights were repeated
    unordered: int  # imports whose rows may have been in another order, so that they may have looked sorted

    @property
    def sentences(self) -> list[str]:
        """What was repeated, and what could not be."""
        said = [
            f"Replayed: pair, side and bet of {self.questions:,} questions follow from the seed and the records before."
        ]
        if self.chosen:
            said.append(
                f"{self.chosen:,} questions are about a pair that the caller chose, or that was left when others were "
                "to be avoided. Their sides and bets follow; their pairs cannot be replayed."
            )
        if self.cases:
            said.append(f"{self.cases:,} cases were drawn. The list of cases is not in the file, so it is not checked.")
        if self.imports:
            said.append(f"Bets and weights of {self.imports:,} imports follow.")
        if self.unordered:
            said.append(
                f"{self.unordered:,} imports have units whose rows may have come in another order, so it is not known "
                "whether they looked sorted."
            )
        return said


def replay_proof(file: str | Path) -> Replayed:
    """Check a proof, and repeat everything that was asked and bet in it. Raises BadProof."""
    said = check_proof(file)["verdict"]
    study = read_study(file)
    with one_thread():
        replay = _Replay(study)
        found = replay.run()
    verdict = study.examine()
    top = list(verdict.top) if verdict.reason == "certified" else None
    if (top, list(verdict.certainly_in), list(verdict.certainly_out)) != tuple(said[part] for part in SAID):
        raise BadProof(f"{file}: the study has another verdict than its last line says")
    return found


class _Replay:
    """Repeats the questions and imports of a study, record by record."""

    def __init__(self, study: Study) -> None:
        self.study, self.state, self.table = study, study.start, RowTable(study.items)
        self.counts = dict.fromkeys(Replayed._fields, 0)
        self.cases: dict[tuple[int, int], str] = {}  # by the size of the list and the place in it

    def run(self) -> Replayed:
        entries = self.study.entries
        for number, entry in enumerate(entries):
            event = entry.event
            try:
                if isinstance(event, Asked) and event.place is None:
                    self._question(event)
                elif isinstance(event, Asked) and event.place == 0:
                    self._ballot(_ballot_at(entries, number))
                elif isinstance(event, Imported) and event.first:
                    self._import(event)
                if isinstance(event, Asked) and event.case is not None:
                    self._case(event)
            except (_Differs, NothingToAsk) as reason:
                raise BadProof(f"line {number + 2}: {reason}") from None
            self.state = apply(event, self.state)
            self.table.fold([entry])
        return Replayed(**self.counts)

    def _question(self, event: Asked) -> None:
        again = self._asked_again(event)
        is_same = again is not None and _pair(again) == _pair(event)
        if again is None or not is_same:
            pair = pair_number(self.study.problem.n, event.first, event.second)
            again = next_question(self.state, event.judge, frozenset(), pair)
        self._compare(event, again)
        self.counts["questions" if is_same else "chosen"] += 1

    def _asked_again(self, event: Asked) -> Asked | None:
        try:
            return next_question(self.state, event.judge, frozenset())
        except NothingToAsk:  # without a pair that the caller chose
            return None

    def _compare(self, event: Asked, again: Asked) -> None:
        if (event.first, event.second) != (again.first, again.second):
            raise _Differs("the seed shows the other item first")
        _same("bet", [event.bet, event.weight], [again.bet, again.weight])

    def _ballot(self, events: Sequence[Asked]) -> None:
        size = self.study.ballot_size
        again = open_ballot(self.state, str(events[0].judge), size, NO_CASES, None)
        if [_pair(event) for event in events] == [_pair(other) for other in again[: len(events)]]:
            self.counts["questions"] += len(events)
        else:
            again = self._with_bets(events)
            self.counts["chosen"] += len(events)
        for event, other in zip(events, again, strict=False):
            self._compare(event, other)

    def _with_bets(self, events: Sequence[Asked]) -> list[Asked]:
        """The same pairs with the sides and bets that they should have."""
        n, ahead = self.study.problem.n, self.state.ahead
        pairs = [pair_number(n, event.first, event.second) for event in events]
        listed = with_bets(ahead.evidence.kept_ledger, pairs, self.state.ballots.places)
        return questions_of(self.state, listed, events[0], NO_CASES)

    def _import(self, event: Imported) -> None:
        nothing = (None,) * len(event.first)
        rows = ImportRows(event.first, event.second, event.outcome, event.judge, event.unit, nothing)
        earlier = earlier_rows(self.table, self.study.items)
        order, fixed = fix_bets(rows, earlier, event.is_sorted, self.state, self.table)
        if order != list(range(len(order))):
            raise _Differs("the rows of a unit are not together")
        for name, stored, again in zip(
            ("bet", "weight", "share"), (event.bet, event.weight, event.share), fixed, strict=True
        ):
            _same(name, stored, again)
        if not event.is_sorted and look_sorted(self.study.problem.family, earlier, rows):
            if not is_shared(event.unit):
                raise _Differs("these votes look sorted by winner, and were counted as if they did not")
            self.counts["unordered"] += 1
        self.counts["imports"] += 1

    def _case(self, event: Asked) -> None:
        """With replacement the place in the list follows from the seed, so equal places must have equal names."""
        self.counts["cases"] += 1
        if event.drawing == "replaced" and event.pool and event.case is not None:
            place = draw_number(event.pool, "case", self.study.seed, event.question)
            known = self.cases.setdefault((event.pool, place), event.case)
            others = {name for (size, at), name in self.cases.items() if size == event.pool and at != place}
            if known != event.case or event.case in others:
                raise _Differs("the seed draws another case")


class _Differs(Exception):
    """What does not follow from the records before and the seed."""


def _same(what: str, stored: Sequence[float], again: Sequence[float]) -> None:
    if not all(
        math.isclose(one, other, rel_tol=ALMOST, abs_tol=1e-12) for one, other in zip(stored, again, strict=True)
    ):
        raise _Differs(f"a {what} does not follow from the records before")


def _pair(event: Asked) -> frozenset[int]:
    return frozenset((event.first, event.second))


def _ballot_at(entries: Sequence[Entry], number: int) -> list[Asked]:
    """The questions of the ballot that begins with this record."""
    found = list[Asked]()
    for entry in entries[number:]:
        if not isinstance(entry.event, Asked) or entry.event.place != len(found):
            break
        found.append(entry.event)
    return found
