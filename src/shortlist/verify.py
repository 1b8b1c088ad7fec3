"""Check a proof that shortlist wrote: python verify.py proof.jsonl

Plain Python that needs nothing else. It works the verdict out again from docs/guarantee.md, with the names used there.
A proof has the settings, then a record per line with the hash of the one before, then the verdict with all its steps.
"""

import hashlib
import json
import math
import sys
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

CASH, BETS, OWN, GRID = 0.1, 0.5, 0.25, 0.25  # what is never bet; shares of the stake once votes are imported
FORMAT = {"format": "shortlist proof 1", "cash": CASH, "shares": [BETS, OWN, GRID], "grid": [0.01, 8.0, 32]}
ETAS = [0.01 * 800 ** (place / 31) for place in range(32)]  # the bets of the grid, in log-odds
KINDS = {
    "edges": ("bets", "tolerant", "grid", "tolerant grid", "table", "withdrawn"),
    "cuts": ("cut", "grid", "table", "withdrawn"),
}  # of steps
ENDLESS = 1e6
ROUNDING = 1e-9  # relative, in levels and sums of weights
UNDO_STEPS = 3  # answers that a judge may take back, the last ones
BEFORE = {"shown": "pending", "told": "pending", "settled": "answered", "reopened": "answered", "late": "skipped lost",
          "skipped": "pending", "lost": "pending"}  # fmt: skip
IGNORED = (
    "taken over",
    "paused",
    "archived",
    "materials",
    "text shown",
    "judge setup",
    "changed",
    "corrected",
    "configured",
)
UNSEEN = ("lease ran out", "judge voided", "judge left", "no longer needed")  # reasons to skip only what was not shown
CONFLICT = "conflict of interest"  # for which a new ballot is cut before it is shown
VOTE = ("question", "first", "second", "outcome", "bet", "weight", "judge")
ROW = ("first", "second", "outcome", "bet", "weight", "judge", "unit", "share", "digest")
LIMITS = (
    "The writer of a file can write all of it anew, so compare the head with one that was published earlier. No file "
    "can show that the answers are real and from different people, or that no other study was run."
)
compact = json.JSONEncoder(separators=(",", ":")).encode


class Bad(Exception):
    """What is wrong with a proof, and in which line."""


def need(is_fine: object, wrong: str) -> None:
    if not is_fine:
        raise Bad(wrong)


def sha(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "backslashreplace")).hexdigest()


def log_sum(logs: list[float]) -> float:
    top = max(*logs, -1e9)
    return top + math.log(sum(math.exp(log - top) for log in logs))


def log_factor(eta: float, null: float, y: float) -> float:
    """Log of the factor of a bet on eta against null: 1 + lambda(2y - 1) where null is 0."""
    p, not_p, q, not_q = (1 / (1 + math.exp(-odds)) for odds in (eta, -eta, null, -null))
    return math.log(y * p / q + (1 - y) * not_p / not_q)


def wealth(log_e: float) -> float:
    return log_sum([math.log(CASH), math.log(1 - CASH) + log_e])


def find_units(rows: list[Any]) -> list[set[Any]]:
    """The labels of each row's unit. Rows that share a label, also through other rows, are one unit: one set."""
    units = dict[Any, set[Any]]()
    names: list[list[Any]] = [[*enumerate(r.unit)] if isinstance(r.unit, list) else [("unit", r.unit)] for r in rows]
    names = [[("row", place)] if row.unit is None else names[place] for place, row in enumerate(rows)]
    for labels in names:
        parts = {id(part): part for part in (units.setdefault(label, {label}) for label in labels)}
        joined = set[Any]().union(*parts.values()) if len(parts) > 1 else set()
        units |= dict.fromkeys(joined, joined)
    return [units[labels[0]] for labels in names]


