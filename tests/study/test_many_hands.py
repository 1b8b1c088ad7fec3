"""Several processes on one study: every vote is there, once, and belongs to who gave it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shortlist import create_study, load_study

HANDS = 8


def play_together(url, folder, votes):
    create_study([f"item {i}" for i in range(20)], 5, 1e-9, storage=url, name="many", max_votes=votes)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).with_name("hand.py")), url]
    hands = [
        subprocess.Popen([*command, f"hand {i}", str(folder / f"{i}.log")], env=environment, stderr=subprocess.PIPE)
        for i in range(HANDS)
    ]
    for hand in hands:
        _, said = hand.communicate(timeout=1500)
        assert hand.returncode == 0, said.decode()
        assert not said, said.decode()
    return load_study("many", url)


def check(study, folder, votes):
    told = {}
    for i in range(HANDS):
        for line in (folder / f"{i}.log").read_text().splitlines():
            number, rest = line.split(" ", 1)
            assert int(number) not in told, "two hands told one question"
            told[int(number)] = f"hand {i}", rest
    kept = {
        a.question.id: (a.question.judge, f"{a.question.first} {a.question.second} {a.outcome}") for a in study.history
    }
    assert kept == told
    assert len(kept) == study.verdict.votes == votes
    assert study.verdict.reason == "budget"


@pytest.mark.slow
def test_eight_processes_lose_and_double_nothing(url, tmp_path):
    check(play_together(url, tmp_path, 800), tmp_path, 800)


@pytest.mark.sweep
def test_eight_processes_and_ten_thousand_votes(url, tmp_path):
    check(play_together(url, tmp_path, 10_000), tmp_path, 10_000)
