"""The scenarios of faults.py: no vote is lost or doubled, and nothing is paid twice."""

import pytest

from tests.faults import SCENARIOS, Scene, bad_snapshot, foreign, missing_record, no_snapshot, read_only

ELSEWHERE = (bad_snapshot, no_snapshot, missing_record, foreign, read_only)  # test_faults.py does these without a run


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    [scenario for scenario in SCENARIOS if scenario not in ELSEWHERE],
    ids=lambda scenario: scenario.__name__,
)
def test_a_fault_loses_doubles_and_pays_nothing_twice(scenario, url, tmp_path):
    with Scene(tmp_path, url) as scene:
        found = scenario(scene)
    if found is None:
        pytest.skip("not on this storage")
    assert (found.lost, found.doubled, found.paid_twice) == (0, 0, 0)
    assert found.paid == found.stored
