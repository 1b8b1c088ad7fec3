"""Studies played at random through the public API, with everything that can happen to one; and forged proofs."""

import json
import random
from contextlib import suppress

from shortlist import create_study, verify
from shortlist.errors import (
    AlreadyAnswered,
    BadProblem,
    BadVotes,
    LateAnswer,
    NothingToAsk,
    NothingToUndo,
    StudyDone,
    VoidJudge,
)

KINDS = (
    "plain", "people", "imports", "sorted imports", "ballots", "tolerance", "tolerant imports", "tolerant ballots",
    "several judges", "several judges, imports", "several judges, ballots", "changes",
    "changes, several judges, imports", "changes, tolerant imports", "cuts, plain", "cuts, people", "cuts, imports",
    "cuts, sorted imports", "cuts, changes, imports", "withdrawn items", "cuts, withdrawn items",
)  # fmt: skip


REFUSED = (
    AlreadyAnswered, BadProblem, BadVotes, LateAnswer, NothingToAsk, NothingToUndo, StudyDone, VoidJudge,
)  # fmt: skip


def play(seed, storage=None, steps=60, kind=None, **settings):
    """A study of `kind`; most are proved, because the best items nearly always win and delta is large."""
    player = Player(random.Random(seed), seed, storage, kind or KINDS[seed % len(KINDS)], settings)
    for _ in range(steps):
        if player.study.verdict.done and player.rng.random() < 0.3:  # else it goes on after its end
            break
        player.act()
    return player.study


