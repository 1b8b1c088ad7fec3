"""Attacks by people, for studies whose claim is about the public (ballots) or that need at least m judges.

In every world of ballots the public is even about all pairs, and each judge has a taste of their own,
drawn by a coin, so S* = {"a"} holds for the public's mean.
"""

from contextlib import suppress
from unittest.mock import patch

import numpy as np

from shortlist import create_study
from shortlist.core.pairs import pair_number
from shortlist.errors import NeedsJudges, NothingToAsk, ShortlistError, StudyDone
from shortlist.study import questions
from tests.guarantee.attacks import DELTA, Attack
from tests.guarantee.test_edges import contradicts

ITEMS = ["a", "b", "c", "d", "e", "f"]


def public_study(seed, safeguard=True, items=ITEMS, **options):
    """Without the safeguard the claim is "each judge": every vote counts by itself."""
    claim = {"judges_claim": "public", "ballot_size": 5} if safeguard else {"judges_claim": "each"}
    return create_study(items, 1, DELTA, seed=seed, **claim, **options)


def taste(rng):
    """An opinion about "a" that decides every pair with it; other pairs are decided by coins."""
    likes = bool(rng.integers(0, 2))

    def winner(question):
        pair = [question.first, question.second]
        if "a" not in pair:
            return pair[rng.integers(0, 2)]
        return "a" if likes else next(item for item in pair if item != "a")

    return winner


def answers(study, name, winner, questions):
    """A judge who answers so many questions, or until nothing is left to ask them."""
    with suppress(NothingToAsk, ShortlistError):
        for _ in range(questions):
            question = study.ask(judge=name)
            study.tell(question, winner=winner(question))


def sessions(judges, questions, items=ITEMS):
    """Judges one after the other, each with one taste, with so many questions each."""

    def fooled(safeguard, seed):
        rng, study = np.random.default_rng((31, seed)), public_study(seed, safeguard, items)
        for judge in range(judges):
            answers(study, f"judge {judge}", taste(rng), questions)
        return contradicts(study.verdict, {"a"})

    return fooled


def raters_reused(safeguard, seed, raters=5, rounds=20):
    """Five raters with a taste each, asked over and over."""
    rng, study = np.random.default_rng((32, seed)), public_study(seed, safeguard, ITEMS[:3])
    tastes = [taste(rng) for _ in range(raters)]
    for _ in range(rounds):
        for rater, winner in enumerate(tastes):
            answers(study, f"rater {rater}", winner, 5)
    return contradicts(study.verdict, {"a"})


def returning(safeguard, seed, judges=40, times=5):
    """Every judge comes five times. Without the safeguard under another name each time, which nothing can see."""
    rng, study = np.random.default_rng((33, seed)), public_study(seed, items=ITEMS[:3])
    for judge in range(judges):
        winner = taste(rng)
        for time in range(times):
            answers(study, f"judge {judge}" if safeguard else f"judge {judge} {time}", winner, 5)
    return contradicts(study.verdict, {"a"})


def quitting(safeguard, seed, judges=150):
    """Judges answer what speaks against "a" and leave at the first pair that does not. Without the safeguard they skip
    it. Asked by the bridge, which asks about "a" most."""
    rng, study = np.random.default_rng((34, seed)), public_study(seed, safeguard, sampling="bridge")
    for judge in range(judges):
        winner, name = taste(rng), f"judge {judge}"
        with suppress(NothingToAsk, ShortlistError):
            for _ in range(5):
                question = study.ask(judge=name)
                chosen = winner(question)
                if chosen == "a" and safeguard:
                    study.settle(name)
                    break
                if chosen == "a":
                    study.skip(question)
                else:
                    study.tell(question, winner=chosen)
    return contradicts(study.verdict, {"a"})


KNOWN = frozenset({pair_number(3, 0, 1), pair_number(3, 0, 2)})  # the pairs with "a"


