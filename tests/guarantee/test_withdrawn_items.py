"""Items that are withdrawn after the first vote: wrong answers stay below the error that is stated, whoever chooses the
item and the moment after a look; without the rule nearly every answer would be wrong."""

import numpy as np
import pytest
from scipy.stats import binomtest

from shortlist import create_study
from shortlist.core.betting import Ledger

DELTA = 0.1
# k, what is withdrawn, and all items with their strength. "one" and "other" are equal, so a proof that tells them apart
# is false against the order in which they are the other way round.
WORLDS = {
    "the best item": (1, "gone", {"gone": 2.0, "one": 0.0, "other": 0.0, "last": -3.0}),
    "one of many in the answer": (3, "gone", {"gone": 2.0, "a": 3.0, "b": 3.0, "one": 0.0, "other": 0.0}),
}


def is_false_proof(world, seed, most, stopping="edges"):
    """An owner who watches: the item goes when the study is proved with it, or has won far more often against one of
    the two equal items than against the other. If what it won still counted, it would prove this one to be out."""
    k, gone, strength = WORLDS[world]
    rng, lead = np.random.default_rng((31, seed)), 0
    study = create_study([*strength], k, DELTA, seed=seed, stopping=stopping)
    while study.verdict.votes < most and not (study.withdrawn and study.verdict.done):
        if not study.withdrawn and (study.verdict.done or abs(lead) >= 8):
            study.withdraw_item(gone)
            continue
        question = study.ask()
        ends = question.first, question.second
        better = ends[int(rng.random() >= 1 / (1 + np.exp(strength[ends[1]] - strength[ends[0]])))]
        if better == gone:
            lead += ("one" in ends) - ("other" in ends)
        study.tell(question, winner=better)
    assert study.problem.stated_delta == 2 * DELTA
    return study.verdict.reason == "certified"


# Either order of the two equal items may be the true one, so a proof is false against one of them: both together at
# most twice the stated error, 40 %. 20 runs detect a share of 85 % with probability 0.98, 400 one of 50 % with 0.96.
@pytest.mark.parametrize("runs", [pytest.param(20, marks=pytest.mark.slow), pytest.param(400, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("stopping", ["edges", "cuts"])
def test_a_withdrawal_after_a_look_keeps_the_error_below_what_is_stated(stopping, world, runs):
    false = sum(is_false_proof(world, seed, 120, stopping) for seed in range(runs))
    print(f"{stopping}, {world}: {false} of {runs} false")
    assert binomtest(false, runs, 4 * DELTA, alternative="greater").pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_nearly_every_proof_would_be_false_if_what_a_withdrawn_item_won_still_counted(world, monkeypatch):
    monkeypatch.setattr(Ledger, "_is_void", lambda ledger, source, target: np.zeros(np.shape(source), np.bool_))
    false = sum(is_false_proof(world, seed, 120) for seed in range(20))
    assert binomtest(false, 20, 4 * DELTA, alternative="greater").pvalue < 1e-3
