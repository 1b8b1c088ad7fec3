"""Ballots, counted: judges with tastes of their own, and a claim about the public that they come from.

A study is fooled if what it claims is false for the public's means, or if the accounts against the true winner together
reach the level that Ville's inequality bounds. Each attack is played twice: with ballots (a share of at most 0.08 at
delta = 0.05), and asked as judges are asked for a claim about each of them, or under new names, which no program can
see (more than 0.1, so that the test could fail).

Power: of 60 studies, a share of 20 % is above 0.08 with probability 0.99; of 150, a share of 15 % with 0.99. Without
the safeguard 38 to 98 % are fooled.
"""

from contextlib import suppress

import numpy as np
import pytest

from shortlist import create_study
from shortlist.errors import BallotDone, BallotsOpen, StudyDone

DELTA = 0.05


def crossed(study, item=0):
    """Have the accounts against an item together reached the level?"""
    ledger = study._state.ahead.evidence.kept_ledger
    return bool(ledger.inflow[item] >= ledger.level(study.problem.delta))


def rate(play, studies):
    return sum(play(seed) for seed in range(studies)) / studies


# --- a judge who loves or hates one item ---


def loving(coins):
    """All items are equal to the public: half of it prefers "a" to everything, half everything to "a"."""
    loves = coins.random() < 0.5
    return lambda first, second: coins.random() < 0.5 if "a" not in (first, second) else (first == "a") == loves


def one_target(seed, judges=40, public=True):
    """Is "a" ever condemned by the accounts of five others, whose votes share one opinion of it?"""
    coins = np.random.default_rng((41, seed))
    study = create_study(list("abcdef"), 1, DELTA, seed=seed, judges_claim="public" if public else "each")
    with suppress(StudyDone):
        for number in range(judges):
            prefers, judge = loving(coins), f"judge {number}"
            five = (study.ask(judge=judge, pair=("a", other)) for other in "bcdef")  # asked one after the other
            for question in study.ballot(judge) if public else five:
                study.tell(question, float(prefers(question.first, question.second)))
            if crossed(study):
                return True
    return False


@pytest.mark.sweep
def test_one_opinion_of_an_item_counts_once():
    assert rate(one_target, 60) <= 0.08
    assert rate(lambda seed: one_target(seed, public=False), 60) > 0.1


# --- two equal items, and judges who leave or come back ---


def coin_study(seed, public):
    return create_study(["a", "b"], 1, DELTA, seed=seed, judges_claim="public" if public else "each")


def is_wrong(study):
    return study.settle().reason == "certified" and study.verdict.top == ("b",)


def quitting(seed, public=True):
    """Judges who would say "a" leave without an answer."""
    coins, study = np.random.default_rng((42, seed)), coin_study(seed, public)
    with suppress(StudyDone):
        for number in range(24):
            question = study.ask(judge=f"judge {number}")
            if coins.random() < 0.5:
                study.tell(question, winner="b")
            else:
                study.skip(question)
    return is_wrong(study)


def returning(seed, renamed=False):
    """Judges with a fixed opinion who come back for ten ballots."""
    coins, study = np.random.default_rng((43, seed)), coin_study(seed, True)
    with suppress(StudyDone):
        for number in range(24):
            winner = "b" if coins.random() < 0.5 else "a"
            for again in range(10):
                with suppress(BallotDone, BallotsOpen):
                    judge = f"judge {number} {again}" if renamed else f"judge {number}"
                    study.tell(study.ask(judge=judge), winner=winner)
    return is_wrong(study)


@pytest.mark.sweep
def test_judges_who_leave_where_they_would_lose():
    assert rate(quitting, 150) <= 0.08
    assert rate(lambda seed: quitting(seed, public=False), 60) > 0.1


@pytest.mark.sweep
def test_judges_who_come_back():
    assert rate(returning, 150) <= 0.08
    assert rate(lambda seed: returning(seed, renamed=True), 60) > 0.1


# --- a panel whose members differ much more than the items ---


