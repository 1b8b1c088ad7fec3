"""Attacks on records: votes and cases that are used again, a record that is cut back, and choices made after a look.

S* is fixed beforehand: in pure noise every set of k items is one that no outsider is expected to beat, so for each of
them a proof that contradicts it may happen in a share delta of the studies.
"""

import asyncio
import random
import sqlite3
import threading
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from itertools import combinations
from unittest.mock import patch

import numpy as np

from shortlist import Case, certify, create_study, load_study, run_study
from shortlist.core import revisions
from shortlist.errors import BadCases, BadProblem, CasesUsedUp, StudyDone, StudyReplaced
from shortlist.judges import run
from shortlist.study import create
from shortlist.study import state as study_state
from shortlist.study import study as study_module
from shortlist.study.events import Skipped, Told
from shortlist.study.state import apply_all
from tests.guarantee.attacks import DELTA, Attack
from tests.guarantee.attacks_files import claims, command, folder
from tests.guarantee.attacks_imports import noise
from tests.guarantee.test_edges import contradicts

ITEMS = [f"item {number}" for number in range(6)]
TRUTH = set(ITEMS[:3])


def recorded_noise(seed, votes=9):
    """A file of coin flips on all pairs, in random order."""
    rng = random.Random(seed)
    rows = [(a, b, rng.choice((a, b))) for a, b in combinations(ITEMS, 2) for _ in range(votes)]
    rng.shuffle(rows)
    return rows


def run_recorded(rows, seed):
    """`shortlist run --votes` on a file."""
    with folder() as here:
        (here / "items.txt").write_text("\n".join(ITEMS))
        (here / "votes.csv").write_text("first,second,winner\n" + "".join(",".join(row) + "\n" for row in rows))
        command(
            "run", "items.txt", "-k", 3, "--delta", DELTA, "--votes", "votes.csv", "--seed", seed, "--name", "noise"
        )
        return load_study("noise", "sqlite:///shortlist.db").verdict


def drawn_with_replacement(rows, seed):
    recorded = {pair: [] for pair in combinations(ITEMS, 2)}
    for first, second, winner in rows:
        recorded[first, second].append(winner)
    rng = random.Random(1000 + seed)
    study = create_study(ITEMS, 3, DELTA, max_votes=20_000, seed=seed)
    while not study.verdict.done:
        question = study.ask()
        study.tell(question, winner=rng.choice(recorded[tuple(sorted((question.first, question.second)))]))
    return study.verdict


def recorded_votes(safeguard, seed):
    play = run_recorded if safeguard else drawn_with_replacement
    return contradicts(play(recorded_noise(seed), seed), TRUTH)


CASES = [f"case {number}" for number in range(15)]


def on_few_cases(seed, claim):
    """A benchmark: every pair is judged on the same cases, and each case has an order of its own. In all cases of the
    world every order is equally frequent. Returns the verdict, and each item that is the best in the cases of the
    study: no other beats it in more than half of them."""
    rng = random.Random(seed)
    order = {case: rng.sample("abc", 3) for case in CASES}
    study = create_study(["a", "b", "c"], 1, DELTA, max_votes=150, cases_claim=claim, seed=seed)
    with suppress(CasesUsedUp):
        while not study.verdict.done:
            question = study.ask(cases=CASES)
            study.tell(question, winner=min(question.first, question.second, key=order[question.case].index))

    def beats(one, other):
        return sum(ranks.index(one) < ranks.index(other) for ranks in order.values()) > len(CASES) / 2

    return study.verdict, {one for one in "abc" if not any(beats(other, one) for other in "abc" if other != one)}


def few_cases(safeguard, seed):
    """Without the safeguard the study draws its cases again and again, and the claim is taken to be about all cases of
    the world."""
    return contradicts(on_few_cases(seed, "like these" if safeguard else "these")[0], {"a"})


def cut(keep):
    """Put an older copy of the record in the place of the record."""
    with sqlite3.connect("record.db") as database:
        database.execute("DELETE FROM events WHERE number >= ?", (keep,))
    database.close()


def older_record(safeguard, seed, questions=24):
    """After each vote for "a", the record is put back to before its question. With the safeguard the process that knows
    the last hash is to go on, and refuses. Without it nobody knows the hash, and the study is loaded anew."""
    rng, url = np.random.default_rng((15, seed)), "sqlite:///record.db"
    with folder():
        study = create_study(["a", "b"], 1, DELTA, name="coin", storage=url, seed=seed)
        for _ in range(questions):
            keep, winner = study.head.events, "ab"[rng.integers(0, 2)]
            try:
                study.tell(study.ask(), winner=winner)
            except StudyDone:
                continue
            except StudyReplaced:
                return False
            if winner == "a" and not study.verdict.done:
                cut(keep)
                study = study if safeguard else load_study("coin", url)
        return contradicts(load_study("coin", url).verdict, {"a"})


