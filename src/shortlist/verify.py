"""Check a proof that shortlist wrote: python verify.py proof.jsonl

Plain Python that needs nothing else. It works the verdict out again from docs/guarantee.md, with the names used there.
A proof has the settings, then a record per line with the hash of the one before, then the verdict with all its steps.
"""

import hashlib
import json
import math
import sys
from collections import Counter, defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

CASH, BETS, OWN, GRID = 0.1, 0.5, 0.25, 0.25  # what is never bet; shares of the stake once votes are imported
FORMAT = {"format": "shortlist proof 1", "cash": CASH, "shares": [BETS, OWN, GRID], "grid": [0.01, 8.0, 32]}
ETAS = [0.01 * 800 ** (place / 31) for place in range(32)]  # the bets of the grid, in log-odds
ROUNDING = 1e-9  # relative, in levels and sums of weights
BEFORE = {"shown": "pending", "told": "pending", "settled": "answered", "reopened": "answered", "late": "skipped lost"}
IGNORED = ("taken over", "paused", "materials", "text shown", "judge setup", "changed")
UNSEEN = ("lease ran out", "judge voided", "judge left", "no longer needed")  # reasons to skip only what was not shown
ROW = ("first", "second", "outcome", "bet", "weight", "judge", "unit", "share", "digest")
LIMITS = """What no file can show: that the answers are real and from different people, and that no other study was run.
The writer of a file can write all of it anew: compare the head with one that was published earlier."""


class Bad(Exception):
    """What is wrong with a proof, and in which line."""


def need(is_fine: object, wrong: str) -> None:
    if not is_fine:
        raise Bad(wrong)


def log_sum(logs: list[float]) -> float:
    top = max(*logs, -1e9)
    return top + math.log(sum(math.exp(log - top) for log in logs))


def log_factor(eta: float, null: float, y: float) -> float:
    """Log of the factor of a bet on eta against null: 1 + lambda(2y - 1) where null is 0."""
    p, not_p, q, not_q = (1 / (1 + math.exp(-odds)) for odds in (eta, -eta, null, -null))
    return math.log(y * p / q + (1 - y) * not_p / not_q)


def wealth(log_e: float) -> float:
    return log_sum([math.log(CASH), math.log(1 - CASH) + log_e])