def conflicts(safeguard, seed, judges=150):
    """Half of the judges know "a", so they must not see it, and prefer "c" to "b". The others prefer "b" to "c", so
    the public is even about these two. Without the safeguard a ballot is drawn around the conflicts."""
    rng = np.random.default_rng((37, seed))
    study = create_study(ITEMS[:3], 2, DELTA, seed=seed, judges_claim="public", ballot_size=1)
    draw = questions._draw
    for judge in range(judges):
        knows = bool(rng.integers(0, 2))
        around = KNOWN if knows and not safeguard else frozenset()
        drawn_around = lambda state, size, closed, around=around: draw(state, size, closed | around)  # noqa: E731
        with suppress(NothingToAsk, StudyDone), patch.object(questions, "_draw", drawn_around):
            for question in study.ballot(f"judge {judge}", avoid=[("a", "b"), ("a", "c")] if knows else ()):
                study.tell(question, winner=min(question.first, question.second, key=("cba" if knows else "abc").index))
    return contradicts(study.verdict, {"a", "b"})


# --- at least m judges ---


def one_judge_fills_accounts(safeguard, seed, most=300):
    """Five items, m = 2. Two honest judges answer the pairs of "b" with "c" and "d". One judge with a taste against "a"
    answers everything else, and insists when the study asks for other judges. Counted: "b" is proved in."""
    rng = np.random.default_rng((35, seed))
    study = create_study(ITEMS[:5], 1, DELTA, seed=seed, min_judges=2 if safeguard else 1)
    likes = {item: place for place, item in enumerate("bcdea")}
    with suppress(StudyDone):
        while study.verdict.votes < most:
            question = _honest(study, rng) if rng.random() < 0.3 else _alone(study, rng)
            study.tell(question, winner=min(question.first, question.second, key=likes.__getitem__))
    return "b" in study.verdict.certainly_in


def _honest(study, rng):
    return study.ask(judge=f"honest {rng.integers(0, 2)}", pair=("b", "cd"[rng.integers(0, 2)]))


def _alone(study, rng):
    try:
        return study.ask(judge="alone")
    except NeedsJudges:
        first, second = rng.choice(5, 2, replace=False)
        return study.ask(judge="alone", pair=(ITEMS[first], ITEMS[second]))


def two_judges_finish(seed, most=2000):
    """Two honest judges in turn, m = 2; who is sent away lets the other one answer. True if it ends with a proof."""
    rng, study = np.random.default_rng((36, seed)), create_study(ITEMS[:5], 1, DELTA, seed=seed, min_judges=2)
    with suppress(StudyDone, NeedsJudges):
        for vote in range(most):
            try:
                question = study.ask(judge=f"judge {vote % 2}")
            except NeedsJudges:
                question = study.ask(judge=f"judge {1 - vote % 2}")
            better, worse = sorted((question.first, question.second))
            study.tell(question, winner=better if rng.random() < 0.8 else worse)
    return study.verdict.reason == "certified" and study.verdict.top == ("a",)


BALLOT = "one ballot per judge, on which no item is bet against twice"
FRESH = "judges are independent draws from the public"
RUNS = (30, 30)
ATTACKS = [
    Attack("one target five times on a ballot", BALLOT, FRESH, sessions(100, 5, ITEMS[:3]), RUNS),
    Attack("ten judges in sessions", BALLOT, FRESH, sessions(10, 60, ITEMS[:3]), RUNS),
    Attack("raters used again and again", BALLOT, FRESH, raters_reused, RUNS),
    Attack("a judge who comes back", "later votes of a judge bet nothing", "a judge has one name", returning, RUNS),
    Attack("quitting by taste", "what is not answered on a ballot is lost", FRESH, quitting, (30, 15)),
    Attack("a ballot drawn around conflicts of interest", "a ballot is drawn first, then cut", FRESH, conflicts, RUNS),
    Attack(
        "one judge fills two accounts (m = 2)", "every step of a proof needs evidence of m judges",
        "names are different people", one_judge_fills_accounts, (20, 8),
    ),
]  # fmt: skip
