"""Every attack with its safeguard, where at most a share delta of the runs may be fooled, and without it, where far
more are: else the test could not fail.

With the safeguard the limit is the 99 % quantile of the binomial distribution with share delta = 0.05: 11 of 100, 67 of
1,000. Power: 100 runs find a true share of 20 % with probability 0.98, and 1,000 runs one of 10 % with 0.9999.
"""

import pytest
from scipy.stats import binom

from tests.guarantee.attacks import DELTA, all_attacks
from tests.guarantee.attacks_people import two_judges_finish

ATTACKS = {attack.name: attack for attack in all_attacks()}
LEAST = 0.1


def check(attack, runs):
    on, off = (attack.share(safeguard, size) for safeguard, size in zip((True, False), runs, strict=True))
    print(f"{attack.name}: {on:.3f}, without the safeguard {off:.3f}")
    assert on * runs[0] <= binom.ppf(0.99, runs[0], DELTA)
    assert not attack.breaks or off > LEAST


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_attacks(name):
    check(ATTACKS[name], ATTACKS[name].runs)


@pytest.mark.sweep
@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_with_many_runs(name):
    check(ATTACKS[name], ATTACKS[name].many)


@pytest.mark.slow
def test_two_honest_judges_do_finish_with_two_needed():
    """The safeguard of "one judge fills two accounts" leaves honest studies alone: 9 of 10 end with the right proof."""
    assert sum(map(two_judges_finish, range(20))) >= 18
