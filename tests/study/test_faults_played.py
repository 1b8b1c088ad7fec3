"""The scenarios of faults.py: no vote is lost or doubled, and nothing is paid twice."""

import pytest

from tests.faults import SCENARIOS, Scene


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_a_fault_loses_doubles_and_pays_nothing_twice(scenario, url, tmp_path):
    with Scene(tmp_path, url) as scene:
        found = scenario(scene)
    if found is None:
        pytest.skip("not on this storage")
    assert (found.lost, found.doubled, found.paid_twice) == (0, 0, 0)
    assert found.paid == found.stored