class Study:
    """Questions and accounts after the records so far. What is pending or not settled is in the accounts as lost."""

    def __init__(self, spec: Any, judges: int) -> None:
        self.n, self.k, self.tolerance, self.judges = len(spec["items"]), spec["k"], spec["tolerance"], judges
        self.public, self.once = spec["judges_claim"] == "public", spec["cases_claim"] == "like these"
        self.null = math.log((0.5 - self.tolerance) / (0.5 + self.tolerance))
        self.record, self.share, self.sorted_at, self.withdrawn_at = -1, 1.0, -1, dict[int, int]()
        self.questions, self.answered = list[Any](), dict[int, Any]()  # judges of answers that are not settled
        self.against: dict[Any, set[int]] = {}  # what a judge's ballot bets against
        self.sums: Any = defaultdict(lambda: defaultdict(float))  # log E by kind and target, then by where it is from
        self.grid: Any = defaultdict(lambda: [0.0] * len(ETAS))  # log wealth of each bet by kind, source and target
        self.votes, self.seen, self.spent = Counter[Any](), set[Any](), set[Any]()
        self.lost_before: list[float] = []  # by accounts against each item, until the first import

    def fold(self, kind: str, body: Any) -> None:
        """Check one more record against the rules, and count it."""
        self.record += 1
        if kind in ("asked", "withdrawn", "imported"):
            getattr(self, kind)(body)
        elif kind not in IGNORED:
            need(kind in (*BEFORE, "skipped", "lost"), f"{kind!r} is no kind of record")
            self.go_on(kind, body)

    def sides(self, first: int, second: int, bet: float, y: float | None) -> list[tuple[int, int, float, float]]:
        """Source, target, bet and outcome of both accounts. y = None: both lose. If k > n/2 y and bet are turned."""
        turn, won, other = (-1 if 2 * self.k > self.n else 1), y or 0.0, 0.0 if y is None else 1 - y
        won, other = (won, other) if turn > 0 or y is None else (other, won)
        return [(first, second, turn * bet, won), (second, first, -turn * bet, other)]

    def factors(self, first: int, second: int, bet: float, y: float | None, weight: float = 1.0) -> list[Any]:
        """Kind, target, source and gain of the accounts that bet on a vote."""
        found = []
        for x, v, eta, won in self.sides(first, second, bet, y) if bet else ():
            found += [("bets", v, x, weight * log_factor(eta, 0.0, won))] if eta > 0 else []
            tolerant = weight * log_factor(max(eta, self.null), self.null, won)
            found += [("tolerant", v, x, tolerant)] if self.tolerance else []
        return found

    def add(self, factors: Any, sign: int, judge: Any, is_imported: bool = False) -> None:
        for kind, v, x, gain in factors:
            self.sums[kind, v][x, judge, is_imported] += sign * gain

    def check_vote(self, first: Any, second: Any, bet: Any, *shares: Any) -> None:
        is_pair = {type(first), type(second)} == {int} and 0 <= min(first, second) < max(first, second) < self.n
        need(is_pair and abs(bet) < 30, "this is no pair of items, or its bet is not in range")
        need(all(0 <= part <= 1 for part in shares), "an outcome or a weight is not between 0 and 1")

    def asked(self, body: Any) -> None:
        made = SimpleNamespace(**body, state="pending", reopened=False, record=self.record, outcome=None)
        self.check_vote(made.first, made.second, made.bet)
        need(made.question == len(self.questions), "the number of this question is not the next one")
        is_spent = (made.judge, frozenset((made.first, made.second))) in self.spent
        need(not (made.bet and is_spent), "this judge undid a vote on this pair and must not bet on it again")
        made.lost = self.factors(made.first, made.second, made.bet, None)
        self.add(made.lost, 1, made.judge)
        need(self.public == (made.place is not None), "only a study about the public has ballots, and nothing else")
        if self.public:
            last = self.questions[-1] if made.place else made
            is_next = (last.judge, made.place - last.place, made.record - last.record) == (made.judge, 1, 1)
            need(made.judge is not None and (is_next or not made.place), "a ballot grew after it was opened")
            need(is_next or made.judge not in self.against, "this judge has a second ballot")
            against = {v for _, v, _, _ in made.lost}
            need(not against & self.against.setdefault(made.judge, set()), "a ballot bets against an item twice")
            self.against[made.judge] |= against
        if self.once or made.drawing in ("once", "recorded"):
            need(made.case is not None and ("case", made.case) not in self.seen, "this case was used before")
        self.seen.add(("case", made.case))
        self.questions.append(made)

    def go_on(self, kind: str, body: Any) -> None:
        """What happens to a question after it was asked."""
        made = self.questions[body["question"]]
        is_next = made.question == body["question"] and made.state in BEFORE.get(kind, "pending")
        need(is_next, f"question {made.question} is {made.state}, so it cannot be {kind}")
        if kind == "told":
            self.check_vote(made.first, made.second, made.bet, body["outcome"])
            need(made.judge not in self.answered.values(), "an earlier answer of this judge is not settled")
            made.state, made.outcome, self.answered[made.question] = "answered", body["outcome"], made.judge
        elif kind in ("skipped", "lost"):
            is_bound = made.reopened or made.place is not None or (made.shown and body["reason"] in UNSEEN)
            need(kind == "lost" or not is_bound, "this question can only be answered or lost")
            self.add(made.lost if kind == "skipped" else (), -1, made.judge)
            made.state = kind
        made.shown, made.reopened = made.shown or kind == "shown", made.reopened or kind == "reopened"
        if kind in ("settled", "reopened") or (kind == "told" and body["settles"] is None):
            made.state = "pending" if kind == "reopened" else "counted"
            del self.answered[made.question]
        if made.state == "counted":
            self.add(made.lost, -1, made.judge)
            self.add(self.factors(made.first, made.second, made.bet, made.outcome), 1, made.judge)
            self.votes[made.question, made.first, made.second, made.outcome, made.bet, 1.0, made.judge] += 1

    def withdrawn(self, body: Any) -> None:
        """What these votes won goes, what they lost stays."""
        for vote in map(tuple, body["votes"]):
            need(self.votes[vote] > 0 and body["judge"] in (None, vote[-1]), "a vote is withdrawn that does not count")
            question, first, second, outcome, bet, weight, judge = vote
            won = [one for one in self.factors(first, second, bet, outcome, weight) if one[-1] > 0]
            self.add(won, -1, judge, question is None)
            for key in [key for key in self.grid if {first, second} == {*key[1:]} and question is None]:
                self.grid[key] = [min(part, 0.0) for part in self.grid[key]]
            self.votes[vote] -= 1
            self.withdrawn_at |= {first: self.record, second: self.record}
            self.spent |= {(judge, frozenset((first, second)))} if body["judge"] is None else set()

    def imported(self, body: Any) -> None:
        """The rows of a unit weigh at most as one vote. What was seen before weighs nothing."""
        rows, kinds = list(zip(*(body[part] for part in ROW), strict=True)), ("bets", "tolerant")
        need(not rows or not (self.public or self.once), "this study takes no imports")
        if rows and not self.lost_before:
            lost = [[self.accounts(kind, v)[1] for v in range(self.n)] for kind in kinds]
            mean = math.log(2 * self.n) - log_sum([-one for one in lost[0] + lost[1]])
            self.lost_before = [mean] * self.n if self.tolerance else lost[0]
        self.share = min(self.share, OWN if body["is_sorted"] else BETS) if rows else self.share
        self.sorted_at = self.record if body["is_sorted"] else self.sorted_at
        weights, new = Counter[Any](), set[Any]()
        for place, (first, second, y, bet, weight, judge, unit, share, digest) in enumerate(rows):
            self.check_vote(first, second, bet, y, weight, share)
            pair, unit = frozenset((first, second)), ("row", self.record, place) if unit is None else ("case", unit)
            is_old = {unit, digest} & self.seen or (judge, pair) in self.spent
            need(
                not is_old or weight == share == 0, "a row that was seen before, or of a judge who may not bet, weighs"
            )
            factors, new = self.factors(first, second, bet, y, weight), new | {unit, digest}
            weights.update({(unit, pair): share} | {(unit, v): weight for _, v, _, _ in factors})
            self.add(factors, 1, judge, True)
            self.votes[None, first, second, y, bet, weight, judge] += 1
            for kind, null in [("grid", 0.0), ("tolerant grid", self.null)]:
                for x, v, _, won in self.sides(first, second, bet, y):
                    is_lost = body["is_sorted"] and not share
                    gains = [-math.inf if is_lost else share * log_factor(null + eta, null, won) for eta in ETAS]
                    self.grid[kind, x, v] = list(map(sum, zip(self.grid[kind, x, v], gains, strict=True)))
        need(not rows or max(weights.values()) <= 1 + ROUNDING, "the rows of a unit weigh more than one vote")
        self.seen |= new

    def accounts(self, kind: str, v: int) -> tuple[dict[int, Counter[Any]], float]:
        """Log E of every source against v, by judge; and L_v."""
        found: dict[int, Counter[Any]] = defaultdict(Counter)
        for (x, judge, is_imported), gain in self.sums[kind, v].items():
            found[x][judge] += 0.0 if is_imported and self.share == OWN else gain
        return found, sum(max(-wealth(sum(parts.values())), 0.0) for parts in found.values())

    def surplus(self, kind: str, by: list[int], v: int, delta: float) -> float:
        """By how much the evidence of the items `by` against v is above its level, as a share of the level."""
        if kind in ("grid", "tolerant grid"):
            need(self.judges == 1 and len(by) == 1 and self.lost_before, "the grid does not count here")
            pairs = self.n * (self.n - 1) if self.tolerance else self.k * (self.n - self.k)
            level = math.log(pairs / (delta * GRID)) + self.lost_before[v]
            return (log_sum(self.grid[kind, by[0], v]) - math.log(len(ETAS))) / level - 1
        (accounts, lost), given = self.accounts(kind, v), Counter[Any]()
        level = math.log((2 * self.n if self.tolerance else min(self.k, self.n - self.k)) / (delta * self.share))
        for x in by:
            given.update({judge: max(gain, 0.0) for judge, gain in accounts[x].items()})
        cap = (level + lost) / (self.judges - 0.5) if self.judges > 1 else math.inf
        scale = {judge: min(1.0, cap / gain) for judge, gain in given.items() if gain}
        capped = [[g * scale[judge] if g > 0 else g for judge, g in accounts[x].items()] for x in by]
        return (sum(max(wealth(sum(parts)), 0.0) for parts in capped) - lost) / level - 1


