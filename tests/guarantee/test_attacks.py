"""Every attack with its safeguard, where at most a share delta of the runs may be fooled, and without it, where far
more are: else the test could not fail.

`make test` plays the runs one after the other and stops when the result is clear. With the safeguard it is Wald's
sequential test of the share delta = 0.05 against 0.25, which ends after 17 runs if none is fooled; where it does not
end, the limit of all runs decides. That is the 99 % quantile of the binomial distribution with share delta: 11 of
100. Power: up to 100 runs find a true share of 25 % with probability 0.982, of 20 % with 0.92 and of 30 % with 0.996,
and blame a share of 5 % with 0.007 (`power` below). Studies have the stopping rule `edges`, under which noise moves
bets from the first vote. The bets of `cuts` wait until the order is clear, so some attacks fail under it anyway. `make
slow` plays the safeguards with `cuts` too, and all runs: 67 of 1,000 may be fooled, and a true share of 10 % is found
with probability 0.9999.
"""

from math import log

import pytest
from scipy.stats import binom

from tests.guarantee.attacks import DELTA, IN_STUDIES, all_attacks, attacks_of, stopping
from tests.guarantee.attacks_people import two_judges_finish

ATTACKS = {attack.name: attack for attack in all_attacks()}
LEAST = 0.1
BROKEN = 0.25  # a share that has to be found
MISSED, FALSE = 0.02, 0.01  # in Wald's test, the probability to miss it, and to find it where the share is delta


def limit(runs):
    return binom.ppf(0.99, runs, DELTA)


def ratio(fooled, runs):
    """The log likelihood ratio of the share BROKEN against delta."""
    return fooled * log(BROKEN / DELTA) + (runs - fooled) * log((1 - BROKEN) / (1 - DELTA))


def verdict(fooled, runs, most):
    """Whether the safeguard holds after so many runs of at most `most`; None if it is not clear yet."""
    if ratio(fooled, runs) <= log(MISSED / (1 - FALSE)):
        return True
    if ratio(fooled, runs) >= log((1 - MISSED) / FALSE):
        return False
    return bool(fooled <= limit(most)) if runs == most else None


def power(share, most):
    """The probability that a true share is blamed, and the expected number of runs."""
    blamed, expected, open_now = 0.0, 0.0, {0: 1.0}
    for runs in range(1, most + 1):
        after = {}
        for fooled, chance in open_now.items():
            after[fooled] = after.get(fooled, 0.0) + chance * (1 - share)
            after[fooled + 1] = after.get(fooled + 1, 0.0) + chance * share
        ended = {fooled: verdict(fooled, runs, most) for fooled in after}
        blamed += sum(chance for fooled, chance in after.items() if ended[fooled] is False)
        expected += runs * sum(chance for fooled, chance in after.items() if ended[fooled] is not None)
        open_now = {fooled: chance for fooled, chance in after.items() if ended[fooled] is None}
    return blamed, expected


def test_the_power_is_as_stated():
    assert power(0.25, 100)[0] == pytest.approx(0.982, abs=1e-3)
    assert power(0.2, 100)[0] == pytest.approx(0.922, abs=1e-3)
    assert power(0.3, 100)[0] == pytest.approx(0.996, abs=1e-3)
    assert power(DELTA, 100)[0] == pytest.approx(0.007, abs=1e-3)
    assert power(0.0, 100) == pytest.approx((0.0, 17.0))


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_attacks(name):
    attack = ATTACKS[name]
    with stopping("edges"):
        assert holds(attack)
        assert not attack.breaks or breaks_without(attack, attack.runs[1])


def holds(attack):
    """Whether at most a share delta is fooled with the safeguard; ends when it is clear."""
    fooled, most, found = 0, attack.runs[0], None
    for runs in range(1, most + 1):
        fooled += attack.fooled(True, runs - 1)
        if (found := verdict(fooled, runs, most)) is not None:
            break
    print(f"{attack.name}: {fooled} of {runs}")
    return found


def breaks_without(attack, most):
    """Whether more than LEAST of `most` runs are fooled without the safeguard; ends when it is certain."""
    fooled = 0
    for seed in range(most):
        fooled += attack.fooled(False, seed)
        if fooled > LEAST * most:
            return True
    return False


@pytest.mark.sweep
@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_with_many_runs(name):
    attack, (with_it, without_it) = ATTACKS[name], ATTACKS[name].many
    with stopping("edges"):
        on, off = attack.share(True, with_it), attack.share(False, without_it)
    print(f"{name}: {on:.3f}, without the safeguard {off:.3f}")
    assert on * with_it <= limit(with_it)
    assert not attack.breaks or off > LEAST


@pytest.mark.sweep
@pytest.mark.parametrize("name", [attack.name for module in IN_STUDIES for attack in attacks_of(module)])
def test_safeguards_hold_under_cuts(name):
    with stopping("cuts"):
        assert holds(ATTACKS[name])


@pytest.mark.slow
def test_two_honest_judges_do_finish_with_two_needed():
    """The safeguard of "one judge fills two accounts" leaves honest studies alone: 9 of 10 end with the right proof. A
    share of 60 % passes with probability 0.05."""
    assert sum(map(two_judges_finish, range(10))) >= 9