def one_study(seed, votes=30):
    """A study of two equal items, judged by a coin."""
    rng, study = np.random.default_rng((16, seed)), create_study(["a", "b"], 1, DELTA, seed=seed)
    while not study.verdict.done and len(study.rows) < votes:
        study.tell(study.ask(), float(rng.integers(0, 2)))
    return contradicts(study.verdict, {"a"})


def another_seed(safeguard, seed):
    """Without the safeguard, which is to report every study, the best of 20 is reported."""
    return one_study(seed) if safeguard else any(one_study(10_000 + 20 * seed + again) for again in range(20))


def another_k(safeguard, seed, n=4):
    """Without the safeguard k is chosen after the votes were seen."""
    first, second, outcome = noise(np.random.default_rng((17, seed)), 300, n)
    return any(claims(certify(first, second, outcome, k, DELTA, n=n)) for k in ((1,) if safeguard else range(1, n)))


def keeps_marks(state, problem, pending=None):
    """`revisions.change` without its safeguard: what was proved with the larger delta stays."""
    ledger = replace(state.evidence.ledger, problem=problem)
    return state._replace(problem=problem, evidence=state.evidence._replace(ledger=ledger))


def lower_delta(safeguard, seed, votes=60):
    """Half of the votes are given while delta is 0.6. That it is lowered then was decided beforehand, so what is shown
    afterwards is to be right at the smaller delta. By edges, which bets from the first vote: cuts bets once the order
    is clear, so without the safeguard it is fooled far less often."""
    rng = np.random.default_rng((18, seed))
    study = create_study(["a", "b", "c"], 1, 0.6, seed=seed, stopping="edges")
    change = revisions.change if safeguard else keeps_marks
    with patch.object(revisions, "change", change):
        for number in range(votes):
            if number == votes // 2:
                study.change(delta=DELTA)
            with suppress(StudyDone):
                study.tell(study.ask(), float(rng.integers(0, 2)))
    return contradicts(study.verdict, {"a"})


def forgets_answers(changed, events):
    """`apply_all` of a study that goes on, without its safeguard: answers after the end do not count."""
    return apply_all(changed, [Skipped(event.question) if isinstance(event, Told) else event for event in events])


def end_before_losses(safeguard, seed, votes=40):
    """The owner knows each answer before it counts, and ends the study by a low budget before an answer for "a". Then
    the budget is raised again."""
    rng, study = np.random.default_rng((19, seed)), create_study(["a", "b"], 1, DELTA, seed=seed)
    with patch.object(study_state, "apply_all", apply_all if safeguard else forgets_answers):
        for number in range(votes):
            if study.verdict.reason == "certified":
                break
            question, winner = study.ask(), "ab"[rng.integers(0, 2)]
            is_ended = winner == "a" and number > 1
            if is_ended:
                study.change(max_votes=1)
            study.tell(question, winner=winner)
            if is_ended:
                study.change(max_votes=None)
    return contradicts(study.verdict, {"a"})


def skips_at_the_end(state, number, reason):
    """`skipping` without its safeguard: what stays without an answer when a study ends is skipped."""
    return Skipped(number, reason)


def slow_losses(safeguard, seed, runs=40, workers=8):
    """A program that answers from a table in which both items win equally often, and is slow where "a" wins. The owner
    ends each run by a low budget after one more vote, so that only quick answers are in, and raises it for the
    next."""
    table = np.random.default_rng((20, seed)).permutation(np.arange(60) % 2).reshape(30, 2)
    study = create_study(["a", "b"], 1, DELTA, seed=seed)

    async def judge(first, second, case):
        if not table[int(case.text), int(first == "a")]:
            return "b"
        await asyncio.sleep(1)
        stop.set()  # all that is out is slow
        await asyncio.sleep(3600)

    def end_after_one(run, votes):
        if run.verdict.votes > votes:
            study.change(max_votes=1)

    with nullcontext() if safeguard else patch.object(study_module, "skipping", skips_at_the_end):
        for _ in range(runs):
            stop, after_one = threading.Event(), partial(end_after_one, votes=study.verdict.votes)
            run_study(
                study, judge, cases=map(str, range(30)), workers=workers, progress=after_one, stop=stop,
                warn=lambda _: None,
            )  # fmt: skip
            if study.verdict.reason == "certified" or stop.is_set():
                break
            study.change(max_votes=None)
    return contradicts(study.verdict, {"a"})