class Study:
    """Questions and accounts after the records so far. What is pending or not settled is in the accounts as lost."""

    def __init__(self, spec: Any, min_judges: int, gone: set[int]) -> None:
        self.n, self.k, self.tolerance, self.min_judges = len(spec["items"]), spec["k"], spec["tolerance"], min_judges
        self.gone = gone  # items that were withdrawn, also if that was later: what is proved must hold without them
        self.rule = spec["stopping"]["name"]
        self.known = set[Any]()  # cuts: (x, y) if all sets with x outside and y inside are rejected
        self.public, self.once = spec["judges_claim"] == "public", spec["cases_claim"] == "like these"
        self.turn, self.null = (
            -1 if 2 * self.k > self.n else 1,
            -math.log((0.5 + self.tolerance) / (0.5 - self.tolerance)),
        )
        self.questions, self.unsettled = list[Any](), dict[int, Any]()  # judges of answers that are not settled
        self.opening: Any = None  # the judge whose ballot is being opened
        self.targets: Any = defaultdict(set)  # what the ballot of a judge bets against
        self.sums: Any = defaultdict(lambda: defaultdict(float))  # log E by kind and target, then by where it is from
        self.grid: Any = defaultdict(lambda: [0.0] * len(ETAS))  # log wealth of each bet by kind, source and target
        self.votes, self.seen, self.spent = Counter[Any](), set[Any](), set[Any]()
        self.lost_before: list[float] = []  # by accounts against each item, until the first import
        self.cases: Any = {}
        self.table: Any = defaultdict(dict)  # answers that never change, by judge and pair, then by case and order
        self.skips, self.unfit, self.voided = Counter[Any](), set[Any](), set[Any]()  # unfit: whose answers changed
        self.record, self.share, self.sorted_at, self.withdrawn_at = -1, 1.0, -1, dict[int, int]()

    def fold(self, kind: str, body: Any) -> None:
        """Check one more record against the rules, and count it."""
        self.record += 1
        self.opening = self.opening if kind == "skipped" else None
        need(kind in (*BEFORE, *IGNORED, "asked", "withdrawn", "imported"), f"{kind!r} is no kind of record")
        if kind in BEFORE:
            self.go_on(kind, body, self.questions[body["question"]])
        elif kind == "materials" and body["cases"] not in (None, self.cases):
            self.cases, self.table, self.skips = body["cases"], defaultdict(dict), Counter()
        elif kind not in IGNORED:
            getattr(self, kind)(body)

    def sides(self, vote: Any, y: float | None) -> list[tuple[int, int, float, float]]:
        """Source, target, bet and outcome of both accounts. y = None: both lose. If k > n/2, bet and y are turned."""
        won, other = [0.0, 0.0] if y is None else [y, 1 - y][:: self.turn]
        bet = self.turn * vote.bet
        return [(vote.first, vote.second, bet, won), (vote.second, vote.first, -bet, other)]

    def factors(self, vote: Any, y: float | None) -> list[tuple[str, int, int, float]]:
        """Kind, target, source and gain of the accounts that bet on a vote. With weight 0 there are none."""
        found = []
        for x, v, eta, won in self.sides(vote, y) if vote.weight else ():
            found += [("bets", v, x, vote.weight * log_factor(eta, 0.0, won))] if eta > 0 else []
            gain = vote.weight * log_factor(max(eta, self.null), self.null, won)
            found += [("tolerant", v, x, gain)] if self.tolerance else []
        return found

    def count(self, vote: Any, y: float | None, sign: int, is_imported: bool = False, least: float = -math.inf) -> None:
        for kind, v, x, gain in self.factors(vote, y):
            self.sums[kind, v][x, vote.judge, is_imported] += sign * max(gain, least)

    def check_vote(self, vote: Any, *shares: Any) -> None:
        ends = vote.first, vote.second
        is_pair = set(map(type, ends)) == {int} and 0 <= min(ends) < max(ends) < self.n
        need(is_pair and abs(vote.bet) < 30, "this is no pair of items, or its bet is not in range")
        need(all(0 <= part <= 1 for part in shares), "an outcome or a weight is not between 0 and 1")
        vote.pair = frozenset(ends)

    def asked(self, body: Any) -> None:
        made = SimpleNamespace(
            **{"weight": 1.0, "cells": 0, **body}, outcome=None, state="pending", reopened=False, record=self.record
        )
        self.check_vote(made, made.weight)
        need(made.question == len(self.questions), "the number of this question is not the next one")
        is_spent = (made.judge, made.pair) in self.spent
        need(not (made.weight and is_spent), "this judge undid a vote on this pair and must not bet on it again")
        need(self.public == (made.place is not None), "only a study about the public has ballots, and nothing else")
        if self.public:
            last = self.questions[-1] if made.place else made
            is_next = (last.judge, last.place + 1, last.record + 1) == (made.judge, made.place, made.record)
            need(made.judge is not None and (is_next or not made.place), "a ballot grew after it was opened")
            need(is_next or ("ballot", made.judge) not in self.seen, "this judge has a second ballot")
            against = {v for _, v, _, _ in self.factors(made, None)}
            need(not against & self.targets[made.judge], "a ballot bets against an item twice")
            self.targets[made.judge] |= against
            self.opening = made.judge
        if self.once or made.drawing in ("once", "recorded"):
            need(made.case is not None and ("case", made.case) not in self.seen, "this case was used before")
        is_listed = made.case in self.cases and made.pool == len(self.cases)
        need(
            made.drawing != "replaced" or is_listed or not self.cases, "this question draws from another list of cases"
        )
        self.seen |= {("case", made.case), ("ballot", made.judge)}
        self.questions.append(made)
        self.count(made, None, 1)

    def go_on(self, kind: str, body: Any, made: Any) -> None:
        """What happens to a question after it was asked."""
        is_next = made.question == body["question"] and made.state in BEFORE[kind]
        need(is_next, f"question {made.question} is {made.state}, so it cannot be {kind}")
        if kind == "told":
            self.check_vote(made, body["outcome"])
            is_spent = made.weight and (made.judge, made.pair) in self.spent
            need(not is_spent, "this judge undid a vote on this pair, so this question is lost")
            earlier = list(self.unsettled.values()).count(made.judge)
            need(earlier < (UNDO_STEPS if body["settles"] else 1), "an earlier answer of this judge is not settled")
            made.state, made.outcome, self.unsettled[made.question] = "answered", body["outcome"], made.judge
        elif kind in ("skipped", "lost"):
            is_struck = made.place is not None and self.opening == made.judge and body["reason"] == CONFLICT
            is_bound = made.reopened or made.place is not None or (made.shown and body["reason"] in UNSEEN)
            need(kind == "lost" or is_struck or not is_bound, "this question can only be answered or lost")
            self.count(made, None, -1 if kind == "skipped" else 0)
            self.skips.update(
                self.cells(made) if kind == "skipped" and body["reason"] not in (*UNSEEN, CONFLICT) else ()
            )
            made.state = kind
        made.shown, made.reopened = made.shown or kind == "shown", made.reopened or kind == "reopened"
        if kind in ("settled", "reopened") or (kind == "told" and body["settles"] is None):
            made.state = "pending" if kind == "reopened" else "counted"
            del self.unsettled[made.question]
        if made.state == "counted":
            self.count(made, None, -1)
            self.count(made, made.outcome, 1)
            self.votes[tuple(getattr(made, part) for part in VOTE)] += 1
            self.know(made)

    def cells(self, made: Any) -> list[Any]:
        """Judge, pair, case and who is shown first: the cells of a table of fixed answers that a question is about."""
        is_one = made.cells in (1, 2) and made.drawing == "replaced"
        if not is_one or made.case not in self.cases or made.pool != len(self.cases):
            return []
        sides = [made.first] if made.cells == 1 else [made.first, made.second]
        return [(made.judge, made.pair, made.case, side) for side in sides]

    def know(self, made: Any) -> None:
        """One more known answer: exactly what the lower item got. A judge answers the same question always the same."""
        if self.cells(made):
            known, place = self.table[made.judge, made.pair], (made.case, made.first, made.cells)
            share = Fraction(made.outcome) if made.first == min(made.pair) else 1 - Fraction(made.outcome)
            self.unfit |= {made.judge} if known.setdefault(place, share) != share else set()

    def is_ahead(self, x: int, v: int) -> bool:
        """Whether known answers of enough judges put x ahead of v over all cases, ties by their place in the list."""
        x, v = (x, v)[:: self.turn]
        judges = {judge for judge, pair in self.table if pair == {x, v}}
        ahead = [judge for judge in judges if self.leads(judge, x, v)]
        return len(ahead) >= self.min_judges

    def leads(self, judge: Any, x: int, v: int) -> bool:
        """The same for one judge. Cells that were refused twice are ties, if all others are known."""
        pair, best, total = frozenset((x, v)), dict[Any, Any](), 2 * len(self.cases)
        for (case, first, cells), share in self.table[judge, pair].items():  # an answer about both orders goes first
            for cell in [(judge, pair, case, side) for side in ([first] if cells == 1 else pair)]:
                best[cell] = max(best.get(cell, (0,)), (cells, -first, share))
        refused = {cell for cell, times in self.skips.items() if cell[:2] == (judge, pair) and times > 1} - {*best}
        low = sum(share for _, _, share in best.values())
        got = low if x == min(pair) else len(best) - low
        got += Fraction(len(refused), 2) if best and len(best) + len(refused) == total else 0
        is_fit = judge not in self.unfit | self.voided and (judge, pair) not in self.spent
        return is_fit and (2 * got > total or (2 * got == total and x == min(pair)))

    def withdrawn(self, body: Any) -> None:
        """What these votes won goes, what they lost stays. After an undo the judge bets nothing more on the pair."""
        self.voided |= {body["judge"]} - {None}
        for key in map(tuple, body["votes"]):
            vote = SimpleNamespace(**dict(zip(VOTE, key, strict=True)))
            is_counted = self.votes[key] > 0 and body["judge"] in (None, vote.judge)
            need(is_counted, "a vote is withdrawn that does not count, or not of this judge")
            self.votes[key] -= 1
            self.count(vote, vote.outcome, -1, vote.question is None, 0.0)
            for place in [place for place in self.grid if {*place[1:]} == {*key[1:3]} and vote.question is None]:
                self.grid[place] = [min(part, 0.0) for part in self.grid[place]]
            self.withdrawn_at |= dict.fromkeys(key[1:3] if self.rule == "edges" else range(self.n), self.record)
            self.spent |= {(vote.judge, frozenset(key[1:3]))} if body["judge"] is None else set()

    def imported(self, body: Any) -> None:
        """The rows of a unit weigh at most as one vote. What was seen before weighs nothing."""
        rows = [SimpleNamespace(**dict(zip(ROW, row, strict=True))) for row in zip(*map(body.get, ROW), strict=True)]
        need(not rows or not (self.public or self.once or self.gone), "this study takes no imports")
        if rows and not self.lost_before:
            lost = [[self.accounts(kind, v)[1] for v in range(self.n)] for kind in ("bets", "tolerant")]
            mean = math.log(2 * self.n) - log_sum([-one for one in lost[0] + lost[1]])
            self.lost_before = [mean] * self.n if self.tolerance else lost[0]
            self.lost_before = [sum(lost[0])] * self.n if self.rule == "cuts" else self.lost_before
        is_sorted, weights, new = body["is_sorted"] and bool(rows), Counter[Any](), set[Any]()
        self.share = min(self.share, OWN if is_sorted else BETS if rows else 1.0)
        self.sorted_at = self.record if is_sorted else self.sorted_at
        units = find_units(rows)
        labels = {id(unit): {("case", label) for part, label in unit if part != "row"} for unit in units}
        old = {unit for unit, named in labels.items() if named & self.seen}
        for row, unit in zip(rows, map(id, units), strict=True):
            self.check_vote(row, row.outcome, row.weight, row.share)
            is_old = unit in old or row.digest in self.seen or (row.judge, row.pair) in self.spent
            need(not is_old or row.weight == row.share == 0, "a row weighs that was seen before, or may not bet")
            new |= {row.digest}
            against = [v if self.rule == "edges" else "any" for _, v, _, _ in self.factors(row, None)]
            weights.update({(unit, row.pair): row.share} | {(unit, v): row.weight for v in against})
            self.votes[None, row.first, row.second, row.outcome, row.bet, row.weight, row.judge] += 1
            self.count(row, row.outcome, 1, True)
            for kind, null in (("grid", 0.0), ("tolerant grid", self.null)):
                for x, v, _, won in self.sides(row, row.outcome):
                    ruin = -math.inf if is_sorted and not row.share else 0.0
                    gains = [ruin + row.share * log_factor(null + eta, null, won) for eta in ETAS]
                    self.grid[kind, x, v] = list(map(sum, zip(self.grid[kind, x, v], gains, strict=True)))
        need(max(weights.values(), default=0) <= 1 + ROUNDING, "the rows of a unit weigh more than one vote")
        self.seen |= new.union(*labels.values())

    def accounts(self, kind: str, v: int) -> tuple[dict[int, Counter[Any]], float]:
        """Log E of every source against v, by judge; and L_v."""
        found: dict[int, Any] = defaultdict(lambda: defaultdict(float))
        for (x, judge, is_imported), gain in self.sums[kind, v].items():
            found[x][judge] += 0.0 if is_imported and self.share == OWN else gain
        return found, sum(max(-wealth(sum(parts.values())), 0.0) for parts in found.values())

    def reach(self, u: int) -> list[int]:
        """u, and what is outside if u is."""
        found = [u]
        for x in found:
            found += [v for y, v in self.known if y == x and v not in found]
        return found

    def least(self, out: list[int], v: int, paid: Any) -> float:
        """At most the least E(S) of all sets with `out` outside and v inside that are not rejected yet.

        For any numbers t a pair adds at least q + t_xy [x out] + t_yx [y out] to E(S), where q = min(0, m_xy - t_xy,
        m_yx - t_yx, -t_xy - t_yx), in each of the four cases. `paid` are rows x, y, t_xy, t_yx; elsewhere t = 0. With x
        out and v in it adds m_xv."""
        m = {(x, y): wealth(sum(of.values())) for y in range(self.n) for x, of in self.accounts("bets", y)[0].items()}
        value = sum(min(m[ends], 0.0) for ends in m if {ends[:: self.turn][1]} & self.gone)  # it counts in any case
        m |= {ends: min(m[ends], 0.0) for ends in m if {*ends} & self.gone}  # nothing is won on these pairs
        m |= {ends: 0.0 for ends in m if {ends[:: self.turn][1]} & self.gone}
        m |= dict.fromkeys(self.known, math.inf)
        t = {ends: part for x, y, *parts in paid for ends, part in zip(((x, y), (y, x)), parts, strict=True)}
        need(all(abs(part) < ENDLESS for part in t.values()), "a cut is paid with what is no number")
        of_item = [0.0] * self.n
        for x, y in combinations(range(self.n), 2):
            slack, other = (m.get(ends, 0.0) - t.get(ends, 0.0) for ends in ((x, y), (y, x)))
            both = t.get((x, y), 0.0), t.get((y, x), 0.0)
            q = min(0.0, slack, other, -sum(both))
            of_item[x], of_item[y] = of_item[x] + both[0], of_item[y] + both[1]
            value += q + (slack - q if x in out and y == v else other - q if y in out and x == v else 0.0)
        return value + sum(part if x in out else min(part, 0.0) for x, part in enumerate(of_item) if x != v)

    def surplus(self, kind: str, by: list[int], v: int, delta: float, paid: Any = ()) -> float:
        """By how much the evidence of the items `by` against v is above its level, as a share of the level."""
        need(kind in KINDS[self.rule], "this stopping rule has no such steps")
        if kind == "cut":
            ways = self.k if self.gone and self.turn == 1 else 1
            return self.least(self.reach(by[0]), v, paid) / math.log(ways / (delta * self.share)) - 1
        if kind == "withdrawn":
            better, worse = ({*by}, {v})[:: self.turn]
            return 0.0 if worse <= self.gone and not better & self.gone else -1.0
        by = [x for x in by if (x, v)[:: self.turn][0] not in self.gone]  # what a withdrawn item has won proves nothing
        if kind == "table":
            is_known = not (self.tolerance or self.gone) and len(by) == 1 and self.is_ahead(by[0], v)
            return 0.0 if is_known else -1.0
        if kind in ("grid", "tolerant grid"):
            need(self.min_judges == 1 and len(by) == 1 and self.lost_before, "the grid does not count here")
            pairs = self.n * (self.n - 1) if self.tolerance else self.k * (self.n - self.k)
            level = math.log(pairs / (delta * GRID)) + self.lost_before[v]
            return (log_sum(self.grid[kind, by[0], v]) - math.log(len(ETAS))) / level - 1
        (accounts, lost), given = self.accounts(kind, v), Counter[Any]()
        level = math.log((2 * self.n if self.tolerance else min(self.k, self.n - self.k)) / (delta * self.share))
        for x in by:
            given.update({judge: max(gain, 0.0) for judge, gain in accounts[x].items()})
        cap = (level + lost) / (self.min_judges - 0.5) if self.min_judges > 1 else math.inf
        scale = {judge: min(1.0, cap / gain) for judge, gain in given.items() if gain}
        capped = [[g * scale[judge] if g > 0 else g for judge, g in accounts[x].items()] for x in by]
        return (sum(max(wealth(sum(parts)), 0.0) for parts in capped) - lost) / level - 1