def sha(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "backslashreplace")).hexdigest()


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def read_steps(chains: Any, n: int, delta: float) -> tuple[list[Any], dict[int, set[int]]]:
    """All steps (record, kind, by, v, delta), and what each item absorbs by them. A chain has tolerant steps from one set."""
    steps, absorbed = [], dict[int, set[int]]()
    for u, chain in chains:
        reached, base = [u], list[int]()
        for v, record, kind, by, smaller in chain:
            base = base or (list(reached) if kind.startswith("tolerant") else [])
            may = base if kind.startswith("tolerant") else reached
            by = may if by is None else by
            need(set(by) <= set(may) and len(set(by)) == len(by), "a step rests on items that are not absorbed")
            need(v in range(n) and v not in reached, "a step to an item that is absorbed already, or that is none")
            need(smaller is None or 0 < smaller <= delta, "a step has a larger delta than the study")
            steps.append((record, kind, list(by), v, smaller or delta))
            reached.append(v)
        need(u in range(n) and u not in absorbed, "an item has two chains, or is none")
        absorbed[u] = {*reached[1:]}
    return steps, absorbed


def check(text: str) -> dict[str, Any]:
    """What the proof proves. Raises Bad."""
    lines, at, parsed = text.removesuffix("\n").split("\n"), 1, list[Any]()
    try:
        for at, line in enumerate(lines, 1):
            parsed.append(json.loads(line))
            need(compact(parsed[-1]) == line, "this line is not written as shortlist writes it")
        at, start, records, end = 1, parsed[0], parsed[1:-1], parsed[-1]
        need(start == {**FORMAT, "spec": start["spec"]}, "this is not a proof of shortlist, or of another version")
        spec, last = json.loads(start["spec"]), sha(start["spec"])
        need(spec["stopping"]["name"] == "edges" and spec["family"] == "bradley-terry", "such studies have no proof")
        for at, record in enumerate(records, 2):
            need((record["number"], record["previous"]) == (at - 2, last), "a record is missing, or not in its place")
            last = sha(last, str(at - 2), repr(record["at"]), record["kind"], compact(record["body"]))
            need(record["hash"] == last and len(record) == 6, "this record does not have the hash that it says")
        at, verdict = len(lines), end["verdict"]
        need(end == {"verdict": verdict, "hash": sha(lines[0], last, compact(verdict))}, "the hash is wrong")
        done, n = verdict["record"], len(spec["items"])
        need(done in range(-1, len(records)), "the verdict names a record that is not there")
        deltas, judges, is_begun = [spec["delta"]], spec.get("min_judges", 1), False
        for record in records:
            is_begun = (
                is_begun or record["kind"] == "asked" or bool(record["kind"] == "imported" and record["body"]["first"])
            )
            if record["kind"] == "changed":
                new = record["body"]["settings"]
                judges = new.get("min_judges", judges)
                deltas = (deltas if is_begun else []) + [new.get("delta", deltas[-1])]
        need(verdict["delta"] == deltas[-1] and verdict["error"] >= max(deltas), "delta is not that of the records")
        need(all(0 < delta < 1 for delta in deltas) and judges >= 1, "delta or min_judges is out of range")
        steps, absorbed = read_steps(verdict["chains"], n, deltas[-1])
        need(all(0 <= step[0] <= done for step in steps), "a step is not before the verdict")
        study = Study(spec, judges)
        for at, record in enumerate(records, 2):
            study.fold(record["kind"], record["body"])
            for _, kind, by, v, delta in (step for step in steps if step[0] == study.record):
                need(
                    study.surplus(kind, by, v, delta) >= -ROUNDING,
                    f"this record does not prove the step to item {v} ({kind})",
                )
            for then, _, _, v, _ in steps if study.record == done else ():
                is_kept = then >= max(study.withdrawn_at.get(v, -1), study.sorted_at)
                need(is_kept, f"what the step to item {v} at record {then} rests on was withdrawn")
        at = len(lines)
        conclude(spec, verdict, absorbed)
    except (Bad, KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as reason:
        raise Bad(f"line {at}: {reason if isinstance(reason, Bad) else f'cannot be read ({reason!r})'}") from None
    counts = Counter(made.state for made in study.questions)
    return {"spec": spec, "verdict": verdict, "records": len(records), "hash": last, "counts": counts}


def conclude(spec: Any, verdict: Any, absorbed: dict[int, set[int]]) -> None:
    """Compare what is said with what follows from who absorbs whom."""
    items, k, n = spec["items"], spec["k"], len(spec["items"])
    small, is_turned = min(k, n - k), 2 * k > n
    best = {items[u] for u, others in absorbed.items() if len(others) >= n - small}
    rest = {items[v] for v in range(n) if sum(v in others for others in absorbed.values()) >= small}
    best, rest = (set(), set()) if spec["tolerance"] else (rest, best) if is_turned else (best, rest)
    need({*verdict["certainly_in"]} <= best and {*verdict["certainly_out"]} <= rest, "an item is not proved in or out")
    if verdict["top"] is not None:
        top = {items.index(item) for item in verdict["top"]}
        ahead = set(range(n)) - top if is_turned else top
        need(len(top) == len(verdict["top"]) == k, "the top has not k items")
        need(all(set(range(n)) - ahead <= absorbed.get(u, set()) for u in ahead), "the top does not absorb all others")


def sentences(found: dict[str, Any]) -> list[str]:
    """What is proved, and what no file can show."""
    spec, verdict, counts, k, n = (found["spec"], found["verdict"], found["counts"], found["spec"]["k"], len(found["spec"]["items"]))  # fmt: skip
    said = [f"The file agrees with itself: {found['records']:,} records. Head: {found['records']} {found['hash']}."]
    error = f"wrong with probability at most {verdict['error']:g}, if there is a top {k} that no other item beats on average"
    if verdict["top"] is not None:
        said.append(f"Proved: the top {k} of {n} is {', '.join(verdict['top'])}; {error}.")
    return [*said, LIMITS]


def main() -> int:
    """Check the file that is named, and print what it proves. Returns 1 if something is wrong."""
    if len(sys.argv) != 2:
        print("usage: python verify.py proof.jsonl", file=sys.stderr)
        return 2
    try:
        print("\n".join(sentences(check(Path(sys.argv[1]).read_text(encoding="utf-8")))))
    except (Bad, OSError, UnicodeDecodeError) as reason:
        print(f"Not proved. {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
