"""Recorded votes are used once each, and honest ones still prove. Cases that are used again prove something about these
cases only. The attacks are in attacks_records.py.
"""

import random
from itertools import combinations

import pytest

import shortlist as package
from tests.cli.conftest import shortlist as commands  # noqa: F401
from tests.guarantee.attacks_records import ITEMS, TRUTH, contradicts, on_few_cases, recorded_noise

pytestmark = pytest.mark.slow
DELTA, STUDIES = 0.05, 100


def write(folder, rows):
    (folder / "items.txt").write_text("\n".join(ITEMS))
    (folder / "votes.csv").write_text("first,second,winner\n" + "".join(",".join(row) + "\n" for row in rows))


def test_each_vote_of_a_file_is_used_once_and_the_run_ends(commands):  # noqa: F811
    write(commands.folder, recorded_noise(0))
    arguments = ["items.txt", "-k", 3, "--delta", DELTA, "--votes", "votes.csv", "--seed", 0]
    found = commands.json("run", *arguments, "--name", "noise")
    rows = package.load_study("noise", "sqlite:///shortlist.db").rows
    assert len({row.case for row in rows}) == len(rows) <= 135
    assert not found["done"]
    assert f"{len(rows)} of 135 votes were used. Not proved." in found["warnings"][-1]


def test_honest_recorded_votes_still_prove(commands):  # noqa: F811
    rng = random.Random(1)
    rows = [(a, b, a if rng.random() < 0.85 else b) for a, b in combinations(ITEMS, 2) for _ in range(80)]
    rng.shuffle(rows)
    write(commands.folder, rows)
    found = commands.json("run", "items.txt", "-k", 3, "--delta", DELTA, "--votes", "votes.csv", "--workers", 1)
    assert (found["reason"], set(found["top"])) == ("certified", TRUTH)
    assert "votes like the recorded ones (each of the 1,200 was used at most once)" in found["guarantee"]


def test_cases_that_are_used_again_prove_something_about_these_cases_only():
    found = [on_few_cases(seed, "these") for seed in range(STUDIES)]
    assert sum(bool(best) and contradicts(verdict, best) for verdict, best in found) <= 0.08 * STUDIES