def read_cuts(verdict: Any, n: int, delta: float) -> list[Any]:
    """The steps of the rule cuts: from a record on, all sets with u outside and v inside are rejected."""
    need(all({u, v} <= {*range(n)} for u, v, *_ in verdict["chains"]), "a step is not one of a proof")
    return [(record, kind, [u], v, delta, verdict["paid"][paid]) for u, v, record, kind, paid in verdict["chains"]]


def read_steps(chains: Any, n: int, delta: float) -> tuple[list[Any], dict[int, set[int]]]:
    """All steps, and what each item absorbs by them. The tolerant steps of a chain all start from one set."""
    steps, absorbed = [], dict[int, set[int]]()
    for u, chain in chains:
        reached, base = [u], list[int]()
        for v, record, kind, by, smaller in chain:
            base = base or (list(reached) if kind.startswith("tolerant") else [])
            may = base if kind.startswith("tolerant") else reached
            used = list(may if by is None else by)
            need(set(used) <= set(may) and len(set(used)) == len(used), "a step rests on items that are not absorbed")
            need(v in range(n) and v not in reached and (smaller or delta) <= delta, "a step is not one of a proof")
            steps.append((record, kind, used, v, smaller or delta, ()))
            reached.append(v)
        need(u in range(n) and u not in absorbed, "an item has two chains, or is none")
        absorbed[u] = {*reached[1:]}
    return steps, absorbed