class Public:
    """Six items, the second ahead of the third by 0.02, and judges whose tastes have a standard deviation of 2."""

    def __init__(self, seed):
        self.rng = np.random.default_rng((44, seed))
        self.items = [f"item {number}" for number in range(6)]
        self.theta = np.array([0.03, 0.02, 0.0, -0.01, -0.02, -0.03])

    def judge(self):
        taste = dict(zip(self.items, self.theta + 2.0 * self.rng.standard_normal(6), strict=True))
        return lambda first, second: float(self.rng.random() < 1 / (1 + np.exp(taste[second] - taste[first])))

    def is_false(self, study):
        verdict, top = study.verdict, set(self.items[:2])
        claims = set(verdict.top) if verdict.reason == "certified" else set(verdict.certainly_in)
        return not claims <= top or bool(top & set(verdict.certainly_out))


def sessions(seed, judges=10, questions=60):
    """One judge after the other, as for a claim about each judge."""
    public = Public(seed)
    study = create_study(public.items, 2, 0.1, seed=seed)
    with suppress(StudyDone):
        for number in range(judges):
            says = public.judge()
            for _ in range(questions):
                question = study.ask(judge=f"judge {number}")
                study.tell(question, says(question.first, question.second))
    return public.is_false(study)


def ballots(seed, judges, leave=0.1, at_once=20):
    public = Public(seed)
    study = create_study(public.items, 2, 0.1, seed=seed, judges_claim="public")
    with suppress(StudyDone):
        for wave in range(0, judges, at_once):
            opened = []
            with suppress(BallotsOpen):
                for number in range(wave, wave + at_once):
                    opened.append((f"judge {number}", study.ballot(f"judge {number}"), public.judge()))
            for judge, listed, says in opened:
                part = len(listed) // 2 if public.rng.random() < leave else len(listed)
                for question in listed[:part]:
                    study.tell(question, says(question.first, question.second))
                study.settle(judge)
    return public.is_false(study)


@pytest.mark.sweep
def test_a_panel_asked_in_sessions_proves_its_own_taste_and_ballots_do_not():
    assert rate(sessions, 15) > 0.3
    assert rate(lambda seed: ballots(seed, 60), 15) <= 0.1


@pytest.mark.sweep
def test_four_hundred_judges_with_ballots():
    assert rate(sessions, 200) > 0.5
    assert rate(lambda seed: ballots(seed, 400), 200) <= 0.1
    assert rate(lambda seed: ballots(seed, 400, leave=0.3), 100) <= 0.1
    assert rate(lambda seed: ballots(seed, 100, at_once=1), 100) <= 0.1


# --- how many judges a proof takes ---


def judges_needed(n, k, gap, seed, at_once=20, leave=0.1, sd=0.5):
    """Judges until the proof: N(0, 1) utilities with this gap at the cutoff, tastes of standard deviation 0.5, and one
    judge in ten who leaves halfway."""
    rng = np.random.default_rng((5, seed))
    theta = np.sort(rng.standard_normal(n))[::-1]
    theta[:k] += gap - (theta[k - 1] - theta[k])
    theta *= np.sqrt(1 + np.pi / 8 * 2 * sd**2)  # so that the public's means stay about Bradley-Terry
    items = [f"item {number}" for number in rng.permutation(n)]
    study, judges = create_study(sorted(items), k, 0.05, seed=seed, judges_claim="public"), 0
    while not study.verdict.done:
        opened = []
        with suppress(BallotsOpen, StudyDone):
            for _ in range(at_once):
                opened.append((f"judge {judges}", study.ballot(f"judge {judges}")))
                judges += 1
        for judge, listed in opened:
            taste = dict(zip(items, theta + sd * rng.standard_normal(n), strict=True))
            part = (len(listed) + 1) // 2 if rng.random() < leave else len(listed)
            for question in listed[:part]:
                p = 1 / (1 + np.exp(taste[question.second] - taste[question.first]))
                study.tell(question, float(rng.random() < p))
            study.settle(judge)
    assert set(study.verdict.top) == set(items[:k])
    return judges


@pytest.mark.sweep
@pytest.mark.parametrize(("n", "k", "published"), [(8, 1, 103), (12, 3, 193)])
def test_a_proof_takes_as_many_judges_as_another_program_needs(n, k, published):
    """Against a simulator in C, whose means have a standard error of 3 to 7 %: within three of both together."""
    needed = [judges_needed(n, k, 0.8, seed) for seed in range(60)]
    error = np.hypot(np.std(needed) / np.sqrt(len(needed)), 0.05 * published)
    assert abs(np.mean(needed) - published) < 3 * error
