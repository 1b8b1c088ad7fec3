"""Studies of every kind, small and seeded. Each is made, analysed and drawn once per session: do not change them."""

from functools import cache

import numpy as np

import shortlist
from shortlist.analysis import analyse_study
from shortlist.report.page import make_report
from shortlist.votes.table import make_table

ITEMS = ("ash", "birch", "cedar", "date", "elm", "fir")
THETA = np.array([1.6, 1.2, 0.2, 0.0, -1.2, -1.8])
JUDGES = ("ann", "bob", "cleo")


def make(k=2, votes=120, seed=3, answer=None, judges=JUDGES, **options):
    """A study answered by judges who follow Bradley–Terry, for at most so many votes."""
    study = shortlist.create_study(ITEMS, k, seed=seed, **options)
    rng = np.random.default_rng(seed)
    for _ in range(votes):
        if study.verdict.done:
            break
        question = study.ask(judge=judges[int(rng.integers(len(judges)))] if judges else None)
        study.tell(question, (answer or win)(rng, eta(question)))
    return study


def eta(question):
    return THETA[ITEMS.index(question.first)] - THETA[ITEMS.index(question.second)]


def win(rng, difference):
    return float(rng.random() < 1 / (1 + np.exp(-difference)))


def tied(rng, difference):
    return 0.5 if rng.random() < 0.3 else win(rng, difference)


def graded(rng, difference):
    return float(np.clip(0.5 + 0.15 * difference + 0.2 * rng.standard_normal(), 0, 1))


def measured(rng, difference):
    return float(difference + 2.0 * rng.standard_normal())


def rows(count=150, seed=5):
    rng = np.random.default_rng(seed)
    pairs = [rng.choice(len(ITEMS), 2, replace=False) for _ in range(count)]
    outcome = [win(rng, THETA[i] - THETA[j]) for i, j in pairs]
    return [ITEMS[i] for i, _ in pairs], [ITEMS[j] for _, j in pairs], outcome


def table(count=150, **columns):
    return make_table(*rows(count), **columns)


def imported():
    study = make(votes=10)
    study.import_votes(*rows(), ["dora"] * 150, "elsewhere")
    return study


def voided():
    study = make(votes=60)
    study.undo(study.question(4))
    study.void("bob")
    return study


def pending():
    study = make(votes=40)
    questions = study.ask(5, judge="ann")
    study.tell(questions[3], "tie")
    study.skip(questions[1], "unwell")
    return study


def paused():
    study = make(votes=15)
    study.pause()
    return study


KINDS = {
    "certified": lambda: make(votes=2000, delta=0.2),
    "unfinished": make,
    "no votes": lambda: make(votes=0),
    "one vote": lambda: make(votes=1),
    "paused": paused,
    "gaussian": lambda: make(family="gaussian", sigma=2.0, answer=measured),
    "ties": lambda: make(answer=tied),
    "only ties": lambda: make(answer=lambda rng, difference: 0.5, votes=30),
    "graded": lambda: make(answer=graded),
    "imported": imported,
    "voided": voided,
    "pending": pending,
    "one judge": lambda: make(judges=("ann",)),
    "nobody named": lambda: make(judges=()),
    "most wanted": lambda: make(k=5),
    "one wanted": lambda: make(k=1),
    "budget": lambda: make(max_votes=30),
    "tolerance": lambda: make(tolerance=0.2, votes=300),
    "glr": lambda: make(stopping="glr", votes=60),
    "posterior": lambda: make(stopping="posterior", delta=0.2, votes=400),
    "oracle-tracking": lambda: make(sampling="oracle-tracking", votes=40),
}


@cache
def study_of(kind):
    """The study of this kind."""
    return KINDS[kind]()


@cache
def analysis_of(kind):
    """Its analysis; the parts are computed once too."""
    return analyse_study(study_of(kind))


@cache
def report_of(kind):
    """The page of its report."""
    return make_report(analysis_of(kind))