def taken_over(safeguard, seed, votes=40):
    """A judge takes back each answer for "a" and skips the question: it is lost. Then a new study takes over the
    votes that are left."""
    rng, old = np.random.default_rng((21, seed)), create_study(["a", "b", "c"], 1, DELTA, seed=seed)
    for _ in range(votes):
        question, winner = old.ask(judge="x", pair=("a", "b")), "ab"[rng.integers(0, 2)]
        old.tell(question, winner=winner, settle=False)
        if winner == "a":
            old.undo(question)
            old.skip(question)
        if old.verdict.done:
            break
    new = create_study(["a", "b"], 1, DELTA, seed=seed)
    off = nullcontext() if safeguard else patch.object(create, "_taken_back_and_lost", lambda older: 0)
    with off, suppress(BadProblem):
        create.check_take_over(old, ["a", "b"], "each", "these")
        create.take_over_votes(old, new)
    return contradicts(new.verdict, {"a"})


def same_text(safeguard, seed):
    """20 cases, each five times under other ids; one coin for each text decides who wins on it. Without the safeguard
    a text with another id is another case."""
    coins = np.random.default_rng((22, seed)).integers(0, 2, 20)
    cases = [Case(f"{number} {again}", f"text {number}") for number in range(20) for again in range(5)]
    study = create_study(["a", "b"], 1, DELTA, cases_claim="like these", seed=seed)

    def judge(first, second, case):
        return "ab"[coins[int(case.text.split()[1])]]

    with nullcontext() if safeguard else patch.object(run, "check_texts", lambda cases: None), suppress(BadCases):
        run_study(study, judge, cases=cases, workers=1, warn=lambda _: None)
    return contradicts(study.verdict, {"a"})


def chosen_cases(safeguard, seed):
    """20 cases, each item wins on half of them. Once a case was seen, the owner asks about those on which "b" won.
    Without the safeguard each question may draw from a list of its own."""
    rng = np.random.default_rng((23, seed))
    winners = dict(zip(map(str, range(20)), rng.permutation(["a", "b"] * 10).tolist(), strict=True))
    study, liked = create_study(["a", "b"], 1, DELTA, seed=seed), set()
    with (
        nullcontext() if safeguard else patch.object(study_module.Study, "_listing", lambda study, cases: []),
        suppress(BadCases),
    ):
        while not study.verdict.done and len(study.rows) < 40:
            question = study.ask(cases=sorted(liked) or list(winners))
            study.tell(question, winner=winners[question.case])
            liked |= {question.case} if winners[question.case] == "b" else set()
    return contradicts(study.verdict, {"a"})


ATTACKS = [
    Attack(
        "recorded votes drawn again and again", "`run --votes` uses each recorded vote once",
        "the votes on a pair are complete", recorded_votes, runs=(12, 3), many=(60, 12),
    ),
    Attack(
        "cases drawn again and again", "for a claim about cases like these, each case serves one question",
        "cases are drawn from those that the claim is about", few_cases, runs=(60, 60), many=(400, 400),
    ),
    Attack(
        "back to an older record", "events are chained by hashes", "somebody else knows the last hash",
        older_record, runs=(20, 10), many=(200, 100),
    ),
    Attack(
        "a new seed until it certifies", "none: report every study, or divide δ by their number",
        "no other study was run", another_seed, runs=(100, 10), many=(1000, 100),
    ),
    Attack(
        "a smaller delta after a look", "what was proved with the larger delta is worked out again",
        "lowering delta was decided beforehand; if not, the larger delta is what is proved", lower_delta,
        runs=(100, 30),
    ),
    Attack(
        "end the study before an answer, then raise the budget", "all answers after the end count",
        "answers are fresh", end_before_losses,
    ),
    Attack(
        "end the study while slow answers are out, then raise the budget",
        "questions without an answer are lost when a study ends", "answers over a list of cases are stored",
        slow_losses, runs=(12, 6), many=(100, 50),
    ),
    Attack(
        "take back answers, then take over the votes in a new study",
        "votes are not taken over if answers were taken back and lost",
        "what stayed unanswered does not depend on the answers", taken_over, runs=(40, 20),
    ),
    Attack(
        "cases five times under other ids", "for a claim about cases like these, each text serves one question",
        "cases with different texts are different cases", same_text, runs=(40, 40), many=(400, 400),
    ),
    Attack(
        "cases chosen after a look", "all questions of a study draw from one list of cases",
        "the list was made without regard to answers", chosen_cases, runs=(40, 20), many=(400, 400),
    ),
    Attack(
        "another k after a look", "k is fixed when a study is created", "no other k was tried", another_k,
        runs=(50, 20), many=(400, 400), breaks=False,
    ),
]  # fmt: skip