class Player:
    def __init__(self, rng, seed, storage, kind, settings):
        self.rng, self.kind, self.judges = rng, kind, ["ann", "bob", None]
        n = rng.randint(2, 6)
        tolerance = rng.choice([0.1, 0.3]) if "toler" in kind else 0.0
        claims = {"judges_claim": "public", "ballot_size": rng.randint(1, 4)} if "ballots" in kind else {}
        given = {"k": rng.randint(1, n - 1), "delta": rng.choice([0.3, 0.6, 0.9]), "tolerance": tolerance, **claims}
        given["stopping"] = "cuts" if "cuts" in kind else "edges"
        if "several" in kind:
            given["min_judges"], self.judges = rng.randint(2, 3), ["ann", "bob", "cleo", None]
        if "changes" in kind:
            given["max_votes"] = rng.choice([None, 5, 20])
        given = {**given, "seed": seed, "storage": storage, "name": f"study {seed}", **settings}
        self.items = [f"item {place}" for place in range(n)]
        self.order = rng.sample(self.items, n)
        self.study = create_study(self.items, **given)
        self.votes = 0

    def outcome(self, first, second):
        if self.rng.random() < 0.1:
            return self.rng.choice([0.5, 0.25, 0.8])
        is_ahead = self.order.index(first) < self.order.index(second)
        return float(is_ahead == (self.rng.random() < 0.92))

    def act(self):
        """One thing happens; what the study refuses does not."""
        acts = [(self.answer, 10)]
        if "ballots" not in self.kind and "plain" not in self.kind:
            acts += [(self.person, 4), (self.undo, 0.7), (self.void, 0.1), (self.leave, 0.3), (self.batch, 1)]
        if "imports" in self.kind:
            acts += [(self.bring, 1.5)]
        if "changes" in self.kind:
            acts += [(self.change, 1)]
        if "withdrawn" in self.kind:
            acts += [(self.withdraw, 0.5)]
        if "ballots" in self.kind:
            acts = [(self.ballot, 10), (self.undo, 0.3), (self.void, 0.1)]
        chosen = self.rng.choices([act for act, _ in acts], [weight for _, weight in acts])[0]
        with suppress(*REFUSED):
            chosen()

    def answer(self):
        rng = self.rng
        judge = rng.choice(self.judges) if "plain" not in self.kind else None
        pair = rng.sample(self.items, 2) if rng.random() < 0.1 else None
        question = self.study.ask(judge=judge, pair=pair)
        self.study.tell(question, self.outcome(question.first, question.second))

    def person(self):
        """A question of a person: prefetched or shown, answered, taken back, skipped, left or late."""
        rng, study = self.rng, self.study
        is_shown = rng.random() < 0.7
        lease = rng.choice([None, None, -1.0])
        question = study.ask(judge=rng.choice(self.judges), lease=lease, shown=is_shown)
        if not is_shown and rng.random() < 0.5:
            study.show(question, lease)
        for _ in range(rng.choice([1, 1, 2])):
            study.tell(question, self.outcome(question.first, question.second), settle=rng.random() < 0.4)
            if rng.random() < 0.4:
                study.undo(question)
        fate = rng.random()
        if fate < 0.2:
            study.skip(question)
        elif fate < 0.4:
            study.close_due()
        elif fate < 0.5:
            study.settle()

    def batch(self):
        """Several questions are pending; some of them stay so."""
        for question in self.study.ask(3, judge=self.rng.choice(self.judges)):
            if self.rng.random() < 0.8:
                self.study.tell(question, self.outcome(question.first, question.second))

    def undo(self):
        known = [row.question for row in self.study.rows if row.status in ("counted", "answered") and row.question]
        if known:
            self.study.undo(self.rng.choice(known))

    def void(self):
        self.study.void("ann")

    def withdraw(self):
        self.study.withdraw_item(self.rng.choice(self.items))

    def change(self):
        """A smaller delta, another budget or number of judges; a study that has ended may go on."""
        problem, rng = self.study.problem, self.rng
        wanted = {"delta": problem.delta * rng.choice([0.5, 0.9]), "max_votes": rng.choice([None, 10, 40])}
        if "several" in self.kind:
            wanted["min_judges"] = rng.randint(1, 4)
        name = rng.choice(sorted(wanted))
        self.study.change(**{name: wanted[name]})

    def leave(self):
        self.study.settle(self.rng.choice(["ann", "bob"]))

    def bring(self):
        """An import, with units or without, sometimes one that was imported before, sometimes sorted by winner."""
        rng, rows = self.rng, []
        size = 60 if "sorted" in self.kind and rng.random() < 0.5 else rng.randint(0, 25)
        pairs = [rng.sample(self.items, 2) for _ in range(2)]
        for place in range(size):
            first, second = rng.choice(pairs)
            rows.append((first, second, self.outcome(first, second), rng.choice(["ann", "cleo"]), place))
        if size == 60:
            rows = [(*pairs[0], float(place < 30), "cleo", place) for place in range(size)]
        self.votes += size
        units = rng.choice(
            [
                None,
                lambda place: f"case {place // 2}",
                lambda place: f"case {rng.randint(0, 12)}",
                lambda place: (f"case {rng.randint(0, 30)}", f"judge {rng.randint(0, 30)}"),
            ]
        )
        first, second, outcome, judge, places = zip(*rows, strict=True) if rows else ((), (), (), (), ())
        unit = [] if units is None else [units(place) for place in places]
        name = self.votes if rng.random() < 0.8 else 0
        self.study.import_votes(first, second, outcome, judge, "a file", unit, [f"{name} {place}" for place in places])

    def ballot(self):
        """A judge comes, answers some of the ballot, skips, leaves or does not come back."""
        rng, study = self.rng, self.study
        self.votes += 1
        for question in study.ballot(f"judge {self.votes}", lease=rng.choice([None, -1.0, 60.0])):
            study.show(question)
            if rng.random() < 0.9:
                study.tell(question, self.outcome(question.first, question.second), settle=rng.random() < 0.5)
                if rng.random() < 0.05:
                    study.undo(question)
            elif rng.random() < 0.5:
                study.skip(question)
        if rng.random() < 0.8:
            study.settle(f"judge {self.votes}")


def rehashed(lines):
    """The file with hashes that fit, as whoever writes it anew would make them."""
    start, *records, end = map(json.loads, lines)
    last, out = verify.sha(start["spec"]), [verify.compact(start)]
    for number, record in enumerate(records):
        body = verify.compact(record["body"])
        now = verify.sha(last, str(number), repr(record["at"]), record["kind"], body)
        out.append(verify.compact({**record, "number": number, "previous": last, "hash": now}))
        last = now
    verdict = verify.compact(end["verdict"])
    return "\n".join([*out, verify.compact({**end, "hash": verify.sha(out[0], last, verdict)}), ""])