def read_settings(spec: Any, records: list[Any]) -> tuple[int, float, float, set[int]]:
    """The last min_judges and delta, the error to state, and the items that were withdrawn. The error is the largest
    delta since the first question, and more for each withdrawn item."""
    need(spec["stopping"]["name"] in KINDS and spec["family"] == "bradley-terry", "such studies have no proof")
    judges, deltas, is_begun, gone = spec.get("min_judges", 1), [spec["delta"]], False, list[int]()
    for record in records:
        is_begun = (
            is_begun or record["kind"] == "asked" or bool(record["kind"] == "imported" and record["body"]["first"])
        )
        new = record["body"]["settings"] if record["kind"] == "changed" else {}
        judges, deltas = new.get("min_judges", judges), [*(deltas if is_begun else ()), new.get("delta", deltas[-1])]
        need(new.get("withdrawn", gone)[: len(gone)] == gone, "an item that was withdrawn is back")
        gone = new.get("withdrawn", gone)
    need(judges >= 1 and min(deltas) > 0 and max(deltas) < 1, "delta or min_judges is out of range")
    is_plain = judges == 1 and not spec["tolerance"] and spec["judges_claim"] != "public"
    need(is_plain or spec["stopping"]["name"] == "edges", "the rule cuts proves nothing with such settings")
    n, k = len(spec["items"]), spec["k"]
    may_go = {*gone} <= {*range(n)} and len({*gone}) == len(gone) < n - k and not spec["tolerance"]
    need(may_go or not gone, "these items cannot be withdrawn")
    price = 1 + len(gone) / (1 if 2 * k > n else k)
    return judges, deltas[-1], min(1.0, max(deltas) * price), {*gone}


