import subprocess
import sys

import numpy as np
import pytest

from shortlist import write_votes
from shortlist.families import BradleyTerry, Gaussian
from shortlist.io.order import looks_sorted
from shortlist.io.table import make_table


def cast(seed, how, votes=400, n=3, ties=0.2):
    """Votes on pairs at random; 300 sets of five votes that are mostly alike, if `how` is "in groups"."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n, votes)
    second = (first + rng.integers(1, n, votes)) % n
    outcome = np.where(rng.random(votes) < ties, 0.5, (rng.random(votes) < 0.55).astype(float))
    if how == "in groups":
        first, second, outcome = (np.repeat(column, 5) for column in (first, second, outcome))
        outcome = np.where(rng.random(5 * votes) < 0.3, 1 - outcome, outcome)
    if how == "by winner":
        winner = np.where(outcome > 0.5, first, np.where(outcome < 0.5, second, n))
        order = np.argsort(winner, kind="stable")
        first, second, outcome = first[order], second[order], outcome[order]
    if how == "by pair":
        order = np.lexsort((np.maximum(first, second), np.minimum(first, second)))
        first, second, outcome = first[order], second[order], outcome[order]
    return make_table(first.astype(str).tolist(), second.astype(str).tolist(), outcome.tolist())


@pytest.mark.parametrize(
    ("how", "expected"), [("as cast", False), ("in groups", False), ("by pair", False), ("by winner", True)]
)
def test_only_a_file_sorted_by_winner_looks_so(how, expected):
    found = [looks_sorted(cast(seed, how), BradleyTerry()) for seed in range(20)]
    assert found == [expected] * 20


def test_a_few_votes_say_nothing():
    assert not looks_sorted(cast(1, "by winner", votes=30), BradleyTerry())
    assert not looks_sorted(make_table(["a"], ["b"], [1.0]), BradleyTerry())
    one_sided = make_table(["a"] * 200, ["b"] * 200, [1.0] * 200)
    assert not looks_sorted(one_sided, BradleyTerry())


def test_measured_differences():
    values = np.random.default_rng(1).normal(size=300)
    for drawn, expected in ((values, False), (np.sort(values), True)):
        assert looks_sorted(make_table(["a"] * 300, ["b"] * 300, drawn.tolist()), Gaussian(1.0)) is expected


def test_certify_says_so(tmp_path):
    for how, said in (("by winner", True), ("as cast", False)):
        path = tmp_path / "votes.csv"
        write_votes(path, cast(3, how))
        command = [sys.executable, "-m", "shortlist", "certify", str(path), "-k", "1"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        assert ("looks sorted by winner" in done.stderr) is said
