"""Attacks by judges who take answers back, stay silent or vote again until noise proves what they want, and bets
that know the drawn case.

Two equal items, S* = {"a"}, k = 1, and a judge who sees what a fair coin says and wants "b". The event is that "b" is
ever certified: its account against "a" reached log(1/delta). Without the safeguard the same coins are played where the
rule does not see it. Bets are not small: their log-odds reach 1.4 to 2.8, so damping hides nothing.
"""

from collections.abc import Callable
from contextlib import nullcontext, suppress
from unittest.mock import patch

import numpy as np

from shortlist import create_study
from shortlist.errors import StudyDone
from shortlist.study import study as study_module
from shortlist.study.state import next_question
from tests.guarantee.attacks import DELTA, Attack

QUESTIONS = 24


class Attacked:
    """A study of two equal items, and the coin of its judge."""

    def __init__(self, seed):
        self.coins = np.random.default_rng((29, seed))
        self.study = create_study(["a", "b"], 1, DELTA, seed=seed)
        self.asked = 0

    def winner(self):
        return "b" if self.coins.random() < 0.5 else "a"

    def fooled(self, move):
        """Does a sequence of these moves ever certify "b"?"""
        with suppress(StudyDone):
            while self.asked < QUESTIONS:
                move(self)
        return self.study.settle().reason == "certified" and self.study.verdict.top == ("b",)

    def ask(self, judge="x", **options):
        self.asked += 1
        return self.study.ask(judge=judge, pair=("a", "b"), **options)


def undo_then_skip(at):
    question, winner = at.ask(), at.winner()
    at.study.tell(question, winner=winner, settle=False)
    if winner == "a":
        at.study.undo(question)
        at.study.skip(question)


def skip_instead(at):
    """What a skip is trusted not to do: it follows the answer."""
    question = at.ask()
    if at.winner() == "b":
        at.study.tell(question, winner="b")
    else:
        at.study.skip(question)


def undo_then_expiry(at):
    question, winner = at.ask(lease=-1.0), at.winner()
    at.study.tell(question, winner=winner, settle=False)
    if winner == "a":
        at.study.undo(question)
        at.study.close_due()


def expiry(at):
    question = at.ask(lease=-1.0)
    if at.winner() == "b":
        at.study.tell(question, winner="b")
    else:
        at.study.close_due()


def expiry_unseen(at):
    """As if the judge had not been shown what they let expire."""
    question = at.ask(lease=-1.0, shown=False)
    if at.winner() == "b":
        at.study.tell(question, winner="b")
    else:
        at.study.close_due()


def undo_then_another_case(at):
    question, winner = at.ask(cases=["one", "two"]), at.winner()
    at.study.tell(question, winner=winner, settle=False)
    if winner == "a":
        at.study.undo(question)
        at.study.tell(at.ask(cases=["one", "two"]), winner=at.winner())


def skip_then_another_case(at):
    question, winner = at.ask(cases=["one", "two"]), at.winner()
    if winner == "a":
        at.study.skip(question)
        question, winner = at.ask(cases=["one", "two"]), at.winner()
    at.study.tell(question, winner=winner)


def late_undo_and_vote(at, judge, again):
    question, winner = at.ask(judge), at.winner()
    at.study.tell(question, winner=winner)
    if winner == "a" and not at.study.verdict.done:
        at.study.undo(question)
        for _ in range(3):
            at.study.tell(at.ask(again), winner="b")


def same_name(at):
    late_undo_and_vote(at, f"judge {at.asked}", f"judge {at.asked}")


def another_name(at):
    late_undo_and_vote(at, f"judge {at.asked}", f"judge {at.asked} again")


def attack(on: Callable[[Attacked], None], off: Callable[[Attacked], None]) -> Callable[[bool, int], bool]:
    return lambda safeguard, seed: Attacked(seed).fooled(on if safeguard else off)


CASES = {f"case {number}": "ab"[number % 2] for number in range(40)}  # who wins on it; both win equally often


def case_dependent_bet(safeguard, seed):
    """Without the safeguard the bet is made after the case was drawn, and knows who wins on it."""

    def informed(*given):
        question = next_question(*given)
        side = 1.0 if question.first == 1 else -1.0
        return question._replace(bet=side if CASES[question.case] == "b" else 0.0)

    with nullcontext() if safeguard else patch.object(study_module, "next_question", informed):
        study = create_study(["a", "b"], 1, DELTA, seed=seed)
        while not study.verdict.done and len(study.rows) < QUESTIONS:
            question = study.ask(cases=list(CASES))
            study.tell(question, winner=CASES[question.case])
    return study.verdict.reason == "certified" and study.verdict.top == ("b",)


SHOWN = "a question that was shown is answered or lost"
ATTACKS = [
    Attack(
        "undo, then skip", "an answer that was taken back can only be answered again or lost",
        "a skip does not follow the answer", attack(undo_then_skip, skip_instead),
    ),
    Attack(
        "undo, then let it expire", SHOWN, "the page says what was shown", attack(undo_then_expiry, expiry_unseen),
    ),
    Attack(
        "undo, then another case", "the question stays, with its case and bet",
        "a skip does not follow the answer", attack(undo_then_another_case, skip_then_another_case), runs=(100, 60),
    ),
    Attack(
        "undo a settled vote, then vote the other way",
        "undo is one-sided, and the judge bets nothing more on the pair",
        "a judge has one name", attack(same_name, another_name), runs=(100, 60),
    ),
    Attack(
        "let losing questions expire", SHOWN, "the page says what was shown", attack(expiry, expiry_unseen),
    ),
    Attack(
        "a bet that knows the drawn case", "the bet is fixed before the case is drawn",
        "whoever chooses a pair does not know the next draw", case_dependent_bet,
    ),
]  # fmt: skip