def conclude(items: list[str], k: int, tolerance: float, verdict: Any, absorbed: dict[int, set[int]]) -> None:
    """Compare what is said with what follows from who absorbs whom. If k > n/2, these are the worst items."""
    everyone, small = set(range(len(items))), min(k, len(items) - k)
    best = {items[u] for u, others in absorbed.items() if len(others) >= len(items) - small and not tolerance}
    often = Counter(v for others in absorbed.values() for v in others)
    sides = [best, {items[v] for v in everyone if often[v] >= small and not tolerance}]
    sure_in, sure_out = reversed(sides) if k > small else sides
    need({*verdict["certainly_in"]} <= sure_in and {*verdict["certainly_out"]} <= sure_out, "an item is not proved")
    if verdict["top"] is not None:
        top = {items.index(item) for item in verdict["top"]}
        ahead = everyone - top if k > small else top
        is_proved = len(top) == k and all(everyone - ahead <= absorbed.get(u, set()) for u in ahead)
        need(is_proved, "the steps do not prove this top")


def check(text: str) -> dict[str, Any]:
    """What the proof proves. Raises Bad."""
    lines, at, parsed = text.removesuffix("\n").split("\n"), 1, list[Any]()
    try:
        for at, line in enumerate(lines, 1):  # noqa: B007 - it is in the message
            parsed.append(json.loads(line))
            need(compact(parsed[-1]) == line, "this line is not written as shortlist writes it")
        at, start, records, end = 1, parsed[0], parsed[1:-1], parsed[-1]
        need(start == {**FORMAT, "spec": start["spec"]}, "this is not a proof of shortlist, or of another version")
        spec, last = json.loads(start["spec"]), sha(start["spec"])
        for at, record in enumerate(records, 2):
            need((record["number"], record["previous"]) == (at - 2, last), "a record is missing, or not in its place")
            last = sha(last, str(at - 2), repr(record["at"]), record["kind"], compact(record["body"]))
            need(record["hash"] == last and len(record) == 6, "this record does not have the hash that it says")
        at, verdict = len(lines), end["verdict"]
        need(end == {"verdict": verdict, "hash": sha(lines[0], last, compact(verdict))}, "the hash is wrong")
        judges, delta, error, gone = read_settings(spec, records)
        need(verdict["delta"] == delta and verdict["error"] >= error, "delta is not that of the records")
        n, is_cuts = len(spec["items"]), spec["stopping"]["name"] == "cuts"
        steps, absorbed = (read_cuts(verdict, n, delta), {}) if is_cuts else read_steps(verdict["chains"], n, delta)
        done, study = verdict["record"], Study(spec, judges, gone)
        need(done in range(-1, len(records)) and all(0 <= step[0] <= done for step in steps), "a record is not there")
        for at, record in enumerate(records, 2):  # noqa: B007
            study.fold(record["kind"], record["body"])
            for _, kind, by, v, level, paid in (step for step in steps if step[0] == study.record):
                is_proved = study.surplus(kind, by, v, level, paid) >= -ROUNDING
                need(is_proved, f"this does not prove the step to item {v} ({kind})")
                study.known.add((by[0], v))
            for then, kind, by, v, *_ in steps if study.record == done else ():
                is_kept = then >= max(study.withdrawn_at.get(v, -1), study.sorted_at)
                is_kept = study.surplus(kind, by, v, delta) == 0 if kind == "table" else is_kept
                need(is_kept, f"what the step to item {v} at record {then} rests on was withdrawn")
        at = len(lines)
        absorbed = {u: {*study.reach(u)} - {u} for u in range(n)} if is_cuts else absorbed
        conclude(spec["items"], spec["k"], spec["tolerance"], verdict, absorbed)
        in_top = {spec["items"][item] for item in gone} & {*(verdict["top"] or ()), *verdict["certainly_in"]}
        need(not in_top, "an item that was withdrawn is in the answer")
    except (Bad, KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as reason:
        raise Bad(f"line {at}: {reason if isinstance(reason, Bad) else f'cannot be read ({reason!r})'}") from None
    return {"spec": spec, "verdict": verdict, "min_judges": judges, "records": len(records), "hash": last,
            "counts": Counter(made.state for made in study.questions),
            "has_table": any(step[1] == "table" for step in steps),
            "withdrawn": [spec["items"][item] for item in sorted(gone)]}  # fmt: skip


def sentences(found: dict[str, Any]) -> list[str]:
    """What is proved, in plain words, and what no file can show."""
    spec, verdict, counts, k = found["spec"], found["verdict"], found["counts"], found["spec"]["k"]
    said = [f"No record is missing or changed: {found['records']:,} records, head {found['hash']}."]
    said += [f"Questions: {', '.join(f'{count:,} {state}' for state, count in counts.items())}."] if counts else []
    if verdict["top"] is not None:
        left = len(spec["items"]) - len(found["withdrawn"])
        said.append(f"Proved: the top {k} of {left} items is {', '.join(verdict['top'])}.")
    for side, words in (("certainly_in", "in"), ("certainly_out", "not in")):
        if verdict["top"] is None and verdict[side]:
            said.append(
                f"Proved: {', '.join(verdict[side])} {'is' if len(verdict[side]) == 1 else 'are'} {words} the top {k}."
            )
    if len(said) < 2 or not said[-1].startswith("Proved"):
        return [*said, "Nothing is proved yet.", LIMITS]
    beats = f"beats one of them by more than {spec['tolerance']:g}" if spec["tolerance"] else "beats one of them"
    whom = "on average over the judges' public" if spec["judges_claim"] == "public" else "for any judge who answered"
    whom += ", with exact ties counted for the item listed first" if found["has_table"] else ""
    several = f" Every step rests on at least {found['min_judges']} judges." if found["min_judges"] > 1 else ""
    wrong = f"This is wrong with probability at most {verdict['error']:g}"
    gone = found["withdrawn"]
    tops = " and ".join(f"a top {size}" for size in range(k, k + len(gone) + 1))
    within = ", each within the next," if gone else ""
    said.append(f"{wrong}, if there is {tops}{within} so that no other item {beats} {whom}.{several}")
    said += (
        [f"Withdrawn after the first question: {', '.join(gone)}. The answer is among the other items."] if gone else []
    )
    return [*said, LIMITS]


def main() -> int:
    """Check the file that is named, and print what it proves."""
    try:
        print("\n".join(sentences(check(Path(sys.argv[1]).read_text(encoding="utf-8")))))
    except (Bad, OSError, UnicodeDecodeError, IndexError) as reason:
        print(
            f"This proves nothing. {reason}" if sys.argv[1:] else "usage: python verify.py proof.jsonl", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
