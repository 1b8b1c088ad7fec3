"""Four items whose order every judge of these tests more or less knows."""

import math
import random

import shortlist

ITEMS = ["ann", "bob", "cid", "dee"]
STRENGTH = dict(zip(ITEMS, [2.0, 1.0, -1.0, -2.0], strict=True))
AT_ONCE = shortlist.Backoff(first=0.0, most=0.0)


def noisy(seed=1):
    """A judge who prefers the better item most of the time."""
    rng = random.Random(seed)

    def judge(first, second, case=None):
        return first if rng.random() < 1 / (1 + math.exp(STRENGTH[second] - STRENGTH[first])) else second

    return judge


def new_study(**options):
    return shortlist.create_study(ITEMS, k=2, **{"delta": 0.1, **options})


def same(one, other):
    """Were the same questions asked and answered alike? Times and the numbers of events differ."""
    unknown = {"asked_at": None, "closed_at": None, "answered": -1}
    first, second = ([row._replace(**unknown) for row in study.rows] for study in (one, other))
    return first == second


def told(study):
    """Questions with a vote, in the order asked."""
    return [answer for answer in study.rows if answer.outcome is not None]
